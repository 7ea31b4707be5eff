"""Values: what results, arguments and people have told so far, where it came from, and what belongs together."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from attrs import define, field, frozen

from callwright.tools.reading import json_type
from callwright_plugins.synthesis.exploration.names import Words, words_of

Origin = Literal["result", "argument", "knowledge", "failure", "schema", "clock"]
#: A value as a dictionary key: 1, True and 1.0 are three.
Key = tuple[str, Any]
#: What belongs together: by place the values that stood in one object, with what was asked to get it.
Record = dict[int, list[Key]]

#: Values kept of one place; those of a page and a half say what the place holds.
_KEPT: Final = 64
#: Records in which a value is looked up.
_RECORDS: Final = 48
_LONGEST_TEXT: Final = 2000
_DEEPEST: Final = 12
_MEMBERS: Final = 40
#: How keys name the types that most values have.
_PLAIN: Final[Mapping[type, str]] = {str: "string", int: "integer", float: "number"}


@frozen(cache_hash=True)
class Place:
    """Where values come from: an origin, whose it is (a tool, or the person who knows it), and the path in it."""

    origin: Origin
    owner: str
    path: str

    @property
    def words(self) -> Words:
        """The words of the last name on the path."""
        return words_of(self.path.replace("[]", "").rpartition(".")[2])

    @property
    def around(self) -> Words:
        """The words of what that name is in, and of the tool."""
        return (*words_of(self.path.replace("[]", "").rpartition(".")[0]), *words_of(self.owner))

    def __str__(self) -> str:
        return f"{self.origin} {self.owner}: {self.path}"


def key_of(value: Any) -> Key:
    """A value as a key."""
    kind = _PLAIN.get(type(value))
    if kind is not None:
        return kind, value
    if isinstance(value, str):
        return "string", value
    if isinstance(value, list | dict):
        return "json", json.dumps(value, sort_keys=True)
    return json_type(value) if not isinstance(value, float) else "number", value


def value_of(key: Key) -> Any:
    """The value of a key."""
    return json.loads(key[1]) if key[0] == "json" else key[1]


def names_something(key: Key) -> bool:
    """Whether a value may be one that names a thing rather than counting or describing it.

    Records are joined by such values alone: that two things cost the same does not make them belong together.
    """
    kind, value = key
    return kind == "string" and 1 < len(value) <= 80


@frozen
class Memory:
    """What a bank saw in one world: values by the number of their place, and what belongs together."""

    values: list[dict[Key, None]]
    records: list[Record]
    where: dict[Key, list[int]]
    holders: dict[Key, set[int]]


@define(eq=False)
class Bank:
    """Everything that was seen in one world. Places are numbered; the numbers hold in the worlds of other seeds too."""

    places: list[Place] = field(factory=list)
    numbers: dict[Place, int] = field(factory=dict)
    values: list[dict[Key, None]] = field(factory=list)
    types: list[dict[str, None]] = field(factory=list)
    #: The numbers of the places that people know.
    known: list[int] = field(factory=list)
    records: list[Record] = field(factory=list)
    where: dict[Key, list[int]] = field(factory=dict)
    #: By value: the places that may hold it, a few of hundreds; no other one does.
    holders: dict[Key, set[int]] = field(factory=dict)
    #: Another number whenever another value is held somewhere: what was looked up before may be kept until then.
    changes: int = 0
    #: Numbers by origin and owner, then by path: looked up for every value that is seen.
    _paths: dict[tuple[Origin, str], dict[str, int]] = field(factory=dict, init=False)

    def forget(self) -> None:
        """Begin in another world: its values are others, its places the same."""
        self.values = [{} for _ in self.places]
        self.records, self.where, self.holders = [], {}, {}
        self.changes += 1

    def remembered(self) -> Memory:
        """What was seen in this world, to be taken up again."""
        return Memory(self.values, self.records, self.where, self.holders)

    def take_up(self, memory: Memory) -> None:
        """Be in a world again."""
        self.values = [*memory.values, *({} for _ in range(len(self.places) - len(memory.values)))]
        self.records, self.where, self.holders = memory.records, memory.where, memory.holders
        self.changes += 1

    def number(self, place: Place) -> int:
        """The number of a place, which is given one where it is new."""
        found = self.numbers.get(place)
        if found is None:
            found = self.numbers[place] = len(self.places)
            self.places.append(place)
            self.values.append({})
            self.types.append({})
            if place.origin == "knowledge":
                self.known.append(found)
        return found

    def keep(self, place: int, key: Key) -> bool:
        """Remember a value of a place; whether it was new there. A full place forgets what came in the middle."""
        values = self.values[place]
        if key in values:
            return False
        self.types[place][json_type(value_of(key)) if key[0] == "json" else key[0]] = None
        if len(values) >= _KEPT:
            gone = next(iter(list(values)[_KEPT // 2 :]))
            del values[gone]
            self.holders[gone].discard(place)
        values[key] = None
        self.changes += 1
        self.holders.setdefault(key, set()).add(place)
        return True

    def note(self, pairs: list[tuple[int, Key]]) -> None:
        """Remember what belongs together."""
        number = len(self.records)
        record: Record = {}
        for place, key in pairs:
            record.setdefault(place, []).append(key)
        self.records.append(record)
        for _, key in pairs:
            if names_something(key):
                found = self.where.setdefault(key, [])
                found.append(number)
                if len(found) > _RECORDS:
                    del found[_RECORDS // 2]

    def absorb(self, tool: str, arguments: Mapping[str, Any], result: Any) -> list[tuple[int, Key]]:
        """Remember the result of a call and what was asked; the values that are new to their places."""
        asked = [
            (self.number(Place("argument", tool, path)), key)
            for path, key in leaves(arguments)
            if key[0] != "boolean" and key[1] != ""
        ]
        return self._absorb("result", tool, result, asked)

    def overhear(self, tool: str, code: str, told: list[Any]) -> list[tuple[int, Key]]:
        """Remember the names and numbers in the message of a failure."""
        place = self.number(Place("failure", tool, code))
        return [(place, key) for key in map(key_of, told) if self.keep(place, key)]

    def know(self, who: str, named: Key | None, known: Mapping[str, Any]) -> None:
        """Remember what somebody knows; ``named`` is the value by which they are called."""
        itself = [] if named is None else [(self.number(Place("argument", "knowledge", who)), named)]
        self._absorb("knowledge", who, known, itself)
        for name, value in known.items():
            if isinstance(value, list | dict) and value:
                self.keep(self.number(Place("knowledge", who, name)), key_of(value))

    def _absorb(self, origin: Origin, owner: str, value: Any, asked: list[tuple[int, Key]]) -> list[tuple[int, Key]]:
        new: list[tuple[int, Key]] = []
        for place, key in asked:
            if self.keep(place, key):
                new.append((place, key))
        numbers = self._paths.setdefault((origin, owner), {})
        for pairs in _objects(value, "", (), 0):
            record = []
            for path, key in pairs:
                known = numbers.get(path)
                number = numbers[path] = self.number(Place(origin, owner, path)) if known is None else known
                record.append((number, key))
                if self.keep(number, key):
                    new.append((number, key))
            self.note([*record, *asked])
        return new


def leaves(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Key]]:
    """Every text, number and boolean in a value, with its path; the places in a list are one place, ``[]``."""
    if isinstance(value, str | int | float):
        if not isinstance(value, str) or len(value) <= _LONGEST_TEXT:
            yield path, key_of(value)
    elif depth < _DEEPEST and isinstance(value, Mapping):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}" if path else name, depth + 1)
    elif depth < _DEEPEST and isinstance(value, list):
        for inner in value[:_MEMBERS]:
            yield from leaves(inner, f"{path}[]", depth + 1)


Pairs = tuple[tuple[str, Key], ...]


def _objects(value: Any, path: str, inherited: Pairs, depth: int) -> Iterator[Pairs]:
    """The objects of a value: the texts and numbers of each, and those of the objects that it is in."""
    if depth > _DEEPEST:
        return
    if isinstance(value, Mapping):
        inner: list[tuple[str, Any]] = []
        own: list[tuple[str, Key]] = []
        for name, member in value.items():
            at = f"{path}.{name}" if path else name
            if isinstance(member, str | int | float):
                if member != "" and (not isinstance(member, str) or len(member) <= _LONGEST_TEXT):
                    own.append((at, key_of(member)))
            elif isinstance(member, list) and member and not isinstance(member[0], list | Mapping):
                own += [(f"{at}[]", key_of(one)) for one in member[:8] if one is not None and one != ""]
            elif member:
                inner.append((at, member))
        if own:
            yield (*own, *inherited)
        handed = (*own[:12], *inherited)[:16]
        for at, member in inner:
            yield from _objects(member, at, handed, depth + 1)
    elif isinstance(value, list):
        for member in value[:_MEMBERS]:
            yield from _objects(member, f"{path}[]", inherited, depth + 1)
    elif isinstance(value, str | int | float) and value != "":
        yield ((path, key_of(value)), *inherited)
