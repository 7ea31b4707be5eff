"""ToolRL's form: a think block, then tool calls, a response, or both (ToolRL, figure 4)."""

from __future__ import annotations

import re
from typing import ClassVar, Final

from attrs import evolve, field, frozen

from callwright.errors import CannotExpress
from callwright.language.envelope import check_length, too_long
from callwright.language.parser import DEFAULT_LIMITS, ParseFailure, ParseLimits
from callwright.language.program import Program
from callwright.language.shortening import excerpt
from callwright.language.teaching import Taught, check_taught
from callwright_plugins.chat_ir.calls import NO_CALL_ANSWER, CallReader, check, line
from callwright_plugins.chat_ir.instructions import chat_instructions

_THINK, _THINK_END = "<think>", "</think>"
_CALLS, _CALLS_END = "<tool_call>", "</tool_call>"
_RESPONSE, _RESPONSE_END = "<response>", "</response>"
_JOINT: Final = re.compile(rf"{_THINK_END}\s*+(?:{_CALLS}|{_RESPONSE})")
_NEXT: Final = re.compile(rf"\s*+({_RESPONSE}|\Z)")
_KEY: Final = "parameters"


@frozen
class ToolRLParser:
    """ToolRL's form.

    ``<think>…</think>``, then ``<tool_call>`` with one ``{"name": …, "parameters": {…}}`` on each line (lines without
    anything are passed over), ``<response>…</response>``, or both in this order. White space may stand around the
    blocks, and nothing else. A response without tool calls is a program without calls, whose ``text`` it is. Calls are
    numbered by position. The think block ends at the first ``</think>`` that is followed by white space and one of the
    other tags, so a thought may mention all of them.

    There are no references: text that looks like one is text. ``returns`` is ``all`` for several calls, else ``one``.

    Cannot be expressed: references; ids other than 0, 1, 2 …; another ``returns``; numbers that are not finite; halves
    of surrogate pairs; a thought with ``</think>`` directly before one of the other tags; anything beyond the limits.
    """

    limits: ParseLimits = DEFAULT_LIMITS
    teaches: Taught = field(default="allowed", alias="instructions", validator=check_taught, kw_only=True)
    name: ClassVar[str] = "toolrl"
    speaking: ClassVar[str] = (
        "There is a user, who answers you. To ask or tell it something, make no call: write a <response> block. The "
        "user reads nothing else."
    )
    takes_handles: ClassVar[bool] = True

    def parse(self, text: str) -> Program | ParseFailure:
        """Read a completion.

        Failures: ``too_long``, ``too_many_calls``, ``too_deep``, ``number_too_long`` (``limit``); ``missing_think``,
        ``leading_text``, ``unclosed_think``, ``missing_tool_call``, ``text_between``, ``unclosed_tool_call``,
        ``unclosed_response``, ``trailing_text`` (``envelope``); ``invalid_json``, ``lone_surrogate`` (``syntax``);
        ``empty_body``, ``call_not_object``, ``unexpected_key``, ``missing_name``, ``missing_parameters``,
        ``invalid_name``, ``duplicate_key`` (``structure``); ``arguments_not_object``, ``duplicate_key``
        (``arguments``).
        """
        if len(text) > self.limits.characters:
            return too_long(text, self.limits)
        start = len(text) - len(text.lstrip())
        if not text.startswith(_THINK, start):
            at = text.find(_THINK)
            if at < 0:
                return _failure("missing_think", "the completion does not begin with <think>", start, start)
            return _failure("leading_text", "there is text before <think>", start, at)
        joint = _find_joint(text, start + len(_THINK))
        if joint is None:
            return _diagnose(text, start)
        thought = text[start + len(_THINK) : joint.start()].strip()
        reader = CallReader(_KEY, self.limits)
        at = joint.end()
        if joint[0].endswith(_CALLS):
            close = text.find(_CALLS_END, at)
            if close < 0:
                return _failure("unclosed_tool_call", "<tool_call> is never closed", at - len(_CALLS), at)
            failure = _read_lines(reader, text[at:close], at)
            if failure is not None:
                return failure
            at = close + len(_CALLS_END)
            following = _NEXT.match(text, at)
            if following is None:
                return _stray(text, at)
            if not following[1]:
                return reader.program(thought)
            at = following.end()
        close = text.find(_RESPONSE_END, at)
        if close < 0:
            return _failure("unclosed_response", "<response> is never closed", at - len(_RESPONSE), at)
        if text[close + len(_RESPONSE_END) :].strip():
            return _stray(text, close + len(_RESPONSE_END))
        program = reader.program(thought)
        if not isinstance(program, Program) or program.calls:
            return program
        return evolve(program, text=text[at:close].strip())

    def render(self, program: Program) -> str:
        """Write a completion. Raises :class:`callwright.errors.CannotExpress`."""
        check(program, self.limits)
        head = f"{_THINK}\n{program.thought}\n"
        if program.calls:
            block = "\n".join((_CALLS, *(line(call, _KEY) for call in program.calls), _CALLS_END))
        else:
            said = program.text or NO_CALL_ANSWER
            if _RESPONSE_END in said:
                raise CannotExpress("the words to the user hold </response>, which would end them")
            block = f"{_RESPONSE}{said}{_RESPONSE_END}"
        text = f"{head}{_THINK_END}\n{block}"
        joint = _find_joint(text, len(_THINK))
        if joint is None or joint.start() != len(head):
            raise CannotExpress("the thought holds </think> directly before another tag, which would end it")
        check_length(text, self.limits)
        return text

    def instructions(self) -> str:
        """The part of the system prompt that teaches this form."""
        return self.instructions_within(steps=True, requests=True)

    def instructions_within(self, *, steps: bool, requests: bool) -> str:
        """The same for what is allowed: answers after results of calls, and further requests of the user."""
        return chat_instructions(self, _RULES, self.teaches, steps=steps, requests=requests)


