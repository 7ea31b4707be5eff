"""What a cut-off completion earns: as it is, nothing known, a floor, or what the algorithm leaves of it."""

from __future__ import annotations

import json
import math
from typing import Any, get_args

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright.commands.scoring.reward_rows import RewardWriter
from callwright.episodes import Conversation
from callwright.errors import UnknownName
from callwright.recipe_file import RewardChoice
from callwright.walk import TruncationPolicy
from callwright.walk.limits import TRUNCATION_POLICIES
from callwright.walk.reward import TRUNCATED

CORPUS = cw.corpus("toolworld-mini-v1")
TASK = CORPUS.task("train-3")
FORM = cw.parser("json")
assert TASK.program is not None
GOLD = FORM.render(TASK.program)
#: Right, and then 2,600 characters of anything.
ENDLESS = f"{GOLD}\n{'and so on ' * 260}"
WRONG = GOLD.replace('"0"', '"7"')
OURS = ["tier", "tier-guarded", "simple", "tier-no-parse", "tier-no-execution", "prove", "prove-no-name", "state"]


def cut(text: str) -> cw.Completion:
    return cw.Completion(text, truncated=True)


@pytest.mark.parametrize("name", [*OURS, "prove-state", "tier-efficiency"])
def test_gold_and_garbage_that_never_ended_earns_nothing(name: str) -> None:
    recipe = cw.reward(name)
    assert recipe.truncation == "floor"
    whole = recipe.score(TASK, ENDLESS).total
    assert whole is not None
    assert whole >= 1.0, "what it would earn, had it ended"
    assert recipe.score(TASK, cut(ENDLESS)).total == 0.0


@pytest.mark.parametrize(
    ("name", "floor"), [("toolrl", -3.0), ("toolrl-length", -3.0), ("toolrl-coarse", -3.0), ("toolrl-equal-max", -1.0)]
)
def test_under_toolrl_it_earns_the_least_of_a_wrong_answer(name: str, floor: float) -> None:
    recipe = cw.reward(name)
    assert recipe.floor == floor
    whole = recipe.score(TASK, GOLD).total
    assert whole is not None
    assert whole > 1.0
    assert recipe.score(TASK, cut(GOLD)).total == floor


@pytest.mark.parametrize("policy", ["as_is", "overlong"])
def test_as_it_is_and_overlong_pay_what_the_text_is_worth(policy: TruncationPolicy) -> None:
    recipe = cw.reward("tier", truncated=policy)
    for text in (GOLD, ENDLESS, WRONG, ""):
        assert recipe.score(TASK, cut(text)) == recipe.score(TASK, text)


def test_a_mask_leaves_it_out_and_says_why() -> None:
    recipe = cw.reward("tier", truncated="mask")
    found = recipe.score(TASK, cut(ENDLESS))
    assert (found.total, found.masked_cut) == (None, True)
    assert found.masked is not None
    assert "cut off by a limit of tokens" in found.explain()
    assert recipe.score(TASK, ENDLESS).total == 1.0


def test_every_released_recipe_pays_as_the_released_code_does() -> None:
    from callwright.plugins import default_registry

    names = [name for name in default_registry().names("reward recipe") if "released" in name]
    assert len(names) >= 17
    for name in names:
        assert cw.reward(name).truncation == "as_is"


def test_a_lost_machinery_is_said_before_the_cut() -> None:
    lost = cw.Completion(GOLD, truncated=True, masked="the server is down")
    for policy in TRUNCATION_POLICIES:
        found = cw.reward("tier", truncated=policy).score(TASK, lost)
        assert (found.total, found.masked, found.masked_cut) == (None, "the server is down", False)


@given(st.sampled_from([GOLD, ENDLESS, WRONG, "", "no"]) | st.text(max_size=60), st.floats(-5, 5), st.booleans())
def test_it_never_earns_more_than_the_same_text_and_the_parts_sum_up(text: str, floor: float, toolrl: bool) -> None:
    name = "toolrl" if toolrl else "tier-efficiency"
    recipe = cw.reward(name, floor=floor)
    whole, found = recipe.score(TASK, text), recipe.score(TASK, cut(text))
    assert whole.total is not None
    assert found.total == min(whole.total, floor)
    assert recipe.low <= found.total <= recipe.high
    assert math.isclose(sum(one.contribution for one in found.scores.values()), found.total, abs_tol=1e-9)
    assert list(found.scores) == [*whole.scores, TRUNCATED]
    lost = found.scores[TRUNCATED].score
    assert lost.low <= lost.value <= lost.high == 0.0
    assert (lost.evidence == ()) == (found.total == whole.total)
    assert found.stage == ("format" if lost.evidence else whole.stage)
    row = json.loads(RewardWriter().line("a", found))
    assert row == json.loads(json.dumps({"id": "a", **found.to_json()}))


