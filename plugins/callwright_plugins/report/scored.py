"""The page of scored rows: what ``callwright score -o`` wrote, with the texts or conversations that were scored."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from callwright.commands.outputs.unfinished import change_of
from callwright.compression.packing import unpacked
from callwright.errors import DataError, cannot_read
from callwright.language.shortening import shortened
from callwright.statistics.intervals import MeanInterval, mean_interval
from callwright_plugins.report.drawing.charts import label
from callwright_plugins.report.drawing.markup import attribute, cut, safe, section
from callwright_plugins.report.reading import number, table
from callwright_plugins.report.sections.rollouts import scores

#: Rows that are shown of each stage: those with the lowest totals.
_EACH: Final = 2
_BINS: Final = 10
_MOST_REASONS: Final = 6
_LONGEST: Final = 3000
_MOST_MESSAGES: Final = 30


@define
class Term:
    """What is known of one term of the reward over all rows."""

    weight: float | None = None
    shares: float = 0.0
    n: int = 0
    lost: int = 0
    #: Rows whose task gave the term no points to earn (a range of 0 to 0): a share of them would be none.
    pointless: int = 0
    codes: Counter[str] = field(factory=Counter)
    reasons: dict[str, str] = field(factory=dict)

    @property
    def share(self) -> float:
        """The mean share of the points that were earned where there were some."""
        held = self.n - self.pointless
        return self.shares / held if held else 1.0

    def enter(self, part: Mapping[str, Any]) -> None:
        """One row's score."""
        value, low, high = (number(part.get(key)) for key in ("value", "low", "high"))
        if value is None:
            return
        low, high = low or 0.0, 1.0 if high is None else high
        self.weight = number(part.get("weight"))
        self.n += 1
        if high > low:
            self.shares += (value - low) / (high - low)
        else:
            self.pointless += 1
        self.lost += value < high
        evidence = [one for one in part.get("evidence") or () if isinstance(one, dict)]
        for code in {str(one.get("code", "")) for one in evidence}:
            self.codes[code] += 1
        for one in evidence:
            self.reasons.setdefault(str(one.get("code", "")), str(one.get("reason", "")))


@define
class Scored:
    """The rows of a file, added up. Rows are read once, and only those that are shown are kept."""

    path: Path
    totals: list[float] = field(factory=list)
    masked: Counter[str] = field(factory=Counter)
    stages: Counter[str] = field(factory=Counter)
    terms: dict[str, Term] = field(factory=dict)
    best: dict[str, Any] | None = None
    worst: dict[str, list[dict[str, Any]]] = field(factory=dict)
    hidden: dict[str, Any] | None = None
    damaged: int = 0
    #: That the file was edited after it was written, in words.
    changed: str | None = None

    @property
    def notes(self) -> list[str]:
        """What of the file is not as it should be."""
        one = self.damaged == 1
        left_out = [f"{self.damaged:,} damaged {'row was' if one else 'rows were'} left out"] if self.damaged else []
        return [*([self.changed] if self.changed else []), *left_out]

    def enter(self, row: dict[str, Any]) -> None:
        """One row."""
        total = number(row.get("total"))
        if total is None:
            self.masked[_reason(str(row.get("masked") or "no reason given"))] += 1
            self.hidden = self.hidden or row
            return
        self.totals.append(total)
        stage = str(row.get("stage", "done"))
        self.stages[stage] += 1
        for name, part in table(row.get("scores")).items():
            self.terms.setdefault(name, Term()).enter(table(part))
        if stage == "done":
            if self.best is None or total > (number(self.best.get("total")) or 0.0):
                self.best = row
            return
        kept = self.worst.setdefault(stage, [])
        kept.append(row)
        kept.sort(key=lambda one: number(one.get("total")) or 0.0)
        del kept[_EACH:]

    def shown(self) -> list[tuple[str, dict[str, Any]]]:
        """The rows to look at, each with why."""
        found = [(f"lost at {stage}", row) for stage, rows in self.worst.items() for row in rows]
        found += [("best", self.best)] if self.best is not None else []
        return found + ([("masked", self.hidden)] if self.hidden is not None else [])


