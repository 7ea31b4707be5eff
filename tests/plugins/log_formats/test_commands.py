"""Logs on the command line: scored, imported, compared, and written for others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import callwright as cw
from callwright.cli.root import root as root_command
from callwright.commands.app import App

FILES = Path(__file__).parent / "files"
TRUTH = {"answer": ["Washington"]}


@pytest.fixture
def run() -> Callable[..., tuple[int, str, str]]:
    """Run a command: its status, what it printed, and what it said."""

    def command(*words: object) -> tuple[int, str, str]:
        app = App(registry=cw.default_registry())
        done = CliRunner().invoke(root_command, [str(word) for word in words], obj=app, catch_exceptions=False)
        return done.exit_code, done.stdout, done.stderr

    return command


def rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_number_that_may_be_any_is_shown_without_bounds(run: Any) -> None:
    assert "x<=None" not in run("import", "--help")[1]


@pytest.fixture
def truths(tmp_path: Path) -> Path:
    path = tmp_path / "truths.jsonl"
    path.write_text(json.dumps({"id": "ford", "truth": TRUTH}) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("form", ["otel", "auto"])
def test_a_log_is_scored(form: str, run: Any, truths: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    status, _, said = run("score", FILES / "otel.jsonl", "--format", form, "--truths", truths, "-o", out)
    assert status == 0, said
    assert "1 rows scored, 0 of them masked, 0 bad, mean total 0.4000" in said
    assert "ford: GetCapital, GetCapital were written in this order, and ran in the order 2, 1" in said
    (row,) = rows(out)
    assert (row["id"], row["total"], row["stage"]) == ("ford", 0.4, "execution")
    status, _, said = run("score", FILES / "otel.jsonl", "--format", form, "-o", out)
    assert status == 2
    assert "--overwrite" in said


def test_what_a_log_does_not_say_is_masked(run: Any, truths: Path) -> None:
    status, out, said = run("score", FILES / "openai.jsonl", "--format", "openai", "--truths", truths, "--json")
    assert status == 1
    assert "1 masked: " in said
    assert "every row is masked" in said
    assert (json.loads(out)["rows"], json.loads(out)["masked"]) == (1, 1)
    words = ("score", FILES / "openai.jsonl", "--format", "openai", "--truths", truths, "--json")
    _, out, _ = run(*words, "--format-option", "failed=^no country")
    assert json.loads(out)["mean_total"] == pytest.approx(0.4)


def test_rows_are_scored_against_calls_and_tools_that_are_stated(run: Any, tmp_path: Path) -> None:
    (row,) = rows(FILES / "openai.jsonl")
    (tmp_path / "tools.json").write_text(json.dumps(row.pop("tools")[:1]), encoding="utf-8")
    row["truth"] = [{"name": "GetCountry", "arguments": {"make": "Ford"}}]
    (tmp_path / "log.jsonl").write_text(json.dumps(row), encoding="utf-8")
    out = tmp_path / "out.jsonl"
    words = ("score", tmp_path / "log.jsonl", "--format", "openai", "--tools", tmp_path / "tools.json", "-o", out)
    assert run(*words, "--format-option", "failed=^no country")[0] == 0
    (scored,) = rows(out)
    assert scored["scores"]["names"]["value"] == 0.0
    assert "GetCapital" in scored["scores"]["names"]["evidence"][0]["reason"]
    assert run(*words, "--recipe", "toolrl", "--overwrite")[0] == 0
    assert -3 < rows(out)[0]["total"] < 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--format", "opnai"), "Did you mean 'openai'"),
        (("--tools", "tools.json"), "name their format with --format"),
        (("--format", "openai", "--workers", "2"), "scored by one worker"),
        (("--format", "openai", "--format-option", "faild=x"), "faild"),
        (("--format", "openai", "--tools", "absent.json"), "absent.json"),
        (("--format", "atif"), "openai.jsonl:1"),
    ],
)
def test_mistakes_are_named(words: tuple[str, ...], message: str, run: Any) -> None:
    status, _, said = run("score", FILES / "openai.jsonl", *words)
    assert status == 2
    assert message in said


def test_a_log_is_imported_and_scored_as_it_was(run: Any, truths: Path, tmp_path: Path) -> None:
    ours = tmp_path / "ours.jsonl.gz"
    status, _, said = run("import", FILES / "langsmith.jsonl", "-o", ours)
    assert (status, "1 logs read; 1 rows written" in said) == (0, True)
    (read,), (given,) = list(cw.read_log(ours)), list(cw.read_log(FILES / "langsmith.jsonl"))
    assert read.calls == given.calls
    assert read.messages == given.messages
    assert read.task.tools == given.task.tools
    assert run("import", FILES / "langsmith.jsonl", "-o", ours)[0] == 2
    assert run("import", FILES / "langsmith.jsonl", "-o", ours, "--overwrite")[0] == 0
    assert run("import", FILES / "langsmith.jsonl", "--sft", "-o", tmp_path / "x")[0] == 2
    kept = ours.read_bytes()
    status, _, said = run("import", FILES / "langsmith.jsonl", "--ir", "json", "-o", tmp_path / "x")
    assert (status, "name the reward with --recipe" in said) == (2, True)
    (tmp_path / "bad.jsonl").write_text('{"messages": 1}\n', encoding="utf-8")
    assert run("import", tmp_path / "bad.jsonl", "--format", "openai", "-o", ours, "--overwrite")[0] == 2
    assert ours.read_bytes() == kept


@pytest.mark.parametrize("name", ["openai.jsonl", "otel.jsonl", "langchain.jsonl", "inspect.eval", "responses.jsonl"])
def test_trajectories_hold_the_conversation(name: str, run: Any, tmp_path: Path) -> None:
    out = tmp_path / "atif.jsonl"
    assert run("import", FILES / name, "--atif", "-o", out)[0] == 0
    (read,), (given,) = list(cw.read_log(out)), list(cw.read_log(FILES / name))
    assert [one.text for one in read.messages] == [one.text for one in given.messages]
    assert [one.tool_calls for one in read.messages] == [one.tool_calls for one in given.messages]
    assert [one.thought for one in read.messages] == [one.thought for one in given.messages]
    assert read.task.tools == given.task.tools
    atif = pytest.importorskip("atif", reason="pip install atif")
    atif.Trajectory.model_validate(rows(out)[0])


def test_scores_are_events_on_the_span_that_they_are_about(run: Any, truths: Path, tmp_path: Path) -> None:
    out = tmp_path / "events.json"
    words = ("import", FILES / "otel.jsonl", "--otel", "--recipe", "tier", "--truths", truths, "-o", out)
    assert run(*words)[0] == 0
    (scope,) = rows(out)[0]["resourceLogs"][0]["scopeLogs"]
    records = scope["logRecords"]
    assert {one["spanId"] for one in records} == {"eee19b7ec3c1b174"}
    assert {one["eventName"] for one in records} == {"gen_ai.evaluation.result"}
    told = [{pair["key"]: next(iter(pair["value"].values())) for pair in one["attributes"]} for one in records]
    values = {one["gen_ai.evaluation.name"]: one["gen_ai.evaluation.score.value"] for one in told}
    assert values["tier"] == pytest.approx(0.4)
    assert values["tier.names"] == 1.0
    assert "did not execute" in told[0]["gen_ai.evaluation.explanation"]


def test_an_export_without_an_event_is_said(run: Any, tmp_path: Path) -> None:
    out = tmp_path / "events.json"
    status, _, said = run("import", FILES / "openai.jsonl", "--otel", "--recipe", "tier", "-o", out)
    assert status == 0
    assert "0 events written" in said
    assert "warning: no log is of a span" in said


def test_one_output_at_a_time(run: Any, tmp_path: Path) -> None:
    words = ("import", FILES / "openai.jsonl", "--recipe", "tier", "-o", tmp_path / "x.jsonl")
    status, _, said = run(*words, "--pairs", "--sft")
    assert (status, "--sft and --pairs are different outputs" in said) == (2, True)


def test_a_failed_import_leaves_no_file(run: Any, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    words = ("import", tmp_path / "table.csv", "-o", tmp_path / "x.jsonl")
    for _ in range(2):
        status, _, said = run(*words)
        assert (status, "is of no format" in said) == (2, True)
    assert not (tmp_path / "x.jsonl").exists()


def test_logs_in_which_no_assistant_speaks_are_no_attempts(run: Any, tmp_path: Path) -> None:
    asked = {"role": "user", "content": "Which country?"}
    logs = [{"id": "asked", "messages": [asked], "truth": []}, {"id": "nothing", "messages": [], "truth": []}]
    spoken = {**logs[0], "id": "spoken", "messages": [asked, {"role": "assistant", "content": "I cannot say."}]}
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, [*logs, {**spoken, "tools": []}])))
    out, ours, sft = (tmp_path / name for name in ("out.jsonl", "ours.jsonl", "sft.jsonl"))
    assert run("import", tmp_path / "log.jsonl", "-o", ours)[0] == 0
    for source, form in ((tmp_path / "log.jsonl", "openai"), (ours, "callwright")):
        words = ("score", source, "--format", form, "-o", out, "--overwrite")
        status, _, said = run(*words)
        assert status == 0
        assert "asked: the log holds no message of the assistant" in said
        assert "2 masked: the log holds no message of the assistant" in said
        if form == "openai":
            assert [one["total"] for one in rows(out)] == [None, None, 1.0]
    _, _, said = run("import", tmp_path / "log.jsonl", "--sft", "--recipe", "tier", "-o", sft)
    assert "3 logs read, 2 of them masked; 1 rows written" in said
    assert [one["id"] for one in rows(sft)] == ["spoken"]


def test_truths_that_are_none_are_named_with_their_line(run: Any, tmp_path: Path) -> None:
    (tmp_path / "truths.jsonl").write_text('\n{"id": "ford", "truth": {"answers": [1]}}\n')
    words = ("score", FILES / "openai.jsonl", "--format", "openai")
    status, _, said = run(*words, "--truths", tmp_path / "truths.jsonl")
    assert (status, "truths.jsonl:2: the truth of the log 'ford': a truth states" in said) == (2, True)
    (row,) = rows(FILES / "openai.jsonl")
    (tmp_path / "log.jsonl").write_text(f"\n{json.dumps({**row, 'truth': 5})}\n")
    status, _, said = run("score", tmp_path / "log.jsonl", "--format", "openai")
    assert (status, "log.jsonl:2: 'truth': the calls of a truth are a list, not 5" in said) == (2, True)


def test_texts_of_another_form_are_said_to_be_of_it(run: Any, tmp_path: Path) -> None:
    corpus = cw.corpus("toolworld-mini-v1")
    task = corpus.task("evaluation-16")
    assert task.program is not None
    text = cw.parser("json").render(task.program)
    said = [{"role": "user", "content": task.query}, {"role": "assistant", "content": text}]
    (tmp_path / "log.jsonl").write_text(json.dumps({"task": task.id, "messages": said}))
    words = (tmp_path / "log.jsonl", "--corpus", "toolworld-mini-v1", "-o", tmp_path / "out.jsonl", "--overwrite")
    remark = "1 log has calls in a text that the form 'hermes' does not read: name theirs with --ir json"
    assert remark in run("score", *words, "--format", "openai")[2]
    assert "name theirs" not in run("score", *words, "--format", "openai", "--ir", "json")[2]
    assert remark in run("import", *words, "--recipe", "tier")[2]
    assert "name theirs" not in run("import", *words, "--recipe", "tier", "--ir", "json")[2]


def test_rows_for_training_leave_out_what_is_masked(run: Any, tmp_path: Path) -> None:
    (row,) = rows(FILES / "openai.jsonl")
    opening = row["messages"][:2]
    good = {**row, "id": "good", "messages": [*opening, *row["messages"][2:4], row["messages"][-1]]}
    good["truth"] = {"answer": [{"country": "USA"}]}
    bad = {**row, "id": "bad", "truth": TRUTH}
    unknown = {**row, "id": "unknown"}
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, (good, bad, unknown))), encoding="utf-8")
    words = ("import", tmp_path / "log.jsonl", "--recipe", "tier-no-execution", "--format", "openai")
    words = (*words, "--format-option", "failed=^no country")
    sft = tmp_path / "sft.jsonl"
    status, _, said = run(*words, "--sft", "-o", sft)
    assert status == 0
    assert "3 logs read, 1 of them masked; 2 rows written" in said
    assert [one["id"] for one in rows(sft)] == ["good", "bad"]
    assert rows(sft)[0]["messages"] == good["messages"]
    assert rows(sft)[0]["tools"] == row["tools"]
    assert run(*words, "--sft", "--at-least", "1", "-o", sft, "--overwrite")[0] == 0
    assert [one["id"] for one in rows(sft)] == ["good"]
    pairs = tmp_path / "pairs.jsonl"
    assert run(*words, "--pairs", "-o", pairs)[0] == 0
    (pair,) = rows(pairs)
    assert pair["prompt"] == opening
    assert pair["chosen"] == good["messages"][2:]
    assert pair["rejected"] == bad["messages"][2:]
    assert pair["chosen_reward"] == 1.0 > pair["rejected_reward"]
    assert run(*words, "--pairs", "--margin", "0.9", "-o", pairs, "--overwrite")[0] == 0
    assert rows(pairs) == []


def test_rewards_are_compared_on_logs(run: Any, tmp_path: Path) -> None:
    corpus = cw.corpus("toolworld-mini-v1")
    path = tmp_path / "log.jsonl"
    for name in ("evaluation-16", "evaluation-17"):
        task = corpus.task(name)
        assert task.program is not None
        with cw.Log(task) as log:
            call = task.program.calls[0]
            log.call(call.tool, dict(call.arguments))
        log.write(path, append=True)
    words = ("lab", path, "--format", "auto", "--recipes", "tier,simple", "--probe-tasks", "1", "--json")
    status, out, said = run(*words, "--corpus", "toolworld-mini-v1")
    assert status == 0, said
    assert json.loads(out)["attempts"] == 2
    assert run(*words)[0] == 2
