"""Wishes: what a user may want in a world, executed: one call, a chain, several at once, a failure, its recovery."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from random import Random
from typing import Any, Final

from attrs import define, evolve, field

from callwright.environments.protocol import OutOfProcess, declares
from callwright.plugins import Registry
from callwright_plugins.synthesis.blueprints.binding import Binder, Bound, Made
from callwright_plugins.synthesis.blueprints.blueprint import Failing, Recovery
from callwright_plugins.synthesis.blueprints.context import Context
from callwright_plugins.synthesis.blueprints.order import hangs_on, same_state
from callwright_plugins.synthesis.blueprints.repertoire import Pair, Repertoire
from callwright_plugins.synthesis.blueprints.shapes import Shape
from callwright_plugins.synthesis.blueprints.turns import Wish
from callwright_plugins.synthesis.exploration.forking import opened
from callwright_plugins.synthesis.exploration.values import key_of
from callwright_plugins.synthesis.exploration.witness import copied
from callwright_plugins.synthesis.language.sayable import Sayable
from callwright_plugins.synthesis.language.values.hints import SENSITIVE

_TRIES: Final = 9
_SHAPES: Final = 4
#: How often a shape is tried in vain before it is left alone in a world.
_VAIN: Final = 2
#: How often a shape is tried in vain in any world before it gets a few tries only.
_UNPROVEN: Final = 3
#: Tries after which backtracking is for a tool whose shapes none of them filled, or one in as many.
_SELDOM: Final = 10
#: Backtracking is over for a tool that it led to less than once in so many times.
_FRUITLESS: Final = 4
_WALKS: Final = 6
#: How often a chain is gone on with, with each shape of the next edge.
_EXTENDED: Final = 4
#: Calls before which no tool has too many of them.
_FIRST: Final = 30


@define(eq=False)
class World:
    """A world in which conversations are planned: a session that is forked, and what is known of it."""

    scenario: str
    seed: int
    session: Any
    context: Context
    #: By shape: how often it was tried in vain here.
    vain: Counter[int] = field(factory=Counter)
    #: Tools that backtracking led to no call of here.
    hopeless: set[str] = field(factory=set)
    #: Draws for backtracking: other plans are the same with it and without.
    rng: Random = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.rng = Random(f"backtracking/{self.scenario}/{self.seed}")


@define(eq=False)
class Venue:
    """Where conversations are planned: an environment with its repertoire, and its worlds, one after the other.

    ``refreshed`` is after how many conversations another world is sampled; no world of the seeds ``without`` is.
    """

    repertoire: Repertoire
    scenario: str
    rng: Random
    refreshed: int
    registry: Registry
    without: tuple[int, ...] = ()
    worlds: dict[int, World] = field(factory=dict)
    sayable: Sayable = field(init=False)
    _left: int = 0
    _current: World | None = None

    def __attrs_post_init__(self) -> None:
        self.sayable = Sayable(self.repertoire.environment, self.registry)

    def next_world(self) -> World:
        """The world of the next conversation."""
        if self._current is None or self._left < 1:
            if self._current is not None:
                self._current.session.forget()
            seed = self.rng.randrange(1_000_000)
            while seed in self.without:
                seed += 1
            self._current, self._left = self.world(seed), self.refreshed
        self._left -= 1
        return self._current

    def world(self, seed: int) -> World:
        """The world of a seed."""
        if seed not in self.worlds:
            session = opened(self.repertoire.environment, self.scenario, seed)
            self.worlds[seed] = World(self.scenario, seed, session, self.repertoire.context(session, self.rng))
        return self.worlds[seed]

    def close(self) -> None:
        """Give the sessions back."""
        for world in self.worlds.values():
            world.session.close()


@define(eq=False)
class Coverage:
    """How often tools, pairs of tools and failures have been planned, and tried in vain.

    ``begun`` counts what was bound, whatever became of it: what nobody can say, or what other conversations are near
    duplicates of, is not begun with for ever. ``calls`` are counted by tool; one with a larger share of them than
    ``most_of_one`` is planned last.
    """

    most_of_one: float = 1.0
    calls: Counter[str] = field(factory=Counter)
    tools: Counter[str] = field(factory=Counter)
    pairs: Counter[Pair] = field(factory=Counter)
    cells: Counter[Pair] = field(factory=Counter)
    tried: Counter[Any] = field(factory=Counter)
    begun: Counter[Any] = field(factory=Counter)

    def least(self, of: Iterable[Any], counts: Counter[Any], rng: Random, most: int = 6) -> list[Any]:
        """Those that were planned least, rather those that were not tried in vain, chance deciding between equals."""
        begun, tried = self.begun, self.tried
        ranked = sorted(of, key=lambda one: (max(counts[one], begun[one]) + tried[one], rng.random()))
        if self.most_of_one < 1:
            ranked.sort(key=lambda one: self.overused((one,) if isinstance(one, str) else one))
        return ranked[:most]

    def overused(self, tools: Iterable[str]) -> int:
        """How many of some tools make more of the calls than one is to make."""
        if self.most_of_one >= 1:
            return 0
        bound = self.most_of_one * max(_FIRST, self.calls.total())
        return sum(self.calls[tool] > bound for tool in tools)


@define(eq=False)
class Wisher:
    """Makes wishes in one world, one conversation at a time."""

    venue: Venue
    world: World
    coverage: Coverage
    rng: Random
    #: Whether hopeless calls are tried as often as others: where little has been found that has not been asked for yet.
    patient: bool = False
    binder: Binder = field(init=False)

    @property
    def repertoire(self) -> Repertoire:
        """What can be done there."""
        return self.venue.repertoire

    def __attrs_post_init__(self) -> None:
        elsewhere = declares(self.repertoire.environment, OutOfProcess)
        self.binder = Binder(self.repertoire.tools, self.world.context, self.rng, in_effect=elsewhere)
        self.binder.patient = self.patient

    # One call ---------------------------------------------------------------------------------------------------------

    def single(self, session: Any, tools: Sequence[str] | None = None) -> tuple[Wish, Any] | None:
        """One call of a tool that was planned least, with what it needs; and the session after it."""
        able = [tool for tool in (tools or self.repertoire.single) if self.repertoire.single.get(tool)]
        for tool in self.coverage.least(able, self.coverage.tools, self.rng):
            shapes = self.repertoire.single[tool]
            bound = self._bound(session, shapes) or self._backtracked(session, tool, shapes)
            if bound is not None:
                self.coverage.begun[tool] += 1
                return self._wish(bound, {len(bound.made) - 1}), bound.session
            self.coverage.tried[tool] += 1
        return None

    # Chains -----------------------------------------------------------------------------------------------------------

    def chain(self, session: Any, length: int) -> tuple[Wish, Any] | None:
        """A walk over the graph of so many tools, or as many as can be bound; and the session after it."""
        for pair in self._beginning(length):
            known = [shape for _, shape in self.repertoire.edges.get(pair, ())]
            bound = self._bound(session, known, linked=True)
            if bound is None:
                self.coverage.tried[pair] += 1
                continue
            self.coverage.begun[pair] += 1
            chain: tuple[str, ...] = pair
            while len(chain) < length:
                further = self._further(session, bound, chain, length)
                if further is None:
                    break
                bound = further
                chain = (*chain, bound.shape.steps[-1].tool)
            wanted = {place for place, one in enumerate(bound.made) if one.tool in chain}
            return self._wish(bound, wanted, chain), bound.session
        return None

    def edge(self, session: Any, pair: Pair) -> tuple[Wish, Any] | None:
        """An edge of the graph as its witness has it, where this is its world; and the session after it."""
        here = self.world.scenario, self.world.seed
        for shape in (shape for _, shape in self.repertoire.edges[pair] if shape.world == here):
            bound = self.binder.bind(session, shape, 1, literally=True)
            if bound is not None and self._is_linked(session, bound):
                wanted = {place for place, one in enumerate(bound.made) if one.tool in pair}
                return self._wish(bound, wanted, pair), bound.session
        return None

    def _beginning(self, length: int) -> list[Pair]:
        """The edges that were planned least, of those that the longest walks of up to so many tools begin with."""
        free = [pair for pair in self.repertoire.edges if not self.coverage.overused(pair)]
        far = self._leading_far([(pair, pair) for pair in free], length)
        return self.coverage.least(far, self.coverage.pairs, self.rng, _WALKS)

    def _leading_far(self, walks: Sequence[tuple[Pair, tuple[str, ...]]], length: int) -> list[Pair]:
        """The last edges of those walks that can go on to the most tools, so many being enough."""
        reach = [(self.repertoire.reach(walk, length), pair) for pair, walk in walks]
        most = max(reach, default=(0, ("", "")))[0]
        return [pair for tools, pair in reach if tools == most]

    def _further(self, session: Any, bound: Bound, chain: tuple[str, ...], length: int) -> Bound | None:
        """A chain with one more tool: rather with the calls that it has."""
        onward = [tool for tool in self.repertoire.onward.get(chain[-1], ()) if tool not in chain]
        far = self._leading_far([((chain[-1], tool), (*chain, tool)) for tool in onward], length)
        for pair in self.coverage.least(far, self.coverage.pairs, self.rng, 3):
            needs = self.repertoire.needs.get(pair[1], frozenset())
            longer = [
                made
                for _, other in self.repertoire.edges[pair]
                if (made := self.repertoire.joined(bound.shape, other, needs)) is not None
                and len(made.steps) <= _LONGEST
            ]
            for shape in self._some(longer):
                found = self.binder.extend(bound, shape, _EXTENDED, partial(self._is_linked, session))
                if found is not None:
                    return found
            self.coverage.tried[pair] += 1
        return None

    # Failures ---------------------------------------------------------------------------------------------------------

    def failing(self, session: Any, cell: Pair, *, literally: bool = False) -> tuple[list[Wish], Any] | None:
        """What leads to a failure, if anything has to, and the call that fails: the right end is to say so."""
        shape = self.repertoire.failures[cell]
        bound = self._bound(session, [shape], literally=literally)
        if bound is None:
            return None
        last = len(bound.made) - 1
        before = [Wish(bound.made[:last], frozenset(range(last)))] if last else []
        failed = evolve(bound.made[last], told={}, heard=frozenset(str(path[0]) for path in bound.made[last].told))
        self.binder.take_up(bound)
        wish = Wish((failed,), frozenset({0}), (Failing(0, cell[1], "give up"),), (), cell[1])
        return [*before, wish], bound.session

    def recovered(self, session: Any, cell: Pair, *, literally: bool = False) -> tuple[Wish, Any] | None:
        """A call that fails and is made up for: by another tool first, or by other arguments; and the session after."""
        ways: tuple[Recovery, ...] = ("tool", "parameters")
        for way in ways:
            found = (
                self._by_tool(session, cell, literally)
                if way == "tool"
                else self._by_parameters(session, cell, literally)
            )
            if found is not None:
                return found
        return None

    def _by_tool(self, session: Any, cell: Pair, literally: bool) -> tuple[Wish, Any] | None:
        for shape in self.repertoire.repaired.get(cell, ()):
            bound = self._bound(session, [shape], literally=literally)
            if bound is None:
                continue
            source, last = shape.source, len(bound.made) - 1
            target = bound.made[last]
            if any(step >= source for step, _ in target.told.values()):
                continue
            if any((one.tool, one.arguments) == (target.tool, target.arguments) for one in bound.made[:source]):
                continue  # it was done already: nobody wants it undone to be done again
            fork = session.fork()
            for one in bound.made[:source]:
                fork.call(one.tool, copied(one.arguments))
            failed = fork.call(target.tool, copied(target.arguments))
            if not failed.failed or (failed.code or failed.kind) != cell[1]:
                continue
            where_it_failed = fork.fork()
            made = [*bound.made[:source], Made(target.tool, target.arguments, target.told, failed)]
            made += [_later(one, source, 1) for one in bound.made[source:]]
            enabled = self._executed(fork, made[source + 1 : source + 2])
            if enabled is None or (source and same_state(session, enabled)):
                continue  # what makes it possible undoes what came before
            again = self._executed(fork, made[source + 2 :])
            if again is None:
                continue
            if not self.repertoire.tools[target.tool].read_only and same_state(where_it_failed, again):
                continue  # what made it possible did no more than what it then takes back
            end = len(made) - 1
            follows = ((source, source + 1), (source + 1, end), (source, end))
            wish = Wish(tuple(made), frozenset({end}), (Failing(source, cell[1], "tool"),), follows)
            self.binder.take_up(bound)
            return wish, fork
        return None

    def _by_parameters(self, session: Any, cell: Pair, literally: bool) -> tuple[Wish, Any] | None:
        tool, code = cell
        wrong = self._bound(session, [self.repertoire.failures[cell]], literally=literally)
        if wrong is None:
            return None
        bad = wrong.made[-1]
        for shape in self._some(self.repertoire.single.get(tool, ())):
            bound = self._bound(session, [shape])
            if bound is None:
                continue
            last = len(bound.made) - 1
            good = bound.made[last]
            fork = session.fork()
            for one in bound.made[:last]:
                fork.call(one.tool, copied(one.arguments))
            changed = [
                {**good.arguments, name: value}
                for name, value in bad.arguments.items()
                if good.arguments.get(name) != value
            ]
            for arguments in (*changed, dict(bad.arguments)):
                if any(SENSITIVE.search(name) and good.arguments.get(name) != arguments[name] for name in arguments):
                    continue  # nobody makes up a token: the user may have a wrong one, and that is another plan
                if not all(self._a_slip(good.arguments.get(name), wrong) for name, wrong in arguments.items()):
                    continue
                if not self.repertoire.tools[tool].compiled.literal.validator.is_valid(arguments):
                    continue
                tried = fork.fork()
                failed = tried.call(tool, copied(arguments))
                if not failed.failed or (failed.code or failed.kind) != code or self._executed(tried, [good]) is None:
                    continue
                kept = {name for name, value in good.arguments.items() if arguments.get(name) == value}
                same = {path: told for path, told in good.told.items() if path[0] in kept}
                made = (*bound.made[:last], Made(tool, arguments, same, failed), good)
                recovery = Failing(last, code, "parameters")
                wish = Wish(made, frozenset({last + 1}), (recovery,), ((last, last + 1),))
                self.binder.take_up(bound)
                return wish, tried
        return None

    def _a_slip(self, right: Any, wrong: Any) -> bool:
        """Whether somebody who means one value could give the other: for a thing of the world only what looks like one,
        as one id looks like another.
        """
        if right == wrong or not isinstance(wrong, str):
            return True
        if not isinstance(right, str):
            return right is not None  # nobody adds a text of which nobody spoke
        here = self.world.context.places_of(key_of(right))
        return not any(one.origin == "result" for one in here) or _looks(right) == _looks(wrong)

    # ------------------------------------------------------------------------------------------------------------------

    def _executed(self, session: Any, calls: Sequence[Made]) -> Any:
        """The session after calls that come to the very results that they came to; ``None`` if one does not."""
        for one in calls:
            outcome = session.call(one.tool, copied(one.arguments))
            if outcome.kind != one.kind or outcome.value != one.outcome.value:
                return None
        return session

    def _bound(
        self, session: Any, shapes: Sequence[Shape], *, literally: bool = False, linked: bool = False
    ) -> Bound | None:
        """The first of some shapes that can be filled: rather one that could be before, and no hopeless one. Where they
        are ``linked``, by an edge, its target needs its source here, too.
        """
        worth, vain = self.repertoire.worth, self.world.vain
        for shape in self._some(shapes):
            if literally and shape.world != (self.world.scenario, self.world.seed):
                continue
            key = id(shape)
            if not literally and vain[key] >= _VAIN:
                continue
            good, all_ = worth.get(key, (0, 0))
            hopeful = not vain[key] and (self.patient or good or all_ < _UNPROVEN)
            tries = _TRIES if hopeful else _TRIES // 3
            fits = partial(self._is_linked, session) if linked else None
            bound = self.binder.bind(session, shape, tries, literally=literally, fits=fits)
            worth[key] = good + (bound is not None), all_ + 1
            if bound is not None:
                return bound
            vain[key] += 1
        return None

    def _is_linked(self, session: Any, bound: Bound) -> bool:
        source = bound.shape.source
        return source < 0 or hangs_on(bound.made, source, self.repertoire.tools, session)

    def _backtracked(self, session: Any, tool: str, shapes: Sequence[Shape]) -> Bound | None:
        """One of a tool's shapes that backtracking fills, where whole tries hardly ever filled any in any world."""
        repertoire, world = self.repertoire, self.world
        whole = [repertoire.worth.get(id(shape), (0, 0)) for shape in shapes]
        good, all_ = (sum(counts) for counts in zip(*whole, strict=True))
        if tool in world.hopeless or all_ < _SELDOM * max(1, good):
            return None
        good, all_ = repertoire.backtracked.get(tool, (0, 0))
        if all_ >= _FRUITLESS and _FRUITLESS * good < all_:
            return None
        for shape in world.rng.sample(shapes, min(_SHAPES, len(shapes))):
            bound = self.binder.backtrack(session, shape, world.rng)
            if bound is not None:
                repertoire.backtracked[tool] = good + 1, all_ + 1
                return bound
        world.hopeless.add(tool)
        repertoire.backtracked[tool] = good, all_ + 1
        return None

    def _some(self, shapes: Sequence[Shape]) -> list[Shape]:
        """A few shapes in a random order: rather short ones, and such as could be filled before."""
        worth = self.repertoire.worth

        def rank(shape: Shape) -> float:
            good, all_ = worth.get(id(shape), (0, 0))
            dear = 1 + 4 * self.coverage.overused(step.tool for step in shape.steps)
            return len(shape.steps) * (0.3 + self.rng.random()) * (all_ + 2) / (good + 1) * dear

        return sorted(shapes, key=rank)[:_SHAPES]

    def _wish(self, bound: Bound, wanted: set[int], chain: tuple[str, ...] = ()) -> Wish:
        self.binder.take_up(bound)
        return Wish(bound.made, frozenset(wanted), chain=chain)


_LONGEST: Final = 8
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_DIGITS: Final = re.compile(r"\d+")


def _later(made: Made, source: int, by: int) -> Made:
    """A call whose references to steps from ``source`` on are to steps further on."""
    told = {path: (step + by if step >= source else step, where) for path, (step, where) in made.told.items()}
    return evolve(made, told=told)


def _looks(text: str) -> str:
    """What a text looks like: letters, digits and what stands between them, however many."""
    return _DIGITS.sub("0", _LETTERS.sub("a", text))
