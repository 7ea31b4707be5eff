"""Tools as functions of the protocol: how they are offered, which may be called, and what strict schemas change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import structlog
from attrs import evolve, field, frozen

from callwright.episodes.codec import template_tool
from callwright.errors import CannotExpress, UsageError
from callwright.language.messages import Message, ToolCall
from callwright.language.parser import DEFAULT_LIMITS
from callwright.language.strict_json import decode
from callwright.tools.spec import ToolSpec
from callwright.tools.strict import strict_parameters, without_left_out
from callwright.walk.prompt import describe_tool
from callwright.walk.sampling import SamplingRequest
from callwright.walk.tasks import Task

CHOICES: Final = ("auto", "required", "none")


@frozen(eq=False)
class Functions:
    """How tools are offered as functions.

    ``parallel``: whether one answer may hold several calls; ``None`` leaves it to the server. ``choice``: ``auto``,
    ``required``, ``none`` or the name of the tool that must be called; ``None`` leaves it out. ``strict``: schemas are
    sent in the strict subset, where every property is required and optional ones may be null; a null that stands for an
    argument left out is left out again. Tools whose schemas cannot be put so are sent as they are, which is said once,
    of all those of the first task that has any.
    """

    parallel: bool | None = None
    choice: str | None = None
    strict: bool = False
    _said: list[str] = field(factory=list, init=False)

    def fields(self, request: SamplingRequest) -> dict[str, Any]:
        """The fields of a request for a task. Raises :class:`callwright.UsageError` for a tool that is not offered."""
        task, offered = request.task, request.offered
        if self.choice is not None and self.choice not in (*CHOICES, *offered):
            raise UsageError(
                f"'tool_choice' is {self.choice!r}, but task {task.id!r} offers no such tool; it is one of "
                f"{', '.join(CHOICES)} or the name of a tool that every task offers"
            )
        if not offered:
            return {}
        reasons: dict[str, str] = {}
        made: dict[str, Any] = {"tools": [self._definition(spec, reasons) for spec in offered.values()]}
        if reasons and not self._said:
            self._said.extend(reasons)
            named = "; ".join(f"{name!r} ({reason})" for name, reason in reasons.items())
            structlog.get_logger(__name__).warning(
                f"{len(reasons)} of {len(offered)} tools of task {task.id!r} cannot be offered with a strict schema, "
                f"and are sent as they are: {named}. Those of other tasks are not named"
            )
        if self.choice is not None:
            one = {"type": "function", "function": {"name": self.choice}}
            made["tool_choice"] = self.choice if self.choice in CHOICES else one
        if self.parallel is not None:
            made["parallel_tool_calls"] = self.parallel
        return made

    def _definition(self, spec: ToolSpec, reasons: dict[str, str]) -> dict[str, Any]:
        """A tool as a function; ``reasons`` gets why its schema is not strict."""
        definition = template_tool(describe_tool(spec))
        if self.strict:
            try:
                definition["function"] |= {"parameters": strict_parameters(spec.parameters), "strict": True}
            except CannotExpress as error:
                definition["function"]["strict"] = False
                reasons[spec.name] = str(error)
        return definition

    def read(self, message: Message, task: Task) -> Message:
        """What the model meant: without the nulls that a strict schema made it write. All else stays as sampled."""
        if not self.strict or not message.tool_calls:
            return message
        return evolve(message, tool_calls=tuple(self._read(call, task.tools) for call in message.tool_calls))

    def _read(self, call: ToolCall, tools: Mapping[str, ToolSpec]) -> ToolCall:
        spec = tools.get(call.name)
        if spec is None or "null" not in call.arguments:
            return call
        arguments = decode(call.arguments, 0, DEFAULT_LIMITS.nesting)
        if not isinstance(arguments, dict):
            return call
        try:
            strict_parameters(spec.parameters)
        except CannotExpress:
            return call
        meant = without_left_out(arguments, spec.parameters)
        return call if meant == arguments else evolve(call, arguments=json.dumps(meant, ensure_ascii=False))
