"""Ground truths, optimal matching, masking, final states and what composes with other recipes."""

from __future__ import annotations

import json
import random
from itertools import product
from typing import Any

import pytest

import callwright as cw
from callwright.environments.protocol import Outcome
from callwright.errors import DataError
from callwright_plugins.prove_rewards.alignment import Made, agreement, best, covered_steps, first_unused, fits
from callwright_plugins.prove_rewards.truth import TrueCall, Truth


class Shop:
    """A cart: ``add`` and ``remove`` change it, ``total`` reads it. ``lost`` loses the session."""

    name = "shop"
    pure = False
    tools = {  # noqa: RUF012
        name: cw.ToolSpec(
            name,
            parameters={"type": "object", "properties": {key: {"type": kind} for key, kind in given.items()}},
            result={"type": "object", "properties": {"id": {"type": "integer"}}},
            result_field="id",
        )
        for name, given in (("add", {"item": "string"}), ("remove", {"id": "integer"}), ("total", {}), ("lost", {}))
    }

    def open(self, scenario: str = "", seed: int = 0) -> Cart:
        if scenario == "closed":
            raise cw.InfrastructureFailure("the shop is closed")
        return Cart()


class Cart:
    def __init__(self) -> None:
        self.items: dict[int, str] = {}
        self.last = 0

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        if tool == "lost":
            raise cw.InfrastructureFailure("connection lost")
        if tool == "add":
            self.last += 1
            self.items[self.last] = arguments["item"]
            return Outcome("ok", {"id": self.last})
        if tool == "remove" and self.items.pop(arguments["id"], None) is None:
            return Outcome("execution_error", None, "no_such_item", "there is no such item")
        return Outcome("ok", {"id": len(self.items)})

    def snapshot(self) -> Any:
        return {"items": {str(key): item for key, item in self.items.items()}, "made": self.last}

    def digest(self) -> str:
        return json.dumps(self.snapshot(), sort_keys=True)

    def close(self) -> None:
        pass


SHOP, PARSER = Shop(), cw.parser("json")
GOLD = cw.Program(
    (
        cw.Call(0, "add", {"item": "pen"}),
        cw.Call(1, "add", {"item": "ink"}),
        cw.Call(2, "remove", {"id": cw.Reference(0)}),
    )
)


def task(program: cw.Program | None = GOLD, scenario: str = "", **facts: Any) -> cw.Task:
    return cw.Task("t", "", SHOP.tools, cw.Answer((1,)), SHOP, scenario=scenario, program=program, facts=facts)


def text(*calls: tuple[str, dict[str, Any]]) -> str:
    return PARSER.render(cw.Program(tuple(cw.Call(i, tool, given) for i, (tool, given) in enumerate(calls))))


def test_steps_and_edges_of_a_reference_program() -> None:
    prove = cw.reward("prove")
    assert prove.score(task(), PARSER.render(GOLD)).total == pytest.approx(1.3)
    turns = [text(("add", {"item": "pen"})), text(("add", {"item": "ink"})), text(("remove", {"id": 1}))]
    assert prove.score_attempt(cw.Attempt(task(), turns, PARSER)).total == pytest.approx(1.3)
    wrong = prove.score_attempt(cw.Attempt(task(), [*turns[:2], text(("remove", {"id": 2}))], PARSER))
    assert wrong.scores["argument"].score.value == pytest.approx(2 / 3)
    early = prove.score(task(), text(("remove", {"id": 1}), ("add", {"item": "pen"}), ("add", {"item": "ink"})))
    assert early.scores["coverage"].score.value == pytest.approx(2 / 3)
    assert early.scores["validity"].score.value == pytest.approx(8 / 9)


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ("x", "not a list"),
        ([3], "step 0 is not an object"),
        ([{"calls": []}], "step 0 has no calls"),
        ([{"name": "add"}, {"name": "add", "after": [1]}], "'after' of step 1"),
        ([{"name": "add", "after": [True]}], "'after' of step 0"),
        ([{"arguments": {}}], "a call of step 0"),
    ],
)
def test_bad_steps_are_named(steps: Any, reason: str) -> None:
    with pytest.raises(DataError, match=f"task 't': the fact 'steps' cannot be read: .*{reason}"):
        cw.reward("prove").score(task(None, steps=steps), text())
    with pytest.raises(DataError, match=reason):
        cw.reward("prove").check([task(), task(None, steps=steps)])


def test_a_task_without_ground_truth_is_refused() -> None:
    with pytest.raises(DataError, match="neither a reference program nor"):
        cw.reward("prove").score(task(None), text())


def test_infrastructure_failures_mask() -> None:
    for recipe in ("prove", "prove-no-validity", "prove-state", "state"):
        reward = cw.reward(recipe).score(task(), text(("add", {"item": "pen"}), ("lost", {})))
        assert reward.total is None
        assert "connection lost" in (reward.masked or "")
    episode = cw.Attempt(task(), [text(("add", {"item": "pen"})), text(("lost", {}))], PARSER)
    for recipe in ("prove", "tier-efficiency", "state"):
        assert cw.reward(recipe).score_attempt(episode).total is None
    closed = cw.reward("state").score(task(scenario="closed"), text())
    assert closed.total is None
    assert "the shop is closed" in (closed.masked or "")


