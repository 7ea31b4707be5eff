"""Slots: how an argument is said behind a phrase: ``from account A00012``, ``with the subject "Hello"``.

Common names of parameters have words of their own; any other is said by its name. Every slot of a tool is told from
every other: where two would be said alike, only their names are left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from callwright_plugins.synthesis.language.values.hints import Hint, thing

#: Words around the value of a parameter, by the parameter's name; ``{}`` is the value.
_AROUND: Final = """
limit | at most {} | no more than {} | up to {}
cursor | going on from {} | continuing at {}
query | matching {} | that match {}
text | saying {} | with the text {}
body | saying {} | with the text {}
content | with {} in it | with the content {}
title | called {} | titled {} | with the title {}
name | named {} | called {} | with the name {}
nickname | nicknamed {} | to be called {}
subject | with the subject {} | about {}
topic | about {} | on the topic {}
description | described as {} | with the description {}
note notes | with the note {} | noting {}
comment | with the comment {} | commenting {}
reason | because of {} | for the reason {}
start | from {} | starting {} | beginning {}
end | until {} | ending {}
since | since {} | from {} on
until | until {} | up to {}
date day | on {} | for {} | dated {}
month | in {} | for the month {}
city | in {} | for {}
place location | in {} | at {}
origin | from {} | leaving from {}
destination | to {} | with the destination {}
source | from {} | with the source {}
target | to {} | with the target {}
to | to {} | addressed to {}
cc | with {} in copy | copying in {}
bcc | with {} in blind copy | secretly copying in {}
amount_cents amount | for {} | with an amount of {} | an amount of {}
price price_cents | at {} | for a price of {}
limit_price_cents | with a limit of {} | limited to {} each
max_price_cents max_total_cents maximum_price | for {} at most | costing no more than {}
min_price_cents | for {} at least | costing at least {}
quantity | {} of them | in a quantity of {} | {} pieces
shares | {} shares | for {} shares
seats | {} seats | for {} seats
guests | for {} guests | with {} guests
travelers passengers | for {} travellers | with {} people travelling
people | with {} | together with {}
invitees | inviting {} | with {} invited
days | for {} days | over {} days
nights | for {} nights | over {} nights
hours | for {} hours | over {} hours
minutes duration_minutes duration | for {} minutes | lasting {} minutes
times | {} times
count | {} in all | with a count of {}
percent | at {} percent | with {} percent
celsius temperature_c | at {} degrees | to {} degrees
speed_kmh | at {} km/h
status | with the status {} | whose status is {}
kind type | of the kind {} | of the type {}
category | in the category {} | of the category {}
sort order | sorted by {} | ordered by {}
mode | in the mode {} | with the mode {}
currency | in the currency {} | in {}
priority | with priority {} | with the priority {}
check_in arrival | from {} | arriving {}
check_out departure | to {} | leaving {}
time_zone | in the time zone {} | by the clock of {}
min_rating min_stars | with a rating of at least {} | rated {} or better
pin | and my PIN is {} | with the PIN {}
otp | and the one-time password is {} | with the one-time password {}
auth_token | with the token {} | using the token {}
passcode | with the passcode {} | using the passcode {}
user person owner author attendee assignee member | for {} | of {}
path | at {} | with the path {}
pattern | matching the pattern {}
old | from {} | in place of {}
new | to {} | now {}
word | for the word {} | of the word {}
side | on the side {}
symbol ticker | of {} | for {}
role | as {} | in the role {}
label | with the label {} | labelled {}
labels | with the labels {} | labelled {}
points | with {} points | for {} points
"""
#: What is said of a parameter that is true, and of one that is false.
_SWITCHES: Final = """
overwrite | overwriting what is there | without overwriting anything
recursive | with everything below | without what lies below
parents | with any missing parents | only if the parents are there
convert | converting the money if need be | without converting any money
allow_conflict | even if something else is on then | unless something else is on then
only_mine | mine alone | whoever's they are
include_archived | archived ones, too | without archived ones
include_cancelled | cancelled ones, too | without cancelled ones
unread_only | only the unread | read ones, too
in_stock_only | only what is in stock | in stock or not
whole_thread | with the whole thread | without the rest of the thread
reply_all | to everybody on it | to the sender alone
optional | as an optional guest | as somebody who has to be there
"""
#: Words that make what follows a parameter's value, so that they do not stand before its name.
_ENDINGS: Final = ("_ids", "_id", "_cents", "_kmh", "_km", "_minutes")


@frozen
class Slot:
    """What stands before and behind a value. ``constant`` (one value in a tuple) is said by the words alone."""

    argument: str
    before: str
    behind: str = ""
    constant: tuple[Any, ...] = ()


def _table(text: str) -> dict[str, list[str]]:
    rows = [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]
    return {name: row[1:] for row in rows for name in row[0].split()}


AROUND: Final[Mapping[str, list[str]]] = _table(_AROUND)
SWITCHES: Final[Mapping[str, list[str]]] = _table(_SWITCHES)


def title_of(name: str) -> str:
    """A parameter by its name, in words: ``from account`` for ``from_account_id``."""
    stem = name
    for ending in _ENDINGS:
        if stem.endswith(ending) and len(stem) > len(ending):
            stem = stem.removesuffix(ending) + ("s" if ending == "_ids" else "")
            break
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+|[^\W_]+", stem)
    return " ".join(words).lower() or stem


def slots_of(hints: Mapping[str, Hint]) -> dict[str, tuple[Slot, ...]]:
    """The slots of each parameter of a tool, the plain one by its name last. No two parameters share one."""
    titles = {name: title_of(name) for name in hints}
    for name in hints:
        if sum(titles[name] == title for title in titles.values()) > 1:
            titles[name] = " ".join(name.split("_")).lower()
    found: dict[str, list[Slot]] = {name: _slots(name, titles[name], hint) for name, hint in hints.items()}
    uses: dict[tuple[str, str], set[str]] = {}
    for name, slots in found.items():
        for slot in slots:
            uses.setdefault((slot.before, slot.behind if not slot.before else ""), set()).add(name)
    return {
        name: tuple(
            slot
            for slot in slots
            if len(uses[slot.before, slot.behind if not slot.before else ""]) == 1 or slot is slots[-1]
        )
        for name, slots in found.items()
    }


def _slots(name: str, title: str, hint: Hint) -> list[Slot]:
    texts: list[str] = list(AROUND.get(name, ()))
    slots = []
    if hint.takes("boolean") and hint.types is not None:
        yes, no = SWITCHES.get(name, (f"with {title} on", f"with {title} off"))
        slots += [Slot(name, yes, constant=(True,)), Slot(name, no, constant=(False,))]
    elif not texts and name.endswith(("_id", "_ids")):
        texts = _of_things(name, title)
    for text in texts:
        before, _, behind = text.partition("{}")
        slots.append(Slot(name, before.strip(), behind.strip()))
    if not texts:
        slots.append(Slot(name, f"with {title}"))
    return [*slots, Slot(name, f"with the {title}")]


def _of_things(name: str, title: str) -> list[str]:
    kind = thing(name.removesuffix("_ids").removesuffix("_id")).replace("_", " ").lower()
    if name.startswith("from_"):
        return [f"from {kind} {{}}", f"from the {kind} {{}}"]
    if name.startswith("to_"):
        return [f"to {kind} {{}}", f"to the {kind} {{}}"]
    return [f"for {title} {{}}", f"of {title} {{}}", f"for the {title} {{}}"]