def read_scored(path: Path) -> Scored:
    """Add up a file of rewards, plain or compressed. Raises :class:`callwright.errors.DataError` if it is none."""
    found = Scored(path)
    for row in _objects(path):
        if row is None:
            found.damaged += 1
        elif "total" in row and isinstance(row.get("scores"), dict):
            found.enter(row)
        else:
            raise DataError(
                f"{path} has no rewards: a row of callwright score has 'total' and 'scores', and this one has "
                f"{', '.join(map(repr, itertools.islice(row, 8))) or 'nothing'}"
            )
    if not found.totals and not found.masked:
        raise DataError(f"{path} has no rows of rewards")
    found.changed = change_of(path)
    return found


def _objects(path: Path) -> Iterator[dict[str, Any] | None]:
    try:
        with path.open("rb") as file:
            for line in unpacked(file, str(path)):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError):
                    row = None
                yield row if isinstance(row, dict) else None
    except (OSError, EOFError) as error:
        raise cannot_read(path, error) from error


def texts_of(path: Path, ids: set[str], tools: str | None, registry: Any) -> dict[str, str]:
    """HTML by id of the rows in ``ids``: completions of the rows that were scored, or messages of logs.

    Raises :class:`callwright.errors.DataError` for a file that is neither.
    """
    first = next((row for row in _objects(path) if row is not None), {})
    if isinstance(first.get("completion"), str) and "messages" not in first:
        rows = (row for row in _objects(path) if row is not None)
        return {str(row.get("id")): _text(row.get("completion")) for row in rows if str(row.get("id")) in ids}
    from callwright.episodes.logs.reading import read_log

    logs = read_log(path, tools=tools, registry=registry)
    return {log.task.id: _messages(log.messages) for log in logs if log.task.id in ids}


def _text(text: Any) -> str:
    return f'<pre class="completion" tabindex="0">{safe(cut(str(text), 2 * _LONGEST)) or "<i>nothing</i>"}</pre>'


def _messages(messages: Any) -> str:
    parts = []
    for message in itertools.islice(messages, _MOST_MESSAGES):
        said = message.to_openai() if hasattr(message, "to_openai") else {"role": "assistant", "content": message.text}
        content, calls = said.get("content"), said.get("tool_calls") or ()
        words = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False) if content else ""
        for call in calls:
            asked = table(table(call).get("function"))
            words += f"{chr(10) if words else ''}{asked.get('name')}({asked.get('arguments')})"
        tone = "completion" if said.get("role") == "assistant" else "heard"
        shown = safe(cut(words, _LONGEST)) or "<i>nothing</i>"
        parts.append(f'<pre class="{tone}" tabindex="0"><b>{safe(said.get("role"))}</b> {shown}</pre>')
    left = len(messages) - _MOST_MESSAGES
    return "".join(parts) + (f'<p class="aside">{left:,} more messages</p>' if left > 0 else "")


# The page -------------------------------------------------------------------------------------------------------------


def body(data: Scored, texts: Mapping[str, str]) -> str:
    """Everything between the title and the footer."""
    parts = (_header(data), _notices(data), _spread(data), _terms(data), _masked(data), _examples(data, texts))
    return "\n".join(part for part in parts if part)


def _header(data: Scored) -> str:
    n, hidden = len(data.totals), sum(data.masked.values())
    mean = mean_interval(data.totals)
    headline = f"The mean total is {label(mean.mean)}." if mean.mean is not None else "Every row is masked."
    full = data.stages["done"]
    details = _interval(mean) + (f"<p>{full:,} of {n:,} rows lost no point.</p>" if n else "")
    facts = {"Rows": f"{n + hidden:,}", "Masked": f"{hidden:,}", "Terms": ", ".join(data.terms) or "–"}
    if data.totals:
        facts["Totals"] = f"{label(min(data.totals))} to {label(max(data.totals))}"
    cells = "".join(f"<div><dt>{safe(key)}</dt><dd>{safe(cut(value, 200))}</dd></div>" for key, value in facts.items())
    return f"""<header>
<p class="eyebrow">Callwright rewards</p>
<h1>{safe(data.path.name)}</h1>
<div class="verdict"><p class="headline">{safe(headline)}</p>{details}</div>
<dl class="facts">{cells}</dl>
</header>"""


def _interval(mean: MeanInterval) -> str:
    if mean.low is None or mean.high is None:
        return ""
    return f"<p>The 95% interval is {label(mean.low)} to {label(mean.high)}, as if rows were independent.</p>"


