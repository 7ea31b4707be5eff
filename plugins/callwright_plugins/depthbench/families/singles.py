"""One call: a family for every tool that literals alone can call."""
# ruff: noqa: E501  (a table: a family a line)

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from callwright_plugins.depthbench.families.family import Family, steps
from callwright_plugins.depthbench.families.phrasing import forms
from callwright_plugins.depthbench.tools import TOOLS

#: call | request | question | thing; the arguments of the call as in :func:`.family.steps`.
TABLE: Final = """
get_current_city | tell me which city I'm in right now | which city am I in at the moment | the name of the city I'm currently in
get_home_city | tell me which city I have down as home | what city do I live in, according to my records | the city that is on file as my home
get_todays_date | tell me today's date | what day is it today | today's date and weekday
get_tomorrows_date | tell me tomorrow's date | what date will it be tomorrow | the date and weekday of tomorrow
get_next_birthday | check when my next birthday is | on which date is my next birthday | the date and weekday of my next birthday
get_current_time | tell me what time it is | what's the time | the time of day here, now
get_preferred_currency | check which currency I prefer for prices | in which currency do I like to see prices | the currency that I have set as my preferred one
get_weather city date | check the weather in {city} for {date} | on {date}, what will the weather be like in {city} | the weather in {city} on {date}
get_air_quality city date | look up the air quality in {city} on {date} | how clean is the air on {date} in {city} | the air quality index for {date} in {city}
get_uv_index city date | find out the UV index for {date} in {city} | how strong is the sun's UV in {city} on {date} | the UV index in {city} for {date}
get_pollen_count city date | look up the pollen in {city} for {date} | how bad is the pollen going to be on {date} in {city} | the pollen count of {city} on {date}
get_rain_forecast city date | check how likely rain is in {city} on {date} | will it rain on {date} in {city}, and how much | the rain forecast for {city}, {date}
get_sun_times city date | look up sunrise and sunset in {city} on {date} | when does the sun rise and set on {date} in {city} | the times of sunrise and sunset for {date} in {city}
find_restaurants city | list all the restaurants in {city} | what restaurants are there in {city} | every restaurant in {city}
get_restaurant_contact restaurant | look up the phone number and address of {restaurant} | how do I reach the restaurant {restaurant}, by phone and in person | the contact details of {restaurant}, the restaurant
get_restaurant_specials restaurant date=soon | tell me what {restaurant} has on the board for {soon} | on {soon}, what are the specials at {restaurant} | the specials of the day at {restaurant} on {soon}
find_dealerships city | list the car dealerships in {city} | which car dealerships does {city} have | the names of the dealerships in {city}
get_car_history listing_id=listing | look into the history of the car with listing {listing} | what is known about the past of car {listing}, owners and accidents | the history of listing {listing}
quote_car_loan price=car_price deposit months | work out the loan for a car of {car_price} with {deposit} down over {months} months | with a deposit of {deposit}, what would I pay each month for a {car_price} car over {months} months | a loan quote over {months} months for a car that costs {car_price}, {deposit} paid up front
search_flights origin=city destination=city2 date=soon | search for flights from {city} to {city2} on {soon} | on {soon}, which flights go to {city2} from {city} | all flights that leave {city} for {city2} on {soon}
get_flight_status flight_number=flight date=soon | check how flight {flight} is doing on {soon} | on {soon}, is flight {flight} on time, and from which gate | the status of flight {flight} on {soon}
get_baggage_allowance flight_number=flight cabin | look up how much baggage I may take on {flight} in {cabin} | in {cabin}, what's the baggage allowance on flight {flight} | the {cabin} baggage allowance for flight {flight}
find_product_code item brand colour size | find the product code of the {brand} {item} in {colour}, size {size} | what's the code of the {colour} {item} by {brand} in size {size} | the product code for size {size} of the {colour} {brand} {item}
get_product_price sku | look up what {sku} costs | how much is the product {sku} | the price of {sku}
check_product_stock sku | check how many of {sku} are in stock | is {sku} in stock, and where | the stock level of {sku}
get_product_reviews sku | summarise what buyers say about {sku} | what are the reviews of {sku} like | the reviews of product {sku}
list_kitchens city | list the kitchens that deliver in {city} | which kitchens deliver food in {city} | the delivery kitchens of {city}
get_kitchen_menu kitchen | show me the menu of {kitchen} | what does {kitchen} have on its menu | the full menu of {kitchen}
estimate_food_delivery kitchen time=evening | estimate when food would arrive if I order from {kitchen} at {evening} | if I order at {evening}, when will {kitchen} deliver | the delivery estimate for an order from {kitchen} at {evening}
get_coin_price coin date | look up the price of {coin} on {date} | on {date}, what did one {coin} cost | the {coin} price on {date}
get_coin_market_cap coin date | look up the market cap of {coin} on {date} | on {date}, how big was the market capitalisation of {coin} | {coin}'s market capitalisation on {date}
convert_currency amount source=currency target=currency2 date | convert {amount} {currency} to {currency2} at the rate of {date} | on {date}, how much was {amount} {currency} in {currency2} | the value in {currency2} of {amount} {currency} on {date}
get_exchange_rate source=currency target=currency2 date | find the exchange rate from {currency} to {currency2} on {date} | on {date}, what was the rate from {currency} into {currency2} | the {date} exchange rate from {currency} to {currency2}
add_sales_tax amount city | add the sales tax of {city} to {amount} | in {city}, what does {amount} come to with sales tax | the total of {amount} with the sales tax charged in {city}
split_bill amount people | split a bill of {amount} between {people} people | how much does each of {people} people pay of {amount} | each person's share if {people} of us split {amount}
add_tip amount percent | add a tip of {percent}% to {amount} | what's {amount} with {percent} percent tip on top | the total for a bill of {amount} plus a tip of {percent}%
define_word word | define the word "{word}" | what does "{word}" mean | the definition of "{word}"
get_synonym word | give me a synonym of "{word}" | what's another word for "{word}" | a synonym for "{word}"
get_antonym word | give me the opposite of "{word}" | which word means the opposite of "{word}" | an antonym of "{word}"
get_word_origin word | find out where the word "{word}" comes from | what is the origin of the word "{word}" | the etymology of "{word}"
count_syllables word | count the syllables in "{word}" | how many syllables does "{word}" have | the number of syllables in the word "{word}"
get_example_sentence word | show me a sentence with the word "{word}" | how would one use "{word}" in a sentence | an example sentence with "{word}"
list_events date=soon | list what's in my calendar on {soon} | what do I have on {soon} | my calendar for {soon}
create_event title date=soon starts=time minutes=duration | put "{title}" in my calendar on {soon} at {time} for {duration} minutes | could I have {duration} minutes of "{title}" entered on {soon}, starting at {time} | a calendar entry "{title}", {duration} minutes from {time} on {soon}
find_free_slot date=soon minutes=duration | find me {duration} free minutes on {soon} | on {soon}, when do I first have {duration} minutes free | the first free slot of {duration} minutes on {soon}
shift_date date days | work out which date is {days} days after {date} | what's the date {days} days on from {date} | the date that falls {days} days after {date}
count_days_between start=date end=date2 | count the days from {date} to {date2} | how many days lie between {date} and {date2}, counting from the first | the number of days from {date} until {date2}
locate_phone | find out which city my phone is in | where's my phone right now, which city | the city where my phone is at the moment
locate_office | tell me in which city my office is | what city is my office in | the city of my office
look_up_birthplace | look up the city I was born in | in which city was I born | my place of birth as you have it
read_calendar_day | tell me what day it is now | what's the current day | the current day, with weekday
read_next_saturday | tell me the date of the coming Saturday | which date is next Saturday | the date of the Saturday that's coming
read_clock | read me the time on my phone | what does the clock on my phone say | the time on my phone
look_up_account_currency | check what currency my bank account is in | which currency does my account use | the currency of my bank account
look_up_reading_language | check which language I prefer to read in | what's my reading language | the language I like to read in
search_hotels place=city arrival=soon nights | search for hotels in {city} from {soon} for {nights} nights | which hotels in {city} have a room for {nights} nights from {soon} | hotels with a free room in {city}, arriving {soon}, {nights} nights
hotel_policies hotel | look up the house rules of the {hotel} | what are the check-in times and pet rules at the {hotel} | the check-in, pet and breakfast rules of the {hotel}
quote_hotel_transfer hotel passengers=people | get me the price of an airport transfer to the {hotel} for {people} people | for {people} of us, what does a ride from the airport to the {hotel} cost | an airport transfer quote for {people} passengers to the {hotel}
stock_quote ticker day=date | look up what {ticker} closed at on {date} | on {date}, what was the closing price of {ticker} | the share price of {ticker} on {date}
stock_volume ticker day=date | find out how many {ticker} shares were traded on {date} | on {date}, what was the trading volume of {ticker} | the trading volume of {ticker} for {date}
stock_dividend ticker year=dividend_year | look up the dividend {ticker} paid in {dividend_year} | in {dividend_year}, how much dividend did {ticker} pay | {ticker}'s dividend for {dividend_year}
market_index_level index day=date | check where the {index} closed on {date} | on {date}, at what level did the {index} close | the closing level of the {index} on {date}
value_position shares price=amount | work out what {shares} shares are worth at {amount} dollars each | at {amount} dollars a share, what are {shares} shares worth | the value of {shares} shares at a price of {amount}
percent_change before=amount after=amount2 | work out the percentage change from {amount} to {amount2} | by how many percent did something change that went from {amount} to {amount2} | the change in percent from {amount} to {amount2}
browse_books subject | list the books you have on {subject} | what books are there on {subject} | all the books about {subject}
book_summary isbn | summarise the book with ISBN {isbn} | what is the book {isbn} about | a summary of the book {isbn}
library_copies isbn place=city | check how many copies of {isbn} the libraries in {city} have | in {city}, do the libraries have the book {isbn}, and on which shelf | the library copies of book {isbn} in {city}
cinemas_in place=city | list the cinemas in {city} | which cinemas are there in {city} | the names of {city}'s cinemas
film_credits film | look up who made the film "{film}" | who directed "{film}", and who's the lead | the credits of the film "{film}"
songs_by artist | list all songs by {artist} | what songs has {artist} released | every song by {artist}
song_lyrics song | look up how the song "{song}" goes | what are the first line and refrain of "{song}" | the lyrics of "{song}"
convert_length value=measure source=length_unit target=length_unit2 | convert {measure} {length_unit} to {length_unit2} | how many {length_unit2} are {measure} {length_unit} | a length of {measure} {length_unit} in {length_unit2}
convert_mass value=measure source=mass_unit target=mass_unit2 | convert {measure} {mass_unit} into {mass_unit2} | what do {measure} {mass_unit} weigh in {mass_unit2} | the weight of {measure} {mass_unit} in {mass_unit2}
convert_volume value=measure source=volume_unit target=volume_unit2 | convert {measure} {volume_unit} to {volume_unit2} | how many {volume_unit2} do {measure} {volume_unit} make | {measure} {volume_unit} expressed in {volume_unit2}
convert_speed value=measure source=speed_unit target=speed_unit2 | convert {measure} {speed_unit} to {speed_unit2} | how fast is {measure} {speed_unit} in {speed_unit2} | a speed of {measure} {speed_unit} in {speed_unit2}
convert_area value=measure source=area_unit target=area_unit2 | convert {measure} {area_unit} to {area_unit2} | how many {area_unit2} is an area of {measure} {area_unit} | an area of {measure} {area_unit} given in {area_unit2}
convert_temperature value=measure source=temperature_unit target=temperature_unit2 | convert {measure} {temperature_unit} to {temperature_unit2} | what is {measure} {temperature_unit} in {temperature_unit2} | a temperature of {measure} {temperature_unit}, in {temperature_unit2}
open_mail_folder folder | show me what's in my {folder} mail folder | which messages are in my {folder} folder | everything in the {folder} folder of my mail
read_mail_message message_id=message | read me the message {message} | what does message {message} in my mail say | the text of my message {message}
reply_to_message message_id=message text=reply | answer message {message} with "{reply}" | could "{reply}" go out as my reply to message {message} | a reply to {message} that says "{reply}"
coordinates_of place=city | find the coordinates of {city} | where exactly is {city}, in latitude and longitude | {city}'s latitude and longitude
travel_time kilometres mode | work out how long {kilometres} km take by {mode} | by {mode}, how many minutes would {kilometres} kilometres take | the travel time for {kilometres} km by {mode}
timezone_of place=city | find out the UTC offset of {city} | how many hours from UTC are the clocks in {city} | {city}'s time zone, as hours from UTC
elevation_of place=city | look up how high {city} lies | how many metres above the sea is {city} | the elevation of {city}
population_of place=city | look up how many people live in {city} | what is the population of {city} | {city}'s population
clock_elsewhere clock=time source=city target=city2 | work out what time it is in {city2} when it's {time} in {city} | when clocks in {city} show {time}, what do they show in {city2} | the time in {city2} that corresponds to {time} in {city}
translate_to_french word=noun | translate "{noun}" into French | what's "{noun}" in French | the French word for "{noun}"
translate_to_german word=noun | translate "{noun}" into German | how do you say "{noun}" in German | the German for "{noun}"
translate_to_italian word=noun | translate "{noun}" into Italian | what do Italians call a "{noun}" | the Italian translation of "{noun}"
translate_to_spanish word=noun | translate "{noun}" into Spanish | how does one say "{noun}" in Spanish | the Spanish word for "{noun}"
translate_to_portuguese word=noun | translate "{noun}" into Portuguese | what's the Portuguese for "{noun}" | "{noun}" in Portuguese
""".strip()

