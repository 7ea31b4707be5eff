"""Sessions whose time moves: between calls, with turns of the user, and by jumps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import evolve

from callwright.environments.calling import call_tool, in_use
from callwright.environments.hazards.meeting import MeetingHazards
from callwright.environments.living.events import LAST
from callwright.environments.living.passing import most_told, pass_time
from callwright.environments.living.policy import ClockPolicy
from callwright.environments.people.person import People
from callwright.environments.protocol import By, Outcome
from callwright.environments.world import World
from callwright.errors import UsageError


class MovingTime(MeetingHazards):
    """What a session over a world does with time. A class with it gives it the rest of its attributes."""

    __slots__ = ("_clock", "_notices", "_user_turns")
    #: Its ``entries`` are the tools, its ``user_entries`` those of users, its ``events`` what time brings.
    environment: Any
    world: World
    _clock: ClockPolicy | None
    _notices: tuple[str, ...]
    _user_turns: int

    def __getstate__(self) -> dict[str, Any]:
        names = (*MeetingHazards.__slots__, *MovingTime.__slots__, *type(self).__slots__)
        return {name: getattr(self, name) for name in names}

    @property
    def now(self) -> int:
        """The session's time, in seconds of the Unix clock (UTC)."""
        return self.world.now

    @property
    def clock(self) -> ClockPolicy | None:
        """How time moves; ``None``: it stands still."""
        return self._clock

    def keep_time(self, policy: ClockPolicy | None) -> None:
        """Let time move by a policy from now on; ``None`` lets it stand still."""
        self._clock = policy

    def user_turn(self) -> None:
        """Let a turn of the user pass. Nothing happens where time stands still."""
        clock = self._clock
        if clock is None:
            return
        number, self._user_turns = self._user_turns, self._user_turns + 1
        self.elapse(clock.of_user_turn(self.now, number))

    def elapse(self, seconds: int) -> None:
        """Let time pass: "two hours later". What falls due happens; the next outcome tells it.

        Raises :class:`callwright.UsageError` for a negative number, and where time stands still.
        """
        if self._clock is None:
            raise UsageError("time stands still in this session; name a clock first: session.keep_time(ClockPolicy())")
        if type(seconds) is not int or seconds < 0:
            raise UsageError(f"time passes in whole seconds and does not run backwards: {seconds!r:.80}")
        turn = self._turn
        if not turn.acquire(False):
            raise in_use()
        try:
            self.let_pass(seconds)
        finally:
            turn.release()

    def let_pass(self, seconds: int) -> None:
        """As :meth:`elapse`, for helpers: they run in the midst of a call. A clock that stands still is only set."""
        if self._clock is not None:
            told = pass_time(self.world, self.environment.events, seconds)
            if told:
                self._notices = (*self._notices, *told)
            return
        self.world.begin(read_only=False)
        self.world.advance(seconds)
        self.world.end()

    def call_with_care(
        self,
        tool: str,
        arguments: dict[str, Any],
        fault: Callable[[str], Outcome | None] | None,
        by: By = "agent",
    ) -> Outcome:
        """A call that takes time, or of which something may go wrong. ``fault`` may answer in place of a valid one.

        What happened meanwhile is told to the agent with its next call, if this one is ``by`` the user.
        """
        world, turn, exposure, clock = self.world, self._turn, self._exposure, self._clock
        environment = self.environment
        tools = environment.entries if by == "agent" else environment.user_entries
        if not turn.acquire(False):
            raise in_use()
        try:
            if exposure is None:
                outcome = call_tool(tools, tool, arguments, world, world, None, fault)
            else:
                outcome = exposure.call(tools, tool, arguments, world, fault, clock is not None, by)
            if clock is None or outcome.kind == "unknown_tool":
                return outcome
            lost = 0 if exposure is None else exposure.lost
            self.let_pass(clock.of_call(world.now) + tools[tool].spec.latency + lost)
            if by == "user":
                return outcome
            notices = self.take_notices()
            return evolve(outcome, notices=most_told(notices)) if notices else outcome
        finally:
            turn.release()

    def take_notices(self) -> tuple[str, ...]:
        """What the signed-in person was told and no outcome has handed on; whoever takes it hands it on."""
        notices, self._notices = self._notices, ()
        return notices

    # For whoever makes one session of several

    def introduce(self, people: People) -> None:
        """Begin with these people in place of those of the scenario, as far as the environment says whom its rows name.

        A reset leads back to them; one to another scenario to the people of that.
        """
        if self._turn.locked():
            raise in_use()
        base = self.world.base
        if base.origin is not None and self.environment.people is not None:
            self.world = World(self.environment.base(*base.origin[1][1:3], people))  # type: ignore[misc]

    def next_due(self) -> int | None:
        """When something falls due next (it may be overdue); ``None``: never, as things are."""
        stands = self.world.now, LAST
        moments = [kind.due(self.world, stands) for kind in self.environment.events]
        return min((moment[0] for moment in moments if moment is not None), default=None)

    def live_until(self, moment: int) -> tuple[str, ...]:
        """Let time pass until then, and everything happen that falls due; what the signed-in person is told."""
        return tuple(pass_time(self.world, self.environment.events, max(0, moment - self.world.now)))

    def wait_until(self, moment: int) -> None:
        """Set the clock where nothing falls due until then, or where time stands still."""
        if moment > self.world.now:
            self.world.begin(read_only=False)
            self.world.advance(moment - self.world.now)
            self.world.end()

    def timeless_digest(self) -> str:
        """A hash of the whole state but for the clock."""
        return self.world.timeless_digest()
