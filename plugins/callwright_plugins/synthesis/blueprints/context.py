"""Live-state sampling (Prove, section 3.2, step 2): what there is in a world, and what belongs together there.

Tools that only read are called in the world of a conversation before it is planned: those that need no argument, then
the others with what these told. Values are kept by their place, with the objects that they stood in, so that a card is
drawn with its customer. A sample is good for several conversations (Prove's *k*).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from callwright.capability import has
from callwright.environments.protocol import Environment, Session, TellsTime
from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.exploration.free import SOME_DAY
from callwright_plugins.synthesis.exploration.states import known_to
from callwright_plugins.synthesis.exploration.values import Bank, Key, Place, Record, names_something, value_of
from callwright_plugins.synthesis.exploration.witness import copied

#: Parameters by which a tool tells more at once.
_SIZES: Final = ("limit", "page_size", "max_results", "per_page", "count")
#: Values of a place that say what state a thing is in: a few words for many things.
_STATES: Final = 10
_ASKED: Final = 80
#: A value that stands in more objects than this joins nothing.
_COMMON: Final = 8
_SHOWN: Final = 5
_LISTED: Final = 24


class Asks(Protocol):
    """What draws the arguments of tools that need some: from what is known of a world so far."""

    def arguments_of(self, tool: str, context: Context) -> Iterable[dict[str, Any]]:
        """Arguments for calls of a tool; none where nothing fits."""


class Context:
    """What is known of one world: values by place, and the objects that they stood in."""

    def __init__(self, now: datetime = SOME_DAY) -> None:
        self.bank, self.now = Bank(), now
        #: What was asked before, until something is taken up. Places are told by the tuple that they came in, which
        #: stands beside what it led to: it would take long to hash.
        self._states: dict[tuple[Key, int], tuple[tuple[Place, ...], dict[int, Key]]] = {}
        self._wanted: dict[int, tuple[tuple[tuple[Place, Key], ...], list[tuple[int, Key]]]] = {}
        self._beside: dict[tuple[Key, int], tuple[tuple[Place, ...], list[Key]]] = {}
        self._there: dict[int, tuple[tuple[Place, ...], list[Place]]] = {}
        self._held: dict[int, tuple[tuple[Place, ...], list[int], dict[Key, None]]] = {}
        self._likeness: dict[tuple[Key, int, int], tuple[Any, Any, int]] = {}
        self._around: dict[Key, list[Key]] = {}
        self._marks: dict[int, list[tuple[int, Key]]] = {}
        self._alone: dict[Key, dict[int, Record]] | None = None

    def absorb(self, tool: str, arguments: Mapping[str, Any], result: Any) -> None:
        """Take up a result and what was asked for it."""
        self._forget()
        self.bank.absorb(tool, arguments, result)
        for path, below in _paths_in(arguments, result):
            place = self.bank.number(Place("result", tool, "path"))
            self.bank.keep(place, ("string", below))
            self.bank.note([(place, ("string", below)), (place, ("string", path))])

    def know(self, who: str, named: Key | None, known: Mapping[str, Any]) -> None:
        """Take up what somebody knows (:meth:`.Bank.know`)."""
        self._forget()
        self.bank.know(who, named, known)

    def _forget(self) -> None:
        self._alone = None
        found: tuple[dict[Any, Any], ...] = (self._states, self._wanted, self._beside, self._there, self._held)
        for known in (*found, self._likeness, self._around, self._marks):
            known.clear()

    def values(self, place: Place) -> list[Key]:
        """The values that stood there, in the order in which they were met."""
        number = self.bank.numbers.get(place)
        return list(self.bank.values[number]) if number is not None else []

    def has(self, place: Place) -> bool:
        """Whether a value stood there."""
        number = self.bank.numbers.get(place)
        return number is not None and bool(self.bank.values[number])

    def places_of(self, key: Key) -> list[Place]:
        """Where a value stood."""
        return [place for place, held in zip(self.bank.places, self.bank.values, strict=True) if key in held]

    def support(self, key: Key) -> int:
        """In how many objects a value stood."""
        return len(self.bank.where.get(key, ()))

    def states(self, key: Key, places: tuple[Place, ...]) -> dict[Place, Key]:
        """What state a thing is in: values of few kinds, such as ``status``, in the objects that its id stands in."""
        return {self.bank.places[number]: state for number, state in self._states_by_number(key, places).items()}

    def _states_by_number(self, key: Key, places: tuple[Place, ...]) -> dict[int, Key]:
        """The same by the numbers of the places, which are quicker to look up."""
        known = self._states.get((key, id(places)))
        if known is None or known[0] is not places:
            known = self._states[key, id(places)] = places, self._find_states(key, places)
        return known[1]

    def beside(self, key: Key, places: tuple[Place, ...]) -> list[Key]:
        """The values of these places that stand in one object with a value, or with something that does."""
        known = self._beside.get((key, id(places)))
        if known is None or known[0] is not places:
            known = self._beside[key, id(places)] = places, self._find_beside(key, places)
        return known[1]

    def within(self, keys: Sequence[Key], places: tuple[Place, ...]) -> list[Key]:
        """The values of these places in objects that hold all of some values, none of them beside another one of the
        same place. Other than :meth:`beside`, numbers count, and every object is looked at.
        """
        if self._alone is None:
            self._alone = {}
            for at, record in enumerate(self.bank.records):
                for held in record.values():
                    if len(held) == 1:
                        self._alone.setdefault(held[0], {})[at] = record
        by_key = sorted((self._alone.get(key, {}) for key in keys), key=len)
        numbers, _ = self._held_at(places)
        found: dict[Key, None] = {}
        for at, record in by_key[0].items():
            if all(at in others for others in by_key[1:]):
                found.update((record[number][0], None) for number in numbers if len(record.get(number, ())) == 1)
        return list(found)

    def there(self, places: tuple[Place, ...]) -> list[Place]:
        """Those of some places at which a value stood."""
        known = self._there.get(id(places))
        if known is None or known[0] is not places:
            known = self._there[id(places)] = places, [place for place in places if self.has(place)]
        return known[1]

    def likeness(self, key: Key, places: tuple[Place, ...], state: tuple[tuple[Place, Key], ...]) -> int:
        """In how many respects a thing is in this state."""
        known = self._likeness.get((key, id(places), id(state)))
        if known is None or known[0] is not places or known[1] is not state:
            states = self._states_by_number(key, places)
            worth = sum(states.get(number) == wanted for number, wanted in self._numbered(state))
            known = self._likeness[key, id(places), id(state)] = places, state, worth
        return known[2]

    def _numbered(self, state: tuple[tuple[Place, Key], ...]) -> list[tuple[int, Key]]:
        known = self._wanted.get(id(state))
        if known is None or known[0] is not state:
            numbers = self.bank.numbers
            wanted = [(numbers[place], key) for place, key in dict(state).items() if place in numbers]
            known = self._wanted[id(state)] = state, wanted
        return known[1]

    def _find_states(self, key: Key, places: tuple[Place, ...]) -> dict[int, Key]:
        numbers, _ = self._held_at(places)
        found: dict[int, Key] = {}
        for record in self.bank.where.get(key, ())[-4:]:
            held = self.bank.records[record]
            if any(number in held for number in numbers):
                found.update(mark for mark in self._marked(record) if mark[0] not in numbers)
        return found

    def _marked(self, record: int) -> list[tuple[int, Key]]:
        """The values of an object that say what state it is in."""
        known = self._marks.get(record)
        if known is None:
            bank = self.bank
            known = self._marks[record] = [
                (number, keys[0])
                for number, keys in bank.records[record].items()
                for told in (bank.places[number],)
                if len(bank.values[number]) <= _STATES
                and told.origin == "result"
                and keys[0][0] in ("string", "boolean")
                and not told.path.endswith("cursor")
            ]
        return known

    def _held_at(self, places: tuple[Place, ...]) -> tuple[list[int], dict[Key, None]]:
        """The numbers of some places, and the values that stood at any of them."""
        known = self._held.get(id(places))
        if known is None or known[0] is not places:
            numbers = [self.bank.numbers[place] for place in places if place in self.bank.numbers]
            held = {key: None for number in numbers for key in self.bank.values[number]}
            known = self._held[id(places)] = places, numbers, held
        return known[1], known[2]

    def _near(self, key: Key) -> list[Key]:
        """The values that stand in one object with a value."""
        known = self._around.get(key)
        if known is None:
            near = [self.bank.records[record] for record in self.bank.where.get(key, ())]
            around = {one: None for record in near for keys in record.values() for one in keys}
            around.pop(key, None)
            known = self._around[key] = list(around)
        return known

    def _find_beside(self, key: Key, places: tuple[Place, ...]) -> list[Key]:
        numbers, held = self._held_at(places)
        around = self._near(key)
        found = {one: None for one in around if one in held}
        if not found:
            joins = [one for one in around if names_something(one) and 0 < len(self.bank.where.get(one, ())) <= _COMMON]
            found = {
                one: None
                for join in joins
                for record in self.bank.where[join]
                for number in numbers
                for one in self.bank.records[record].get(number, ())
                if one != key
            }
        return list(found)

    def compact(self, places: Iterable[Place] | None = None) -> dict[str, list[Any]]:
        """A few values of each place, for a teacher's prompt; ``places`` are those that a chain is about."""
        wanted = list(self.bank.places if places is None else dict.fromkeys(places))
        found = {}
        for place in wanted:
            keys = sorted(self.values(place), key=lambda key: -self.support(key))[:_SHOWN]
            if keys and place.origin in ("result", "knowledge"):
                found[f"{place.owner}: {place.path}"] = [value_of(key) for key in keys]
        return found


