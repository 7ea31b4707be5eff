"""One test per decision of docs/toolrl-and-prove.md about ToolRL: what is released, what is printed, what is ours."""

from __future__ import annotations

import copy
import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.errors import DataError
from callwright.walk import Progress
from callwright_plugins.toolrl_rewards.reading import read_text
from callwright_plugins.toolrl_rewards.recipes import VARIANTS
from callwright_plugins.toolrl_rewards.truth import BadGroundTruth

ONE = {"name": "get", "parameters": {"city": "Rome", "n": 1}}
OTHER = {"name": "put", "parameters": {"x": True}}
EMPTY = {"name": "ping", "parameters": {}}


def text(*calls: Any, thought: str = "so", response: str | None = None) -> str:
    blocks = [f"<think>{thought}</think>"]
    if calls:
        lines = "\n".join(call if isinstance(call, str) else json.dumps(call) for call in calls)
        blocks.append(f"<tool_call>\n{lines}\n</tool_call>")
    if response is not None:
        blocks.append(f"<response>{response}</response>")
    return "\n".join(blocks)


def scores(recipe: str, completion: str, truth: str, **options: Any) -> dict[str, float]:
    reward = cw.reward(recipe, **options).score_pair(completion, truth)
    return {name: weighted.score.value for name, weighted in reward.scores.items()}


def correct(recipe: str, completion: str, truth: str, **options: Any) -> float:
    return scores(recipe, completion, truth, **options)["correctness"]


RELEASED, PAPER, GUARDED = "toolrl-released-default", "toolrl", "toolrl-guarded"


@pytest.mark.parametrize("recipe", [RELEASED, PAPER])
def test_both_agree_on_the_plain_case(recipe: str) -> None:
    wrong = {"name": "get", "parameters": {"city": "Oslo", "n": 1}}
    assert scores(recipe, text(ONE), text(ONE)) == {"format": 1.0, "correctness": 3.0}
    # R = 1 + 1 + 1 of S = 1 + 1 + 2
    assert correct(recipe, text(wrong), text(ONE)) == pytest.approx(6 * 3 / 4 - 3)


def test_tags_inside_the_thought() -> None:
    mentions = text(ONE, thought="I write <tool_call> and </tool_call> now")
    assert scores(RELEASED, mentions, text(ONE)) == {"format": 0.0, "correctness": -3.0}
    assert scores(PAPER, mentions, text(ONE)) == {"format": 1.0, "correctness": 3.0}


def test_tags_inside_the_thought_of_a_ground_truth() -> None:
    truth = text(ONE, thought="I write <tool_call> and </tool_call> now")
    with pytest.raises(BadGroundTruth, match="not JSON"):
        correct(RELEASED, text(ONE), truth)
    assert correct(PAPER, text(ONE), truth) == 3.0


def test_one_malformed_line() -> None:
    truth, broken = text(ONE, OTHER), text(ONE, '{"name": "put", "parameters": {"x": tru')
    assert correct(RELEASED, broken, truth) == -3.0
    # names 1/2, the first call whole (1 + 2), S = 1 + 2 + 3
    assert correct(PAPER, broken, truth) == pytest.approx(6 * 3.5 / 6 - 3)
    reward = cw.reward(PAPER).score_pair(broken, truth)
    assert [evidence.code for evidence in reward.scores["correctness"].score.evidence] == ["not_json", "missing_call"]


def test_malformed_lines_beside_right_calls() -> None:
    for count in (1, 200):
        junk = text(ONE, *["{oops"] * count)
        assert correct(RELEASED, junk, text(ONE)) == -3.0
        assert scores(PAPER, junk, text(ONE)) == {"format": 1.0, "correctness": 3.0}  # they have no name, and S no |P|
        assert correct(GUARDED, junk, text(ONE)) == pytest.approx(6 * 4 / 7 - 3)  # neighbouring ones are one call
        assert correct("toolrl-coarse", junk, text(ONE)) == -3.0