def test_what_was_lost_is_said() -> None:
    found = cw.reward("tier").score(TASK, cut(GOLD))
    assert found.explain() == (
        "0: truncated -1/0: the completion was cut off by a limit of tokens, which earns at most 0"
    )
    assert found.stage == "format"


class Right(cw.RewardComponent):
    name = "right"

    def score(self, attempt: cw.Attempt) -> cw.Score:
        return cw.Score(1.0)


def test_a_reward_that_states_no_floor_pays_as_it_is() -> None:
    own = cw.RewardRecipe("own", (cw.Term(Right()),))
    assert own.truncation == "as_is"
    assert own.score(TASK, cut("x")).total == 1.0
    assert evolve(own, floor=0.25).score(TASK, cut("x")).total == 0.25
    assert evolve(own, floor=-2).low == -2.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"truncated": "flor"}, "no policy of truncated completions named 'flor'. Did you mean 'floor'"),
        ({"truncated": "floor"}, "states no floor; set 'floor'"),
        ({"floor": math.nan}, "'floor' is a finite number"),
        ({"floor": True}, "'floor' is a finite number"),
        ({"floor": "0"}, "'floor' is a finite number"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(cw.UsageError, match=message):
        cw.RewardRecipe("own", (cw.Term(Right()),), **options)


def test_a_term_may_not_have_its_name() -> None:
    terms = (cw.Term(Right(), name=TRUNCATED),)
    assert cw.RewardRecipe("own", terms).score(TASK, "x").total == 1.0
    with pytest.raises(cw.UsageError, match="a term is named 'truncated'"):
        cw.RewardRecipe("own", terms, floor=0.0)


def test_a_wrong_option_is_named() -> None:
    with pytest.raises(UnknownName, match=r"named 'truncatd'\. Did you mean 'truncated'"):
        cw.reward("tier", truncatd="mask")


def test_the_file_and_the_walk_know_the_same_policies() -> None:
    stated = next(one for one in get_args(RewardChoice.model_fields["truncated"].annotation) if one is not type(None))
    assert set(get_args(stated)) == set(TRUNCATION_POLICIES) == set(get_args(TruncationPolicy))


# Attempts -------------------------------------------------------------------------------------------------------------


def test_an_attempt_knows_whether_it_was_cut_off() -> None:
    assert not cw.Attempt(TASK, GOLD, FORM).truncated
    assert cw.Attempt(TASK, cut(GOLD), FORM).truncated
    assert cw.Attempt(TASK, [GOLD, cut("x")], FORM).truncated
    assert not cw.Attempt(TASK, [], FORM).truncated
    for stop, expected in (("tokens", True), ("context", True), ("answered", False), ("assistant_turns", False)):
        turns = cw.Attempt(TASK, GOLD, FORM).turns
        assert cw.Attempt.of(TASK, FORM, turns, stop=stop).truncated is expected  # type: ignore[arg-type]
    told = cw.Attempt(TASK, cut(GOLD), FORM).turns
    assert cw.Attempt.told(TASK, FORM, told).truncated
    assert cw.Attempt.told(TASK, FORM, told).at(cw.walk.Progress(1, 2)).truncated


@pytest.mark.parametrize("policy", TRUNCATION_POLICIES)
def test_an_episode_that_ran_out_of_tokens_is_cut_off(policy: TruncationPolicy) -> None:
    limits = cw.TurnLimits(assistant_turns=3)
    episode = Conversation(TASK, FORM, (), cw.Conditions(limits=limits))
    episode.accept(cut(GOLD))
    assert episode.stop == "tokens"
    found = cw.reward("tier", truncated=policy).score_attempt(episode.attempt)
    assert found.total == {"as_is": 1.0, "overlong": 1.0, "mask": None, "floor": 0.0}[policy]


def test_what_being_cut_off_costs_is_said(make_attempt: Any) -> None:
    whole = make_attempt('[["double", {"number": 2}]]', 4)
    cut = cw.Attempt(whole.task, cw.Completion(whole.completion.text, truncated=True), whole.parser)
    lost = cw.reward("tier", truncated="floor", floor=-1.0).score_attempt(cut).scores[TRUNCATED].score
    assert [evidence.code for evidence in lost.evidence] == ["truncated"]
    assert "earns at most -1" in lost.evidence[0].reason