def sample(environment: Environment, session: Session, asks: Asks, rounds: int = 2) -> Context:
    """What the tools that only read tell of a world. The session is left as it was: nothing is changed."""
    context = Context(now_in(session))
    reads = [spec for spec in environment.tools.values() if spec.read_only and not spec.hidden]
    reads.sort(key=lambda spec: not spec.discovery)
    _know(session, context)
    for spec in reads:
        if not spec.parameters.get("required"):
            _ask(session, context, spec, _widely(spec))
    for _ in range(rounds):
        for spec in reads:
            for arguments in asks.arguments_of(spec.name, context):
                _ask(session, context, spec, arguments)
    return context


def take_up(session: Session, context: Context, spec: ToolSpec, arguments: dict[str, Any]) -> None:
    """Make a call that only reads, and remember what it tells."""
    _ask(session, context, spec, arguments)


def ask_around(session: Session, context: Context) -> None:
    """Ask those who are named in the world what they know, besides the user."""
    asked = 0
    for place in list(context.bank.places):
        for key in context.values(place)[:12]:
            if asked < _ASKED and place.origin == "result" and names_something(key):
                asked += 1
                known = known_to(session, str(key[1]))
                if known:
                    context.know("entity", key, known)


def now_in(session: Session) -> datetime:
    """How late it is in a world."""
    if has(session, TellsTime):
        return datetime.fromtimestamp(session.tell_time(), UTC)
    return SOME_DAY


