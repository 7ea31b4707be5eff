"""Reading what OpenEnv servers say: their schemas and listings as tools, their observations as outcomes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from callwright.environments.protocol import Outcome
from callwright.environments.telling import as_text
from callwright.errors import DataError
from callwright.language.shortening import shortened
from callwright.tools.schema_dialects import inline_definitions
from callwright.tools.spec import ToolSpec
from callwright_plugins.openenv_bridge.wire import TOOLS, Stepped, outcome_from_wire, tool_from_said

_LONGEST_MESSAGE: Final = 2000
_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_-]+")
#: What is written beside the fields of an action or an observation, and is not for models.
_METADATA: Final = "metadata"
#: Words by which FastMCP and pydantic refuse arguments. OpenEnv's own ``invalid_args`` is a guess from the message,
#: which any failure that mentions an argument meets.
_INVALID: Final = re.compile(
    r"validation errors? for|input validation error|unexpected keyword argument|missing \d+ required", re.IGNORECASE
)
OVER: Final = "The episode is over."


# Actions --------------------------------------------------------------------------------------------------------------


def calls_tools(action: Mapping[str, Any]) -> bool:
    """Whether a schema of actions is that of OpenEnv's ``list_tools`` and ``call_tool``, alone or among others.

    The base class of all actions, which says nothing, is taken for it: its server reads both by their ``type``.
    """
    text = json.dumps(action)
    if '"call_tool"' in text or '"list_tools"' in text:
        return True
    return not [name for name in action.get("properties") or {} if name != _METADATA]


def about_environment(metadata: Mapping[str, Any]) -> str:
    """What an environment says of itself; empty where that is but OpenEnv's default, the name of its class."""
    said = str(metadata.get("description") or "")
    return "" if said == f"{metadata.get('name')} environment" else said


def action_tool(action: Mapping[str, Any], name: str, about: str) -> ToolSpec:
    """The one tool of an environment whose action is an object: its fields are the parameters.

    ``about`` is what the environment says of itself. Raises :class:`callwright.errors.DataError` for a schema that is
    no object's or not valid.
    """
    schema = inline_definitions(action)
    if schema.get("type", "object") != "object":
        raise DataError(f"the environment's action is of the type {schema.get('type')!r}; a tool needs an object")
    properties = {key: value for key, value in (schema.get("properties") or {}).items() if key != _METADATA}
    parameters = {key: value for key, value in schema.items() if key not in ("title", "description")}
    parameters["properties"] = properties
    parameters["required"] = [key for key in schema.get("required") or [] if key != _METADATA]
    described = "\n".join(text for text in (about, str(schema.get("description") or "")) if text)
    return _usable(ToolSpec(name, described, parameters))


def listed_tools(observation: Mapping[str, Any]) -> tuple[dict[str, ToolSpec], dict[str, str], bool]:
    """The tools of a listing by the names that models are offered, the servers' own names, and whether they are ours.

    Raises :class:`callwright.errors.DataError` for a listing that failed, or a schema that is not valid.
    """
    metadata = observation.get(_METADATA)
    metadata = metadata if isinstance(metadata, Mapping) else {}
    listed = observation.get("tools")
    if not isinstance(listed, list) or (not listed and metadata.get("error")):
        why = metadata.get("error") or observation.get("error") or "it has no 'tools'"
        raise DataError(f"the environment does not list its tools: {shortened(str(why), _LONGEST_MESSAGE)}")
    said = metadata.get(TOOLS)
    ours = isinstance(said, Mapping)
    found: dict[str, ToolSpec] = {}
    originals: dict[str, str] = {}
    for tool in listed:
        original = str(tool.get("name", ""))
        name = _free(_ILLEGAL.sub("_", original)[:64] or "tool", found)
        given = tool.get("input_schema", tool.get("inputSchema"))
        schema = inline_definitions(given) if isinstance(given, Mapping) else {}
        spec = ToolSpec(name, str(tool.get("description") or ""), {"type": "object", **schema})
        found[name] = _usable(tool_from_said(spec, said.get(original)) if isinstance(said, Mapping) else spec)
        originals[name] = original
    return found, originals, ours


def _free(name: str, taken: Iterable[str]) -> str:
    number, free = 2, name
    while free in taken:
        free, number = f"{name[:60]}_{number}", number + 1
    return free


