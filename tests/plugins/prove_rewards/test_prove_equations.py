"""Prove's recipes equal a literal transcription of its equations on generated episodes, and examples by hand."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import callwright as cw


@pytest.fixture(scope="module")
def command(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("prove_agreement", root / "benchmarks" / "prove_agreement.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def world(command: ModuleType) -> Any:
    return command.World(command.load_oracle())


def test_generated_episodes_agree_with_the_equations(command: ModuleType) -> None:
    seen, wrong = command.compare(2000, seed=1)
    assert wrong == []
    assert all(count > 50 for count in seen.values()), seen


PARSER = cw.parser("json")
FIND = {"name": "find", "arguments": {"city": "Rome"}}
BOOK = {"name": "book", "arguments": {"city": "Rome", "nights": 3}}
PRICE = {"name": "price", "arguments": {"amount": 1}}


def attempt(world: Any, steps: list[Any], *turns: list[dict[str, Any]], answer: tuple[Any, ...] = (1,)) -> cw.Attempt:
    task = cw.Task("t", "", world.tools, cw.Answer(answer), world, facts={"steps": steps})
    texts = [
        PARSER.render(cw.Program(tuple(cw.Call(i, c["name"], c["arguments"]) for i, c in enumerate(turn)), "all"))
        for turn in turns
    ]
    return cw.Attempt(task, texts, PARSER)


def values(made: cw.Attempt, recipe: str = "prove", **options: Any) -> dict[str, float]:
    reward = cw.reward(recipe, **options).score_attempt(made)
    return {name: weighted.score.value for name, weighted in reward.scores.items()}


def total(made: cw.Attempt, recipe: str = "prove") -> float | None:
    return cw.reward(recipe).score_attempt(made).total


def test_everything_right_is_worth_one_point_three(world: Any) -> None:
    steps = [{"calls": [FIND, PRICE]}, {"calls": [BOOK], "after": [0]}]
    for made in (attempt(world, steps, [FIND, PRICE, BOOK]), attempt(world, steps, [PRICE, FIND], [BOOK], [])):
        assert total(made) == pytest.approx(1.3)
    assert cw.reward("prove").high == pytest.approx(1.3)


def test_validity_is_graded_in_thirds(world: Any) -> None:
    unknown = {"name": "unknown", "arguments": {}}
    unfit = {"name": "book", "arguments": {"city": "Rome", "nights": "three"}}
    missing = {"name": "book", "arguments": {"city": "Rome"}}
    failing = {"name": "find", "arguments": {"city": "broken"}}
    surplus = {"name": "find", "arguments": {"city": "Rome", "other": 1}}
    for call, share in ((unknown, 0), (unfit, 1), (missing, 1), (failing, 2), (surplus, 3), (FIND, 3)):
        assert values(attempt(world, [FIND], [call]))["validity"] == pytest.approx(share / 3)
    five = attempt(world, [FIND], [unknown, unfit, missing, failing, FIND])
    assert values(five)["validity"] == pytest.approx(7 / 15)
    codes = [e.code for e in cw.reward("prove").score_attempt(five).scores["validity"].score.evidence]
    assert codes == ["name", "type", "missing", "execution_error"]


def test_coverage_needs_the_order_of_dependencies(world: Any) -> None:
    steps = [FIND, {**BOOK, "after": [0]}, PRICE]
    assert values(attempt(world, steps, [FIND, BOOK, PRICE]))["coverage"] == 1.0
    assert values(attempt(world, steps, [PRICE, FIND, BOOK]))["coverage"] == 1.0
    assert values(attempt(world, steps, [BOOK, FIND, PRICE]))["coverage"] == pytest.approx(2 / 3)
    # what it depends on is missing, so the booking is not covered either
    assert values(attempt(world, steps, [BOOK, PRICE]))["coverage"] == pytest.approx(1 / 3)
    wrong_values = {"name": "book", "arguments": {"city": "Oslo", "nights": 1}}
    assert values(attempt(world, steps, [FIND, wrong_values, PRICE]))["coverage"] == 1.0
    fewer_keys = {"name": "book", "arguments": {"city": "Rome"}}
    assert values(attempt(world, steps, [FIND, fewer_keys, PRICE]))["coverage"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("due", "made", "penalty"),
    [(1, 2, 0), (1, 3, -0.25), (1, 6, -1.0), (3, 5, 0), (3, 6, -0.1), (4, 6, 0), (4, 7, -1 / 12), (4, 1, 0)],
)
def test_efficiency(world: Any, due: int, made: int, penalty: float) -> None:
    scored = attempt(world, [{"calls": [FIND] * due}], [FIND] * made)
    assert values(scored)["efficiency"] == pytest.approx(penalty)


def test_the_flat_budget_is_the_number_of_true_calls(world: Any) -> None:
    scored = attempt(world, [FIND, PRICE], [FIND, PRICE, FIND])
    assert values(scored)["efficiency"] == 0.0
    assert values(scored, "prove-flat-budget")["efficiency"] == pytest.approx(-0.25)


def test_names_and_argument_values(world: Any) -> None:
    other = {"name": "book", "arguments": {"city": "Rome", "nights": 1}}
    scored = attempt(
        world, [BOOK, {"name": "ping", "arguments": {}}], [other, {"name": "ping", "arguments": {}}, PRICE]
    )
    assert values(scored)["name"] == pytest.approx(2 / 3)
    assert values(scored)["argument"] == pytest.approx((1 / 2 + 1) / 2)
    yes = {"name": "book", "arguments": {"city": "Rome", "nights": True}}
    assert values(attempt(world, [{"name": "book", "arguments": {"city": "Rome", "nights": 1}}], [yes]))[
        "argument"
    ] == pytest.approx(1 / 2)


RECIPES = ["prove", *(f"prove-no-{part}" for part in ("validity", "coverage", "efficiency", "name", "argument"))]


@pytest.mark.parametrize("recipe", [*RECIPES, "prove-flat-budget"])
def test_abstention_and_calling_nothing(recipe: str, world: Any) -> None:
    assert total(attempt(world, [], [], answer=()), recipe) == 1.0
    assert total(attempt(world, [], [FIND], answer=()), recipe) == 0.0
    assert total(attempt(world, [FIND], []), recipe) == 0.0
    assert total(attempt(world, [], [], [], answer=()), recipe) == 1.0
    assert total(attempt(world, [], [], [FIND], answer=()), recipe) == 0.0
    task = attempt(world, [], [], answer=()).task
    assert cw.reward(recipe).score(task, "no program").total == 0.0


@pytest.mark.parametrize(
    ("recipe", "lost"),
    list(zip(RECIPES[1:], (0.5, 0.5, 0.0, 0.2, 0.1), strict=True)),
)
def test_an_ablation_drops_one_term_and_keeps_the_other_weights(recipe: str, lost: float, world: Any) -> None:
    assert total(attempt(world, [FIND, BOOK], [FIND, BOOK]), recipe) == pytest.approx(1.3 - lost)
    assert cw.reward(recipe).high == pytest.approx(max(1.0, 1.3 - lost))  # an abstention earns 1


def test_every_lost_point_has_a_reason(world: Any) -> None:
    steps = [FIND, {**BOOK, "after": [0]}]
    wrong = {"name": "book", "arguments": {"city": "Oslo", "nights": 3}}
    reward = cw.reward("prove").score_attempt(attempt(world, steps, [wrong, FIND, PRICE, PRICE]))
    for name, weighted in reward.scores.items():
        assert weighted.score.full == (not weighted.score.evidence), name
    text = reward.explain()
    assert "call 0 book does not come after what it depends on (step 0)" in text
    assert 'call 0 book.city is "Oslo", expected "Rome"' in text
    assert "4 calls, the budget is 3 (2 are due)" in text
    assert "call 2 price is no tool of the solution" in text


def test_every_test_that_the_page_names_exists(root: Path) -> None:
    page = (root / "docs" / "toolrl-and-prove.md").read_text("utf-8").split("## Prove")[1]
    here = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", page))
    assert named
    assert {name for name in named if f"def {name}(" not in here} == set()
