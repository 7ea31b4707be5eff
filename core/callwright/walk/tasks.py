"""Tasks and corpora."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Protocol, runtime_checkable

from attrs import field, frozen

from callwright.environments.hazards.policy import Hazards
from callwright.environments.living.policy import ClockPolicy
from callwright.environments.protocol import Environment
from callwright.errors import CallwrightError, ComponentError, UsageError
from callwright.language.program import Program
from callwright.language.shortening import shortened
from callwright.tools.costing import telling_costs
from callwright.tools.spec import ToolSpec
from callwright.walk.openings.opening import Opening
from callwright.walk.users.said import UserSpec

#: The fact of a task that names the tools that it offers from other environments: a call of one comes to nothing.
DISTRACTORS: Final = "distractors"


def _values(given: Any) -> tuple[Any, ...]:
    """The values of an answer, of a tuple or a list."""
    if type(given) is tuple:
        return given
    if isinstance(given, list | tuple):
        return tuple(given)
    raise UsageError(
        "the values of an answer are a tuple, of one value as well: "
        f"callwright.Answer(({shortened(repr(given), 40)},)), not callwright.Answer({shortened(repr(given), 40)})"
    )


def _others(given: Any) -> tuple[tuple[Any, ...], ...]:
    return tuple(map(_values, _values(given)))


def _names(given: Any) -> tuple[str, ...]:
    """Names of members. A text alone would be taken for those of its letters."""
    names = (given,) if isinstance(given, str) else _values(given)
    if not all(isinstance(name, str) for name in names):
        raise UsageError(f"'open' of an answer names members of its values, as texts, not {shortened(repr(given), 80)}")
    return names


@frozen
class Answer:
    """The expected final result: a multiset of values.

    ``values`` is empty where the right answer is to call nothing; it has one value for ``returns="one"`` and one per
    call for ``returns="all"``. ``others`` are multisets that are equally right, such as two tables for one.

    ``open`` names members of these values whose objects may hold more than the expected ones do, and whose further
    members do not count: with ``("arguments",)`` the value ``{"arguments": {"city": "Oslo"}}`` is what
    ``{"arguments": {"city": "Oslo", "days": 3}}`` is held against (the relaxed match of TIER, appendix E.2).

    Lists become tuples. Raises :class:`callwright.UsageError` for values that are in neither.
    """

    values: tuple[Any, ...] = field(default=(), converter=_values)
    others: tuple[tuple[Any, ...], ...] = field(default=(), converter=_others)
    open: tuple[str, ...] = field(default=(), converter=_names)

    @property
    def is_no_call(self) -> bool:
        """Whether abstaining is right."""
        return not self.values


@frozen
class Instance:
    """Another world of a task: what a session is opened with, and the answer that the reference program gives there."""

    scenario: str
    answer: Answer = field(repr=False)
    seed: int = 0


@frozen
class Task:
    """A query with the tools that are offered for it and what the right answer is.

    ``tools`` maps names to the offered specs. ``scenario`` and ``seed`` are what the environment opens a session with:
    they fix the task's world, whatever seed a recipe draws its samples with. ``program`` is a reference solution, which
    no TIER reward reads. ``facts`` holds whatever else a corpus knows. ``clock`` is how time moves in the session;
    without it as the scenario says, which is: not at all, unless it says otherwise. ``hazards`` are the faults and
    limits that its calls meet; without them those of the scenario, which are none, unless it says otherwise. ``user``
    is who talks with the agent in an episode of several turns; without one it gets the query, and nobody answers it.
    ``shown`` are the tools that prompts list, where these are fewer than those that calls are checked against. With
    ``tells_costs`` they say what calls cost, how long they take, and that nothing undoes them. ``instances``
    are further worlds in which a program has to be right, too.

    ``opening`` is what happened before the episode begins. ``appear`` names tools that are there only from a turn of
    the user on, numbered from 0 (the query): until then they are not offered, and a call of one is an unknown tool.

    Raises :class:`callwright.UsageError` for tools, an answer or a program of another kind: where they are used, a
    reward would be blamed for them.
    """

    id: str
    query: str
    tools: Mapping[str, ToolSpec] = field(repr=False)
    answer: Answer = field(repr=False)
    environment: Environment = field(repr=False, eq=False)
    scenario: str = ""
    seed: int = 0
    split: str = "train"
    depth: int = 0
    chain: int = 0
    structure: str = "none"
    returns: Literal["one", "all"] = "one"
    program: Program | None = field(default=None, repr=False)
    facts: Mapping[str, Any] = field(factory=dict, repr=False)
    clock: ClockPolicy | None = None
    hazards: Hazards | None = None
    user: UserSpec | None = None
    shown: tuple[str, ...] | None = None
    tells_costs: bool = False
    instances: tuple[Instance, ...] = field(default=(), repr=False)
    opening: Opening | None = field(default=None, repr=False)
    appear: Mapping[str, int] = field(factory=dict, repr=False)

    def __attrs_post_init__(self) -> None:
        answer: object = self.answer
        program: object = self.program
        if not isinstance(answer, Answer):
            values = shortened(repr(answer if isinstance(answer, tuple) else (answer,)), 80)
            raise UsageError(f"the answer of task {self.id!r} is a callwright.Answer: callwright.Answer({values})")
        if program is not None and not isinstance(program, Program):
            raise UsageError(
                f"the program of task {self.id!r} is a callwright.Program, not {shortened(repr(program), 80)}"
            )
        if type(self.tools) is not dict and not isinstance(self.tools, Mapping):
            raise UsageError(
                f"the tools of task {self.id!r} are a mapping of names to specifications, such as environment.tools, "
                f"not {shortened(repr(self.tools), 80)}"
            )

    @property
    def offered(self) -> dict[str, ToolSpec]:
        """The tools that a model is shown, by name, in the order in which they are listed: never a hidden one.

        Those of the query: see :meth:`offered_at`.
        """
        return self.offered_at(0)

    def offered_at(self, turn: int) -> dict[str, ToolSpec]:
        """The tools that a model is shown while it works on a turn of the user, numbered from 0 (the query)."""
        shown = self.tools if self.shown is None else self.shown
        offered = {
            name: self.tools[name]
            for name in shown
            if not self.tools[name].hidden and (not self.appear or self.appear.get(name, 0) <= turn)
        }
        return {name: telling_costs(spec) for name, spec in offered.items()} if self.tells_costs else offered

    def tools_at(self, turn: int) -> Mapping[str, ToolSpec]:
        """The tools that calls are checked against in a turn of the user: all that are there by then."""
        if not self.appear:
            return self.tools
        return {name: spec for name, spec in self.tools.items() if self.appear.get(name, 0) <= turn}

    def appearing(self, turn: int) -> dict[str, ToolSpec]:
        """The tools that a model is shown for the first time in a turn of the user."""
        if not any(at == turn for at in self.appear.values()):
            return {}
        return {name: spec for name, spec in self.offered_at(turn).items() if self.appear.get(name, 0) == turn}


@runtime_checkable
class KnowsDepths(Protocol):
    """What a split adds that makes its tasks on demand: their depths, without making them."""

    @property
    def depths(self) -> Sequence[int]:
        """The depth of each task, in their order."""


def depths_of(tasks: Sequence[Task]) -> Sequence[int]:
    """The depth of each task. None is made for it where the split knows them (:class:`KnowsDepths`)."""
    return tasks.depths if isinstance(tasks, KnowsDepths) else [task.depth for task in tasks]


@runtime_checkable
class Corpus(Protocol):
    """Tasks with splits over one environment. ``corpus["validation"][42]`` is a task; so is ``corpus.task(id)``."""

    @property
    def name(self) -> str:
        """The registered, versioned name."""

    @property
    def environment(self) -> Environment:
        """Where the tasks' programs are executed."""

    @property
    def splits(self) -> Mapping[str, int]:
        """Name and number of tasks of each split."""

    def __getitem__(self, split: str) -> Sequence[Task]:
        """The tasks of a split, in a fixed order."""

    def task(self, task_id: str) -> Task:
        """The task with this id; raises :class:`callwright.errors.UnknownName`."""


