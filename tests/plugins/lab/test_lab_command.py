"""``callwright lab``: the figures are those of scoring by hand, the warnings say them, the page holds them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import callwright as cw
from callwright.language.parser import Parser
from callwright.training.evaluation import judge
from callwright_plugins.lab.ledger import open_ledger
from callwright_plugins.lab.reading import Sample

Invoke = Callable[..., Result]


def lab_json(invoke: Invoke, *words: object, status: int = 0) -> dict[str, Any]:
    result = invoke("lab", *words, "--json")
    assert result.exit_code == status, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_the_figures_are_those_of_scoring_by_hand(invoke: Invoke, run_folder: Path, registry: cw.Registry) -> None:
    found = lab_json(invoke, run_folder, "--recipes", "tier,simple")
    rows = [json.loads(line) for line in (run_folder / "rollouts.jsonl").read_text().splitlines()]
    totals = [row["total"] for row in rows]
    tier = found["recipes"]["tier"]
    assert tier["mean"] == pytest.approx(sum(totals) / 8)
    assert sum(tier["histogram"]["counts"]) == 8
    assert tier["at_high"] == totals.count(1.0) / 8
    assert found["groups"] == {"count": 3, "of_one": 0}
    assert found["stages"] == {
        "format": 1, "schema": 1, "abstained": 1, "should_abstain": 1, "answer": 1, "right": 3,
    }  # fmt: skip
    assert tier["stages"]["right"] == 1.0
    assert tier["stages"]["format"] == 0.0
    for recipe in found["recipes"].values():
        parts = recipe["components"].values()
        assert sum(part["mean"] for part in parts) == pytest.approx(recipe["mean"])
        assert sum(part["variance_share"] for part in parts) == pytest.approx(1.0)


def test_groups_without_signal(invoke: Invoke, tmp_path: Path, texts: Mapping[str, str]) -> None:
    source = tmp_path / "rows.jsonl"
    plan = [("t0", 0, "wrong"), ("t0", 0, "wrong"), ("t0", 1, "wrong"), ("t0", 1, "gold0"), ("t1", 0, "gold1")]
    source.write_text(
        "".join(
            json.dumps({"id": i, "task": task, "group": group, "completion": texts[key]}) + "\n"
            for i, (task, group, key) in enumerate(plan)
        )
    )
    found = lab_json(invoke, source, "--corpus", "bank-v1", "--recipes", "simple", "--seed", 4)
    assert found["groups"] == {"count": 2, "of_one": 1}
    groups = found["recipes"]["simple"]["groups"]
    assert groups["without_signal"] == 0.5
    assert groups["spread"] == pytest.approx((0 + (1 - 1 / 6) / 2) / 2)
    assert any(warning["code"] == "no_signal" for warning in found["warnings"])


def test_the_warning_of_the_empty_program(invoke: Invoke, run_folder: Path) -> None:
    found = lab_json(invoke, run_folder, "--recipes", "tier,tier-guarded,toolrl,prove")
    (warning,) = [warning for warning in found["warnings"] if warning["code"] == "no_calls"]
    assert warning["recipes"] == ["tier"]
    assert warning["text"].startswith("A program that calls nothing earns 0.50 under tier")
    assert warning["text"].endswith("with a weak policy expect collapse to short programs.")
    assert found["probes"]["probes"]["no calls"]["recipes"]["tier-guarded"]["mean"] == pytest.approx(0.1)


def test_an_attempt_is_parsed_and_opens_one_session_for_all_recipes(
    registry: cw.Registry, bank: Any, texts: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parser: Parser = registry.create("parser", "json")
    counts = {"parsed": 0, "opened": 0}

    class Counting:
        name = "json"
        render, instructions = parser.render, parser.instructions

        def parse(self, text: str) -> Any:
            counts["parsed"] += 1
            return parser.parse(text)

    opened = bank.open

    def counted(scenario: str = "", seed: int = 0) -> Any:
        counts["opened"] += 1
        return opened(scenario, seed)

    task = registry.create("corpus", "bank-v1").task("t0")
    ledger = open_ledger(registry, ["tier", "tier-guarded", "toolrl", "prove", "simple"])
    ledger.score(cw.Attempt(task, texts["gold0"], parser))  # Prove's truth is executed once a task
    monkeypatch.setattr(bank, "open", counted)
    ledger.enter(Sample(0, cw.Attempt(task, texts["gold0"], Counting()), "g", {}))
    assert counts == {"parsed": 1, "opened": 1}
    assert len(ledger.accounts) == 5


def test_masked_attempts_are_counted_and_left_out_everywhere(
    registry: cw.Registry, bank: Any, texts: Mapping[str, str]
) -> None:
    task, parser = registry.create("corpus", "bank-v1").task("t0"), registry.create("parser", "json")
    ledger = open_ledger(registry, ["tier", "toolrl"])
    ledger.enter(Sample(0, cw.Attempt(task, texts["gold0"], parser), "g", {}))
    bank.down = True
    masked = cw.Attempt(task, texts["gold0"], parser)
    ledger.enter(Sample(1, masked, "g", {}))
    assert judge(masked).masked
    assert ledger.masked == 1
    assert [len(account.totals) for account in ledger.accounts] == [1, 1]
    assert len(ledger.groups) == len(ledger.stages) == 1


def test_recipes_that_cannot_score_the_corpus_are_named(
    invoke: Invoke, tmp_path: Path, texts: Mapping[str, str]
) -> None:
    source = tmp_path / "rows.jsonl"
    source.write_text(json.dumps({"id": 0, "task": "t0", "completion": texts["gold0"]}) + "\n")
    arguments = (source, "--corpus", "bank-without-truth-v1", "--seed", 4)
    found = lab_json(invoke, *arguments, "--recipes", "tier,toolrl,prove,toolrl-dynamic-length")
    assert list(found["recipes"]) == ["tier"]
    assert set(found["skipped"]) == {"toolrl", "prove", "toolrl-dynamic-length"}
    assert "reference program" in found["skipped"]["toolrl"]
    result = invoke("lab", *arguments, "--recipes", "toolrl")
    assert result.exit_code == 2
    assert "None of these recipes" in result.output


def test_a_schedule_gets_the_step_of_the_run(invoke: Invoke, run_folder: Path) -> None:
    found = lab_json(invoke, run_folder, "--recipes", "toolrl-dynamic-length")
    assert list(found["recipes"]) == ["toolrl-dynamic-length"]
    assert not found["skipped"]
    assert "gold" in found["probes"]["probes"]


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [value or "" for key, value in attrs if key in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_holds_the_figures_and_loads_nothing(invoke: Invoke, run_folder: Path) -> None:
    result = invoke("lab", run_folder, "--recipes", "tier,prove,simple")
    assert result.exit_code == 0, result.output
    first = (run_folder / "lab.html").read_bytes()
    page = _Page()
    page.feed(first.decode())
    assert not page.loads
    assert "script" not in page.tags
    assert page.tags.count("svg") == 3
    assert "A program that calls nothing earns 0.50 under tier" in page.text
    assert invoke("lab", run_folder, "--recipes", "tier,prove,simple").exit_code == 0
    assert (run_folder / "lab.html").read_bytes() == first


def test_names_in_the_page_are_text(invoke: Invoke, tmp_path: Path, texts: Mapping[str, str]) -> None:
    source = tmp_path / "<img src=x>.jsonl"
    source.write_text(json.dumps({"id": 0, "task": "t0", "completion": texts["gold0"]}) + "\n")
    out = tmp_path / "lab.html"
    result = invoke("lab", source, "--corpus", "bank-v1", "--recipes", "tier", "--seed", 4, "-o", out)
    assert result.exit_code == 0, result.output
    page = _Page()
    page.feed(out.read_text())
    assert "img" not in page.tags


def test_a_page_is_only_replaced_when_asked_for(invoke: Invoke, tmp_path: Path, texts: Mapping[str, str]) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "lab.html"
    source.write_text(json.dumps({"id": 0, "task": "t0", "completion": texts["gold0"]}) + "\n")
    out.write_text("precious")
    words = ("lab", source, "--corpus", "bank-v1", "--recipes", "tier", "--seed", 4, "-o", out)
    refused = invoke(*words)
    assert (refused.exit_code, out.read_text()) == (2, "precious")
    assert "--overwrite" in refused.output
    assert invoke(*words, "--overwrite").exit_code == 0
    assert out.read_text() != "precious"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--recipes", "teir"], "teir"),
        (["--recipes", ","], "names no recipe"),
        (["--corpus", "bank-v1"], "leave --corpus"),
    ],
)
def test_usage(invoke: Invoke, run_folder: Path, words: list[str], said: str) -> None:
    result = invoke("lab", run_folder, *words)
    assert result.exit_code == 2
    assert said in result.output


def test_a_file_needs_a_corpus_and_a_row(invoke: Invoke, tmp_path: Path) -> None:
    source = tmp_path / "rows.jsonl"
    source.write_text("")
    assert invoke("lab", source).exit_code == 2
    result = invoke("lab", source, "--corpus", "bank-v1")
    assert result.exit_code == 2
    assert "no rollout" in result.output