def test_blank_lines_and_calls_over_several_lines() -> None:
    spread = text(json.dumps(ONE, indent=2))
    assert correct(RELEASED, spread, text(ONE)) == -3.0
    assert scores(PAPER, spread, text(ONE)) == {"format": 1.0, "correctness": 3.0}
    assert correct(RELEASED, text(ONE, "", OTHER), text(ONE, OTHER)) == -3.0
    assert correct(PAPER, text(ONE, "", OTHER), text(ONE, OTHER)) == 3.0


def test_true_is_not_one() -> None:
    for given, expected in ((True, 1), (1, True)):
        mine, theirs = ({"name": "f", "parameters": {"a": value}} for value in (expected, given))
        assert correct(RELEASED, text(theirs), text(mine)) == 3.0
        assert correct(PAPER, text(theirs), text(mine)) == pytest.approx(6 * 2 / 3 - 3)
    for recipe in (RELEASED, PAPER):
        mine, theirs = ({"name": "f", "parameters": {"a": value}} for value in (1, 1.0))
        assert correct(recipe, text(theirs), text(mine)) == 3.0


def test_numbers_have_no_tolerance() -> None:
    mine, theirs = ({"name": "f", "parameters": {"a": value}} for value in (0.3, 0.1 + 0.2))
    for recipe in (RELEASED, PAPER, GUARDED):
        assert correct(recipe, text(theirs), text(mine)) == pytest.approx(6 * 2 / 3 - 3)
    assert correct("toolrl-coarse", text(theirs), text(mine)) == -3.0


def test_extra_calls() -> None:
    truth = {"name": "f", "parameters": {"a": 1}}
    four = text(truth, truth, truth, truth)
    assert correct(RELEASED, four, text(truth)) == pytest.approx(1.5)  # only the names notice
    assert correct(PAPER, four, text(truth)) == 3.0  # a set of names does not, and S has no term in |P|
    # S = 1 + 2 * 4: every call has to be paid for
    assert correct(GUARDED, four, text(truth)) == pytest.approx(6 * 3 / 9 - 3)
    falling = [correct(GUARDED, text(*[truth] * count), text(truth)) for count in range(1, 8)]
    assert falling == sorted(falling, reverse=True)
    assert len(set(falling)) == 7
    # another tool beside the right call: names 1/2
    other = text(truth, EMPTY)
    assert correct(RELEASED, other, text(truth)) == correct(PAPER, other, text(truth)) == pytest.approx(6 * 2.5 / 3 - 3)
    assert correct(GUARDED, other, text(truth)) == pytest.approx(6 * 2.5 / 5 - 3)
    twenty = text(truth, *({"name": f"g{number}", "parameters": {}} for number in range(19)))
    assert correct(PAPER, twenty, text(truth)) == pytest.approx(6 * 2.05 / 3 - 3)
    assert correct(GUARDED, twenty, text(truth)) == pytest.approx(6 * 2.05 / 41 - 3)


def test_greedy_and_optimal_matching() -> None:
    first = {"name": "get", "parameters": {"city": "Rome", "n": 1}}
    second = {"name": "get", "parameters": {"city": "Rome", "n": 2}}
    truth, only_second = text(first, second), text(second)
    # greedy gives the one call to the first true one, which it fits less
    assert correct(RELEASED, only_second, truth) == pytest.approx(6 * (0.5 + 2) / 7 - 3)
    assert correct(RELEASED, only_second, truth, matching="optimal") == pytest.approx(6 * (0.5 + 3) / 7 - 3)
    assert correct(PAPER, only_second, truth) == pytest.approx(6 * (1 + 3) / 7 - 3)
    assert correct(PAPER, only_second, truth, matching="greedy") == pytest.approx(6 * (1 + 2) / 7 - 3)


def test_names_are_a_set_in_the_paper() -> None:
    truth, twice = text(ONE, OTHER), text(ONE, ONE)
    assert correct(RELEASED, twice, truth) == pytest.approx(6 * (1 / 3 + 3) / 6 - 3)
    assert correct(RELEASED, twice, truth, names="set") == pytest.approx(6 * (1 / 2 + 3) / 6 - 3)
    assert correct(PAPER, twice, truth) == pytest.approx(6 * (1 / 2 + 3) / 6 - 3)


