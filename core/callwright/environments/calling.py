"""Calling: the one place where arguments are checked, a tool runs, and what came of it is classified.

Every environment answers calls through :func:`call_tool`, so that a kind of outcome means the same in all of them:

- arguments that do not fit the schema: ``schema_error``, with the place, what was expected and what came;
- a tool that declares ``read_only`` and finds nothing (``None``, ``[]``, ``{}``, a page without items): ``empty``. A
  tool that does not declare it writes, and what it did is never ``empty``. ``0``, ``""`` and ``False`` are values;
- a tool that warned: ``partial``, with the code of the warning;
- :class:`callwright.tools.Refused`: ``refused``, and what the tool counted stays counted;
- any other :class:`callwright.ToolError`: ``execution_error`` with its code, and everything is as before the call;
- a result over the bound of sizes (:mod:`callwright.environments.sizes`): the same, with ``result_too_large``;
- any other exception: undone, then what the environment's option ``undeclared`` says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any, Final, Literal, Protocol

from attrs import field, frozen

from callwright.environments.protocol import Outcome, OutcomeKind
from callwright.environments.sessions import undeclared_failure
from callwright.environments.sizes import check_result
from callwright.environments.undeclared import Undeclared, is_of_the_tool
from callwright.errors import InfrastructureFailure, SessionInUse
from callwright.language.shortening import shortened
from callwright.machines.awaiting import waited_for
from callwright.tools.compiled import Checker
from callwright.tools.spec import ArgumentError, Refused, ToolError, ToolSpec
from callwright.tools.validation import mismatches

#: What the function of a tool is given: the session's state and the arguments by name, the arguments by name alone, or
#: the state and the arguments as one mapping.
Takes = Literal["state", "arguments", "mapping"]

#: The members of a page that has nothing but its items.
_PAGE: Final = frozenset({"items", "total", "next_cursor"})
#: A text that agents are told; what they wrote themselves may stand in it, however long it was.
_LONGEST_MESSAGE: Final = 600
#: Room for twenty allowed values beside the rest of a message.
_LONGEST_MISMATCH: Final = 2000


class Journal(Protocol):
    """What takes back what a tool did. Worlds are their own journals."""

    def begin(self, read_only: bool) -> None:
        """A call begins; one that is ``read_only`` changes nothing."""

    def end(self) -> tuple[str, str] | None:
        """The call is over and stays; code and message of its warning, if it gave one."""

    def undo(self) -> None:
        """Take back everything since the call began."""


class OneThread:
    """A session for one thread at a time. It is pickled without its lock: it goes on elsewhere under another one."""

    __slots__ = ("_turn",)
    _turn: Lock

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in type(self).__slots__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._turn = Lock()


@frozen(eq=False)
class ReadyTool:
    """What a call needs of a tool, looked up once: :func:`ready` makes it."""

    spec: ToolSpec
    #: As the tool declares: it can be ``empty``.
    read_only: bool
    #: Nothing has to be taken back after it: it declares ``read_only`` or does not get the state.
    changes_nothing: bool
    checker: Checker | None = field(repr=False)
    is_valid: Callable[[Any], bool] = field(repr=False)
    #: Writes whole numbers as ``int``, because JSON Schema takes 5.0 for an integer. ``None``: nothing is an integer.
    whole: Callable[[Any], Any] | None = field(repr=False)
    function: Callable[..., Any] = field(repr=False)
    takes: Takes
    #: Whether its results are held against the bound of sizes.
    measured: bool = True


def ready(spec: ToolSpec, function: Callable[..., Any], takes: Takes = "state", *, measured: bool = True) -> ReadyTool:
    """A tool made ready for calls of ``function``, which takes what ``takes`` says.

    ``measured`` is False for one whose results are never larger than its arguments or its world: looking through a
    table takes many times as long as choosing rows of it. Raises :class:`callwright.errors.DataError` for a schema that
    is not valid.
    """
    checker = spec.compiled.received
    unchanging = spec.read_only or takes == "arguments"
    is_valid, whole = checker.validator.is_valid, whole_numbers(spec.parameters)
    function = waited_for(function)
    return ReadyTool(spec, spec.read_only, unchanging, checker, is_valid, whole, function, takes, measured)


def call_tool(
    tools: Mapping[str, ReadyTool],
    name: str,
    arguments: dict[str, Any],
    state: Any,
    journal: Journal | None = None,
    turn: Lock | None = None,
    fault: Callable[[str], Outcome | None] | None = None,
    undeclared: Undeclared = "raise",
) -> Outcome:
    """Check the arguments, run the tool on the state, and say what came of it.

    ``journal`` takes back what a failed call did; without it tools change nothing. ``turn`` keeps other threads out.
    ``fault`` is asked before a valid call runs and may answer in the tool's place. ``undeclared`` is what an exception
    becomes that is no :class:`callwright.ToolError`: an ``execution_error``, an ``infrastructure_error`` (``mask``), or
    that exception again (``raise``).

    Raises :class:`callwright.errors.SessionInUse` if another thread is in the session.
    """
    tool = tools.get(name)
    if tool is None:
        return unknown_tool(name)
    if turn is not None and not turn.acquire(False):
        raise in_use()
    try:
        try:
            if not tool.is_valid(arguments):
                return schema_error(tool.spec, arguments, tool.checker)
        except UnicodeEncodeError:  # no parser lets such text through, but not every caller parses
            return Outcome("schema_error", None, "value", f"{name}: an argument holds half of a surrogate pair")
        except ValueError as error:  # nor are those that no JSON has: keys that are no texts, say
            said = shortened(f"{name}: the arguments are no JSON: {error}", _LONGEST_MESSAGE)
            return Outcome("schema_error", None, "value", said)
        if tool.whole is not None:
            arguments = tool.whole(arguments)
        if fault is not None:
            answered = fault(name)
            if answered is not None:
                return answered
        if journal is not None:
            journal.begin(tool.changes_nothing)
        takes = tool.takes
        if takes == "state":
            value = tool.function(state, **arguments)
        elif takes == "arguments":
            value = tool.function(**arguments)
        else:
            value = tool.function(state, arguments)
        if tool.measured:
            check_result(name, value)
        if journal is not None:
            warning = journal.end()
            if warning is not None:
                return Outcome("partial", value, warning[0], warning[1])
    except Refused as error:
        if journal is not None:
            journal.end()
        return Outcome("refused", None, error.code, shortened(error.message, _LONGEST_MESSAGE))
    except ToolError as error:
        if journal is not None:
            journal.undo()
        kind: OutcomeKind = "schema_error" if isinstance(error, ArgumentError) else "execution_error"
        return Outcome(kind, None, error.code, shortened(error.message, _LONGEST_MESSAGE))
    except BaseException as error:
        if journal is not None:
            journal.undo()
        if undeclared == "raise" or isinstance(error, InfrastructureFailure) or not is_of_the_tool(error):
            raise
        return undeclared_failure(name, error, undeclared)
    finally:
        if turn is not None:
            turn.release()
    if tool.read_only and (not value or (type(value) is dict and value.get("items") == [])) and is_nothing(value):
        return Outcome("empty", value)
    return Outcome("ok", value)


def in_use() -> SessionInUse:
    """The error of a session that a second thread uses."""
    return SessionInUse(
        "two threads use one session at once: open a session for each (environment.open), or fork it, or let them take "
        "turns"
    )


# What came ------------------------------------------------------------------------------------------------------------


def is_nothing(value: Any) -> bool:
    """Whether a value says that nothing was found: ``None``, ``[]``, ``{}``, or a page without items.

    A page is an object whose ``items`` stand alone, with a ``total``, or with a ``next_cursor``. A cart without items
    is a cart. ``0``, ``""`` and ``False`` are values.
    """
    if type(value) is dict:
        if value.get("items") == []:
            return "next_cursor" in value or value.keys() <= _PAGE
        return not value
    return value is None or (isinstance(value, list | tuple) and not value)


def unknown_tool(name: str) -> Outcome:
    """The outcome of a call of a tool that is not there."""
    return Outcome("unknown_tool", None, "unknown_tool", f"there is no tool named {name[:60]!r}")


def schema_error(spec: ToolSpec, arguments: Mapping[str, Any], checker: Checker | None = None) -> Outcome:
    """The outcome of a call whose arguments do not fit: the kind of the first mismatch, and what it is."""
    first = mismatches(spec.compiled, checker or spec.compiled.literal, arguments)[0]
    return Outcome("schema_error", None, first.kind, shortened(first.sentence, _LONGEST_MISMATCH))


# Whole numbers --------------------------------------------------------------------------------------------------------


def whole_numbers(schema: Any) -> Callable[[Any], Any] | None:
    """What turns floats into ``int`` where a schema says integer; ``None`` where it says so nowhere.

    JSON does not tell 5.0 from 5, and JSON Schema takes both for integers; Python's indexes and ranges do not.
    """
    if not isinstance(schema, Mapping):
        return None
    if schema.get("type") == "integer":
        return lambda value: int(value) if type(value) is float else value
    branches = [
        made for key in ("anyOf", "oneOf", "allOf") for made in map(whole_numbers, schema.get(key) or ()) if made
    ]
    if branches:
        numbers = any(inner.get("type") == "number" for key in ("anyOf", "oneOf") for inner in schema.get(key) or ())
        return _whole_in_any(branches, (list, dict) if numbers else (float, list, dict))
    items = whole_numbers(schema.get("items"))
    if items is not None:
        return lambda value: [items(inner) for inner in value] if isinstance(value, list) else value
    return _whole_members(schema.get("properties") or {}, whole_numbers(schema.get("additionalProperties")))


def _whole_in_any(branches: Sequence[Callable[[Any], Any]], kinds: tuple[type, ...]) -> Callable[[Any], Any]:
    def whole(value: Any) -> Any:
        if isinstance(value, kinds):
            for made in branches:  # each leaves alone what is not its own
                value = made(value)
        return value

    return whole


def _whole_members(schemas: Mapping[str, Any], others: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    members = {name: made for name, inner in schemas.items() if (made := whole_numbers(inner))}
    if not members and others is None:
        return None

    def whole(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        for name in members if others is None else value:
            made = members.get(name) if name in schemas else others
            if made is not None and name in value:
                given = value[name]
                if type(given) is not int:
                    value = {**value, name: made(given)}
        return value

    return whole
