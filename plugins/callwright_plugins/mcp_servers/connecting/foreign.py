"""Reading what others' servers say: their listings as tools, their results as outcomes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import evolve, frozen

from callwright.environments.calling import is_nothing
from callwright.environments.protocol import Outcome
from callwright.environments.undeclared import Undeclared
from callwright.errors import ComponentError, DataError, UnknownName
from callwright.language.program import join_path
from callwright.language.shortening import shortened
from callwright.tools.schema_dialects import inline_definitions
from callwright.tools.spec import ToolSpec
from callwright_plugins.mcp_servers.connecting.connection import Refused, Reply
from callwright_plugins.mcp_servers.connecting.listings import BrokenTool
from callwright_plugins.mcp_servers.wire import completed_tool

_ILLEGAL: Final = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_NAME: Final = 64
_INVALID_PARAMS: Final = -32602
_METHOD_NOT_FOUND: Final = -32601
_INTERNAL_ERROR: Final = -32603
_LONGEST_ACCOUNT: Final = 1500
_LONGEST_FAULT: Final = 300
#: Validation failures and unknown tools as servers word them (FastMCP, MCPServer, the TypeScript SDK, plain ones).
_INVALID: Final = re.compile(
    r"validation errors? for|input validation error|invalid arguments? (?:for|:)|-32602|invalid_type|"
    r"is a required property|is not of type|unexpected keyword argument|missing \d+ required",
    re.IGNORECASE,
)
#: What of a schema says which members an object has.
_SAYS_WHICH: Final = frozenset(
    "properties additionalProperties unevaluatedProperties patternProperties propertyNames required maxProperties "
    "dependentSchemas $ref anyOf oneOf allOf if not enum const".split()
)
_UNKNOWN: Final = re.compile(
    r"unknown tool|tool .{0,80}not found|no such tool|no tool named|unknown tool name", re.IGNORECASE
)


@frozen
class ForeignTool:
    """A tool as models are told of it, and the name that its server knows it by."""

    spec: ToolSpec
    original: str


def read_listing(
    tools: Iterable[Mapping[str, Any]], hide: Sequence[str] = (), broken: list[BrokenTool] | None = None
) -> dict[str, ForeignTool]:
    """The tools of a listing by the names that models are offered: letters, digits, ``_`` and ``-``, at most 64.

    ``hide`` are names of tools that are not offered. Definitions inside schemas are put where they are referred to.
    ``broken`` are tools that were taken out of it before, and takes those that are left out here: without a name, or
    with a schema of arguments that is not valid. Raises :class:`callwright.errors.DataError` where no other is left,
    and :class:`callwright.errors.UnknownName` for a hidden name that no tool has.
    """
    broken = [] if broken is None else broken
    found: dict[str, ForeignTool] = {}
    listed = [one.name for one in broken]
    for place, tool in enumerate(tools):
        original = str(tool.get("name", ""))
        listed.append(original)
        read = {
            **tool,
            "inputSchema": _inlined(_opened(tool.get("inputSchema"))),
            "outputSchema": _inlined(tool.get("outputSchema")),
        }
        try:
            spec = completed_tool(ToolSpec.from_mcp(read), tool.get("_meta"))
            name = _free(_ILLEGAL.sub("_", original)[:_LONGEST_NAME] or "tool", found)
            spec = evolve(spec, name=name, hidden=spec.hidden or original in hide or name in hide)
            found[name] = ForeignTool(_usable(spec), original)
        except DataError as error:
            broken.append(BrokenTool(original, place, shortened(str(error), _LONGEST_FAULT)))
    if broken and not found:
        raise DataError(f"no tool of the listing can be used: {broken[0].named}: {broken[0].fault}")
    for name in hide:
        if name not in listed and name not in found:
            raise UnknownName("tool to hide", name, found)
    return found


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """The name, with a number where another tool has it already."""
    number, free = 2, name
    while free in taken:
        tail = f"_{number}"
        free, number = name[: _LONGEST_NAME - len(tail)] + tail, number + 1
    return free


def _opened(schema: Any) -> Any:
    """A schema of arguments that lists none and closes nothing, as one that says so: MCP has it take any object.

    An empty list of ``properties`` is how the usual servers list a tool without parameters, and stays closed.
    """
    if not isinstance(schema, Mapping) or any(key in schema for key in _SAYS_WHICH):
        return schema
    return {"type": "object", **schema, "additionalProperties": True}


def _inlined(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    if "definitions" in schema and "$defs" not in schema:  # before draft 2019-09
        text = json.dumps(schema).replace('"#/definitions/', '"#/$defs/')
        schema = json.loads(text)
        schema["$defs"] = schema.pop("definitions")
    return inline_definitions(schema)


def _usable(spec: ToolSpec) -> ToolSpec:
    """The spec without a result schema that no validator takes; parameters that are invalid are an error."""
    if spec.hidden:
        return spec
    try:
        _ = spec.compiled
    except DataError:
        plain = evolve(spec, result=None)
        _ = plain.compiled
        return plain
    return spec


def only_reading(tools: Mapping[str, ForeignTool], names: Sequence[str]) -> dict[str, ForeignTool]:
    """The tools, of which those with these names (or original names) only read, whatever they say of themselves.

    Raises :class:`callwright.errors.UnknownName` for a name that no tool has.
    """
    known = {known for name, one in tools.items() for known in (name, one.original)}
    for name in names:
        if name not in known:
            raise UnknownName("tool (in the option read_only)", name, tools)
    return {
        name: evolve(one, spec=evolve(one.spec, read_only=True, destructive=False))
        if name in names or one.original in names
        else one
        for name, one in tools.items()
    }


# Results --------------------------------------------------------------------------------------------------------------


def read_reply(reply: Reply, *, read_only: bool) -> Outcome:
    """A result of somebody's server as an outcome; ``read_only`` is what the listing hints at.

    ``empty`` means what it means everywhere: the tool only reads, and found nothing. What a tool without the hint did
    is never empty. An error is told from its text: servers say in words whether a tool is unknown or its arguments are
    wrong.
    """
    if reply.asks:
        return Outcome("execution_error", None, "input_required", "the server asks its user something; nobody is there")
    if reply.is_error:
        text = "\n".join(str(block.get("text", "")) for block in reply.content).strip()
        return failure(text or "the tool failed without saying why")
    value = reply.structured if reply.has_structured else _content(reply.content)
    return Outcome("empty" if read_only and is_nothing(_unwrapped(value)) else "ok", value)


def check_result(outcome: Outcome, reply: Reply, spec: ToolSpec | None) -> Outcome:
    """An outcome whose structured content fits the tool's own ``outputSchema``, else the failure ``bad_result``.

    MCP has servers keep to the schema and clients check it; the SDKs' clients raise. It is a bug of the server, and as
    every failure that no tool declared it is named in ``undeclared``. Results without structured content have nothing
    that could be checked.
    """
    if spec is None or spec.result is None or not reply.has_structured or not outcome.executed:
        return outcome
    checker = spec.compiled.results
    if checker is None or checker.is_valid(reply.structured):
        return outcome
    error = next(iter(checker.validator.iter_errors(reply.structured)))
    where = join_path(list(error.instance_path))
    place = f"{where}: " if where else ""
    what = shortened(f"the result does not fit the tool's own output schema: {place}{error.message}", _LONGEST_ACCOUNT)
    return Outcome("execution_error", None, "bad_result", what, f"{spec.name}: {what}")


def read_refusal(refusal: Refused, tool: str = "the tool") -> Outcome:
    """An error of JSON-RPC as an outcome. The server's internal error is undeclared: tools fail by results."""
    if refusal.code in (_INVALID_PARAMS, _METHOD_NOT_FOUND):
        if _UNKNOWN.search(refusal.message) or refusal.code == _METHOD_NOT_FOUND:
            return Outcome("unknown_tool", None, "unknown_tool", refusal.message)
        return Outcome("schema_error", None, "invalid_params", refusal.message)
    code = f"rpc_{abs(refusal.code)}"
    undeclared = ""
    if refusal.code == _INTERNAL_ERROR:  # an exception that the server did not make a result of
        undeclared = shortened(f"{tool} made the server fail ({code}): {refusal.message}", _LONGEST_ACCOUNT)
    return Outcome("execution_error", None, code, refusal.message, undeclared)


