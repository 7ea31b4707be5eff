"""Persons: names, addresses and the like, given, read from files, or drawn from a seed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Any, Final

from attrs import evolve, field, fields_dict, frozen

from callwright.errors import DataError

#: How many people somebody knows who is drawn.
FRIENDS: Final = 8
_FIRST: Final = (
    "Alma Anton Bruno Clara Dana Edgar Elena Filip Greta Henrik Irma Jakob Karin Lukas Mira Nora Oskar Petra Ruben "
    "Silvia Theresa Ugo Vanda Willem Yvonne Zeno"
).split()
_LAST: Final = (
    "Alder Barlow Carver Denholm Elster Fairley Garrow Holm Ingram Jarvis Kestle Lorimer Marlow Norwood Orchard Prior "
    "Quarry Rowley Selby Thorne Underhill Vance Whitlock Yarwood"
).split()
_STREETS: Final = (
    "Alder Row",
    "Bridge Street",
    "Chapel Lane",
    "Mill Road",
    "Orchard Way",
    "Quay Street",
    "Station Lane",
)
_CITIES: Final = ("Calder", "Fernhill", "Glenford", "Maplewood", "Oakridge", "Thornbury")
_WORD: Final = re.compile(r"[^\W_]+")
_LONGEST: Final = 120


@frozen(cache_hash=True)
class Person:
    """Somebody. What is left empty of one who is introduced is made of the name, always in the same way.

    ``login`` is the name of accounts and the like: ``ada.berg``. ``street`` begins with the number of the house.
    Raises :class:`callwright.errors.DataError` for a name that has not at least two words, and for what is no text.
    """

    name: str
    email: str = ""
    phone: str = ""
    street: str = ""
    city: str = ""
    login: str = ""

    def __attrs_post_init__(self) -> None:
        for what in fields_dict(Person):
            value = getattr(self, what)
            if not isinstance(value, str) or value != " ".join(value.split()) or len(value) > _LONGEST:
                raise DataError(f"the {what} of a person is a line of at most {_LONGEST} characters, not {value!r:.80}")
        if len(self.name.split()) < 2:
            raise DataError(f"a person has a first and a last name: {self.name!r:.80}")
        if self.email != self.email.lower() or (self.email and "@" not in self.email):
            raise DataError(f"the email of a person is an address in lower case, not {self.email!r:.80}")

    @property
    def first(self) -> str:
        """The first name."""
        return self.name.partition(" ")[0]

    @property
    def last(self) -> str:
        """Everything behind it."""
        return self.name.partition(" ")[2]

    @property
    def address(self) -> str:
        """``12 Mill Road, Calder``; empty if one of the two is not known."""
        return f"{self.street}, {self.city}" if self.street and self.city else ""

    def __str__(self) -> str:
        told = ", ".join(one for one in (self.email, self.phone, self.address) if one)
        return f"{self.name} ({told})" if told else self.name


def _persons(given: Iterable[Person]) -> tuple[Person, ...]:
    return tuple(given)


@frozen(cache_hash=True)
class People:
    """Who is signed in, and others whom they know, the closest first.

    ``untouched`` are tables of an environment whose texts stay as they are when others are introduced.
    """

    me: Person | None = None
    others: tuple[Person, ...] = field(default=(), converter=_persons)
    untouched: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[Person, ...]:
        """Everybody."""
        return (*(() if self.me is None else (self.me,)), *self.others)


def whole(person: Person) -> Person:
    """A person of whom everything is known: what is left empty is made of the name."""
    words = [word.lower() for word in _WORD.findall(person.name)]
    login = person.login or person.email.partition("@")[0] or ".".join(words)
    rng = Random(f"person/{person.name}")
    return evolve(
        person,
        login=login,
        email=person.email or f"{login}@example.com",
        phone=person.phone or f"+00 555 {rng.randrange(10**6):06d}",
        street=person.street or f"{rng.randrange(1, 90)} {rng.choice(_STREETS)}",
        city=person.city or rng.choice(_CITIES),
    )


@lru_cache(maxsize=256)
def drawn(seed: int) -> People:
    """The people of a seed: who is signed in, and eight others."""
    rng = Random(f"people/{seed}")
    names = zip(rng.sample(_FIRST, FRIENDS + 1), rng.sample(_LAST, FRIENDS + 1), strict=True)
    me, *others = (whole(Person(f"{first} {last}")) for first, last in names)
    return People(me, tuple(others))


def read_people(stated: Any) -> People:
    """The people that are given: one, or several of whom the first is signed in, as :class:`Person` or objects of JSON.

    Raises :class:`callwright.errors.DataError` for anything else, and for two of one name, address or login.
    """
    if isinstance(stated, People):
        given: Sequence[Any] = stated.all
    else:
        given = [stated] if isinstance(stated, Person | Mapping) else stated
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise DataError(f"people are persons, or objects with a name, the first of them signed in; not {stated!r:.80}")
    people = [whole(_person(one)) for one in given]
    for what in ("name", "email", "login"):
        _check_different(what, (getattr(one, what) for one in people))
    return People(people[0], tuple(people[1:]))


def _check_different(what: str, values: Iterable[str]) -> None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise DataError(f"two people have the {what} {value!r}")
        seen.add(value)


def _person(stated: Any) -> Person:
    if isinstance(stated, Person):
        return stated
    known = fields_dict(Person)
    if not isinstance(stated, Mapping) or "name" not in stated:
        raise DataError(f"a person is an object with a name, not {stated!r:.80}")
    for name in stated:
        if name not in known:
            raise DataError(f"a person has no {name!r:.40}; it has {', '.join(known)}")
    return Person(**stated)
