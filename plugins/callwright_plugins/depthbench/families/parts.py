"""The parts of pipelines by domain: where its table comes from, how it is narrowed, what is chosen, what follows.

Each part says itself, so that :mod:`.pipelines` can put any of them together.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import frozen

Text = str


@frozen
class Source:
    """Where the table comes from: its place in a sentence, and the calls, the last of which returns the table."""

    where: Text
    calls: tuple[Text, ...]


@frozen
class Condition:
    """A filter: how it is said of several things, the call, and a call before it that gives it its value."""

    said: Text
    call: Text
    before: Text = ""


@frozen
class Choice:
    """One row of the table: the superlative, and the call."""

    said: Text
    call: Text


@frozen
class Sequel:
    """Something about the choice (``{it}``), as a request and as a thing, and the call; ``@c`` is the choice."""

    request: Text
    thing: Text
    call: Text
    nested: Any = None


@frozen
class DomainParts:
    """The parts of a domain; ``whole`` is a sequel of the table itself (``@t``)."""

    domain: str
    things: Text
    sources: tuple[Source, ...]
    conditions: tuple[Condition, ...]
    choices: tuple[Choice, ...]
    sequels: tuple[Sequel, ...] = ()
    whole: tuple[Sequel, ...] = ()


PARTS: Final = (
    DomainParts(
        "restaurants",
        "restaurants",
        (
            Source("in {city}", ("find_restaurants city",)),
            Source("in the city I'm in right now", ("get_current_city", "find_restaurants city=@0")),
            Source("in the city I live in", ("get_home_city", "find_restaurants city=@0")),
        ),
        (
            Condition("serve {cuisine} food", "filter_restaurants_by_cuisine restaurants=@t cuisine"),
            Condition(
                "are rated {rating} or better", "filter_restaurants_by_rating restaurants=@t minimum_rating=rating"
            ),
            Condition("cost at most {bill} a head", "filter_restaurants_by_budget restaurants=@t maximum_bill=bill"),
            Condition("are open at {time}", "filter_restaurants_open_at restaurants=@t time"),
            Condition(
                "are open at this very moment", "filter_restaurants_open_at restaurants=@t time=@b", "get_current_time"
            ),
        ),
        (
            Choice("best rated", "pick_best_rated_restaurant restaurants=@t"),
            Choice("cheapest", "pick_cheapest_restaurant restaurants=@t"),
        ),
        (
            Sequel(
                "give me the phone number and address of {it}",
                "the phone number and address of {it}",
                "get_restaurant_contact restaurant=@c",
            ),
            Sequel(
                "tell me the specials on {soon} of {it}",
                "the specials on {soon} of {it}",
                "get_restaurant_specials restaurant=@c date=soon",
            ),
        ),
    ),
    DomainParts(
        "cars",
        "cars",
        (
            Source("at {dealership}", ('list_cars_at_dealerships dealerships=["$dealership"]',)),
            Source(
                "at the dealerships of {city}", ("find_dealerships city", "list_cars_at_dealerships dealerships=@0")
            ),
            Source(
                "at the dealerships of the city I'm in now",
                ("get_current_city", "find_dealerships city=@0", "list_cars_at_dealerships dealerships=@1"),
            ),
            Source(
                "at the dealerships of my home city",
                ("get_home_city", "find_dealerships city=@0", "list_cars_at_dealerships dealerships=@1"),
            ),
        ),
        (
            Condition("are made by {make}", "filter_cars_by_make cars=@t make"),
            Condition("have the body style {body}", "filter_cars_by_body cars=@t body"),
            Condition("cost no more than {car_price}", "filter_cars_by_price cars=@t maximum_price=car_price"),
            Condition("have run at most {mileage} km", "filter_cars_by_mileage cars=@t maximum_km=mileage"),
            Condition("were built in {year} or later", "filter_cars_by_year cars=@t minimum_year=year"),
        ),
        (Choice("cheapest", "pick_cheapest_car cars=@t"), Choice("newest", "pick_newest_car cars=@t")),
        (
            Sequel("look up the history of {it}", "the history of {it}", "get_car_history listing_id=@c"),
            Sequel(
                "work out a loan for {it} with {deposit} down over {months} months",
                "a loan quote over {months} months, {deposit} paid up front, for {it}",
                "quote_car_loan price=@c.price deposit months",
            ),
            Sequel(
                "book a test drive on {soon} for {person}, licence {licence}, with {it}",
                "a test drive for {person} (licence {licence}) on {soon} with {it}",
                "book_test_drive listing_id=@c date=soon",
                {"driver": {"name": "$person", "licence": "$licence"}},
            ),
        ),
    ),
    DomainParts(
        "flights",
        "flights",
        (
            Source("from {city} to {city2} on {soon}", ("search_flights origin=city destination=city2 date=soon",)),
            Source(
                "from the city I'm in to {city} on {soon}",
                ("get_current_city", "search_flights origin=@0 destination=city date=soon"),
            ),
            Source(
                "from {city} to the city I live in on {soon}",
                ("get_home_city", "search_flights origin=city destination=@0 date=soon"),
            ),
            Source(
                "from {city} to {city2} tomorrow",
                ("get_tomorrows_date", "search_flights origin=city destination=city2 date=@0"),
            ),
            Source(
                "from {city} to {city2} on my next birthday",
                ("get_next_birthday", "search_flights origin=city destination=city2 date=@0"),
            ),
            Source(
                "from the city I'm in to {city} tomorrow",
                ("get_current_city", "get_tomorrows_date", "search_flights origin=@0 destination=city date=@1"),
            ),
            Source(
                "from the city I live in to {city} on my next birthday",
                ("get_home_city", "get_next_birthday", "search_flights origin=@0 destination=city date=@1"),
            ),
            Source(
                "from the city I'm in to the city I live in tomorrow",
                (
                    "get_current_city",
                    "get_home_city",
                    "get_tomorrows_date",
                    "search_flights origin=@0 destination=@1 date=@2",
                ),
            ),
        ),
        (
            Condition("are operated by {airline}", "filter_flights_by_airline flights=@t airline"),
            Condition("cost {fare} or less", "filter_flights_by_fare flights=@t maximum_fare=fare"),
            Condition("need no more stops than {stops}", "filter_flights_by_stops flights=@t maximum_stops=stops"),
            Condition("leave at {time} or later", "filter_flights_departing_after flights=@t time"),
            Condition(
                "leave no earlier in the day than it is now",
                "filter_flights_departing_after flights=@t time=@b",
                "get_current_time",
            ),
        ),
        (Choice("cheapest", "pick_cheapest_flight flights=@t"), Choice("fastest", "pick_fastest_flight flights=@t")),
        (
            Sequel(
                "check the status of {it} that day",
                "that day's status of {it}",
                "get_flight_status flight_number=@c date=@c.date",
            ),
            Sequel(
                "look up the {cabin} baggage allowance of {it}",
                "the {cabin} baggage allowance of {it}",
                "get_baggage_allowance flight_number=@c cabin",
            ),
        ),
    ),
    DomainParts(
        "kitchens",
        "dishes",
        (
            Source("on the menu of {kitchen}", ("get_kitchen_menu kitchen",)),
            Source(
                "on the menu of the first kitchen listed for {city}",
                ("list_kitchens city", "get_kitchen_menu kitchen=@0.kitchens[0]"),
            ),
            Source(
                "on the menu of the first kitchen listed for the city I'm in",
                ("get_current_city", "list_kitchens city=@0", "get_kitchen_menu kitchen=@1.kitchens[0]"),
            ),
            Source(
                "on the menu of the first kitchen listed for my home city",
                ("get_home_city", "list_kitchens city=@0", "get_kitchen_menu kitchen=@1.kitchens[0]"),
            ),
        ),
        (
            Condition("are {diet}", "filter_dishes_by_diet dishes=@t diet"),
            Condition("cost {dish_price} euros at most", "filter_dishes_by_price dishes=@t maximum_price=dish_price"),
            Condition(
                "have no more than {calories} calories", "filter_dishes_by_calories dishes=@t maximum_calories=calories"
            ),
        ),
        (),
    ),
    DomainParts(
        "agenda",
        "events",
        (
            Source("in my calendar on {soon}", ("list_events date=soon",)),
            Source("in today's calendar", ("get_todays_date", "list_events date=@0")),
            Source("in my calendar for tomorrow", ("get_tomorrows_date", "list_events date=@0")),
            Source("in my calendar on my next birthday", ("get_next_birthday", "list_events date=@0")),
            Source(
                "in my calendar {days} days from today",
                ("get_todays_date", "shift_date date=@0 days", "list_events date=@1"),
            ),
            Source(
                "in my calendar {days} days after my next birthday",
                ("get_next_birthday", "shift_date date=@0 days", "list_events date=@1"),
            ),
        ),
        (
            Condition("start at {time} or later", "filter_events_after events=@t time"),
            Condition("have {colleague} among the attendees", "filter_events_by_attendee events=@t attendee=colleague"),
            Condition("are of the kind '{event_kind}'", "filter_events_by_kind events=@t kind=event_kind"),
            Condition(
                "start no earlier in the day than it is now",
                "filter_events_after events=@t time=@b",
                "get_current_time",
            ),
        ),
        (Choice("earliest", "pick_first_event events=@t"),),
    ),
    DomainParts(
        "hotels",
        "hotels",
        (
            Source("in {city} from {soon} for {nights} nights", ("search_hotels place=city arrival=soon nights",)),
            Source(
                "in the city my phone is in, from {soon} for {nights} nights,",
                ("locate_phone", "search_hotels place=@0 arrival=soon nights"),
            ),
            Source(
                "in the city of my office, from {soon} for {nights} nights,",
                ("locate_office", "search_hotels place=@0 arrival=soon nights"),
            ),
            Source(
                "in {city} from next Saturday for {nights} nights",
                ("read_next_saturday", "search_hotels place=city arrival=@0 nights"),
            ),
            Source(
                "in the city where I was born, from next Saturday for {nights} nights,",
                ("look_up_birthplace", "read_next_saturday", "search_hotels place=@0 arrival=@1 nights"),
            ),
            Source(
                "in the city of my office, from today for {nights} nights,",
                ("locate_office", "read_calendar_day", "search_hotels place=@0 arrival=@1 nights"),
            ),
        ),
        (
            Condition("have {stars} stars or more", "keep_hotels_with_stars hotels=@t minimum_stars=stars"),
            Condition("cost at most {rate} euros a night", "keep_hotels_within_rate hotels=@t maximum_rate=rate"),
            Condition("list '{amenity}' among their amenities", "keep_hotels_with_amenity hotels=@t amenity"),
            Condition("lie in the {district} area", "keep_hotels_in_district hotels=@t district"),
        ),
        (
            Choice("cheapest", "choose_cheapest_hotel hotels=@t"),
            Choice("top reviewed", "choose_top_reviewed_hotel hotels=@t"),
        ),
        (
            Sequel("look up the house rules of {it}", "the house rules of {it}", "hotel_policies hotel=@c"),
            Sequel(
                "quote an airport transfer for {people} people to {it}",
                "an airport transfer for {people} passengers to {it}",
                "quote_hotel_transfer hotel=@c passengers=people",
            ),
        ),
    ),
    DomainParts(
        "books",
        "books",
        (Source("on {subject}", ("browse_books subject",)),),
        (
            Condition("are written in {language}", "keep_books_in_language books=@t language"),
            Condition("have at most {pages} pages", "keep_books_up_to_pages books=@t maximum_pages=pages"),
            Condition("came out in {published} or later", "keep_books_published_since books=@t year=published"),
            Condition(
                "are in the language I prefer to read",
                "keep_books_in_language books=@t language=@b",
                "look_up_reading_language",
            ),
        ),
        (Choice("longest", "choose_longest_book books=@t"), Choice("newest", "choose_newest_book books=@t")),
        (
            Sequel("summarise {it}", "a summary of {it}", "book_summary isbn=@c"),
            Sequel(
                "check the library copies in {city} of {it}",
                "the library copies in {city} of {it}",
                "library_copies isbn=@c place=city",
            ),
            Sequel(
                "reserve, at the library in {city} for pick-up on {soon}, for {person} (card {library_card}), {it}",
                "a reservation in {city} for {person}, card {library_card}, to be picked up on {soon}, of {it}",
                "reserve_library_book isbn=@c place=city pick_up=soon",
                {"reader": {"name": "$person", "card_number": "$library_card"}},
            ),
        ),
    ),
    DomainParts(
        "cinema",
        "showings",
        (
            Source("at the {cinema} on {soon}", ('showings_at cinemas=["$cinema"] day=soon',)),
            Source("at the cinemas of {city} on {soon}", ("cinemas_in place=city", "showings_at cinemas=@0 day=soon")),
            Source(
                "on {soon} at the cinemas of the city my phone is in",
                ("locate_phone", "cinemas_in place=@0", "showings_at cinemas=@1 day=soon"),
            ),
            Source(
                "on {soon} at the cinemas of the city I was born in",
                ("look_up_birthplace", "cinemas_in place=@0", "showings_at cinemas=@1 day=soon"),
            ),
        ),
        (
            Condition("are of the genre {genre}", "keep_showings_of_genre showings=@t genre"),
            Condition("start at {evening} or later", "keep_showings_from showings=@t clock=evening"),
            Condition("are suitable at the age of {age}", "keep_showings_for_age showings=@t age"),
            Condition(
                "cost at most {ticket_price} euros", "keep_showings_within_price showings=@t maximum_price=ticket_price"
            ),
            Condition(
                "start no earlier in the day than it is now", "keep_showings_from showings=@t clock=@b", "read_clock"
            ),
        ),
        (Choice("earliest", "choose_earliest_showing showings=@t"),),
        (
            Sequel("look up the film credits of {it}", "the film credits of {it}", "film_credits film=@c.film"),
            Sequel(
                "reserve {seats} seats under {person}, {email}, for {it}",
                "{seats} seats in the name of {person}, {email}, for {it}",
                "reserve_cinema_seats showing_id=@c seats",
                {"viewer": {"name": "$person", "email": "$email"}},
            ),
        ),
    ),
    DomainParts(
        "songs",
        "songs",
        (Source("by {artist}", ("songs_by artist",)),),
        (
            Condition("are {mood}", "keep_songs_of_mood songs=@t mood"),
            Condition(
                "last no longer than {song_seconds} seconds",
                "keep_songs_up_to_seconds songs=@t maximum_seconds=song_seconds",
            ),
            Condition("came out in {released} or later", "keep_songs_released_since songs=@t year=released"),
        ),
        (Choice("longest", "choose_longest_song songs=@t"), Choice("most played", "choose_most_played_song songs=@t")),
        (Sequel("look up the lyrics of {it}", "the lyrics of {it}", "song_lyrics song=@c"),),
        (
            Sequel(
                "add up how long all {them} last", "the total playing time of all {them}", "playlist_length songs=@t"
            ),
        ),
    ),
    DomainParts(
        "mailbox",
        "messages",
        (Source("in my {folder} mail folder", ("open_mail_folder folder",)),),
        (
            Condition("were sent by {sender}", "keep_messages_from messages=@t sender"),
            Condition("came on {past} or later", "keep_messages_since messages=@t day=past"),
            Condition("carry the label '{label}'", "keep_messages_labelled messages=@t label"),
        ),
        (Choice("latest", "choose_latest_message messages=@t"),),
        (
            Sequel("read me {it}", "the text of {it}", "read_mail_message message_id=@c"),
            Sequel(
                'answer "{reply}" to {it}',
                'a reply saying "{reply}" to {it}',
                "reply_to_message message_id=@c text=reply",
            ),
        ),
    ),
)
