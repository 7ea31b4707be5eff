"""Binding: a shape filled with the values of a world and executed there, until its outcomes are as wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final

from attrs import define, field, frozen

from callwright.environments.protocol import Outcome
from callwright.language.program import Call, Path, Reference
from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.blueprints.context import Context
from callwright_plugins.synthesis.blueprints.filling import LITERALLY, PLAINLY, VARIED, Filling
from callwright_plugins.synthesis.blueprints.shapes import (
    Free,
    Shape,
    Variable,
    leaves_of,
)
from callwright_plugins.synthesis.blueprints.texts import Written
from callwright_plugins.synthesis.exploration.values import Key, key_of
from callwright_plugins.synthesis.graph.effects import state_of
from callwright_plugins.synthesis.graph.references import replaced, value_at

#: Tries in a row that fail at one step for one reason, after which more of them are thought to do the same.
_ALIKE: Final = 3
#: How often a step is filled in backtracking after one filling of those before it, and any step in all.
_WIDTH: Final = 8
_FILLINGS: Final = 48


@frozen
class Made:
    """A call that was executed: its literal arguments, which of them an earlier call of the same bound told (its place
    and the path in its result), which were made up or are things of the world, and what came of it. ``heard`` are the
    arguments that were told in an earlier turn.
    """

    tool: str
    arguments: Mapping[str, Any]
    told: Mapping[Path, tuple[int, Path]]
    outcome: Outcome
    heard: frozenset[str] = frozenset()

    @property
    def kind(self) -> str:
        """The kind of its outcome."""
        return self.outcome.kind


@frozen
class Bound:
    """A shape with values: calls that were made one after the other, and the session after them.

    ``filling`` holds the values, for :meth:`Binder.extend`.
    """

    shape: Shape
    made: tuple[Made, ...]
    session: Any
    filling: Filling = field(eq=False, repr=False)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls with literal arguments."""
        return tuple(Call(number, one.tool, one.arguments) for number, one in enumerate(self.made))