def test_final_state() -> None:
    state = cw.reward("state")
    assert state.score(task(), PARSER.render(GOLD)).total == 1.0
    turns = [text(("add", {"item": "pen"}), ("total", {})), text(("add", {"item": "ink"}), ("remove", {"id": 1}))]
    assert state.score_attempt(cw.Attempt(task(), turns, PARSER)).total == 1.0
    kept = state.score(task(), text(("add", {"item": "pen"}), ("add", {"item": "gum"})))
    assert kept.total == 0.0
    assert [str(evidence) for evidence in kept.scores["final_state"].score.evidence] == [
        'items.1 is "pen", expected not there',
        'items.2 is "gum", expected "ink"',
    ]
    assert state.score(task(), text()).total == 0.0
    assert state.score(task(cw.Program()), text()).total == 1.0
    assert state.score(task(cw.Program()), text(("total", {}))).total == 1.0
    assert state.score(task(), "no program").total == 0.0
    combined = cw.reward("prove-state")
    assert combined.score(task(), PARSER.render(GOLD)).total == pytest.approx(2.3)
    assert combined.high == pytest.approx(2.3)


def test_efficiency_composes_with_any_recipe() -> None:
    tier, both = cw.reward("tier"), cw.reward("tier-efficiency")
    assert both.name == "tier-efficiency"
    one = cw.Program((cw.Call(0, "total", {}),))
    for extra, penalty in ((0, 0.0), (1, 0.0), (2, 0.15 * 0.25), (4, 0.15 * 0.75)):
        completion = text(*[("total", {})] * (1 + extra))
        wanted = tier.score(task(one), completion).total
        assert both.score(task(one), completion).total == pytest.approx(wanted - penalty)
    assert both.high == tier.high == 1.0
    other = cw.reward("tier-efficiency", base="toolrl", weight=1.0)
    assert other.name == "toolrl-efficiency"
    assert other.score(task(one), text(*[("total", {})] * 3)).total == pytest.approx(
        cw.reward("toolrl").score(task(one), text(*[("total", {})] * 3)).total - 0.25
    )


def test_first_unused_and_optimal_matching() -> None:
    wanted = [{"name": "add", "arguments": {"item": "pen"}}, {"name": "add", "arguments": {"item": "ink"}}]
    swapped = text(("add", {"item": "ink"}), ("add", {"item": "pen"}))
    known = task(None, steps=wanted)
    assert cw.reward("prove").score(known, swapped).scores["argument"].score.value == 0.0
    assert cw.reward("prove", matching="optimal").score(known, swapped).scores["argument"].score.value == 1.0


def test_optimal_matching_equals_trying_everything() -> None:
    rng = random.Random(0)
    better = 0
    for _ in range(300):
        steps = rng.randint(1, 3)
        before = tuple(tuple(other for other in range(step) if rng.random() < 0.5) for step in range(steps))
        calls = tuple(
            TrueCall(step, rng.choice("fg"), {"a": rng.randint(0, 2), **({"b": 1} if rng.random() < 0.3 else {})})
            for step in range(steps)
            for _ in range(rng.randint(1, 2))
        )
        truth = Truth(before, calls, frozenset("fg"))
        made = []
        for index in range(rng.randint(0, 5)):
            given = {"a": rng.randint(0, 2), **({"b": rng.randint(0, 1)} if rng.random() < 0.5 else {})}
            made.append(Made(index, rng.choice("fgh"), given, given))

        def merit(partner: Any, truth: Truth = truth, made: list[Made] = made) -> tuple[int, float]:
            agreed = sum(agreement(c, made[at]) for c, at in zip(truth.calls, partner, strict=True) if at >= 0)
            return sum(covered_steps(truth, partner)), round(agreed, 9)

        legal = [
            partner
            for partner in product(range(-1, len(made)), repeat=len(calls))
            if len({at for at in partner if at >= 0}) == sum(at >= 0 for at in partner)
            and all(at < 0 or fits(call, made[at]) for call, at in zip(calls, partner, strict=True))
        ]
        start = first_unused(calls, made)
        found = best(truth, made, start)
        assert tuple(found) in legal
        assert merit(found) == max(map(merit, legal))
        better += merit(found) > merit(start)
    assert better > 20


def test_optimal_matching_gives_up_in_time() -> None:
    calls = tuple(TrueCall(0, "f", {"a": index}) for index in range(40))
    made = [Made(index, "f", {"a": -1}, {"a": -1}) for index in range(60)]
    truth = Truth(((),), calls, frozenset("f"))
    assert covered_steps(truth, best(truth, made, first_unused(calls, made))) == [True]


def test_components_are_registered_for_other_recipes() -> None:
    registry = cw.default_registry()
    names = ["prove-validity", "prove-coverage", "efficiency", "prove-name", "prove-argument", "prove-abstention"]
    for name in [*names, "final-state"]:
        component = registry.create("reward component", name)
        assert component.low <= component.high
    assert registry.create("reward component", "efficiency", beta=0.1).budget(30) == 33