def test_pairs_need_not_share_a_name_in_the_paper() -> None:
    renamed = {"name": "fetch", "parameters": ONE["parameters"]}
    assert correct(RELEASED, text(renamed), text(ONE)) == -3.0
    assert correct(PAPER, text(renamed), text(ONE)) == pytest.approx(6 * 3 / 4 - 3)
    assert correct(PAPER, text(renamed), text(ONE), pairs="same-name") == -3.0


def test_where_nothing_is_due() -> None:
    truth = text(response="No tool fits.")
    for recipe in (PAPER, GUARDED, "toolrl-finegrained", "toolrl-intermediate", "toolrl-coarse"):
        for completion, ours in ((text(response="Sorry."), 3.0), (text(ONE), -3.0), (text("oops"), -3.0)):
            assert correct(RELEASED, completion, truth) == 0.0
            assert correct(recipe, completion, truth) == ours
        assert cw.reward(recipe).score_pair(text(response="Sorry."), truth).total == 4.0
        for nothing in ("", "zzz", "<think>so</think>", "<think>so", "<response>Sorry."):
            assert scores(recipe, nothing, truth) == {"format": 0.0, "correctness": 3.0}


def test_unreadable_programs_of_other_forms_were_meant_to_call() -> None:
    parser = cw.parser("json")
    task = cw.Task("t", "", {}, cw.Answer(), cw.environment("none", tools=[]), program=cw.Program())
    assert cw.reward(PAPER).score(task, parser.render(cw.Program())).total == 4.0
    assert cw.reward(PAPER).score(task, "zzz").total == -3.0


def test_order_of_calls() -> None:
    swapped, truth = text(OTHER, ONE), text(ONE, OTHER)
    assert correct("toolrl-released-coarse", swapped, truth) == -3.0
    assert correct("toolrl-released-refined", swapped, truth) == pytest.approx(6 * 5 / 6 - 3)
    for recipe in (PAPER, "toolrl-coarse", "toolrl-finegrained", "toolrl-intermediate"):
        assert correct(recipe, swapped, truth) == 3.0


def test_order_of_keys() -> None:
    mine = {"name": "f", "parameters": {"a": 1, "b": 2}}
    theirs = {"name": "f", "parameters": {"b": 2, "a": 3}}
    assert correct("toolrl-released-refined", text(theirs), text(mine)) == pytest.approx(6 * 2 / 4 - 3)
    assert correct("toolrl-finegrained", text(theirs), text(mine)) == pytest.approx(6 * 3 / 4 - 3)


def test_line_breaks_between_blocks() -> None:
    roomy = text(ONE).replace("</think>\n", "</think>\n\n  ") + "\n"
    assert scores(RELEASED, roomy, text(ONE))["format"] == 0.0
    assert scores(PAPER, roomy, text(ONE))["format"] == 1.0
    for recipe in (RELEASED, PAPER):
        assert scores(recipe, text(ONE) + "\nThat is all.", text(ONE)) == {"format": 0.0, "correctness": 3.0}


def test_a_thought_ends_where_a_block_follows() -> None:
    junk = "<think>a</think> junk <think>b</think>\n" + text(ONE).split("</think>\n", 1)[1]
    for recipe in (RELEASED, PAPER):
        assert scores(recipe, junk, text(ONE)) == {"format": 1.0, "correctness": 3.0}
    assert scores(PAPER, "<think>a</think> junk\n" + text(ONE).split("</think>\n", 1)[1], text(ONE))["format"] == 0.0


def test_calls_in_several_blocks() -> None:
    two = text(ONE) + "\n<tool_call>\n" + json.dumps(OTHER) + "\n</tool_call>"
    assert correct(RELEASED, two, text(ONE, OTHER)) < 3.0
    assert scores(PAPER, two, text(ONE, OTHER)) == {"format": 0.0, "correctness": 3.0}


def test_an_unclosed_thought_calls_nothing() -> None:
    unclosed = text(ONE).replace("</think>", "")
    assert correct(RELEASED, unclosed, text(ONE)) == 3.0
    assert scores(PAPER, unclosed, text(ONE)) == {"format": 0.0, "correctness": -3.0}


