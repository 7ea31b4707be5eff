"""A log as a trajectory of the Agent Trajectory Interchange Format, version 1.7."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright import __version__
from callwright.episodes.logs.log import Log
from callwright.language.messages import Message, ToolCall
from callwright.language.parser import DEFAULT_LIMITS
from callwright.language.strict_json import decode
from callwright.walk.reward import Reward


def trajectory_of(log: Log, reward: Reward | None = None) -> dict[str, Any]:
    """The trajectory. Results stand in the step of their calls; a reward and what the log found go to ``extra``."""
    results = {message.tool_call_id: message for message in log.messages if message.role == "tool"}
    steps: list[dict[str, Any]] = []
    for message in log.messages:
        if message.role == "tool":
            continue
        step: dict[str, Any] = {"step_id": len(steps) + 1, "source": _source(message), "message": message.text}
        if message.role == "assistant":
            if message.thought:
                step["reasoning_content"] = message.thought
            if message.tool_calls:
                step["tool_calls"] = [_call(call) for call in message.tool_calls]
                found = [
                    {"source_call_id": call.id, "content": results[call.id].text}
                    for call in message.tool_calls
                    if call.id in results
                ]
                if found:
                    step["observation"] = {"results": found}
        steps.append(step)
    extra: dict[str, Any] = {"findings": list(log.findings())}
    if reward is not None:
        extra["reward"] = {"total": reward.total, "masked": reward.masked, "why": reward.explain()}
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": log.task.id,
        "agent": {
            "name": "callwright",
            "version": __version__,
            "tool_definitions": [spec.to_openai() for spec in log.task.tools.values()],
        },
        "steps": steps,
        "extra": extra,
    }


def _source(message: Message) -> str:
    return {"assistant": "agent", "user": "user"}.get(message.role, "system")


def _call(call: ToolCall) -> Mapping[str, Any]:
    """A call. Arguments are an object in this format: what is none stands under ``unreadable``, as it was written."""
    read = decode(call.arguments.strip() or "{}", 0, DEFAULT_LIMITS.nesting)
    arguments = read if isinstance(read, dict) else {"unreadable": call.arguments}
    return {"tool_call_id": call.id, "function_name": call.name, "arguments": arguments}
