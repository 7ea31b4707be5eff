"""Measuring: what a file of tasks covers, how its tasks differ, and which are alike, from its rows alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from random import Random
from typing import Any, Final

from attrs import define, field, frozen

from callwright.language.program import Call, revive
from callwright.measuring.difficulty import solved_share
from callwright_plugins.synthesis.duplicates.elements import elements, shingles
from callwright_plugins.synthesis.duplicates.jaccard import jaccard

#: Tasks that are shown at random, pairs that are shown, and how alike these are at least.
EXAMPLES: Final = 10
PAIRS: Final = 10
ALIKE: Final = Fraction(1, 2)
#: Sets in which an element occurs at most so often lead to pairs.
_RARE: Final = 40
_UNSTATED: Final = "not stated"


@frozen
class Asked:
    """A request of a user, the calls that it takes, and by their places the codes with which some fail on purpose."""

    query: str
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    codes: Mapping[int, str] = {}


@frozen
class Shown:
    """A task as the page shows it. ``turns`` are its requests with their calls; only the first has all of them where
    the row does not say which of them takes which.
    """

    id: str
    environment: str
    query: str
    calls: tuple[tuple[str, Mapping[str, Any]], ...]
    answer: Any
    turns: tuple[Asked, ...] = ()


@frozen
class Pair:
    """Two tasks that are alike, by their calls or by their words."""

    one: Shown
    other: Shown
    alike: float
    by: str


@define
class Measured:
    """Figures of a file of tasks. ``tools`` and ``pairs`` count tasks by environment, ``lengths`` by calls
    and level.
    """

    tasks: int = 0
    environments: Counter[str] = field(factory=Counter)
    kinds: Counter[str] = field(factory=Counter)
    tools: dict[str, Counter[str]] = field(factory=dict)
    calls: Counter[str] = field(factory=Counter)
    pairs: dict[str, Counter[tuple[str, str]]] = field(factory=dict)
    codes: Counter[tuple[str, str, str]] = field(factory=Counter)
    #: By environment: the tools that fail on purpose, with their codes.
    met: dict[str, set[tuple[str, str]]] = field(factory=dict)
    lengths: Counter[tuple[int, str]] = field(factory=Counter)
    #: By tool and parameter: how often it was given, and the different values.
    values: dict[tuple[str, str], Counter[str]] = field(factory=dict)
    words: Counter[int] = field(factory=Counter)
    queries: Counter[str] = field(factory=Counter)
    sequences: Counter[tuple[str, ...]] = field(factory=Counter)
    #: By task: the share of attempts that earned full reward, where somebody measured it.
    passed: dict[str, float] = field(factory=dict)
    near: list[Pair] = field(factory=list)
    examples: list[Shown] = field(factory=list)


def measure(rows: Iterable[Mapping[str, Any]], *, seed: int = 0) -> Measured:
    """The figures of the rows of tasks, in their order. Rows that say nothing of something count as not stating it."""
    found = Measured()
    shown: list[Shown] = []
    for row in rows:
        one = _shown(row)
        shown.append(one)  # without its facts, which are most of a row: all of them are held until the pairs are found
        facts = row.get("facts")
        _count(found, one, facts if isinstance(facts, Mapping) else {})
    found.near = _near(shown)
    drawn = sorted(Random(seed).sample(range(len(shown)), min(EXAMPLES, len(shown))))
    found.examples = [shown[place] for place in drawn]
    return found


def _shown(row: Mapping[str, Any]) -> Shown:
    stated = row.get("environment")
    name = stated.get("name") if isinstance(stated, Mapping) else stated
    program = row.get("program")
    calls = _calls(program.get("calls") if isinstance(program, Mapping) else None)
    query = str(row.get("query"))
    turns = tuple(_turns(row)) or (Asked(query, calls),)
    return Shown(str(row.get("id")), str(name), query, calls, row.get("answer"), turns)


def _calls(stated: Any) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    return tuple(
        (str(call.get("tool")), dict(call.get("arguments") or {}))
        for call in (stated if isinstance(stated, list) else ())
        if isinstance(call, Mapping)
    )


def _turns(row: Mapping[str, Any]) -> Iterable[Asked]:
    """The requests with their calls, where the plan of a task tells both; nothing for any other row."""
    facts = row.get("facts")
    stages = facts.get("stages") if isinstance(facts, Mapping) else None
    blueprint = facts.get("blueprint") if isinstance(facts, Mapping) else None
    planned = blueprint.get("stages") if isinstance(blueprint, Mapping) else None
    if not isinstance(stages, list) or not isinstance(planned, list) or len(stages) != len(planned):
        return
    for said, plan in zip(stages, planned, strict=True):
        if isinstance(said, Mapping) and isinstance(plan, Mapping):
            failing = [one for one in plan.get("failing") or () if isinstance(one, Mapping)]
            codes = {one["call"]: str(one.get("code")) for one in failing if isinstance(one.get("call"), int)}
            yield Asked(str(said.get("query")), _calls(plan.get("calls")), codes)


def _count(found: Measured, task: Shown, facts: Mapping[str, Any]) -> None:
    found.tasks += 1
    found.environments[task.environment] += 1
    found.kinds[str(facts.get("kind") or _UNSTATED)] += 1
    level = str(facts.get("information") or _UNSTATED)
    names = tuple(tool for tool, _ in task.calls)
    found.lengths[len(names), level] += 1
    found.sequences[names] += 1
    found.queries[" ".join(task.query.split()).casefold()] += 1
    found.words[len(task.query.split())] += 1
    used = found.tools.setdefault(task.environment, Counter())
    used.update(dict.fromkeys(names, 1))
    found.calls.update(names)
    pairs = found.pairs.setdefault(task.environment, Counter())
    pairs.update(dict.fromkeys(_linked(task, facts), 1))
    for tool, arguments in task.calls:
        for key, value in arguments.items():
            text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
            found.values.setdefault((tool, key), Counter())[text] += 1
    failures = list(_failures(facts))
    found.codes.update(failures)
    found.met.setdefault(task.environment, set()).update((tool, code) for tool, code, _ in failures)
    rate = solved_share(facts)
    if rate is not None:
        found.passed[task.id] = rate


def _linked(task: Shown, facts: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Pairs of tools of which a task uses the one for the other: what was planned, and what refers to a result."""
    chain = facts.get("chain_tools")
    if isinstance(chain, list) and len(chain) > 1:
        yield from zip(map(str, chain), map(str, chain[1:]), strict=False)
    for number, (tool, arguments) in enumerate(task.calls):
        for _, reference in Call(number, tool, revive(dict(arguments))).located:
            if reference.call < len(task.calls):
                yield task.calls[reference.call][0], tool