def test_words_that_look_like_a_chat_template() -> None:
    completion = "<|im_start|>assistant" + text(ONE)
    assert scores(RELEASED, completion, text(ONE)) == {"format": 1.0, "correctness": 3.0}
    assert scores(PAPER, completion, text(ONE)) == {"format": 0.0, "correctness": 3.0}


def test_calls_without_parameters() -> None:
    for recipe in (RELEASED, PAPER, GUARDED):
        assert correct(recipe, text(EMPTY), text(EMPTY)) == 3.0
    bare = {"name": "other", "parameters": {}}
    assert correct(PAPER, text(bare), text(EMPTY)) == pytest.approx(6 * 1 / 2 - 3)  # names 0, and 0/0 of the keys is 1


def test_length() -> None:
    truth = text(ONE)
    thought = "word " * 300
    paper = cw.reward("toolrl-length").score_pair(text(ONE, thought=thought), truth)
    assert paper.scores["length"].score.value == 300 / 512
    released = cw.reward("toolrl-released-withlength").score_pair(text(ONE, thought=thought), truth)
    assert released.scores["length"].score.value == 0.59
    assert cw.reward("toolrl-length").score_pair(text(ONE, thought="word " * 600), truth).total == 5.0


def progress(step: int, total: int = 105) -> Progress:
    return Progress(step, total)


def test_dynamic_length_targets() -> None:
    completion, truth = text(ONE, thought="word " * 256), text(ONE)
    for step, target in ((0, 512), (105, 1024)):
        reward = cw.reward("toolrl-dynamic-length").score_pair(completion, truth, progress(step))
        assert reward.scores["length"].score.value == pytest.approx(256 / target)
    for step, target in ((0, 384), (105, 640)):
        released = cw.reward("toolrl-released-withlength_dynamic")
        reward = released.score_pair(completion, truth, progress(step))
        assert reward.scores["length"].score.value == pytest.approx(round(256 / target, 2))


@pytest.mark.parametrize(
    ("recipe", "step", "format_range", "correct_range"),
    [
        ("toolrl-equal-max", 0, (0, 1), (-1, 1)),
        ("toolrl-two-stage", 0, (0, 1), (-1, 1)),
        ("toolrl-two-stage", 29, (0, 1), (-1, 1)),
        ("toolrl-two-stage", 30, (0, 0.5), (-3, 3)),
        ("toolrl-released-twostage", 29, (0, 1), (-1, 1)),
        ("toolrl-released-twostage", 30, (0, 0.5), (-3, 3)),
        ("toolrl-dynamic-scale", 0, (-2, 2), (-2, 2)),
        ("toolrl-dynamic-scale", 42, (-1.6, 1.6), (-2.4, 2.4)),
        ("toolrl-dynamic-scale", 105, (-1, 1), (-3, 3)),
        ("toolrl-released-schedulereward", 0, (-2, 2), (-2, 2)),
        ("toolrl-released-schedulereward", 105, (-1, 1.3), (-2.7, 2.7)),
        ("toolrl-released-schedulereward", 200, (-1, 1), (-3, 3)),
    ],
)
def test_scales(recipe: str, step: int, format_range: tuple[float, float], correct_range: tuple[float, float]) -> None:
    scorer, truth = cw.reward(recipe), text(ONE)
    best = scorer.score_pair(text(ONE), truth, progress(step)).scores
    worst = scorer.score_pair("nothing", truth, progress(step)).scores
    for name, (low, high) in (("format", format_range), ("correctness", correct_range)):
        assert (worst[name].score.value, best[name].score.value) == pytest.approx((low, high))
        assert (best[name].score.low, best[name].score.high) == pytest.approx((low, high))


