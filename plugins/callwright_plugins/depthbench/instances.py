"""Further worlds of a task, in which a program that has a result by heart is wrong: searched for, not drawn.

An instance is another user, another world (:class:`.world.World`), or both. For each task of several calls there are
programs that are right in its own world without asking for what they need: the last call alone with what the others
return written out, and the whole program with one call replaced by what it returns. An instance is kept if one of those
that are left is wrong in it, until none is left.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import evolve, frozen

from callwright.language.program import Call, Program, Reference
from callwright.walk.answers import answers_match
from callwright.walk.execution import execute
from callwright.walk.tasks import Answer, Instance, Task
from callwright.walk.trace import Trace
from callwright_plugins.depthbench.mended.regrouping import equally_right
from callwright_plugins.depthbench.world import CONTEXTS, V1, V1_1

#: Version -> the scenarios of its instances, by the id of their task.
FILES: Final[Mapping[str, str]] = {V1.name: "instances.json", V1_1.name: "instances-1.1.json"}
FILE: Final = FILES[V1.name]
#: Worlds that instances are taken from, and how many are tried for a task.
WORLDS_TRIED: Final = 16
TRIES: Final = 150
#: Then so many worlds that differ from the task's own by edits only.
EDITED: Final = 8
#: Worlds of fresh tasks, and how many of these a task can have.
FRESH_WORLDS: Final = range(1001, 1017)
MOST_FRESH: Final = 64
#: A task has no more instances than this.
MOST: Final = 4


@frozen
class Literal:
    """A program with results written out: which calls are left out of it, and itself."""

    left_out: tuple[int, ...]
    program: Program


def by_heart(task: Task) -> Iterator[Literal]:
    """The programs of a task with results written out; the last call alone comes first.

    Only where one result is wanted: a program that returns all of its results has to make all of its calls.
    """
    program = task.program
    if program is None or program.returns == "all" or len(program.calls) < 2:
        return
    trace = _run(task, program, task.scenario)
    values = {record.call: record.arguments for record in trace.records}
    last = program.calls[-1]
    yield Literal(tuple(call.id for call in program.calls[:-1]), Program((Call(last.id, last.tool, values[last.id]),)))
    if len(program.calls) == 2:
        return
    for gone in program.calls[:-1]:
        rest = [
            Call(call.id, call.tool, _written(call.arguments, values[call.id], gone.id))
            for call in program.calls
            if call.id != gone.id
        ]
        yield Literal((gone.id,), evolve(program, calls=tuple(rest)))


def _written(value: Any, given: Any, gone: int) -> Any:
    """An argument in which references to one call have become what they came to."""
    if isinstance(value, Reference):
        return given if value.call == gone else value
    if isinstance(value, Mapping):
        return {key: _written(inner, given[key], gone) for key, inner in value.items()}
    if isinstance(value, list):
        return [_written(inner, other, gone) for inner, other in zip(value, given, strict=True)]
    return value


def _run(task: Task, program: Program, scenario: str) -> Trace:
    return execute(program, task.environment, task.tools, scenario=scenario)


def is_right(task: Task, program: Program, scenario: str, answer: Answer) -> bool:
    """Whether a program reaches an answer in a world."""
    trace = _run(task, program, scenario)
    return trace.executed and answers_match(answer, trace.returned)


def answer_in(task: Task, scenario: str) -> Answer | None:
    """What the reference program gives in a world; ``None`` where it fails or a result says nothing."""
    assert task.program is not None
    trace = _run(task, task.program, scenario)
    if any(record.outcome.kind != "ok" or _says_nothing(record.outcome.value) for record in trace.records):
        return None
    values = tuple(json.loads(json.dumps(trace.returned, ensure_ascii=False)))
    return Answer(values, others=equally_right(task, scenario))


def _says_nothing(value: Any) -> bool:
    return value in (None, [], {}) or (
        isinstance(value, dict) and any(isinstance(inner, list) and not inner for inner in value.values())
    )


def candidates(task: Task, key: str = "") -> Iterator[str]:
    """Scenarios to try, of each kind in turn: another world, another user, both. The same ones for a task always.

    Which ones they are hangs on the ``key``, which is the id of the task if nothing else is said.
    """
    rng = random.Random(f"instances/{key or task.id}")
    own = task.scenario
    worlds = sorted(range(1, WORLDS_TRIED + 1), key=lambda _: rng.random())
    for number in range(TRIES):
        user = f"user-{int(rng.random() * CONTEXTS):04d}"
        chosen = worlds[number % len(worlds)]
        yield (f"{own}@{chosen}", f"{user}@{chosen}", user)[number % 3 if number >= 3 * len(worlds) else 1 - number % 2]


def search(task: Task) -> tuple[list[str], list[Literal]]:
    """Scenarios that prove programs by heart wrong, and those of these programs that none of them does.

    Edits of the task's own world (:mod:`.mended.boundaries`) come last: only they change what is geography.
    """
    left = [one for one in by_heart(task) if is_right(task, one.program, task.scenario, task.answer)]
    found: list[str] = []
    from callwright_plugins.depthbench.mended.boundaries import with_edits  # needs the tools: for building only

    rng = random.Random(f"edits/{task.id}")
    edited = (with_edits(task, task.scenario, rng) for _ in range(EDITED))
    for scenario in itertools.chain(candidates(task), edited):
        if not left or len(found) == MOST:
            break
        answer = answer_in(task, scenario) if scenario not in (*found, task.scenario) else None
        if answer is None:
            continue
        still = [one for one in left if is_right(task, one.program, scenario, answer)]
        if len(still) < len(left):
            found.append(scenario)
            left = still
    return found, left


#: Tools whose results are the same in every world and for every user: facts of geography.
CONSTANT: Final = frozenset({"coordinates_of", "elevation_of", "population_of", "timezone_of"})


def reason_of(task: Task) -> str:
    """Why a program by heart is right in all worlds that were tried without edits."""
    called = {call.tool for call in task.program.calls[:-1]} if task.program is not None else set()
    if called and called <= CONSTANT:
        return "what it asks for is geography, which only an edit makes different"
    return "no world that was tried gives another answer"


def instances_of(task: Task, scenarios: Sequence[str]) -> tuple[Instance, ...]:
    """The instances of a task: the answer in each is what its reference program gives there."""
    made = []
    for scenario in scenarios:
        answer = answer_in(task, scenario)
        assert answer is not None, f"the reference program of {task.id} fails in {scenario}"
        made.append(Instance(scenario, answer))
    return tuple(made)


def fresh_tasks(task: Task, count: int) -> list[Task]:
    """The task in ``count`` other worlds, at most: new tasks with an id and an answer of their own.

    The worlds are none of those that instances are taken from. Which they are hangs on the id of the task, never on the
    seed of a training. A task without calls, and one whose answer is the same wherever it was tried, gives none.
    """
    if task.program is None or not task.program.calls:
        return []
    rng = random.Random(f"fresh/{task.id}")
    made: list[Task] = []
    answers = [task.answer]
    for _ in range(8 * count):
        if len(made) == count:
            break
        chosen = FRESH_WORLDS[int(rng.random() * len(FRESH_WORLDS))]
        scenario = f"user-{int(rng.random() * CONTEXTS):04d}@{chosen}"
        answer = answer_in(task, scenario)
        if answer is None or any(answers_match(known, answer.values) for known in answers):
            continue
        answers.append(answer)
        made.append(evolve(task, id=f"{task.id}@{len(made) + 1}", scenario=scenario, answer=answer, instances=()))
    return made


def search_all(tasks: Sequence[Task], report: Callable[[str], object]) -> dict[str, list[str]]:
    """The instances of all tasks, by the id of the task."""
    found: dict[str, list[str]] = {}
    left = 0
    for task in tasks:
        scenarios, others = search(task)
        if scenarios:
            found[task.id] = scenarios
        left += bool(others)
    report(f"{len(found)} tasks with {sum(map(len, found.values()))} instances; {left} tasks keep a program by heart")
    return found


def kept(found: Mapping[str, Sequence[str]], path: Path, *, check: bool) -> bool:
    """Write scenarios (or compare them); whether the file is as it was."""
    text = json.dumps(found, indent=0, sort_keys=True) + "\n"
    same = path.exists() and path.read_text(encoding="utf-8") == text
    if not check:
        path.write_text(text, encoding="utf-8")
    return same
