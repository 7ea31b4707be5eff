"""``callwright rescore``: what is the same is confirmed, what differs is found, in a stateful environment."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import callwright as cw
from callwright.commands import jsonl
from callwright.commands.outputs import unfinished
from callwright.training.evaluation import judge
from callwright.walk import Progress
from callwright_plugins.lab import rescore as rescoring

Invoke = Callable[..., Result]


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_an_unchanged_run_is_confirmed_and_scored_with_the_new_recipe(
    invoke: Invoke, run_folder: Path, tmp_path: Path, registry: cw.Registry
) -> None:
    out = tmp_path / "out.jsonl"
    result = invoke("rescore", run_folder, "--recipe", "simple", "-o", out, "--json")
    assert result.exit_code == 0, result.output
    replay = json.loads(result.stdout)["replay"]
    assert (replay["rows"], replay["observed"], replay["rewards"], replay["differing"]) == (8, 8, 8, 0)
    assert replay["calls"] == 7
    rows, stored = rows_of(out), rows_of(run_folder / "rollouts.jsonl")
    assert [row["id"] for row in rows] == list(range(1, 9))
    corpus, simple = registry.create("corpus", "bank-v1"), registry.create("reward recipe", "simple")
    for row, old in zip(rows, stored, strict=True):
        parser = registry.create("parser", "json")
        reward = simple.score(corpus.task(old["task"]), old["completion"], ir=parser)
        assert row == {"id": row["id"], **reward.to_json()}


def test_the_runs_own_recipe_gives_its_own_rewards(invoke: Invoke, run_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert invoke("rescore", run_folder, "--recipe", "tier", "-o", out).exit_code == 0
    assert [row["total"] for row in rows_of(out)] == [row["total"] for row in rows_of(run_folder / "rollouts.jsonl")]
    assert rows_of(out)[0]["total"] == 1.0


def test_a_tool_that_was_changed_is_found(invoke: Invoke, run_folder: Path, bank: Any) -> None:
    bank.fee = 1
    result = invoke("rescore", run_folder, "--json")
    assert result.exit_code == 1
    replay = json.loads(result.stdout)["replay"]
    # every rollout that deposits: gold0, wrong, gold1, and wrong where nothing was due
    assert {row["id"] for row in replay["differences"]} == {1, 2, 5, 8}
    first = replay["differences"][0]
    assert (first["call"], first["what"]) == (0, "value")


@pytest.mark.parametrize(("key", "value"), [("kind", "empty"), ("code", "x"), ("value", "00"), ("state", "77")])
def test_every_field_of_an_observation_is_compared(invoke: Invoke, run_folder: Path, key: str, value: str) -> None:
    path = run_folder / "rollouts.jsonl"
    rows = rows_of(path)
    rows[4]["observations"][1][key] = value
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = invoke("rescore", run_folder, "--json")
    assert result.exit_code == 1
    (difference,) = json.loads(result.stdout)["replay"]["differences"]
    assert (difference["id"], difference["call"], difference["what"], difference["recorded"]) == (5, 1, key, value)


def test_a_stored_score_that_is_not_reproduced_is_found(invoke: Invoke, run_folder: Path) -> None:
    path = run_folder / "rollouts.jsonl"
    rows = rows_of(path)
    rows[1]["scores"]["types"]["value"] = 0.25
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = invoke("rescore", run_folder)
    assert result.exit_code == 1
    assert "score of types was 0.25, is now 1.0" in result.output


@pytest.mark.parametrize(
    ("line", "key", "value", "now"),
    [
        (2, "total", 0.77, 0.5),
        (2, "total", None, 0.5),
        (2, "total", "1", 0.5),
        (1, "stage", "answer", "done"),
        (1, "answered", False, True),
        (2, "answered", True, False),
        (2, "failure", "", "answer:wrong"),
        (4, "failure", "answer:wrong", "format:no_think"),
    ],
)
def test_what_was_recorded_of_the_reward_and_the_answer_is_compared(
    invoke: Invoke, run_folder: Path, registry: cw.Registry, line: int, key: str, value: Any, now: Any
) -> None:
    """Each alone: the scores stay as they were, and their sum is not what the row says."""
    path = run_folder / "rollouts.jsonl"
    rows = rows_of(path)
    corpus, parser = registry.create("corpus", "bank-v1"), registry.create("parser", "json")
    for row in rows:  # as trainers write them
        verdict = judge(cw.Attempt(corpus.task(row["task"]), row["completion"], parser))
        row |= {"answered": verdict.answer, "failure": verdict.failure}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    confirmed = invoke("rescore", run_folder, "--json")
    assert confirmed.exit_code == 0, confirmed.output
    assert json.loads(confirmed.stdout)["replay"]["verdicts"] == 8
    assert rows[line - 1][key] != value
    assert type(now) is not str or not now.startswith("format:") or rows[line - 1][key].startswith("format:")
    rows[line - 1][key] = value
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = invoke("rescore", run_folder, "--json")
    assert found.exit_code == 1
    (difference,) = json.loads(found.stdout)["replay"]["differences"]
    assert (difference["id"], difference["what"], difference["recorded"]) == (line, key, value)
    if type(now) is not float and line != 4:
        assert difference["now"] == now


def test_a_masked_rollout_has_no_total(invoke: Invoke, run_folder: Path) -> None:
    path = run_folder / "rollouts.jsonl"
    rows = rows_of(path)
    rows[1]["masked"] = "the server was down"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = invoke("rescore", run_folder, "--json")
    assert result.exit_code == 1
    (difference,) = json.loads(result.stdout)["replay"]["differences"]
    assert (difference["id"], difference["what"], difference["now"]) == (2, "total", None)


def test_a_finished_output_is_kept_and_a_stopped_one_gone_on_with(
    invoke: Invoke, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A difference that an earlier start has found is said by the one that ends, too."""
    path, out = run_folder / "rollouts.jsonl", tmp_path / "out.jsonl"
    rows = rows_of(path)
    rows[1]["total"] = 0.77
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(unfinished, "EVERY", 0.0)
    monkeypatch.setattr(unfinished, "_SHARE", 0.0)
    monkeypatch.setattr(rescoring, "chunks_of", lambda rows, size: jsonl.chunks_of(rows, 2))
    words = ("rescore", run_folder, "--recipe", "simple", "-o", out, "--json")
    with monkeypatch.context() as patched:
        real, parts = rescoring.replay_rows, []

        def stopped(*given: Any) -> Any:
            parts.append(given)
            if len(parts) == 3:
                raise KeyboardInterrupt
            return real(*given)

        patched.setattr(rescoring, "replay_rows", stopped)
        first = invoke(*words[:-1])
        assert "the same command goes on" in first.stderr
    again = invoke(*words)
    assert "going on after line 4" in again.stderr
    whole = invoke("rescore", run_folder, "--recipe", "simple", "-o", tmp_path / "whole.jsonl", "--json")
    assert (again.exit_code, again.stdout) == (whole.exit_code, whole.stdout) == (1, whole.stdout)
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    finished = invoke(*words)
    assert (finished.exit_code, finished.stdout) == (1, whole.stdout)
    assert "is finished: 8 rows" in finished.stderr


