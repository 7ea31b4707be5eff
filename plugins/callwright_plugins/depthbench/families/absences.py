"""Depth 0: nothing is to be called, because no offered tool can answer, one that is needed is missing, or a value is."""
# ruff: noqa: E501  (tables: a family a line)

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from attrs import evolve

from callwright_plugins.depthbench.families.compositions import compositions
from callwright_plugins.depthbench.families.family import Absence, Family, steps
from callwright_plugins.depthbench.families.phrasing import forms
from callwright_plugins.depthbench.families.pipelines import pipelines
from callwright_plugins.depthbench.families.singles import singles
from callwright_plugins.depthbench.tools import TOOLS

#: Tool -> others that could stand in for it; none of them is offered where it is withheld.
_CITIES: Final = ("get_current_city", "get_home_city")
_DAYS: Final = ("get_todays_date", "get_tomorrows_date", "get_next_birthday", "shift_date")
_PLACES: Final = ("locate_phone", "locate_office", "look_up_birthplace")
_CALENDAR: Final = ("read_calendar_day", "read_next_saturday")
SUBSTITUTES: Final[Mapping[str, tuple[str, ...]]] = {
    "get_todays_date": ("get_tomorrows_date", "count_days_between"),
    "get_tomorrows_date": ("get_todays_date",),
    "get_exchange_rate": ("convert_currency",),
    "convert_currency": ("get_exchange_rate",),
    "find_free_slot": ("list_events",),
    "list_events": ("find_free_slot",),
    "read_next_saturday": ("read_calendar_day",),
    "read_calendar_day": ("read_next_saturday",),
    "clock_elsewhere": ("timezone_of",),
    "timezone_of": ("clock_elsewhere",),
    "get_product_price": ("create_cart",),
    "check_product_stock": ("create_cart",),
    "stock_quote": ("value_position",),
    "value_position": ("portfolio_total",),
    "portfolio_total": ("value_position",),
    "get_car_history": (),
    "split_bill": (),
    "filter_restaurants_open_at": (),
}

#: Split, domain of the small talk, slots, request | question | thing: what no tool of this world does.
OFF_TOPIC: Final = """
train; restaurants; city | write a short poem about {city} | could you make up a limerick about {city} | a rhyming verse about {city}
train; weather; | tell me why the sky is blue | why is the sky blue | an explanation of why the sky is blue
train; kitchens; people | write down a recipe for lasagne for {people} people | how do I cook lasagne for {people} from scratch | a lasagne recipe for {people} people
train; agenda; soon person | find a plumber for {soon}, ask for {person} | can a plumber come to see {person} on {soon} | a plumber's visit for {person} on {soon}
train; cars; make | explain how to change the brake pads of a {make} | how does one change the brake pads of a {make} | instructions for changing the brake pads on a {make}
train; shopping; colour | design a {colour} logo for my shop | what could a {colour} logo for my shop look like | a {colour} logo for my shop
train; dictionary; word | set the word "{word}" to music | how would the word "{word}" sound as a jingle | a jingle with the word "{word}"
validation; books; subject | write me an essay on {subject} | can you write an essay about {subject} | a two-page essay on {subject}
validation; maps; city | report the traffic jams in {city} right now | how bad is the traffic in {city} at the moment | the current traffic situation in {city}
validation; songs; mood | compose a {mood} melody for the flute | could you compose something {mood} for the flute | a {mood} tune for the flute
validation; stocks; | pick the winning lottery numbers | which lottery numbers will win | next week's lottery numbers
validation; profile; person | give {person} advice about a sore knee | what should {person} do about a sore knee | medical advice on a sore knee for {person}
validation; translation; noun | draw a picture to go with the word "{noun}" | could you paint something for the word "{noun}" | a drawing that goes with the word "{noun}"
validation; hotels; people | suggest a board game for {people} players | which board game is good for {people} players | a board game for {people} players
""".strip()

