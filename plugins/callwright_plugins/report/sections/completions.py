"""The section of an evaluation's completions: right ones and wrong ones, the commonest failures first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from attrs import frozen

from callwright.language.shortening import shortened
from callwright_plugins.report.drawing.markup import cut, safe, section
from callwright_plugins.report.reading import VERDICTS, RunData, row_at, rows
from callwright_plugins.report.sections.conversations import conversation

_LONGEST: Final = 6000
#: How many failures of a depth are shown with an example.
_FAILURES: Final = 2

#: What the names of failures say, by their longest known beginning.
_WORDS: Final = {
    "format:": "The completion is not a program in the stated form; nothing was executed.",
    "schema:unknown_tool": "A call names a tool that is not offered.",
    "schema:missing_parameter": "A call leaves out a parameter that its schema requires.",
    "schema:unexpected_parameter": "A call has a parameter that its schema does not know.",
    "schema:wrong_type": "An argument has another type than its schema states.",
    "execution:": "A call failed when it was executed.",
    "answer:abstained": "Nothing was called where a call was needed.",
    "answer:should_abstain": "Something was called where no call was right.",
    "answer:wrong": "Every call was executed, but what is returned is not the expected answer.",
    "schema:": "A call does not fit its schema.",
}


@frozen
class Picked:
    """A verdict with its completion, and what it is an example of. ``count``: how many of its depth are like it."""

    kind: str
    failure: str
    count: int
    row: dict[str, Any]


def pick(data: RunData) -> dict[int, list[Picked]]:
    """For each depth the first right completion, the first that is right but not valid, and the commonest failures.

    Only places and counts are held, however large the file is.
    """
    first: dict[int, dict[tuple[str, str], int]] = {}
    counts: dict[int, Counter[tuple[str, str]]] = {}
    for offset, row in rows(data, VERDICTS):
        depth, failure = row.get("depth"), row.get("failure")
        if type(depth) is not int or row.get("masked") is True or not isinstance(row.get("completion"), str):
            continue
        if row.get("answer") is True:
            key = ("right", "" if row.get("valid") is True else "but not valid")
        else:
            key = ("wrong", failure if isinstance(failure, str) else "")
        first.setdefault(depth, {}).setdefault(key, offset)
        counts.setdefault(depth, Counter())[key] += 1
    found = {}
    for depth in sorted(first):
        common = [key for key, _ in counts[depth].most_common() if key[0] == "wrong"][:_FAILURES]
        keys = [key for key in (("right", ""), ("right", "but not valid")) if key in first[depth]]
        found[depth] = [
            Picked(*key, counts[depth][key], row_at(data, VERDICTS, first[depth][key])) for key in (*keys, *common)
        ]
    return found


def completions(data: RunData) -> Iterator[str]:
    """Completions right and wrong by depth, with the failure named."""
    groups = pick(data)
    if not groups:
        return
    wrong = [depth for depth, group in groups.items() if any(one.kind == "wrong" for one in group)]
    unfolded = wrong[0] if wrong else None  # the page shows at once what a failure looks like
    content = ""
    for depth, group in groups.items():
        lost = next((one for one in group if one.kind == "wrong"), None) if depth == unfolded else None
        content += f"<h3>Depth {depth}</h3>" + "".join(_example(one, one is lost) for one in group)
    lead = "The first completion of its kind at each depth: a right one, and one for each of the commonest failures."
    yield section("Completions", content, lead=lead, key="completions")


def explain(failure: str) -> str:
    """What the name of a failure says, in a sentence; empty for a name that is not known."""
    return next((words for start, words in _WORDS.items() if failure.startswith(start)), "")


def _example(picked: Picked, opened: bool) -> str:
    row, right = picked.row, picked.kind == "right"
    query = row.get("query")
    title = shortened(query if isinstance(query, str) else str(row.get("task", "")), 160)
    fault = f'<span class="fault">{safe(cut(picked.failure, 60))}</span>' if picked.failure else ""
    sentences = [explain(picked.failure)] if not right else []
    if right:
        sentences = ["The answer is right" + (", but a call does not fit its schema." if picked.failure else ".")]
    like = picked.count - 1
    if like:
        sentences.append(f"{like:,} more at this depth {'is' if like == 1 else 'are'} like it.")
    asked = f"task {cut(str(row.get('task', '?')), 60)} · {cut(str(row.get('structure', '?')), 40)}"
    said = " ".join(sentence for sentence in sentences if sentence)
    shown = conversation(row)
    if not shown:
        one = safe(cut(str(row.get("completion")), _LONGEST)) or "<i>nothing</i>"
        shown = f'<pre class="completion" tabindex="0">{one}</pre>'
    whole = f"<p>{safe(cut(query, 2000))}</p>" if isinstance(query, str) and len(query) > 160 else ""
    return f"""<details class="rollout"{" open" if opened else ""}>
<summary><span class="why"><b class="total {"full" if right else "none"}">{safe(picked.kind)}</b></span>{fault}
<span class="query">{safe(title)}</span></summary>
<p class="aside">{safe(asked)}</p>
<div class="pair"><div>{shown}</div>
<div class="said">{whole}<p>{safe(said)}</p></div></div>
</details>"""
