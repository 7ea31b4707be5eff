"""Tokens: a query cut into words, quoted texts, bare values and marks.

What stands in quotes is one token, so that no value is ever read as grammar. A bare value (``A00012``,
``ana@example.com``, ``12.50``) is a run without spaces that is no word.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Generic, Literal, TypeVar

from attrs import frozen

T = TypeVar("T")
Kind = Literal["word", "bare", "quoted", "mark"]

#: Longer texts are not read: no query is as long, and what is read may be anybody's.
LONGEST: Final = 100_000
_PIECE: Final = re.compile(r'"((?:[^"]|"")*+)"|“([^“”]*)”|([^\s"“”(),]+)|(["“”(),])')
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_ENDS: Final = ".,:;!?"


@frozen
class Token:
    """A piece of a text. ``text`` is the value of a quoted one; ``word`` is how the grammar reads it."""

    kind: Kind
    text: str
    word: str


def tokens(text: str, mended: Mapping[str, str] | None = None) -> tuple[Token, ...]:
    """The tokens of a text; ``mended`` maps misspelt words to what the grammar reads in their place."""
    found: list[Token] = []
    known = mended or {}
    for piece in _PIECE.finditer(text[:LONGEST]):
        doubled, curly, run, mark = piece.groups()
        if doubled is not None:
            found.append(Token("quoted", doubled.replace('""', '"'), '"'))
        elif curly is not None:
            found.append(Token("quoted", curly, '"'))
        elif mark is not None:
            found.append(Token("mark", mark, mark))
        else:
            core = run.rstrip(_ENDS)
            if core:
                lower = core.lower()
                kind: Kind = "word" if _WORD.fullmatch(core) else "bare"
                found.append(Token(kind, core, known.get(lower, lower) if kind == "word" else lower))
            found.extend(Token("mark", end, end) for end in run[len(core) :])
    return tuple(found)


@functools.lru_cache(maxsize=16_384)
def words_of(text: str) -> tuple[str, ...]:
    """A text of the grammar as the words (and marks) that it is matched by."""
    return tuple(token.word for token in tokens(text))


def quoted(text: str) -> str:
    """A text in quotes from which it is read back, whatever it holds."""
    if '"' in text and not ("“" in text or "”" in text):
        return f"“{text}”"
    return '"' + text.replace('"', '""') + '"'


def is_bare(text: str) -> bool:
    """Whether a text is one bare value: printable ASCII that is read as a single token, and as itself."""
    if not text.isascii() or not text.isprintable() or not any(one.isalnum() for one in text):
        return False
    found = tokens(text)
    return len(found) == 1 and found[0].kind == "bare" and found[0].text == text


def is_name(text: str) -> bool:
    """Whether a text is one to four capitalised words with single spaces: ``Lisbon``, ``Ana Torres``, ``EUR``."""
    parts = text.split(" ")
    return len(parts) <= 4 and all(map(_is_capitalised, parts))


def _is_capitalised(word: str) -> bool:
    return len(word) > 1 and word.isalpha() and word[0].isupper() and (word[1:].islower() or word.isupper())


def name_at(found: tuple[Token, ...], at: int) -> int:
    """Where the capitalised words end that begin at a token; ``at`` if there are none."""
    end = at
    while end < len(found) and end - at < 4 and found[end].kind == "word" and _is_capitalised(found[end].text):
        end += 1
    return end


class Trie(Generic[T]):
    """Texts of the grammar by their words, to find all that a run of tokens begins with."""

    def __init__(self, entries: Iterable[tuple[tuple[str, ...], T]] = ()) -> None:
        self.root: dict[str, Any] = {}
        for words, payload in entries:
            self.add(words, payload)

    def add(self, words: tuple[str, ...], payload: T) -> None:
        """Add a text; one may have several payloads."""
        node = self.root
        for word in words:
            node = node.setdefault(word, {})
        node.setdefault("", []).append(payload)

    def match(self, found: tuple[Token, ...], at: int) -> list[tuple[int, T]]:
        """Every text that stands at a token, with the token behind it; the longest first."""
        node, matches = self.root, [(at, one) for one in self.root.get("", ())]
        for place in range(at, len(found)):
            if found[place].kind == "quoted":
                break
            if found[place].word not in node:
                break
            node = node[found[place].word]
            matches.extend((place + 1, one) for one in node.get("", ()))
        matches.reverse()
        return matches
