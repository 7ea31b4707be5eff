"""Exposure: what a session knows of its hazards: how often it was called, what was used up, and how it was before.

None of it is state of the world, so none is in the digest; forks take it with them, and a reset begins anew. What is
used up is counted apart for the agent and its user: neither uses up the room of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from callwright.environments.calling import ReadyTool, call_tool
from callwright.environments.hazards.noise import half_of_it, without_a_field
from callwright.environments.hazards.policy import CODES, Fault, Hazards
from callwright.environments.protocol import By, Outcome
from callwright.environments.world import World

_SAID: Final = {
    "unavailable": "the service cannot be reached at the moment; nothing was done, and calling again may work",
    "timeout": "there was no answer in time; whether it was done is not known, so look before you call again",
}
_SAID["lost_reply"] = _SAID["timeout"]


class Exposure:
    """The hazards of one session, and what has come of them."""

    __slots__ = ("_before", "_calls", "_hits", "_pending", "_turn", "_used", "hazards", "lost")

    def __init__(self, hazards: Hazards) -> None:
        self.hazards = hazards
        #: Seconds that the last call took longer than calls do.
        self.lost = 0
        self._turn = 0
        self._calls: dict[str, int] = {}
        self._hits: dict[str, int] = {}
        self._used: dict[tuple[int, str, By], tuple[int, ...]] = {}
        self._before: World | None = None
        self._pending: Fault | None = None

    def __copy__(self) -> Exposure:
        other = Exposure(self.hazards)
        other._turn, other._before = self._turn, self._before
        other._calls, other._hits, other._used = dict(self._calls), dict(self._hits), dict(self._used)
        return other

    def next_turn(self) -> None:
        """The model or its user has another turn: where time stands still, limits begin anew."""
        self._turn += 1

    def call(
        self,
        tools: Mapping[str, ReadyTool],
        name: str,
        arguments: dict[str, Any],
        world: World,
        fault: Callable[[str], Outcome | None] | None,
        moves: bool,
        by: By = "agent",
    ) -> Outcome:
        """As :func:`callwright.environments.calling.call_tool`, where something may go wrong.

        ``fault`` is asked first; ``moves`` says whether time does; ``by`` is who calls one of these tools.
        """
        self.lost, self._pending = 0, None
        tool = tools.get(name)
        now = world.now if moves else None

        def befalling(asked: str) -> Outcome | None:
            answered = fault(asked) if fault is not None else None
            return self._befallen(asked, world, now, by) if answered is None else answered

        writes = tool is not None and not tool.changes_nothing
        earlier = world.fork() if writes and self._looks_back else None
        outcome = call_tool(tools, name, arguments, world, world, None, befalling)
        if earlier is not None and outcome.executed:
            self._before = earlier
        pending = self._pending
        if tool is None or pending is None:
            return outcome
        spoiled = self._spoiled(pending, tool, arguments, outcome, tools, world)
        self._hits[name] = 0 if spoiled is None else self._hits.get(name, 0) + 1
        return outcome if spoiled is None else spoiled

    @property
    def _looks_back(self) -> bool:
        return any(fault.kind == "stale_read" for fault in self.hazards.faults)

    def _befallen(self, name: str, world: World, now: int | None, by: By) -> Outcome | None:
        """What stands in place of a call that fits its schema, if anything does."""
        refused = self._over_a_limit(name, now, by)
        if refused is not None:
            return refused
        hazards = self.hazards
        number = self._calls.get(name, 0)
        self._calls[name] = number + 1
        fault = hazards.hit(world.base.seed, name, number)
        spared = hazards.in_a_row and self._hits.get(name, 0) >= hazards.in_a_row
        if fault is None or spared:
            self._hits[name] = 0
            return None
        if fault.kind not in ("unavailable", "timeout"):
            self._pending = fault  # which shows when the call is over
            return None
        self._hits[name] = self._hits.get(name, 0) + 1
        return self._failed(fault)

    def _failed(self, fault: Fault) -> Outcome:
        if fault.kind != "unavailable":
            self.lost = fault.seconds
        return Outcome("execution_error", None, CODES[fault.kind], _SAID[fault.kind], injected=fault.kind)

    def _spoiled(
        self,
        fault: Fault,
        tool: ReadyTool,
        arguments: dict[str, Any],
        outcome: Outcome,
        tools: Mapping[str, ReadyTool],
        world: World,
    ) -> Outcome | None:
        """The outcome as it arrives; ``None`` where the fault changes nothing of it."""
        if fault.kind == "lost_reply":
            return self._failed(fault)
        name = tool.spec.name
        if not tool.read_only or outcome.kind not in ("ok", "empty"):
            return None
        kind = outcome.kind
        if fault.kind == "stale_read":
            if self._before is None:
                return None
            stale = call_tool(tools, name, arguments, self._before, self._before)
            if stale.kind not in ("ok", "empty") or stale.value == outcome.value:
                return None
            kind = stale.kind
            found = stale.value, "this is how it was before the last change; call again for how it is now"
        else:
            draw = self.hazards.draw(world.base.seed, name, self._calls[name], "field")
            kept = (tool.spec.result_field,) if tool.spec.result_field else ()
            lost = half_of_it(outcome.value)
            if fault.kind == "dropped_fields":
                lost = without_a_field(outcome.value, draw, kept)
            if lost is None:
                return None
            found = lost
        value, said = found
        if fault.silent:
            return Outcome(kind, value, injected=fault.kind)
        return Outcome("partial", value, CODES[fault.kind], said, injected=fault.kind)

    # Limits -----------------------------------------------------------------------------------------------------------

    def _over_a_limit(self, name: str, now: int | None, by: By) -> Outcome | None:
        """The refusal of a call for which a limit has no room; else the call is counted."""
        counted = []
        for place, limit in enumerate(self.hazards.limits):
            group = limit.group(name)
            if group is None:
                continue
            key = place, group, by
            if now is None:
                used = tuple(turn for turn in self._used.get(key, ()) if turn == self._turn)
                when, room = "in a turn", "the next turn has room again"
            else:
                used = tuple(at for at in self._used.get(key, ()) if at > now - limit.seconds)
                when = f"in {limit.seconds} s"
                room = f"there is room again in {used[0] + limit.seconds - now} s" if used else ""
            if len(used) >= limit.calls:
                of = f" of {group}" if group else ""
                said = f"at most {limit.calls} calls{of} {when} are answered; {room}. Nothing was done"
                return Outcome("execution_error", None, CODES["rate_limit"], said, injected="rate_limit")
            counted.append((key, (*used, self._turn if now is None else now)))
        self._used.update(counted)
        return None
