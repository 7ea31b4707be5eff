"""Drawing: arguments for a call, from what was told, what belongs together and what has worked before."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from random import Random
from typing import Any, Final, TypeVar

from attrs import define, field

from callwright.environments.knowledge.suggestions import Source, Suggestions, Template
from callwright.tools.reading import compatible, json_types
from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.exploration.free import Free, branches_of, free_values, options_of
from callwright_plugins.synthesis.exploration.names import Words, likeness, words_of
from callwright_plugins.synthesis.exploration.values import (
    Bank,
    Key,
    Place,
    Record,
    key_of,
    leaves,
    names_something,
    value_of,
)

T = TypeVar("T")
_TRIES: Final = 4
_DEEPEST: Final = 4
#: Places that a slot draws from: the likeliest ones.
_CANDIDATES: Final = 28
#: The candidates are ranked anew after so many outcomes.
_RANKED: Final = 16
#: A name that is as good as the same.
_STRONG: Final = 0.7
#: What a place that nothing speaks for is worth: names may say nothing.
_UNLIKELY: Final = 0.02
#: Parameters that turn pages.
_PAGING: Final = frozenset({"limit", "cursor", "offset", "page", "page_size", "per_page"})

#: What a state alone knows: by place the values that its own calls have made or shown.
Local = Mapping[int, Sequence[Key]]


@define(eq=False)
class Slot:
    """One place in a tool's arguments that takes a text, a number or a boolean, and where it was filled from."""

    tool: str
    path: str
    words: Words
    schema: Any
    types: frozenset[str]
    free: dict[int, Free]
    described: Words
    #: By place: how likely it fills the slot, by its name alone; in the order of their numbers.
    priors: dict[int, float] = field(factory=dict)
    #: By place: how often it was tried here and how often the call then succeeded.
    tried: dict[int, float] = field(factory=dict)
    worked: dict[int, float] = field(factory=dict)
    #: Places whose name alone says that they fill the slot.
    strong: dict[int, None] = field(factory=dict)
    #: Whether somebody says what to write there: then nothing else is written.
    suggested: bool = False
    known_places: int = 0
    weights: dict[int, float] = field(factory=dict)
    _stale: bool = True
    _learned: int = 0
    #: What is worked out again and again, while nothing has changed it: worths by place, places by value.
    _worths: dict[int, float] = field(factory=dict)
    _holding: dict[Key, list[tuple[int, Key]]] = field(factory=dict)
    _held: int = -1

    def look(self, bank: Bank) -> None:
        """Take the places into account that were found since."""
        self._stale = True
        if self.known_places == len(bank.places):
            return
        self.forget()
        fixed = frozenset(key_of(option) for option in options_of(self.schema) or ()) if self.closed else None
        for number in range(self.known_places, len(bank.places) if not self.suggested else 0):
            place = bank.places[number]
            types = bank.types[number]
            if place.origin in ("schema", "clock") or not types:
                continue
            if not any(compatible(wanted, given) for wanted in self.types for given in types):
                continue
            if fixed is not None and not all(key in fixed for key in bank.values[number]):
                continue
            if place.origin == "argument" and place.owner == self.tool:
                continue  # what one has asked for says nothing of what there is
            if place.origin == "failure":
                if place.owner == self.tool:
                    self.priors[number] = 0.25
                continue
            prior = likeness(self.words, place.words, place.around)
            if prior < 0.5 and place.words and set(place.words) <= set(self.described):
                prior = max(prior, 0.3 + 0.1 * (len(place.words) > 1))
            if place.origin == "argument":
                prior *= 0.4
            self.priors[number] = max(prior, _UNLIKELY)
            if prior >= _STRONG:
                self.strong[number] = None
        self.known_places = len(bank.places)
        if len(self.priors) > 3 * _CANDIDATES:
            worth = sorted(self.priors, key=lambda one: (-self.worth(one), one))
            self.forget()
            self.priors = {number: self.priors[number] for number in sorted(worth[: 2 * _CANDIDATES])}

    def forget(self) -> None:
        """Work out anew what places are worth and hold."""
        self._worths, self._holding, self._stale = {}, {}, True

    @property
    def closed(self) -> bool:
        """Whether the schema lists the values that there are."""
        return isinstance(self.schema, Mapping) and options_of(self.schema) is not None

    def worth(self, place: int) -> float:
        """How likely a value of this place works, by its name and by what came of it."""
        known = self._worths.get(place)
        if known is None:
            known = self._worths[place] = self._worth(place)
        return known

    def _worth(self, place: int) -> float:
        prior = self.free[place].prior if place in self.free else self.priors.get(place, _UNLIKELY)
        if prior < _STRONG and self.strong:
            prior *= 0.2
        tried = self.tried.get(place, 0.0)
        return (0.005 + prior) * (self.worked.get(place, 0.0) + 0.5) / (tried + 1.5) * 3.0

    def learn(self, place: int, tried: float, worked: float) -> None:
        """Take an outcome into account."""
        self.tried[place] = self.tried.get(place, 0.0) + tried
        self.worked[place] = self.worked.get(place, 0.0) + worked
        self._worths.pop(place, None)
        if place in self.weights:
            self.weights[place] = self.worth(place)
        self._learned += 1
        if self._learned % _RANKED == 0:
            self._stale = True

    def holding(self, key: Key, bank: Bank) -> list[tuple[int, Key]]:
        """The places that may fill the slot and hold this value, each with the value."""
        if self._held != bank.changes:
            self._holding, self._held = {}, bank.changes
        found = self._holding.get(key)
        if found is None:
            held = bank.holders.get(key, ())
            numbers = sorted(number for number in held if number in self.priors)
            found = self._holding[key] = [(number, key) for number in numbers if key in bank.values[number]]
        return found

    def table(self) -> dict[int, float]:
        """The candidates and what each is worth."""
        if self._stale:
            found = {number: self.worth(number) for number in (*self.free, *self.priors)}
            best = sorted(found, key=lambda one: (-found[one], one))[:_CANDIDATES]
            self.weights = {number: found[number] for number in best}
            self._stale = False
        return self.weights


