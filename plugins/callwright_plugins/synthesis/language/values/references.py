"""References in words: ``its account id``, ``the iban of the second of these``, ``the total of step 2``.

"It", "that" and "these" are about the call before; every other call is named by its number. A member of a result is
said by its words where the tools' result schemas know it, and quoted where they do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from callwright.language.program import Path, Reference
from callwright_plugins.synthesis.language.values.numbers import ordinal, read_ordinal
from callwright_plugins.synthesis.language.values.tokens import Token, Trie, quoted, words_of

_ITEMS: Final = "items"
_DEEPEST: Final = 12


class Members:
    """The members of results by their words, as the result schemas of the tools have them."""

    def __init__(self, results: Iterable[Any]) -> None:
        self.words: dict[str, str] = {}
        self.trie: Trie[str] = Trie()
        taken: dict[tuple[str, ...], str] = {}
        for key in sorted({key for schema in results for key in _keys(schema)}):
            said = key.replace("_", " ").lower()
            words = words_of(said)
            if words and said.replace(" ", "").isalnum() and taken.setdefault(words, key) == key:
                self.words[key] = said
                self.trie.add(words, key)

    def say(self, key: str) -> str:
        """A member in words, or quoted."""
        return self.words.get(key) or quoted(key)

    def read(self, found: tuple[Token, ...], at: int) -> list[tuple[int, str]]:
        """The members that may stand at a token."""
        if at < len(found) and found[at].kind == "quoted":
            return [(at + 1, found[at].text)]
        return self.trie.match(found, at)


def _keys(schema: Any) -> Iterator[str]:
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            properties = one.get("properties")
            if isinstance(properties, Mapping):
                yield from properties
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)


def say_reference(reference: Reference, place: int, members: Members) -> tuple[str, ...]:
    """The ways of saying a reference in the call at ``place``; each is read back to it."""
    before = reference.call == place - 1
    path = reference.path
    base = "that result" if before else f"the result of step {reference.call + 1}"
    ways: list[str] = []
    if before and len(path) == 1 and isinstance(path[0], str):
        ways.append(f"its {members.say(path[0])}")
    if before and len(path) >= 2 and path[0] == _ITEMS and isinstance(path[1], int):
        first = f"the {ordinal(path[1] + 1)}"
        ways.append(_around(path[2:], f"{first} of these", members))
        ways.append(_around(path[2:], f"{first} one", members))
    if before and not path:
        ways.append("what that gives")
    ways.append(_around(path, base, members))
    return tuple(ways)


def _around(path: Path, base: str, members: Members) -> str:
    text = base
    for part in path:
        said = ordinal(part + 1) if isinstance(part, int) else members.say(part)
        text = f"the {said} of {text}"
    return text


def read_reference(found: tuple[Token, ...], at: int, place: int, members: Members) -> list[tuple[int, Reference]]:
    """The references that may stand at a token of the call at ``place``."""
    word = _word(found, at)
    if word == "its":
        return [(end, Reference(place - 1, (key,))) for end, key in members.read(found, at + 1)] if place else []
    if word == "what" and _word(found, at + 1) == "that" and _word(found, at + 2) == "gives":
        return [(at + 3, Reference(place - 1))] if place else []
    return [
        (end, Reference(call, tuple(reversed(path))))
        for end, call, path in _read(found, at, place, members, _DEEPEST)
        if 0 <= call < place
    ]


def _read(
    found: tuple[Token, ...], at: int, place: int, members: Members, left: int
) -> Iterator[tuple[int, int, list[str | int]]]:
    """The end, the call, and the path from the inside out."""
    first = _word(found, at)
    if first == "that" and _word(found, at + 1) == "result":
        yield at + 2, place - 1, []
        return
    if first == "these":
        yield at + 1, place - 1, [_ITEMS]
        return
    if first != "the" or not left or at + 1 >= len(found):
        return
    if _word(found, at + 1) == "result" and _word(found, at + 2) == "of" and _word(found, at + 3) == "step":
        number = _word(found, at + 4)
        if number.isascii() and number.isdigit() and len(number) < 4:
            yield at + 5, int(number) - 1, []
    count = read_ordinal(found[at + 1])
    if count is not None and found[at + 1].kind != "quoted":
        if _word(found, at + 2) == "one":
            yield at + 3, place - 1, [count - 1, _ITEMS]
        elif _word(found, at + 2) == "of":
            for end, call, path in _read(found, at + 3, place, members, left - 1):
                yield end, call, [count - 1, *path]
    for behind, key in members.read(found, at + 1):
        if _word(found, behind) == "of":
            for end, call, path in _read(found, behind + 1, place, members, left - 1):
                yield end, call, [key, *path]


def _word(found: tuple[Token, ...], at: int) -> str:
    return found[at].word if 0 <= at < len(found) and found[at].kind != "quoted" else ""
