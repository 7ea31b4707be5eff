"""Calls that a model wrote as Java, read as the official program reads them through its grammar of Java.

It keeps identifiers and calls as they were written, and puts everything else together from its parts: white space
between them is lost, and of an object that is created with a body the body is (``new HashMap<>() {{ put("a", 1); }}``
comes to ``new HashMap<>()``). Only expressions are read here. Where the official grammar mends what is no Java, this
reader gives up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import accumulate
from typing import Final, TypeVar

from attrs import define, frozen

from callwright_plugins.bfcl.multi_turn.decoding import NotDecoded

_TOKEN: Final = re.compile(
    r"""(?P<skip>\s+|//[^\n]*)
    |(?P<text>"(?:[^"\\]|\\.)*")
    |(?P<sign>'(?:[^'\\\n]|\\.)+')
    |(?P<number>(?:0[xXbB][0-9a-fA-F_]+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)[lLfFdD]?)
    |(?P<word>[^\W\d][\w$]*|\$[\w$]*)
    |(?P<mark>>>>=|<<=|>>=|\.\.\.|->|::|\+\+|--|&&|\|\||[=!<>+\-*/&|^%]=|<<|[-+*/%=<>!~?:;,.(){}\[\]@&|^])""",
    re.VERBOSE | re.DOTALL,
)
_ASSIGNS: Final = frozenset({"=", "+=", "-=", "*=", "/=", "&=", "|=", "^=", "%=", "<<=", ">>=", ">>>="})
_INFIX: Final = (
    frozenset(
        {"+", "-", "*", "/", "%", "==", "!=", "<", ">", "<=", ">=", "&&", "||", "&", "|", "^", "<<", "?", ":", "->"}
    )
    | _ASSIGNS
)
_PREFIX: Final = frozenset({"+", "-", "!", "~", "++", "--"})
_PAIRS: Final = {"(": ")", "[": "]", "{": "}"}
T = TypeVar("T")
#: Words that are no operands and no names.
_RESERVED: Final = frozenset(
    "abstract assert break case catch class const continue default do else enum extends final finally for goto if "
    "implements import instanceof interface native package private protected public return static strictfp switch "
    "synchronized throw throws transient try volatile while".split()
)
#: Expressions in one another: more than a model writes, less than would exhaust the stack.
_DEEPEST: Final = 60
#: Characters of a call: chains of names are put together again with every link.
_LONGEST: Final = 100_000


@frozen
class _Token:
    kind: str
    text: str
    begin: int
    end: int


@define
class _Operand:
    """What was read: its text, where it begins and ends, and what it is."""

    text: str
    begin: int
    end: int
    #: ``name``, ``text``, ``call`` (then its name and where its arguments begin), ``class`` or ``other``.
    kind: str
    name: str = ""
    arguments: int = -1


def java_call(text: str) -> dict[str, dict[str, str]]:
    """The call of a Java text, ``name(key = value, …)``: values are texts of source.

    What has no name stands under ``"None"``, where the official program keeps it: a single name or class. Other values
    without one are lost. Raises :class:`callwright_plugins.bfcl.multi_turn.decoding.NotDecoded`.
    """
    if len(text) > _LONGEST:
        raise NotDecoded(f"a call of more than {_LONGEST:,} characters")
    reader = _Reader(text)
    found = reader.first_call()
    while reader.sees(";"):
        reader.place += 1
    if found is None or reader.place < len(reader.tokens):
        raise NotDecoded("no call, or something behind it")
    reader.place = found.arguments
    arguments: dict[str, str] = {}
    for name, value in reader.listed(")", reader.argument):
        if name is None:
            continue
        if name in arguments:
            raise NotDecoded("an argument is given twice")
        arguments[name] = value
    return {found.name: arguments}


class _Reader:
    def __init__(self, text: str) -> None:
        self.source, self.place = text, 0
        self.tokens = _tokens(text)
        #: The official program counts bytes and cuts characters.
        self._bytes = None if text.isascii() else [0, *accumulate(len(one.encode("utf-8", "replace")) for one in text)]

    def cut(self, begin: int, end: int) -> str:
        if self._bytes is not None:
            begin, end = self._bytes[begin], self._bytes[end]
        return self.source[begin:end]

    # Tokens -----------------------------------------------------------------------------------------------------------

    def sees(self, *texts: str) -> bool:
        return self.place < len(self.tokens) and self._now.kind in ("mark", "word") and self._now.text in texts

    @property
    def _now(self) -> _Token:
        if self.place >= len(self.tokens):
            raise NotDecoded("the text ends too early")
        return self.tokens[self.place]

    def _sign(self) -> str:
        """The token at hand as a part of a text that is put together."""
        token = self._take()
        return self.cut(token.begin, token.end)

    def _take(self, *texts: str) -> _Token:
        token = self._now
        if texts and (token.kind not in ("mark", "word") or token.text not in texts):
            raise NotDecoded(f"{token.text!r} where {texts[0]!r} is due")
        self.place += 1
        return token

    # Expressions ------------------------------------------------------------------------------------------------------

    def listed(self, close: str, read: Callable[[], T]) -> list[T]:
        """What stands between commas up to a closing bracket."""
        found: list[T] = []
        while not self.sees(close):
            if found:
                self._take(",")
            found.append(read())
        self._take(close)
        return found

    def first_call(self) -> _Operand | None:
        """The first of the operands of an expression that is a call; what stands before a colon is a label."""
        found: _Operand | None = None
        while True:
            while self.sees(*_PREFIX):
                self.place += 1
            one = self.operand(0)
            found = found or (one if one.kind == "call" else None)
            if not self.sees(*_INFIX):
                return found
            if self.sees(":") and (one.kind != "name" or self.place != 1):
                raise NotDecoded("no label stands there")
            self.place += 1

    def argument(self) -> tuple[str | None, str]:
        """A name and its value; without a name ``"None"`` for a single word, and ``None`` for what is lost."""
        here, ahead = self._now, self.place + 1
        if here.kind == "word" and ahead < len(self.tokens) and self.tokens[ahead].text in _ASSIGNS:
            self.place += 2
            one, parts = self._expression(0)
            quoted = parts == 1 and one.kind == "text"
            return self.cut(here.begin, here.end), one.text[1:-1] if quoted else one.text
        one, parts = self._expression(0)
        return ("None", one.text) if parts == 1 and one.kind in ("name", "class") else (None, "")

    def _value(self, depth: int) -> str:
        return self._expression(depth)[0].text

    def _expression(self, depth: int) -> tuple[_Operand, int]:
        """Operands with operators between them, put together; and how many parts there were."""
        if depth > _DEEPEST:
            raise NotDecoded("too deep")
        pieces: list[str] = []
        asked = 0
        while True:
            while self.sees(*_PREFIX):
                pieces.append(self._sign())
            one = self.operand(depth)
            pieces.append(one.text)
            if one.kind == "group" and self._begins_an_operand():  # a cast
                continue
            if self.sees("instanceof"):
                pieces.append(self._sign())
            elif self.sees(*_INFIX):
                arrow, asked = self.sees("->"), asked + self.sees("?") - self.sees(":")
                if asked < 0:
                    break
                pieces.append(self._sign())
                if arrow and self.sees("{"):
                    pieces.append(self._block())
                    break
            else:
                break
        if asked:
            raise NotDecoded("a colon without a question mark, or the other way round")
        return (one, 1) if len(pieces) == 1 else (_Operand("".join(pieces), 0, 0, "other"), len(pieces))

    def _begins_an_operand(self) -> bool:
        if self.place >= len(self.tokens):
            return False
        now = self._now
        return (now.kind != "mark" and now.text not in _RESERVED) or (now.kind == "mark" and now.text in "(!~")

    def operand(self, depth: int) -> _Operand:
        """A literal, a name, a call, what is created, or a group, with all that is asked of it by dots and brackets."""
        if depth > _DEEPEST:
            raise NotDecoded("too deep")
        token = self._now
        if token.kind == "word" and token.text in _RESERVED:
            raise NotDecoded(f"{token.text!r} is no value")
        if self.sees("new"):
            text = self._created(depth + 1)
            one = _Operand(text, token.begin, self._before, "created")
        elif self.sees("("):
            self.place += 1
            inner = self.listed(")", lambda: self._value(depth + 1))
            one = _Operand(f"({','.join(inner)})", token.begin, self._before, "group")
        elif token.kind == "mark":
            raise NotDecoded(f"{token.text!r} where a value is due")
        else:
            self.place += 1
            kind = {"text": "text", "sign": "text", "number": "other"}.get(token.kind, "name")
            if token.text in ("true", "false", "null", "this", "super"):
                kind = "other"
            one = _Operand(self.cut(token.begin, token.end), token.begin, token.end, kind)
            if kind == "name" and self.sees("("):
                one = self._called(one, one.text, depth)
        return self._followed(one, depth)

    @property
    def _before(self) -> int:
        """Where the last token ends."""
        return self.tokens[self.place - 1].end

    def _called(self, one: _Operand, name: str, depth: int) -> _Operand:
        begin = self.place = self.place + 1
        self.listed(")", lambda: self._value(depth + 1))
        return _Operand(self.cut(one.begin, self._before), one.begin, self._before, "call", name, begin)

    def _followed(self, one: _Operand, depth: int) -> _Operand:
        while True:
            if self.sees("."):
                self.place += 1
                word = self._take()
                if word.kind != "word" or (word.text in _RESERVED and word.text != "class"):
                    raise NotDecoded(f"{word.text!r} where a name is due")
                name = self.cut(word.begin, word.end)
                if word.text == "class":
                    one = _Operand(self.cut(one.begin, word.end), one.begin, word.end, "class")
                elif self.sees("("):
                    one = self._called(one, f"{self.cut(one.begin, one.end)}.{name}", depth)
                else:
                    one = _Operand(f"{one.text}.{name}", one.begin, word.end, "other")
            elif self.sees("["):
                self.place += 1
                inner = self._value(depth + 1)
                self._take("]")
                one = _Operand(f"{one.text}[{inner}]", one.begin, self._before, "other")
            elif self.sees("++", "--"):
                one = _Operand(one.text + self._take().text, one.begin, self._before, "other")
            elif self.sees("::"):
                self.place += 1
                one = _Operand(f"{one.text}::{self._take().text}", one.begin, self._before, "other")
            else:
                return one

    # What is created --------------------------------------------------------------------------------------------------

    def _created(self, depth: int) -> str:
        self._take("new")
        kind = self._type(depth)
        if self.sees("("):
            self.place += 1
            given = self.listed(")", lambda: self._value(depth + 1))
            if self.sees("{"):
                self._block()
            return f"new {kind}({', '.join(given)})"
        dimensions = 0
        while self.sees("["):
            self.place += 1
            self._take("]")  # with a size there is no value, at which the official program fails
            dimensions += 1
        if not dimensions:
            raise NotDecoded("what is created has neither arguments nor dimensions")
        return f"new {kind}[]{self._initial(depth)}"

    def _initial(self, depth: int) -> str:
        if depth > _DEEPEST:
            raise NotDecoded("too deep")
        self._take("{")
        pieces = ["{"]
        while not self.sees("}"):
            pieces.append(self._initial(depth + 1) if self.sees("{") else self._value(depth + 1))
            if not self.sees("}"):
                pieces.append(self._take(",").text)
        return "".join([*pieces, self._take("}").text])

    def _type(self, depth: int) -> str:
        """A type with its arguments, its parts put together."""
        if depth > _DEEPEST:
            raise NotDecoded("too deep")
        pieces = [self._word()]
        while self.sees("."):
            pieces += [self._take().text, self._word()]
        if self.sees("<"):
            pieces.append(self._take().text)
            while not self.sees(">"):
                if self.sees("?"):
                    pieces.append(self._take().text)
                    if self.sees("extends", "super"):
                        pieces += [self._take().text, self._type(depth + 1)]
                else:
                    pieces.append(self._type(depth + 1))
                while self.sees("["):
                    pieces += [self._take().text, self._take("]").text]
                if not self.sees(">"):
                    pieces.append(self._take(",").text)
            pieces.append(self._take(">").text)
        return "".join(pieces)

    def _word(self) -> str:
        token = self._take()
        if token.kind != "word" or token.text in _RESERVED:
            raise NotDecoded(f"{token.text!r} where a type is due")
        return self.cut(token.begin, token.end)

    def _block(self) -> str:
        """A body in braces, whatever is in it: its tokens, if its brackets close."""
        due: list[str] = []
        pieces = []
        while True:
            token = self._take()
            pieces.append(self.cut(token.begin, token.end))
            if token.kind != "mark":
                continue
            if token.text in _PAIRS:
                due.append(_PAIRS[token.text])
            elif token.text in ")]}":
                if not due or due.pop() != token.text:
                    raise NotDecoded("brackets that do not close")
                if not due:
                    return "".join(pieces)


def _tokens(text: str) -> list[_Token]:
    found, place = [], 0
    while place < len(text):
        if text.startswith("/*", place):
            place = text.find("*/", place + 2) + 2
            if place < 2:
                raise NotDecoded("a comment that does not end")
            continue
        one = _TOKEN.match(text, place)
        if one is None or one.end() == place:
            raise NotDecoded(f"{text[place]!r} is no Java")
        if one.lastgroup != "skip":
            found.append(_Token(str(one.lastgroup), one[0], place, one.end()))
        place = one.end()
    return found