def task_of(corpus: Corpus, task_id: str) -> Task:
    """The task of a corpus with this id.

    Raises what the corpus raises of what it does not know, and :class:`callwright.errors.ComponentError` for a corpus
    that finds another task, or ends in an error of its own.
    """
    try:
        task = corpus.task(task_id)
    except CallwrightError:
        raise
    except Exception as error:
        raise ComponentError(
            f"task({task_id!r:.60}) of the corpus {corpus.name!r} raised {type(error).__name__}: {error}. Of an id "
            "that is not there it must raise callwright.errors.UnknownName"
        ) from error
    if not isinstance(task, Task) or task.id != task_id:
        what = f"the task {task.id!r:.60}" if isinstance(task, Task) else f"{task!r:.60}"
        raise ComponentError(
            f"task({task_id!r:.60}) of the corpus {corpus.name!r} is {what}, and not the one of that id"
        )
    return task


def first_tasks(tasks: Sequence[Task], limit: int | None) -> Sequence[Task]:
    """The first ``limit`` tasks; all of them for ``None``.

    Raises :class:`callwright.UsageError` for a limit that is no whole number from 1 on: a slice takes -1, and leaves
    the last task out.
    """
    if limit is None:
        return tasks
    if type(limit) is not int or limit < 1:
        raise UsageError(f"limit is {limit!r:.40}; it says how many tasks, a whole number from 1 on, or None for all")
    return tasks[:limit]


def check_task_id(task_id: object) -> None:
    """Raise :class:`callwright.UsageError` for what cannot be the id of a task: a number of a column, say."""
    if not isinstance(task_id, str):
        raise UsageError(f"the id of a task is a text, not {task_id!r:.60}")


def usual_split(corpus: Corpus) -> str:
    """The split that is evaluated on where nobody names one: the first of these that there is, else the only one.

    ``validation``, ``evaluation``, ``test``; ``validation`` where there are several others.
    """
    for name in ("validation", "evaluation", "test"):
        if name in corpus.splits:
            return name
    return next(iter(corpus.splits)) if len(corpus.splits) == 1 else "validation"
