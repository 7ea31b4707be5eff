"""Trials: what a call comes to after a path, as often as it is asked, counted."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

from callwright.capability import has
from callwright.environments.capabilities import Forks
from callwright.environments.protocol import Environment, Outcome, OutOfProcess, Session, declares
from callwright.language.program import Call
from callwright.training.reporter import SILENT, Reporter
from callwright_plugins.synthesis.exploration.states import HEARD, OutOfCalls
from callwright_plugins.synthesis.exploration.witness import text_of
from callwright_plugins.synthesis.graph.effects import made_in_effect
from callwright_plugins.synthesis.graph.references import Bound, Locating, bindings

#: Sessions that are kept, each at the end of its path.
_KEPT: Final = 128
#: Outcomes that are remembered, where sessions fork: more than half of the calls are asked for again soon.
_REMEMBERED: Final = 2048


class Trials:
    """Makes calls after paths in one scenario and seed. Where sessions fork, no path is walked twice in a row.

    What is remembered there is counted as if it were made again: what a budget buys hangs on no memory.
    """

    def __init__(
        self, environment: Environment, scenario: str, seed: int, calls: int, reporter: Reporter = SILENT
    ) -> None:
        self.environment, self.scenario, self.seed, self.reporter = environment, scenario, seed, reporter
        self.left, self.made = calls, 0
        self.told_by = Locating().told_by
        #: By the texts of calls: which arguments of each the ones before it told.
        self._bound: OrderedDict[tuple[str, ...], Bound] = OrderedDict()
        self._first = environment.open(scenario, seed)
        self._forks = not declares(environment, OutOfProcess) and has(self._first, Forks)
        self._kept: OrderedDict[tuple[str, ...], tuple[Session | None, Outcome | None]] = OrderedDict()
        #: By the texts of a path and a call after it, what that came to: of sessions elsewhere all, of others the last.
        self._known: OrderedDict[tuple[str, ...], Outcome | None] = OrderedDict()

    def close(self) -> None:
        """Give the sessions back."""
        self.reporter.advance(self.made % HEARD)
        self._first.close()
        for session, _ in self._kept.values():
            if session is not None:
                session.close()
        self._kept.clear()

    def run(self, path: Sequence[Call], call: Call) -> Outcome | None:
        """What a call comes to after a path; ``None`` where a call of the path does not execute."""
        texts = tuple(map(text_of, path))
        key = (*texts, text_of(call))
        if not self._forks:
            if key not in self._known:
                self._known[key] = self._walked(path, call)
            return self._known[key]
        at, _ = self._at(tuple(path), texts)
        if at is None:
            return None
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            self._count()
            return known
        made = self._known[key] = self._make(at.fork(), call)  # type: ignore[attr-defined]
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return made

    def results(self, path: Sequence[Call]) -> list[Any]:
        """The results of a path's calls, as far as they executed."""
        found: list[Any] = []
        if path and not self._forks:
            self.run(path[:-1], path[-1])  # one walk tells all of them
        whole, texts = tuple(path), tuple(map(text_of, path))
        for number in range(len(path)):
            if self._forks:
                outcome = self._at(whole[: number + 1], texts[: number + 1])[1]
            else:
                outcome = self.run(path[:number], path[number])
            if outcome is None or not outcome.executed:
                break
            found.append(outcome.value)
        return found

    def bound(self, calls: Sequence[Call]) -> Bound:
        """The arguments of each call that an earlier one told: see :func:`bindings`."""
        results = self.results(calls[:-1])
        key = tuple(map(text_of, calls))
        known = self._bound.get(key)
        if known is None:
            known = self._bound[key] = bindings(calls, results, self.told_by)
            if len(self._bound) > _REMEMBERED:
                self._bound.popitem(last=False)
        return known

    def _at(self, path: tuple[Call, ...], key: tuple[str, ...]) -> tuple[Session | None, Outcome | None]:
        """The session at the end of a path, which nobody may call, and the outcome of the path's last call; ``key``
        is the texts of its calls."""
        if not path:
            return self._first, None
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        before, _ = self._at(path[:-1], key[:-1])
        here: Session | None = None
        outcome: Outcome | None = None
        if before is not None:
            here = before.fork()  # type: ignore[attr-defined]
            outcome = self._make(here, path[-1])
            if not outcome.executed:
                here = None
        self._kept[key] = here, outcome
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return here, outcome

    def _walked(self, path: Sequence[Call], call: Call) -> Outcome | None:
        """What a call comes to after a path in a fresh session; what the path's calls came to is remembered, too."""
        session = self.environment.open(self.scenario, self.seed)
        texts: tuple[str, ...] = ()
        try:
            for one in path:
                outcome = self._make(session, one)
                texts = (*texts, text_of(one))
                self._known[texts] = outcome
                if not outcome.executed:
                    return None
            return self._make(session, call)
        finally:
            session.close()

    def _make(self, session: Session, call: Call) -> Outcome:
        self._count()
        return made_in_effect(self.environment, session, call)

    def _count(self) -> None:
        if self.left <= 0:
            raise OutOfCalls
        self.left -= 1
        self.made += 1
        if self.made % HEARD == 0:
            self.reporter.advance(HEARD)
