"""``callwright judge-probe``: judges with known biases are found out, and an honest one is not."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App
from callwright.training.agreement import truth_agreement

pytest.importorskip("openai", reason="needs the client: pip install 'callwright[openai]'")
pytest.importorskip("aiolimiter", reason="needs the client: pip install 'callwright[openai]'")
from stand_in_server import Asked, StandIn, chat

Points = Callable[[Asked, str, int], int]


def judging(points: Points) -> Callable[[Asked], Any]:
    """A server whose judge gives ``points(request, name of the criterion, its place)``."""

    def answer(asked: Asked) -> Any:
        wanted = asked.body["response_format"]["json_schema"]["schema"]["properties"]
        names = list(wanted["criteria"]["properties"])
        criteria = {name: {"reason": "So.", "score": points(asked, name, n)} for n, name in enumerate(names)}
        return chat(json.dumps({"word": wanted["word"]["enum"][0], "criteria": criteria}))

    return answer


def probed(url: str, *more: str) -> Any:
    command = ["judge-probe", "--corpus", "toolworld-mini-v1", "--split", "evaluation", "--tasks", "20", "--model", "m"]
    done = CliRunner().invoke(root, [*command, "--base-url", url, *more], obj=App(registry=cw.default_registry()))
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout) if "--json" in more else done.stdout


def truly(asked: Asked, name: str, place: int) -> int:
    """A judge that knows what execution knows: whether the answer is the expected one."""
    returned = re.search(r"returned by the calls: (.*)", asked.last)
    expected = re.search(r"expected: (.*)", asked.last)
    assert returned is not None
    assert expected is not None
    return 5 if returned[1] == expected[1] else 1


RUBRIC = """about = "A world of restaurants."
sees = ["task", "answer", "reference"]
[criteria.right]
asks = "Is it right?"
[criteria.fast]
asks = "Was it fast?"
"""


@pytest.fixture
def rubric(tmp_path: Path) -> str:
    file = tmp_path / "small.toml"
    file.write_text(RUBRIC)
    return str(file)


def test_an_honest_judge_agrees_with_execution_and_is_moved_by_nothing(rubric: str) -> None:
    with StandIn(judging(truly)) as server:
        found = probed(server.url, "--rubric", rubric, "--json")
        assert len(server.asked) == 20 * 5
    assert found["cases"] == 20
    assert found["right"] == 10
    assert found["failed"] == 0
    agreement = found["agreement"]
    assert (agreement["auc"], agreement["accuracy"], agreement["kappa"]) == (1, 1, 1)
    assert {name: (row["shift"], row["changed"], row["n"]) for name, row in found["probes"].items()} == dict.fromkeys(
        ("again", "order", "length", "claim"), (0, 0, 20)
    )


BIASES: dict[str, Points] = {
    "order": lambda asked, name, place: 5 if name == "right" and place == 0 else 3,
    "length": lambda asked, name, place: 5 if len(asked.last) > 1500 else 2,
    "claim": lambda asked, name, place: 5 if "approved" in asked.last else 2,
}


@pytest.mark.parametrize("bias", BIASES)
def test_a_biased_judge_is_found_out(bias: str, rubric: str) -> None:
    with StandIn(judging(BIASES[bias])) as server:
        found = probed(server.url, "--rubric", rubric, "--json")
    probes = found["probes"]
    assert abs(probes[bias]["shift"]) >= 0.25
    assert probes[bias]["changed"] > 0.5
    others = {name for name in probes if name != bias and (bias, name) != ("length", "claim")}  # a claim is long, too
    assert {name: probes[name]["changed"] for name in others} == dict.fromkeys(others, 0)
    assert found["agreement"]["auc"] == 0.5


def test_noise_is_told_beside_the_shifts(rubric: str) -> None:
    def noisy(asked: Asked, name: str, place: int) -> int:
        return random.Random(f"{asked.body['seed']}/{name}").randint(1, 5)

    with StandIn(judging(noisy)) as server:
        found = probed(server.url, "--rubric", rubric, "--json")
        drawn = probed(server.url, "--rubric", rubric, "--probe", "again")
    assert found["probes"]["again"]["changed"] > 0.5
    assert found["probes"]["order"]["changed"] == 0
    assert "again" in drawn
    assert "AUC" in drawn
    assert "order" not in drawn


def test_a_rubric_that_shows_no_words_is_not_probed_with_words(tmp_path: Path) -> None:
    file = tmp_path / "calls.toml"
    file.write_text(RUBRIC.replace('"task", "answer", "reference"', '"calls"'))
    with StandIn(judging(lambda asked, name, place: 3)) as server:
        found = probed(server.url, "--rubric", str(file), "--json")
        assert "Not probed: length, claim" in probed(server.url, "--rubric", str(file))
    assert found["unseen"] == ["length", "claim"]
    assert set(found["probes"]) == {"again", "order"}


def test_rows_of_a_file_are_judged_and_verdicts_kept(tmp_path: Path, rubric: str) -> None:
    corpus, form = cw.corpus("toolworld-mini-v1"), cw.parser("json")
    tasks = corpus["evaluation"][:4]
    rows = [{"id": n, "task": task.id, "completion": form.render(task.program)} for n, task in enumerate(tasks)]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with StandIn(judging(truly)) as server:
        more = (str(file), "--rubric", rubric, "--cache", str(tmp_path / "kept.sqlite"), "--json")
        first = probed(server.url, *more)
        count = len(server.asked)
        assert probed(server.url, *more) == first
        assert len(server.asked) == count
    assert first["cases"] == first["right"] == 4
    assert first["agreement"]["auc"] is None


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    def said(*arguments: str) -> str:
        runner = CliRunner()
        done = runner.invoke(root, ["judge-probe", *arguments], obj=App(registry=cw.default_registry()))
        assert done.exit_code != 0
        return f"{done.output}{done.exception}"

    assert "Did you mean 'order'" in said("--corpus", "toolworld-mini-v1", "--model", "m", "--probe", "ordre")
    assert "needs a 'model'" in said("--corpus", "toolworld-mini-v1")
    (tmp_path / "rows.jsonl").write_text('{"task": 3}\n')
    assert ":1: the row needs" in said(str(tmp_path / "rows.jsonl"), "--corpus", "toolworld-mini-v1", "--model", "m")


def by_pairs(values: list[float], truths: list[bool]) -> float | None:
    pairs = [
        (a, b) for a, x in zip(values, truths, strict=True) if x for b, y in zip(values, truths, strict=True) if not y
    ]
    return sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs) / len(pairs) if pairs else None


@pytest.mark.parametrize("seed", range(40))
def test_agreement_is_what_looking_at_each_pair_gives(seed: int) -> None:
    rng = random.Random(seed)
    n = rng.randint(0, 30)
    values = [rng.choice([0.0, 0.25, 0.5, 0.75, 1.0]) for _ in range(n)]
    truths = [rng.random() < 0.5 for _ in range(n)]
    found = truth_agreement(values, truths, 0.5)
    assert found.auc == (None if by_pairs(values, truths) is None else pytest.approx(by_pairs(values, truths)))
    said = [value >= 0.5 for value in values]
    if n:
        agreed = sum(a == b for a, b in zip(said, truths, strict=True)) / n
        assert found.accuracy == agreed
        if 0 < sum(truths) < n:
            yes = sum(said) / n * sum(truths) / n
            no = (1 - sum(said) / n) * (1 - sum(truths) / n)
            assert found.kappa == pytest.approx((agreed - yes - no) / (1 - yes - no))