@pytest.mark.parametrize("name", ["metrics.jsonl", "manifest.json", "notes.txt"])
def test_no_file_of_the_run_is_replaced(invoke: Invoke, run_folder: Path, tmp_path: Path, name: str) -> None:
    own, other = run_folder / name, tmp_path / "elsewhere"
    own.write_text("{}\n")
    other.symlink_to(own)
    for path in (own, other):
        result = invoke("rescore", run_folder, "-o", path, "--overwrite")
        assert (result.exit_code, own.read_text()) == (2, "{}\n")
        assert "the run's own file" in result.output


def test_rollouts_without_observations_are_scored_and_it_is_said(invoke: Invoke, run_folder: Path) -> None:
    path = run_folder / "rollouts.jsonl"
    rows = rows_of(path)
    for row in rows:
        del row["observations"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = invoke("rescore", run_folder)
    assert result.exit_code == 0
    assert "hold no observations" in result.output


def test_what_cannot_be_executed_now_is_not_confirmed(invoke: Invoke, run_folder: Path, bank: Any) -> None:
    bank.down = True
    result = invoke("rescore", run_folder, "--json")
    assert result.exit_code == 1
    replay = json.loads(result.stdout)["replay"]
    assert (replay["masked"], replay["unconfirmed"], replay["differences"]) == (4, 4, [])


def test_the_runs_own_file_is_never_written(invoke: Invoke, run_folder: Path) -> None:
    path = run_folder / "rollouts.jsonl"
    before = path.read_bytes()
    assert invoke("rescore", run_folder, "-o", path).exit_code == 2
    assert path.read_bytes() == before


def test_a_bad_row_is_named_and_the_others_go_on(invoke: Invoke, run_folder: Path) -> None:
    path = run_folder / "rollouts.jsonl"
    path.write_text(path.read_text() + '{"task": "t99", "completion": ""}\n[]\n')
    result = invoke("rescore", run_folder, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["scores"]["bad"] == 2
    assert "rollouts.jsonl:9" in result.stderr


def test_a_schedule_is_told_the_steps_of_the_training(
    invoke: Invoke, run_folder: Path, tmp_path: Path, registry: cw.Registry
) -> None:
    """Training counts steps from 0, the rows that it leaves from 1 (tests of the local trainer say so)."""
    corpus, parser = registry.create("corpus", "bank-v1"), registry.create("parser", "json")
    recipe = registry.create("reward recipe", "toolrl-dynamic-scale")
    text = (run_folder / "recipe.toml").read_text().replace('"tier"', '"toolrl-dynamic-scale"')
    run = cw.Run.create(tmp_path / "scheduled", recipe_text=text, manifest={})
    rows, totals = [], []
    for step, old in enumerate(rows_of(run_folder / "rollouts.jsonl")):
        conditions = cw.Conditions(progress=Progress(step, 10))
        attempt = cw.Attempt(corpus.task(old["task"]), old["completion"], parser, conditions)
        rows.append({**old, **recipe.score_attempt(attempt).to_json(), "step": step + 1})
        totals.append(rows[-1]["total"])
    run.append("rollouts.jsonl", rows)
    out = tmp_path / "out.jsonl"
    result = invoke("rescore", run.path, "--recipe", "toolrl-dynamic-scale", "-o", out, "--json")
    assert result.exit_code == 0, result.output
    assert (json.loads(result.stdout)["replay"]["rewards"], json.loads(result.stdout)["replay"]["differing"]) == (8, 0)
    assert [row["total"] for row in rows_of(out)] == totals
    ends = [row["scores"]["format"]["high"] for row in rows_of(out)]
    assert ends == pytest.approx([2 - step / 10 for step in range(8)])


def test_a_folder_that_is_no_run(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("rescore", tmp_path)
    assert result.exit_code != 0


def test_workers_find_the_same(invoke: Invoke, run_folder: Path, tmp_path: Path) -> None:
    alone = invoke("rescore", run_folder, "-o", tmp_path / "alone.jsonl", "--json")
    several = invoke(
        "rescore", run_folder, "-o", tmp_path / "several.jsonl", "--json", "--workers", "2", "--executor", "thread"
    )
    assert (several.exit_code, several.stdout) == (alone.exit_code, alone.stdout)
    assert (tmp_path / "several.jsonl").read_bytes() == (tmp_path / "alone.jsonl").read_bytes()


def test_a_changed_file_that_a_reward_reads_is_another_command(
    run_folder: Path, tmp_path: Path, registry: cw.Registry
) -> None:
    rubric = tmp_path / "rubric.toml"
    rubric.write_text("about = 'x'\n")
    source = rescoring.open_run(registry, str(run_folder))
    asked = rescoring.Replaying(rescoring.PluginSource(None), str(run_folder), "judge", {"rubric": str(rubric)})
    before = asked.about(registry, source)
    assert asked.about(registry, source) == before
    rubric.write_text("about = 'y'\n")
    assert {key for key, value in asked.about(registry, source).items() if value != before[key]} == {"files of rewards"}