def test_the_first_step() -> None:
    """The released trainer calls its first step 1, ours 0; a row's step is taken as it is given."""
    truth, half = text(ONE), text(ONE, thought="word " * 100)
    for variant in VARIANTS:
        name = f"toolrl-released-{variant}"
        as_given, from_one = cw.reward(name), cw.reward(name, first_step=1)
        for step in (0, 28, 29, 30, 74, 104, 149):
            for completion in (half, text(OTHER), "nothing"):
                shifted = from_one.score_pair(completion, truth, progress(step))
                given = as_given.score_pair(completion, truth, progress(step + 1))
                assert {name: weighted.score for name, weighted in shifted.scores.items()} == {
                    name: weighted.score for name, weighted in given.scores.items()
                }
    twice = cw.reward("toolrl-released-twostage", first_step=1)
    stages = [twice.score_pair(truth, truth, progress(step)).total for step in range(105)]
    assert (stages.count(2.0), stages.count(3.5)) == (29, 76)
    printed = cw.reward("toolrl-two-stage")
    stages = [printed.score_pair(truth, truth, progress(step)).total for step in range(105)]
    assert (stages.count(2.0), stages.count(3.5)) == (30, 75)  # "in the first s training steps"
    with pytest.raises(cw.UsageError, match="'first_step' of toolrl-released-default is a step, 0 or more, not -1"):
        cw.reward("toolrl-released-default", first_step=-1)


def test_options_are_what_they_may_be() -> None:
    for name, options, said in (
        (PAPER, {"matching": "best"}, "'matching': Input should be 'optimal' or 'greedy', not 'best'"),
        (GUARDED, {"pairs": "some"}, "'any' or 'same-name', not 'some'"),
        (RELEASED, {"names": "list"}, "'multiset' or 'set', not 'list'"),
        ("toolrl-length", {"extra_calls": "dear"}, "'free' or 'counted', not 'dear'"),
        ("toolrl-coarse", {"extra_calls": "counted"}, "one call too many loses everything there"),
        ("toolrl-two-stage", {"switch": -1}, "'switch' of toolrl-two-stage is a number of steps, 0 or more, not -1"),
        (PAPER, {"extra_calls": "counted"}, "no option of the reward recipe 'toolrl' named 'extra_calls'"),
    ):
        with pytest.raises(cw.UsageError, match=re.escape(said)):
            cw.reward(name, **options)
    with pytest.raises(cw.UsageError, match=re.escape("named 'toolrl-as-printed'. Did you mean 'toolrl'?")):
        cw.reward("toolrl-as-printed")


def test_ablations_of_the_guarded_reward() -> None:
    truth = {"name": "f", "parameters": {"a": 1}}
    twice = text(truth, truth)
    for change, guarded in (("finegrained", 6 * 3 / 5 - 3), ("intermediate", 6 * 2 / 3 - 3), ("equal-max", 1 / 5)):
        assert correct(f"toolrl-{change}", twice, text(truth)) == (1.0 if change == "equal-max" else 3.0)
        assert correct(f"toolrl-{change}", twice, text(truth), extra_calls="counted") == pytest.approx(guarded)
    assert correct("toolrl-coarse", twice, text(truth)) == -3.0


@pytest.mark.parametrize(
    "recipe", ["toolrl-two-stage", "toolrl-dynamic-scale", "toolrl-dynamic-length", "toolrl-released-twostage"]
)
def test_a_schedule_needs_the_progress(recipe: str) -> None:
    with pytest.raises(cw.UsageError, match="'step' and 'total_steps'"):
        cw.reward(recipe).score_pair(text(ONE), text(ONE))
    with pytest.raises(DataError, match="'step' and 'total_steps'"):
        cw.reward(recipe).row_task({"id": "1", "ground_truth": text(ONE)})


def test_granularities() -> None:
    wrong = {"name": "get", "parameters": {"city": "Oslo", "m": 1}}
    truth = text(ONE)
    assert correct(PAPER, text(wrong), truth) == pytest.approx(6 * (1 + 1 / 3) / 4 - 3)
    assert correct("toolrl-finegrained", text(wrong), truth) == pytest.approx(6 * 1 / 4 - 3)
    assert correct("toolrl-intermediate", text(wrong), truth) == pytest.approx(6 * 1 / 2 - 3)
    assert correct("toolrl-coarse", text(wrong), truth) == -3.0
    for recipe in (PAPER, "toolrl-finegrained", "toolrl-intermediate", "toolrl-coarse"):
        assert correct(recipe, text(ONE), text(ONE)) == 3.0  # S = 1 + |G| and 1: a right answer reaches the maximum
    assert correct("toolrl-finegrained", text(ONE), text(ONE, OTHER)) == pytest.approx(6 * 3 / 6 - 3)
    assert correct("toolrl-intermediate", text(ONE), text(ONE, OTHER)) == pytest.approx(6 * 1.5 / 3 - 3)


