"""Blueprints are JSON, and say what is wrong with one that is none."""

from __future__ import annotations

import json

import pytest

from callwright.errors import DataError
from callwright.language.program import Call, Reference
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint, Distractor, Failing, Stage
from callwright_plugins.synthesis.language.plan import Plan

FIND = Call(0, "find", {"name": "Savings"})
CLOSE = Call(1, "close", {"account": Reference(0, ("items", 0, "id"))})
TELL = Call(2, "tell", {"text": "closed"})
STAGE = Stage(
    Plan((Call(0, "close", {"account": "A1"}),)),
    (FIND, CLOSE, TELL),
    ((), (), (1,)),
    (Failing(0, "NOT_FOUND", "parameters"),),
    information="minimal",
)
BLUEPRINT = Blueprint(
    "bank",
    "typical",
    3,
    "task",
    (STAGE, STAGE),
    ("find", "close"),
    distractors=(Distractor("email", "send"),),
    stripped=(("find", "kind"),),
    hidden={"close": 1},
    recovers=("find", "NOT_FOUND"),
)


def test_a_blueprint_is_json_there_and_back() -> None:
    assert Blueprint.from_json(json.loads(json.dumps(BLUEPRINT.to_json()))) == BLUEPRINT
    assert BLUEPRINT.depth == 6


def test_edges_are_what_is_referred_to_and_what_is_said() -> None:
    assert STAGE.edges == ((0, 1), (1, 2))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "joke"}, "one of task"),
        ({"stages": []}, "a stage at least"),
        ({"stages": [{}]}, "no stage"),
        ({"seed": None, "distractors": [{"tool": "send"}]}, "no blueprint"),
        ({"recovers": []}, "no blueprint"),
    ],
)
def test_what_is_none_is_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(DataError, match=said):
        Blueprint.from_json({**BLUEPRINT.to_json(), **change})


@pytest.mark.parametrize(
    "stage",
    [
        {"after": ((),)},
        {"after": ((), (1,), ())},
        {"failing": (Failing(3, "X", "tool"),)},
        {"calls": (CLOSE,)},
    ],
)
def test_calls_that_are_not_there_are_not_followed(stage: dict[str, tuple[object, ...]]) -> None:
    with pytest.raises(DataError):
        Stage(**{"asked": STAGE.asked, "calls": STAGE.calls, **stage})  # type: ignore[arg-type]
