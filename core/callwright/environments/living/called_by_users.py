"""Sessions in which users act, too: by tools of their own, on the same world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.environments.calling import OneThread, ReadyTool, call_tool, in_use
from callwright.environments.living.policy import ClockPolicy
from callwright.environments.protocol import Outcome
from callwright.environments.undeclared import account_of
from callwright.environments.world import World
from callwright.errors import CallwrightError, ComponentError, UsageError


class CalledByUsers(OneThread):
    """What a session over a world does for its user. A class with it gives it the rest of its attributes."""

    __slots__ = ()
    #: Its ``user_entries`` are the tools of users, made ready.
    environment: Any
    world: World
    _clock: ClockPolicy | None
    _closed: bool

    def user_call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """A call of the user, by a tool that no agent is offered; as a call of the agent otherwise.

        It takes its time where the clock moves. What the person is told meanwhile stays for the agent to read.
        """
        if self._closed:
            raise UsageError(f"the session of {self.environment.name!r} is closed")
        entries: Mapping[str, ReadyTool] = self.environment.user_entries
        if not self._turn.acquire(False):
            raise in_use()
        try:
            outcome = call_tool(entries, tool, arguments, self.world, self.world)
            if self._clock is not None and outcome.kind != "unknown_tool":
                self.let_pass(self._clock.of_call(self.world.now))
            return outcome
        except CallwrightError:
            raise
        except Exception as error:
            raise ComponentError(
                f"{account_of(tool, error)}\nThis is a bug of the environment {self.environment.name!r}"
            ) from error
        finally:
            self._turn.release()

    def let_pass(self, seconds: int) -> None:
        """Let time pass in the midst of a call."""
        raise NotImplementedError

    def tell_time(self) -> int:
        """The time in the world, in seconds since 1970 (UTC)."""
        return self.world.now
