"""Slots: how an argument is said behind a phrase: ``from account A00012``, ``with the subject "Hello"``.

Common names of parameters have words of their own; any other is said by its name. Every slot of a tool is told from
every other: where two would be said alike, only their names are left.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from callwright_plugins.synthesis.language.values.hints import Hint, snake, thing
from callwright_plugins.synthesis.language.values.titles import title_of

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
accepted_fee_cents | accepting a fee of {} | for a fee of {}
access_level | that I have {} access to | with {} access
address | at the address {} | for the address {}
alarm_code | with the alarm code {} | using the alarm code {}
archive | from the archive {} | in the archive {}
avoid | avoiding {} | without {}
base | from {} | of {}
quote | to {} | in {}
birth_date | born on {} | with the date of birth {}
buy_now_cents | with a buy-now price of {} | for {} to whoever buys it now
cabin | in the cabin {} | in {} class
capacity | for up to {} people | with room for {} people
carrier | by {} | with the carrier {}
change | by {} | with a change of {}
close_date | closing on {} | to be closed on {}
code | with the code {} | using the code {}
cohosts | with {} as co-hosts | co-hosted by {}
color | in {} | to {}
comments_from | with comments from {} | open to comments from {}
company | at the company {} | of the company {}
condition | in {} condition | whose condition is {}
courier_stars | {} stars for the courier | with {} stars for the courier
food_stars | {} stars for the food | with {} stars for the food
cuisine | that serve {} food | with {} food
customer | for {} | for the customer {}
cvv | and the security code is {} | with the security code {}
deal_title | with a deal called {} | with the deal {}
depart_at | leaving {} | departing {}
depth | {} levels deep | with a depth of {}
destinations | to {} | with the destinations {}
origins | from {} | with the origins {}
due_in_days | due in {} days | to be paid within {} days
duration_hours | for {} hours | lasting {} hours
email | with the email address {} | whose email address is {}
emoji | with {} | using {}
estimate_minutes | estimated at {} minutes | with an estimate of {} minutes
every_minutes | every {} minutes | in steps of {} minutes
every | every {} | repeating every {}
fare_class | in the fare class {} | at the fare {}
first_day | from {} on | beginning on {}
first_name | with the first name {} | whose first name is {}
last_name | with the last name {} | whose last name is {}
folder | in the folder {} | of the folder {}
frequency | repeating {} | recurring {}
from_day | from {} on | starting on {}
fuel_type | with {} | of the fuel {}
goal | with the goal {} | whose goal is {}
group | in the group {} | of the group {}
group_by | grouped by {} | by {}
iban | with the IBAN {} | whose IBAN is {}
level | to level {} | at level {}
litres | with {} litres | for {} litres
lock_code | with the lock code {} | using the lock code {}
lost_reason | lost because of {} | for the reason {}
max_fee_cents | with a fee of at most {} | that deliver for {} at most
max_stars | with at most {} stars | rated {} or worse
memo | with the memo {} | noting {}
modified_since | changed since {} | modified since {}
most | at most {} of them | no more than {} of them
new_start | to {} | now starting {}
new_end | until {} | now ending {}
next_step | with {} as the next step | the next step being {}
occurrence_start | the one on {} | the occurrence of {}
passport_expires | whose passport expires on {} | with a passport that is good until {}
passport_no | with the passport number {} | whose passport has the number {}
password | with the password {} | using the password {}
pay_at | due {} | to be paid {}
starts_at | starting {} | that starts {}
payment | paying by {} | paid with {}
phone | with the phone number {} | whose phone number is {}
points_to_use | using {} points | for {} of my points
position | to {} percent | at the position {}
project | in the project {} | of the project {}
quoted_price_cents | at the quoted price of {} | quoted at {}
radius_m | within {} metres | no more than {} metres away
rating | with a rating of {} | rated {}
received_quantity | {} of which arrived | of which {} arrived
repeat | repeated {} | repeating {}
reserve_cents | with a reserve of {} | not below {}
resolution | with the resolution {} | resolved as {}
response | with the answer {} | answering {}
sector | in the sector {} | of the sector {}
severity | of the severity {} | with the severity {}
shipping_method | by {} shipping | with {} shipping
show_as | shown as {} | that shows me as {}
speed | to {} | at the speed {}
start_price_cents | starting at {} | with a starting price of {}
started | begun {} | started {}
summary | with the summary {} | summed up as {}
temperature_k | at {} kelvin | with {} kelvin
time | at {} | for {}
url | at {} | with the address {}
weekdays | on {} | each {}
within_km | within {} km | no more than {} km away
zone | in the zone {} | for the zone {}
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
read | as read | as unread
engaged | to on | to off
in_stock_only | only what is in stock | in stock or not
whole_thread | with the whole thread | without the rest of the thread
reply_all | to everybody on it | to the sender alone
optional | as an optional guest | as somebody who has to be there
active_only | only active ones | active or not
available_only | only what is available | available or not
open_now | open right now | open or closed
upcoming_only | only upcoming ones | past ones, too
valid_now | valid right now | valid or not
vegetarian_only | only what is vegetarian | vegetarian or not
verified_only | only verified ones | verified or not
pinned_only | only pinned ones | pinned or not
online | only those online | only those offline
waiting_room | with a waiting room | without a waiting room
share_recordings | with its recordings shared | without sharing its recordings
private | as a private one | as a public one
rollover | with what is left rolling over | without rolling over what is left
hard_cap | with a hard cap | without a hard cap
mentions_me | that mention me | whoever they mention
also_in_channel | in the channel, too | in the thread alone
working_hours_only | in working hours only | at any hour
ignore_case | in capitals or not | minding capitals
follow_links | following links | without following links
directories_only | only folders | files, too
include_attachments | with the attachments | without the attachments
create_deal | with a deal made of it | without a deal
replace | in place of the one that is open | unless one is open
"""
#: What is counted behind a number.
_COUNTED: Final = frozenset(
    "days degrees guests hours levels litres metres minutes nights people pieces points seats shares stars times "
    "travellers".split()
)


