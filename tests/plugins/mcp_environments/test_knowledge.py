"""What users know in the twenty environments, and where the value of each argument of the 343 tools comes from."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from environment_sessions import executed

import callwright as cw
from callwright.environments.protocol import Knows
from callwright_plugins.mcp_environments import TOOLS

#: Arguments that are not closed sets, by environment and by where their value comes from:
#:
#: - ``told``: a result of a tool that reads holds it, under the same name or the one after ``=``;
#: - ``made``: the result of a tool that writes, earlier in the session, holds it;
#: - ``known``: a user knows it: the name in ``session.knowledge("me")``, or of an entity with ``of`` an id of a table;
#: - ``free``: a choice of whoever calls: words to search by, bounds, places in a page, labels, texts.
ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "banking": {
        "told": "account_id card_id customer_id payee_id scheduled_payment_id from_account_id=account_id "
        "to_account_id=account_id",
        "made": "auth_token",
        "known": "pin otp name=new_payee_name iban=new_payee_iban amount_cents=spending_money_cents pay_at=rent_day",
        "free": "description nickname query since until times",
    },
    "trading": {
        "told": "account_id order_id sector symbol",
        "known": "shares limit_price_cents=most_price_cents price_cents=alert_price_cents amount_cents=deposit_cents",
        "free": "days depth query",
    },
    "payments": {
        "told": "customer_id invoice_id payment_id webhook_id object_id",
        "known": "amount_cents=goodwill_cents lines=agreed_lines@customers memo url=webhook_url "
        "due_in_days=payment_terms_days",
        "free": "idempotency_key",
    },
    "calendar": {
        "told": "calendar_id event_id occurrence_start ignore_event_id=event_id attendee=email people=person_id "
        "person=person_id invitees=person_id owner=owner_id time_zone",
        "known": "title=new_topic location=lunch_place start=travel_from end=travel_until new_start=earliest_hour "
        "duration_minutes=meeting_minutes",
        "free": "count interval description until text new_end",
    },
    "email": {
        "told": "folder message_id thread_id message_ids=message_id attachment_ids=attachment_id label=labels "
        "cc=address "
        "bcc=address",
        "made": "draft_id",
        "known": "to=new_contact_address body=signature subject=case_number note=callback_phone",
        "free": "query",
    },
    "filesystem": {
        "told": "owner group path size target user archive=path destination=path source=path sources=path old=path",
        "known": "password content=contact_line name=project_name",
        "free": "depth lines mode context count max_size min_size modified_since new offset pattern",
    },
    "shopping": {
        "told": "address_id cart_item_id category_id code order_id order_item_id parent_id payment_method_id "
        "product_id "
        "variant_id product_ids=product_id",
        "known": "cvv max_price_cents=budget_cents min_rating=least_rating query=colour",
        "free": "quantity max_stars min_price_cents min_stars",
    },
    "marketplace": {
        "told": "bid_id listing_id sale_id seller_id user_id",
        "known": "amount_cents=most_cents max_price_cents=most_cents reserve_cents=thing_reserve_cents "
        "start_price_cents=thing_start_cents title=thing_title",
        "free": "buy_now_cents comment description quantity rating duration_hours query",
    },
    "retail_chain": {
        "told": "category city store_id item_id from_store_id to_store_id transfer_id near_store_id=store_id",
        "made": "reservation_id",
        "known": "received_quantity=counted_pieces@transfers change=pieces_broken customer=customer_name "
        "note=damage_note quantity=pieces_wanted",
        "free": "since until hours most query",
    },
    "travel_booking": {
        "told": "booking_id flight_id hotel_id room_type_id seat traveler_id traveler_ids guest_ids=traveler_id "
        "new_flight_id=flight_id quoted_price_cents=price_cents accepted_fee_cents=cancel_fee_cents",
        "made": "hold_id",
        "known": "passport_no=companion_passport_no passport_expires=companion_passport_expires "
        "first_name=companion_first_name last_name=companion_last_name birth_date=companion_birth_date "
        "city=destination_city destination origin nights date=travel_day check_in=travel_day "
        "max_total_cents=budget_cents "
        "min_stars=least_stars",
        "free": "history name seats check_out from_day guests points_to_use query travelers",
    },
    "maps": {
        "told": "city place_id route_code saved_id destinations=location origins=location",
        "known": "address=home_address location=home_address origin=home_address destination=home_address depart_at "
        "label=place_label category=favourite_category at=depart_at",
        "free": "min_rating query radius_m",
    },
    "social_media": {
        "told": "post_id user=handle author=author_handle",
        "known": "text=news",
        "free": "query",
    },
    "team_chat": {
        "told": "author_id channel_id message_id user_id",
        "known": "name=channel_name text=announcement topic=channel_topic",
        "free": "query",
    },
    "iot_devices": {
        "told": "automation_id device_id room_id scene_id source_device_id bypass=device_id",
        "known": "alarm_code lock_code=lock_code@locks celsius=comfort_celsius time=wake_time "
        "percent=reading_light_percent",
        "free": "color end name position speed start steps every_minutes hours temperature_k",
    },
    "vehicle": {
        "told": "category destination_id route_id",
        "known": "litres speed_kmh=cruise_kmh level=fan_level temperature_c=comfort_celsius query=destination_name",
        "free": "within_km",
    },
    "crm": {
        "told": "contact_id deal_id decision_maker_id lead_id org_id pipeline_id stage_id keep_contact_id=contact_id "
        "merge_contact_id=contact_id",
        "known": "amount_cents=deal_amount_cents close_date company=met_company email=met_email lost_reason "
        "name=met_name "
        "next_step notes=call_notes phone=met_phone",
        "free": "at subject title deal_title query",
    },
    "issue_tracker": {
        "told": "assignee issue=key issues=key link_id project sprint status to label=labels source=key target=key "
        "user=id move_open_to=sprint",
        "known": "summary=seen_summary description=seen_details estimate_minutes points minutes=worked_minutes "
        "note=worked_note days=sprint_days goal=sprint_goal",
        "free": "body labels comment query started text",
    },
    "budget": {
        "told": "category_id expense_id group from_category_id=category_id to_category_id=category_id",
        "known": "amount_cents=receipt_cents description=receipt_description day=receipt_day name=new_category "
        "first_day=subscription_first_day",
        "free": "month query times",
    },
    "food_delivery": {
        "told": "address_id basket_id basket_item_id code cuisine item_id order_id restaurant_id option_ids=option_id",
        "known": "cvv amount_cents=tip_cents note=kitchen_note comment=verdict food_stars",
        "free": "quantity courier_stars max_fee_cents min_rating query",
    },
    "video_meeting": {
        "told": "meeting_id user=user_id cohosts=user_id invitees=user_id",
        "known": "passcode=passcode@meetings topic=new_topic starts_at=new_starts_at minutes=new_minutes",
        "free": "capacity",
    },
}


def closed(schema: Mapping[str, Any]) -> bool:
    """Whether a schema names its values: nobody has to know them."""
    if "enum" in schema or "const" in schema or schema.get("type") == "boolean":
        return True
    if "anyOf" in schema:
        return all(closed(one) or one.get("type") == "null" for one in schema["anyOf"])
    return schema.get("type") == "array" and closed(schema["items"])


def fields(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        yield from schema.get("properties", ())
        for part in schema.values():
            yield from fields(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from fields(part)


def listed(name: str, source: str) -> dict[str, str]:
    words = ARGUMENTS[name].get(source, "").split()
    return {word.partition("=")[0]: word.partition("=")[2] or word for word in words}


@pytest.mark.parametrize("name", TOOLS)
def test_each_argument_is_told_made_known_or_a_free_choice(name: str) -> None:
    environment = cw.environment(name)
    taken = {
        argument
        for spec in environment.tools.values()
        for argument, schema in spec.parameters["properties"].items()
        if argument not in ("limit", "cursor") and not closed(schema)
    }
    places = [argument for source in ARGUMENTS[name] for argument in listed(name, source)]
    assert sorted(places) == sorted(taken)


@pytest.mark.parametrize("name", TOOLS)
def test_what_is_told_stands_in_a_result(name: str) -> None:
    specs = cw.environment(name).tools.values()
    read = {field for spec in specs if spec.read_only for field in fields(spec.result)}
    made = {field for spec in specs if not spec.read_only for field in fields(spec.result)}
    assert {field for field in listed(name, "told").values() if field not in read} == set()
    assert {field for field in listed(name, "made").values() if field not in made} == set()


@pytest.mark.parametrize("name", TOOLS)
def test_what_is_known_is_in_the_knowledge_of_somebody(name: str) -> None:
    sessions = [cw.environment(name).open("typical", seed) for seed in range(3)]
    for known in listed(name, "known").values():
        fact, _, table = known.partition("@")
        for session in sessions:
            holders = ["me"]
            if table:
                rows = session.helper("_get_rows", {"table": table, "limit": 200}).value
                holders = [next(iter(row.values())) for row in rows]
            found = [session.knowledge(holder).get(fact) for holder in holders]
            assert any(value not in (None, "") for value in found), (known, holders[:3])


@pytest.mark.parametrize("name", TOOLS)
def test_knowledge_is_the_same_for_the_same_scenario_and_seed_and_asking_changes_nothing(name: str) -> None:
    environment = cw.environment(name)
    again = pickle.loads(pickle.dumps(environment))
    different = set()
    for scenario in environment.scenarios:
        for seed in range(3):
            session = environment.open(scenario, seed)
            before = session.digest()
            known = session.knowledge()
            assert session.digest() == before
            assert known == json.loads(json.dumps(known, allow_nan=False))
            assert (
                known == again.open(scenario, seed).knowledge() == session.fork().knowledge() == session.knowledge("me")
            )
            known["pin"] = "spoilt"
            assert session.knowledge() != known
            assert session.knowledge("nobody whom anybody knows") == {}
            different.add(json.dumps(session.knowledge(), sort_keys=True))
    assert len(different) >= 3


@pytest.mark.parametrize("name", TOOLS)
def test_sessions_declare_that_they_know(name: str) -> None:
    assert isinstance(cw.environment(name).open("sparse"), Knows)


@pytest.mark.parametrize("name", TOOLS)
def test_no_secret_is_in_the_briefing_of_a_model(name: str) -> None:
    environment = cw.environment(name)
    session = environment.open("typical", 1)
    told = environment.briefing(session)
    secrets = ("pin", "otp", "password", "cvv", "alarm_code", "lock_code", "companion_passport_no", "new_passcode")
    words = set(told.replace(".", " ").replace(",", " ").split())
    assert not {str(session.knowledge()[secret]) for secret in secrets if secret in session.knowledge()} & words


# What the secrets open ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_a_customer_of_the_bank_signs_in_with_what_they_know(seed: int) -> None:
    bank = cw.environment("banking").open("typical", seed)
    known = bank.knowledge()
    (customer,) = executed(bank, "find_customer", query=known["email"])["items"]
    otp = {"otp": known["otp"]} if customer["two_factor"] else {}
    signed_in = {"customer_id": customer["customer_id"], "pin": known["pin"], **otp}
    executed(bank, "verify_identity", **signed_in)
    assert bank.knowledge(customer["customer_id"])["pin"] == known["pin"]
    if otp:
        assert bank.knowledge()["otp"] != otp["otp"]  # each is used up


@pytest.mark.parametrize("seed", range(4))
def test_doors_and_alarm_obey_the_codes_that_are_known(seed: int) -> None:
    home = cw.environment("iot_devices").open("typical", seed)
    opened = 0
    for lock in executed(home, "list_devices", kind="lock", online=True)["items"]:
        code = home.knowledge(lock["device_id"])["lock_code"]
        outcome = home.call("unlock_door", {"device_id": lock["device_id"], "lock_code": code})
        assert outcome.code != "BAD_CODE"
        opened += outcome.executed
    assert opened
    assert home.call("disarm_alarm", {"alarm_code": home.knowledge()["alarm_code"]}).code != "BAD_CODE"


@pytest.mark.parametrize("seed", range(4))
def test_shells_meetings_and_cards_take_what_is_known(seed: int) -> None:
    shell = cw.environment("filesystem").open("typical", seed)
    mine = shell.knowledge()
    other = next(
        one["name"] for one in executed(shell, "list_users")["items"] if one["name"] not in (mine["user"], "root")
    )
    executed(shell, "switch_user", user=other, password=shell.knowledge(other)["password"])
    executed(shell, "switch_user", user=mine["user"], password=mine["password"])
    assert shell.knowledge() == mine  # whoever the shell has become since

    shop = cw.environment("shopping").open("typical", seed)
    cards = [one for one in executed(shop, "list_payment_methods")["items"] if one["kind"] == "card"]
    assert shop.knowledge()["card_last4"] in [card["last4"] for card in cards]
    assert all(shop.knowledge(card["payment_method_id"])["card_last4"] == card["last4"] for card in cards)

    rooms = cw.environment("video_meeting").open("adversarial", seed)
    locked = 0
    for one in executed(rooms, "list_meetings", role="host", limit=100)["items"]:
        if executed(rooms, "get_meeting", meeting_id=one["meeting_id"])["has_passcode"]:
            locked += 1
            code = rooms.knowledge(one["meeting_id"])["passcode"]
            started = rooms.call("start_meeting", {"meeting_id": one["meeting_id"], "passcode": code})
            assert started.code != "BAD_PASSCODE"
    assert locked