def _usable(spec: ToolSpec) -> ToolSpec:
    _ = spec.compiled  # raises for a schema that is not valid, which no call could be checked against
    return spec


# Observations ---------------------------------------------------------------------------------------------------------


def greeting(observation: Mapping[str, Any]) -> str:
    """What an environment tells at its reset: a text, or JSON where it tells more than one thing; may be empty.

    Metadata is for whoever runs the environment.
    """
    told = {name: value for name, value in observation.items() if name != _METADATA and value not in (None, "", [], {})}
    if not told:
        return ""
    only = next(iter(told.values()))
    return only if len(told) == 1 and isinstance(only, str) else as_text(told)


def called(payload: Mapping[str, Any]) -> Outcome:
    """What a ``call_tool`` came to."""
    observation = payload["observation"]
    ours = outcome_from_wire(observation)
    if ours is not None:
        return ours
    error = observation.get("error")
    if error:
        return _with_step(_failed(error), payload)
    value = _unwrapped(observation["result"]) if "result" in observation else _fields(observation)
    if isinstance(value, Outcome):
        return _with_step(value, payload)
    return _with_step(Outcome("ok", value), payload)


def stepped(payload: Mapping[str, Any]) -> Outcome:
    """What an action of the environment's own came to: the fields of its observation."""
    return _with_step(Outcome("ok", _fields(payload["observation"])), payload)


def refused_action(code: str, message: str, tool: str, invalid: bool) -> Outcome:
    """What an ``error`` about a step came to. An exception of the environment is its bug, and told as undeclared."""
    message = shortened(message, _LONGEST_MESSAGE)
    if invalid:
        return Outcome("schema_error", None, "invalid_action", message)
    account = shortened(f"{tool} made the environment raise: {message}", _LONGEST_MESSAGE)
    return Outcome("execution_error", None, code.lower(), message, account)


def _failed(error: Any) -> Outcome:
    """A failed call. The tool was listed and its arguments fit, so that OpenEnv's ``tool_not_found`` and
    ``invalid_args``, which it guesses from words ("not found", "invalid"), mostly are the tool's own failure.
    """
    kind = str(error.get("error_type", "")) if isinstance(error, Mapping) else ""
    message = str(error.get("message", "")) if isinstance(error, Mapping) else str(error)
    message = shortened(message or "the tool failed without saying why", _LONGEST_MESSAGE)
    if kind in ("timeout", "transport_error"):
        return Outcome("infrastructure_error", None, kind, message)
    if _INVALID.search(message[:400]):
        return Outcome("schema_error", None, "invalid_params", message)
    return Outcome("execution_error", None, "tool_error", message)


def _unwrapped(result: Any) -> Any:
    """The value in a result of FastMCP, as its client holds it; anything else is the value. A failure is an outcome."""
    if not isinstance(result, Mapping) or "content" not in result or not ({"is_error", "isError"} & result.keys()):
        return result
    texts = [str(block["text"]) for block in result["content"] or () if isinstance(block, Mapping) and "text" in block]
    if result.get("is_error") or result.get("isError"):
        return _failed("\n".join(texts))
    structured = result.get("structured_content", result.get("structuredContent"))
    if isinstance(structured, Mapping):
        # FastMCP puts what is no object into one of one member; what its client made of it stands beside it.
        if structured.keys() == {"result"} and result.get("data") != structured:
            return structured["result"]
        return structured
    if result.get("data") is not None:
        return result["data"]
    return texts[0] if len(texts) == 1 else (texts or None)


def _fields(observation: Mapping[str, Any]) -> Any:
    told = {name: value for name, value in observation.items() if name not in (_METADATA, "tool_name")}
    return told or observation.get(_METADATA) or None


def _with_step(outcome: Outcome, payload: Mapping[str, Any]) -> Outcome:
    """The outcome with the step's reward. It is known also where the environment gave none: then nothing was earned."""
    reward, done = payload.get("reward"), bool(payload.get("done"))
    number = float(reward) if isinstance(reward, int | float) else None
    notices = (OVER,) if done else ()
    return Stepped(
        outcome.kind, outcome.value, outcome.code, outcome.message, outcome.undeclared, notices, "", number, done
    )
