"""JSON as several forms need it: strict, bounded, with a value instead of an exception for every defect.

The standard library's scanner does the reading, because it keeps integers exact and calls back for pairs and
constants. What it lets pass is refused here: duplicate keys, ``NaN`` and infinities (``1e999`` included), halves of
surrogate pairs, numbers and nestings without bound. Positions are worked out only after something went wrong.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from callwright.errors import CannotExpress
from callwright.language.parser import FailureStage, ParseFailure
from callwright.language.program import plain
from callwright.language.shortening import excerpt
from callwright.language.writable import LONGEST_NUMBER, SURROGATE

Span = tuple[int, int]

WHITE_SPACE: Final = " \t\n\r"
# A string that is never closed runs to the end of the text, so that its rest is not scanned again and again.
_TOKEN: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{}:,]|[^\s"\[\]{}:,]++', re.DOTALL)
_BRACKET: Final = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


class Duplicated(NamedTuple):
    """Valid JSON with a key that its object already has; ``value`` holds the last of them.

    ``depth`` is the number of brackets around the key (1: the outermost object); of several such keys it is the one
    that is nested least. What that means, the form decides.
    """

    value: Any
    depth: int
    key: str
    span: Span


class _Refused(Exception):
    def __init__(self, code: str, message: str, at: str) -> None:
        super().__init__(message)
        self.code, self.message, self.at = code, message, at


class _DuplicateKey(Exception):
    pass


def decode(text: str, start: int, nesting: int) -> Any:
    """The value of a JSON text, a :class:`Duplicated` value or a :class:`callwright.ParseFailure`.

    Spans are shifted by ``start``, the position of ``text`` in the completion. ``nesting`` bounds the brackets around
    any value. Failures: ``invalid_json`` and ``lone_surrogate`` (stage ``syntax``), ``too_deep`` and
    ``number_too_long`` (stage ``limit``).
    """
    if text.count("[") + text.count("{") > nesting:
        deep = _too_deep(text, start, nesting)
        if deep is not None:
            return deep
    try:
        value = _read(text, _STRICT)
    except _DuplicateKey:
        value = _DuplicateKey
    except (json.JSONDecodeError, _Refused, RecursionError) as error:
        return _explain(error, text, start)
    if value is _DuplicateKey:  # the rest of the text has to be read too before anything is said about its keys
        try:
            value = _read(text, _KEEPING_LAST)
        except (json.JSONDecodeError, _Refused, RecursionError) as error:
            return _explain(error, text, start)
        depth, key, (first, last) = _outermost_duplicate(text)
        value = Duplicated(value, depth, key, (start + first, start + last))
    half = None if text.isascii() else SURROGATE.search(text)
    if half is None and "\\u" in text and _ESCAPED_SURROGATE.search(text):
        half = _escaped_half(text)
    if half is not None:
        message = "a string holds half of a surrogate pair, which is not a character"
        return ParseFailure("syntax", "lone_surrogate", message, (start + half.start(), start + half.end()))
    return value


def encode(value: Any) -> str:
    """One line of JSON for a value that may hold references; ``decode`` reads it back.

    Characters outside ASCII stand for themselves; the ``<`` of every ``</tool_call`` inside a string is written as an
    escape, so that the text survives inside a tool-call block.
    """
    try:
        text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError) as error:  # not reached after check_program
        raise CannotExpress(f"the arguments are not JSON: {error}") from error
    return text.replace("</tool_call", "\\u003c/tool_call")


def locate(text: str, path: Sequence[int]) -> tuple[Span, Span]:
    """Spans of the key and of the value of an object's member, in valid JSON.

    ``path`` holds positions: ``(2,)`` is the third member of the outermost object, ``(2, 0)`` the first of that one.
    An empty path is the whole value, with an empty span for the key.
    """
    tokens = _TOKEN.finditer(text)
    token = next(tokens)
    key: Span = (token.start(), token.start())
    for position in path:
        token = next(tokens)
        for _ in range(position):
            next(tokens)  # ":"
            _skip(next(tokens), tokens)
            next(tokens)  # ","
            token = next(tokens)
        key = token.span()
        next(tokens)  # ":"
        token = next(tokens)
    return key, (token.start(), _skip(token, tokens))


def _skip(token: re.Match[str], rest: Iterator[re.Match[str]]) -> int:
    """Pass the value that begins with ``token`` and return where it ends."""
    depth = 0
    while True:
        if token[0] in ("{", "["):
            depth += 1
        elif token[0] in ("}", "]"):
            depth -= 1
        if depth == 0:
            return token.end()
        token = next(rest)


def _too_deep(text: str, start: int, nesting: int) -> ParseFailure | None:
    depth = 0
    for token in _BRACKET.finditer(text):
        if token[0] in ("{", "["):
            depth += 1
            if depth > nesting:
                at = start + token.start()
                return ParseFailure("limit", "too_deep", f"brackets are nested deeper than {nesting}", (at, at + 1))
        elif token[0] in ("}", "]"):
            depth -= 1
    return None


def _outermost_duplicate(text: str) -> tuple[int, str, Span]:
    """Depth, key and span of a key that its object already has: of the least nested in valid JSON, the first."""
    found: tuple[int, str, Span] | None = None
    open_objects: list[set[str] | None] = []
    previous = ""
    for token in _TOKEN.finditer(text):
        symbol = token[0]
        if symbol in ("{", "["):
            open_objects.append(set() if symbol == "{" else None)
        elif symbol in ("}", "]"):
            open_objects.pop()
        elif symbol[0] == '"' and previous in ("{", ",") and open_objects and open_objects[-1] is not None:
            key = json.loads(symbol)
            if key in open_objects[-1] and (found is None or len(open_objects) < found[0]):
                found = len(open_objects), key, token.span()
            open_objects[-1].add(key)
        previous = symbol
    assert found is not None, "the scanner reported a duplicate key, but there is none"
    return found


def _find_scalar(text: str, wanted: str) -> Span:
    for token in _TOKEN.finditer(text):
        if token[0] == wanted:
            return token.span()
    return 0, len(text)


def _escaped_half(text: str) -> re.Match[str] | None:
    for token in _TOKEN.finditer(text):
        if token[0][0] == '"' and "\\u" in token[0] and SURROGATE.search(json.loads(token[0])):
            return token
    return None


def _read(text: str, decoder: json.JSONDecoder) -> Any:
    body = text.strip(WHITE_SPACE)
    try:
        value, end = decoder.scan_once(body, 0)  # type: ignore[attr-defined]
    except StopIteration as stop:  # as the decoder says it
        raise json.JSONDecodeError("Expecting value", body, stop.value) from None
    if end != len(body):
        after = len(body) - len(body[end:].lstrip(WHITE_SPACE))
        raise json.JSONDecodeError("There is text after the value", body, after)
    return value


def _explain(error: json.JSONDecodeError | _Refused | RecursionError, text: str, start: int) -> ParseFailure:
    if isinstance(error, RecursionError):
        message = "the values are nested deeper than the interpreter has room for"
        return ParseFailure("limit", "too_deep", message, (start, start + len(text)))
    if isinstance(error, _Refused):
        stage: FailureStage = "limit" if error.code == "number_too_long" else "syntax"
        first, last = _find_scalar(text, error.at)
        return ParseFailure(stage, error.code, error.message, (start + first, start + last))
    at = len(text) - len(text.lstrip(WHITE_SPACE)) + error.pos
    message = f"the body is not valid JSON: {error.msg[:1].lower()}{error.msg[1:]}"
    return ParseFailure("syntax", "invalid_json", message, (start + at, start + min(at + 1, len(text))))


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _DuplicateKey
    return found


def _integer(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER and len(digits.lstrip("-")) > LONGEST_NUMBER:
        raise _too_long(digits)
    try:
        return int(digits)
    except ValueError:  # the process allows fewer digits: sys.set_int_max_str_digits
        raise _too_long(digits) from None


def _real(digits: str) -> float:
    if len(digits) > LONGEST_NUMBER:
        raise _too_long(digits)
    value = float(digits)
    if not math.isfinite(value):
        raise _Refused("invalid_json", f"the number {excerpt(digits)} is too large for JSON's numbers", digits)
    return value


def _too_long(digits: str) -> _Refused:
    return _Refused("number_too_long", f"a number has more than {LONGEST_NUMBER} digits", digits)


def _constant(word: str) -> Any:
    raise _Refused("invalid_json", f"{word} is not a JSON value", word)


_STRICT: Final = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=_integer, parse_float=_real, parse_constant=_constant
)
_KEEPING_LAST: Final = json.JSONDecoder(parse_int=_integer, parse_float=_real, parse_constant=_constant)


def kind(value: Any) -> str:
    """What JSON calls a value, for messages: ``an object``, ``a list``, ``text``, ``a number`` …

    Of a value that is no JSON it is the name of its type.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else type(value).__name__