def _notices(data: Scored) -> str:
    found = []
    hidden, n = sum(data.masked.values()), len(data.totals)
    if hidden > n:
        found.append("Most rows are masked: the figures are those of the few that could be scored.")
    found += [f"{note}." for note in data.notes]
    remarks = "".join(f"<li>{safe(one)}</li>" for one in found)
    return f'<section class="notice"><h2>Worth knowing</h2><ul>{remarks}</ul></section>' if remarks else ""


def _spread(data: Scored) -> str:
    if len(set(data.totals)) < 2:
        return ""
    low, high = min(data.totals), max(data.totals)
    width = (high - low) / _BINS
    bins = Counter(min(_BINS - 1, int((total - low) / width)) for total in data.totals)
    most = max(bins.values())
    lines = "".join(
        _bar(f"{label(low + place * width)} to {label(low + (place + 1) * width)}", bins[place], most)
        for place in reversed(range(_BINS))
    )
    lead = "Rows by their total."
    return section("Totals", lines, lead=lead, key="totals")


def _bar(name: str, count: int, most: int) -> str:
    described = attribute(f"{name}: {count:,} rows")
    return (
        f'<div class="score full"><span class="name">{safe(name)}</span><span class="bar" role="img" '
        f'aria-label="{described}"><i style="width:{100 * count / most:.1f}%"></i></span>'
        f'<span class="value">{count:,}</span></div>'
    )


def _terms(data: Scored) -> str:
    lines = []
    for name, term in data.terms.items():
        share = term.share
        tone = "full" if not term.lost else "none" if share == 0 else "part"
        reasons = "".join(
            f"<li>{count:,} {'row' if count == 1 else 'rows'}: {safe(code)}, such as "
            f"“{safe(cut(term.reasons[code], 240))}”</li>"
            for code, count in term.codes.most_common(_MOST_REASONS)
        )
        weight = "" if term.weight is None else f", weight {label(term.weight)}"
        none = f"; {term.pointless:,} had none to earn" if term.pointless else ""
        lost = f"{term.lost:,} of {term.n:,} rows lost points{none}{weight}"
        lines.append(
            f'<div class="score {tone}"><span class="name">{safe(name)}</span>'
            f'<span class="bar" role="img" aria-label="{attribute(f"{name}: {100 * share:.0f}% of its points")}">'
            f'<i style="width:{100 * min(1.0, max(0.0, share)):.1f}%"></i></span>'
            f'<span class="value">{100 * share:.1f}%</span><ul><li>{safe(lost)}</li>{reasons}</ul></div>'
        )
    lead = "The mean share of the points of each term, how many rows lost some, and why."
    return section("Where points were lost", "".join(lines), lead=lead, key="terms") if lines else ""


def _masked(data: Scored) -> str:
    lines = "".join(
        f'<tr><th scope="row">{count:,}</th><td>{safe(cut(reason, 400))}</td></tr>'
        for reason, count in data.masked.most_common(20)
    )
    lead = "Rows without a total: nobody knows what they would have earned, so they count nowhere."
    if not lines:
        return ""
    return section("Masked", f'<table class="plain"><tbody>{lines}</tbody></table>', lead=lead, key="masked")


def _reason(text: str) -> str:
    """A reason without the numbers by which equal ones differ."""
    return re.sub(r"\d+", "#", text)


def _examples(data: Scored, texts: Mapping[str, str]) -> str:
    lines = []
    for place, (why, row) in enumerate(data.shown()):
        total = number(row.get("total"))
        tone = "none" if not total else "full" if row.get("stage") == "done" else "part"
        shown = "–" if total is None else f"{total:.2f}"
        name = str(row.get("id"))
        text = texts.get(name, "")
        parts = "".join(scores(table(row.get("scores")))) or f"<p>{safe(cut(str(row.get('masked', '')), 600))}</p>"
        pair = f'<div class="pair"><div>{text}</div><div class="scores">{parts}</div></div>'
        alone = f'<div class="pair"><div class="scores">{parts}</div></div>'
        lines.append(
            f'<details class="rollout"{" open" if place == 0 else ""}><summary><span class="why">{safe(why)}</span>'
            f'<span class="total {tone}">{shown}</span>'
            f'<span class="query">{safe(shortened(name, 160))}</span></summary>'
            f"{pair if text else alone}</details>"
        )
    lead = "The rows with the lowest totals of each stage, a best one, and a masked one."
    return section("Rows", "".join(lines), lead=lead, key="rows") if lines else ""
