"""Entries: what the index knows of a row, whatever kind of file it stands in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import field, frozen

from callwright_plugins.viewer.sources.finding import Kind

#: Characters of a row's texts that are searched, and of its query that tables show.
_SEARCHED: Final = 20_000
_SHOWN: Final = 240
Row = Mapping[str, Any]


@frozen
class Entry:
    """A row in figures and words. ``None`` where the row does not say.

    ``failed`` counts calls that did not execute; ``words`` is the text that is searched.
    """

    id: str
    task: str = ""
    step: int | None = None
    group: str | None = None
    sample: int | None = None
    depth: int | None = None
    structure: str | None = None
    failure: str | None = None
    stage: str | None = None
    total: float | None = None
    advantage: float | None = None
    answered: bool | None = None
    masked: bool = False
    truncated: bool = False
    calls: int | None = None
    failed: int | None = None
    tools: tuple[str, ...] = ()
    branch: str | None = None
    query: str = ""
    scores: Mapping[str, float] = field(factory=dict)
    words: str = ""


def entry_of(kind: Kind, row: Row, number: int) -> Entry:
    """The entry of the ``number``-th row of a file (from 1). Whatever is not as it should be is left out."""
    if kind == "tasks":
        return _task_entry(row, number)
    trace = [one for one in listed(row.get("trace")) if isinstance(one, Mapping)]
    observed = trace or [one for one in listed(row.get("observations")) if isinstance(one, Mapping)]
    scores = {name: table(part) for name, part in table(row.get("scores")).items()}
    total = number_of(row.get("total", row.get("reward")))
    return Entry(
        id=str(row.get("id", number)),
        task=text_of(row.get("task")),
        step=whole(row.get("step")),
        group=_group(row),
        sample=whole(row.get("sample")),
        depth=whole(row.get("depth")),
        structure=_word(row.get("structure")),
        failure=_word(row.get("failure")),
        stage=_word(row.get("stage")),
        total=total,
        advantage=number_of(row.get("advantage")),
        answered=_flag(row.get("answered", row.get("answer"))),
        masked=bool(row.get("masked")) or ("total" in row and total is None),
        truncated=row.get("truncated") is True,
        calls=len(observed) if observed or "observations" in row or "trace" in row else _counted(row),
        failed=sum(1 for one in observed if one.get("kind") not in ("ok", None)) if observed else None,
        tools=tuple(
            sorted({text_of(one.get("tool")) for one in trace if one.get("tool")} | set(table(row.get("calls"))))
        ),
        branch=_word(row.get("branch")),
        query=text_of(row.get("query"))[:_SHOWN],
        scores={name: value for name, part in scores.items() if (value := number_of(part.get("value"))) is not None},
        words="\n".join(_texts(row, scores))[:_SEARCHED],
    )


def _task_entry(row: Row, number: int) -> Entry:
    facts, program = table(row.get("facts")), table(row.get("program"))
    calls = [one for one in listed(program.get("calls")) if isinstance(one, Mapping)]
    steps = [one for one in listed(facts.get("steps")) if isinstance(one, Mapping)]
    due = steps or calls
    solved = table(table(row.get("difficulty")) or table(facts.get("difficulty")))
    return Entry(
        id=str(row.get("id", number)),
        task=text_of(row.get("id")),
        group=_word(facts.get("family")),
        depth=whole(row.get("depth")),
        structure=_word(row.get("structure")),
        stage=_word(facts.get("kind")),
        total=number_of(solved.get("pass@1", solved.get("pass"))),
        calls=len(due),
        tools=tuple(sorted({name for one in due for name in _called(one)} - {""})),
        branch=_word(row.get("environment") if isinstance(row.get("environment"), str) else row.get("split")),
        query=text_of(row.get("query"))[:_SHOWN],
        words="\n".join(_task_texts(row, facts))[:_SEARCHED],
    )


def _called(step: Row) -> Iterator[str]:
    """The tools of a call, or of a step that is due."""
    if "tool" in step:
        yield text_of(step.get("tool"))
    for call in listed(step.get("calls")):
        yield text_of(table(call).get("name"))


def _texts(row: Row, scores: Mapping[str, Row]) -> Iterator[str]:
    yield text_of(row.get("query"))
    yield text_of(row.get("task"))
    turns = [one for one in listed(row.get("turns")) if isinstance(one, Mapping)]
    messages = [one for one in listed(row.get("messages")) if isinstance(one, Mapping)]
    if turns:
        for turn in turns:
            yield text_of(turn.get("completion"))
            yield text_of(turn.get("observation"))
    elif messages:
        for message in messages:
            if message.get("role") not in ("system", "developer"):
                yield text_of(message.get("content"))
                for call in listed(message.get("tool_calls")):
                    function = table(table(call).get("function"))
                    yield f"{function.get('name')} {function.get('arguments')}"
    else:
        yield text_of(row.get("completion"))
    yield text_of(row.get("failure"))
    for part in scores.values():
        for evidence in listed(part.get("evidence")):
            yield text_of(table(evidence).get("reason"))


def _task_texts(row: Row, facts: Row) -> Iterator[str]:
    yield text_of(row.get("id"))
    yield text_of(row.get("query"))
    for one in listed(facts.get("stages")):
        yield text_of(table(one).get("query"))
    for turn in listed(facts.get("gold")):
        yield text_of(table(turn).get("say"))
    yield json.dumps(row.get("program"), ensure_ascii=False)


def _group(row: Row) -> str | None:
    stated = row.get("group")
    if isinstance(stated, str | int):
        return str(stated)
    if "step" in row and "task" in row:  # a row of an earlier version, or of a step that was not written whole
        return f"{row['step']}-{row['task']}"
    return text_of(row.get("task")) or None


def _counted(row: Row) -> int | None:
    calls = row.get("calls")
    return sum(one for one in calls.values() if isinstance(one, int)) if isinstance(calls, Mapping) else None


# Values of rows that anybody may have written -------------------------------------------------------------------------


def table(value: Any) -> Mapping[str, Any]:
    """An object; an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def listed(value: Any) -> list[Any]:
    """A list; an empty one for anything else."""
    return value if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """A text, also of a number, or of the text parts of a message's content; else an empty one."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(text_of(table(one).get("text")) for one in value)
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def number_of(value: Any) -> float | None:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        made = float(value)
    except OverflowError:
        return None
    return made if made == made and abs(made) != float("inf") else None


def whole(value: Any) -> int | None:
    """A whole number that SQLite can hold."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None


def _word(value: Any) -> str | None:
    return value[:_SHOWN] if isinstance(value, str) else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None