def as_wanted(outcome: Outcome, undeclared: Undeclared) -> Outcome:
    """An outcome with the owner's wish for failures that no tool declared.

    Raises :class:`callwright.errors.ComponentError` for one where that is ``raise``.
    """
    if not outcome.undeclared or undeclared == "execution_error":
        return outcome
    if undeclared == "raise":
        raise ComponentError(f"{outcome.undeclared}. This is a bug of the server (undeclared='raise')")
    return evolve(outcome, kind="infrastructure_error")


def failure(text: str) -> Outcome:
    """The outcome of a tool that failed with this text."""
    if _UNKNOWN.search(text[:200]):
        return Outcome("unknown_tool", None, "unknown_tool", text)
    if _INVALID.search(text[:400]):
        return Outcome("schema_error", None, "invalid_params", text)
    return Outcome("execution_error", None, "tool_error", text)


def _content(content: Sequence[Mapping[str, Any]]) -> Any:
    """What unstructured content says: a text (or the JSON in it), or the blocks."""
    if not content:
        return None
    if all(block.get("type") == "text" for block in content):
        texts = [str(block.get("text", "")) for block in content]
        return _parsed(texts[0]) if len(texts) == 1 else [_parsed(text) for text in texts]
    return [_placeholder(block) for block in content]


def _placeholder(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block without its bytes: of an image, a sound or a file a model is told the type and the size."""
    resource = block.get("resource")
    if isinstance(resource, Mapping) and "blob" in resource:
        return {**block, "resource": _placeholder(resource)}
    for key in ("data", "blob"):
        if isinstance(block.get(key), str):
            rest = {name: value for name, value in block.items() if name != key}
            return {**rest, "bytes": _decoded_size(block[key])}
    return dict(block)


def _decoded_size(text: str) -> int:
    """How many bytes a text in base64 stands for."""
    return len(text.rstrip("=")) * 3 // 4


def _parsed(text: str) -> Any:
    stripped = text.strip()
    if stripped[:1] not in ("{", "["):
        return text
    try:
        return json.loads(stripped, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _unwrapped(value: Any) -> Any:
    """A value out of the object of one member ``result``, in which servers put what is not an object."""
    return value["result"] if isinstance(value, Mapping) and value.keys() == {"result"} else value
