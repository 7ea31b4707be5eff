"""Worlds of the calendar: a team across time zones, a nearly empty calendar, and one full of traps."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final

from callwright.environments.rows import table_of
from callwright.environments.stateful import NOW, Scenario
from callwright_plugins.mcp_environments.calendar.recurrence import first_start, zone_of
from callwright_plugins.mcp_environments.calendar.rows import (
    Calendar,
    Event,
    Invitee,
    OccurrenceException,
    Person,
    Profile,
    RecurrenceRule,
)
from callwright_plugins.mcp_environments.people import email_of, person

_ZONES: Final = ("Europe/Berlin", "Europe/Berlin", "Europe/London", "America/New_York", "Asia/Tokyo", "UTC")
_TITLES: Final = (
    "Design review", "Budget meeting", "One to one", "Customer call", "Interview", "Planning", "Retrospective",
    "Release check", "Training", "Lunch", "Security review", "Roadmap", "Demo", "Handover", "Data review",
)  # fmt: skip
_PLACES: Final = ("Room Birch", "Room Cedar", "Room Oak", "Online", "Cafeteria", "Lab 2", "")
_HOME: Final = "Europe/Berlin"


class _Book:
    """The rows of a calendar world in the making; it hands out ids in order."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.rows: list[Any] = []
        self.numbers: dict[type[Any], int] = {}

    def new_id(self, kind: type[Any]) -> str:
        self.numbers[kind] = self.numbers.get(kind, 0) + 1
        return table_of(kind).identifier(self.numbers[kind])

    def person(self, name: tuple[str, str], zone: str, hours: tuple[int, int] = (540, 1020)) -> Person:
        identifier = self.new_id(Person)
        email = email_of(*name, self.numbers[Person])
        made = Person(identifier, " ".join(name), email, zone, *hours)
        self.rows.append(made)
        return made

    def calendar(self, owner: Person, name: str, access: str) -> Calendar:
        made = Calendar(self.new_id(Calendar), owner.id, name, owner.time_zone, access)
        self.rows.append(made)
        return made

    def profile(self, me: Person, calendar: Calendar) -> None:
        self.rows.append(Profile("me", me.id, calendar.id))

    def event(
        self,
        calendar: Calendar,
        organizer: Person,
        title: str,
        start: int,
        minutes: int,
        *,
        invited: tuple[Person, ...] = (),
        response: str = "",
        show_as: str = "busy",
        cancelled: bool = False,
        rule: tuple[str, int, tuple[int, ...], str, int | None, int | None] | None = None,
    ) -> Event:
        identifier = self.new_id(Event)
        if rule is not None:
            made = RecurrenceRule(identifier, *rule)
            start = first_start(made, start, zone_of(organizer.time_zone))
            self.rows.append(made)
        event = Event(
            identifier,
            calendar.id,
            organizer.id,
            title,
            f"Organised by {organizer.name}.",
            self.rng.choice(_PLACES),
            start,
            start + minutes * 60,
            organizer.time_zone,
            show_as,
            rule is not None,
            0 if cancelled else None,
        )
        self.rows.append(event)
        for one in invited:
            if one.id != organizer.id:
                answer = response or self.rng.choice(("accepted", "accepted", "needs_action", "tentative", "declined"))
                self.rows.append(Invitee(identifier, one.id, answer, self.rng.random() < 0.2))
        return event


def at(zone: str, days: int, hour: int, minute: int = 0) -> int:
    """Seconds of a wall-clock time so many days after the Monday on which sessions begin."""
    day = datetime.fromtimestamp(NOW, zone_of("UTC")).replace(tzinfo=None, hour=hour, minute=minute, second=0)
    return int((day + timedelta(days=days)).replace(tzinfo=zone_of(zone)).timestamp())


def typical(rng: Random, scale: float) -> Iterator[Any]:
    """Forty people in five zones, six weeks of events, series with exceptions, invitations open and answered."""
    book = _Book(rng)
    me = book.person(person(rng), _HOME)
    others = [book.person(person(rng), rng.choice(_ZONES)) for _ in range(max(4, round(40 * scale)))]
    work, private = book.calendar(me, "Work", "owner"), book.calendar(me, "Private", "owner")
    team = book.calendar(others[0], "Team", "writer")
    company = book.calendar(others[1], "Company", "reader")
    book.profile(me, work)
    own = {one.id: book.calendar(one, one.name, "free_busy") for one in others}
    for one in others:
        for _ in range(9):
            _meeting(book, own[one.id], one, tuple(rng.sample(others, rng.randint(0, 3))))
        _series(book, own[one.id], one, tuple(rng.sample(others, 2)))
    for number in range(max(6, round(36 * scale))):
        calendar, organizer = ((work, me), (private, me), (team, others[0]), (company, others[1]))[number % 4]
        _meeting(book, calendar, organizer, tuple(rng.sample(others, rng.randint(1, 4))))
    for number in range(max(4, round(24 * scale))):
        organizer = others[number % len(others)]
        _meeting(book, own[organizer.id], organizer, (me, *rng.sample(others, 2)))
    for _ in range(max(3, round(5 * scale))):
        _series(book, work, me, tuple(rng.sample(others, 3)))
    _series(book, own[others[2].id], others[2], (me, others[3]))
    yield from book.rows