@define(eq=False)
class Drawn:
    """Arguments, and where each part of them came from."""

    arguments: dict[str, Any]
    used: list[tuple[Slot, int, Key]]


@define(eq=False)
class Drawer:
    """Draws arguments for the tools of one environment. What it learns holds in the worlds of other seeds too."""

    tools: Mapping[str, ToolSpec]
    bank: Bank
    rng: Random
    now: datetime
    slots: dict[tuple[str, str], Slot] = field(factory=dict)
    #: The place of values that stand in the message of another call's failure.
    named: int = field(init=False)
    #: By tool and parameter: how much failures ask for one that may be left out.
    asked_for: dict[tuple[str, str], float] = field(factory=dict)
    #: What to write into free-text arguments, where somebody says so.
    suggestions: Suggestions | None = None
    _here: Local = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.named = self.bank.number(Place("failure", "", "named"))

    def begin(self, rng: Random, now: datetime) -> None:
        """Go on in another world."""
        self.rng, self.now = rng, now
        for slot in self.slots.values():
            self._make_free(slot)

    def arguments(self, tool: str, local: Local, fixed: Mapping[Key, None] | None = None) -> Drawn | None:
        """Arguments that fit the tool's schema; ``None`` where none were found in a few tries.

        ``fixed`` are values of another call that this one should be about, where it takes them.
        """
        spec = self.tools[tool]
        self._here = local
        properties = spec.parameters.get("properties", {})
        required = [name for name in properties if name in spec.parameters.get("required", ())]
        optional = [name for name in properties if name not in required]
        for _ in range(_TRIES):
            chosen: dict[Key, None] = {}
            drawn = Drawn({}, [])
            plain = self.rng.random() < 0.35
            names = list(required)
            for name in optional:
                wish = self.asked_for.get((tool, name), 0.0)
                likely = max(0.0 if plain else 0.05 if name in _PAGING else 0.25, min(0.8, wish))
                if self.rng.random() < likely:
                    names.append(name)
            if self.rng.random() < 0.3:
                self.rng.shuffle(names)
            for name in names:
                value = self._value(tool, name, name, properties[name], local, chosen, drawn, 0, fixed)
                if value is not None:
                    drawn.arguments[name] = value
            self._in_order(drawn)
            if spec.compiled.literal.validator.is_valid(drawn.arguments):
                return drawn
        return None

    def vary(self, tool: str, arguments: Mapping[str, Any], message: str, local: Local) -> Drawn | None:
        """Arguments that failed, with one or two of them drawn anew: rather those that the message quotes."""
        spec = self.tools[tool]
        self._here = local
        properties = spec.parameters.get("properties", {})
        if not properties:
            return None
        names = list(properties)
        weights = []
        for name in names:
            given = arguments.get(name)
            quoted = name in arguments and isinstance(given, str) and len(given) > 1 and given in message
            named = re.search(rf"\b{re.escape(name)}\b", message) is not None
            weights.append((1.0 if name in arguments else 0.15) + 3.0 * quoted + 3.0 * named)
            if name in _PAGING:
                weights[-1] = 0.01
        for _ in range(_TRIES):
            again = dict.fromkeys(self.rng.choices(names, weights, k=1 if self.rng.random() < 0.6 else 2))
            drawn = Drawn({name: value for name, value in arguments.items() if name not in again}, [])
            chosen = shared_values(drawn.arguments)
            for name in again:
                value = self._value(tool, name, name, properties[name], local, chosen, drawn, 0, None)
                if value is not None:
                    drawn.arguments[name] = value
            if drawn.arguments != arguments and spec.compiled.literal.validator.is_valid(drawn.arguments):
                return drawn
        return None

    def wants(self, tool: str) -> list[int]:
        """The places of values that the required parameters of a tool ask for by name, or have worked with."""
        found: dict[int, None] = {}
        for name in self.tools[tool].parameters.get("required", ()):
            slot = self.slots.get((tool, name)) or self.slots.get((tool, f"{name}[]"))
            if slot is not None:
                found.update(slot.strong)
                found.update(dict.fromkeys(place for place, worked in slot.worked.items() if worked >= 1))
        return list(found)

    def learn(self, drawn: Drawn, *, executed: bool, message: str) -> None:
        """Take the outcome of a call into account: what failed because of a value that its message quotes most."""
        for slot, place, key in drawn.used:
            if executed:
                slot.learn(place, 1.0, 1.0)
            elif names_something(key) and key[1] in message:
                slot.learn(place, 1.0, 0.0)
            else:
                slot.learn(place, 0.2, 0.0)

    def hear(self, tool: str, message: str) -> None:
        """Take up the parameters that a failure's message names."""
        properties = self.tools[tool].parameters.get("properties", {})
        for name in properties:
            if re.search(rf"\b{re.escape(name)}\b", message):
                self.asked_for[tool, name] = self.asked_for.get((tool, name), 0.2) + 0.15

    # Values -----------------------------------------------------------------------------------------------------------

    def _value(
        self,
        tool: str,
        name: str,
        path: str,
        schema: Any,
        local: Local,
        chosen: dict[Key, None],
        drawn: Drawn,
        depth: int,
        fixed: Mapping[Key, None] | None,
    ) -> Any:
        if depth > _DEEPEST or not isinstance(schema, Mapping):
            return None
        shapes = [one for one in (schema, *branches_of(schema)) if one.get("type") in ("array", "object")]
        if shapes:
            shape = shapes[0]
            if shape.get("type") == "array":
                return self._list(tool, name, path, shape, local, chosen, drawn, depth, fixed)
            required = shape.get("required", ())
            members = shape.get("properties", {})
            made = {
                key: self._value(tool, key, f"{path}.{key}", inner, local, chosen, drawn, depth + 1, fixed)
                for key, inner in members.items()
                if key in required or self.rng.random() < 0.3
            }
            return {key: value for key, value in made.items() if value is not None}
        slot = self._slot(tool, name, path, schema)
        place, key = self._draw(slot, local, chosen, fixed)
        drawn.used.append((slot, place, key))
        chosen[key] = None
        return value_of(key)

    def _list(
        self,
        tool: str,
        name: str,
        path: str,
        schema: Mapping[str, Any],
        local: Local,
        chosen: dict[Key, None],
        drawn: Drawn,
        depth: int,
        fixed: Mapping[Key, None] | None,
    ) -> list[Any]:
        rng = self.rng
        whole = [
            number
            for number in self.bank.known
            if likeness(words_of(name), self.bank.places[number].words) > 0
            and any(key[0] == "json" for key in self.bank.values[number])
        ]
        if whole and rng.random() < 0.5:
            known = value_of(rng.choice(list(self.bank.values[rng.choice(whole)])))
            if isinstance(known, list):
                return known
        least = schema.get("minItems", 0)
        most = min(schema.get("maxItems", 4), max(least, rng.choice((1, 1, 1, 2, 2, 3))))
        found: list[Any] = []
        for _ in range(max(most, least) * 2):
            if len(found) >= max(most, least):
                break
            one = self._value(tool, name, f"{path}[]", schema.get("items"), local, chosen, drawn, depth + 1, fixed)
            if one is not None and one not in found:
                found.append(one)
        return found

    def _slot(self, tool: str, name: str, path: str, schema: Mapping[str, Any]) -> Slot:
        slot = self.slots.get((tool, path))
        if slot is None:
            types = json_types(schema) or frozenset({"string"})
            about = words_of(f"{schema.get('description', '')}")
            slot = Slot(tool, path, words_of(name), schema, types - {"null"}, {}, about)
            self._make_free(slot)
            self.slots[tool, path] = slot
        if slot.known_places != len(self.bank.places):
            slot.look(self.bank)
        return slot

    def _make_free(self, slot: Slot) -> None:
        name = slot.path.rpartition(".")[2].replace("[]", "")
        told = self._suggested(slot)
        slot.suggested = bool(told)
        ways = told or free_values(name, slot.schema, self.now, slot.tool)
        slot.free = {self.bank.number(way.place): way for way in ways}
        slot.forget()

    def _suggested(self, slot: Slot) -> list[Free]:
        """The templates for a slot as ways to make up a value."""
        told = self.suggestions
        found = told.of(slot.tool, slot.path) if told is not None else []

        def drawn(one: Template) -> Callable[[Random], str]:
            return lambda rng: (told.filled(one, rng, self._told) if told else None) or one.text

        return [
            Free(Place("schema", slot.tool, f"{slot.path}: template {number}"), 1.0, drawn(one))
            for number, one in enumerate(found, 1)
        ]

    def _told(self, source: str) -> list[str]:
        """The texts that a source of a gap has told: in the state at hand, or else in this world."""
        wanted = Source.of(source)
        places = [
            number
            for number, one in enumerate(self.bank.places)
            if (one.origin, one.owner) == (wanted.origin, wanted.tool) and wanted.path in ("", one.path)
        ]
        here = [key[1] for number in places for key in self._here.get(number, ()) if key[0] == "string"]
        return here or [key[1] for number in places for key in self.bank.values[number] if key[0] == "string"]

    def _draw(
        self, slot: Slot, local: Local, chosen: Mapping[Key, None], fixed: Mapping[Key, None] | None
    ) -> tuple[int, Key]:
        rng, table, bank = self.rng, slot.table(), self.bank
        if fixed and not slot.suggested and rng.random() < 0.8:
            same = [one for key in fixed if key not in chosen for one in slot.holding(key, bank)]
            if same:
                return rng.choices(same, [slot.worth(number) for number, _ in same])[0]
            named = [key for key in fixed if key not in chosen and key[0] == "string" and re.search(r"\d", key[1])]
            if named and "string" in slot.types and rng.random() < 0.5:
                return self.named, rng.choice(named)
        if chosen and not slot.suggested and rng.random() < 0.65:
            together = self._together(slot, chosen)
            if together:
                return rng.choice(together)
        if local and rng.random() < 0.6:
            own = [number for number in table if number in local]
            if own:
                number = rng.choices(own, [table[one] for one in own])[0]
                return number, local[number][-1] if rng.random() < 0.6 else rng.choice(local[number])
        for _ in range(4):
            number = rng.choices(list(table), list(table.values()))[0]
            if number in slot.free:
                return number, key_of(slot.free[number].draw(rng))
            values = bank.values[number]
            if values:
                return number, rng.choice(list(values)[: rng.choice((4, 16, 64))])
        way = rng.choice(list(slot.free)) if slot.free else None
        return (way, key_of(slot.free[way].draw(rng))) if way is not None else (0, key_of("text"))

    def _together(self, slot: Slot, chosen: Mapping[Key, None]) -> list[tuple[int, Key]]:
        """Values for a slot that stood in one object with values that are chosen already, or with what those name."""
        bank, table, rng = self.bank, slot.table(), self.rng
        near = [
            bank.records[number]
            for key in _some(rng, [key for key in chosen if key in bank.where], 3)
            for number in _some(rng, bank.where[key], 8)
        ]
        if rng.random() < 0.85:
            found = _of_records(near, table, 0.02, chosen)
            if found:
                return rng.choices(found, [table[place] for place, _ in found])
        further = [
            bank.records[number]
            for record in _some(rng, near, 5)
            for keys in _some(rng, list(record.values()), 2)
            if keys[0] in bank.where
            for number in _some(rng, bank.where[keys[0]], 4)
        ]
        found = _of_records(further, table, 0.05, chosen)
        return rng.choices(found, [table[place] for place, _ in found]) if found else []

    def _in_order(self, drawn: Drawn) -> None:
        """Put moments that were made up in the order of their parameters: what starts should end later."""
        timely = [
            (slot, key)
            for slot, place, key in drawn.used
            if place in slot.free and slot.free[place].place.origin == "clock" and slot.path in drawn.arguments
        ]
        names = [slot.path for slot, _ in timely]
        if len(names) > 1 and self.rng.random() < 0.85:
            order = [name for name in self.tools[timely[0][0].tool].parameters["properties"] if name in names]
            moments = sorted(drawn.arguments[name] for name in names)
            drawn.arguments.update(zip(order, moments, strict=True))


def _of_records(
    records: list[Record], table: Mapping[int, float], least: float, chosen: Mapping[Key, None]
) -> list[tuple[int, Key]]:
    """The values of records whose places are worth a try."""
    return [
        (place, key)
        for record in records
        for place in sorted(record.keys() & table.keys())
        if table[place] > least
        for key in record[place]
        if key not in chosen
    ]


def _some(rng: Random, listed: list[T], most: int) -> list[T]:
    return listed if len(listed) <= most else rng.sample(listed, most)


def shared_values(arguments: Mapping[str, Any]) -> dict[Key, None]:
    """The values of a call that name things, so that another call can be about the same."""
    return {key: None for _, key in leaves(arguments) if names_something(key)}
