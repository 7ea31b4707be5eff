"""What every adapter shares: the tools that a log offers under legal names, and what a model reads of an outcome."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import field, frozen

from callwright.environments.protocol import Outcome
from callwright.environments.telling import tell
from callwright.episodes.logs.log import Log
from callwright.errors import UsageError
from callwright.language.messages import ToolCall
from callwright.machines.awaiting import finished
from callwright.tools.spec import FunctionTool, ToolError


@frozen
class Offered:
    """A tool of a log: its name and description, and the JSON Schema of its parameters as models are shown it."""

    log: Log = field(repr=False)
    name: str
    description: str
    parameters: Mapping[str, Any] = field(repr=False)

    def call(self, arguments: Mapping[str, Any], **told: Any) -> Told:
        """Execute a call in the log, with what :meth:`callwright.Log.call` is told of it."""
        return _told(self.log.call(self.name, arguments, **told))

    async def acall(self, arguments: Mapping[str, Any], **told: Any) -> Told:
        """As :meth:`call`, while the event loop goes on."""
        return _told(await self.log.acall(self.name, arguments, **told))


@frozen
class Told:
    """What a model reads of a call, and whether the call failed."""

    text: str
    failed: bool


def _told(outcome: Outcome) -> Told:
    return Told(tell(outcome), outcome.failed or outcome.kind == "infrastructure_error")


def offered(log: Log) -> Iterator[Offered]:
    """The tools that the task offers with its query, in their order."""
    for name, spec in log.task.offered.items():
        function = spec.to_openai()["function"]
        yield Offered(log, name, function.get("description", ""), function["parameters"])


class ForeignTool(FunctionTool):
    """A tool of a framework as one of ours: its own schema is what arguments are checked against."""

    def call(self, state: Any, arguments: dict[str, Any]) -> Any:
        """Run it on JSON arguments. Raises whatever it raises."""
        return as_json(finished(self.function(**arguments)))

    def __reduce__(self) -> Any:
        raise UsageError(
            f"the tool {self.spec.name!r} belongs to another framework and cannot be sent to another process; keep its "
            'environment in this one (isolation = "none")'
        )


def as_json(value: Any) -> Any:
    """What a foreign tool returned as JSON; models and data classes as objects.

    Raises :class:`callwright.ToolError` for what has no JSON.
    """
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return to_jsonable_python(value)
    except PydanticSerializationError as error:
        raise ToolError("not_json", str(error)) from error


def object_schema(schema: Any) -> dict[str, Any]:
    """A schema of parameters as one of an object with properties, which is what a tool has."""
    made = dict(schema or {})
    made.setdefault("type", "object")
    made.setdefault("properties", {})
    return made


def as_calls(calls: Any) -> Iterator[ToolCall]:
    """Calls with ``id``, ``name`` and ``args``, of which the last is text or an object."""
    for call in calls:
        written = call["args"]
        text = written if isinstance(written, str) else json.dumps(written, ensure_ascii=False)
        yield ToolCall(call.get("id") or "", call["name"] or "", text)
