"""What travels beside a call: keys of ``_meta``, and outcomes as MCP results and back.

Everything here is plain JSON; the package ``mcp`` is not imported.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from typing import Any, Final, get_args

from attrs import evolve, frozen

from callwright.environments.protocol import Outcome, OutcomeKind
from callwright.environments.telling import as_text, told
from callwright.errors import MissingExtra, UsageError
from callwright.tools.costing import MOST_LATENCY
from callwright.tools.descriptions import said_once
from callwright.tools.spec import ToolSpec

#: In the ``_meta`` of a request: the session's id; with the first call also its scenario and seed. Also the name of the
#: extension that a server declares and of the method that manages sessions.
SESSION: Final = "io.callwright/session"
SCENARIO: Final = "io.callwright/scenario"
SEED: Final = "io.callwright/seed"
#: In the ``_meta`` of a request: true asks for the digest after the call.
DIGEST: Final = "io.callwright/digest"
#: In the ``_meta`` of a result: kind, code and message of the outcome, and the digest.
OUTCOME: Final = "io.callwright/outcome"
#: In the ``_meta`` of a listed tool: what MCP's annotations cannot say.
TOOL: Final = "io.callwright/tool"

_KINDS: Final = frozenset(get_args(OutcomeKind))
#: The member that holds a structured result which is not an object, as MCP's own servers write it.
_RESULT: Final = "result"
_encode: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def need_mcp(component: str) -> None:
    """Say at once that the package ``mcp`` is not installed, or in a version with other names; it is not imported.

    Raises :class:`callwright.errors.MissingExtra` and :class:`callwright.UsageError`.
    """
    if importlib.util.find_spec("mcp") is None:
        raise MissingExtra(component, "mcp", "mcp")
    found = _mcp_version()
    if not _fits(found):
        raise UsageError(
            f"{component} needs the package mcp in a version from 2.2 on and before 3, and {found} is installed"
            f"{_who_asks_for_mcp()}. In an environment of its own: pip install 'callwright[mcp]'. Clients and servers "
            "of the other versions can be talked to all the same: they run in processes of their own"
        )


@cache
def _mcp_version() -> str:
    try:
        return metadata.version("mcp")
    except metadata.PackageNotFoundError:  # a folder of that name on the path
        return ""


def _fits(version: str) -> bool:
    """Whether a version of ``mcp`` has the names that are used here; one that says nothing is believed."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return numbers is None or (2, 2) <= (int(numbers[1]), int(numbers[2])) < (3, 0)


def _who_asks_for_mcp() -> str:
    """The installed distributions that want a certain version of ``mcp``, in words."""
    found = {
        f"{distribution.metadata['Name']} wants {wanted.partition(';')[0].strip()}"
        for distribution in metadata.distributions()
        for wanted in distribution.requires or ()
        if re.match(r"mcp\s*[(<>=!~]", wanted) and "extra ==" not in wanted
    }
    return f" ({'; '.join(sorted(found))})" if found else ""


# Tools ----------------------------------------------------------------------------------------------------------------


