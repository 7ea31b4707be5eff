"""``callwright evaluate``: samples, groups, even draws, rewards and rows from which every table can be made again."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result

import callwright as cw
from callwright.measuring.rows import rewards_of, verdict_of
from callwright.training import summarise

Invoke = Callable[..., Result]
SUMS = ("--corpus", "sums-v1")
NOISY = ("evaluate", *SUMS, "--sampler", "noisy-gold", "--sampler-option", "p=0.6", "--temperature", "1")


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()]


def test_samples_of_a_task_are_rows_of_their_own(invoke: Invoke, tmp_path: Path) -> None:
    found = json.loads(invoke(*NOISY, "--samples", "4", "--batch", "5", "--json", "-o", tmp_path / "e").stdout)
    rows = rows_of(tmp_path / "e")
    assert [(row["id"], row["sample"]) for row in rows] == [(f"validation-{n}", s) for n in range(12) for s in range(4)]
    assert [row["messages"][0]["role"] for row in rows] == ["system", "user", "user", "user"] * 12
    samples = found["samples"]
    assert (samples["n"], samples["tasks"], found["n"]) == (4, 12, 48)
    right: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        right[row["task"]].append(row["answer"])
    assert len({tuple(some) for some in right.values()}) > 2, "the samples differ, else this tests nothing"
    for k in range(1, 5):
        choices = [list(combinations(some, k)) for some in right.values()]
        for name, test in (("pass@k", any), ("pass^k", all)):
            expected = sum(sum(map(test, some)) / len(some) for some in choices) / 12
            assert samples[name][str(k)]["value"] == pytest.approx(expected, abs=1e-12)
    assert found["masked"] == 0
    first = samples["pass@k"]["1"]
    assert (first["value"], first["low"], first["high"]) == pytest.approx(
        tuple(found["all"][key] for key in ("accuracy", "low", "high"))
    ), "pass@1 is the accuracy, interval and all"
    assert found["all"]["clusters"] == 12
    assert json.loads((tmp_path / "e/settings.json").read_text())["samples"] == 4
    refused = invoke(*NOISY, "--samples", "3", "--batch", "5", "-o", tmp_path / "e")
    assert "other settings (samples)" in refused.stderr


def test_a_stopped_evaluation_of_several_samples_ends_in_the_same_bytes(invoke: Invoke, tmp_path: Path) -> None:
    words = (*NOISY, "--samples", "3", "--batch", "5", "--reward", "sums", "-o")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert invoke(*words, whole).exit_code == 0
    lines = (whole / "verdicts.jsonl").read_bytes().splitlines(keepends=True)
    assert len(lines) == 36
    for kept in (0, 1, 14, 15, 17, 31, 35, 36):
        broken.mkdir(exist_ok=True)
        (broken / "settings.json").write_bytes((whole / "settings.json").read_bytes())
        (broken / "verdicts.jsonl").write_bytes(b"".join(lines[:kept]) + b'{"id')
        (broken / "verdicts.jsonl.sha256").unlink(missing_ok=True)
        (broken / "evaluation.json").unlink(missing_ok=True)
        assert invoke(*words, broken).exit_code == 0
        for name in ("verdicts.jsonl", "evaluation.json"):
            assert (broken / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_workers_make_the_same_samples(invoke: Invoke, tmp_path: Path, executor: str) -> None:
    words = (*NOISY, "--samples", "2", "--batch", "3", "--json", "-o")
    alone = invoke(*words, tmp_path / "alone")
    several = invoke(*words, tmp_path / "several", "--workers", "2", "--executor", executor)
    assert (several.exit_code, several.stdout) == (0, alone.stdout)
    assert (tmp_path / "several/verdicts.jsonl").read_bytes() == (tmp_path / "alone/verdicts.jsonl").read_bytes()


def test_every_table_can_be_made_again_of_the_rows_alone(invoke: Invoke, tmp_path: Path) -> None:
    words = (*NOISY, "--samples", "3", "--by", "depth,structure", "--by", "chain", "--reward", "sums", "--json")
    result = invoke(*words, "-o", tmp_path / "e")
    found, rows = json.loads(result.stdout), rows_of(tmp_path / "e")
    verdicts = [verdict_of(row, line, tmp_path) for line, row in enumerate(rows, 1)]
    assert json.loads(json.dumps(summarise(verdicts, [("depth", "structure"), ("chain",)], rewards_of(rows)))) == found
    assert set(found["by"]) == {"depth,structure", "chain"}
    assert set(found["by"]["depth,structure"]) == {"0, none", "1, single", "2, linear"}
    assert sum(cell["n"] for cell in found["by"]["chain"].values()) == 36
    assert found["rewards"]["n"] == 36
    assert found["rewards"]["mean"] == pytest.approx(sum(row["reward"] for row in rows) / 36)
    refused = invoke(*words, "--by", "depht", "-o", tmp_path / "f")
    assert (refused.exit_code, "no task has a group 'depht'. Did you mean 'depth'?" in refused.stderr) == (2, True)
    assert not (tmp_path / "f").exists(), "what is wrong is said before anything is sampled"


def test_a_row_says_what_was_called_and_where_the_answer_differs(invoke: Invoke, tmp_path: Path) -> None:
    invoke("evaluate", *SUMS, "--sampler", "noisy-gold", "--sampler-option", "p=0.3", "-o", tmp_path / "e")
    rows = rows_of(tmp_path / "e")
    wrong = [row for row in rows if row["failure"] == "answer:wrong"]
    assert wrong
    for row in rows:
        assert [message["role"] for message in row["messages"]] == ["system", "user", "assistant"]
        assert row["messages"][-1]["content"] == row["completion"]
        assert sum(row.get("calls", {}).values()) == len(row.get("trace", ()))
        assert row["stop"] in (("machinery",) if row["masked"] else ("answered", "assistant_turns"))
        assert ("found" in row) == (row["failure"].startswith("answer:"))
    for row in wrong:
        returned = row["trace"][-1]["value"]
        assert (row["expected"], row["found"]) != (returned, row["expected"])
        assert row["found"] == returned
        assert row["error"].startswith("answer:wrong_")


def test_how_long_attempts_took_stands_beside_the_rows(invoke: Invoke, tmp_path: Path) -> None:
    words = (*NOISY, "--samples", "2", "--batch", "5", "-o", tmp_path / "e")
    assert invoke(*words).exit_code == 0
    lines = (tmp_path / "e/seconds.jsonl").read_text().splitlines()
    taken = [json.loads(line) for line in lines]
    rows = rows_of(tmp_path / "e")
    assert [(one["task"], one["sample"]) for one in taken] == [(row["task"], row["sample"]) for row in rows]
    assert all(0 < one["seconds"] < 60 for one in taken)
    assert "seconds" not in (tmp_path / "e/verdicts.jsonl").read_text()


def test_a_limit_takes_as_many_of_each_depth(invoke: Invoke, tmp_path: Path) -> None:
    for limit, expected in ((3, [1, 1, 1]), (7, [3, 2, 2]), (12, [4, 4, 4]), (99, [4, 4, 4])):
        found = json.loads(invoke("evaluate", *SUMS, "--sampler", "gold", "--limit", limit, "--json").stdout)
        assert [cell["n"] for cell in found["by_depth"].values()] == expected


def test_turns_go_with_a_corpus(invoke: Invoke, tmp_path: Path) -> None:
    words = ("evaluate", *SUMS, "--sampler", "gold", "--turns", "3", "-o", tmp_path / "e")
    assert invoke(*words).exit_code == 0
    assert json.loads((tmp_path / "e/settings.json").read_text())["turns"] == {"assistant_turns": 3}
    assert max(len(row.get("completions", "1")) for row in rows_of(tmp_path / "e")) == 2
    refused = invoke("evaluate", "--recipe", "x", "--turns", "3")
    assert (refused.exit_code, "use --set turns.assistant_turns=N" in refused.stderr) == (2, True)
    assert invoke("evaluate", *SUMS, "--sampler", "gold", "--reward", "own").exit_code == 2
    assert invoke("evaluate", *SUMS, "--sampler", "gold", "--by", ",").exit_code == 2
    assert "Did you mean 'sums'" in invoke("evaluate", *SUMS, "--sampler", "gold", "--reward", "sms").stderr


def test_above_two_in_a_hundred_masked_there_is_no_headline(
    invoke: Invoke, registry: cw.Registry, tmp_path: Path
) -> None:
    gold = registry.create("sampler", "gold")

    class Failing:
        name = "failing"

        def sample(self, requests: list[cw.SamplingRequest], **options: object) -> list[list[cw.Completion]]:
            made = gold.sample(requests)
            lost = cw.Completion("", masked="gone")
            return [[lost] if one.task.id.endswith("-7") else some for one, some in zip(requests, made, strict=True)]

    plugin = SimpleNamespace(callwright_samplers=cw.hookimpl(lambda: [cw.Lazy("failing", Failing)]))
    registry.add(plugin, name="failing")
    words = ("evaluate", *SUMS, "--sampler", "failing")
    found = json.loads(invoke(*words, "--json").stdout)
    assert (found["n"], found["masked"], found["headline"]) == (11, 1, False)
    assert (found["all"]["masked"], found["lost"]) == (1, {"gone": 1})
    assert (found["all"]["lowest"], found["all"]["highest"]) == pytest.approx((11 / 12, 1.0))
    beside = [cell.get("masked", 0) for cell in found["by_depth"].values()]
    assert Counter(beside) == {0: 2, 1: 1}
    shown = invoke(*words, "-o", str(tmp_path / "e")).stdout
    assert "1 masked: 75.0% to 100.0%" in shown
    assert "1: gone" in shown
    rows = [json.loads(line) for line in (tmp_path / "e" / "verdicts.jsonl").read_text().splitlines()]
    assert [row.get("lost") for row in rows if row["masked"]] == ["gone"]
    assert not any("lost" in row for row in rows if not row["masked"])
    again = json.loads(invoke(*words, "-o", str(tmp_path / "e"), "--json").stdout)
    assert again["lost"] == {"gone": 1}
    assert "no headline: 91.7% to 100.0% of all are right" in " ".join(shown.split())


def test_where_all_is_masked_nothing_was_measured(invoke: Invoke, registry: cw.Registry) -> None:
    class Away:
        name = "away"

        def sample(self, requests: list[cw.SamplingRequest], **options: object) -> list[list[cw.Completion]]:
            return [[cw.Completion("", masked="it does not answer")] for _ in requests]

    registry.add(SimpleNamespace(callwright_samplers=cw.hookimpl(lambda: [cw.Lazy("away", Away)])), name="away")
    done = invoke("evaluate", *SUMS, "--sampler", "away", "--json")
    assert done.exit_code == 1
    assert "every task is masked" in done.stderr
    assert json.loads(done.stdout)["lost"] == {"it does not answer": 12}


def test_what_an_evaluation_has_masked_stays_masked(invoke: Invoke, tmp_path: Path) -> None:
    rows = [
        {"id": "a", "task": "validation-1", "completion": "", "masked": True, "lost": "status 500"},
        {"id": "b", "task": "validation-1", "completion": "", "masked": True},
        {
            "id": "c",
            "task": "validation-1",
            "completion": "x",
            "completions": ["x", "y"],
            "masked": True,
            "lost": "it died",
        },
        {"id": "d", "task": "validation-1", "completion": "", "masked": False},
    ]
    source = tmp_path / "verdicts.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    scored = invoke("score", str(source), "--corpus", "sums-v1", "--recipe", "sums", "-o", str(tmp_path / "out.jsonl"))
    assert "4 rows scored, 3 of them masked" in scored.stderr, scored.stderr
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["total"], row.get("masked")) for row in found] == [
        (None, "status 500"),
        (None, "the evaluation masked it"),
        (None, "it died"),
        (0.0, None),
    ]
