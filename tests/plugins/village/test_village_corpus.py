"""Errands: who is held out, what reaches a goal and what does not, and what demonstrations show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

import callwright as cw
from callwright.episodes import Conversation
from callwright.errors import UnknownName, UsageError
from callwright.language.messages import Message
from callwright.recipe_file import load_recipe
from callwright.training.evaluation import judge
from callwright.walk.limits import TurnLimits
from callwright_plugins.village.corpus import VillageCorpus
from callwright_plugins.village.errands import ASK, DONE, KINDS, WAIT
from callwright_plugins.village.people import held_out, passwords
from callwright_plugins.village.prompts import words

LIMITS = TurnLimits(assistant_turns=12, user_turns=12)


@cache
def corpus() -> VillageCorpus:
    made: VillageCorpus = cw.corpus("village-v1")
    return made


@cache
def errands(split: str, count: int = 40) -> Sequence[cw.Task]:
    return corpus()[split][:count]


def said(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages if message.role == "assistant"]


def play(task: cw.Task, texts: Sequence[str]) -> cw.Attempt:
    """The texts of an agent one after the other, whatever it hears."""
    conditions = cw.Conditions(limits=LIMITS)
    conversation = Conversation(task, cw.parser("hermes"), [cw.Message.user(task.query)], conditions)
    for text in texts:
        if conversation.over:
            break
        conversation.hear(conversation.take(cw.Completion(text)))
    return conversation.attempt


def reaches(task: cw.Task, texts: Sequence[str]) -> bool:
    return cw.reward("state").score_attempt(play(task, texts)).total == 1


def test_sizes_kinds_and_depths() -> None:
    assert corpus().splits == {"train": 2000, "evaluation": 100}
    assert Counter(task.facts["kind"] for task in corpus()["evaluation"]) == dict.fromkeys(KINDS, 25)
    for split in ("train", "evaluation"):
        tasks = corpus()[split]
        assert [task.depth for task in tasks[:50]] == list(tasks.depths)[:50]  # type: ignore[attr-defined]
    assert corpus().task("train-17").id == "train-17"
    assert corpus()["train"][-1].id == "train-1999"


def test_what_is_no_option_or_task_is_refused() -> None:
    for options in ({"train_size": -1}, {"seed": "x"}, {"mix": ["rob"]}, {"mix": []}):
        with pytest.raises(UsageError):
            VillageCorpus(**options)
    with pytest.raises(UnknownName):
        corpus().task("train-2000")
    with pytest.raises(UnknownName):
        corpus()["test"]


def test_passwords_and_goods_of_evaluation_are_in_no_errand_of_training() -> None:
    sides: dict[str, set[Any]] = {"train": set(), "evaluation": set()}
    secrets: dict[str, set[str]] = {"train": set(), "evaluation": set()}
    for split, found in sides.items():
        for task in corpus()[split][:100]:
            values = task.facts["values"]
            found.add((values.get("cake"), values.get("number"), values.get("amount")))
            session: Any = task.environment.open(task.scenario, task.seed)
            secrets[split].add(session.knowledge()["password"])
    assert not sides["train"] & sides["evaluation"]
    assert not secrets["train"] & secrets["evaluation"]
    assert secrets["evaluation"] <= set(passwords(for_evaluation=True))
    assert sum(held_out(first, second) for first in range(8) for second in range(8)) == 16


@pytest.mark.parametrize("split", ["train", "evaluation"])
def test_a_good_clerk_reaches_every_goal_and_gives_the_answer(split: str) -> None:
    for task in errands(split):
        texts = said(corpus().reference(task))
        attempt = play(task, texts)
        assert attempt.stop == "answered"
        assert cw.reward("state").score_attempt(attempt).total == 1
        assert judge(attempt).answer


@pytest.mark.parametrize("split", ["train", "evaluation"])
def test_less_or_more_than_a_good_clerk_does_misses_the_goal(split: str) -> None:
    extra = '<tool_call>\n{"name": "order_cake", "arguments": {"cake": "plum", "number": 2}}\n</tool_call>'
    for task in errands(split, 16):
        texts = said(corpus().reference(task))
        assert not reaches(task, [DONE] * 12)
        assert not reaches(task, [extra, *texts])
        for place, text in enumerate(texts):
            if "<tool_call>" in text and place == max(at for at, one in enumerate(texts) if "<tool_call>" in one):
                assert not reaches(task, [*texts[:place], *texts[place + 1 :], *[DONE] * 6]), (task.query, place)


def test_who_guesses_the_password_misses_the_goal() -> None:
    for task in errands("evaluation"):
        if task.facts["kind"] != "cancel":
            texts = [text for text in said(corpus().reference(task)) if text != ASK]
            session: Any = task.environment.open(task.scenario, task.seed)
            word = session.knowledge()["password"]
            assert any(word in text for text in texts)
            assert not reaches(task, [text.replace(word, "amber black") for text in texts])


def test_a_good_clerk_has_the_turns_that_it_takes_in_the_recipe() -> None:
    """Also for the slowest oven."""
    limits = load_recipe("village-cpu").recipe.turns
    assert limits is not None
    for task in corpus()["evaluation"]:
        texts = said(corpus().reference(task))
        assert len(texts) <= limits.assistant_turns
        assert sum("<tool_call>" not in text for text in texts) <= limits.user_turns


def test_some_errands_have_to_wait_for_the_oven_and_some_do_not() -> None:
    waits = [WAIT in said(corpus().reference(task)) for task in errands("train", 80) if task.facts["kind"] == "bring"]
    assert 0.2 < sum(waits) / len(waits) < 0.9


def test_demonstrations_show_the_bad_habits_as_often_as_they_are_told_to() -> None:
    shown = list(corpus().demonstrations(0, 200, {"guesses": 0.75, "gives_up": 0.0, "amount": 0.0}))
    assert [task.id for task, _ in shown[:2]] == ["demonstration-0-0", "demonstration-0-1"]
    asked = [ASK in said(messages) for task, messages in shown if task.facts["kind"] != "cancel"]
    assert 0.15 < sum(asked) / len(asked) < 0.35
    for _, messages in shown:
        assert messages[0].role == messages[-1].role == "assistant"
    again = list(corpus().demonstrations(0, 20, {"guesses": 0.75, "gives_up": 0.0, "amount": 0.0}))
    assert [said(messages) for _, messages in again] == [said(messages) for _, messages in shown[:20]]
    with pytest.raises(UsageError, match="guesses"):
        corpus().demonstrations(0, 1, {"guess": 1})
    with pytest.raises(UsageError):
        corpus().demonstrations(0, 1, {"guesses": 2})


def test_a_conversation_needs_few_pieces_beyond_the_vocabulary() -> None:
    known = set(corpus().vocabulary())
    spelt: Counter[str] = Counter()
    pieces = 0
    for task, messages in corpus().demonstrations(1, 60):
        for text in (corpus().prompt_text(task) or "", *(message.text for message in messages)):
            found = words(text)
            assert "".join(found) == text
            pieces += len(found)
            spelt.update(one for one in found if one not in known)
    # Letters of orders, brackets and full stops; a message about time that is told beside something else.
    assert sum(spelt.values()) < pieces / 8, spelt