def _know(session: Session, context: Context) -> None:
    known = known_to(session, "me")
    if known:
        context.know("me", None, known)


def _ask(session: Session, context: Context, spec: ToolSpec, arguments: dict[str, Any]) -> None:
    outcome = session.call(spec.name, copied(arguments))
    if outcome.kind in ("ok", "partial"):
        told = {name: value for name, value in arguments.items() if name not in _SIZES}
        context.absorb(spec.name, told, outcome.value)


def _widely(spec: ToolSpec) -> dict[str, Any]:
    """No arguments but the one that asks for as much as there is."""
    for name in _SIZES:
        schema = spec.parameters.get("properties", {}).get(name)
        if isinstance(schema, Mapping) and isinstance(schema.get("maximum"), int):
            return {name: schema["maximum"]}
    return {}


def _paths_in(arguments: Mapping[str, Any], result: Any) -> Iterator[tuple[str, str]]:
    """Whole paths of what a listing of a folder names, each with the folder's."""
    folders = [value for value in arguments.values() if isinstance(value, str) and value.startswith("/")]
    listed = result.get("items", result.get("entries")) if isinstance(result, Mapping) else result
    if len(folders) == 1 and isinstance(listed, list):
        for one in listed[:_LISTED]:
            name = one.get("name") if isinstance(one, Mapping) else one
            if isinstance(name, str) and name and "/" not in name:
                yield folders[0], f"{folders[0].rstrip('/')}/{name}"
