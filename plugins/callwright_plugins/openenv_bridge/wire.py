"""The words of OpenEnv's protocol, and how a tool and an outcome of ours travel in them.

A message is ``{"type": …, "data": …}`` over one WebSocket, which is a session: ``reset``, ``step`` and ``state`` go
there, ``observation``, ``state`` and ``error`` come back (``openenv/core/env_server/types.py`` of openenv 0.10.0). What
OpenEnv has no word for stands in the ``metadata`` of an observation, under a key of ours: others' clients pass it by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, get_args

import attrs
from attrs import evolve, field, frozen

from callwright.environments.protocol import Outcome, OutcomeKind
from callwright.environments.telling import tell
from callwright.tools.spec import ToolSpec

#: In the metadata of a listing: what OpenEnv's tools cannot say, by name.
TOOLS: Final = "io.callwright/tools"
#: In the metadata of what a call came to: kind, code, message, and what else an outcome holds.
OUTCOME: Final = "io.callwright/outcome"
#: The codes of ``error`` messages that are about the action, not the machinery.
BAD_ACTION: Final = "VALIDATION_ERROR"
STEP_RAISED: Final = "EXECUTION_ERROR"
#: The server has no room for another session now.
FULL: Final = "CAPACITY_REACHED"

_KINDS: Final = frozenset(get_args(OutcomeKind))
#: By kind of failure, OpenEnv's type of error (``ToolErrorType``).
_ERROR_TYPES: Final[Mapping[str, str]] = {
    "unknown_tool": "tool_not_found",
    "schema_error": "invalid_args",
    "execution_error": "execution_error",
    "refused": "execution_error",
    "unknown": "transport_error",
    "infrastructure_error": "transport_error",
}
#: What a listing says of a tool beside its name, description and parameters.
_SAID: Final = tuple(one for one in attrs.fields(ToolSpec) if one.name not in ("name", "description", "parameters"))


@frozen(slots=False, eq=False)
class Stepped(Outcome):
    """An outcome with what the environment itself said of the step: its reward, and whether the episode is over.

    ``reward`` is a number of whatever range the environment has, ``None`` where it gave none. Rewards read it
    (:mod:`.rewards`); no model is told of it.
    """

    reward: float | None = field(default=None, repr=False)
    done: bool = field(default=False, repr=False)


# Tools ----------------------------------------------------------------------------------------------------------------


def tool_to_wire(spec: ToolSpec) -> dict[str, Any]:
    """A tool as OpenEnv lists it (``Tool``): exactly these three members; a brief one in few words."""
    said = spec.to_openai()["function"] if spec.brief else {}
    return {
        "name": spec.name,
        "description": said.get("description", spec.description),
        "input_schema": {"type": "object", **said.get("parameters", spec.parameters)},
    }


def said_of_tool(spec: ToolSpec) -> dict[str, Any]:
    """What :func:`tool_to_wire` leaves out, where it is not the default; JSON."""
    said = {one.name: getattr(spec, one.name) for one in _SAID}
    return {one.name: said[one.name] for one in _SAID if said[one.name] != one.default}


def tool_from_said(spec: ToolSpec, said: Any) -> ToolSpec:
    """A listed tool with what :func:`said_of_tool` said of it; what is not known here is left out."""
    if not isinstance(said, Mapping):
        return spec
    known = {one.name: said[one.name] for one in _SAID if one.name in said}
    return evolve(spec, **known)


# Outcomes -------------------------------------------------------------------------------------------------------------


def outcome_to_wire(tool: str, outcome: Outcome) -> dict[str, Any]:
    """What a call came to as OpenEnv's ``CallToolObservation``, wrapped as its server wraps it.

    ``result`` is the value, ``error`` what went wrong, in the words that models read of it in a rollout. A reward is
    not given: an environment of ours has none of its own.
    """
    error = None
    if outcome.kind == "unknown" or not outcome.executed:
        kind = "timeout" if outcome.code == "timeout" else _ERROR_TYPES[outcome.kind]
        error = {"error_type": kind, "message": tell(outcome)}
    about: dict[str, Any] = {"kind": outcome.kind}
    about |= {
        name: value for name in ("code", "message", "undeclared", "injected") if (value := getattr(outcome, name))
    }
    if outcome.notices:
        about["notices"] = list(outcome.notices)
    # Only inside of the observation: from 0.10 on it may stand beside it, too, which clients before that refuse.
    observation = {"tool_name": tool, "result": outcome.value, "error": error, "metadata": {OUTCOME: about}}
    return {"observation": observation, "reward": None, "done": False}


def outcome_from_wire(observation: Mapping[str, Any]) -> Outcome | None:
    """The outcome that :func:`outcome_to_wire` wrote; ``None`` for what somebody else's server observed."""
    metadata = observation.get("metadata")
    about = metadata.get(OUTCOME) if isinstance(metadata, Mapping) else None
    if not isinstance(about, Mapping) or about.get("kind") not in _KINDS:
        return None
    code, message, undeclared, injected = (
        str(about.get(name, "")) for name in ("code", "message", "undeclared", "injected")
    )
    notices = about.get("notices")
    heard = tuple(map(str, notices)) if isinstance(notices, list) else ()
    return Outcome(about["kind"], observation.get("result"), code, message, undeclared, heard, injected)
