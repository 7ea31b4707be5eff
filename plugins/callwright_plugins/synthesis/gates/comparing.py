"""What only shows when tasks are compared: near-duplicates, quotas, and what splits share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from attrs import field, frozen

from callwright.errors import UsageError
from callwright.language.program import Call
from callwright.training.synthesis.units import Made, Rejected
from callwright.walk.tasks import Task
from callwright_plugins.synthesis.duplicates.elements import elements, shingles
from callwright_plugins.synthesis.duplicates.jaccard import THRESHOLD, jaccard, near_duplicates
from callwright_plugins.synthesis.gates.hearing import requests

#: The similarity from which the texts of two tasks are near-duplicates, over runs of three words. Queries of one
#: grammar share their frames, so it is above that of the calls.
TEXTS: Final = 0.85
#: Elements that two near-duplicates have apart, of which the evidence names so many.
MOST_APART: Final = 6


@frozen
class Compared:
    """What of a task is compared: where it is, its calls with literal arguments as executed, and what its user says."""

    id: str
    environment: str
    world: str
    calls: tuple[Call, ...] = field(repr=False)
    text: str = field(repr=False)
    split: str = "train"

    @property
    def chain(self) -> tuple[str, ...]:
        """The tools, in order."""
        return tuple(call.tool for call in self.calls)

    @cached_property
    def elements(self) -> frozenset[str]:
        """The elements of its calls, each with the environment."""
        return frozenset(f"{self.environment}\n{one}" for one in elements(self.calls))

    @cached_property
    def shingles(self) -> frozenset[str]:
        """The runs of words of what its user says."""
        return shingles(self.text)

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Compared:
        """That of the row of a task (docs/task-files.md)."""
        environment = str(row.get("environment"))
        facts = row.get("facts") or {}
        user = row.get("user") or {}
        text = "\n".join(map(str, [row.get("query", ""), *requests(user.get("options") or {})]))
        return cls(
            str(row.get("id", "")),
            environment,
            f"{environment} {row.get('scenario', '')} {row.get('seed', 0)}",
            tuple(_calls(facts, row.get("program"))),
            text,
            str(row.get("split", "train")),
        )

    @classmethod
    def of_task(cls, task: Task) -> Compared:
        """That of a task."""
        program = None
        if task.program is not None:
            program = {"calls": [{"tool": one.tool, "arguments": one.arguments} for one in task.program.calls]}
        then = requests(task.user.options) if task.user is not None else []
        name = task.environment.name
        return cls(
            task.id,
            name,
            f"{name} {task.scenario} {task.seed}",
            tuple(_calls(task.facts, program)),
            "\n".join(map(str, [task.query, *then])),
            task.split,
        )


def _calls(facts: Mapping[str, Any], program: Any) -> Iterator[Call]:
    """The calls of ``steps``, where they are literal; else of ``gold``, else of the program."""
    stated: list[Any] = []
    if facts.get("steps"):
        stated = [call for step in facts["steps"] for call in step.get("calls", ())]
    elif facts.get("gold"):
        stated = [call for turn in facts["gold"] for call in turn.get("calls", ())]
    elif isinstance(program, Mapping):
        stated = list(program.get("calls", ()))
    for place, one in enumerate(stated):
        yield Call(place, str(one.get("tool", one.get("name", ""))), dict(one.get("arguments") or {}))


def compare(
    made: Sequence[Made],
    *,
    calls: float = THRESHOLD,
    texts: float | None = TEXTS,
    most_of_a_chain: int | None = None,
    most_of_a_tool: float | None = None,
) -> list[Rejected | None]:
    """Which of the accepted units go: the later ones of near-duplicates, and those above a quota. ``None`` stays.

    The arguments are those of :func:`compared`.
    """
    return compared(
        [Compared.of_row(one.accepted.row) for one in made],
        calls=calls,
        texts=texts,
        most_of_a_chain=most_of_a_chain,
        most_of_a_tool=most_of_a_tool,
    )


def compared(
    tasks: Sequence[Compared],
    *,
    calls: float = THRESHOLD,
    texts: float | None = TEXTS,
    most_of_a_chain: int | None = None,
    most_of_a_tool: float | None = None,
) -> list[Rejected | None]:
    """As :func:`compare`, for what is compared of tasks.

    ``calls`` is the Jaccard similarity of call sequences from which they are near-duplicates (Prove, section 3.2: 0.70;
    elements are tools, argument keys and values), ``texts`` that of what users say, among those that stay (``None``:
    not compared). Tasks without calls are compared by their texts alone. ``most_of_a_chain`` is how many tasks may call
    the same tools in the same order, ``most_of_a_tool`` the share in (0, 1] of all calls that one tool may make: the
    last tasks that call it go. Raises :class:`callwright.UsageError` for values that cannot be.
    """
    verdicts: list[Rejected | None] = [None] * len(tasks)
    calling = [place for place, one in enumerate(tasks) if one.calls]
    sets = [tasks[place].elements for place in calling]
    for one, other in near_duplicates(sets, calls).items():
        told = _alike(tasks[calling[other]].id, calls, sets[one], sets[other])
        verdicts[calling[one]] = Rejected("duplicates", "nearly the same calls", told)
    if texts is not None:
        staying = [place for place, verdict in enumerate(verdicts) if verdict is None]
        words = [tasks[place].shingles for place in staying]
        for one, other in near_duplicates(words, texts).items():
            told = _alike(tasks[staying[other]].id, texts, words[one], words[other])
            verdicts[staying[one]] = Rejected("duplicates", "nearly the same words", told)
    _chains(tasks, verdicts, most_of_a_chain)
    _tools(tasks, verdicts, most_of_a_tool)
    return verdicts


def _alike(task: str, threshold: float, one: frozenset[str], other: frozenset[str]) -> dict[str, Any]:
    """What is known of a near-duplicate: the task that stays, how similar they are, and what they have apart."""
    apart = [re.sub(r"\s+", " ", element) for element in sorted(one ^ other)]
    share = round(float(jaccard(one, other)), 3)
    return {"task": task, "threshold": threshold, "similarity": share, "apart": apart[:MOST_APART]}


def _chains(tasks: Sequence[Compared], verdicts: list[Rejected | None], most: int | None) -> None:
    if most is None:
        return
    if type(most) is not int or most < 1:
        raise UsageError(f"the most tasks of one chain are 1 or more, not {most!r:.40}")
    counts: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for place, one in enumerate(tasks):
        if verdicts[place] is None and one.calls:
            counts[one.environment, one.chain] += 1
            if counts[one.environment, one.chain] > most:
                evidence = {"chain": list(one.chain), "most": most}
                verdicts[place] = Rejected("quotas", "enough tasks of this chain", evidence)


def _tools(tasks: Sequence[Compared], verdicts: list[Rejected | None], most: float | None) -> None:
    if most is None:
        return
    if isinstance(most, bool) or not 0 < most <= 1:
        raise UsageError(f"the share of one tool is above 0 and at most 1, not {most!r:.40}")
    counts: Counter[tuple[str, str]] = Counter()
    totals: Counter[str] = Counter()
    for place, one in enumerate(tasks):
        if verdicts[place] is None:
            counts.update((one.environment, call.tool) for call in one.calls)
            totals[one.environment] += len(one.calls)
    for place in reversed(range(len(tasks))):
        one = tasks[place]
        if verdicts[place] is not None or not one.calls:
            continue
        here = one.environment
        over = [tool for tool in dict.fromkeys(one.chain) if counts[here, tool] > most * totals[here]]
        # What has other calls too is not the one to go, unless most of them are of the tool.
        if over and 2 * one.chain.count(over[0]) >= len(one.chain):
            verdicts[place] = Rejected("quotas", "enough calls of this tool", {"tool": over[0], "most": most})
            counts.subtract((here, call.tool) for call in one.calls)
            totals[here] -= len(one.calls)


# Splits ---------------------------------------------------------------------------------------------------------------

#: What a split may be held out by.
HELD_OUT: Final = ("environment", "chain", "world")


def held_out(tasks: Sequence[Compared], by: str, share: float, seed: int = 0) -> list[bool]:
    """Which tasks are held out, so that no ``environment``, ``chain`` (of tools) or ``world`` (environment, scenario
    and seed) is on both sides. Whole ones are taken, in an order that only their names and the seed fix, until the
    share in (0, 1) of the tasks is reached.

    Raises :class:`callwright.UsageError` for anything else to hold out by.
    """
    from hashlib import sha256

    if by not in HELD_OUT or not 0 < share < 1:
        raise UsageError(
            f"tasks are held out by {', '.join(HELD_OUT)}, a share between 0 and 1, not {by!r:.40}, {share}"
        )
    keys = [_key(one, by) for one in tasks]
    counts = Counter(keys)
    chosen: set[str] = set()
    taken = 0
    for key in sorted(counts, key=lambda one: sha256(f"{seed}\n{one}".encode()).digest()):
        if taken + counts[key] <= share * len(tasks) or not chosen:
            chosen.add(key)
            taken += counts[key]
    return [key in chosen for key in keys] if len(chosen) < len(counts) else [False] * len(keys)


def leaks(tasks: Iterable[Compared], by: str = "chain", learnt: str = "train") -> list[Rejected | None]:
    """Tasks outside of the split ``learnt`` that share what they should not with a task in it: their ``environment``,
    ``chain`` or ``world``, or all their calls.
    """
    every = list(tasks)
    known = {_key(one, by) for one in every if one.split == learnt}
    same = {_calls_key(one): one.id for one in every if one.split == learnt and one.calls}
    verdicts: list[Rejected | None] = []
    for one in every:
        verdict = None
        if one.split != learnt and one.calls:
            if _calls_key(one) in same:
                verdict = Rejected(
                    "splits", "its calls are learnt", {"task": same[_calls_key(one)], "split": one.split}
                )
            elif _key(one, by) in known:
                verdict = Rejected("splits", f"its {by} is learnt", {by: _key(one, by), "split": one.split})
        verdicts.append(verdict)
    return verdicts


def _key(one: Compared, by: str) -> str:
    if by == "chain":
        return " ".join((one.environment, *one.chain))
    return one.world if by == "world" else one.environment


def _calls_key(one: Compared) -> str:
    return "\n".join([one.world, *sorted(elements(one.calls))])
