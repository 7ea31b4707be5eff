"""How things are said: surfaces of values, and sentences around a request, a question or a thing.

A *form* is the core of a phrasing with slots (``check the weather in {city} for {date}``), written as a request
(imperative), a question or a thing (noun phrase). A *frame* is what stands around it. A phrasing is a form in a frame.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Final, Literal

from attrs import frozen

Mood = Literal["request", "question", "thing"]

FRAMES: Final[Mapping[Mood, tuple[str, ...]]] = {
    "request": (
        "{F}.",
        "Please {f}.",
        "Could you {f}?",
        "Can you please {f}?",
        "I'd like you to {f}.",
        "I need you to {f}.",
        "Hi! Would you {f}, please?",
        "{F}, please.",
        "When you get a chance, {f}.",
        "Hey, {f}. Thanks!",
        "Would you mind helping me? I want you to {f}.",
    ),
    "question": (
        "{F}?",
        "Quick question: {f}?",
        "Hello, {f}?",
        "{F}? Thanks!",
        "I was wondering: {f}?",
        "Just checking, {f}?",
        "Good morning. {F}?",
        "{F}? I'd rather not look it up myself.",
    ),
    "thing": (
        "I need {f}.",
        "{F}, please.",
        "I'm after {f}.",
        "Can I get {f}?",
        "Give me {f}.",
        "Please look up {f}.",
        "What I want is {f}.",
        "Hi, could I have {f}?",
    ),
}

#: Frames that begin with one of these follow nothing.
GREETINGS: Final = ("Hi", "Hey", "Hello", "Good morning", "Just checking", "Quick question")

#: Said before or after by people who explain themselves. It holds no fact that a program needs.
BACKGROUND: Final[Mapping[str, tuple[str, ...]]] = {
    "agenda": ("I'm trying to organise my week.", "My diary is a mess.", "A colleague keeps asking me about this."),
    "books": ("I finally have time to read.", "It's for my book club.", "I'm looking for a present for my aunt."),
    "cars": ("My old car has given up.", "I'm thinking of buying a car.", "We need something with four wheels again."),
    "cinema": ("We want to see a film.", "The children are bored.", "It's been ages since I went to the pictures."),
    "dictionary": ("I'm stuck on a crossword.", "It's for an essay.", "My pupils asked me about this."),
    "flights": ("I'm planning a trip.", "My boss wants me to travel.", "I hate airports, so let's be quick."),
    "hotels": ("We need somewhere to sleep.", "I'm sorting out a business trip.", "It's our anniversary."),
    "kitchens": ("I'm starving.", "Nobody here wants to cook.", "We're having people over."),
    "mailbox": ("I'm behind on my mail.", "My mail is piling up.", "I've lost track of who wrote what."),
    "maps": ("I'm settling a bet.", "It's for a geography lesson.", "I'm drawing a map."),
    "money": ("I'm doing my accounts.", "I want to get the numbers right.", "It's for a report."),
    "profile": ("I've just woken up on a train.", "I need this for a form.", "My memory isn't what it was."),
    "restaurants": ("We're going out with friends.", "I'm taking my parents out.", "I'm rather hungry."),
    "shopping": ("My wardrobe needs help.", "I'm buying presents.", "I've had my eye on this for a while."),
    "songs": (
        "I'm putting together some music for a party.",
        "This band is stuck in my head.",
        "I'm making a mix for a friend.",
    ),
    "stocks": ("I'm going through my portfolio.", "My broker is on holiday.", "It's for the quarterly report."),
    "translation": ("I'm learning languages.", "It's for a label.", "I'm writing a postcard."),
    "units": ("I'm following a foreign manual.", "My instruments use the other system.", "I keep mixing these up."),
    "weather": ("I'm deciding what to wear.", "We're planning a picnic.", "I'd like to go for a run."),
    "whereabouts": ("I've lost my bearings.", "I need this for a form.", "It's been a long day."),
}

MONTHS: Final = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
NAMES: Final[Mapping[str, str]] = {
    "USD": "US dollars",
    "EUR": "euros",
    "GBP": "British pounds",
    "JPY": "Japanese yen",
    "CHF": "Swiss francs",
    "CAD": "Canadian dollars",
    "AUD": "Australian dollars",
    "SEK": "Swedish kronor",
    "NOK": "Norwegian kroner",
    "DKK": "Danish kroner",
    "SGD": "Singapore dollars",
    "MXN": "Mexican pesos",
    "CZK": "Czech koruna",
    "BTC": "Bitcoin",
    "ETH": "Ethereum",
    "SOL": "Solana",
    "ADA": "Cardano",
    "DOT": "Polkadot",
    "LTC": "Litecoin",
    "XRP": "Ripple",
    "AVAX": "Avalanche",
    "celsius": "degrees Celsius",
    "fahrenheit": "degrees Fahrenheit",
    "kelvin": "kelvin",
}
_DAY: Final = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME: Final = re.compile("[0-9]{2}:[0-9]{2}")


def surfaces(value: Any) -> tuple[str, ...]:
    """The ways in which a value may be said, the most exact first. Every one of them determines the value."""
    if isinstance(value, bool):
        return ("yes",) if value else ("no",)
    if isinstance(value, int):
        return (str(value), f"{value:,}") if abs(value) >= 10_000 else (str(value),)
    if isinstance(value, float):
        return (str(int(value)) if value.is_integer() else str(value),)
    text = str(value)
    if _DAY.fullmatch(text):
        day = date.fromisoformat(text)
        month = MONTHS[day.month - 1]
        return (
            text,
            f"{day.day} {month} {day.year}",
            f"{month} {day.day}, {day.year}",
            f"the {_ordinal(day.day)} of {month} {day.year}",
        )
    if _TIME.fullmatch(text):
        hour, minute = int(text[:2]), text[3:]
        half = f"{hour % 12 or 12}{'' if minute == '00' else ':' + minute} {'am' if hour < 12 else 'pm'}"
        return (text, half)
    if text in NAMES:
        return (NAMES[text], text) if text.isupper() else (NAMES[text],)
    return (f"the {text}",) if text.startswith("United ") else (text,)


def _ordinal(number: int) -> str:
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


@frozen
class Form:
    """The core of a phrasing."""

    mood: Mood
    text: str


def forms(
    *, request: str | tuple[str, ...] = (), question: str | tuple[str, ...] = (), thing: str | tuple[str, ...] = ()
) -> tuple[Form, ...]:
    """Forms of each mood; several of one mood as a tuple."""
    given: tuple[tuple[Mood, str | tuple[str, ...]], ...] = (
        ("request", request),
        ("question", question),
        ("thing", thing),
    )
    return tuple(Form(mood, text) for mood, texts in given for text in ((texts,) if isinstance(texts, str) else texts))


def sentence(form: str, frame: str) -> str:
    """A form in a frame."""
    text = frame.replace("{F}", form[:1].upper() + form[1:]).replace("{f}", form)
    return text.replace("..", ".").replace("?.", "?").replace(".?", "?").replace("??", "?")
