"""The form of Hermes and Qwen chat templates: one tool-call block for each call."""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import field, frozen

from callwright.errors import CannotExpress
from callwright.language.envelope import check_length, too_long
from callwright.language.parser import DEFAULT_LIMITS, ParseFailure, ParseLimits
from callwright.language.program import Program
from callwright.language.shortening import excerpt
from callwright.language.teaching import Taught, check_taught
from callwright_plugins.chat_ir.calls import NO_CALL_ANSWER, CallReader, check, line
from callwright_plugins.chat_ir.instructions import chat_instructions

_THINK, _THINK_END = "<think>", "</think>"
_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_KEY: Final = "arguments"


@frozen
class HermesParser:
    """The Hermes and Qwen form.

    An optional ``<think>…</think>`` at the beginning, which ends at its first ``</think>``; then text for the user, if
    any; then ``<tool_call>{"name": …, "arguments": {…}}</tool_call>`` for each call, with white space between them and
    nothing after the last. Text without such blocks is an answer, a program without calls. Calls are numbered by
    position. ``thought`` is the text of the think block or, without one, the text before the first call.

    There are no references: text that looks like one is text. ``returns`` is ``all`` for several calls, else ``one``.

    Cannot be expressed: references; ids other than 0, 1, 2 …; another ``returns``; numbers that are not finite; halves
    of surrogate pairs; a thought with ``</think>``; anything beyond the limits.
    """

    limits: ParseLimits = DEFAULT_LIMITS
    teaches: Taught = field(default="allowed", alias="instructions", validator=check_taught, kw_only=True)
    name: ClassVar[str] = "hermes"
    takes_handles: ClassVar[bool] = True

    def parse(self, text: str) -> Program | ParseFailure:
        """Read a completion.

        Failures: ``too_long``, ``too_many_calls``, ``too_deep``, ``number_too_long`` (``limit``); ``unclosed_think``,
        ``empty_answer``, ``unopened_tool_call``, ``unclosed_tool_call``, ``text_between``, ``trailing_text``
        (``envelope``); ``invalid_json``, ``lone_surrogate`` (``syntax``); ``call_not_object``, ``unexpected_key``,
        ``missing_name``, ``missing_arguments``, ``invalid_name``, ``duplicate_key`` (``structure``);
        ``arguments_not_object``, ``duplicate_key`` (``arguments``).
        """
        if len(text) > self.limits.characters:
            return too_long(text, self.limits)
        at = len(text) - len(text.lstrip())
        thought = None
        if text.startswith(_THINK, at):
            close = text.find(_THINK_END, at)
            if close < 0:
                return _failure("unclosed_think", "the <think> block is never closed", at, at + len(_THINK))
            thought = text[at + len(_THINK) : close].strip()
            at = close + len(_THINK_END)
        opened = text.find(_OPEN, at)
        stray = text.find(_CLOSE, at, opened if opened >= 0 else len(text))
        if stray >= 0:
            message = "there is a </tool_call> without a <tool_call> before it"
            return _failure("unopened_tool_call", message, stray, stray + len(_CLOSE))
        if opened < 0:
            if not text[at:].strip():
                return _failure("empty_answer", "there is neither a call nor an answer", at, len(text))
            return Program((), "one", thought or "", text[at:].strip())
        if thought is None:
            thought = text[at:opened].strip()
        reader = CallReader(_KEY, self.limits)
        while opened >= 0:
            start = opened + len(_OPEN)
            close = text.find(_CLOSE, start)
            if close < 0:
                return _failure("unclosed_tool_call", "a <tool_call> block is never closed", opened, start)
            failure = reader.read(text[start:close], start)
            if failure is not None:
                return failure
            at = close + len(_CLOSE)
            opened = text.find(_OPEN, at)
            gap = text[at : opened if opened >= 0 else len(text)]
            if gap.strip():
                first = at + len(gap) - len(gap.lstrip())
                code = "text_between" if opened >= 0 else "trailing_text"
                message = f"there is text after a call: {excerpt(gap.strip())}"
                return _failure(code, message, first, first + len(gap.strip()))
        return reader.program(thought)

    def render(self, program: Program) -> str:
        """Write a completion. Raises :class:`callwright.errors.CannotExpress`."""
        check(program, self.limits)
        if _THINK_END in program.thought:
            raise CannotExpress("the thought holds </think>, which would end it")
        blocks = "\n".join(f"{_OPEN}\n{line(call, _KEY)}\n{_CLOSE}" for call in program.calls)
        if not blocks:
            blocks = program.text or NO_CALL_ANSWER
            if not blocks.strip() or _OPEN in blocks or _CLOSE in blocks or blocks.lstrip().startswith(_THINK):
                raise CannotExpress("the words to the user are empty, or hold a tag that is no word")
        text = f"{_THINK}\n{program.thought}\n{_THINK_END}\n\n{blocks}" if program.thought else blocks
        check_length(text, self.limits)
        return text

    def instructions(self) -> str:
        """The part of the system prompt that teaches this form."""
        return self.instructions_within(steps=True, requests=True)

    def instructions_within(self, *, steps: bool, requests: bool) -> str:
        """The same for what is allowed: answers after results of calls, and further requests of the user."""
        return chat_instructions(self, _RULES, self.teaches, steps=steps, requests=requests)


def _failure(code: str, message: str, first: int, last: int) -> ParseFailure:
    return ParseFailure("envelope", code, message, (first, last))


_RULES = (
    "You may begin with one <think> block.",
    'Write each call in a <tool_call> block of its own: one JSON object with the keys "name" (the exact name of a '
    'listed tool) and "arguments" (the object of its arguments, {} if there are none).',
    "Write nothing after the last </tool_call>, and nothing between two blocks.",
    "An answer without <tool_call> is plain text for the user.",
)
