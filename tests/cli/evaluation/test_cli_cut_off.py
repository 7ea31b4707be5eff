"""Answers that were cut off, and prompts that did not fit: verdicts say so, and the table blames no form for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result

import callwright as cw
from callwright.commands.file_formats import schema_of
from callwright.measuring.rows import verdict_of
from callwright.options import OptionTable
from callwright.training import summarise
from callwright.training.evaluation import judge
from callwright.training.truncation import cut_off_in_words

Invoke = Callable[..., Result]


class Options(OptionTable):
    max_new_tokens: int = 64


class Rambling:
    """Is cut off in the middle of every answer, or finds no room for its prompt."""

    name = "rambling"

    def __init__(self, max_new_tokens: int = 64, fits: bool = True) -> None:
        self._cut = cw.Completion("<think> well", tuple(range(max_new_tokens)), truncated=True)
        if not fits:
            self._cut = cw.Completion("", truncated=True)

    def sample(self, requests: Sequence[cw.SamplingRequest], **_: Any) -> list[list[cw.Completion]]:
        return [[self._cut] for _ in requests]


@pytest.fixture(autouse=True)
def sampler(registry: cw.Registry) -> None:
    """``rambling`` and ``crammed``, whose context is too short for any prompt."""
    plugin = SimpleNamespace(
        callwright_samplers=cw.hookimpl(
            lambda: [
                cw.Lazy("rambling", Rambling, takes=Options),
                cw.Lazy("crammed", lambda: Rambling(fits=False)),
            ]
        )
    )
    registry.add(plugin, name="rambling")


def evaluate(invoke: Invoke, sampler: str, *words: object) -> str:
    done = invoke("evaluate", "--corpus", "sums-v1", "--sampler", sampler, *words)
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())


def test_answers_that_were_cut_off_are_told_with_the_limit_and_what_to_do(invoke: Invoke, tmp_path: Path) -> None:
    out = tmp_path / "e"
    said = evaluate(invoke, "rambling", "-o", out)
    remedy = "raise max_new_tokens (--sampler-option max_new_tokens=N)"
    assert f"12 of 12 answers were cut off at 64 tokens: {remedy}" in said
    rows = [json.loads(line) for line in (out / "verdicts.jsonl").read_text().splitlines()]
    assert {(row["cut"], row["cut_at"], row["failure"]) for row in rows} == {("tokens", 64, "format:unclosed_think")}
    assert json.loads((out / "evaluation.json").read_text())["cut_off"] == {"n": 12, "tokens": 64}
    assert "12 of 12 answers were cut off at 64 tokens" in _report(invoke, out)


def test_prompts_that_did_not_fit_are_told(invoke: Invoke, tmp_path: Path) -> None:
    out = tmp_path / "e"
    said = evaluate(invoke, "crammed", "-o", out)
    assert "12 of 12 prompts left no room in the model's context, so that nothing was written" in said
    rows = [json.loads(line) for line in (out / "verdicts.jsonl").read_text().splitlines()]
    assert {row["cut"] for row in rows} == {"prompt"}
    assert json.loads((out / "evaluation.json").read_text())["cut_off"] == {"n": 12, "prompts": 12}
    assert "12 of 12 prompts left no room" in _report(invoke, out)


def _report(invoke: Invoke, folder: Path) -> str:
    assert invoke("report", folder).exit_code == 0
    return (folder / "report.html").read_text().replace("&#x27;", "'")


def test_of_whole_answers_nothing_is_said(invoke: Invoke, tmp_path: Path) -> None:
    out = tmp_path / "e"
    assert "cut off" not in evaluate(invoke, "gold", "-o", out)
    assert "cut" not in json.loads((out / "verdicts.jsonl").read_text().splitlines()[0])
    assert "cut_off" not in json.loads((out / "evaluation.json").read_text())


def test_rows_of_earlier_versions_say_it_too(invoke: Invoke, tmp_path: Path) -> None:
    for sampler, expected in (("rambling", {"n": 12, "tokens": 64}), ("crammed", {"n": 12, "prompts": 12})):
        out = tmp_path / sampler
        evaluate(invoke, sampler, "-o", out)
        rows = [json.loads(line) for line in (out / "verdicts.jsonl").read_text().splitlines()]
        old = [{key: value for key, value in row.items() if key not in ("cut", "cut_at")} for row in rows]
        verdicts = [verdict_of(row, line, out) for line, row in enumerate(old, 1)]
        assert summarise(verdicts)["cut_off"] == expected
        older = [{key: value for key, value in row.items() if key != "truncated"} for row in old]
        assert "cut_off" not in summarise(verdict_of(row, line, out) for line, row in enumerate(older, 1))


def test_what_cut_an_attempt_off(registry: cw.Registry) -> None:
    task = registry.create("corpus", "sums-v1")["validation"][0]
    parser = registry.create("parser", "json")

    def cut(*completions: cw.Completion) -> tuple[str, int | None]:
        found = judge(cw.Attempt(task, completions, parser))
        return found.cut, found.cut_at

    call = cw.Completion(parser.render(task.program))
    assert cut(call) == ("", None)
    assert cut(cw.Completion("half", truncated=True)) == ("tokens", None)
    assert cut(call, cw.Completion("half", (1, 2), truncated=True)) == ("tokens", 2)
    assert cut(call, cw.Completion("", truncated=True)) == ("context", None)
    assert cut(cw.Completion("", truncated=True)) == ("prompt", None)
    thought = cw.Completion("", truncated=True, usage={"completion_tokens": 512.0})
    assert cut(thought) == ("tokens", None), "a server that thinks in silence has written something"


def test_a_small_share_is_counted_and_not_said() -> None:
    assert cut_off_in_words({"n": 40, "cut_off": {"n": 4, "tokens": 9}}) == []
    (said,) = cut_off_in_words({"n": 40, "cut_off": {"n": 5, "tokens": 9}}, "ask for more")
    assert said.startswith("5 of 40 answers were cut off at 9 tokens: ask for more")
    both = cut_off_in_words({"n": 40, "cut_off": {"n": 36, "prompts": 12, "context": 12}})
    assert [one[:9] for one in both] == ["12 of 40 "] * 3
    for damaged in ({}, {"n": 0, "cut_off": {"n": 3}}, {"n": 3, "cut_off": [3]}, {"n": 3, "cut_off": {"n": "3"}}):
        assert cut_off_in_words(damaged) == []


def test_rows_and_results_fit_their_schemas(invoke: Invoke, tmp_path: Path) -> None:
    import jsonschema_rs

    out = tmp_path / "e"
    evaluate(invoke, "rambling", "-o", out)
    rows = jsonschema_rs.validator_for(schema_of("verdicts"))
    for line in (out / "verdicts.jsonl").read_text().splitlines():
        rows.validate(json.loads(line))
    result = jsonschema_rs.validator_for(schema_of("evaluation"))
    result.validate({"before": None, "during": [], "after": json.loads((out / "evaluation.json").read_text())})