def listed_tools(specs: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """A whole listing. What brief tools say of a parameter is said once."""
    heard: dict[str, dict[str, Any]] = {}
    listing = []
    for spec in specs:
        tool = listed_tool(spec)
        if spec.brief:
            tool["inputSchema"] = said_once([{"parameters": tool["inputSchema"]}], heard)[0]["parameters"]
        listing.append(tool)
    return listing


def listed_tool(spec: ToolSpec) -> dict[str, Any]:
    """A tool as ``tools/list`` shows it; a brief one in few words, and without a schema of its results."""
    said = spec.to_openai()["function"] if spec.brief else {}
    tool: dict[str, Any] = {
        "name": spec.name,
        "title": spec.title,
        "description": said.get("description", spec.description),
        "inputSchema": {"type": "object", **said.get("parameters", spec.parameters)},
        "annotations": {
            "readOnlyHint": spec.read_only,
            "destructiveHint": spec.destructive or spec.irreversible,  # clients ask before they call such a tool
            "idempotentHint": spec.idempotent or spec.read_only,
            "openWorldHint": False,
        },
        "_meta": {
            TOOL: {
                "discovery": spec.discovery,
                "sensitive": spec.sensitive,
                "idempotent": spec.idempotent,
                **({"cost": spec.cost} if spec.cost else {}),
                **({"latency": spec.latency} if spec.latency else {}),
                **({"irreversible": True, "destructive": spec.destructive} if spec.irreversible else {}),
                **({"result_field": spec.result_field} if spec.result_field is not None else {}),
                **({"wrapped": True} if spec.result is not None and _wraps(spec) else {}),
            }
        },
    }
    if spec.result is not None and not spec.brief:
        tool["outputSchema"] = _output_schema(spec)
    return tool


def _wraps(spec: ToolSpec) -> bool:
    """Whether results stand in an object of one member: MCP's structured content is an object."""
    return spec.result is not None and spec.result.get("type") != "object"


def _output_schema(spec: ToolSpec) -> dict[str, Any]:
    assert spec.result is not None
    if not _wraps(spec):
        return dict(spec.result)
    inner = {key: value for key, value in spec.result.items() if key != "$defs"}
    outer: dict[str, Any] = {"type": "object", "properties": {_RESULT: inner}, "required": [_RESULT]}
    return {**outer, "$defs": spec.result["$defs"]} if "$defs" in spec.result else outer


def completed_tool(spec: ToolSpec, meta: Mapping[str, Any] | None) -> ToolSpec:
    """A tool read from a listing, with what a served environment said of it besides the annotations."""
    said = (meta or {}).get(TOOL)
    if not isinstance(said, Mapping):
        return spec
    result = spec.result
    if said.get("wrapped") and result is not None:
        inner = result.get("properties", {}).get(_RESULT, {})
        result = {**inner, "$defs": result["$defs"]} if "$defs" in result else inner
    field = said.get("result_field")
    return evolve(
        spec,
        result=result,
        result_field=field if isinstance(field, str) else None,
        discovery=bool(said.get("discovery")),
        sensitive=bool(said.get("sensitive")),
        idempotent=bool(said.get("idempotent")),
        **_costs_told(spec, said),
    )


def _costs_told(spec: ToolSpec, said: Mapping[str, Any]) -> dict[str, Any]:
    """What a served environment said of the cost of calls; what does not fit is left out."""
    cost, latency = said.get("cost", 0), said.get("latency", 0)
    found: dict[str, Any] = {}
    if (type(cost) is int and cost >= 0) or type(cost) is str:
        found["cost"] = cost or 0
    if type(latency) is int and 0 <= latency <= MOST_LATENCY:
        found["latency"] = latency
    if said.get("irreversible") and not spec.read_only:
        found |= {"irreversible": True, "destructive": bool(said.get("destructive"))}
    return found


# Outcomes -------------------------------------------------------------------------------------------------------------


def result_of(outcome: Outcome, spec: ToolSpec | None = None, digest: str | None = None) -> dict[str, Any]:
    """An outcome as the result of ``tools/call``: text for a model, structured content, the outcome in ``_meta``.

    The text is what models read in rollouts (:func:`callwright.environments.told`): a block with the result, and one
    with ``{"warning": …}`` after a partial one, or one with ``{"error": …}``; then one with ``{"notices": …}`` where
    something happened meanwhile.

    Raises :class:`TypeError` or :class:`ValueError` for a value that is not JSON.
    """
    about: dict[str, Any] = {"kind": outcome.kind}
    if outcome.code:
        about["code"] = outcome.code
    if outcome.message:
        about["message"] = outcome.message
    if outcome.undeclared:
        about["undeclared"] = outcome.undeclared
    if outcome.injected:
        about["injected"] = outcome.injected
    if outcome.notices:
        about["notices"] = list(outcome.notices)
    if digest is not None:
        about["digest"] = digest
    result: dict[str, Any] = {"resultType": "complete", "_meta": {OUTCOME: about}}
    result["content"] = [
        {"type": "text", "text": as_text(inner if name == "result" else {name: inner})}
        for name, inner in told(outcome).items()
    ]
    if not outcome.executed:
        result["isError"] = True
        return result
    value = outcome.value
    _encode(value)  # raises for what is not JSON; the text of a rollout would name its type instead
    if isinstance(value, dict) and not (spec is not None and _wraps(spec)):
        result["structuredContent"] = value
    else:
        about["wrapped"] = True
        result["structuredContent"] = {_RESULT: value}
    return result


@frozen
class Answer:
    """An outcome and the digest after it, where the server gave one."""

    outcome: Outcome
    digest: str | None = None


def answer_of(result: Mapping[str, Any]) -> Answer | None:
    """The outcome that a served environment put into a result; ``None`` if it is somebody else's result."""
    about = (result.get("_meta") or {}).get(OUTCOME)
    if not isinstance(about, Mapping) or about.get("kind") not in _KINDS:
        return None
    value = None
    if not result.get("isError"):
        value = result.get("structuredContent")
        if about.get("wrapped") and isinstance(value, Mapping):
            value = value.get(_RESULT)
    digest = about.get("digest")
    code, message, undeclared = (str(about.get(name, "")) for name in ("code", "message", "undeclared"))
    notices = about.get("notices")
    told = tuple(map(str, notices)) if isinstance(notices, list) else ()
    outcome = Outcome(about["kind"], value, code, message, undeclared, told, str(about.get("injected", "")))
    return Answer(outcome, digest if isinstance(digest, str) else None)
