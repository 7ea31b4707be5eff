"""A recursive-descent reader of call lists, over tokens that regular expressions find. No text is ever evaluated.

Every pattern is anchored at the position reached so far and uses possessive quantifiers, so each character is read a
bounded number of times; the depth of the recursion is bounded by the limit on nesting.
"""

from __future__ import annotations

import math
import re
from typing import Any, Final, NoReturn

from callwright.language.parser import FailureStage, ParseFailure, ParseLimits
from callwright.language.program import PREFIX, Reference
from callwright.language.shortening import excerpt
from callwright.language.writable import LONGEST_NUMBER, SURROGATE

NAME: Final = r"[\w$@][\w$@.\-/:]*+"
#: A reference outside quotes. What it names, or that it names nothing, is for the program to say.
REFERENCE: Final = r"API_RESPONSE_\w*+(?:\.[\w\-]*+|\[[\w\-]*+\])*+"
_BLANK: Final = r"[ \t\r\n\f]*+"
_SPACE: Final = re.compile(_BLANK)
_CALL: Final = re.compile(rf"({NAME}){_BLANK}\({_BLANK}")
_KEYWORD: Final = re.compile(rf"({NAME}){_BLANK}=(?!=){_BLANK}")
_VALUE: Final = re.compile(
    r"""(?P<string>'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+")"""
    r"|(?P<number>[+-]?+(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?+[0-9]++)?+)(?![\w.])"
    rf"|(?P<reference>{REFERENCE})"
    r"|(?P<word>[^\W\d]\w*+)"
    r"|(?P<open>[\[{])",
    re.DOTALL,
)
_COMMA: Final = re.compile(rf"{_BLANK},{_BLANK}")
_COLON: Final = re.compile(rf"{_BLANK}:{_BLANK}")
_ESCAPE: Final = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_SHORT_ESCAPES: Final = dict(zip("\\'\"abfnrtv", "\\'\"\a\b\f\n\r\t\v", strict=True)) | {"\n": ""}
_WORDS: Final = {"True": True, "False": False, "None": None, "true": True, "false": False, "null": None}


