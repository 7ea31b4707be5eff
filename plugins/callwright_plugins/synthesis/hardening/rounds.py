"""Rounds: what a solver finds too easy is changed, passes the gates again, and is measured again by the same solver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, Final

from attrs import define, evolve, field, frozen

from callwright.environments.protocol import Environment
from callwright.errors import UsageError
from callwright.measuring.difficulty import Difficulty
from callwright.plugins import Registry
from callwright.training.synthesis.synthesizer import Materials
from callwright.training.synthesis.units import Rejected
from callwright.walk.tasks import Task
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint
from callwright_plugins.synthesis.blueprints.knowledge import Knowledge
from callwright_plugins.synthesis.dialogue.conversation import converse
from callwright_plugins.synthesis.gates.comparing import Compared, compared
from callwright_plugins.synthesis.gates.gate import BLUEPRINT, gate
from callwright_plugins.synthesis.hardening.changes import CHANGES, Changing

#: The facts of a hardened task: the changes in their order (``step+withheld``), and the id of the task that it was.
HARDENED: Final = "hardened"
HARDENED_OF: Final = "hardened_of"
#: The stage under which a hardened task is rejected that is not harder.
STAGE: Final = "difficulty"

#: Changes of which more is not harder.
_ONCE: Final = frozenset({"distractors"})

#: Has the solver attempt tasks: the number of the round, and the tasks. Those that it tells nothing of were masked.
Measure = Callable[[int, Sequence[Task]], Mapping[str, Difficulty]]


@frozen
class Refused:
    """A change that came to nothing: of which task, which one, and why."""

    task: str
    change: str
    rejected: Rejected


@frozen
class Hardened:
    """What hardening came to: the hardened tasks by the ids of those whose places they take, how difficult everything
    is by id, and every change that came to nothing.
    """

    tasks: Mapping[str, Task]
    measured: Mapping[str, Difficulty]
    refused: Sequence[Refused]


@define(eq=False)
class Hardening:
    """Hardens tasks that hold their blueprints, as those of the synthesizer ``grounded`` do.

    A task whose pass@1 is ``too_easy`` or more gets one change a round (:data:`.changes.CHANGES`), of which ``seed``
    draws the order; words are the grammar's. The first change that is worded, executed and let pass by every gate is
    measured; unless the solver is right less often or as often as before, it is dropped and the task stays what it was.
    """

    registry: Registry
    knowledge: Callable[[Environment], Knowledge]
    too_easy: float = 0.9
    seed: int = 0
    #: The kinds of changes that are made.
    changes: Sequence[str] = CHANGES
    refused: list[Refused] = field(init=False, factory=list)
    _changing: dict[int, Changing] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        if isinstance(self.too_easy, bool) or not 0 < self.too_easy <= 1:
            raise UsageError(f"a share in (0, 1] is too easy, not {self.too_easy!r}")

    def run(self, tasks: Sequence[Task], measured: Mapping[str, Difficulty], rounds: int, measure: Measure) -> Hardened:
        """Harden the tasks in up to so many rounds. ``measured`` are their difficulties, by the same solver."""
        now = {task.id: task for task in tasks}
        known = dict(measured)
        vain: dict[str, set[str]] = {task.id: set() for task in tasks}
        for number in range(1, rounds + 1):
            made: dict[str, Task] = {}
            for origin, task in now.items():
                found = known.get(task.id)
                if found is not None and found.solved >= self.too_easy:
                    harder = self._harder(task, origin, number, vain[origin])
                    if harder is not None:
                        made[origin] = harder
            if not made:
                break
            again = measure(number, list(made.values()))
            for origin, task in made.items():
                before, after = known[now[origin].id], again.get(task.id)
                change = str(task.facts[HARDENED]).rpartition("+")[2]
                if after is None:
                    self._refuse(origin, change, Rejected(STAGE, "the machinery failed in every attempt"), vain)
                elif after.solved > before.solved:
                    evidence = {"before": before.solved, "after": after.solved, "attempts": after.attempts}
                    self._refuse(origin, change, Rejected(STAGE, "became easier", evidence), vain)
                else:
                    now[origin], known[task.id] = task, after
        changed = {origin: task for origin, task in now.items() if task.id != origin}
        self._compare(tasks, changed)
        return Hardened(changed, known, self.refused)

    def _refuse(self, origin: str, change: str, rejected: Rejected, vain: Mapping[str, set[str]]) -> None:
        self.refused.append(Refused(origin, change, rejected))
        vain[origin].add(change)

    def _harder(self, task: Task, origin: str, number: int, vain: set[str]) -> Task | None:
        """The task with the first change that passes the gates; changes that came to nothing are left alone."""
        stated = task.facts.get(BLUEPRINT)
        if stated is None:
            if "blueprint" not in vain:
                vain.add("blueprint")
                why = Rejected("plan", "the task holds no blueprint, so nobody knows what could be changed")
                self.refused.append(Refused(origin, "", why))
            return None
        blueprint = Blueprint.from_json(stated)
        rng = Random(f"harden/{self.seed}/{origin}/{number}")
        made_before = str(task.facts.get(HARDENED, "")).split("+")
        drawn = rng.sample(list(self.changes), len(self.changes))
        for change in sorted(drawn, key=made_before.count):  # rather another one than before
            if change in vain or (change in _ONCE and change in made_before):
                continue
            changed = self._of(task.environment)(change, blueprint, rng)
            if changed is None:
                vain.add(change)
                continue
            made = self._told(task, changed, origin, change, rng.randrange(1_000_000))
            if isinstance(made, Task):
                return made
            self.refused.append(Refused(origin, change, made))
            vain.add(change)
        return None

    def _of(self, environment: Environment) -> Changing:
        key = id(environment)
        if key not in self._changing:
            self._changing[key] = Changing(environment, self.registry, self.knowledge)
        return self._changing[key]

    def _told(self, task: Task, blueprint: Blueprint, origin: str, change: str, seed: int) -> Task | Rejected:
        """The changed blueprint as a task, if it is worded, executed, and let pass by the gates."""
        before = [str(one) for one in [task.facts.get(HARDENED)] if one]
        changes = "+".join([*before, change])
        materials = Materials(task.environment, registry=self.registry)
        made = converse(blueprint, materials, seed, f"{origin}+{changes}")
        if isinstance(made, Rejected):
            return made
        if change == "withheld" and _withheld(made) <= _withheld(task):
            return Rejected("language", "there are no words that leave more out")
        facts = {**made.facts, HARDENED: changes, HARDENED_OF: origin}
        made = evolve(made, split=task.split, facts=facts)
        gated = gate(made, blueprint=blueprint, registry=self.registry)
        return made if gated.rejected is None else gated.rejected

    def _compare(self, tasks: Sequence[Task], changed: dict[str, Task]) -> None:
        """Take back what is now nearly another task, or calls what another split does, and was not and did not."""
        before = [Compared.of_task(task) for task in tasks]
        alike = {one.id for one, said in zip(before, compared(before), strict=True) if said is not None}
        apart = all(len(splits) == 1 for splits in _splits(before).values())
        while changed:
            after = [Compared.of_task(changed.get(task.id, task)) for task in tasks]
            gone: dict[str, Rejected] = {}
            origins = {made.id: origin for origin, made in changed.items()}
            for task, said in zip(tasks, compared(after), strict=True):
                if said is not None and task.id not in alike:
                    # Of two that are alike the later one is told; the changed one of them is what goes.
                    other = origins.get(str(said.evidence.get("task", "")))
                    goes = task.id if task.id in changed else other
                    if goes is not None:
                        gone.setdefault(goes, said)
            shared = _splits(after)
            for task, one in zip(tasks, after, strict=True):
                if apart and task.id in changed and len(shared[one.environment, one.chain]) > 1:
                    gone.setdefault(task.id, Rejected("splits", "another split has its chain", {"split": one.split}))
            if not gone:
                return
            for origin, said in gone.items():
                self.refused.append(Refused(origin, str(changed.pop(origin).facts[HARDENED]), said))


def _splits(tasks: Iterable[Compared]) -> dict[tuple[str, tuple[str, ...]], set[str]]:
    """In which splits each chain of tools is called; calling nothing is no chain."""
    found: dict[tuple[str, tuple[str, ...]], set[str]] = {}
    for one in tasks:
        found.setdefault((one.environment, one.chain), set()).add(one.split if one.chain else "")
    return found


def _withheld(task: Task) -> int:
    """How much the turns of the user leave out."""
    stages: Iterable[Any] = task.facts.get("stages") or ()
    return sum(len(one.get("withheld") or ()) for one in stages)
