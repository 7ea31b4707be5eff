"""What a teacher is shown of the world: of the things that are asked about, and nothing secret."""

from __future__ import annotations

from typing import Any

import pytest
from tests.plugins.synthesis.depot import Far
from tests.plugins.synthesis.dialogue.talks import DEPOT, blueprint, pin, plan, stage

import callwright as cw
from callwright.language.program import Reference
from callwright.training.synthesis.synthesizer import Materials
from callwright.training.teaching.teacher import TeacherReply, TeacherRequest
from callwright_plugins.synthesis.dialogue.conversation import converse
from callwright_plugins.synthesis.dialogue.surroundings import surroundings


def parcels() -> list[dict[str, str]]:
    session = DEPOT.open("", 0)
    items: list[dict[str, str]] = session.call("list_parcels", {}).value["items"]
    return items


def test_what_stands_with_the_things_that_are_named_is_shown() -> None:
    first, second, *_ = parcels()
    asked = plan(("fetch_parcel", {"token": "T1", "parcel_id": second["parcel_id"]}), ("open_gate", {}))
    assert surroundings(DEPOT, "", 0, asked) == {second["parcel_id"]: {"shelf": second["shelf"]}}
    both = plan(*(("fetch_parcel", {"token": "T1", "parcel_id": one["parcel_id"]}) for one in (first, second)))
    assert list(surroundings(DEPOT, "", 0, both)) == [first["parcel_id"], second["parcel_id"]]
    assert surroundings(DEPOT, "", 0, plan(("sign_in", {"pin": pin()}))) == {}, "a code names no thing"
    assert surroundings(DEPOT, "", 0, plan(("fetch_parcel", {"token": "T1", "parcel_id": "P99999"}))) == {}


@pytest.mark.parametrize("name", ["banking", "email", "crm"])
def test_secrets_and_long_texts_are_not_shown(name: str) -> None:
    environment = cw.environment(name)
    session = environment.open("", 3)
    found = []
    for tool, spec in environment.tools.items():
        if spec.read_only and not spec.parameters.get("required"):
            outcome = session.call(tool, {})
            items = outcome.value.get("items", []) if isinstance(outcome.value, dict) else []
            found += [(tool, value) for one in items for key, value in one.items() if key.endswith("_id") and value]
    assert found
    shown = surroundings(environment, "", 3, plan(*((tool, {"id": value}) for tool, value in found)))
    assert 1 <= len(shown) <= 6
    for itself, told in shown.items():
        assert 1 <= len(told) <= 8
        assert itself not in told.values()
        assert not {"pin", "token", "password", "otp"} & set(told)
        assert all(len(str(value)) <= 80 for value in told.values())


def test_of_a_server_nothing_is_shown_and_no_session_is_opened() -> None:
    far: Any = Far()
    asked = plan(("fetch_parcel", {"token": "T1", "parcel_id": parcels()[0]["parcel_id"]}))
    assert surroundings(far, "", 0, asked) == {}
    assert far.calls == []


def test_the_teacher_sees_it_beside_the_request_and_who_reads_back_does_not() -> None:
    parcel = parcels()[0]
    asked: list[TeacherRequest] = []

    def hears(request: TeacherRequest) -> TeacherReply:
        asked.append(request)
        return TeacherReply("nothing of use")

    registry = cw.default_registry()
    teacher = registry.create("teacher", "scripted", answer=hears)
    token = Reference(0, ("token",))
    one = stage(("sign_in", {"pin": pin()}), ("fetch_parcel", {"token": token, "parcel_id": parcel["parcel_id"]}))
    converse(blueprint(one), Materials(DEPOT, teacher=teacher, registry=registry), 0, "t")
    worded = [request for request in asked if request.role == "user"]
    assert worded
    line = f'- {parcel["parcel_id"]}: {{"shelf": "{parcel["shelf"]}"}}'
    assert all(line in request.messages[0].text for request in worded)
    assert all(parcel["shelf"] not in request.messages[-1].text for request in worded)
    read = [request for request in asked if request.role == "judge"]
    assert read
    assert all(line not in message.text for request in read for message in request.messages)