#: The call that a value is missing for | tools that would supply it | request | question | thing.
VAGUE: Final = """
get_weather city date | get_current_city get_home_city | check the weather for {date} | what's the weather going to be like on {date} | the weather forecast for {date}
convert_currency amount source=currency target=currency2 date | get_preferred_currency | convert {amount} {currency} into another currency at the rate of {date} | on {date}, how much was {amount} {currency} in foreign money | {amount} {currency} in some other currency, with the rate of {date}
search_flights origin=city destination=city2 date=soon | get_current_city get_home_city | search for flights to {city2} on {soon} | which flights go to {city2} on {soon} | flights to {city2} on {soon}
quote_car_loan price=car_price deposit months | | work out the monthly payment for a car of {car_price} with {deposit} down | what would I pay each month for a {car_price} car after putting {deposit} down | a loan quote for a {car_price} car, {deposit} paid up front
reserve_table restaurant date=soon time=evening party_size=party guest={"name":"$person","phone":"$phone"} | get_current_time | reserve a table for {party} at {restaurant} on {soon} for {person}, phone {phone} | could {person} ({phone}) have a table for {party} at {restaurant} on {soon} | a table at {restaurant} on {soon}, {party} people, name {person}, phone {phone}
add_tip amount percent | | add a tip to {amount} | what does {amount} come to with a tip | the total of {amount} plus a tip
split_bill amount people | | split a bill of {amount} evenly between all of us | what does each of us pay of {amount} | everyone's share of {amount}
find_product_code item brand colour size | | find the product code of the {brand} {item} in {colour} | what's the code of the {colour} {item} by {brand} | the product code of the {colour} {brand} {item}
shift_date date days | | work out the date some days after {date} | what date is it a couple of days after {date} | the date a few days on from {date}
get_flight_status flight_number=flight date=soon | | check how my flight is doing on {soon} | is my flight on {soon} on time | the status of my flight on {soon}
search_hotels place=city arrival=soon nights | locate_phone locate_office look_up_birthplace | search for hotels from {soon} for {nights} nights | which hotels have a room for {nights} nights from {soon} | a list of hotels for {nights} nights, arriving {soon}
stock_quote ticker day=date | | look up the closing price of that share on {date} | what did the share close at on {date} | the share price of {date}
convert_length value=measure source=length_unit target=length_unit2 | | convert {measure} {length_unit} into the other unit | what are {measure} {length_unit} in a different unit | {measure} {length_unit} in other units
travel_time kilometres mode | | work out how long {kilometres} km take | how many minutes do {kilometres} kilometres take | the travel time for {kilometres} km
percent_change before=amount after=amount2 | | work out by how many percent it changed from {amount} | by what percentage has it changed since it was {amount} | the change in percent from a value of {amount}
reserve_cinema_seats showing_id=showing seats viewer={"name":"$person","email":"$email"} | | reserve {seats} cinema seats for {person}, {email} | could {person} ({email}) have {seats} seats at the pictures | {seats} seats at the cinema under {person}, {email}
reply_to_message message_id=message text=reply | | reply to message {message} | could you answer message {message} | a reply to message {message}
clock_elsewhere clock=time source=city target=city2 | locate_phone locate_office look_up_birthplace | work out what time it is over there when it's {time} in {city} | when it's {time} in {city}, what time is it at the other end | the time elsewhere at {time} in {city}
library_copies isbn place=city | locate_phone locate_office look_up_birthplace | check if the library has the book {isbn} | does the library have a copy of {isbn} | the library copies of book {isbn}
song_lyrics song | | look up the lyrics of that song | how does that song go that everybody hums | the first line and the refrain of that song
""".strip()


def _off_topic() -> list[Family]:
    made = []
    for number, line in enumerate(OFF_TOPIC.splitlines()):
        head, request, question, thing = (part.strip() for part in line.split("|"))
        split, domain, slots = (part.strip() for part in head.split(";"))
        made.append(
            Family(
                f"off-topic/{number}", domain, (), forms(request=request, question=question, thing=thing),
                kind="no tool", home=split, spoken=tuple(slots.split()),
            )
        )  # fmt: skip
    return made


def _vague() -> list[Family]:
    made = []
    for line in VAGUE.splitlines():
        call, withheld, request, question, thing = (part.strip() for part in line.split("|"))
        plan = steps(call)
        made.append(
            Family(
                name=f"vague/{plan[0].tool}",
                domain=TOOLS[plan[0].tool].domain,
                steps=plan,
                forms=forms(request=request, question=question, thing=thing),
                kind="missing value",
                withheld=tuple(withheld.split()),
            )
        )
    return made


def _without(family: Family, tool: str, prefix: str) -> Family:
    kind: Absence = "no tool" if prefix == "unanswerable" else "missing tool"
    return evolve(
        family, name=f"{prefix}/{tool}/{family.name}", kind=kind, withheld=(tool, *SUBSTITUTES.get(tool, ()))
    )  # fmt: skip


#: Chains that are short of a tool: one after the first call, so that a part of the way could be gone.
_NEEDED: Final = re.compile(
    "^(get|find|list|search|convert|filter|pick|choose|keep|quote|checkout|showings|distance|coordinates)"
)


@cache
def absences() -> tuple[Family, ...]:
    """Families of all three kinds and both splits."""
    made = _off_topic() + _vague()
    made += [_without(family, family.steps[0].tool, "unanswerable") for family in singles()]
    for family in (*compositions(), *pipelines()):
        if 2 <= len(family.steps) <= 4 and family.returns == "one" and not family.conjunctive:
            tools = [step.tool for step in family.steps]
            tool = tools[sum(map(ord, family.name)) % len(tools)]
            if _NEEDED.match(tool) and tools.count(tool) == 1:
                made.append(_without(family, tool, "short"))
    return tuple(made)
