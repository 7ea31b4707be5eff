"""The section of right answers with fewer calls than the task needs, such as a last call with memorised literals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from attrs import define, field

from callwright_plugins.report.drawing.markup import percent, safe, section
from callwright_plugins.report.reading import ROLLOUTS, VERDICTS, RunData, rows, table


@define
class Counted:
    """Right answers to tasks of several calls, by depth: all of those whose calls are known, and those with fewer."""

    right: Counter[int] = field(factory=Counter)
    fewer: Counter[int] = field(factory=Counter)


def calls_made(row: dict[str, Any]) -> int | None:
    """The calls that a row of ``rollouts.jsonl`` or ``verdicts.jsonl`` executed; ``None`` where it does not say."""
    observed = row.get("observations")
    if isinstance(observed, list):
        return len(observed)
    if isinstance(row.get("calls"), dict):
        counts = [count for count in table(row["calls"]).values() if type(count) is int]
        return sum(counts)
    return None


def count(data: RunData, name: str) -> Counted:
    """Count the rows of a file. Only counts are held, however long it is."""
    found = Counted()
    for _, row in rows(data, name):
        depth, made = row.get("depth"), calls_made(row)
        right = row.get("answered" if name == ROLLOUTS else "answer") is True
        if type(depth) is not int or depth < 2 or made is None or not right or row.get("masked"):
            continue
        found.right[depth] += 1
        found.fewer[depth] += made < depth
    return found


def fewer_calls(data: RunData, name: str) -> Iterator[str]:
    """Of the right answers to tasks of several calls, those with fewer calls; nothing where no row tells."""
    found = count(data, name)
    right, fewer = found.right.total(), found.fewer.total()
    if not right:
        return
    lines = "".join(
        f'<tr><th scope="row">{depth}</th><td>{found.fewer[depth]:,} of {found.right[depth]:,}</td></tr>'
        for depth in sorted(found.right)
    )
    made = "fewer calls than the reference program"
    body = f"<p><b>{percent(fewer / right)}</b> of {right:,} right answers make {made}.</p>"
    if fewer:
        body += f'<table class="plain"><tbody>{lines}</tbody></table>'
    again = "callwright lab DIR" if name == ROLLOUTS else f"callwright lab DIR/{VERDICTS} --corpus NAME"
    # The tasks of a benchmark are those of no corpus that the lab could be given.
    ask = "" if data.recipe.get("benchmark") else f": <code>{safe(again)}</code>"
    of = "the rollouts that the run kept" if name == ROLLOUTS else "the completions"
    lead = (
        f"Of {of}, tasks of two calls and more, by depth. An answer is judged by its value, so a call with memorised "
        f"literals can be right. Which literals stand for results, these files do not say{ask}."
    )
    yield section("Fewer calls", body, lead=lead, key="fewer-calls")