def _read_lines(reader: CallReader, block: str, start: int) -> ParseFailure | None:
    at = 0
    for text in block.split("\n"):
        if text.strip():
            failure = reader.read(text, start + at)
            if failure is not None:
                return failure
        at += len(text) + 1
    if not reader.calls:
        message = "the <tool_call> block holds no call"
        return ParseFailure("structure", "empty_body", message, (start, start + len(block)))
    return None


def _find_joint(text: str, start: int) -> re.Match[str] | None:
    at = text.find(_THINK_END, start)
    while at >= 0:
        joint = _JOINT.match(text, at)
        if joint is not None:
            return joint
        at = text.find(_THINK_END, at + len(_THINK_END))
    return None


def _diagnose(text: str, start: int) -> ParseFailure:
    close = text.find(_THINK_END, start)
    if close < 0:
        return _failure("unclosed_think", "the <think> block is never closed", start, start + len(_THINK))
    after = close + len(_THINK_END)
    tags = [at for at in (text.find(_CALLS, after), text.find(_RESPONSE, after)) if at >= 0]
    if tags:
        return _failure("text_between", "there is text between the <think> block and the next one", after, min(tags))
    return _failure("missing_tool_call", "neither <tool_call> nor <response> follows the thought", after, len(text))


def _stray(text: str, at: int) -> ParseFailure:
    stray = text[at:].strip()
    first = text.index(stray, at)
    return _failure("trailing_text", f"there is text after the blocks: {excerpt(stray)}", first, first + len(stray))


def _failure(code: str, message: str, first: int, last: int) -> ParseFailure:
    return ParseFailure("envelope", code, message, (first, last))


_RULES = (
    "Begin with one <think> block. After it write one <tool_call> block, one <response> block, or both in this order, "
    "and nothing outside the blocks.",
    'Inside <tool_call> every line is one call, a JSON object with the keys "name" (the exact name of a listed tool) '
    'and "parameters" (the object of its arguments, {} if there are none). Several lines are several calls.',
    "Inside <response> write what you say to the user.",
)
