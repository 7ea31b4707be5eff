"""What both chat forms share: one JSON object a call, ids by position, and no references."""

from __future__ import annotations

from typing import Any, Final

from callwright.errors import CannotExpress
from callwright.language.parser import FailureStage, ParseFailure, ParseLimits
from callwright.language.program import Call, Program, Returns
from callwright.language.shortening import excerpt
from callwright.language.strict_json import Duplicated, decode, encode, kind, locate
from callwright.language.writable import check_program

#: What stands in place of an answer where a program without calls is rendered: programs do not hold the answer's text.
NO_CALL_ANSWER: Final = "No tool call is needed."


class CallReader:
    """Collects the calls of one completion; ``arguments_key`` is what the form calls the arguments.

    ``unusable`` is the first failure that concerns only arguments; it counts if nothing else is wrong.
    """

    def __init__(self, arguments_key: str, limits: ParseLimits) -> None:
        self.arguments_key, self.limits = arguments_key, limits
        self.calls: list[Call] = []
        self.unusable: ParseFailure | None = None

    def read(self, text: str, start: int) -> ParseFailure | None:
        """Read the JSON object ``text``, which stands at ``start`` of the completion, as the next call."""
        if len(self.calls) == self.limits.calls:
            message = f"there are more than {self.limits.calls} calls"
            return ParseFailure("limit", "too_many_calls", message, (start, start + len(text)))
        value = decode(text, start, self.limits.nesting + 1)  # the brackets of the call itself
        if isinstance(value, ParseFailure):
            return value
        if isinstance(value, Duplicated):
            stage: FailureStage = "structure" if value.depth == 1 else "arguments"
            message = f"duplicate {'key' if value.depth == 1 else 'argument key'} {excerpt(value.key)}"
            failure = ParseFailure(stage, "duplicate_key", message, value.span)
            if stage == "structure":
                return failure
            self.unusable = self.unusable or failure
            value = value.value
        if not isinstance(value, dict):
            message = f"a call is {kind(value)}; it must be an object"
            return _failure(text, start, (), "call_not_object", message)
        return self._take(value, text, start)

    def _take(self, value: dict[str, Any], text: str, start: int) -> ParseFailure | None:
        for position, key in enumerate(value):
            if key != "name" and key != self.arguments_key:
                message = f"a call has the keys name and {self.arguments_key}, not {excerpt(key)}"
                return _failure(text, start, (position,), "unexpected_key", message, of_key=True)
        for key in ("name", self.arguments_key):
            if key not in value:
                return _failure(text, start, (), f"missing_{key}", f"the call has no key {key}")
        positions = {key: position for position, key in enumerate(value)}
        if not isinstance(value["name"], str):
            message = f"the name of the tool is {kind(value['name'])}; it must be text"
            return _failure(text, start, (positions["name"],), "invalid_name", message)
        arguments = value[self.arguments_key]
        if not isinstance(arguments, dict):
            if self.unusable is None:
                message = f"the {self.arguments_key} of {excerpt(value['name'])} are {kind(arguments)}, not an object"
                path = (positions[self.arguments_key],)
                self.unusable = _failure(text, start, path, "arguments_not_object", message, stage="arguments")
            arguments = {}
        self.calls.append(Call.read(len(self.calls), value["name"], arguments))
        return None

    def program(self, thought: str) -> Program | ParseFailure:
        """What was read."""
        return self.unusable or Program(tuple(self.calls), returns_of(len(self.calls)), thought)


def returns_of(calls: int) -> Returns:
    """Every call's result goes back to the model: ``all`` of several, the ``one`` of one."""
    return "all" if calls > 1 else "one"


def check(program: Program, limits: ParseLimits) -> None:
    """Raise :class:`callwright.errors.CannotExpress` for what neither chat form can write."""
    check_program(program, limits, "positions", "none")
    wanted = returns_of(len(program.calls))
    if program.returns != wanted:
        raise CannotExpress(
            f"the program returns {program.returns}, but in this form {len(program.calls)} calls return {wanted}"
        )


def line(call: Call, arguments_key: str) -> str:
    """A call as one line of JSON."""
    return encode({"name": call.tool, arguments_key: call.arguments})


def _failure(
    text: str,
    start: int,
    path: tuple[int, ...],
    code: str,
    message: str,
    *,
    stage: FailureStage = "structure",
    of_key: bool = False,
) -> ParseFailure:
    key, value = locate(text, path)
    first, last = key if of_key else value
    return ParseFailure(stage, code, message, (start + first, start + last))
