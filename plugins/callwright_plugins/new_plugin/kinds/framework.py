"""The framework ``zebra``: agents that take tools as Python functions and keep their conversation as OpenAI's messages.

Your framework's own classes would stand where functions and dictionaries stand here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import callwright as cw
from callwright.environments import tell
from callwright.errors import DataError
from callwright.tools import FunctionTool


class Zebra:
    """A tool is a function with keyword arguments, named and described as its specification says."""

    name = "zebra"

    def tools(self, log: cw.Log) -> list[Callable[..., str]]:
        """A function for each tool that the task offers; a call of one is a call of the log."""
        return [_function(log, name, spec) for name, spec in log.task.offered.items()]

    def messages(self, run: Any) -> Sequence[cw.Message]:
        """A list of messages, or of OpenAI's rows."""
        if not isinstance(run, list):
            raise DataError(f"give the list of messages, not {type(run).__name__}")
        try:
            return [one if isinstance(one, cw.Message) else cw.Message.from_openai(one) for one in run]
        except (TypeError, AttributeError) as error:
            raise DataError(f"this is no message of OpenAI's: {error}") from error

    def function_tools(self, tools: Iterable[Any]) -> Sequence[FunctionTool]:
        """Functions with type hints and a docstring are tools."""
        return [_tool(one) for one in tools]


def _function(log: cw.Log, name: str, spec: cw.ToolSpec) -> Callable[..., str]:
    def call(**arguments: Any) -> str:
        return tell(log.call(name, arguments))

    call.__name__, call.__doc__ = name, spec.description
    return call


def _tool(one: Any) -> FunctionTool:
    if isinstance(one, FunctionTool):
        return one
    if not inspect.isfunction(one):
        raise DataError(f"this is no function: {type(one).__name__}")
    return cw.tool(one)