def _failures(facts: Mapping[str, Any]) -> Iterable[tuple[str, str, str]]:
    """The failures that a task meets on purpose: tool, code, and what makes up for them."""
    blueprint = facts.get("blueprint")
    stages = blueprint.get("stages") if isinstance(blueprint, Mapping) else None
    for stage in stages if isinstance(stages, list) else ():
        calls = stage.get("calls") or ()
        for one in stage.get("failing") or ():
            if one.get("call") in range(len(calls)):
                yield str(calls[one["call"]].get("tool")), str(one.get("code")), str(one.get("recovery"))


def _near(shown: Sequence[Shown]) -> list[Pair]:
    """The pairs that are most alike: by calls, then by words. Candidates share something rare."""
    by_calls = [
        elements([Call(at, tool, revive(dict(arguments))) for at, (tool, arguments) in enumerate(task.calls)])
        for task in shown
    ]
    found = [
        *((*one, "calls") for one in _alike(by_calls)),
        *((*one, "words") for one in _alike([shingles(task.query) for task in shown])),
    ]
    found.sort(key=lambda one: (-one[2], one[0], one[1]))
    best: dict[tuple[int, int], tuple[int, int, Fraction, str]] = {}
    for one in found:
        best.setdefault(one[:2], one)
    return [Pair(shown[a], shown[b], float(share), by) for a, b, share, by in list(best.values())[:PAIRS]]


def _alike(sets: Sequence[frozenset[str]]) -> list[tuple[int, int, Fraction]]:
    where: dict[str, list[int]] = {}
    for number, one in enumerate(sets):
        for element in one:
            where.setdefault(element, []).append(number)
    candidates = {
        (a, b)
        for places in where.values()
        if 1 < len(places) <= _RARE
        for at, a in enumerate(places)
        for b in places[at + 1 :]
    }
    sizes, least, of = [len(one) for one in sets], ALIKE.numerator, ALIKE.denominator
    pairs = []
    for a, b in candidates:  # hardly any is alike: no fraction is made of the others
        common = len(sets[a] & sets[b])
        if of * common >= least * (sizes[a] + sizes[b] - common):
            pairs.append((a, b, jaccard(sets[a], sets[b])))
    return sorted(pairs, key=lambda one: (-one[2], one[0], one[1]))[: 4 * PAIRS]
