"""Environments, sessions and outcomes: where calls are executed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, runtime_checkable

from attrs import field, frozen

from callwright.errors import Abstention
from callwright.tools.spec import ToolSpec

if TYPE_CHECKING:
    from callwright.environments.hazards.policy import Hazards
    from callwright.environments.living.policy import ClockPolicy
    from callwright.environments.paging import Fit

OutcomeKind = Literal[
    "ok",
    "empty",
    "partial",
    "unknown_tool",
    "schema_error",
    "execution_error",
    "refused",
    "unknown",
    "infrastructure_error",
]
#: Who makes a call: the model, or the user of an episode by tools of its own.
By = Literal["agent", "user"]
#: The kinds that count as a call that executed. ``empty`` and ``partial`` are results; an environment that lets a
#: documented error be the right answer of a task reports it as ``ok`` with the error as its value.
EXECUTED: frozenset[str] = frozenset({"ok", "empty", "partial"})
#: The kinds that count as a call that failed. ``unknown`` (a log does not say what came of the call) and
#: ``infrastructure_error`` are in neither set: nothing can be held for or against the model.
FAILED: frozenset[str] = frozenset({"unknown_tool", "schema_error", "execution_error", "refused"})


@frozen(slots=False)  # which attrs makes faster, and one is made for every call
class Outcome:
    """What one call came to: a kind, the value (JSON), and for failures a stable code and a sentence.

    ``undeclared`` is empty unless the tool raised what it does not declare. Then it names the tool, the exception and
    the functions that it came through. It is for the owner of the tool: no model is told of it.

    ``notices`` are what the person whose session it is was told until now, in the order in which it happened: a parcel
    arrived, a bid was beaten. The model reads them with the outcome.

    ``injected`` names the hazard of the session that befell the call (:mod:`callwright.environments.hazards`): what is
    wrong with the outcome is not the model's doing. It is for rewards and reports: no model is told of it.
    """

    kind: OutcomeKind
    value: Any = None
    code: str = ""
    message: str = ""
    undeclared: str = field(default="", eq=False, repr=False)
    notices: tuple[str, ...] = field(default=(), repr=False)
    injected: str = field(default="", repr=False)

    @property
    def executed(self) -> bool:
        """Whether the call ran and returned a result.

        Raises :class:`callwright.errors.Abstention` for the kind ``unknown``: neither answer would be true.
        """
        if self.kind in EXECUTED:
            return True
        if self.kind == "unknown":
            raise Abstention(f"whether this call executed is not known: {self.message or 'there is no record of it'}")
        return False

    @property
    def failed(self) -> bool:
        """Whether the call failed, by the model's doing or the tool's."""
        return self.kind in FAILED


@runtime_checkable
class Session(Protocol):
    """One isolated world, opened from a scenario and a seed.

    A failed call leaves it unchanged, but for what a ``refused`` one counts, and what one did whose reply a hazard
    lost. A session is for one thread at a time.
    """

    __slots__ = ()

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Execute one call. Bad arguments are an outcome, not an exception.

        Raising :class:`callwright.InfrastructureFailure` masks the sample, :class:`callwright.errors.SessionInUse` and
        :class:`callwright.errors.ComponentError` stop the run. Any other exception is taken as the tool's own failure:
        an ``execution_error`` that is marked as undeclared.
        """

    def digest(self) -> str:
        """A hash of the whole state: equal states have equal digests, on every machine."""

    def close(self) -> None:
        """Give back what the session holds. Closing twice is allowed."""


@runtime_checkable
class Environment(Protocol):
    """A set of tools, and the sessions in which they run."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The registered, versioned name."""

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """Every tool by name."""

    @property
    def pure(self) -> bool:
        """True if no tool changes its arguments or hands out a value that it changes later.

        Execution then passes values without copying them.
        """

    def open(self, scenario: str = "", seed: int = 0) -> Session:
        """A fresh session. The same scenario and seed always give the same digest."""


