"""Order: which calls of a conversation have to come before which, proven by making them in another order.

That a tool needs another one in general says nothing of two calls: a folder has to be made before it is listed, and
not before another one is. So each call is made sooner than it was, and has to follow what it cannot be made before:
where it, or a call that it changed places with, comes to something else, or the world does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
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
    """The stages with ``after`` and ``since`` as they are proven to be; what ``after`` says already is kept.

    ``before`` is the session that the conversation begins in, which has ``fork``. Calls of one turn change places, and
    those of a later turn with those of earlier ones.
    """
    firsts: list[int] = []
    calls: list[Call] = []
    given: list[set[int]] = []
    for stage in stages:
        start = len(calls)
        firsts.append(start)
        calls += [_moved(call, start) for call in stage.calls]
        given += [{start + one for one in some} for some in stage.after or [()] * len(stage.calls)]
    if len(calls) < 2:
        return tuple(stages)
    needed = _Order(calls, given, tools, before).needed()
    made = []
    for start, stage in zip(firsts, stages, strict=True):
        mine = needed[start : start + len(stage.calls)]
        after = tuple(tuple(sorted(one - start for one in some if one >= start)) for some in mine)
        since = tuple(tuple(sorted(one for one in some if one < start)) for some in mine)
        made.append(evolve(stage, after=after, since=since if any(since) else ()))
    return tuple(made)


def hangs_on(made: Sequence[Made], source: int, tools: Mapping[str, ToolSpec], before: Any) -> bool:
    """Whether the last of some calls, which were made in a fork of the session ``before``, needs the one at ``source``,
    directly or by others.
    """
    calls, last = called(made), len(made) - 1
    told = [{reference.call for _, reference in call.located} for call in calls]
    behind: list[set[int]] = []
    for some in told:
        behind.append(_closed(some, behind))
    if source in behind[last]:
        return True
    if tools[made[source].tool].read_only and tools[made[last].tool].read_only:
        return False
    sooner = [place for place in range(last) if place != source and source not in behind[place]]
    order = _Order(calls, told, tools, before)
    order.look()
    return not order.the_same(sooner, last)


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

    def look(self) -> None:
        """Make the calls in their order."""
        self.carried = [{} for _ in self.calls]
        self.whole = self._made(range(len(self.calls)), kept=True)
        self._carry()

    def needed(self) -> list[set[int]]:
        """By call: those that it was said to follow, or cannot be made before, beside what it refers to."""
        quiet = [self.tools[call.tool].read_only for call in self.calls]
        if not all(quiet):
            self.look()
        found: list[set[int]] = []
        behind: list[set[int]] = []  # by call: all that it hangs on, near or far
        for place, call in enumerate(self.calls):
            told = {reference.call for _, reference in call.located}
            direct = set(self.given[place])
            closed = _closed(direct | told, behind)
            loose = [one for one in range(place) if one not in closed and not (quiet[one] and quiet[place])]
            for one in self._stuck(place, loose, closed, behind):
                direct.add(one)
                closed |= {one} | behind[one]  # in place: what is left to try hangs on it
            found.append(direct - told)
            behind.append(closed)
        return found

    def _stuck(self, place: int, loose: list[int], closed: set[int], behind: Sequence[set[int]]) -> Iterator[int]:
        """Those of some calls that a call cannot be made before, the latest first; ``closed`` grows with them."""
        waiting = sorted(loose, reverse=True)
        while any(one not in closed for one in loose):
            if self.the_same(sorted(closed), place):
                return
            stuck = None
            while waiting and stuck is None:
                one = waiting.pop(0)
                if one in closed:
                    continue
                over = {one} | {later for later in range(one + 1, place) if one in behind[later]}
                if not self.the_same([earlier for earlier in range(place) if earlier not in over], place):
                    stuck = one
            # No one of them is needed, but one of several is: the latest, since any will do.
            yield stuck if stuck is not None else max(one for one in loose if one not in closed)

    def the_same(self, sooner: Sequence[int], place: int) -> bool:
        """Whether a call right after these comes to the same, and all that was before it does after it."""
        over = [one for one in range(place) if one not in sooner]
        found = self._made([*sooner, place, *over])
        for one in range(place + 1):
            was, came = self.whole.outcomes[one], found.outcomes[one]
            if (was.kind, was.code) != (came.kind, came.code):
                return False
        return _alike(
            [self.whole.outcomes[one].value for one in range(place + 1)],
            [found.outcomes[one].value for one in range(place + 1)],
        ) and same_state(self.whole.after[place], found.session)

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
    return direct.union(*(behind[one] for one in direct))


def same_state(one: Any, other: Any) -> bool:
    """Whether two sessions of one world have come to the same."""
    if one.digest() == other.digest():
        return True
    if not (has(one, TellsGoalState) and has(other, TellsGoalState)):
        return False
    return equal_states(one.goal_state(), other.goal_state())


def _alike(values: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether results are the same but for what things are called: in another order the same ids and times are given
    out, to others.
    """
    if values == others:
        return True
    were: set[str] = set()
    are: set[str] = set()
    for one, other in zip(values, others, strict=True):
        if one is other:
            continue
        here, there = leaves_of_values(one), leaves_of_values(other)
        if len(here) != len(there):
            return False
        for (path, leaf), (where, found) in zip(here, there, strict=True):
            if path != where or type(leaf) is not type(found):
                return False
            if leaf == found:
                continue
            if not isinstance(leaf, str) or _NUMBERED.sub("#", leaf) != _NUMBERED.sub("#", found):
                return False
            were.update(_NUMBERED.findall(leaf))
            are.update(_NUMBERED.findall(found))
    return were == are