@define(eq=False)
class Binder:
    """Fills shapes with the values of one world."""

    tools: Mapping[str, ToolSpec]
    context: Context
    rng: Random
    #: Calls that were made, for whoever measures.
    calls: int = 0
    #: Values that the conversation has been about so far: they are taken again where they fit.
    about: dict[Key, None] = field(factory=dict)
    #: Calls that were bound so far: suggested texts are about what they were given and told.
    heard: list[Made] = field(factory=list)
    #: Whether a call that takes something away has to change the state: servers say that all went well where nothing
    #: was done.
    in_effect: bool = False
    #: Whether every try is made, also after some that failed alike.
    patient: bool = False
    #: At which step the last try failed, and with what kind and code of outcome.
    failed: tuple[int, str, str] = (0, "", "")

    def bind(
        self,
        session: Any,
        shape: Shape,
        tries: int,
        *,
        literally: bool = False,
        fits: Callable[[Bound], bool] | None = None,
    ) -> Bound | None:
        """The shape with values in a fork of a session: its calls execute, and the last comes to what it should.

        Made-up values are varied in the first half of the tries. ``literally``: with the values of the witness, in its
        own world. ``None`` where no try came to it, or to what ``fits``.
        """
        if literally:
            return self._try(session.fork(), Filling(self, shape, LITERALLY, self.rng), set())
        if any(not self._may_be(one) for one in shape.variables):
            return None
        seen: set[str] = set()
        for way, most in ((VARIED, (tries + 1) // 2), (PLAINLY, tries // 2)):
            alike, before = 0, None
            for _ in range(most):
                bound = self._try(session.fork(), Filling(self, shape, way, self.rng), seen)
                if bound is not None and (fits is None or fits(bound)):
                    return bound
                if bound is not None:
                    self.failed = len(bound.made), "", ""
                alike = alike + 1 if self.failed == before else 1
                before = self.failed
                if alike == _ALIKE and not self.patient:
                    break
        return None

    def extend(self, bound: Bound, shape: Shape, tries: int, fits: Callable[[Bound], bool]) -> Bound | None:
        """A longer shape that begins with the steps of one that is bound: these keep their values, and the others are
        filled in a fork of the session after them. ``None`` where no try came to what ``fits``.
        """
        if any(not self._may_be(one) for one in shape.variables[len(bound.shape.variables) :]):
            return None
        seen: set[str] = set()
        for _ in range(tries):
            longer = self._try(bound.session.fork(), bound.filling.onto(shape), seen)
            if longer is not None and fits(longer):
                return longer
        return None

    def take_up(self, bound: Bound) -> None:
        """The conversation has these calls in it."""
        self.about.update(entities_of(bound))
        self.heard += [one for one in bound.made if one.outcome.executed]

    def so_far(self) -> tuple[dict[Key, None], int]:
        """What the conversation has in it, for :meth:`back_to`."""
        return dict(self.about), len(self.heard)

    def back_to(self, mark: tuple[dict[Key, None], int]) -> None:
        """Forget the calls that were taken up since :meth:`so_far`."""
        self.about = dict(mark[0])
        del self.heard[mark[1] :]

    def arguments(self, shape: Shape) -> dict[str, Any] | None:
        """Arguments for a shape of one call, without making it; ``None`` where nothing fits."""
        if len(shape.steps) != 1 or any(not self._may_be(one) for one in shape.variables):
            return None
        filling = Filling(self, shape, VARIED, self.rng)
        found = filling.filled(shape.steps[0].arguments, shape.steps[0].tool, ())
        return found if isinstance(found, dict) else None

    def _may_be(self, variable: Variable) -> bool:
        return variable.of_the_user or bool(self.context.there(variable.sources))

    def _try(self, session: Any, filling: Filling, seen: set[str]) -> Bound | None:
        steps = len(filling.shape.steps)
        alone = steps - len(filling.made) == 1  # a chain that begins in the same way may go on in another
        while len(filling.made) < steps:
            if not self._step(session, filling, seen if alone else set()):
                return None
        return Bound(filling.shape, tuple(filling.made), session, filling)

    def _step(self, session: Any, filling: Filling, seen: set[str]) -> bool:
        """Fill and make the next call, unless it was ``seen``; whether it came to what it should."""
        shape, place = filling.shape, len(filling.made)
        step = shape.steps[place]
        spec = self.tools[step.tool]
        filling.told = {}
        arguments = filling.filled(step.arguments, step.tool, ())
        self.failed = place, "", ""
        if not isinstance(arguments, dict) or not spec.compiled.literal.validator.is_valid(arguments):
            return False
        text = repr(arguments)
        if text in seen:
            return False
        seen.add(text)
        self.calls += 1
        before = state_of(session) if self.in_effect and spec.destructive else None
        outcome = session.call(step.tool, arguments)
        self.failed = place, outcome.kind, outcome.code
        if not _as_wanted(outcome, shape, place == len(shape.steps) - 1):
            return False
        if before is not None and outcome.executed and state_of(session) == before:
            return False
        filling.results.append(outcome.value)
        filling.made.append(Made(step.tool, arguments, filling.told, outcome))
        return True

    def backtrack(self, session: Any, shape: Shape, rng: Random) -> Bound | None:
        """As :meth:`bind`, for a shape that whole tries do not fill: a step that fails is filled anew before those that
        come before it are, and things that stood in one object are taken from one.

        Depth first, each step at most 8 times, and 48 fillings in all. Draws from ``rng`` alone.
        """
        if any(not self._may_be(one) for one in shape.variables):
            return None
        for way in (VARIED, PLAINLY):
            found = self._beyond(session, Filling(self, shape, way, rng, within=True), [_FILLINGS // 2])
            if found is not None:
                return found
        return None

    def _beyond(self, session: Any, filling: Filling, left: list[int]) -> Bound | None:
        """What is filled so far with the rest of its shape; ``left`` are the fillings that may be tried yet."""
        if len(filling.made) == len(filling.shape.steps):
            return Bound(filling.shape, tuple(filling.made), session, filling)
        seen: set[str] = set()
        for _ in range(_WIDTH):
            if left[0] < 1:
                return None
            left[0] -= 1
            fork, further = session.fork(), filling.copy()
            found = self._beyond(fork, further, left) if self._step(fork, further, seen) else None
            if found is not None:
                return found
        return None


def _as_wanted(outcome: Outcome, shape: Shape, last: bool) -> bool:
    if not last:
        return outcome.kind in ("ok", "partial")
    if shape.code:
        return outcome.failed and (outcome.code or outcome.kind) == shape.code
    return outcome.kind in ("ok", "partial") or outcome.kind == shape.kind == "empty"


def with_references(arguments: Mapping[str, Any], told: Mapping[Path, Any]) -> dict[str, Any]:
    """Arguments in which references stand at these paths."""
    made: Any = dict(arguments)
    for path, reference in told.items():
        made = replaced(made, path, reference)
    return dict(made)


def called(made: Sequence[Made]) -> list[Call]:
    """Executed calls as a program has them: with references where an earlier one told a value."""
    return [
        Call(
            number,
            one.tool,
            with_references(one.arguments, {path: Reference(*told) for path, told in one.told.items()}),
        )
        for number, one in enumerate(made)
    ]


def literals(arguments: Mapping[str, Any], told: Mapping[Path, Any]) -> list[tuple[Path, Key]]:
    """The texts and numbers of arguments that no reference stands for."""
    return [(path, key_of(leaf)) for path, leaf in leaves_of_values(arguments) if path not in told]


def leaves_of_values(value: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    """The leaves of JSON with their paths."""
    found: list[tuple[Path, Any]] = []
    _collect(value, path, found)
    return found


def _collect(value: Any, path: Path, found: list[tuple[Path, Any]]) -> None:
    kind = type(value)
    if kind is str or kind is int:
        found.append((path, value))
    elif kind is dict or isinstance(value, Mapping):
        for name, inner in value.items():
            _collect(inner, (*path, name), found)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            _collect(inner, (*path, number), found)
    else:
        found.append((path, value))


def entities_of(bound: Bound) -> dict[Key, None]:
    """The things of the world that the calls are about."""
    found: dict[Key, None] = {}
    for made, step in zip(bound.made, bound.shape.steps, strict=True):
        for path, leaf in leaves_of(dict(step.arguments)):
            if isinstance(leaf, Written):
                text = value_at(dict(made.arguments), path)
                gaps = {name: bound.shape.blanks[number].gap for name, number in leaf.blanks}
                values = leaf.text.read(text, gaps) if isinstance(text, str) else None
                found.update({("string", one): None for one in (values or {}).values()})
            if not isinstance(leaf, Free):
                value = value_at(dict(made.arguments), path)
                if isinstance(value, str):
                    found[key_of(value)] = None
    return found