class Stop(Exception):
    """Carries the failure to the entry of the parser; never leaves it."""

    def __init__(self, failure: ParseFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Scanner:
    """Reads calls from ``text``, whose first character stands at ``start`` of the completion.

    ``span`` replaces every exact position where there is none: in a quoted call with escapes. Failures of the syntax
    are raised as :class:`Stop`; the first that concerns only the arguments of a call is kept in ``unusable``.
    """

    def __init__(self, text: str, start: int, limits: ParseLimits, span: tuple[int, int] | None = None) -> None:
        self.text, self.start, self.limits, self.span = text, start, limits, span
        self.at = 0
        self.unusable: ParseFailure | None = None

    def call_list(self) -> list[tuple[str, dict[str, Any]]]:
        """Read the whole body: a list of calls, or a list of quoted calls."""
        self.skip(_SPACE)
        opening = self.at
        if not self.skip_symbol("["):
            message = "the body is not a list; calls are written between [ and ]"
            self.stop("structure", "not_a_list", message, opening, len(self.text))
        self.skip(_SPACE)
        calls: list[tuple[str, dict[str, Any]]] = []
        quoted = self.text[self.at : self.at + 1] in ("'", '"')
        while not self.skip_symbol("]"):
            first = self.at
            calls.append(self.quoted_call() if quoted else self.call())
            if len(calls) > self.limits.calls:
                self.stop("limit", "too_many_calls", f"there are more than {self.limits.calls} calls", first, self.at)
            self.separator("]")
        self.finish()
        return calls

    def finish(self) -> None:
        """Refuse text after the end."""
        self.skip(_SPACE)
        if self.at < len(self.text):
            self.stop("syntax", "unexpected_text", "there is text after the calls", self.at, len(self.text))

    def call(self) -> tuple[str, dict[str, Any]]:
        match = _CALL.match(self.text, self.at)
        if match is None:
            self.stop("syntax", "invalid_call", f"{self.shown()} does not begin a call: name(parameter=value)", self.at)
        self.at = match.end()
        arguments: dict[str, Any] = {}
        while not self.skip_symbol(")"):
            first = self.at
            keyword = _KEYWORD.match(self.text, self.at)
            if keyword is not None:
                self.at = keyword.end()
            value = self.value(2)
            if keyword is None:
                message = f"an argument of {excerpt(match[1])} has no name; write parameter=value"
                self.keep("positional_argument", message, first, self.at)
            else:
                if keyword[1] in arguments:
                    message = f"duplicate argument key {excerpt(keyword[1])}"
                    self.keep("duplicate_key", message, *keyword.span(1))
                arguments[keyword[1]] = value
            self.separator(")")
        return match[1], arguments

    def quoted_call(self) -> tuple[str, dict[str, Any]]:
        """Read a string that holds a call, as in the data of TIER's released code."""
        first = self.at
        match = _VALUE.match(self.text, self.at)
        if match is None or match.lastgroup != "string":
            message = f"{self.shown()} stands in a list of quoted calls, but is not one"
            self.stop("syntax", "invalid_call", message, first)
        self.at = match.end()
        exact = "\\" not in match[0]
        inner = Scanner(
            self.unescape(match), self.start + first + 1, self.limits, None if exact else self.place(first, self.at)
        )
        inner.skip(_SPACE)
        call = inner.call()
        inner.finish()
        self.unusable = self.unusable or inner.unusable
        return call

    def value(self, level: int) -> Any:
        """Read one value; a list or object here would be nested on this level."""
        match = _VALUE.match(self.text, self.at)
        if match is None:
            self.no_value()
        first = self.at
        self.at = match.end()
        kind = match.lastgroup
        if kind == "string":
            text = self.unescape(match)
            return (Reference.parse(text) or text) if text.startswith(PREFIX) else text
        if kind == "number":
            return self.number(match)
        if kind == "reference":
            return Reference.parse(match[0])
        if kind == "open":
            if level > self.limits.nesting:
                message = f"values are nested deeper than {self.limits.nesting}"
                self.stop("limit", "too_deep", message, first, self.at)
            self.skip(_SPACE)
            return self.list_of_values(level) if match[0] == "[" else self.table(level)
        if match[0] not in _WORDS:
            message = f"{excerpt(match[0])} is neither a value nor in quotes"
            self.stop("syntax", "bare_word", message, first, self.at)
        return _WORDS[match[0]]

    def list_of_values(self, level: int) -> list[Any]:
        """Read a list from after its bracket."""
        values = []
        while not self.skip_symbol("]"):
            values.append(self.value(level + 1))
            self.separator("]")
        return values

    def table(self, level: int) -> dict[str, Any]:
        """Read a dictionary from after its brace; its keys are strings, as in JSON."""
        values: dict[str, Any] = {}
        while not self.skip_symbol("}"):
            first = self.at
            match = _VALUE.match(self.text, self.at)
            if match is None:
                self.no_value()
            if match.lastgroup != "string":
                self.stop("syntax", "key_not_text", f"{self.shown()} is a key, but keys are quoted text", first)
            self.at = match.end()
            key = self.unescape(match)
            if not self.skip(_COLON):
                self.stop("syntax", "missing_colon", "a key is followed by : and its value", self.at)
            value = self.value(level + 1)
            if key in values:
                self.keep("duplicate_key", f"duplicate argument key {excerpt(key)}", first, match.end())
            values[key] = value
            self.separator("}")
        return values

    def number(self, match: re.Match[str]) -> int | float:
        """Decimal integers, kept exact, and finite decimal fractions."""
        text = match[0]
        digits = text.lstrip("+-")
        if len(digits) > LONGEST_NUMBER:
            message = f"a number has more than {LONGEST_NUMBER} digits"
            self.stop("limit", "number_too_long", message, *match.span())
        try:
            value = int(text) if digits.isdigit() else float(text)
        except ValueError:  # the process allows fewer digits: sys.set_int_max_str_digits
            self.stop("limit", "number_too_long", "a number has too many digits", *match.span())
        if digits[0] == "0" and digits != "0" if isinstance(value, int) else not math.isfinite(value):
            self.stop("syntax", "invalid_number", f"{excerpt(text)} is not a finite decimal number", *match.span())
        return value

    def unescape(self, match: re.Match[str]) -> str:
        """The text of a string literal, by Python's rules except ``\\N``; escaped surrogate pairs become characters."""
        text = match[0][1:-1]
        if "\\" not in text:
            return text
        try:
            text = _ESCAPE.sub(_unescape, text)
            if not text.isascii() and SURROGATE.search(text):
                text = text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            message = "a string holds half of a surrogate pair, which is not a character"
            self.stop("syntax", "lone_surrogate", message, *match.span())
        except (ValueError, OverflowError):
            self.stop("syntax", "invalid_escape", "a string holds a malformed escape", *match.span())
        return text

    # Small steps

    def skip(self, pattern: re.Pattern[str]) -> bool:
        """Move past the pattern if it stands here."""
        match = pattern.match(self.text, self.at)
        if match is None:
            return False
        self.at = match.end()
        return True

    def skip_symbol(self, symbol: str) -> bool:
        """Move past one character if it stands here."""
        if self.text.startswith(symbol, self.at):
            self.at += 1
            return True
        return False

    def separator(self, closing: str) -> None:
        """Move past a comma (one may also stand before the closing bracket), or up to the closing bracket."""
        if not self.skip(_COMMA):
            self.skip(_SPACE)
            if not self.text.startswith(closing, self.at):
                message = f"{self.shown()} stands where , or {closing} is expected"
                self.stop("syntax", "missing_separator", message, self.at)

    def no_value(self) -> NoReturn:
        """Stop where a value should begin."""
        if self.text[self.at : self.at + 1] in ("'", '"'):
            self.stop("syntax", "unclosed_string", "a string is not closed on its line", self.at)
        self.stop("syntax", "invalid_value", f"{self.shown()} does not begin a value", self.at)

    def shown(self) -> str:
        """The text that follows, for a message."""
        return excerpt(self.text[self.at : self.at + 12]) if self.at < len(self.text) else "the end"

    def place(self, first: int, last: int) -> tuple[int, int]:
        """The span in the completion."""
        return self.span or (self.start + first, self.start + last)

    def keep(self, code: str, message: str, first: int, last: int) -> None:
        """Note a failure that counts only if the syntax holds to the end."""
        if self.unusable is None:
            self.unusable = ParseFailure("arguments", code, message, self.place(first, last))

    def stop(self, stage: FailureStage, code: str, message: str, first: int, last: int | None = None) -> NoReturn:
        """Give up; without ``last`` the span is the character at ``first``, if there is one."""
        end = min(first + 1, len(self.text)) if last is None else last
        raise Stop(ParseFailure(stage, code, message, self.place(first, end)))


def _unescape(match: re.Match[str]) -> str:
    octal, two, four, eight, other = match.groups()
    if other is not None:
        if other in "xuUN":
            raise ValueError
        return _SHORT_ESCAPES.get(other, match[0])
    return chr(int(octal, 8)) if octal else chr(int(two or four or eight, 16))