#: Calls with nested arguments: call, nested arguments, request, question, thing.
NESTED: Final[tuple[tuple[str, Mapping[str, Any], str, str, str], ...]] = (
    (
        "reserve_table restaurant date=soon time=evening party_size=party",
        {"guest": {"name": "$person", "phone": "$phone"}},
        "reserve a table at {restaurant} on {soon} at {evening} for {party}, in the name of {person}, phone {phone}",
        "is it possible to get a table for {party} booked at {restaurant} for {person} ({phone}), {soon} at {evening}",
        "a reservation for {person}, reachable at {phone}: {party} people, {evening} on {soon}, at {restaurant}",
    ),
    (
        "list_cars_at_dealerships",
        {"dealerships": ["$dealership", "$dealership2"]},
        "list the cars for sale at {dealership} and at {dealership2}",
        "which cars do {dealership} and {dealership2} have for sale",
        "everything on sale at the dealerships {dealership} and {dealership2}",
    ),
    (
        "book_test_drive listing_id=listing date=soon",
        {"driver": {"name": "$person", "licence": "$licence"}},
        "book a test drive of {listing} on {soon} for {person}, licence {licence}",
        "could {person} (licence number {licence}) test-drive car {listing} on {soon}",
        "a test drive on {soon} with listing {listing}; the driver is {person}, licence {licence}",
    ),
    (
        "book_flight flight_number=flight date=soon cabin",
        {
            "passengers": [
                {
                    "name": {"first": "$first", "last": "$last"},
                    "passport": {"number": "$passport", "expires": "$expires"},
                }
            ],
            "contact": {"email": "$email"},
        },
        "book flight {flight} on {soon} in {cabin} for {first} {last}, passport {passport} valid until {expires}, contact {email}",
        "can {first} {last} be booked in {cabin} on {flight} for {soon}? The passport is {passport}, it expires on {expires}, and the confirmation should go to {email}, all right",
        "a {cabin} seat on {flight}, {soon}: passenger {first} {last}, passport number {passport} (expires {expires}), e-mail {email}",
    ),
    (
        "create_cart coupon",
        {"items": [{"sku": "$sku", "quantity": "$quantity"}, {"sku": "$sku2", "quantity": "$quantity2"}]},
        "put {quantity} of {sku} and {quantity2} of {sku2} in a cart with the coupon {coupon}",
        "with coupon {coupon}, what would a cart with {quantity} x {sku} and {quantity2} x {sku2} come to",
        "a new cart with {quantity2} pieces of {sku2} and {quantity} of {sku}; the coupon code is {coupon}",
    ),
    (
        "place_food_order kitchen",
        {
            "lines": [{"dish": "$dish", "quantity": "$quantity"}],
            "delivery": {"name": "$person", "street": "$street", "phone": "$phone"},
        },
        "order {quantity} x {dish} from {kitchen} for {person}, {street}, phone {phone}",
        "could {kitchen} send {quantity} portions of {dish} to {person} at {street}? The number there is {phone}, okay",
        "{quantity} portions of the {dish} from {kitchen}, delivered to {street}, for {person} (phone {phone})",
    ),
    (
        "book_hotel_room hotel arrival=soon nights",
        {"party": {"adults": "$adults"}, "billing": {"name": "$person", "email": "$email", "card_last_four": "$card"}},
        "book a room at the {hotel} from {soon} for {nights} nights, adults: {adults}, billed to {person}, {email}, card ending in {card}",
        "can I have a room for {nights} nights from {soon} at the {hotel} (number of adults: {adults}), paid by {person}, {email}, with the card ending {card}",
        "a {nights}-night stay at the {hotel}, arriving {soon}, adults: {adults}; bill {person} at {email}, card ending in {card}",
    ),
    (
        "portfolio_total",
        {"holdings": [{"shares": "$shares", "price": "$amount"}, {"shares": "$shares2", "price": "$amount2"}]},
        "add up a portfolio of {shares} shares at {amount} dollars and {shares2} shares at {amount2} dollars",
        "what's the portfolio worth if I hold {shares} shares at {amount} each and {shares2} at {amount2} each",
        "the total of two holdings: {shares2} shares at {amount2} and {shares} shares at {amount}",
    ),
    (
        "reserve_library_book isbn place=city pick_up=soon",
        {"reader": {"name": "$person", "card_number": "$library_card"}},
        "reserve {isbn} at the library in {city} for {person}, card {library_card}, to be picked up on {soon}",
        "could {person} (library card {library_card}) pick up book {isbn} in {city} on {soon}",
        "a reservation of book {isbn} in {city} for pick-up on {soon}; reader {person}, card number {library_card}",
    ),
    (
        "showings_at day=soon",
        {"cinemas": ["$cinema", "$cinema2"]},
        "list what's on at the {cinema} and the {cinema2} on {soon}",
        "on {soon}, which films are showing at the {cinema} and the {cinema2}",
        "the programme of the cinemas {cinema} and {cinema2} for {soon}",
    ),
    (
        "reserve_cinema_seats showing_id=showing seats",
        {"viewer": {"name": "$person", "email": "$email"}},
        "reserve {seats} seats for showing {showing} under {person}, {email}",
        "are {seats} seats available for the showing {showing}? If so, book them for {person}, {email}, will you",
        "{seats} cinema seats for {showing}, in the name of {person}, confirmation to {email}",
    ),
    (
        "send_mail_message subject=subject_line body=mail_body priority",
        {"recipients": ["$email"]},
        'send {email} a mail with the subject "{subject_line}" that says "{mail_body}", priority {priority}',
        'could a message go to {email} with {priority} priority, subject "{subject_line}" and text "{mail_body}"',
        'a {priority} priority mail to {email}: subject "{subject_line}", text "{mail_body}"',
    ),
    (
        "distance_between",
        {
            "start": {"latitude": "$latitude", "longitude": "$longitude"},
            "end": {"latitude": "$latitude2", "longitude": "$longitude2"},
        },
        "measure the distance from latitude {latitude}, longitude {longitude} to latitude {latitude2}, longitude {longitude2}",
        "how far is it from the point at latitude {latitude} and longitude {longitude} to the one at {latitude2}, {longitude2}",
        "the distance between two points, the first at ({latitude}, {longitude}), the second at ({latitude2}, {longitude2})",
    ),
    (
        "bearing_between",
        {
            "start": {"latitude": "$latitude", "longitude": "$longitude"},
            "end": {"latitude": "$latitude2", "longitude": "$longitude2"},
        },
        "work out the bearing from latitude {latitude}, longitude {longitude} to latitude {latitude2}, longitude {longitude2}",
        "in which direction does the point at {latitude2}, {longitude2} lie from latitude {latitude}, longitude {longitude}",
        "the direction in which to set out from ({latitude}, {longitude}) for ({latitude2}, {longitude2})",
    ),
)


@cache
def singles() -> tuple[Family, ...]:
    """The families, by tool."""
    made = []
    for line in TABLE.splitlines():
        call, request, question, thing = (part.strip() for part in line.split("|"))
        made.append(_single(call, {}, request, question, thing))
    made.extend(_single(*entry) for entry in NESTED)
    return tuple(made)


def _single(call: str, nested: Mapping[str, Any], request: str, question: str, thing: str) -> Family:
    plan = steps((call, nested))
    tool = plan[0].tool
    return Family(
        name=f"single/{tool}",
        domain=TOOLS[tool].domain,
        steps=plan,
        forms=forms(request=request, question=question, thing=thing),
    )
