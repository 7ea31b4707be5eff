"""Values in words: each said in one of several ways, every one of which determines it.

A text stands bare where nothing else could be meant (an id, a number, an address, capitalised words, a member of a
closed set), and in quotes otherwise. What has no words of its own, such as an empty list, has a phrase.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Any, Final

from attrs import frozen

from callwright.errors import DataError
from callwright.language.program import Reference
from callwright_plugins.synthesis.language.values.hints import ANYTHING, Hint, snake
from callwright_plugins.synthesis.language.values.names import Names
from callwright_plugins.synthesis.language.values.numbers import (
    CENTS,
    FLOAT,
    INTEGER,
    WORDS,
    day_surfaces,
    read_day,
    read_number_word,
)
from callwright_plugins.synthesis.language.values.references import (
    Members,
    read_reference,
    read_thing,
    say_reference,
    say_thing,
)
from callwright_plugins.synthesis.language.values.sameness import Same
from callwright_plugins.synthesis.language.values.tokens import (
    Token,
    is_bare,
    is_name,
    name_at,
    quoted,
    tokens,
    words_of,
)

#: Values that only a phrase can say, and the phrases.
NOTHING: Final = "nothing at all"
BLANK: Final = "left blank"
EMPTY_LIST: Final = "an empty list"
EMPTY_OBJECT: Final = "an empty object"
_PHRASES: Final[tuple[tuple[str, str, Any], ...]] = (
    (NOTHING, "null", None),
    (BLANK, "string", ""),
    (EMPTY_LIST, "array", []),
    (EMPTY_OBJECT, "object", {}),
)
_EXACTLY: Final = "exactly"
#: Behind a reference that is the only item of a list, and not the list.
_ALONE: Final = "alone"
_DEEPEST: Final = 12
#: How many readings of one value are followed.
_MOST: Final = 24
#: How many items of a list and members of an object are read.
_LONGEST: Final = 400


@frozen
class Wording:
    """How values are said: ``plainly`` in the one way that is the most exact, else in any, as the random has it.

    ``days``: days are said in words. ``counts``: small numbers are words. ``names``: things by their names where these
    resolve (``some``), always (``always``, also where a name is shared), or never.
    """

    plainly: bool = False
    days: bool = True
    counts: bool = False
    names: str = "some"


PLAINLY: Final = Wording(plainly=True, days=False, names="never")


class Speaker:
    """Says and reads values. ``members`` are those of results, ``names`` what things are called."""

    def __init__(self, members: Members, names: Names) -> None:
        self.members, self.names = members, names

    def say(self, value: Any, hint: Hint, place: int, wording: Wording, random: Random, depth: int = 0) -> str:
        """A value in the call at ``place``. Raises :class:`callwright.errors.DataError` for what is no JSON."""
        if isinstance(value, Reference):
            ways = say_reference(value, place, self.members)
            return ways[-1] if wording.plainly else random.choice(ways[:-1] or ways)
        for phrase, _, meant in _PHRASES:
            if type(value) is type(meant) and value == meant:
                return phrase
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, int | float):
            return _say_number(value, hint, wording, random)
        if isinstance(value, str):
            return self._say_text(value, hint, wording, random)
        if isinstance(value, Mapping):
            return self._say_object(value, hint, place, wording, random, depth)
        if isinstance(value, list | tuple):
            return self._say_list(value, hint, place, wording, random, depth)
        raise DataError(f"an argument is JSON or a reference, not {value!r:.80}")

    def say_thing(self, value: Any, hint: Hint, place: int, *, listed: bool = True) -> str:
        """A reference to an id as the thing itself; empty for any other value. ``listed`` is whether the call that is
        referred to lists such things.
        """
        if not isinstance(value, Reference):
            return ""
        return say_thing(value, hint.kind, place, self.members, listed=listed)

    def read_thing(self, found: tuple[Token, ...], at: int, hint: Hint, place: int) -> list[tuple[int, Any]]:
        """What :meth:`say_thing` or :func:`say_same` says, at a token."""
        words = words_of(say_same(hint.kind)) if hint.kind else ()
        if words and tuple(one.word for one in found[at : at + len(words)]) == words:
            return [(at + len(words), Same(hint.kind))]
        return read_thing(found, at, hint.kind, place, self.members)

    def _say_text(self, text: str, hint: Hint, wording: Wording, random: Random) -> str:
        if text in hint.options:
            return option_words(text, hint) or quoted(text)
        name = self.names.of.get(text, "")
        if hint.kind and name and wording.names != "never" and name not in self.names.of:
            shared = self.names.ids(name, hint.kind) != (text,)
            if wording.names == "always" or (not shared and random.random() < 0.7):
                return name if is_name(name) and not option_words(name, hint) else quoted(name)
        if hint.kind and text in self.names.by_name and text not in self.names.of:
            return f"{_EXACTLY} {quoted(text)}"
        if wording.days and not wording.plainly and (days := day_surfaces(text)):
            return random.choice((text, *days)) if is_bare(text) else random.choice(days)
        if not wording.plainly and is_name(text):
            return text
        number = FLOAT.fullmatch(text) and hint.takes("integer", "number")
        return text if is_bare(text) and not number else quoted(text)

    def _say_list(
        self, items: list[Any] | tuple[Any, ...], hint: Hint, place: int, wording: Wording, random: Random, depth: int
    ) -> str:
        inner = hint.items or ANYTHING
        said = [
            self.say_thing(item, inner, place, listed=False) or self.say(item, inner, place, wording, random, depth + 1)
            for item in items
        ]
        joined = said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"
        if not _is_open(hint, depth):
            return f"({joined})"
        if not _is_whole(items):
            return joined
        return f"{joined} {_ALONE}" if isinstance(items[0], Reference) else f"({joined})"

    def _say_object(
        self, value: Mapping[str, Any], hint: Hint, place: int, wording: Wording, random: Random, depth: int
    ) -> str:
        said = []
        for key, inner in value.items():
            words, of = member_words(key), hint.members.get(key, ANYTHING)
            name = words if _member_of(words, hint) == key else quoted(key)
            said.append(f"{name}: {self.say(inner, of, place, wording, random, depth + 1)}")
        return f"({', '.join(said)})"

    def read(self, found: tuple[Token, ...], at: int, hint: Hint, place: int, depth: int = 0) -> list[tuple[int, Any]]:
        """Every value that may stand at a token of the call at ``place``, with the token behind it."""
        if at >= len(found) or depth > _DEEPEST:
            return []
        matches: list[tuple[int, Any]] = list(read_reference(found, at, place, self.members))
        for phrase, kind, value in _PHRASES:
            words = phrase.split()
            if hint.takes(kind) and [one.word for one in found[at : at + len(words)]] == words:
                matches.append((at + len(words), type(value)() if value is not None else None))
        if hint.takes("boolean") and found[at].word in ("yes", "no") and found[at].kind == "word":
            matches.append((at + 1, found[at].word == "yes"))
        if hint.takes("integer", "number"):
            matches.extend(_read_numbers(found, at, hint))
        if hint.takes("string"):
            matches.extend(self._read_texts(found, at, hint))
        if hint.takes("array") or hint.takes("object"):
            matches.extend(self._read_held(found, at, hint, place, depth))
        return matches[:_MOST]

    def _read_texts(self, found: tuple[Token, ...], at: int, hint: Hint) -> Iterator[tuple[int, str]]:
        token = found[at]
        for option in hint.options:
            words = words_of(option_words(option, hint))
            if words and tuple(one.word for one in found[at : at + len(words)]) == words and token.kind != "quoted":
                yield at + len(words), option
        if token.kind == "quoted":
            for text in self._meant(token.text, hint):
                yield at + 1, text
        elif token.word == _EXACTLY and at + 1 < len(found) and found[at + 1].kind == "quoted":
            yield at + 2, found[at + 1].text
        elif token.kind == "bare":
            if not (FLOAT.fullmatch(token.text) and hint.takes("integer", "number")) and is_bare(token.text):
                yield at + 1, token.text
        elif (end := name_at(found, at)) > at:
            for text in self._meant(" ".join(one.text for one in found[at:end]), hint):
                yield end, text
        yield from read_day(found, at)

    def _meant(self, text: str, hint: Hint) -> tuple[str, ...]:
        """The ids of what is called so, where an id is asked for and the text itself is none."""
        if hint.kind and text not in self.names.of:
            return self.names.ids(text, hint.kind) or (text,)
        return (text,)

    def _read_held(
        self, found: tuple[Token, ...], at: int, hint: Hint, place: int, depth: int
    ) -> Iterator[tuple[int, Any]]:
        if found[at].kind == "mark" and found[at].word == "(":
            if hint.takes("object"):
                yield from self._read_object(found, at + 1, hint, place, depth)
            if hint.takes("array"):
                for end, items in self._read_items(found, at + 1, hint, place, depth):
                    if end < len(found) and found[end].word == ")":
                        yield end + 1, items
        if hint.takes("array") and _is_open(hint, depth):
            for end, items in self._read_items(found, at, hint, place, depth):
                if not _is_whole(items):
                    yield end, items
                elif isinstance(items[0], Reference) and end < len(found) and found[end].word == _ALONE:
                    yield end + 1, items

    def _read_items(
        self, found: tuple[Token, ...], at: int, hint: Hint, place: int, depth: int
    ) -> Iterator[tuple[int, list[Any]]]:
        inner = hint.items or ANYTHING
        states: list[tuple[int, list[Any], bool]] = [(at, [], False)]
        for _ in range(_LONGEST):
            going: list[tuple[int, list[Any], bool]] = []
            for start, items, closed in states:
                for end, item in self._read_item(found, start, inner, place, depth + 1):
                    longer = [*items, item]
                    if closed or len(longer) == 1:
                        yield end, longer
                    if not closed and end < len(found) and found[end].kind in ("mark", "word"):
                        if found[end].word == ",":
                            going.append((end + 1, longer, False))
                        elif found[end].word == "and":
                            going.append((end + 1, longer, True))
            states = going[:_MOST]
            if not states:
                return

    def _read_item(
        self, found: tuple[Token, ...], at: int, hint: Hint, place: int, depth: int
    ) -> list[tuple[int, Any]]:
        things = self.read_thing(found, at, hint, place) if hint.kind else []
        return [*self.read(found, at, hint, place, depth), *(one for one in things if isinstance(one[1], Reference))]

    def _read_object(
        self, found: tuple[Token, ...], at: int, hint: Hint, place: int, depth: int
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        states: list[tuple[int, dict[str, Any]]] = [(at, {})]
        for _ in range(_LONGEST):
            going: list[tuple[int, dict[str, Any]]] = []
            for start, members in states:
                key, behind = _read_key(found, start, hint)
                if key is None or key in members:
                    continue
                for end, value in self.read(found, behind, hint.members.get(key, ANYTHING), place, depth + 1):
                    longer = {**members, key: value}
                    word = found[end].word if end < len(found) and found[end].kind == "mark" else ""
                    if word == ")":
                        yield end + 1, longer
                    elif word == ",":
                        going.append((end + 1, longer))
            states = going[:_MOST]
            if not states:
                return


def is_member(value: Any) -> bool:
    """Whether a value refers to a member of a result, which words say what it is of: "its folder"."""
    return isinstance(value, Reference) and bool(value.path) and isinstance(value.path[-1], str)


def say_same(kind: str) -> str:
    """The thing of a kind that was told of last."""
    return f"the same {kind.replace('_', ' ').lower()}"


def option_words(option: str, hint: Hint) -> str:
    """A member of a closed set as words, if no other member has the same; else empty."""
    return _options(hint.options).get(option, "")


@lru_cache(maxsize=1024)
def _options(options: tuple[str, ...]) -> Mapping[str, str]:
    said: dict[str, str] = {}
    counts: Counter[tuple[str, ...]] = Counter()
    for option in options:
        found = tokens(option.replace("_", " "))
        plain = option.isascii() and " ".join(one.text for one in found) == option.replace("_", " ")
        if found and plain and all(one.kind in ("word", "bare") for one in found):
            said[option] = option.replace("_", " ")
        counts[tuple(one.word for one in found)] += 1
    return {option: words for option, words in said.items() if counts[words_of(words)] == 1}


def member_words(key: str) -> str:
    """A member of an argument in words, ``old text`` for ``oldText``; empty where it has none. Cents are an amount."""
    words = snake(key).replace("_", " ").removesuffix(" cents")
    return words if words.isascii() and all(part.isalpha() for part in words.split(" ")) else ""


def _member_of(words: str, hint: Hint) -> str | None:
    return next((key for key in hint.members if words and member_words(key) == words), None)


def _is_open(hint: Hint, depth: int) -> bool:
    """Whether a list stands without brackets: where nothing but a list can be meant, and no list within it."""
    if depth or hint.types is None or hint.types - {"array", "null"}:
        return False
    return hint.items is not None and hint.items.types is not None and "array" not in hint.items.types


def _is_whole(items: Sequence[Any]) -> bool:
    """Whether a list without brackets would be taken for its only item: a reference, or nothing."""
    return len(items) == 1 and (items[0] is None or isinstance(items[0], Reference | list))


def _say_number(value: float, hint: Hint, wording: Wording, random: Random) -> str:
    if isinstance(value, int):
        if hint.cents:
            return f"{'-' if value < 0 else ''}{abs(value) // 100}.{abs(value) % 100:02}"
        if wording.counts and not wording.plainly and 0 <= value < len(WORDS) and random.random() < 0.8:
            return WORDS[value]
        return str(value)
    text = json.dumps(value)
    return text if FLOAT.fullmatch(text) else quoted(text)


def _read_numbers(found: tuple[Token, ...], at: int, hint: Hint) -> Iterator[tuple[int, int | float]]:
    token = found[at]
    if token.kind == "bare":
        if hint.cents:
            if match := CENTS.fullmatch(token.text):
                cents = int(match[2]) * 100 + int(match[3])
                yield at + 1, -cents if match[1] else cents
        elif INTEGER.fullmatch(token.text):
            yield at + 1, int(token.text)
        elif FLOAT.fullmatch(token.text):
            yield at + 1, float(token.text)
    elif (number := read_number_word(token)) is not None and not hint.cents:
        yield at + 1, number


def _read_key(found: tuple[Token, ...], at: int, hint: Hint) -> tuple[str | None, int]:
    if at + 1 < len(found) and found[at].kind == "quoted" and found[at + 1].word == ":":
        return found[at].text, at + 2
    end = at
    while end < len(found) and found[end].kind == "word" and end - at < 8:
        end += 1
    if end == at or end >= len(found) or found[end].word != ":":
        return None, at
    words = " ".join(one.text for one in found[at:end]).lower()
    return _member_of(words, hint), end + 1
