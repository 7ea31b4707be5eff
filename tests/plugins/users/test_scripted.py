"""The scripted user and the recorded one: what they tell, and when."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import callwright as cw
from callwright.environments.goals.comparing import Comparison
from callwright.errors import DataError, UsageError

TASK = cw.Task("t1", "?", {}, cw.Answer(), cw.environment("calendar"))
GOAL = {"holds": [{"table": "orders", "count": 1}]}
OTHER = {"holds": [{"table": "orders", "count": 2}]}


class World:
    """What a user sees: knowledge, and the goals that are reached."""

    now = 1_772_442_000

    def __init__(self, reached: Sequence[Any] = (), **known: Mapping[str, Any]) -> None:
        self.reached, self.known = list(reached), known

    def knowledge(self, entity: str = "me") -> Mapping[str, Any]:
        return self.known.get(entity, {})

    def check_goal(self, goal: Mapping[str, Any]) -> Comparison:
        return Comparison(wrong=int(goal not in self.reached))


def talk(user: Any, texts: Sequence[str], world: World | None = None, seed: int = 0) -> list[str]:
    """What the user says to these texts, until it is done: its last words end with a full stop and a bar."""
    begun, messages, heard = user.begin(TASK, seed), [cw.Message.user("?")], []
    for text in texts:
        messages.append(cw.Message.assistant(text))
        said = begun.reply(tuple(messages), world or World())
        heard.append(said.text + ("|" if said.done else ""))
        if said.done:
            break
        messages.append(cw.Message.user(said.text))
    return heard


def scripted(**options: Any) -> Any:
    return cw.user("scripted", **options)


def test_it_tells_what_it_knows_when_it_is_asked_and_not_before() -> None:
    user = scripted(
        knows={"pin": "4711", "travel_day": {"knowledge": "day"}, "seat": 12},
        asked={"pin": ["pin", "secret code"]},
        tells={"pin": "My PIN is {pin}."},
        satisfied=GOAL,
    )
    world = World(me={"day": "Monday"})
    assert talk(user, ["Hello."], world) == ["That is not done yet."]
    assert talk(user, ["I need your  SECRET\ncode."], world) == ["My PIN is 4711."]
    assert talk(user, ["On which travel day, and which seat?"], world) == ["travel_day: Monday. seat: 12."]
    assert talk(user, ["You pinned it on spinning pins."], world) == ["That is not done yet."]
    with pytest.raises(DataError, match=r"knows 'travel_day' as 'day' of 'me'.*only nothing"):
        talk(user, ["Which travel day?"], World())


def test_it_may_know_something_as_name_or_value() -> None:
    user = scripted(
        knows={"name": "Bo Diaz", "city": "Rome", "value": 7, "seat": 12},
        tells={"city": "I am {name} and live in {city}.", "seat": "{name} sits in {seat}, {value}."},
    )
    assert talk(user, ["Your name?"]) == ["name: Bo Diaz."]
    assert talk(user, ["Which value?"]) == ["value: 7."]
    assert talk(user, ["Which city?"]) == ["I am Bo Diaz and live in Rome."]
    assert talk(user, ["Which seat?"]) == ["Bo Diaz sits in 12, 7."]
    assert talk(scripted(knows={"pin": 1}, tells={"pin": "The {name} is {value}."}), ["pin?"]) == ["The pin is 1."]


def test_what_was_told_is_told_again_only_to_a_question() -> None:
    user = scripted(knows={"pin": "4711"}, opening=["pin"], satisfied=GOAL, patience=9)
    heard = talk(user, ["Your PIN was right. Anything else?", "What was your PIN?", "The PIN is fine."])
    assert heard == ["That is not done yet.", "pin: 4711.", "That is not done yet."]


def test_requests_follow_one_another_and_the_goal_ends_it() -> None:
    user = scripted(
        then=["And now?", {"say": "Two, please.", "when": OTHER}, {"say": "Well?", "when": GOAL}],
        satisfied=GOAL,
        thanks="Good.",
    )
    assert talk(user, ["Done."] * 9, World([GOAL])) == ["And now?", "Well?", "Good.|"]
    assert talk(user, ["Done."] * 9, World([OTHER])) == [
        "And now?",
        "Two, please.",
        *["That is not done yet."] * 3,
        "Never mind, I give up.|",
    ]
    assert talk(scripted(then=["And now?"]), ["Done."] * 9) == ["And now?", "Thank you, that is all.|"]
    assert talk(scripted(satisfied=GOAL, patience=0), ["Done."] * 9) == ["Never mind, I give up.|"]


def test_it_confirms_and_does_what_it_is_asked_to() -> None:
    user = scripted(
        knows={"pin": "1"},
        confirms={"words": ["shall i book"], "say": "Do it."},
        does=[{"words": ["turn it off"], "calls": [{"tool": "flip", "arguments": {"on": False}}], "say": "It is off."}],
    )
    assert talk(user, ["Shall I book it? And your PIN?"]) == ["pin: 1. Do it."]
    said = user.begin(TASK, 0).reply((cw.Message.assistant("Please turn it off."),), World())
    assert (said.text, said.calls) == ("It is off.", (cw.Call(0, "flip", {"on": False}),))
    assert talk(scripted(satisfied=GOAL), ["Shall I?"] * 9)[-1] == "Never mind, I give up.|"


@pytest.mark.parametrize("value", ["4711", "Anna", 12, 2.5, True, ["a1", "b2"], "aa", "x", "2026-03-02"])
def test_a_mistake_is_another_value_of_its_kind_and_is_put_right(value: Any) -> None:
    user = scripted(knows={"it": value}, tells={"it": "{it}"}, mistakes=1.0, satisfied=GOAL)
    right = talk(scripted(knows={"it": value}, tells={"it": "{it}"}), ["it?"])[0]
    for seed in range(20):
        first, second, third = talk(user, ["Tell it?", "That was not found.", "And it?"], seed=seed)
        assert first != right
        assert len(first) in (len(right) - 1, len(right), len(right) + 1)
        assert second == f"Sorry, I was wrong. {right}"
        assert third == right
        assert talk(user, ["Tell it?"], seed=seed) == [first]
    asked_again = talk(user, ["Tell it?", "Say it again, please."])
    assert asked_again[1] == f"Sorry, I was wrong. {right}"


def test_mistakes_and_changes_of_mind_come_as_often_as_they_are_said_to() -> None:
    user = scripted(
        knows={"day": "Monday"},
        mistakes=0.25,
        changes=[{"p": 0.4, "say": "No, on {day}.", "knows": {"day": "Friday"}, "satisfied": OTHER}],
        satisfied=GOAL,
    )
    drawn = [talk(user, ["Day?", "Done.", "Done."], World([GOAL]), seed) for seed in range(1000)]
    wrong = sum(heard[0] != "day: Monday." for heard in drawn)
    changed = [heard for heard in drawn if heard[1] == "No, on Friday."]
    assert 200 < wrong < 300
    assert 340 < len(changed) < 460
    assert {tuple(heard[2:]) for heard in changed} == {("That is not done yet.",)}
    assert {heard[1] for heard in drawn} == {"No, on Friday.", "Thank you, that is all.|"}
    assert talk(user, ["Hm."], seed=2) == talk(pickle.loads(pickle.dumps(user)), ["Hm."], seed=2)


def test_what_changed_is_told_anew() -> None:
    user = scripted(
        knows={"day": "Monday"}, opening=["day"], changes=[{"say": "Oh.", "knows": {"day": "Friday"}}], satisfied=GOAL
    )
    assert talk(user, ["The day is set.", "Which day now?"]) == ["Oh.", "day: Friday."]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"knows": ["pin"]}, "'knows'.*an object"),
        ({"opening": ["pin"]}, "no name under 'knows'.*'pin'"),
        ({"knows": {"pin": 1}, "asked": {"pim": ["x"]}}, "Did you mean 'pin'"),
        ({"knows": {"pin": 1}, "asked": {"pin": []}}, "a list of texts"),
        ({"knows": {"pin": 1}, "tells": {"pin": 3}}, "'tells.pin'.*a text"),
        ({"then": "again"}, "'then'.*a list"),
        ({"then": [{"say": "x", "wenn": {}}]}, "Did you mean 'when'"),
        ({"then": [{"when": GOAL}]}, "needs the key 'say'"),
        ({"satisfied": {"hold": []}}, "'satisfied'"),
        ({"patience": -1}, "a whole number from 0"),
        ({"mistakes": 2}, "a probability"),
        ({"changes": [{"p": "x", "say": "a"}]}, "a probability"),
        ({"does": [{"words": "x", "calls": [{"name": "f"}]}]}, "is a call such as"),
        ({"does": [{"words": "x", "calls": {}}]}, "a list of calls"),
        ({"confirms": {"word": []}}, "Did you mean 'words'"),
        ({"thanks": ""}, "'thanks'.*a text"),
    ],
)
def test_options_that_are_wrong_are_said_in_words(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        scripted(**options)


def test_the_recorded_user_says_its_lines_one_after_another() -> None:
    user = cw.user("replayed", says=["One.", {"say": "Two.", "calls": [{"tool": "f", "arguments": {"a": 1}}]}])
    assert talk(user, ["", "x", "y", "z"]) == ["One.", "Two.", "|"]
    messages = (cw.Message.assistant("a"), cw.Message.user("b"), cw.Message.assistant("c"))
    assert user.begin(TASK, 0).reply(messages, World()).calls == (cw.Call(0, "f", {"a": 1}),)
    assert talk(cw.user("replayed"), ["x"]) == ["|"]
    with pytest.raises(DataError, match=r"says\[0\] is empty"):
        cw.user("replayed", says=[""]).begin(TASK, 0)
    for wrong in ("One.", [3], [{"calls": []}], [{"say": "a", "call": []}], [{"say": "a", "calls": [{}]}]):
        with pytest.raises(UsageError):
            cw.user("replayed", says=wrong)


def test_a_later_request_brings_what_is_known_from_then_on() -> None:
    later = {"say": "Now the other one.", "knows": {"pin": "0815", "room": 4}, "tells": {"pin": "It is {pin}."}}
    user = scripted(knows={"pin": "4711"}, then=[later])
    assert talk(user, ["Your PIN? Your room?", "Done.", "The room? And the pin.", "Done."]) == [
        "pin: 4711.",
        "Now the other one.",
        "It is 0815. room: 4.",
        "Thank you, that is all.|",
    ]
    with pytest.raises(UsageError, match="knows"):
        scripted(then=[{"say": "Now.", "tells": {"pin": "It is {pin}."}}])
