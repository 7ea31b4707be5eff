"""Inventing: values that no world holds, such as amounts, moments and titles. Word lists are our own and stable."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from random import Random
from typing import Any, Final

from callwright_plugins.synthesis.exploration.free import is_arbitrary
from callwright_plugins.synthesis.exploration.names import words_of

_TITLES: Final = (
    "Budget review", "Garden plans", "Spring cleaning", "Roof repair", "Summer trip", "Book club", "Team lunch",
    "New shelves", "Piano lessons", "Winter tyres", "Paper order", "Harbour walk", "Choir practice", "Bicycle service",
    "Kitchen paint", "Quarterly figures", "Welcome evening", "Photo album", "Recipe swap", "Chess night", "Fire drill",
    "Moving day", "Rainwater tank", "Museum visit", "Project Heron", "Project Alder", "Project Basalt", "Yearly report",
    "Library return", "Market stall", "Solar panels", "Hiking group", "Open house", "Dentist reminder", "Camping list",
    "Vegetable box", "Printer paper", "Guest room", "Bridge tournament", "Coffee supply",
)  # fmt: skip
_SENTENCES: Final = (
    "Please bring the blue folder.", "The meeting room is on the second floor.", "We start a little later this time.",
    "The keys are with the neighbour.", "I will call again in the evening.", "Both boxes have arrived.",
    "The colour should be a warm grey.", "Nothing is urgent here.", "Two of the chairs are broken.",
    "The invoice is attached to the parcel.", "Ring twice, the bell is quiet.", "It did not fit as described.",
    "The old one leaks at the handle.", "We agreed on this last week.", "The train leaves from platform four.",
    "Leave it with the shop next door.", "I have added the figures for March.", "The water is off until noon.",
    "Everybody should read the first chapter.", "The list is complete now.", "I would rather have the window seat.",
    "The plan was changed by the landlord.", "There is a spare key under the pot.", "This replaces the earlier note.",
    "Someone has to feed the cat.", "The fence needs a new coat of paint.", "Please keep the receipt.",
    "We are one person more than planned.", "The sound was too low in the back rows.",
    "The parcel was left in the rain.",
)  # fmt: skip
_WORDS: Final = (
    "heron", "alder", "basalt", "cedar", "dune", "ember", "fjord", "granite", "hazel", "ivory", "juniper", "kelp",
    "larch", "meadow", "nettle", "orchard", "pebble", "quartz", "rowan", "sorrel", "thistle", "umber", "violet",
    "willow", "yarrow", "zephyr", "bramble", "clover", "drift", "fennel",
)  # fmt: skip
_FIRST_NAMES: Final = (
    "Alma", "Bruno", "Clara", "Dimitri", "Edda", "Farid", "Gesa", "Hamza", "Ilse", "Jonas", "Katya", "Lorenzo", "Mina",
    "Noor", "Oskar", "Paloma", "Rafael", "Selma", "Tariq", "Ulla", "Viktor", "Wanda", "Yusuf", "Zelda",
)  # fmt: skip
_LAST_NAMES: Final = (
    "Abel", "Brandt", "Costa", "Dahl", "Engel", "Fuentes", "Gruber", "Hansen", "Ivanov", "Jensen", "Kaya", "Lindgren",
    "Moreau", "Novak", "Olsen", "Petrov", "Rossi", "Sato", "Tran", "Vogel", "Weber", "Ziegler",
)  # fmt: skip
_POSTS: Final = (
    "Head of Purchasing", "Office Manager", "Chief Engineer", "Sales Assistant", "Site Lead", "Bookkeeper", "Architect",
    "Head of Support", "Warehouse Lead", "Research Fellow", "Product Owner", "Legal Counsel",
)  # fmt: skip
#: What is named as people are.
_PEOPLE: Final = frozenset(
    {"contact", "customer", "guest", "invitee", "lead", "member", "passenger", "patient", "payee", "person",
     "traveler", "traveller", "user"}
)  # fmt: skip
_TITLED: Final = frozenset({"title", "subject", "topic", "name", "label", "nickname", "summary", "folder", "goal"})
_SAID: Final = frozenset(
    {"body", "text", "message", "comment", "note", "description", "reason", "memo", "content", "reply", "remark"}
)
_WORD: Final = re.compile(r"[A-Za-z]+(?:[-_][A-Za-z]+)*")


def is_worded(name: str, schema: Mapping[str, Any]) -> bool:
    """Whether a parameter takes what people put into words of their own, such as a title or a note."""
    words = words_of(name)
    if not words or words[-1] not in _SAID | _TITLED or {"format", "enum"} & schema.keys():
        return False
    return any(_fits(text, schema) for text in (_TITLES[0], _WORDS[0]))


def invented_text(tool: str, name: str, value: str, schema: Mapping[str, Any], rng: Random) -> str:
    """Another text for a tool's parameter of this name; the witness's own where only that is known to fit."""
    if not is_worded(name, schema):
        return value
    words = words_of(name)
    if words[-1] in _SAID:
        made = rng.choice(_SENTENCES)
    elif words in (("first", "name"), ("given", "name")):
        made = rng.choice(_FIRST_NAMES)
    elif words in (("last", "name"), ("family", "name")):
        made = rng.choice(_LAST_NAMES)
    elif words[-1] == "name" and _PEOPLE.intersection((*words, *words_of(tool))):
        made = f"{rng.choice(_FIRST_NAMES)} {rng.choice(_LAST_NAMES)}"
    elif words[-1] == "title" and _PEOPLE.intersection(words_of(tool)):
        made = rng.choice(_POSTS)
    elif _WORD.fullmatch(value) and value.islower():  # a name of letters: a user's, a file's
        made = f"{rng.choice(_WORDS)}-{rng.choice(_WORDS)}"
    elif is_arbitrary(name, value, schema) or not any(one in value for one in "/@."):
        made = rng.choice(_TITLES)
    else:
        return value
    if not _fits(made, schema):
        made = f"{rng.choice(_WORDS)}-{rng.choice(_WORDS)}"
    return made if _fits(made, schema) else value


def _fits(text: str, schema: Mapping[str, Any]) -> bool:
    syntax = schema.get("pattern")
    try:
        return not isinstance(syntax, str) or re.search(syntax, text) is not None
    except re.error:  # none of Python's
        return False


def invented_number(value: float, schema: Mapping[str, Any], rng: Random) -> float:
    """Another number of the same order of magnitude within the bounds of a schema."""
    low, high = schema.get("minimum"), schema.get("maximum")
    if isinstance(value, float):
        made: float = round(value * rng.uniform(0.6, 1.2), 2)
    elif 0 <= value <= 10:
        made = rng.randint(1, max(3, value))
    elif value > 10:
        step = 10 ** max(0, len(str(value)) - 2)
        made = max(step, int(value * rng.uniform(0.4, 1.15)) // step * step)
    else:
        made = value
    fits = (low is None or made >= low) and (high is None or made <= high)
    return made if fits else value


def moved_moment(value: str, then: datetime, now: datetime, days: int) -> str:
    """A moment or a day as far from now as it was then, and some days further from it."""
    form = "%Y-%m-%d" if "T" not in value else "%Y-%m-%dT%H:%M:%SZ" if value.count(":") == 2 else "%Y-%m-%dT%H:%MZ"
    form = form if value.endswith("Z") or "T" not in value else form.rstrip("Z")
    try:
        found = datetime.strptime(value, form).replace(tzinfo=then.tzinfo)
    except ValueError:
        return value
    shift = timedelta(days=days if found.date() >= then.date() else -days)
    try:
        return (found + (now - then) + shift).strftime(form)
    except OverflowError:
        return value
