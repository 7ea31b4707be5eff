"""Undeclared failures: what is told of an exception that a tool raises without declaring it.

A tool says what can go wrong by raising :class:`callwright.ToolError`. Anything else is most likely a bug of the tool,
and a model that is paid for calls that execute pays for it. So the outcome says which tool it was and where it happened
(:attr:`callwright.Outcome.undeclared`), in words that are the same on every machine: no paths, no addresses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dis import opmap
from functools import cache
from importlib import metadata
from types import TracebackType
from typing import Any, Final, Literal

from callwright.errors import CallwrightError, ComponentError
from callwright.language.shortening import shortened

#: What such a failure becomes: a failed call, a masked sample, or the end of the run.
Undeclared = Literal["execution_error", "mask", "raise"]

_ADDRESS: Final = re.compile(r"\b0x[0-9a-fA-F]+")
_LONGEST_MESSAGE: Final = 600
_LONGEST_ACCOUNT: Final = 1500
_MOST_FRAMES: Final = 6
#: Modules whose frames say nothing of the tool: they are on every way into one.
_MACHINERY: Final = ("callwright.environments.", "callwright.tools.", "callwright.walk.", "pydantic.", "pydantic_core.")
_RAISE: Final = opmap["RAISE_VARARGS"]


@cache
def _shipped() -> tuple[str, ...]:
    """The packages of this distribution: its own one, and those that its entry points name."""
    own = __name__.partition(".")[0]
    found = {own}
    with suppress(metadata.PackageNotFoundError):
        found |= {point.module.partition(".")[0] for point in metadata.distribution(own).entry_points}
    return tuple(f"{package}." for package in sorted(found))


def is_shipped(module: str) -> bool:
    """Whether a module is part of this distribution: what it does is known, and known to end."""
    return module.startswith(_shipped())


def holds_foreign(tools: Iterable[Any]) -> bool:
    """Whether code of somebody else is among the functions of tools: of a plugin, a script or a notebook."""
    return not all(is_shipped(str(getattr(tool.function, "__module__", ""))) for tool in tools)


def is_of_the_tool(error: BaseException) -> bool:
    """Whether a tool raised this itself. Ctrl-C and other signals come at any place and are nobody's failure.

    A tool that says ``raise KeyboardInterrupt`` is told from the user by the instruction at which it was raised.
    """
    if isinstance(error, Exception | SystemExit | GeneratorExit):
        return True
    trace = error.__traceback__
    if type(error) is not KeyboardInterrupt or trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code.co_code
    return 0 <= trace.tb_lasti < len(code) and code[trace.tb_lasti] == _RAISE


def message_of(error: BaseException) -> str:
    """What an exception says, at most 600 characters, without addresses of objects. It never raises."""
    try:
        text = str(error)
    except Exception:  # the exception's own __str__ is as broken as its tool
        text = ""
    return shortened(_ADDRESS.sub("0x…", text), _LONGEST_MESSAGE)


@contextmanager
def bugs_of(environment: str, part: str) -> Iterator[None]:
    """What a part of an environment that is no tool raises in this block is said to be a bug of it.

    Raises :class:`callwright.errors.ComponentError`; errors of ours pass through.
    """
    try:
        yield
    except CallwrightError:
        raise
    except Exception as error:
        said = account_of(f"{part} of the environment {environment!r}", error)
        raise ComponentError(f"{said}\nThis is a bug of the environment {environment!r}") from error


def account_of(tool: str, error: BaseException) -> str:
    """The tool, the exception, and the functions that it came through, the innermost last; at most 1,500 characters."""
    message = message_of(error)
    lines = [f"{tool} raised {type(error).__name__}" + (f": {message}" if message else "")]
    frames = _frames(error.__traceback__)
    if len(frames) > _MOST_FRAMES:
        lines.append("  …")
    lines += [f"  {frame}" for frame in frames[-_MOST_FRAMES:]]
    return shortened("\n".join(lines), _LONGEST_ACCOUNT)


def _frames(trace: TracebackType | None) -> list[str]:
    """``module.function, line N`` of every frame outside of the machinery. Files lie elsewhere on other machines."""
    found = []
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", "?"))
        if not module.startswith(_MACHINERY):
            found.append(f"{module}.{trace.tb_frame.f_code.co_name}, line {trace.tb_lineno}")
        trace = trace.tb_next
    return found