def _meeting(book: _Book, calendar: Calendar, organizer: Person, invited: tuple[Person, ...]) -> None:
    rng = book.rng
    day = rng.choice([day for day in range(-14, 28) if day % 7 < 5])
    start = at(organizer.time_zone, day, rng.randint(8, 16), rng.choice((0, 0, 30)))
    book.event(
        calendar,
        organizer,
        f"{rng.choice(_TITLES)} {rng.choice(('Alpha', 'Beta', 'Gamma', 'North', 'South'))}",
        start,
        rng.choice((30, 30, 45, 60, 60, 90)),
        invited=invited,
        show_as="free" if rng.random() < 0.05 else "busy",
        cancelled=rng.random() < 0.05,
    )


def _series(book: _Book, calendar: Calendar, organizer: Person, invited: tuple[Person, ...]) -> None:
    rng = book.rng
    weekday, week = rng.randrange(5), rng.choice((-2, -1, 1))
    start = at(organizer.time_zone, 7 * week + weekday, rng.randint(8, 16), rng.choice((0, 15)))
    kind = rng.choice(("daily", "weekly", "weekly", "weekly", "monthly"))
    days = tuple(sorted({weekday, rng.randrange(5)})) if kind == "weekly" else ()
    rule = (kind, rng.choice((1, 1, 2)), days, "day" if rng.random() < 0.6 or kind != "monthly" else "weekday",
            rng.choice((None, 10, 30)), None)  # fmt: skip
    event = book.event(calendar, organizer, f"Weekly {rng.choice(_TITLES)}", start, 30, invited=invited, rule=rule)
    if kind == "weekly" and rule[1] == 1:  # one week after the first there is one: skip it
        later = datetime.fromtimestamp(event.start, zone_of(event.time_zone)).replace(tzinfo=None) + timedelta(days=7)
        original = int(later.replace(tzinfo=zone_of(event.time_zone)).timestamp())
        book.rows.append(OccurrenceException(event.id, original, rng.random() < 0.5, original + 3600, original + 5400))


def sparse(rng: Random, scale: float) -> Iterator[Any]:
    """Three people, two events, nothing this week."""
    book = _Book(rng)
    me, other, third = (book.person(person(rng), zone) for zone in (_HOME, "UTC", "Asia/Tokyo"))
    mine = book.calendar(me, "Work", "owner")
    theirs = book.calendar(other, other.name, "free_busy")
    book.calendar(third, third.name, "free_busy")
    book.profile(me, mine)
    for number in range(max(1, round(scale))):
        book.event(mine, me, "Dentist", at(_HOME, 21 + number, 10), 60, show_as="free")
        book.event(theirs, other, "Board", at("UTC", 30 + number, 10), 60, invited=(me,), response="needs_action")
    yield from book.rows


def adversarial(rng: Random, scale: float) -> Iterator[Any]:
    """Namesakes, events of one title, series across the change of clocks and on the 31st, full days, opposite zones."""
    book = _Book(rng)
    me = book.person(("Ada", "Berg"), _HOME)
    namesakes = [book.person(("Ada", "Berg"), zone) for zone in (_HOME, "Europe/London", "Pacific/Auckland")]
    others = [book.person(person(rng), rng.choice(_ZONES)) for _ in range(max(4, round(12 * scale)))]
    far = book.person(("Kiri", "Moana"), "Pacific/Auckland")
    mine = book.calendar(me, "Work", "owner")
    twin = book.calendar(namesakes[0], "Work", "free_busy")
    shared = book.calendar(namesakes[1], "Work", "writer")
    read = book.calendar(others[0], "Work", "reader")
    book.calendar(far, far.name, "free_busy")
    book.profile(me, mine)
    for number in range(max(2, round(30 * scale))):  # one title, several organisers, some cancelled, some over
        calendar, organizer = ((mine, me), (twin, namesakes[0]), (shared, namesakes[1]), (read, others[0]))[number % 4]
        start = at(organizer.time_zone, number % 23 - 5, 9 + number % 7)
        invited = (me, others[number % len(others)]) if number % 3 else (others[1], others[2])
        book.event(calendar, organizer, "Project sync", start, 30, invited=invited, cancelled=number % 5 == 0)
    for hour in range(8, 18):  # Wednesday is full to the minute
        book.event(mine, me, "Focus", at(_HOME, 2, hour), 60)
    # Clocks change on 29 March in Berlin and on 8 March in New York: daily at 02:30 and weekly on Sundays.
    book.event(mine, me, "Night job", at(_HOME, -3, 2, 30), 15, rule=("daily", 1, (), "day", None, None))
    book.event(mine, me, "Sunday check", at(_HOME, 6, 20), 30, rule=("weekly", 1, (6,), "day", 6, None))
    book.event(mine, me, "Month end", at(_HOME, -30, 7), 30, rule=("monthly", 1, (), "day", None, None))  # 31 January
    book.event(mine, me, "Payroll", at(_HOME, 29, 7), 30, rule=("monthly", 1, (), "day", 4, None))  # 31 March
    book.event(mine, me, "Fifth Monday", at(_HOME, 28, 7), 30, rule=("monthly", 1, (), "weekday", None, None))
    done = at(_HOME, -2, 12)
    book.event(mine, me, "Old series", at(_HOME, -30, 12), 30, rule=("weekly", 1, (0, 5), "day", None, done))
    skipped = book.event(mine, me, "Stand-up", at(_HOME, 1, 6), 15, rule=("daily", 1, (), "day", 3, None))
    for day in (1, 2):
        original = at(_HOME, day, 6)
        book.rows.append(OccurrenceException(skipped.id, original, True, original, original + 900))
    yield from book.rows


SCENARIOS: Final = {
    "typical": Scenario(typical, "forty people in five time zones, six weeks of events and series"),
    "sparse": Scenario(sparse, "three people and two events, none of them this week"),
    "adversarial": Scenario(adversarial, "namesakes, equal titles, changing clocks, full days, cancelled events"),
}
