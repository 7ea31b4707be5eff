"""``[TOOL_0(parameter=value), TOOL_1(parameter=API_RESPONSE_0)]`` (TIER, appendix A.3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from attrs import field, frozen

from callwright.errors import CannotExpress
from callwright.language.envelope import Enveloped, read_envelope, said_after, write_envelope
from callwright.language.parser import DEFAULT_LIMITS, ParseFailure, ParseLimits
from callwright.language.program import Call, Program, Reference, Returns
from callwright.language.shortening import excerpt
from callwright.language.teaching import Taught, allowed_instructions, check_taught
from callwright.language.wording import tier_instructions
from callwright.language.writable import SURROGATE, check_program
from callwright_plugins.direct_ir.scanner import NAME, REFERENCE, Scanner, Stop

_NAME: Final = re.compile(NAME)
_BARE_REFERENCE: Final = re.compile(REFERENCE)


@frozen
class DirectParser(Enveloped):
    """TIER's direct call list.

    Calls are numbered by their position, from 0. Values are Python's literals for what JSON knows (text in single or
    double quotes, decimal numbers, ``True``, ``False``, ``None``, lists, dictionaries with text as keys) or JSON's
    ``true``, ``false`` and ``null``. A reference is a bare word such as ``API_RESPONSE_0.items[2].sku``, or a string of
    that form. Names of tools and parameters are runs of letters, digits and ``_ $ @ . - / :``. The tag may leave out
    ``return``, as in the paper; then it means ``all`` if no argument of several calls is a reference, else ``one``. So
    ``all`` of calls that depend on one another needs the attribute, which ``render`` always writes. Also read is the
    list of quoted calls, ``["f(a=1)", "g()"]``, that TIER's released code takes. Not read: positional arguments,
    tuples, sets, hexadecimal numbers, arithmetic, ``\\N{…}`` escapes, prefixed, tripled or adjacent strings, comments.

    Cannot be expressed: ids other than 0, 1, 2 …; names with other characters; a literal string that begins like a
    reference; references with a path of keys that hold ``.``, ``[`` or ``]``; numbers that are not finite; halves of
    surrogate pairs; a thought with ``</think>`` directly before a tool-call tag; anything beyond the limits.
    """

    limits: ParseLimits = DEFAULT_LIMITS
    teaches: Taught = field(default="allowed", alias="instructions", validator=check_taught, kw_only=True)
    name: ClassVar[str] = "direct"

    def parse(self, text: str) -> Program | ParseFailure:
        """Read a completion. Failures of the envelope, and then:

        ``not_a_list`` (``structure``); ``invalid_call``, ``invalid_value``, ``invalid_number``, ``invalid_escape``,
        ``bare_word``, ``unclosed_string``, ``lone_surrogate``, ``key_not_text``, ``missing_colon``,
        ``missing_separator``, ``unexpected_text`` (``syntax``); ``positional_argument``, ``duplicate_key``
        (``arguments``); ``too_many_calls``, ``too_deep``, ``number_too_long`` (``limit``).
        """
        envelope = read_envelope(text, self.limits, return_required=False)
        if isinstance(envelope, ParseFailure):
            return envelope
        body, start = envelope.body, envelope.start
        half = None if body.isascii() else SURROGATE.search(body)
        if half is not None:
            message = "the body holds half of a surrogate pair, which is not a character"
            return ParseFailure("syntax", "lone_surrogate", message, (start + half.start(), start + half.end()))
        scanner = Scanner(body, start, self.limits)
        try:
            found = scanner.call_list()
        except Stop as stop:
            return stop.failure
        except RecursionError:
            message = "the values are nested deeper than the interpreter has room for"
            return ParseFailure("limit", "too_deep", message, (start, start + len(body)))
        if scanner.unusable is not None:
            return scanner.unusable
        if not found:
            return Program((), envelope.returns or "one", envelope.thought, said_after(text, envelope))
        calls = tuple(Call.read(number, tool, arguments) for number, (tool, arguments) in enumerate(found))
        return Program(calls, envelope.returns or _usual_returns(calls), envelope.thought)

    def render(self, program: Program) -> str:
        """Write a completion with the calls on one line. Raises :class:`callwright.errors.CannotExpress`."""
        check_program(program, self.limits, "positions", "strings")
        calls = []
        for call in program.calls:
            arguments = ", ".join(f"{_name(key)}={_literal(value)}" for key, value in call.arguments.items())
            calls.append(f"{_name(call.tool)}({arguments})")
        # "<" stands only inside strings, so that an escape of it changes nothing
        body = f"[{', '.join(calls)}]".replace("</tool_call", "\\x3c/tool_call")
        return write_envelope(program, body, self.limits)

    def instructions(self) -> str:
        """The part of the system prompt that teaches this form."""
        return self.instructions_within(steps=True, requests=True)

    def instructions_within(self, *, steps: bool, requests: bool) -> str:
        """The same for what is allowed: answers after results of calls, and further requests of the user."""
        if self.teaches == "paper":
            return tier_instructions(self, _RULES)
        return allowed_instructions(self, _ALLOWED, steps=steps, requests=requests)


def _usual_returns(calls: tuple[Call, ...]) -> Returns:
    """What a list of calls returns that does not say it: all results, unless some are only on the way to others."""
    return "all" if len(calls) > 1 and not any(call.located for call in calls) else "one"


def _name(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise CannotExpress(f"the name {excerpt(name)} holds characters that cannot stand outside quotes")
    return name


def _literal(value: Any) -> str:
    if isinstance(value, Reference):
        text = str(value)
        return text if _BARE_REFERENCE.fullmatch(text) else repr(text)
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, str):
        return str.__repr__(value)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{str.__repr__(key)}: {_literal(inner)}" for key, inner in value.items()) + "}"
    return "[" + ", ".join(map(_literal, value)) + "]"


_RULES = (
    "The body is one list in square brackets and nothing else: calls separated by commas, each written "
    "TOOL_NAME(PARAMETER=value, …) and none of them in quotes.",
    "The calls run from left to right and are numbered 0, 1, 2 and so on by their position.",
    "Every argument is given by name. A tool without arguments is called with empty parentheses.",
    "Values are of the types that the tool's schema asks for: text in quotes, numbers, True, False, None, lists such "
    "as ['a', 'b'] and objects such as {'key': 1}.",
    "For the result of an earlier call write API_RESPONSE_0 without quotes, or API_RESPONSE_0.field for one field of "
    "it. Refer only to earlier calls of the same list.",
    "If no call is to be made, the list is empty: [].",
)
_PATHS = (
    "A path goes on into it: API_RESPONSE_0.field[0] is the first item of a list, API_RESPONSE_0.field.inner a field "
    "of an object."
)
#: The rules with paths into results, which the paper's do not explain.
_ALLOWED = tuple(f"{rule} {_PATHS}" if "earlier call" in rule else rule for rule in _RULES)
