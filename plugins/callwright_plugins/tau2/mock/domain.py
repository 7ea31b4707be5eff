"""What dialogues leave in the domain of ours, as tau2's evaluator finds it out: everything is done again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from callwright.environments.stateful.session import StatefulSession
from callwright.errors import InfrastructureFailure
from callwright_plugins.tau2.mock.hire import ASSERTIONS, environment
from callwright_plugins.tau2.scoring import Call
from callwright_plugins.tau2.source import Left, Recorded


class MockDomain:
    """The bicycle hire."""

    def __init__(self) -> None:
        self.environment: Final = environment()

    def left_together(self, asked: Sequence[Recorded]) -> list[Left | InfrastructureFailure]:
        """What each leaves. Recorded results are not compared: no file of this domain has any."""
        return [self._left(one) for one in asked]

    def _left(self, one: Recorded) -> Left:
        criteria: Mapping[str, Any] = one.task.get("evaluation_criteria") or {}
        predicted = self._done(one.task, one.calls)
        history = [
            Call(call["name"], call["arguments"], message["role"])
            for message in (one.task.get("initial_state") or {}).get("message_history") or ()
            for call in message.get("tool_calls") or ()
        ]
        actions = [
            Call(action["name"], action["arguments"], action.get("requestor", "assistant"))
            for action in criteria.get("actions") or ()
        ]
        gold = self._done(one.task, [*history, *actions])
        held = [
            ASSERTIONS[asked["func_name"]](predicted.world, **asked["arguments"]) is asked.get("assert_value", True)
            for asked in criteria.get("env_assertions") or ()
        ]
        return Left(predicted.snapshot() == gold.snapshot(), all(held))

    def _done(self, task: Mapping[str, Any], calls: Iterable[Call]) -> StatefulSession:
        session = self.environment.open()
        for one in (task.get("initial_state") or {}).get("initialization_actions") or ():
            _make(session, Call(one["func_name"], one["arguments"], one["env_type"]))
        for call in calls:
            _make(session, call)
        return session


def _make(session: StatefulSession, call: Call) -> None:
    made = session.user_call if call.by == "user" else session.call
    made(call.name, dict(call.arguments))
