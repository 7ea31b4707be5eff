"""References in words: ``its account id``, ``the iban of the second of these``, ``the total of the first result``.

"It", "that" and "these" are about the call before, "earlier" is the one before that; every other call is counted. A
member of a result is said by its words where the tools' result schemas know it, and quoted where they do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from callwright.language.program import Path, Reference
from callwright_plugins.synthesis.language.values.hints import snake
from callwright_plugins.synthesis.language.values.numbers import ordinal, read_ordinal
from callwright_plugins.synthesis.language.values.titles import member_of
from callwright_plugins.synthesis.language.values.tokens import Token, Trie, quoted, words_of

_ITEMS: Final = "items"
_DEEPEST: Final = 12
#: The words of a thing: ``accepted source account``.
_LONGEST_NOUN: Final = 5


class Members:
    """The members of results by their words, as the result schemas of the tools have them.

    Many servers say of a result no more than that it is an object, or a list of some. What ``parameters`` call in camel
    case (``bookId``) is called the same there; names with underscores are their own words, whoever knows them.
    """

    def __init__(self, results: Iterable[Any], parameters: Iterable[str] = ()) -> None:
        self.words: dict[str, str] = {}
        #: What members are called where they are referred to: an amount in cents is an amount.
        self.named: dict[str, str] = {}
        self._words: Trie[str] = Trie()
        self._named: Trie[str] = Trie()
        self._told = {key for schema in results for key in _keys(schema)}
        keys = [*sorted(self._told), *sorted({key for key in parameters if snake(key) != key} - self._told)]
        taken: dict[tuple[str, ...], str] = {}
        for title in (lambda key: snake(key).replace("_", " "), member_of):
            for key in keys:
                words = words_of(said := title(key))
                if words and said.replace(" ", "").isalnum() and taken.setdefault(words, key) == key:
                    self.words[key] = said
        for key, said in self.words.items():
            self._words.add(words_of(said), key)
            short = said.removesuffix(" cents")
            self.named[key] = short if taken.setdefault(words_of(short), key) == key else said
            self._named.add(words_of(self.named[key]), key)

        #: By kind of thing: the member that is its id.
        self._ids: dict[str, str] = {}

    def id_of(self, kind: str) -> str:
        """The member that is the id of a thing of a kind: ``note_id``, ``noteId``, or ``id`` where there is no such."""
        if kind not in self._ids:
            names = (f"{kind}_id", "id", "key", f"{kind}_key")
            found = {snake(key): key for key in self.words}
            told = {name: key for name, key in found.items() if key in self._told}
            usual = found.get(f"{kind}_id", f"{kind}_id")  # where no schema of a result has one
            self._ids[kind] = next((told[name] for name in names if name in told), usual)
        return self._ids[kind]

    def say(self, key: str) -> str:
        """A member in words, or quoted."""
        return self.words.get(key) or quoted(key)

    def read(self, found: tuple[Token, ...], at: int) -> list[tuple[int, str]]:
        """The members that may stand at a token."""
        return self._read(self._words, found, at)

    def name(self, key: str) -> str:
        """A member that is referred to."""
        return self.named.get(key) or quoted(key)

    def read_name(self, found: tuple[Token, ...], at: int) -> list[tuple[int, str]]:
        """The members that may be referred to at a token."""
        return self._read(self._named, found, at)

    @staticmethod
    def _read(trie: Trie[str], found: tuple[Token, ...], at: int) -> list[tuple[int, str]]:
        if at < len(found) and found[at].kind == "quoted":
            return [(at + 1, found[at].text)]
        return trie.match(found, at)


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


def say_thing(reference: Reference, kind: str, place: int, members: Members, *, listed: bool = True) -> str:
    """A reference to the id of a thing as the thing itself, ``the first of these accounts`` or ``its source device``;
    empty where it is none.

    ``kind`` is what the place takes ids of: its id is the member ``account_id`` of a result or of something in it, or
    one whose name ends so. ``listed`` is whether the call that is referred to lists such things.
    """
    path, ago = reference.path, place - reference.call
    noun = _noun(path[-1], kind, members) if path else ""
    if not noun:
        return ""
    if path[-1] == members.id_of(kind):
        whole = f"the {ordinal(reference.call + 1)} result"
        if len(path) == 1:
            return {1: f"that {noun}", 2: f"that earlier {noun}"}.get(ago, f"the {noun} of {whole}")
        if listed and len(path) == 3 and path[0] == _ITEMS and isinstance(path[1], int):
            count = ordinal(path[1] + 1)
            near = {1: f"the {count} of these {plural(noun)}", 2: f"the {count} of those earlier {plural(noun)}"}
            return near.get(ago, f"the {count} {noun} of {whole}")
        if _lists(path[:-1], kind):
            return say_reference(Reference(reference.call, path[:-1]), place, members)[0]
    if len(path) == 1:
        return f"its {noun}" if ago == 1 else f"the {noun} of {_result(reference.call, place)}"
    return f"the {noun} of {say_reference(Reference(reference.call, path[:-1]), place, members)[0]}"


def _noun(key: str | int, kind: str, members: Members) -> str:
    """What has the id that a member of a result is, ``source device`` of ``source_device_id``; empty for others."""
    if not isinstance(key, str) or not kind or kind == "result":
        return ""
    if key == members.id_of(kind):
        return kind.replace("_", " ")
    name = snake(key)
    return name.removesuffix("_id").replace("_", " ") if name.endswith(f"_{kind}_id") and key in members.words else ""


def _lists(path: Path, kind: str) -> bool:
    """Whether a path is that of an object in a list of such things, as its name says: ``variants``, of a variant."""
    if len(path) < 2 or not isinstance(path[-1], int) or not isinstance(path[-2], str):
        return False
    return snake(path[-2]).split("_")[-1] == plural(kind.split("_")[-1])


def read_thing(
    found: tuple[Token, ...], at: int, kind: str, place: int, members: Members
) -> list[tuple[int, Reference]]:
    """The references to the id of a thing that may stand at a token of the call at ``place``."""
    if not kind or not place or at >= len(found):
        return []
    noun, key = words_of(kind.replace("_", " ")), members.id_of(kind)
    if _word(found, at) == "its":
        return [(end, Reference(place - 1, (one,))) for end, one in _named(found, at + 1, kind, members)]
    if _word(found, at) == "that" and _are(found, at + 1, noun):
        return [(at + 1 + len(noun), Reference(place - 1, (key,)))]
    if _are(found, at, ("that", "earlier", *noun)):
        return [(at + 2 + len(noun), Reference(place - 2, (key,)))] if place > 1 else []
    if _word(found, at) != "the" or at + 1 >= len(found):
        return []
    if _are(found, at + 1, noun) and (here := _of_result(found, at + 1 + len(noun), (key,), place)):
        return here
    count = read_ordinal(found[at + 1]) if found[at + 1].kind != "quoted" else None
    if count is not None:
        path = (_ITEMS, count - 1, key)
        several = words_of(plural(" ".join(noun)))
        for ago, words in ((1, ("of", "these", *several)), (2, ("of", "those", "earlier", *several))):
            if place >= ago and _are(found, at + 2, words):
                return [(at + 2 + len(words), Reference(place - ago, path))]
        if _are(found, at + 2, noun) and (here := _of_result(found, at + 2 + len(noun), path, place)):
            return here
    inside = read_reference(found, at, place, members)
    things = [(end, Reference(one.call, (*one.path, key))) for end, one in inside if _lists(one.path, kind)]
    for behind, named in _named(found, at + 1, kind, members):
        if _word(found, behind) == "of":
            inside = read_reference(found, behind + 1, place, members)
            things += [(end, Reference(one.call, (*one.path, named))) for end, one in inside]
    return things


def _named(found: tuple[Token, ...], at: int, kind: str, members: Members) -> list[tuple[int, str]]:
    """The members with the id of a thing of a kind that may be named by that thing at a token."""
    noun = words_of(kind.replace("_", " "))
    ends = [(at + len(noun), members.id_of(kind))] if _are(found, at, noun) else []
    for end in range(at + len(noun) + 1, min(at + _LONGEST_NOUN, len(found)) + 1):
        if _are(found, end - len(noun), noun):
            name = " ".join((*(_word(found, place) for place in range(at, end)), "id"))
            ends += [(end, key) for key, said in members.words.items() if said == name]
    return ends


def _of_result(found: tuple[Token, ...], at: int, path: Path, place: int) -> list[tuple[int, Reference]]:
    """``of the third result``."""
    if not _are(found, at, ("of", "the")) or at + 3 >= len(found) or _word(found, at + 3) != "result":
        return []
    number = read_ordinal(found[at + 2]) if found[at + 2].kind != "quoted" else None
    return [(at + 4, Reference(number - 1, path))] if number is not None and 1 <= number <= place else []


def _result(call: int, place: int) -> str:
    """What a call has come to, in the call at ``place``."""
    return {1: "that result", 2: "that earlier result"}.get(place - call, f"the {ordinal(call + 1)} result")


def _are(found: tuple[Token, ...], at: int, words: tuple[str, ...]) -> bool:
    return all(_word(found, at + place) == word for place, word in enumerate(words))


def plural(noun: str) -> str:
    """More than one of a thing."""
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def say_reference(reference: Reference, place: int, members: Members) -> tuple[str, ...]:
    """The ways of saying a reference in the call at ``place``, the plainest last; each is read back to it."""
    path, ago = reference.path, place - reference.call
    listed = len(path) >= 2 and path[0] == _ITEMS and isinstance(path[1], int)
    number = ordinal(path[1] + 1) if listed and isinstance(path[1], int) else ""
    ways: list[str] = []
    if ago == 1 and not path:
        ways.append("what that gives")
    elif ago == 1 and listed:
        ways += [_around(path[2:], base, members) for base in (f"the {number} of these", f"the {number} one")]
    elif ago == 1 and isinstance(path[0], str) and path[0] != _ITEMS:
        ways.append(_around(path[1:], f"its {members.name(path[0])}", members))
    elif ago == 2 and listed:
        ways.append(_around(path[2:], f"the {number} of those earlier ones", members))
    ways.append(_around(path, _result(reference.call, place), members))
    return tuple(ways)


def _around(path: Path, base: str, members: Members) -> str:
    text = base
    for part in path:
        said = ordinal(part + 1) if isinstance(part, int) else members.name(part)
        text = f"the {said} of {text}"
    return text


def read_reference(found: tuple[Token, ...], at: int, place: int, members: Members) -> list[tuple[int, Reference]]:
    """The references that may stand at a token of the call at ``place``."""
    word = _word(found, at)
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
    if first == "its":
        for end, key in members.read_name(found, at + 1):
            yield end, place - 1, [key]
        return
    if first == "these":
        yield at + 1, place - 1, [_ITEMS]
        return
    if first == "that" and _word(found, at + 1) == "earlier" and _word(found, at + 2) == "result":
        yield at + 3, place - 2, []
        return
    if first == "those" and _word(found, at + 1) == "earlier" and _word(found, at + 2) == "ones":
        yield at + 3, place - 2, [_ITEMS]
        return
    if first != "the" or not left or at + 1 >= len(found):
        return
    count = read_ordinal(found[at + 1])
    if count is not None and found[at + 1].kind != "quoted":
        if _word(found, at + 2) == "one":
            yield at + 3, place - 1, [count - 1, _ITEMS]
        elif _word(found, at + 2) == "result":
            yield at + 3, count - 1, []
        elif _word(found, at + 2) == "of":
            for end, call, path in _read(found, at + 3, place, members, left - 1):
                yield end, call, [count - 1, *path]
    for behind, key in members.read_name(found, at + 1):
        if _word(found, behind) == "of":
            for end, call, path in _read(found, behind + 1, place, members, left - 1):
                yield end, call, [key, *path]


def _word(found: tuple[Token, ...], at: int) -> str:
    return found[at].word if 0 <= at < len(found) and found[at].kind != "quoted" else ""
