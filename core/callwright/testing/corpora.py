"""Conformance checks for corpora: the same tasks every time, found by their ids, with answers that can be reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from callwright.environments.hazards.policy import Hazards
from callwright.errors import CannotExpress, UnknownName
from callwright.language.messages import Message
from callwright.language.program import Program, plain
from callwright.testing.expectations import expect, expect_members, expect_name, never_raises, shown, snapshot
from callwright.testing.pickling import elsewhere
from callwright.testing.sample import SampleForm
from callwright.testing.services.registries import registry_in_use
from callwright.tools.validation import validate
from callwright.training.demonstrations import Demonstrates, References
from callwright.walk.answers import answers_match, first_difference
from callwright.walk.attempt import Attempt
from callwright.walk.execution import execute
from callwright.walk.tasks import DISTRACTORS, Answer, Corpus, Task
from callwright.walk.users.world import GOAL

#: Tasks that are looked at in each split, spread evenly.
_LIMIT: Final = 40
#: Tasks of each split that are sent to another process.
_SENT: Final = 4


def check_attributes(corpus: Corpus) -> None:
    """It has the members of :class:`callwright.Corpus`, a name and at least one split."""
    expect_members(corpus, Corpus)
    expect_name(corpus)
    expect(isinstance(corpus.splits, Mapping) and len(corpus.splits) > 0, "splits must be a mapping of names to sizes")


def check_splits(corpus: Corpus, limit: int = _LIMIT) -> None:
    """Every split has as many tasks as it says, and its tasks say that they belong to it."""
    for split, count in corpus.splits.items():
        tasks = corpus[split]
        expect(len(tasks) == count, f"splits says that {split!r} has {count} tasks, but there are {len(tasks)}")
        expect(count == 0 or len(tasks[:2]) == min(2, count), f"the tasks of {split!r} cannot be sliced")
    for split, task in _sample(corpus, limit):
        expect(isinstance(task, Task), f"{split!r} holds {type(task).__name__}, not a Task")
        expect(task.split == split, f"task {task.id!r} of split {split!r} says that it is of {task.split!r}")


def check_ids(corpus: Corpus, limit: int = _LIMIT) -> None:
    """Ids are texts of one task each, and ``task(id)`` finds it."""
    seen: dict[str, str] = {}
    for split, task in _sample(corpus, limit):
        expect(
            isinstance(task.id, str) and task.id != "", f"a task of {split!r} has the id {task.id!r}; it must be text"
        )
        expect(task.id not in seen, f"{split!r} and {seen.get(task.id)!r} both have a task with the id {task.id!r}")
        seen[task.id] = split
        with never_raises(f"task({task.id!r})"):
            found = corpus.task(task.id)
        expect(_same(found, task), f"task({task.id!r}) is another task than the one of split {split!r}: {shown(found)}")


def check_unknown_names(corpus: Corpus) -> None:
    """A split or task that does not exist is :class:`callwright.errors.UnknownName`."""
    for what, look in (("corpus['no such split']", corpus.__getitem__), ("task('no such task')", corpus.task)):
        try:
            look("no such " + what[-7:-2].strip())
        except UnknownName:
            continue
        except Exception as error:
            raise AssertionError(f"{what} raised {type(error).__name__}; it must raise UnknownName") from error
        raise AssertionError(f"{what} was found; it must raise UnknownName")


def check_tasks(corpus: Corpus, limit: int = _LIMIT) -> None:
    """A task has a query, tools of its environment under their names, and facts that fit its reference program.

    Tools that its fact ``distractors`` names may be of other environments; no reference calls them.
    """
    for _, task in _sample(corpus, limit):
        about = f"task {task.id!r}"
        expect(task.query.strip() != "", f"{about} has no query")
        distractors = _distractors(task)
        for name, spec in task.tools.items():
            expect(spec.name == name, f"{about} offers {spec.name!r} under the name {name!r}")
            expect(
                name in task.environment.tools or name in distractors,
                f"{about} offers {name!r}, which its environment {task.environment.name!r} does not have, and which "
                f"its fact {DISTRACTORS!r} does not name",
            )
        unknown = [name for name in task.shown or () if name not in task.tools]
        expect(not unknown, f"{about} shows {unknown[:1]}, which are not among its tools")
        unknown = [name for name in task.appear if name not in task.tools]
        expect(not unknown, f"{about} lets {unknown[:1]} appear, which are not among its tools")
        late = [name for name, turn in task.appear.items() if type(turn) is not int or turn < 0]
        expect(not late, f"{about} lets {late[:1]} appear at no turn of the user, which are numbered from 0")
        program = task.program
        if program is not None:
            expect(
                task.returns == program.returns,
                f"{about} returns {task.returns!r}, its reference program {program.returns!r}",
            )
            expect(program.dangling == (), f"the reference program of {about} refers to calls that it does not have")
            called = [call.tool for call in program.calls if call.tool in distractors]
            expect(not called, f"the reference program of {about} calls {called[:1]}, which it names as a distractor")


def _distractors(task: Task) -> tuple[str, ...]:
    """The tools of other environments that a task names as such: a call of one comes to nothing."""
    named = task.facts.get(DISTRACTORS, ())
    expect(
        isinstance(named, list | tuple) and all(isinstance(one, str) for one in named),
        f"the fact {DISTRACTORS!r} of task {task.id!r} is a list of names of tools, not {shown(named)}",
    )
    return tuple(named)


def check_reference_programs(corpus: Corpus, limit: int = _LIMIT) -> None:
    """A reference program fits the offered tools, executes, and reaches the expected answer."""
    for _, task in _sample(corpus, limit):
        program = task.program
        if program is None:
            continue
        about = f"the reference program of task {task.id!r}"
        found = validate(program, task.tools)
        wrong = (*found.names, *found.parameters, *found.types)
        expect(not wrong, f"{about} does not fit its tools: {wrong[0] if wrong else ''}")
        trace = execute(
            program,
            task.environment,
            task.tools,
            scenario=task.scenario,
            seed=task.seed,
            clock=task.clock,
            hazards=Hazards(),
            opening=task.opening,
        )
        if trace.masked is not None:  # a recording without these calls, a server that is not there
            continue
        failure = trace.failures[0] if trace.failures else None
        expect(failure is None, f"{about} does not execute: {shown(failure and failure.outcome)}")
        returned = list(trace.returned)
        difference = first_difference(list(task.answer.values), returned)
        expect(
            answers_match(task.answer, trace.returned),
            f"{about} returns {shown(returned)}, the expected answer is {shown(list(task.answer.values))}; they differ "
            f"first at {difference[0] if difference else '?'}",
        )


def check_full_reward(corpus: Corpus, limit: int = _LIMIT) -> None:
    """Written in the form ``json``, a reference program gets every point of ``tier``, where both are installed."""
    registry = registry_in_use()
    if "tier" not in registry.names("reward recipe") or "json" not in registry.names("parser"):
        return
    recipe, parser = registry.create("reward recipe", "tier"), registry.create("parser", "json")
    for _, task in _sample(corpus, limit):
        if task.program is None:
            continue
        try:
            text = parser.render(task.program)
        except CannotExpress:
            continue
        reward = recipe.score(task, text, ir=parser)
        expect(
            reward.total is None or abs(reward.total - 1.0) < 1e-9,
            f"the reference program of task {task.id!r} gets {reward.explain()}",
        )


def check_sound(corpus: Corpus, limit: int = _LIMIT) -> None:
    """Full marks of ``tier`` are not for doing nothing, unless that is the task, nor for all calls but the last one."""
    registry = registry_in_use()
    if "tier" not in registry.names("reward recipe") or "json" not in registry.names("parser"):
        return
    recipe, parser = registry.create("reward recipe", "tier"), registry.create("parser", "json")
    for _, task in _sample(corpus, limit):
        program = task.program
        if program is None or not program.calls or task.answer.is_no_call:
            continue
        if GOAL in task.facts or task.user is not None:  # a goal decides, or a conversation, and not one completion
            continue
        nothing, cut = Program((), "one", "Nothing."), Program(program.calls[:-1], program.returns, program.thought)
        spoiled = {"no call at all": nothing, "its reference without the last call": cut}
        for what, one in spoiled.items():
            try:
                text = parser.render(one)
            except CannotExpress:
                continue
            total = recipe.score(task, text, ir=parser).total
            expect(total is None or total < 1.0 - 1e-9, f"task {task.id!r} gives full marks to {what}")


def check_repeatable(corpus: Corpus, limit: int = _LIMIT, again: Corpus | None = None) -> None:
    """Asked again, the same splits hold the same tasks; so does a second instance (``again``), if one is given."""
    first = [(split, task) for split, task in _sample(corpus, limit)]
    for other, which in ((corpus, "a second time"), (again, "of a second instance")):
        if other is None:
            continue
        expect(dict(other.splits) == dict(corpus.splits), f"splits asked {which} are {dict(other.splits)}")
        for (split, before), (_, after) in zip(first, _sample(other, limit), strict=True):
            expect(
                _same(before, after),
                f"task {before.id!r} of {split!r} is another one {which}: {shown(before)} and {shown(after)}; is "
                "it drawn from a global random generator, or does the order in which tasks are asked for matter?",
            )


def check_demonstrations(corpus: Corpus, limit: int = _LIMIT) -> None:
    """What it shows beside programs, if it does, is a program, a text or messages of an assistant, always the same."""
    if isinstance(corpus, References):
        for _, task in _sample(corpus, limit):
            what = corpus.reference(task)
            expect(what is None or _shows(what), f"the reference of task {task.id!r} is {shown(what)}")
            expect(corpus.reference(task) == what, f"the reference of task {task.id!r} is another one a second time")
    if isinstance(corpus, Demonstrates):
        first, again = (list(corpus.demonstrations(3, 4)) for _ in range(2))
        expect(len(first) == 4, f"asked for 4 demonstrations it makes {len(first)}")
        for (task, what), (same, repeated) in zip(first, again, strict=True):
            expect(isinstance(task, Task) and _shows(what), f"the demonstration of {shown(task)} is {shown(what)}")
            expect(
                _same(task, same) and what == repeated,
                f"the demonstration of task {task.id!r} is another one for the same seed",
            )


def _shows(what: object) -> bool:
    """Whether a trainer can show it: see :data:`callwright.training.demonstrations.Shown`."""
    if isinstance(what, Program | str):
        return bool(what) or isinstance(what, Program)
    if not isinstance(what, Sequence) or not all(isinstance(message, Message) for message in what):
        return False
    return bool(what) and what[0].role == what[-1].role == "assistant"


def check_pickles_before_use(corpus: Corpus, limit: int = _LIMIT) -> None:
    """It and its tasks can be pickled as they were made, and are the same ones in another process."""
    copy = elsewhere(corpus, "the corpus")
    check_repeatable(corpus, limit, again=copy)
    for _, task in _sample(corpus, min(limit, _SENT)):
        _expect_same_task(task, elsewhere(task, f"task {task.id!r}"))


def check_pickles_after_use(corpus: Corpus, limit: int = _LIMIT) -> None:
    """It and its tasks can be pickled after tasks were scored, and so can their attempts with all that was executed."""
    form = SampleForm()
    for _, task in _sample(corpus, min(limit, _SENT)):
        try:
            attempt = Attempt(task, form.render(task.program or Program()), form)
        except CannotExpress:
            continue
        _ = attempt.validation, attempt.trace
        about = f"task {task.id!r}, after it was scored,"
        there = elsewhere(attempt, f"the attempt of {about}")
        expect(there.trace == attempt.trace, f"the attempt of task {task.id!r} is another one after it was pickled")
        copy = elsewhere(task, about)
        _expect_same_task(task, copy)
        again = Attempt(copy, attempt.completion, form)
        expect(
            again.validation == attempt.validation and again.trace == attempt.trace,
            f"the reference program of task {task.id!r} comes to something else in another process",
        )
    check_repeatable(corpus, limit, again=elsewhere(corpus, "the corpus, after it was used,"))


def _expect_same_task(task: Task, copy: Task) -> None:
    expect(_same(task, copy) and dict(copy.tools) == dict(task.tools), f"task {task.id!r} is another one elsewhere")
    expect(
        copy.environment.name == task.environment.name,
        f"the environment of task {task.id!r} is {copy.environment.name!r} elsewhere",
    )


CORPUS_CHECKS: Final = (
    check_attributes,
    check_splits,
    check_ids,
    check_unknown_names,
    check_tasks,
    check_reference_programs,
    check_full_reward,
    check_sound,
    check_repeatable,
    check_demonstrations,
    check_pickles_before_use,
    check_pickles_after_use,
)


def _sample(corpus: Corpus, limit: int) -> Iterator[tuple[str, Task]]:
    for split, count in corpus.splits.items():
        tasks = corpus[split]
        step = max(1, count // limit)
        for index in range(0, min(count, step * limit), step):
            yield split, tasks[index]


def _same(one: Task, other: Task) -> bool:
    return _contents(one) == _contents(other)


def _contents(task: Task) -> str:
    answer: Answer = task.answer
    program = [[call.id, call.tool, plain(call.arguments)] for call in task.program.calls] if task.program else None
    head = [task.id, task.query, task.scenario, task.split, task.depth, task.structure, task.returns]
    return snapshot([head, sorted(task.tools), list(answer.values), program])