@frozen
class Slot:
    """What stands before and behind a value. ``constant`` (one value in a tuple) is said by the words alone; with
    ``thing`` the value is an id that is said as the thing itself, with ``member`` it is a member of a result, which is
    no name: "in its folder", not "in the folder its folder". ``many`` is whether it speaks of one or of more:
    "1 night", "3 nights"; ``None`` for what fits any value.
    """

    argument: str
    before: str
    behind: str = ""
    constant: tuple[Any, ...] = ()
    thing: bool = False
    member: bool = False
    many: bool | None = None


def _table(text: str) -> dict[str, list[str]]:
    rows = [[cell.strip() for cell in line.split("|")] for line in text.strip().splitlines()]
    return {name: row[1:] for row in rows for name in row[0].split()}


AROUND: Final[Mapping[str, list[str]]] = _table(_AROUND)
SWITCHES: Final[Mapping[str, list[str]]] = _table(_SWITCHES)


def slots_of(hints: Mapping[str, Hint]) -> dict[str, tuple[Slot, ...]]:
    """The slots of each parameter of a tool, the plain one by its name last. No two parameters share one."""
    titles = {name: title_of(name, hint) for name, hint in hints.items()}
    for name in hints:
        if sum(titles[name] == title for title in titles.values()) > 1:
            titles[name] = " ".join(snake(name).split("_"))
    found: dict[str, list[Slot]] = {name: _slots(name, titles[name], hint) for name, hint in hints.items()}
    uses: dict[tuple[str, str, str], set[str]] = {}
    for name, slots in found.items():
        for slot in slots:
            uses.setdefault(_words(slot, hints), set()).add(name)
    return {
        name: tuple(slot for slot in slots if len(uses[_words(slot, hints)]) == 1 or slot is slots[-1])
        for name, slots in found.items()
    }


def _words(slot: Slot, hints: Mapping[str, Hint]) -> tuple[str, str, str]:
    if slot.member:
        return slot.before, "", ""
    # "for that account" and "for that card" are told apart by what they are.
    return slot.before, "" if slot.before else slot.behind, hints[slot.argument].kind if slot.thing else ""


def _slots(name: str, title: str, hint: Hint) -> list[Slot]:
    words = snake(name)
    texts: list[str] = list(AROUND.get(words, ()))
    if name == "to" and hint.items is None:  # what something goes to is no address
        texts = texts[:1]
    slots = []
    if hint.takes("boolean") and hint.types is not None:
        yes, no = SWITCHES.get(words, (f"with {title} on", f"with {title} off"))
        slots += [Slot(name, yes, constant=(True,)), Slot(name, no, constant=(False,))]
    elif not texts and (words.endswith(("_id", "_ids")) or _is_thing(hint)):
        texts = _of_things(words, title)
    for text in texts:
        before, _, behind = (part.strip() for part in text.partition("{}"))
        single = _singular(behind)
        slots.append(Slot(name, before, behind, many=True if single else None))
        if (bare := _without_noun(before, title)) and not behind:
            slots.append(Slot(name, bare, member=True))
        if single:
            slots.append(Slot(name, before, single, many=False))
    if not texts:
        slots.append(Slot(name, f"with {title}"))
    if hint.kind and words.endswith(("_id", "_key")):
        sides = ("from",) if words.startswith("from_") else ("to",) if words.startswith("to_") else ("for", "of")
        slots += [Slot(name, side, thing=True) for side in sides]
    return [*slots, Slot(name, f"with the {title}")]


def _without_noun(before: str, title: str) -> str:
    """``in``, of ``in the folder``; empty where no noun stands there."""
    for noun in (f" the {title}", f" {title}"):
        if before.endswith(noun):
            return before.removesuffix(noun)
    return ""


def _is_thing(hint: Hint) -> bool:
    """Whether a parameter takes the id of one thing."""
    return bool(hint.kind) and not hint.options and hint.items is None and hint.takes("string", "integer")


def _singular(behind: str) -> str:
    """The words behind a number for one alone; empty where they are the same."""
    first, space, rest = behind.partition(" ")
    if first not in _COUNTED:
        return ""
    return f"{'person' if first == 'people' else first.removesuffix('s')}{space}{rest}"


def _of_things(name: str, title: str) -> list[str]:
    kind = thing(name.removesuffix("_ids").removesuffix("_id")).replace("_", " ").lower()
    if name.startswith("from_"):
        return [f"from {kind} {{}}", f"from the {kind} {{}}"]
    if name.startswith("to_"):
        return [f"to {kind} {{}}", f"to the {kind} {{}}"]
    return [f"for {title} {{}}", f"of {title} {{}}", f"for the {title} {{}}"]
