"""The form ``zebra``: a line of JSON for each call, such as ``["find_books", {"topic": "birds"}]``.

What a parser promises: ``parse`` is total on text, pure, and takes time linear in its length;
``parse(render(program))`` is the program again. The conformance kit tries all of it.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from callwright.language.envelope import Enveloped, read_envelope, said_after, write_envelope
from callwright.language.parser import DEFAULT_LIMITS, FailureStage, ParseFailure, ParseLimits
from callwright.language.program import Call, Program, Reference, revive
from callwright.language.strict_json import Duplicated, decode, encode
from callwright.language.writable import check_program


@frozen
class Zebra(Enveloped):
    """The calls stand in TIER's envelope (a think block, then a tool-call block); the envelope is ready-made."""

    limits: ParseLimits = DEFAULT_LIMITS
    name: ClassVar[str] = "zebra"

    def parse(self, text: str) -> Program | ParseFailure:
        """Read a completion. A failure says at which stage, and where in the text."""
        envelope = read_envelope(text, self.limits)
        if isinstance(envelope, ParseFailure):
            return envelope
        calls: list[Call] = []
        start = envelope.start
        for line in envelope.body.split("\n"):
            if line.strip():
                call = self._call(line, start, len(calls))
                if isinstance(call, ParseFailure):
                    return call
                calls.append(call)
            start += len(line) + 1
        returns = envelope.returns or "one"
        if not calls:
            return Program((), returns, envelope.thought, said_after(text, envelope))
        return Program(tuple(calls), returns, envelope.thought)

    def _call(self, line: str, start: int, number: int) -> Call | ParseFailure:
        def failure(stage: FailureStage, code: str, message: str) -> ParseFailure:
            return ParseFailure(stage, code, f"call {number}: {message}", (start, start + len(line)))

        if number >= self.limits.calls:
            return failure("limit", "too_many_calls", f"there is a limit of {self.limits.calls}")
        value = decode(line, start, self.limits.nesting + 1)
        if isinstance(value, ParseFailure):
            return value
        if isinstance(value, Duplicated):
            return failure("arguments", "duplicate_key", f"the key {value.key!r:.80} is there twice")
        if not isinstance(value, list) or len(value) != 2 or not isinstance(value[0], str) or not value[0]:
            return failure("structure", "not_a_call", 'a line is a list ["tool", {arguments}]')
        if not isinstance(value[1], dict):
            return failure("arguments", "arguments_not_object", "the arguments are no object")
        return Call(number, value[0], revive(value[1]))

    def render(self, program: Program) -> str:
        """Write a completion. Raises :class:`callwright.errors.CannotExpress` for a program that has no such text."""
        check_program(program, self.limits, "positions", "strings")
        lines = [encode([call.tool, call.arguments]) for call in program.calls]
        return write_envelope(program, "\n".join(lines), self.limits)

    def instructions(self) -> str:
        """The part of the system prompt that teaches the form. The examples are rendered, so they are always right."""
        one = Program((Call(0, "find_books", {"topic": "birds"}),), "one", "One tool answers this.")
        two = Program(
            (Call(0, "find_books", {"topic": "birds"}), Call(1, "borrow", {"title": Reference(0, (0, "title"))})),
            "one",
            "The second call takes what the first one returns.",
        )
        none = Program((), "one", "No tool fits.")
        return (
            "Think first, between <think> and </think>. Then write one <tool_call> block with a line of JSON for each "
            "call: the name of the tool, then its arguments. API_RESPONSE_0 stands for the result of the first line. "
            'return="one" gives the user the last result, return="all" those of all calls.\n\n'
            f"{self.render(one)}\n\n{self.render(two)}\n\nIf no tool fits, make no call:\n\n{self.render(none)}"
        )
