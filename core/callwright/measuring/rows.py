"""Rows of ``verdicts.jsonl``: everything that is known of an attempt, so that tables can be made of the rows alone.

A row is also one that ``callwright score`` reads. Nothing in it hangs on the clock, so that an evaluation which was
stopped ends in the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import asdict, fields

from callwright.errors import DataError
from callwright.language.strict_json import kind as json_kind
from callwright.training.rollouts.written import calls_of, jsonable
from callwright.training.spending import used_by
from callwright.training.verdicts import Verdict, difference_of, groups_of
from callwright.walk.attempt import Attempt
from callwright.walk.undeclared import ToolCalls

if TYPE_CHECKING:
    from callwright.language.messages import Message
    from callwright.walk.reward import Reward
    from callwright.walk.tasks import Task

Row = dict[str, Any]


def kept_row(
    attempt: Attempt,
    verdict: Verdict,
    messages: Sequence[Message] = (),
    score: Callable[[Attempt], Reward] | None = None,
) -> Row:
    """The row of an attempt.

    ``messages`` are everything that was said; later samples of a task leave out the system message, which is the same.
    ``score`` gives the reward whose total is kept.
    """
    row: Row = {"id": verdict.task, **_stated(verdict), "query": attempt.task.query}
    row["completion"] = attempt.completion.text
    if len(attempt.completions) > 1 or attempt.said:
        row["completions"] = [completion.text for completion in attempt.completions]
    if attempt.said:
        row["said"] = [None if one is None else jsonable(one.to_json()) for one in attempt.said]
    if _has_user(attempt):
        row["user_turns"] = [len(turns) for turns in attempt.user_turns]
    if messages:
        row["messages"] = [jsonable(message.to_openai()) for message in _own(messages, verdict.sample)]
    calls = ToolCalls()
    calls.add(attempt)
    row |= calls.to_row()
    if trace := list(calls_of(attempt)):
        row["trace"] = trace
    if not verdict.answer and not verdict.masked and (difference := difference_of(attempt)) is not None:
        at, expected, found = difference
        row |= {"at": at, "expected": jsonable(expected), "found": jsonable(found)}
    if attempt.stop is not None:
        row["stop"] = attempt.stop
    if attempt.truncated:
        row["truncated"] = True
    if tokens := sum(len(completion.token_ids) for completion in attempt.completions):
        row["tokens"] = tokens
    if (usage := used_by(attempt)) is not None:
        row["usage"] = usage
    if score is not None:
        row["reward"] = None if verdict.masked else score(attempt).total
    return row


def lost_row(task: Task, verdict: Verdict) -> Row:
    """The row of an attempt that cost its workers."""
    return {"id": task.id, **_stated(verdict), "query": task.query, "completion": ""}


def _stated(verdict: Verdict) -> Row:
    """A verdict as keys of a row; why nothing is known stands on masked rows alone, what cut it off where it was."""
    row: Row = asdict(verdict)
    for name in ("lost", "cut", "cut_at"):
        if not row[name]:
            del row[name]
    return row


def _own(messages: Sequence[Message], sample: int) -> Sequence[Message]:
    """All messages of the first sample, of others those after the system message."""
    if sample == 0:
        return messages
    place = 0
    while place < len(messages) and messages[place].role in ("system", "developer"):
        place += 1
    return messages[place:]


def _has_user(attempt: Attempt) -> bool:
    return attempt.task.user is not None or bool(attempt.said)


# Reading --------------------------------------------------------------------------------------------------------------

#: The types of a row's values, as they are checked before anything is counted.
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "task": (str,),
    "depth": (int,),
    "structure": (str,),
    "answer": (bool,),
    "valid": (bool,),
    "failure": (str,),
    "masked": (bool,),
    "thought_words": (int, type(None)),
    "error": (str,),
    "sample": (int,),
    "family": (str,),
    "groups": (dict,),
    "lost": (str,),
    "cut": (str,),
    "cut_at": (int, type(None)),
}
#: What JSON calls them.
_JSON: Final[Mapping[type, str]] = {
    str: "text", int: "a whole number", bool: "true or false", dict: "an object", type(None): "null",
}  # fmt: skip
#: What rows of earlier versions do not say.
_LATER: Final[Mapping[str, Any]] = {
    "thought_words": None,
    "error": "",
    "sample": 0,
    "family": "",
    "groups": {},
    "lost": "",
    "cut": "",
    "cut_at": None,
}


def verdict_of(row: Row, line: int, path: Path) -> Verdict:
    """The verdict of the n-th row of a file. Raises :class:`callwright.errors.DataError` for a foreign one."""
    known = {**_LATER, **_cut_of(row), **row}  # rows of earlier versions go on
    for name, types in _TYPES.items():
        if name not in known:
            raise DataError(f"{path}:{line}: the row has no {name!r}")
        if type(known[name]) not in types:
            expected = " or ".join(map(_JSON.__getitem__, types))
            raise DataError(f"{path}:{line}: {name!r} is {json_kind(known[name])}, expected {expected}")
    return Verdict(**{one.name: known[one.name] for one in fields(Verdict)})


def _cut_of(row: Row) -> Row:
    """What cut off the attempt of a row that does not say it yet: one of an earlier version, or of somebody else."""
    if row.get("truncated") is not True or row.get("masked") is True:
        return {}
    several, tokens = row.get("completions"), row.get("tokens")
    if not (row.get("completion") or several or tokens):
        return {"cut": "prompt"}
    at = tokens if type(tokens) is int and not several else None
    return {"cut": "context" if row.get("stop") == "context" else "tokens", "cut_at": at}


def rewards_of(rows: Iterable[Row]) -> dict[tuple[str, int], float]:
    """The totals that rows hold, by task and sample."""
    return {
        (row["task"], row.get("sample", 0)): float(row["reward"])
        for row in rows
        if type(row.get("reward")) in (int, float)
    }


def with_groups(verdict: Verdict, task: Task) -> Verdict:
    """A verdict of an earlier version with the family and the groups that its row does not say."""
    from attrs import evolve

    if verdict.groups:
        return verdict
    family = task.facts.get("family")
    return evolve(verdict, groups=groups_of(task), family=family if isinstance(family, str) else "")
