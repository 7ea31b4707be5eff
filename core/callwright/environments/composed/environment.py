"""Composed environments: the tools of several environments, in sessions that are one.

    desk = cw.compose("email", "calendar")
    session = desk.open("typical", seed=3)
    session.call("list_folders", {})

Names of tools are those of :func:`callwright.offer`: qualified where two parts share them, as they are elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from attrs import frozen

from callwright.capability import has
from callwright.environments.capabilities import (
    Charges,
    HasPeople,
    KeepsAccounts,
    NamesScenarios,
    blocks,
    user_tools_of,
)
from callwright.environments.composed.briefing import written_together
from callwright.environments.composed.scenarios import scenario_of_each, shared_scenarios
from callwright.environments.composed.session import ComposedSession
from callwright.environments.living.policy import ClockPolicy
from callwright.environments.paging import Fit, fit_to
from callwright.environments.people.person import People, drawn, read_people
from callwright.environments.protocol import Briefs, Environment, OutOfProcess, TakesAnything, declares
from callwright.environments.sessions import is_foreign
from callwright.environments.stateful.environment import NOW
from callwright.environments.tool_names import offer
from callwright.errors import NameClash, UnknownName, UsageError
from callwright.pickling import ByName
from callwright.tools.spec import ToolSpec

#: What is found again where an environment was sent to.
_FOUND: Final = ("routes", "_specs", "_names", "user_routes", "_user_specs", "_placed")


class ComposedEnvironment(ByName, Environment):
    """What :func:`callwright.compose` returns: several environments, called ``email+calendar``, as one.

    Parts that are composed themselves are taken apart. ``people`` are those of all parts: a person or several, of whom
    the first is signed in (:class:`callwright.environments.people.person.Person`, or objects of JSON). Left out, they
    are drawn from the seed; with ``"own"`` each part has those of its scenario. ``money`` names the part that is the
    bank, to whose account of the person everything is posted that other parts charge; left out, the first that is one.
    With ``"own"`` no money leaves a part.

    Raises :class:`callwright.UsageError` for fewer than two parts and for one that answers whatever it is asked, and
    :class:`callwright.errors.NameClash` for two of one name.
    """

    def __init__(self, parts: Sequence[Environment], *, people: Any = None, money: str | None = None) -> None:
        self.people: People | Literal["own"] | None = people if people in (None, OWN) else read_people(people)
        self.parts: tuple[Environment, ...] = tuple(
            inner for part in parts for inner in (part.parts if isinstance(part, ComposedEnvironment) else (part,))
        )
        if len(self.parts) < 2:
            raise UsageError("a composed environment has at least two parts")
        names = [part.name for part in self.parts]
        for part in self.parts:
            if names.count(part.name) > 1:
                raise NameClash(f"two parts of a composed environment are named {part.name!r}")
            if declares(part, TakesAnything):
                raise UsageError(
                    f"{part.name!r} answers whatever the arguments are, so it cannot be a part of an environment that "
                    "checks them"
                )
        self.money = money
        self.bank_number = self._bank(money)
        self._check_money()
        self._find()

    def _bank(self, money: str | None) -> int | None:
        """The number of the part that is the bank, if what other parts charge is posted to one."""
        banks = {part.name: number for number, part in enumerate(self.parts) if has(part, KeepsAccounts)}
        if money not in (None, OWN, *banks):
            raise UnknownName("bank among the parts", str(money), [*banks, OWN])
        charged = any(has(part, Charges) for part in self.parts)
        if money == OWN or not banks or not charged:
            return None
        return banks[money] if money else next(iter(banks.values()))

    def _check_money(self) -> None:
        """Money moves between the worlds of one process."""
        for part in self._of_money():
            if declares(part, OutOfProcess):
                raise UsageError(
                    f"{part.name!r} lives in a process of its own, and parts share money in one process: isolate the "
                    'whole, callwright.isolated(callwright.compose(…)), or say money="own"'
                )

    def _of_money(self) -> list[Environment]:
        """The bank and the parts that charge; none if no money is shared."""
        if self.bank_number is None:
            return []
        bank = self.parts[self.bank_number]
        return [part for part in self.parts if part is bank or has(part, Charges)]

    def _find(self) -> None:
        numbers = {id(part): number for number, part in enumerate(self.parts)}
        offered = offer(*self.parts)
        #: By the name of each tool: the number of its part, and its name there.
        self.routes: dict[str, tuple[int, str]] = {
            name: (numbers[id(tool.environment)], tool.original) for name, tool in offered.items()
        }
        self._specs = {name: tool.spec for name, tool in offered.items()}
        self._names: dict[str, dict[str, str]] = {part.name: {} for part in self.parts}
        for name, (number, original) in self.routes.items():
            self._names[self.parts[number].name][name] = original
        self.user_routes, self._user_specs = self._of_users()
        for name, (number, original) in self.user_routes.items():
            self._names[self.parts[number].name].setdefault(name, original)
        self._placed: dict[tuple[str | None, float | None], Environment] = {}

    def _of_users(self) -> tuple[dict[str, tuple[int, str]], dict[str, ToolSpec]]:
        """The tools of users, named as those of agents are."""
        theirs = [_OfUsers(part.name, user_tools_of(part)) for part in self.parts]
        numbers = {id(part): number for number, part in enumerate(theirs)}
        offered = offer(*theirs)  # type: ignore[arg-type]
        routes = {name: (numbers[id(tool.environment)], tool.original) for name, tool in offered.items()}
        return routes, {name: tool.spec for name, tool in offered.items()}

    @property
    def user_tools(self) -> Mapping[str, ToolSpec]:
        """The tools of the user of an episode: :meth:`.ComposedSession.user_call` runs them."""
        return self._user_specs

    def names_in(self, part: str) -> Callable[[str], str | None]:
        """What gives the name of a tool in a part, of an agent or a user; ``None`` for tools of other parts."""
        return self._names[part].get

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in _FOUND}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._find()

    @property
    def name(self) -> str:
        """The names of the parts: ``email+calendar``. A registry knows the environment by it, too."""
        return "+".join(part.name for part in self.parts)

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """The visible tools of all parts, as :func:`callwright.offer` names them."""
        return self._specs

    @property
    def pure(self) -> bool:
        """Whether all parts are."""
        return all(part.pure for part in self.parts)

    @property
    def foreign(self) -> bool:
        """Whether code that is not part of this distribution runs here, in this process."""
        return any(is_foreign(part) for part in self.parts)

    @property
    def blocking(self) -> bool:
        """Whether a call may wait for something outside of this process."""
        return any(blocks(part) or declares(part, OutOfProcess) for part in self.parts)

    def placed(self, isolation: str | None, time_limit: float | None) -> Environment:
        """The same with its foreign parts in processes (:func:`callwright.environments.isolated.placing.place`).

        Parts that share money stay together: where one of them is foreign, the whole lives in a process.
        """
        key = isolation, time_limit
        known = self._placed.get(key)
        if known is None:
            known = self._placed[key] = self._place(isolation, time_limit)
        return known

    def fitted(self, fit: Fit) -> ComposedEnvironment:
        """The same with results and listings of all parts that fit a model with little room
        (:class:`callwright.environments.paging.Fit`). Raises :class:`callwright.UsageError` for a part that cannot.
        """
        return self._of([fit_to(part, fit) for part in self.parts])

    def _place(self, isolation: str | None, time_limit: float | None) -> Environment:
        from callwright.environments.isolated.placing import place

        together = self._of_money()
        if any(is_foreign(part) for part in together):
            whole = place(self, isolation, time_limit)
            if whole is not None:
                return whole
        moved = {
            part.name: place(part, isolation, time_limit)
            for part in self.parts
            if is_foreign(part) and part not in together
        }
        parts = [moved.get(part.name) or part for part in self.parts]
        same = all(one is other for one, other in zip(parts, self.parts, strict=True))
        return self if same else self._of(parts)

    def _of(self, parts: Sequence[Environment]) -> ComposedEnvironment:
        return ComposedEnvironment(parts, people=self.people, money=self.money)

    # Sessions ---------------------------------------------------------------------------------------------------------

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The names of the scenarios that all parts have which have any."""
        return shared_scenarios(self.parts)

    def open(self, scenario: str = "", seed: int = 0) -> ComposedSession:
        """A fresh session. Its parts are opened when they are first needed.

        ``scenario`` and ``seed`` are those of all parts, or ``"email=typical,calendar=sparse@3"``, in which parts that
        are not named have their first scenario and ``@3`` is a seed of its own. All parts begin at one time: the latest
        of those at which their scenarios begin. Time moves by the first of the parts whose scenario has a clock.

        Raises :class:`callwright.errors.UnknownName` for a scenario that a part does not have.
        """
        return ComposedSession(self, scenario, seed)

    def opens(self, scenario: str, seed: int) -> tuple[tuple[str, int], ...]:
        """Scenario and seed of each part. Raises as :meth:`open`."""
        return scenario_of_each(self.parts, scenario, seed)

    def people_of(self, seed: int) -> People | None:
        """Who is signed in everywhere in sessions of this seed, and whom they know; ``None``: each part has its own."""
        if self.people is None:
            takes = any(has(part, HasPeople) for part in self.parts)
            return drawn(seed) if takes else None
        return self.people if isinstance(self.people, People) else None

    def begins(self, opens: Sequence[tuple[str, int]]) -> int:
        """When sessions of these scenarios begin (seconds of the Unix clock, UTC)."""
        times = [scenario.now for scenario in self._scenarios(opens)]
        return max(times, default=NOW)

    def clock_of(self, opens: Sequence[tuple[str, int]]) -> ClockPolicy | None:
        """How time moves in sessions of these scenarios, unless a task says otherwise."""
        clocks: list[ClockPolicy] = [found.clock for found in self._scenarios(opens) if found.clock is not None]
        return clocks[0] if clocks else None

    def _scenarios(self, opens: Sequence[tuple[str, int]]) -> list[Any]:
        found = []
        for part, (scenario, _) in zip(self.parts, opens, strict=True):
            known = part.scenarios if has(part, NamesScenarios) else None
            if isinstance(known, Mapping) and known:
                stated = known.get(scenario or next(iter(known)))
                if hasattr(stated, "now"):
                    found.append(stated)
        return found

    @property
    def briefs(self) -> bool:
        """Whether a part has anything to tell."""
        return any(declares(part, Briefs) and part.briefs for part in self.parts)  # type: ignore[attr-defined]

    def briefing(self, session: ComposedSession) -> str:
        """What a model is told of a session as it is now: roles, who is signed in, one time, and the rules of each."""
        return written_together(session) if self.briefs else ""


@frozen
class _OfUsers:
    """What a part has for users, to be named with others."""

    name: str
    tools: Mapping[str, ToolSpec]


#: In place of people: each part has those that its scenario drew.
OWN: Final = "own"