def test_every_ground_truth_is_checked_before_training() -> None:
    recipe = cw.reward(PAPER)
    for bad, reason in (
        (text("oops"), "not JSON"),
        ("plain", "it has no"),
        ("<think>a</think><tool_call></tool_call>", "empty"),
    ):
        task = recipe.row_task({"id": "good", "ground_truth": text(ONE)})
        with pytest.raises(BadGroundTruth, match=reason):
            recipe.check([task, cw.Task("bad", "", {}, cw.Answer(), task.environment, facts={"ground_truth": bad})])
    with pytest.raises(DataError, match="no 'ground_truth'"):
        recipe.row_task({"id": "1"})


def test_programs_in_other_forms_are_scored_too() -> None:
    parser = cw.parser("json")
    gold = cw.Program((cw.Call(3, "a", {}), cw.Call(5, "b", {"x": cw.Reference(3)})))
    task = cw.Task("t", "", {}, cw.Answer((1,)), cw.environment("none", tools=[]), program=gold)
    renumbered = cw.Program((cw.Call(0, "a", {}), cw.Call(1, "b", {"x": cw.Reference(0)})))
    recipe = cw.reward(PAPER)
    assert recipe.score(task, parser.render(renumbered)).total == 4.0
    assert recipe.score(task, "no program at all").total == -3.0
    assert recipe.score(task, parser.render(cw.Program((cw.Call(0, "a", {}),)))).total == pytest.approx(
        1 + 6 * (0.5 + 1) / 4 - 3
    )


@pytest.mark.parametrize(
    "completion",
    [
        "",
        "<think>" * 2000,
        "<tool_call>" + '{"a":' * 50_000,
        "<tool_call>\n" + '{"name": "f", "parameters": ' * 3000 + "\n",
        "<tool_call>" + "[" * 100_000 + "</tool_call>",
        "<tool_call>\n" + "{\n" * 30_000 + "</tool_call>",
        "<tool_call>" + "1" * 10_000 + "</tool_call>",
        "<think></think>x" * 10_000,
        text('{"name": {"a": 1}, "parameters": {}}', '{"name": [], "parameters": 3}', "7", "null"),
        text('{"name": "get", "parameters": {"city": NaN, "n": 1e999}}'),
        text('{"name": "get", "parameters": {"city": "\\ud800", "n": 1}}'),
        "x" * 500_000,
    ],
)
@pytest.mark.parametrize("recipe", [RELEASED, PAPER, GUARDED, "toolrl-released-intermediate", "toolrl-coarse"])
def test_no_text_of_a_model_raises(recipe: str, completion: str) -> None:
    reward = cw.reward(recipe).score_pair(completion, text(ONE, OTHER))
    assert reward.total is not None
    json.dumps(reward.to_json())


def test_reading_takes_time_in_proportion() -> None:
    many = "<tool_call>\n" + "{x\n" * 100_000 + "</tool_call>"
    assert len(read_text(many).defects) == 1
    assert len(read_text(text(*[ONE] * 1000)).calls) == 256


def test_evidence_is_found_when_it_is_asked_for() -> None:
    score = cw.reward(PAPER).score_pair(text(EMPTY), text(ONE)).scores["correctness"].score
    assert isinstance(score, cw.Score)
    assert [evidence.code for evidence in score.evidence] == ["missing_call", "extra_call"]
    assert score.evidence is score.evidence
    assert pickle.loads(pickle.dumps(score)).evidence == score.evidence
    assert copy.copy(score).value == score.value


def test_every_test_that_the_page_names_is_here(root: Path) -> None:
    page = (root / "docs" / "toolrl-and-prove.md").read_text("utf-8").split("## Prove")[0]
    named = set(re.findall(r"`(test_\w+)`", page))
    here = Path(__file__).read_text("utf-8")
    assert named
    assert {name for name in named if f"def {name}(" not in here} == set()
