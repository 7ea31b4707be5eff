"""Numbers, days and times in words, each way of saying one read back to it."""

from __future__ import annotations

import re
from datetime import date
from typing import Final

from callwright_plugins.synthesis.language.values.tokens import Token

WORDS: Final = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
ORDINALS: Final = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth"
).split()
MONTHS: Final = ("January February March April May June July August September October November December").split()
DAYS: Final = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_MONTH: Final = {name.lower(): number for number, name in enumerate(MONTHS, 1)}
_WEEKDAY: Final = {name.lower(): number for number, name in enumerate(DAYS)}
_NUMBER: Final = {word: number for number, word in enumerate(WORDS)}
_ORDINAL: Final = {word: number for number, word in enumerate(ORDINALS, 1)}
_DAY: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_MOMENT: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})T([0-9]{2}:[0-9]{2})(:00)?(Z)?")
_YEAR_MONTH: Final = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])")
_CLOCK: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_ENDED: Final = re.compile(r"([0-9]{1,4})(?:st|nd|rd|th)")
INTEGER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,300})")
FLOAT: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,300})(?:\.[0-9]{1,20})?(?:e[+-]?[0-9]{1,3})?")
CENTS: Final = re.compile(r"(-?)(0|[1-9][0-9]{0,300})\.([0-9]{2})")


def ordinal(number: int) -> str:
    """``first`` … ``fifteenth``, ``16th``, ``21st``."""
    if 1 <= number <= len(ORDINALS):
        return ORDINALS[number - 1]
    return ended(number)


def ended(number: int) -> str:
    """``1st``, ``2nd``, ``13th``."""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def read_ordinal(token: Token) -> int | None:
    """The number that an ordinal stands for."""
    if token.word in _ORDINAL:
        return _ORDINAL[token.word]
    match = _ENDED.fullmatch(token.word)
    return int(match[1]) if match and ended(int(match[1])) == token.word and int(match[1]) > 0 else None


def read_number_word(token: Token) -> int | None:
    """``three`` as 3."""
    return _NUMBER.get(token.word) if token.kind == "word" else None


def day_surfaces(text: str) -> tuple[str, ...]:
    """The ways in which a day, a month, a moment or a time of day may be said; empty for what is none."""
    if (moment := _MOMENT.fullmatch(text)) and (day := _day(moment[1])) is not None:
        # Written to the second is another text, and so is another name for UTC: each has words of its own.
        zone = (" UTC" if moment[4] else "") + (" sharp" if moment[3] else "")
        clock = moment[2] if _CLOCK.fullmatch(moment[2]) else ""
        return tuple(f"{said} at {clock}{zone}" for said in _days(day)) if clock else ()
    if (day := _day(text)) is not None:
        return _days(day)
    if month := _YEAR_MONTH.fullmatch(text):
        return (f"{MONTHS[int(month[2]) - 1]} {month[1]}",)
    if clock := _CLOCK.fullmatch(text):
        hour = int(clock[1])
        return (f"{hour % 12 or 12}:{clock[2]} {'am' if hour < 12 else 'pm'}",)
    return ()


def _days(day: date) -> tuple[str, ...]:
    month = MONTHS[day.month - 1]
    weekday = DAYS[day.weekday()]
    return (
        f"{day.day} {month} {day.year:04}",
        f"{month} {day.day}, {day.year:04}",
        f"the {ended(day.day)} of {month} {day.year:04}",
        f"{weekday}, {day.day} {month} {day.year:04}",
        f"{weekday} the {ended(day.day)} of {month} {day.year:04}",
    )


def _day(text: str) -> date | None:
    if not _DAY.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def read_day(found: tuple[Token, ...], at: int) -> list[tuple[int, str]]:
    """The days, months, moments and times of day that stand at a token in words, each as its ISO text."""
    matches: list[tuple[int, str]] = []
    clock = re.fullmatch(r"(1[0-2]|[1-9]):([0-5][0-9])", _word(found, at))
    if clock and _word(found, at + 1) in ("am", "pm"):
        hour = int(clock[1]) % 12 + (12 if _word(found, at + 1) == "pm" else 0)
        matches.append((at + 2, f"{hour:02}:{clock[2]}"))
    if _word(found, at) in _MONTH and (year := _year(found, at + 1)):
        matches.append((at + 2, f"{year}-{_MONTH[_word(found, at)]:02}"))
    for end, day in _read_days(found, at):
        matches.append((end, day))
        if _word(found, end) == "at" and _CLOCK.fullmatch(_word(found, end + 1)):
            moment, end = f"{day}T{_word(found, end + 1)}", end + 2
            matches.append((end, moment))
            matches.extend(_zones(found, end, moment))
    return matches


def _zones(found: tuple[Token, ...], at: int, moment: str) -> list[tuple[int, str]]:
    matches, end, zone = [], at, ""
    if _word(found, at) == "utc":
        end, zone = at + 1, "Z"
        matches.append((end, f"{moment}Z"))
    if _word(found, end) == "sharp":
        matches.append((end + 1, f"{moment}:00{zone}"))
    return matches


def _read_days(found: tuple[Token, ...], at: int) -> list[tuple[int, str]]:
    first = _word(found, at)
    if first in _WEEKDAY:  # and then any other form, which has to be that day of the week
        behind = at + 2 if _word(found, at + 1) == "," else at + 1
        return [one for one in _read_dates(found, behind) if _is_weekday(one[1], _WEEKDAY[first])]
    return _read_dates(found, at)


def _read_dates(found: tuple[Token, ...], at: int) -> list[tuple[int, str]]:
    first = _word(found, at)
    if first == "the" and (match := _ENDED.fullmatch(_word(found, at + 1))) and _word(found, at + 2) == "of":
        return _made(found, at + 3, int(match[1]), at + 5, _year(found, at + 4))
    if re.fullmatch(r"[1-9][0-9]?", first):
        return _made(found, at + 1, int(first), at + 3, _year(found, at + 2))
    if first in _MONTH and re.fullmatch(r"[1-9][0-9]?", _word(found, at + 1)) and _word(found, at + 2) == ",":
        return _made(found, at, int(_word(found, at + 1)), at + 4, _year(found, at + 3))
    return []


def _made(found: tuple[Token, ...], month_at: int, day: int, end: int, year: str) -> list[tuple[int, str]]:
    month = _MONTH.get(_word(found, month_at))
    if month is None or not year:
        return []
    text = f"{year}-{month:02}-{day:02}"
    return [(end, text)] if _day(text) is not None else []


def _is_weekday(text: str, weekday: int) -> bool:
    day = _day(text)
    return day is not None and day.weekday() == weekday


def _year(found: tuple[Token, ...], at: int) -> str:
    word = _word(found, at)
    return word if re.fullmatch(r"[0-9]{4}", word) else ""


def _word(found: tuple[Token, ...], at: int) -> str:
    return found[at].word if at < len(found) and found[at].kind != "quoted" else ""
