"""Conformance checks for adapters to agent frameworks and for readers of recorded conversations."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

from callwright.episodes.logs.kinds import Framework, LogFormat
from callwright.episodes.logs.log import Log
from callwright.errors import DataError
from callwright.language.messages import Message
from callwright.testing.expectations import expect, expect_members, expect_name, never_raises, shown
from callwright.testing.sample import sample_tasks
from callwright.tools.spec import FunctionTool

_CONVERSATION: Final = (Message.user("How late is it?"), Message.assistant("Late."))
#: Files that are of no format.
_NOTHING: Final = (b"", b"\x00\xff\x00", b"not json\n", b"{}\n", b"[]", b"[1, 2", b'{"a": ' + b"[" * 3000, b"null\n")


def check_framework(framework: Framework) -> None:
    """It has the members of :class:`callwright.episodes.Framework` and a name."""
    expect_members(framework, Framework)
    expect_name(framework)


def check_tools(framework: Framework) -> None:
    """It makes a tool of the framework for each that a task offers, and asks the world for nothing meanwhile."""
    task = sample_tasks()[0]
    with Log(task) as log, never_raises("tools(log)"):
        made = framework.tools(log)
        expect(len(list(made)) == len(task.offered), f"{len(list(made))} tools were made of {len(task.offered)}")
        expect(not log.calls, "making the tools called one of them")


def check_messages(framework: Framework) -> None:
    """It reads a list of messages, and refuses with a ``DataError`` what is no run of the framework."""
    with never_raises("messages() of messages"):
        read = list(framework.messages(list(_CONVERSATION)))
    expect(read == list(_CONVERSATION), f"messages() of messages gave {shown(read)}")
    for nothing in (None, 7, object(), [object()]):
        _refuses_or_reads(lambda nothing=nothing: list(framework.messages(nothing)), f"messages({shown(nothing)})")


def check_function_tools(framework: Framework) -> None:
    """It makes no tool of nothing, and refuses with a ``DataError`` what is no tool of the framework."""
    expect(list(framework.function_tools([])) == [], "function_tools([]) gave something")
    try:
        made = list(framework.function_tools([object()]))
    except DataError as error:
        expect(bool(str(error)), "it refuses what is no tool without a word")
    else:
        expect(all(isinstance(tool, FunctionTool) for tool in made) and bool(made), "it took an object for a tool")


def check_log_format(form: LogFormat) -> None:
    """It has the members of :class:`callwright.episodes.LogFormat` and a name."""
    expect_members(form, LogFormat)
    expect_name(form)


def check_recognises(form: LogFormat) -> None:
    """It says of any bytes whether they are of its format, and of none that say nothing that they are."""
    for head in _NOTHING:
        with never_raises(f"recognises({head[:20]!r})"):
            known = form.recognises(Path("nothing.jsonl"), head)
        expect(known is False, f"it takes {head[:20]!r} for its own")


def check_refuses(form: LogFormat) -> None:
    """It refuses files that are of no format with a ``DataError`` that names the file, whatever they hold."""
    with tempfile.TemporaryDirectory() as folder:
        for number, content in enumerate(_NOTHING):
            path = Path(folder) / f"{number}.jsonl"
            path.write_bytes(content)
            try:
                read = list(form.read(path, {}))
            except DataError as error:
                expect(path.name in str(error), f"the error does not name the file: {error}")
            except Exception as error:
                raise AssertionError(f"read() of {content[:20]!r} raised {type(error).__name__}: {error}") from error
            else:
                expect(all(isinstance(log, Log) for log in read), f"read() gave {shown(read)}")


def _refuses_or_reads(ask: Any, what: str) -> None:
    try:
        ask()
    except DataError as error:
        expect(bool(str(error)), f"{what} is refused without a word")
    except Exception as error:
        raise AssertionError(f"{what} raised {type(error).__name__}: {error}; refuse it with a DataError") from error


FRAMEWORK_CHECKS: Final = (check_framework, check_tools, check_messages, check_function_tools)
LOG_FORMAT_CHECKS: Final = (check_log_format, check_recognises, check_refuses)