@runtime_checkable
class TakesAnything(Protocol):
    """An environment that answers whatever the arguments are: an echo, or a record of what others answered.

    Any other one says ``schema_error`` to arguments that do not fit a tool's schema.
    """

    @property
    def takes_anything(self) -> Literal[True]:
        """True: the schemas of its tools are for models and validation; calls are not held against them."""


@runtime_checkable
class FitsLittleRoom(Protocol):
    """An environment that can make its results and listings fit a model with little room."""

    def fitted(self, fit: Fit) -> Environment:
        """The same environment, whose worlds, digests and effects are the same, with results and listings that fit."""


@runtime_checkable
class BoundsResults(Protocol):
    """A session whose results are within :data:`callwright.environments.sizes.MOST_VALUE`.

    It bounds them itself, or can answer nothing larger; they are not measured again.
    """

    __slots__ = ()

    @property
    def bounds_results(self) -> Literal[True]:
        """True: no result is larger than that."""


@runtime_checkable
class TellsGoalState(Protocol):
    """A session that tells what it has come to, for rewards that compare end states.

    Without it two sessions have come to the same if their digests are equal.
    """

    __slots__ = ()

    def goal_state(self) -> Any:
        """JSON without what is no goal: logs, counters, stamps, and ids where they mean nothing.

        States of rows are renamed (:mod:`callwright.environments.goals`); any other JSON is compared path by path.
        """


@runtime_checkable
class ChecksGoals(Protocol):
    """A session that holds what it has come to against a goal by itself: one of rows, which knows the rest of them."""

    __slots__ = ()

    def check_goal(self, goal: Mapping[str, Any]) -> Any:
        """What a goal (:class:`callwright.environments.goals.Goal` as JSON) comes to here.

        Returns a :class:`callwright.environments.goals.Comparison`, and raises :class:`callwright.errors.DataError` for
        a goal that cannot be read or is not of this environment.
        """


@runtime_checkable
class ChecksAnswers(Protocol):
    """A session whose verdict on a goal hears what the agent said in the end, too: the answer is part of the goal.

    It is asked this in place of ``check_goal`` once an attempt is over, and nothing where nobody knows what was said.
    """

    __slots__ = ()

    def check_answer(self, goal: Mapping[str, Any], answer: str) -> Any:
        """What a goal comes to here after an agent that ended with these words; empty if it ended with calls.

        Returns and raises what ``check_goal`` does (:class:`ChecksGoals`).
        """


@runtime_checkable
class Knows(Protocol):
    """A session that says what its users know and no tool tells (:mod:`callwright.environments.knowledge`)."""

    __slots__ = ()

    def knowledge(self, entity: str = "me") -> Mapping[str, Any]:
        """What somebody knows: JSON by name; empty for whoever is not known. Asking changes nothing.

        ``"me"`` is the user whose session it is. The same scenario and seed always begin with the same knowledge.
        """


@runtime_checkable
class KeepsTime(Protocol):
    """An environment that ends by itself what takes longer than its own limits: no clock is put around its sessions."""

    __slots__ = ()

    @property
    def keeps_time(self) -> Literal[True]:
        """True: whatever is asked of its sessions has an answer in time."""


@runtime_checkable
class MovesTime(Protocol):
    """A session whose clock can move between calls (:mod:`callwright.environments.living`)."""

    __slots__ = ()

    def keep_time(self, policy: ClockPolicy | None) -> None:
        """Let time move by a policy from now on; ``None`` lets it stand still."""

    def user_turn(self) -> None:
        """Let a turn of the user pass. Nothing happens where time stands still."""

    def elapse(self, seconds: int) -> None:
        """Let time pass: "two hours later"."""


