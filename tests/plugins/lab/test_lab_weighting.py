"""``callwright lab --weights/--lambda``: every figure is that of scoring again with a reward of those weights."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from click.testing import Result

import callwright as cw
from callwright.language.program import Call, Program, plain
from callwright.training.evaluation import judge
from callwright_plugins.lab.ledger import kind_of
from callwright_plugins.lab.probes import Pool, variants
from callwright_plugins.lab.weighting.recording import Recording, total
from callwright_plugins.lab.weighting.schemes import FEW, make_schemes, read_penalties, read_weights

Invoke = Callable[..., Result]
GRID = {"answer": [1.0], "execution": [0.0, 3.0], "parameters": [4.0], "types": [4.0]}
PENALTIES = [0.0, 0.5]


def damaged(program: Program, rng: random.Random) -> Program:
    """A program with some parameters misnamed, doubled, mistyped or left out, so that mismatches add up."""
    calls = []
    for call in program.calls:
        arguments: dict[str, Any] = {}
        for key, value in call.arguments.items():
            kind = rng.random()
            if kind < 0.15:
                arguments[f"{key}_of"] = value
            elif kind < 0.3:
                arguments[key] = [True]
            elif kind > 0.1 + 0.3:
                arguments[key] = value
        if rng.random() < 0.2:
            arguments["and_more"] = 1
        tool = call.tool if rng.random() > 0.07 else "Nowhere"
        calls.append(Call(call.id, tool, arguments))
    return evolve(program, calls=tuple(calls))


@pytest.fixture(scope="module")
def attempts_of() -> Callable[[cw.Registry], list[tuple[str, cw.Attempt]]]:
    def make(registry: cw.Registry) -> list[tuple[str, cw.Attempt]]:
        rng = random.Random(5)
        tasks = [task for task in registry.create("corpus", "toolworld-mini-v1")["evaluation"] if task.depth > 1][:14]
        parser = registry.create("parser", "json")
        pool = Pool.of([task.program for task in tasks if task.program is not None])
        found = []
        for task in tasks:
            programs = [program for _, program in variants(task, pool)]
            for _ in range(10):
                program = rng.choice(programs)
                program = damaged(program, rng) if rng.random() < 0.6 else program
                text = parser.render(program) if rng.random() > 0.1 else "no program"
                found.append((task.id, cw.Attempt(task, text, parser)))
        return found

    return make


def changed(registry: cw.Registry, name: str, changes: dict[str, float]) -> cw.RewardRecipe:
    """The reward of a scheme, made without the lab."""
    options = {"penalty": changes["lambda"]} if "lambda" in changes else {}
    recipe: cw.RewardRecipe = registry.create("reward recipe", name, **options)
    return evolve(
        recipe, terms=tuple(evolve(term, weight=changes.get(term.name, term.weight)) for term in recipe.terms)
    )


@pytest.mark.parametrize(
    ("name", "grid", "penalties"),
    [
        ("tier", GRID, PENALTIES),
        ("tier-guarded", {"abstention": [1.0], "format": [0.5]}, [1.0]),
        ("toolrl", {"correctness": [0.5, 2.0]}, []),
        ("prove", {"coverage": [0.0, 1.0], "efficiency": [0.5]}, []),
    ],
)
def test_totals_are_those_of_a_reward_with_these_weights(
    registry: cw.Registry, attempts_of: Any, name: str, grid: dict[str, list[float]], penalties: list[float]
) -> None:
    recording = Recording(make_schemes(registry, name, grid, penalties))
    attempts = attempts_of(registry)
    reference = registry.create("reward recipe", name)
    for number, (group, attempt) in enumerate(attempts):
        recording.enter(attempt, kind_of(judge(attempt)), group, number, reference.score_attempt(attempt))
    assert len(recording.schemes.all) > len(grid)
    for scheme in recording.schemes.all:
        direct = changed(registry, name, dict(scheme.changes))
        for number, (_, attempt) in enumerate(attempts):
            values = recording.known[recording.cells[number]].values[scheme.penalty]
            assert total(scheme.recipe, values) == direct.score_attempt(attempt).total


def write(path: Path, attempts: Sequence[tuple[str, cw.Attempt]]) -> Path:
    rows = (
        {"id": number, "task": attempt.task.id, "completion": attempt.completion.text}
        for number, (_, attempt) in enumerate(attempts)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def by_hand(groups: list[list[tuple[float, float]]]) -> dict[str, float]:
    """Totals before and after, as shares, by group: every figure from its definition, pair by pair."""
    concordant = discordant = tied = first = second = signal = flips = 0
    for group in groups:
        for (x, y), (u, v) in combinations([(round(a, 9), round(b, 9)) for a, b in group], 2):
            first += x != u
            second += y != v
            concordant += (x - u) * (y - v) > 0
            discordant += (x - u) * (y - v) < 0
            tied += x != u and y == v
        after = [b for _, b in group]
        signal += max(after) - min(after) > 1e-9
        means = [math.fsum(side) / len(group) for side in zip(*group, strict=True)]
        for pair in group:
            left, right = (value - mean for value, mean in zip(pair, means, strict=True))
            flips += abs(left) > 1e-9 and abs(right) > 1e-9 and (left > 0) != (right > 0)
    everyone = [b for group in groups for _, b in group]
    return {
        "mean": math.fsum(everyone) / len(everyone),
        "with_signal": signal / len(groups),
        "tau": (concordant - discordant) / math.sqrt(first * second),
        "flipped": discordant / first,
        "tied": tied / first,
        "advantage_flips": flips / len(everyone),
    }


def test_the_figures_are_those_of_scoring_again(
    invoke: Invoke, registry: cw.Registry, attempts_of: Any, tmp_path: Path
) -> None:
    attempts = attempts_of(registry)
    source = write(tmp_path / "rows.jsonl", attempts)
    words = [word for term, values in GRID.items() for word in ("--weights", f"{term}={','.join(map(str, values))}")]
    words += ["--lambda", "0,0.25,0.5"]
    result = invoke("lab", source, "--corpus", "toolworld-mini-v1", "--recipes", "tier,simple", *words, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["sensitivity"]
    assert found["attempts"] == len(attempts)
    assert found["schemes"][0]["label"] == "reference"
    assert found["schemes"][0]["tau"] == 1.0
    reference = registry.create("reward recipe", "tier")
    before = [reference.score_attempt(attempt).total for _, attempt in attempts]
    flipped = 0
    for row in found["schemes"]:
        recipe = changed(registry, "tier", row["changes"])
        after = [(recipe.score_attempt(attempt).total or 0.0) / recipe.high for _, attempt in attempts]
        groups: dict[str, list[tuple[float, float]]] = {}
        kinds: dict[str, list[tuple[float, float]]] = {}
        for (group, attempt), x, y in zip(attempts, before, after, strict=True):
            groups.setdefault(group, []).append((x or 0.0, y))
            kinds.setdefault(kind_of(judge(attempt)), []).append((x or 0.0, y))
        for key, value in by_hand(list(groups.values())).items():
            assert row[key] == pytest.approx(value, abs=1e-9), (row["label"], key)
        means = {
            kind: [math.fsum(side) / len(pairs) for side in zip(*pairs, strict=True)] for kind, pairs in kinds.items()
        }
        expected = {
            (upper, lower)
            for upper in means
            for lower in means
            if means[upper][1] > means[lower][1] + 1e-9 and means[upper][0] < means[lower][0] - 1e-9
        }
        assert {(one["now_above"], one["now_below"]) for one in row["changed_places"]} == expected
        flipped += row["flipped"] > 0
        for example in row["examples"]:
            ends = example["now_above"], example["now_below"]
            first, second = (end["id"] for end in ends)
            assert attempts[first][0] == attempts[second][0] == example["task"]
            assert before[first] < before[second]
            assert after[first] > after[second]
            assert [end["kind"] for end in ends] == [kind_of(judge(attempts[i][1])) for i in (first, second)]
        assert bool(row["examples"]) is (row["flipped"] > 0)
    assert flipped, "these attempts are meant to have pairs whose order hangs on the weights"


def test_kinds_of_errors_change_places(invoke: Invoke, registry: cw.Registry, tmp_path: Path) -> None:
    """One missing parameter earns 0.375, two wrong types 0.35; with four times the weight on parameters they swap."""
    parser = registry.create("parser", "json")
    missing = Program((Call(0, "Deposit", {}),))
    mistyped = Program((Call(0, "Deposit", {"amount": "a"}), Call(1, "Deposit", {"amount": "b"})))
    rows = [{"id": i, "task": "t0", "completion": parser.render(one)} for i, one in enumerate((missing, mistyped))]
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("lab", source, "--corpus", "bank-v1", "--recipes", "tier", "--weights", "parameters=4", "--seed", 4)
    row = json.loads(invoke(*words, "--json").stdout)["sensitivity"]["schemes"][1]
    (change,) = row["changed_places"]
    assert (change["now_above"], change["now_below"]) == ("wrong type", "missing parameter")
    assert change["before"] == pytest.approx([0.35, 0.375])
    assert change["after"] == pytest.approx([6.5 / 13, 6 / 13])
    assert row["flips"] == [{"now_above": "wrong type", "now_below": "missing parameter", "pairs": 1}]
    assert (row["tau"], row["flipped"], row["advantage_flips"]) == (-1.0, 1.0, 1.0)
    said = " ".join(invoke(*words).output.split())
    assert "parameters=4: “wrong type” earns more on average than “missing parameter” (0.500 and 0.462; before" in said
    assert 'Deposit(amount="a")' in said


def test_each_value_alone_then_all_combinations_where_they_are_few(registry: cw.Registry) -> None:
    made = make_schemes(registry, "tier", {"answer": [1, 5, 10], "format": [2]}, [0.25, 0.5])
    assert [scheme.label for scheme in made.all] == [
        "reference",
        "answer=1",
        "answer=10",
        "format=2",
        "lambda=0.5",
        "format=2, lambda=0.5",
        "answer=1, lambda=0.5",
        "answer=1, format=2",
        "answer=1, format=2, lambda=0.5",
        "answer=10, lambda=0.5",
        "answer=10, format=2",
        "answer=10, format=2, lambda=0.5",
    ]
    assert made.left_out == 0
    answers, formats = [1.0, *range(6, 13)], [float(weight) for weight in range(2, 9)]
    many = make_schemes(registry, "tier", {"answer": answers, "format": formats}, [])
    assert many.left_out == len(answers) * len(formats) > FEW
    assert len(many.all) == 1 + len(answers) + len(formats)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--weights", "anwser=1,2"], "There is no term of the reward 'tier' named 'anwser'. Did you mean 'answer'?"),
        (["--weights", "answer"], "expected TERM=WEIGHT,WEIGHT,…, such as answer=1,2,5"),
        (["--weights", "answer=1,two"], "'two' is no finite number"),
        (["--weights", "answer=nan"], "'nan' is no finite number"),
        (["--weights", "answer=1", "--weights", "answer=2"], "names 'answer' twice"),
        (["--lambda", "-0.1"], "take 0 or more"),
        (["--lambda", "a"], "'a' is no finite number"),
        (["--lambda", "0.1", "--recipes", "simple"], "the reward 'simple' has no option 'penalty'"),
        (["--weights", "format=0", "--weights", "answer=0", "--recipes", "simple"], "nothing can be earned"),
        (["--probe", "literal shortcat"], "Did you mean 'literal shortcut'?"),
        (["--split", "train"], "rows say which tasks they are of"),
    ],
)
def test_what_cannot_be_asked_is_said(invoke: Invoke, run_folder: Path, words: list[str], said: str) -> None:
    result = invoke("lab", run_folder, *(words if "--recipes" in words else ["--recipes", "tier,simple", *words]))
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_a_refused_lambda_names_the_rewards_that_have_one(invoke: Invoke, run_folder: Path) -> None:
    result = invoke("lab", run_folder, "--recipes", "prove", "--lambda", "0.1")
    assert "tier, tier-guarded, tier-no-execution" in " ".join(result.output.split())


def test_too_many_schemes_are_refused(registry: cw.Registry) -> None:
    with pytest.raises(cw.UsageError, match="name at most"):
        make_schemes(registry, "tier", {"answer": [1 + i / 1000 for i in range(1000)]}, [])


def test_grids_are_read_with_spaces_and_repeats() -> None:
    assert read_weights([" answer = 1, 2,1 "]) == {"answer": [1.0, 2.0]}
    assert read_penalties(" .1 ,1") == [0.1, 1.0]
    assert read_penalties(None) == []


def test_the_table_and_the_page_show_it(
    invoke: Invoke, registry: cw.Registry, attempts_of: Any, tmp_path: Path
) -> None:
    attempts = attempts_of(registry)
    source = write(tmp_path / "rows.jsonl", attempts)
    page = tmp_path / "lab.html"
    words = ("--corpus", "toolworld-mini-v1", "--recipes", "tier", "--weights", "execution=0,3", "--lambda", "0.1")
    result = invoke("lab", source, *words, "-o", page)
    assert result.exit_code == 0, result.output
    assert "tier with other weights" in result.output
    assert "execution=3" in result.output
    text = page.read_text()
    assert "Other weights" in text
    assert "execution=3, lambda=0.1" in text
    assert "<script" not in text


def test_model_text_in_examples_is_text(invoke: Invoke, registry: cw.Registry, tmp_path: Path) -> None:
    """The strings that a model wrote stand in the examples of the page."""
    task = next(task for task in registry.create("corpus", "toolworld-mini-v1")["evaluation"] if task.depth > 1)
    parser = registry.create("parser", "json")
    nasty = "<img src=x>"
    call = task.program.calls[-1]
    arguments = {**{key: [nasty] for key in plain(dict(call.arguments))}, nasty: 1}
    twice = parser.render(Program((Call(0, call.tool, arguments),)))
    failing = parser.render(Program((Call(0, call.tool, {}), Call(1, call.tool, {}))))
    rows = [{"id": i, "task": task.id, "completion": text} for i, text in enumerate((twice, failing))]
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    page = tmp_path / "lab.html"
    words = (
        "--corpus",
        "toolworld-mini-v1",
        "--recipes",
        "tier",
        "--weights",
        "parameters=0,5",
        "--weights",
        "types=0,5",
    )
    assert invoke("lab", source, *words, "-o", page).exit_code == 0
    assert nasty not in page.read_text()
