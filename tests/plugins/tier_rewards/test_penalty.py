"""lambda_p of TIER, section 2.2, as an option: clip(1 - penalty p, 0, 1) for parameters and types alike."""

from __future__ import annotations

import json
import pickle

import pytest

import callwright as cw


@cw.tool(read_only=True)
def nearby(place: str, limit: int, radius: float, floors: int, stars: float) -> list[str]:
    """Places near another."""
    return [place] * limit


GIVEN = {"place": "Rome", "limit": 1, "radius": 2.5, "floors": 3, "stars": 4.5}
WORLD = cw.environment("world", tools=[nearby])
TASK = cw.Task("near Rome", "Where?", WORLD.tools, cw.Answer((["Rome"],)), environment=WORLD)


def completion(missing: int, mistyped: int) -> str:
    """One call that lacks its last parameters and has no values of the right type for its first ones."""
    arguments = dict(list(GIVEN.items())[: len(GIVEN) - missing])
    wrong: dict[str, object] = {key: {} for key in list(arguments)[:mistyped]}
    program = {"0": {"nearby": {**arguments, **wrong}}}
    return f'<think>\nso\n</think>\n<tool_call return="one">\n{json.dumps(program)}\n</tool_call>'


@pytest.mark.parametrize("recipe", ["tier", "tier-guarded", "tier-no-execution"])
@pytest.mark.parametrize("penalty", [0, 0.1, 0.25, 0.5, 1.0, 3])
def test_each_mismatch_costs_the_penalty_down_to_nothing(recipe: str, penalty: float) -> None:
    reward = cw.reward(recipe, penalty=penalty)
    for missing in range(4):
        for mistyped in range(len(GIVEN) - missing):
            scores = reward.score(TASK, completion(missing, mistyped)).scores
            assert scores["parameters"].score.value == pytest.approx(max(0.0, 1 - penalty * missing), abs=1e-12)
            assert scores["types"].score.value == pytest.approx(max(0.0, 1 - penalty * mistyped), abs=1e-12)
            assert len(scores["types"].score.evidence) == mistyped


def test_the_papers_penalty_is_the_default() -> None:
    for text in (completion(0, 0), completion(1, 2), completion(2, 1)):
        assert cw.reward("tier").score(TASK, text) == cw.reward("tier", penalty=0.25).score(TASK, text)


def test_a_reward_with_a_penalty_goes_to_other_processes() -> None:
    reward = pickle.loads(pickle.dumps(cw.reward("tier", penalty=0.1)))
    assert reward.score(TASK, completion(2, 0)).scores["parameters"].score.value == pytest.approx(0.8)


@pytest.mark.parametrize("penalty", [-0.1, float("nan"), float("inf"), "a quarter", True, None])
def test_a_penalty_is_a_number_from_zero_up(penalty: object) -> None:
    with pytest.raises(cw.UsageError, match=r"the reward recipe 'tier': 'penalty'.*(number|equal to 0), not "):
        cw.reward("tier", penalty=penalty)


@pytest.mark.parametrize("recipe", ["simple", "tier-no-parse", "tier-released"])
def test_a_reward_without_a_penalty_says_so(recipe: str) -> None:
    with pytest.raises(cw.CallwrightError, match="penalty"):
        cw.reward(recipe, penalty=0.1)