@runtime_checkable
class ServesUsers(Protocol):
    """A session that the user of an episode acts in, too, by tools of its own (:mod:`callwright.walk.users`).

    Its environment names them by a property ``user_tools``: specs by name, of which no agent is told.
    """

    __slots__ = ()

    def user_call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Execute one call of the user. As :meth:`Session.call` otherwise."""


@runtime_checkable
class TellsTime(Protocol):
    """A session that knows how late it is."""

    __slots__ = ()

    def tell_time(self) -> int:
        """The time in the world, in seconds since 1970 (UTC)."""


@runtime_checkable
class SharesClock(Protocol):
    """A session whose time somebody else can keep, together with that of others: a composed session does."""

    __slots__ = ()

    def next_due(self) -> int | None:
        """When something falls due next (seconds of the Unix clock; it may be overdue); ``None``: never."""

    def live_until(self, moment: int) -> tuple[str, ...]:
        """Let time pass until then, and everything happen that falls due; what the signed-in person is told."""

    def wait_until(self, moment: int) -> None:
        """Set the clock: nothing happens."""

    def timeless_digest(self) -> str:
        """A hash of the whole state but for the clock."""


@runtime_checkable
class PlacesParts(Protocol):
    """An environment of several, of which some may have to live in processes of their own."""

    __slots__ = ()

    def placed(self, isolation: str | None, time_limit: float | None) -> Environment:
        """The same with its foreign parts in processes, as :func:`callwright.environments.isolated.placing.place`."""


@runtime_checkable
class MeetsHazards(Protocol):
    """A session whose calls can go wrong by no doing of the model (:mod:`callwright.environments.hazards`)."""

    __slots__ = ()

    def meet_hazards(self, hazards: Hazards | None) -> None:
        """Let these hold from now on, as in a session that begins; ``None`` are none."""

    def next_turn(self) -> None:
        """The model has another turn: what is limited by turns begins anew."""


@runtime_checkable
class OutOfProcess(Protocol):
    """An environment whose sessions live outside of this process already: in others, or on a server."""

    __slots__ = ()

    @property
    def out_of_process(self) -> Literal[True]:
        """True: isolation leaves it as it is."""


@runtime_checkable
class Disposable(Protocol):
    """An environment that lives elsewhere and says whether what its sessions do there is thrown away with them.

    Where it is not, tools that destroy something are called only by whoever allows it.
    """

    @property
    def disposable(self) -> bool:
        """True: each session has a place of its own (a scratch folder, a state by its key) that ends with it."""


@runtime_checkable
class Suggests(Protocol):
    """An environment that says what to write where its tools take free text.

    ``suggestions`` is a :class:`callwright.environments.knowledge.suggestions.Suggestions`, or ``None``.
    """

    @property
    def suggestions(self) -> Any:
        """Templates of texts, with gaps for what results told."""


@runtime_checkable
class HoldsTools(Protocol):
    """An environment of tools that are given to it: whose code runs there is their matter, not that of its own class.

    Any other one is as foreign as its class: not part of this distribution.
    """

    __slots__ = ()

    @property
    def foreign(self) -> bool:
        """Whether a tool is code that is not part of this distribution."""


@runtime_checkable
class Briefs(Protocol):
    """An environment that has something to tell a model before its first call: rules, the time, whom it serves.

    Prompts hold it, and so do the instructions of an MCP server.
    """

    __slots__ = ()

    @property
    def briefs(self) -> bool:
        """Whether there is anything to tell. Where not, no session is opened to ask."""

    def briefing(self, session: Session) -> str:
        """What is told of a session of this environment as it is now: plain text, without a line break at its end."""


_declared: Final[dict[tuple[type[Any], type[Any]], bool]] = {}


def declares(value: Environment | Session, capability: type[Any]) -> bool:
    """Whether a value has a capability, one of the protocols above. Its class declares it, so it is looked for once."""
    key = type(value), capability
    known = _declared.get(key)
    if known is None:
        known = _declared[key] = isinstance(value, capability)
    return known
