"""The session of a rollout in which verifiers leads the conversation and the model's calls come one by one."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from callwright.environments.protocol import Session
from callwright.episodes.results import describe_step
from callwright.language.program import Call, Program
from callwright.pipeline import event_caller
from callwright.plugins import default_registry
from callwright.walk.tasks import Task
from callwright_plugins.verifiers_bridge.scoring import CONDITIONS


class RolloutSession:
    """A task's session, in the world in which the rollout is scored: with its clock and hazards, isolated as it is.

    It is opened for the first call, unless it is given (``session``). ``masked`` is why nothing is known of the
    rollout: the session failed, and not the model.
    """

    def __init__(self, task: Task, session: Session | None = None) -> None:
        conditions = evolve(CONDITIONS, caller=event_caller(default_registry()))
        self._execution = conditions.execution(task, session=session)
        self._calls = 0
        self.masked: str | None = None

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Execute a call; the result is the JSON that every rollout of Callwright shows."""
        trace = self._execution.run(Program((Call(0, tool, arguments),)))
        self.masked = self.masked or trace.masked
        number, self._calls = self._calls, self._calls + 1
        return describe_step(evolve(trace.records[0], call=number))

    def close(self) -> None:
        """Give the session back."""
        self._execution.close()
