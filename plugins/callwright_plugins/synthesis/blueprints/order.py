"""Order: which calls of a conversation need which, and which have to come before which, proven by making them sooner.

That a tool needs another one in general says nothing of two calls: a folder has to be made before it is listed, and
not before another one is. So each call is made sooner than it was. It *needs* what it cannot be made before without
coming to something else itself. In its turn it has to *follow* also what comes to something else after it, as a listing
does that was made before the folder was, and what it cannot change places with without leaving another world.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import define, evolve, field

from callwright.capability import has
from callwright.environments.goals.comparing import equal_states
from callwright.environments.protocol import Outcome, TellsGoalState
from callwright.language.program import Call, Path, Reference
from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.blueprints.binding import Made, called, leaves_of_values, with_references
from callwright_plugins.synthesis.blueprints.blueprint import Stage
from callwright_plugins.synthesis.exploration.witness import copied
from callwright_plugins.synthesis.graph.references import value_at

#: A word in which a digit stands: an id, a time, an amount.
_NUMBERED: Final = re.compile(r"[^\s\"',;()\[\]{}]*\d[^\s\"',;()\[\]{}]*")


def ordered(stages: Sequence[Stage], tools: Mapping[str, ToolSpec], before: Any) -> tuple[Stage, ...]:
    """The stages with ``needs`` and ``after`` as they are proven to be; what ``after`` says already is kept.

    ``before`` is the session that the conversation begins in, which has ``fork``.
    """
    starts: list[int] = []
    calls: list[Call] = []
    given: list[set[int]] = []
    for stage in stages:
        start = len(calls)
        starts += [start] * len(stage.calls)
        calls += [_moved(call, start) for call in stage.calls]
        given += [{start + one for one in some} for some in stage.after or [()] * len(stage.calls)]
    if len(calls) < 2:
        return tuple(stages)
    order = _Order(calls, given, tools, before)
    needs, follows = order.needs(), order.follows(starts)
    made, place = [], 0
    for stage in stages:
        start, place = place, place + len(stage.calls)
        after = tuple(tuple(sorted(one - start for one in some)) for some in follows[start:place])
        made.append(evolve(stage, after=after, needs=tuple(tuple(sorted(some)) for some in needs[start:place])))
    return tuple(made)


def hangs_on(made: Sequence[Made], source: int, tools: Mapping[str, ToolSpec], before: Any) -> bool:
    """Whether the last of some calls, which were made in a fork of the session ``before``, needs the one at ``source``,
    directly or by others.
    """
    calls, last = called(made), len(made) - 1
    behind: list[set[int]] = []
    for call in calls:
        behind.append(_closed({reference.call for _, reference in call.located}, behind))
    if source in behind[last] or tools[made[source].tool].read_only:
        return source in behind[last]
    order = _Order(calls, [set() for _ in calls], tools, before)
    order.look()
    return not order.does_the_same(_without({source}, last, behind), last)


def _moved(call: Call, by: int) -> Call:
    """A call with a number, and numbers of what it refers to, that are so much higher."""
    told = {path: Reference(one.call + by, one.path) for path, one in call.located}
    return Call(call.id + by, call.tool, with_references(call.arguments, told) if told else call.arguments)


@define
class _Run:
    """Calls that were made in some order: what each came to, and where that led."""

    outcomes: dict[int, Outcome] = field(factory=dict)
    session: Any = None
    #: The sessions after each of them, where they are asked for.
    after: list[Any] = field(factory=list)


@define
class _Order:
    calls: Sequence[Call]
    given: Sequence[set[int]]
    tools: Mapping[str, ToolSpec]
    before: Any
    #: By call: arguments that an earlier call told by its result, without a reference, as across turns.
    carried: list[dict[Path, tuple[int, Path]]] = field(factory=list)
    #: The calls in their order.
    whole: _Run = field(factory=_Run)
    #: By call: those that it needs.
    needed: list[set[int]] = field(factory=list)

    def look(self) -> None:
        """Make the calls in their order."""
        self.carried = [{} for _ in self.calls]
        self.whole = self._made(range(len(self.calls)), kept=True)
        self._carry()

    def needs(self) -> list[set[int]]:
        """By call: those that it needs, or was said to follow, beside what it refers to."""
        reading = [self.tools[call.tool].read_only for call in self.calls]
        if not all(reading):
            self.look()
        behind: list[set[int]] = []  # by call: all that it hangs on, near or far
        for place, call in enumerate(self.calls):
            told = {reference.call for _, reference in call.located}
            direct = set(self.given[place])
            closed = _closed(direct | told, behind)
            loose = [one for one in range(place) if one not in closed and not reading[one]]
            for one in self._stuck(place, loose, closed, behind, self.does_the_same):
                direct.add(one)
                closed |= {one} | behind[one]  # in place: what is left to try hangs on it
            self.needed.append(direct - told)
            behind.append(closed)
        return self.needed

    def follows(self, starts: Sequence[int]) -> list[set[int]]:
        """By call: those of its turn, which begins at ``starts``, that it has to follow, beside what it refers to."""
        reading = [self.tools[call.tool].read_only for call in self.calls]
        found: list[set[int]] = []
        behind: list[set[int]] = []
        for place, call in enumerate(self.calls):
            told = {reference.call for _, reference in call.located}
            direct = {one for one in self.needed[place] if one >= starts[place]}
            earlier = set(range(starts[place]))
            closed = _closed(direct | told | earlier, behind)
            loose = [
                one
                for one in range(starts[place], place)
                if one not in closed and not (reading[one] and reading[place])
            ]
            for one in self._stuck(place, loose, closed, behind, self.changes_nothing):
                direct.add(one)
                closed |= {one} | behind[one]
            found.append(direct - told)
            behind.append(closed - earlier)
        return found

    def _stuck(
        self,
        place: int,
        loose: list[int],
        closed: set[int],
        behind: Sequence[set[int]],
        same: Callable[[Sequence[int], int], bool],
    ) -> Iterator[int]:
        """Those of some calls that a call cannot be made before, the latest first; ``closed`` grows with them."""
        waiting = sorted(loose, reverse=True)
        telling = {step for step, _ in self.carried[place].values()} if self.carried else set()
        while any(one not in closed for one in loose):
            if same(sorted(closed), place):
                return
            stuck = None
            while waiting and stuck is None:
                one = waiting.pop(0)
                if one not in closed and not same(_without({one}, place, behind), place):
                    stuck = one
            # No one of them is needed, but one of several is: what told of something that it takes, or else the latest.
            yield (
                stuck
                if stuck is not None
                else max((one for one in loose if one not in closed), key=lambda one: (one in telling, one))
            )

    def does_the_same(self, sooner: Sequence[int], place: int) -> bool:
        """Whether a call right after these, and what else was before it after it, comes to what it came to."""
        found = self._made([*sooner, place, *(one for one in range(place) if one not in sooner)])
        was, came = self.whole.outcomes[place], found.outcomes[place]
        if (was.kind, was.code) != (came.kind, came.code):
            return False
        words = _differing([was.value], [came.value])
        # Where it was called otherwise, others are called so: in another order ids and times are given out to others.
        if words is not None and (not words[0] or (words[1] <= _words(self.whole) and words[0] <= _words(found))):
            return True
        # What tells of a whole, such as a basket or a balance, tells of another one in any order: what counts of a call
        # that adds to it is the world that they leave together.
        adds = not self.tools[self.calls[place].tool].read_only
        return adds and same_state(self.whole.after[place], found.session)

    def changes_nothing(self, sooner: Sequence[int], place: int) -> bool:
        """Whether a call right after these, and all that was before it after it, come to the same, and so the world."""
        places = range(place + 1)
        found = self._made([*sooner, place, *(one for one in range(place) if one not in sooner)])
        for one in places:
            was, came = self.whole.outcomes[one], found.outcomes[one]
            if (was.kind, was.code) != (came.kind, came.code):
                return False
        words = _differing(
            [self.whole.outcomes[one].value for one in places], [found.outcomes[one].value for one in places]
        )
        if words is None or words[0] != words[1]:
            return False
        return same_state(self.whole.after[place], found.session)

    def _made(self, order: Sequence[int], kept: bool = False) -> _Run:
        session = self.before.fork()
        run = _Run(session=session)
        for place in order:
            call = self.calls[place]
            arguments = {
                path: value_at(run.outcomes[told.call].value, told.path) if told.call in run.outcomes else None
                for path, told in call.located
            }
            for path, (step, where) in self.carried[place].items():
                if step in run.outcomes:
                    arguments[path] = value_at(run.outcomes[step].value, where)
            made = with_references(call.arguments, arguments) if arguments else call.arguments
            run.outcomes[place] = session.call(call.tool, copied(made))
            if kept:
                run.after.append(session.fork())
        return run

    def _carry(self) -> None:
        """Find ids that a call made and a call of a later turn takes: in another order it makes another one."""
        told: dict[str, tuple[int, Path]] = {}
        stated: set[str] = set()
        for place, call in enumerate(self.calls):
            for path, leaf in leaves_of_values(dict(call.arguments)):
                if isinstance(leaf, str):
                    if leaf in told:
                        self.carried[place][path] = told[leaf]
                    else:
                        stated.add(leaf)
            if not self.tools[call.tool].read_only:
                for path, leaf in leaves_of_values(self.whole.outcomes[place].value):
                    if isinstance(leaf, str) and _NUMBERED.fullmatch(leaf) and leaf not in stated:
                        told.setdefault(leaf, (place, path))


def _closed(direct: set[int], behind: Sequence[set[int]]) -> set[int]:
    """Some calls, and all that they hang on."""
    return direct.union(*(behind[one] for one in direct))


def _without(some: set[int], place: int, behind: Sequence[set[int]]) -> list[int]:
    """The calls before a place but for some of them and all that hangs on these."""
    return [one for one in range(place) if one not in some and not some & behind[one]]


def same_state(one: Any, other: Any) -> bool:
    """Whether two sessions of one world have come to the same."""
    if one.digest() == other.digest():
        return True
    if not (has(one, TellsGoalState) and has(other, TellsGoalState)):
        return False
    return equal_states(one.goal_state(), other.goal_state())


def _differing(values: Sequence[Any], others: Sequence[Any]) -> tuple[set[str], set[str]] | None:
    """The words with digits in which results and others differ; ``None`` where they differ in anything else."""
    were: set[str] = set()
    are: set[str] = set()
    if values == others:
        return were, are
    for one, other in zip(values, others, strict=True):
        if one is other:
            continue
        here, there = leaves_of_values(one), leaves_of_values(other)
        if len(here) != len(there):
            return None
        for (path, leaf), (where, found) in zip(here, there, strict=True):
            if path != where or type(leaf) is not type(found):
                return None
            if leaf == found:
                continue
            if not isinstance(leaf, str) or _NUMBERED.sub("#", leaf) != _NUMBERED.sub("#", found):
                return None
            were.update(_NUMBERED.findall(leaf))
            are.update(_NUMBERED.findall(found))
    return were, are


def _words(run: _Run) -> set[str]:
    """The words with digits in all results of a run."""
    leaves = (leaf for outcome in run.outcomes.values() for _, leaf in leaves_of_values(outcome.value))
    return {word for leaf in leaves if isinstance(leaf, str) for word in _NUMBERED.findall(leaf)}
