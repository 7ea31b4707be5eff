"""Making a log of what a file tells: a conversation, which tools there were, and what is known of each call.

What a file does not say is not guessed. A format with a flag for errors tells what came of a call; without one the text
alone does not, unless it is in the words in which Callwright itself tells outcomes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from callwright.environments.protocol import Outcome
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.logged import Logged
from callwright.episodes.logs.world import UnknownWorld
from callwright.errors import DataError
from callwright.language.messages import Message, ToolCall
from callwright.language.parser import DEFAULT_LIMITS
from callwright.language.strict_json import decode
from callwright.tools.spec import ToolSpec
from callwright.walk.tasks import Answer, Task

_TOLD: Final = ({"result"}, {"error"}, {"result", "warning"})
_ANYTHING: Final = {"type": "object", "properties": {}, "additionalProperties": True}


def outcome_of(text: str, failed: bool | None, code: str = "") -> Outcome:
    """What a text says that came of a call. ``failed`` is the format's own flag; ``None`` where it has none.

    Without a flag only the words of :func:`callwright.environments.tell` are believed; any other text is ``unknown``.
    """
    value = _json(text)
    if failed is None:
        return _told(value) or Outcome("unknown", None, "not_flagged", "the log does not say whether the call failed")
    if failed:
        told = _told(value)
        if told is not None and told.failed:
            return told
        return Outcome("execution_error", None, code or "error", text)
    told = _told(value)
    return told if told is not None and not told.failed else Outcome("ok", value)


def _told(value: Any) -> Outcome | None:
    """The outcome of a text in our own words."""
    if not isinstance(value, dict):
        return None
    members = {key: one for key, one in value.items() if key not in ("id", "name", "notices")}
    if set(members) not in _TOLD:
        return None
    notices = tuple(map(str, value.get("notices") or ()))
    said = members.get("error", members.get("warning", {}))
    if not isinstance(said, Mapping):
        return None
    code, message = str(said.get("code", "")), str(said.get("message", ""))
    if "error" not in members:
        kind: Any = "partial" if "warning" in members else "empty" if members["result"] in (None, [], {}) else "ok"
        return Outcome(kind, members["result"], code, message, notices=notices)
    known = code if code in ("unknown_tool", "refused", "infrastructure_error") else "execution_error"
    return Outcome(known, None, code, message, notices=notices)  # type: ignore[arg-type]


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def recorded_log(
    name: str,
    messages: Sequence[Message],
    tools: Mapping[str, ToolSpec],
    outcomes: Mapping[str, Outcome] | None = None,
    *,
    order: Iterable[str] = (),
    findings: Iterable[str] = (),
) -> Log:
    """The log of a conversation. ``outcomes`` are what the file says of calls, by their ids; ``order`` are ids of calls
    in the order in which they ran, where it says that.

    A call of which it says nothing gets what its result says in our own words, else stays ``unknown``. Where no tool is
    known, nothing can be said of names and arguments: the attempt is masked.
    """
    calls = [call for message in messages if message.role == "assistant" for call in message.tool_calls]
    results = {message.tool_call_id: message for message in messages if message.role == "tool"}
    known = dict(outcomes or {})
    ranks = {call_id: number for number, call_id in enumerate(order)}
    logged: list[Logged] = []
    for call in sorted(calls, key=lambda one: ranks.get(one.id, len(ranks))):
        outcome = known.get(call.id)
        if outcome is None and call.id in results:
            outcome = outcome_of(results[call.id].text, None)
        arguments = _arguments(call)
        if outcome is not None and outcome.kind != "unknown" and arguments is not None:
            logged.append(Logged(len(logged), call.name, arguments, outcome, call.id))
    found = list(findings)
    offered = dict(tools)
    masked = None
    if not offered and calls:
        masked = "the log does not say which tools were offered; give them (tools=, --tools FILE)"
        offered = {call.name: ToolSpec(call.name, parameters=dict(_ANYTHING)) for call in calls}
    unknown = len(calls) - len(logged)
    if unknown:
        found.append(f"what came of {unknown} of {len(calls)} calls is not in the file: rewards that need it abstain")
    query = next((message.text for message in messages if message.role == "user"), "")
    task = Task(name, query, offered, Answer(), UnknownWorld(offered))
    return Log.recorded(task, logged, messages, findings=found, masked=masked)


def _arguments(call: ToolCall) -> dict[str, Any] | None:
    read = decode(call.arguments.strip() or "{}", 0, DEFAULT_LIMITS.nesting)
    return read if isinstance(read, dict) else None


def specs_of(given: Any, where: str = "the tools") -> dict[str, ToolSpec]:
    """Tools as files state them: OpenAI's functions, flat or not, or the answer of MCP's ``tools/list``.

    Raises :class:`callwright.errors.DataError` for what is neither.
    """
    listed = given.get("tools", given) if isinstance(given, Mapping) else given
    if isinstance(listed, Mapping):
        listed = list(listed.values())
    if not isinstance(listed, list | tuple):
        raise DataError(f"{where}: expected a list of tools, found {type(listed).__name__}")
    specs = {}
    for number, one in enumerate(listed):
        if not isinstance(one, Mapping):
            raise DataError(f"{where}: tool {number} is {type(one).__name__}, expected an object")
        try:
            if "inputSchema" in one:
                spec = ToolSpec.from_mcp(one)
            else:
                function = one.get("function", one)
                spec = ToolSpec.from_openai({"type": "function", "function": function})
        except (DataError, KeyError, TypeError) as error:
            raise DataError(f"{where}: tool {number}: {error}") from error
        specs[spec.name] = spec
    return specs
