"""``callwright score``: the interface that others rely on."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import callwright as cw
from callwright.cli.score import watched
from callwright.commands.bars import Bars
from callwright.commands.file_formats import schema_of
from callwright.commands.jsonl import RowFile

Invoke = Callable[..., Result]
Gold = Callable[[str], str]
Write = Callable[..., Path]
SUMS = ("--corpus", "sums-v1", "--recipe", "sums")


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def row(row_id: str | int, task: str, completion: str) -> dict[str, Any]:
    return {"id": row_id, "task": task, "completion": completion}


def test_rows_come_out_in_order_with_their_rewards(
    invoke: Invoke, gold: Gold, write_rows: Write, tmp_path: Path, registry: cw.Registry
) -> None:
    given_rows = [
        row("a", "train-2", gold("train-2")),
        row(7, "train-1", gold("train-1").replace('"b": 1', '"b": 2')),
        row("c", "train-0", "no program at all"),
        row("a", "train-0", gold("train-0")),
    ]
    out = tmp_path / "out.jsonl"
    result = invoke("score", write_rows(given_rows), *SUMS, "-o", out)
    assert result.exit_code == 0, result.stderr
    found = read(out)
    assert [one["id"] for one in found] == ["a", 7, "c", "a"]
    assert [one["total"] for one in found] == [1.0, 0.25, 0.0, 1.0]
    assert [one["stage"] for one in found] == ["done", "answer", "format", "done"]
    recipe, corpus = registry.create("reward recipe", "sums"), registry.create("corpus", "sums-v1")
    for one, source in zip(found, given_rows, strict=True):
        reward = recipe.score(corpus.task(source["task"]), source["completion"], registry=registry)
        assert one == {"id": source["id"], **reward.to_json()}
    assert result.stderr == (
        "warning: 1 row has the id of an earlier one (first: line 4, id 'a'); all are scored\n"
        "4 rows scored, 0 of them masked, 0 bad, mean total 0.5625\n"
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_evidence_of_the_terms_that_are_asked_for(
    invoke: Invoke, gold: Gold, write_rows: Write, tmp_path: Path, workers: int
) -> None:
    given_rows = [row(1, "train-2", gold("train-2")), row(2, "train-1", "x"), row(3, "nowhere", "x")]
    source, found = write_rows(given_rows), {}
    for kept in ("all", "lost", "none"):
        out = tmp_path / f"{kept}.jsonl"
        result = invoke("score", source, *SUMS, "-o", out, "--evidence", kept, "--workers", workers)
        assert result.exit_code == 1, result.stderr
        assert result.stderr.endswith("2 rows scored, 0 of them masked, 1 bad, mean total 0.5000\n")
        found[kept] = read(out)
    gates = {"gate_closed"}
    for kept, rows in found.items():
        for one, whole in zip(rows, found["all"], strict=True):
            for name, score in one["scores"].items():
                told = whole["scores"][name]["evidence"]
                if kept == "none" or (kept == "lost" and {each["code"] for each in told} == gates):
                    told = []
                assert score == {**whole["scores"][name], "evidence": told}
    assert found["lost"] != found["all"] != found["none"] != found["lost"]


def test_output_fits_its_schema(invoke: Invoke, gold: Gold, write_rows: Write, tmp_path: Path) -> None:
    import jsonschema_rs

    given_rows = [row(1, "train-1", gold("train-1")), row("2", "train-2", "x"), row("3", "train-1", _outage())]
    source, out = write_rows(given_rows), tmp_path / "out.jsonl"
    invoke("score", source, *SUMS, "-o", out)
    reader = jsonschema_rs.validator_for(schema_of("score-input"))
    written = jsonschema_rs.validator_for(schema_of("score-output"))
    for one in read(source):
        reader.validate(one)
    assert len(read(out)) == 3
    for one in read(out):
        written.validate(one)


def _outage() -> str:
    return '<think>\n</think>\n<tool_call return="one">{"0": {"outage": {"x": 1}}}</tool_call>'


def stumbling(calls: str) -> str:
    return f'<think>\n</think>\n<tool_call return="one">{calls}</tool_call>'


@pytest.mark.parametrize("options", [(), ("--workers", "2", "--executor", "thread")], ids=["serial", "threads"])
def test_failures_that_no_tool_declares_are_counted_by_tool(
    invoke: Invoke, gold: Gold, write_rows: Write, options: tuple[str, ...]
) -> None:
    broken = stumbling('{"0": {"stumble": {"x": 1}}, "1": {"add": {"a": 1, "b": 1}}}')
    source = write_rows([row(1, "train-1", gold("train-1")), row(2, "train-1", broken), row(3, "train-1", broken)])
    result = invoke("score", source, *SUMS, "--json", *options)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)["undeclared"]
    assert list(found) == ["stumble"]
    assert {**found["stumble"], "account": ""} == {
        "calls": 2, "failures": 2, "share": 1.0, "alarming": True, "account": "",
    }  # fmt: skip
    assert found["stumble"]["account"].startswith("stumble raised IndexError")
    assert "alarm: tools raise what they do not declare" in result.stderr
    assert "stumble in 2 of 2 calls (100.0%)" in result.stderr
    fine = write_rows([row(1, "train-1", gold("train-1"))])
    assert "undeclared" not in json.loads(invoke("score", fine, *SUMS, "--json").stdout)


def test_a_row_whose_machinery_failed_is_masked(invoke: Invoke, write_rows: Write, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    result = invoke("score", write_rows([row(1, "train-1", _outage())]), *SUMS, "-o", out)
    assert result.exit_code == 1  # as an evaluation in which every task is masked
    summed, why, end = result.stderr.splitlines()
    assert summed == "1 rows scored, 1 of them masked, 0 bad"
    assert why.startswith("1 masked: ")
    assert "the server does not answer" in why
    assert end == "every row is masked: nothing is known of them, and nothing was scored"
    (found,) = read(out)
    assert found["total"] is None
    assert "the server does not answer" in found["masked"]


def test_of_some_masked_rows_the_reasons_are_said(
    invoke: Invoke, gold: Gold, write_rows: Write, tmp_path: Path
) -> None:
    rows = write_rows([row(1, "train-1", _outage()), row(2, "train-1", gold("train-1")), row(3, "train-1", _outage())])
    result = invoke("score", rows, *SUMS, "-o", tmp_path / "out.jsonl")
    assert result.exit_code == 0
    assert "2 masked: " in result.stderr
    assert "every row" not in result.stderr
    alone = invoke("score", write_rows([row(1, "train-1", _outage())]), *SUMS)
    assert (alone.exit_code, alone.stdout) == (1, "1 rows scored, 1 of them masked, 0 bad\n")


BAD_ROWS = [
    ("not json", "not valid JSON: Expecting value at column 1"),
    ('{"id": 1', "not valid JSON: "),
    ('{"id": "1', "not valid JSON: Invalid control character at column 10"),
    ("[1, 2]", "expected an object, found a list"),
    ("null", "expected an object, found null"),
    ('{"task": "train-1", "completion": "x"}', "the row has no 'id'"),
    ('{"id": null, "task": "train-1", "completion": "x"}', "'id' is null, expected a string or an integer"),
    ('{"id": true, "task": "train-1", "completion": "x"}', "'id' is true, expected a string or an integer"),
    ('{"id": 1, "completion": "x"}', "the row has no 'task'"),
    ('{"id": 1, "task": ["train-1"], "completion": "x"}', "'task' is a list, expected the id of a task"),
    ('{"id": 1, "task": "train-1"}', "the row has no 'completion'"),
    ('{"id": 1, "task": "train-1", "completion": 5}', "'completion' is a number, expected a string"),
    ('{"id": 1, "task": "train-1", "completions": []}', "the row has no 'completion'"),
    ('{"id": 1, "task": "train-1", "completions": [5]}', "the completions of an episode must be texts"),
    (
        '{"id": 1, "task": "train-99", "completion": "x"}',
        "There is no task of sums-v1 named 'train-99'. Some of its 24: ",
    ),
    ('{"id": 1, "task": "\\u001b[31m", "completion": "x"}', "There is no task of sums-v1 named '\\x1b[31m'."),
    ('{"id": 1, "task": "train-1", "completion": "x", "step": 3}', "'step' and 'total_steps' must be integers"),
    ('{"id": 1, "task": "train-1", "completion": "x", "step": 3, "total_steps": 0}', "'step' and 'total_steps' must"),
    ("[" * 100_000, "not valid JSON: nested too deeply"),
    ('{"id": 1, "n": ' + "9" * 5000 + "}", "not valid JSON: "),
]


def test_a_row_of_several_turns_needs_no_other_completion(
    invoke: Invoke, gold: Gold, write_rows: Write, tmp_path: Path
) -> None:
    text = gold("train-1")
    alone = {"id": "a", "task": "train-1", "completions": [text]}
    kept = {"id": "b", "task": "train-1", "turns": [{"completion": text}]}
    out = tmp_path / "out.jsonl"
    assert invoke("score", write_rows([alone, kept, row("c", "train-1", text)]), *SUMS, "-o", out).exit_code == 0
    assert len({found["total"] for found in read(out)}) == 1


@pytest.mark.parametrize(("line", "reason"), BAD_ROWS, ids=[reason[:40] for _, reason in BAD_ROWS])
def test_a_bad_row_is_reported_with_its_line_and_the_others_are_scored(
    invoke: Invoke, gold: Gold, write_rows: Write, tmp_path: Path, line: str, reason: str
) -> None:
    good = row("good", "train-1", gold("train-1"))
    source, out = write_rows([good, "", line, {**good, "id": "too"}]), tmp_path / "out.jsonl"
    result = invoke("score", source, *SUMS, "-o", out)
    assert result.exit_code == 1
    first, last = result.stderr.splitlines()
    assert first.startswith(f"{source}:3: {reason}")
    assert last == "2 rows scored, 0 of them masked, 1 bad, mean total 1.0000"
    assert [one["id"] for one in read(out)] == ["good", "too"]


def test_bytes_that_are_not_utf8_are_a_bad_row(invoke: Invoke, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_bytes(b'\xef\xbb\xbf{"id": 1, "task": "train-0", "completion": "x"}\n{"id": "\xff"}\n')
    result = invoke("score", source, *SUMS)
    assert result.exit_code == 1
    assert f"{source}:2: not valid JSON: " in result.stderr
    assert "1 rows scored" in result.stdout  # the mark at the beginning of the file does no harm


def test_stdin_stdout_and_compressed_files(invoke: Invoke, gold: Gold, write_rows: Write, tmp_path: Path) -> None:
    source = write_rows([row(number, "train-1", gold("train-1")) for number in range(3)])
    plain = invoke("score", source, *SUMS, "-o", "-")
    assert [json.loads(line)["id"] for line in plain.stdout.splitlines()] == [0, 1, 2]
    assert invoke("score", "-", *SUMS, "-o", "-", input=source.read_bytes()).stdout == plain.stdout
    packed, out = tmp_path / "in.jsonl.gz", tmp_path / "out.jsonl.gz"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    assert invoke("score", packed, *SUMS, "-o", out).exit_code == 0
    assert gzip.decompress(out.read_bytes()).decode() == plain.stdout


def test_an_integer_task_is_its_text(invoke: Invoke, write_rows: Write) -> None:
    result = invoke("score", write_rows([{"id": 1, "task": 5, "completion": "x"}]), *SUMS)
    assert "There is no task of sums-v1 named '5'" in result.stderr


def test_a_summary_without_output(invoke: Invoke, gold: Gold, write_rows: Write) -> None:
    source = write_rows([row(1, "train-1", gold("train-1")), row(2, "train-1", "x")])
    drawn = invoke("score", source, *SUMS)
    assert drawn.exit_code == 0
    assert "2 rows scored, 0 of them masked, 0 bad, mean total 0.5000" in drawn.stdout
    summary = json.loads(invoke("score", source, *SUMS, "--json").stdout)
    assert summary == {
        "rows": 2,
        "bad": 0,
        "masked": 0,
        "mean_total": 0.5,
        "components": {
            "format": {"mean": 0.5, "low": 0.0, "high": 1.0, "weight": 0.25},
            "answer": {"mean": 0.5, "low": 0.0, "high": 1.0, "weight": 0.75},
        },
        "stages": {"format": 1, "done": 1},
    }


def test_no_rows_at_all(invoke: Invoke, write_rows: Write) -> None:
    summary = json.loads(invoke("score", write_rows([]), *SUMS, "--json").stdout)
    assert summary["rows"] == 0
    assert summary["mean_total"] is None
    assert invoke("score", write_rows([]), *SUMS).exit_code == 0


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("nothing.jsonl", *SUMS), 2, "error: nothing.jsonl cannot be read: No such file or directory"),
        ((".", *SUMS), 2, "error: . is a folder, not a file of rows"),
        (("IN", "--corpus", "suns-v1"), 2, "error: There is no corpus named 'suns-v1'. Did you mean 'sums-v1'?"),
        (("IN", "--corpus", "sums-v1", "--recipe", "sumz"), 2, "error: There is no reward recipe named 'sumz'."),
        (("IN", *SUMS, "--ir", "jason"), 2, "error: There is no parser named 'jason'. Did you mean 'json'?"),
        (("IN", *SUMS, "--corpus-option", "colour=1"), 2, "error: There is no option of the corpus 'sums-v1' named"),
        (("IN", *SUMS, "-o", "no/such/folder/out"), 1, "error: no/such/folder/out cannot be written: No such file"),
        (("IN", *SUMS, "-o", "."), 1, "error: . cannot be written: Is a directory"),
    ],
)
def test_requests_that_cannot_be_met(
    invoke: Invoke, write_rows: Write, words: tuple[str, ...], status: int, said: str
) -> None:
    source = write_rows([row(1, "train-1", "x")])
    result = invoke("score", *(str(source) if word == "IN" else word for word in words))
    assert result.exit_code == status
    assert result.stderr.startswith(said)
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_options_of_the_corpus(invoke: Invoke, write_rows: Write) -> None:
    source = write_rows([row(1, "train-20", "x")])
    assert invoke("score", source, *SUMS).exit_code == 1
    assert invoke("score", source, *SUMS, "--corpus-option", "count=30", "--data", "somewhere").exit_code == 0


def test_the_input_is_not_emptied(invoke: Invoke, write_rows: Write) -> None:
    source = write_rows([row(1, "train-1", "x")])
    before = source.read_text()
    result = invoke("score", source, *SUMS, "-o", source)
    assert result.exit_code == 2
    assert "IN and OUT are the same file" in result.stderr
    assert source.read_text() == before


def test_an_earlier_output_survives_a_request_that_cannot_be_met(
    invoke: Invoke, write_rows: Write, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("precious\n")
    invoke("score", tmp_path / "nothing", *SUMS, "-o", out)
    invoke("score", write_rows([]), "--corpus", "suns", "-o", out)
    assert out.read_text() == "precious\n"


def test_a_component_that_raises_stops_the_run_and_keeps_what_was_scored(
    invoke: Invoke, write_rows: Write, tmp_path: Path
) -> None:
    result = invoke("score", write_rows([row(1, "train-1", "x")]), "--corpus", "sums-v1", "--recipe", "buggy")
    assert result.exit_code == 5
    assert "reward component 'buggy' of 'buggy' raised ZeroDivisionError: a bug (task 'train-1')" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (lambda corpus, name: {}[name], "raised KeyError: 'train-1'. Of an id that is not there it must raise"),
        (lambda corpus, name: corpus["train"][0], "is the task 'train-0', and not the one of that id"),
        (lambda corpus, name: None, "is None, and not the one of that id"),
    ],
)
def test_a_corpus_that_does_not_find_its_tasks_is_told_of(
    invoke: Invoke, write_rows: Write, monkeypatch: pytest.MonkeyPatch, found: Any, said: str
) -> None:
    from cli_fakes import Sums

    monkeypatch.setattr(Sums, "task", found)
    result = invoke("score", write_rows([row("a", "train-1", "x")]), *SUMS)
    assert result.exit_code == 5
    assert f"task('train-1') of the corpus 'sums-v1' {said}" in result.stderr


def test_a_damaged_archive(invoke: Invoke, tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl.gz", tmp_path / "out.jsonl"
    lines = "".join(json.dumps(row(n, "train-1", f"x{n * 7919}")) + "\n" for n in range(5000))
    packed = gzip.compress(lines.encode())
    source.write_bytes(packed[: len(packed) // 2])
    result = invoke("score", source, *SUMS, "-o", out)
    assert result.exit_code == 2
    assert "cannot be read after line" in result.stderr
    scored = read(out)
    assert 0 < len(scored) < 5000
    assert [one["id"] for one in scored] == list(range(len(scored)))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk(invoke: Invoke, write_rows: Write) -> None:
    result = invoke("score", write_rows([row(1, "train-1", "x")]), *SUMS, "-o", "/dev/full")
    assert result.exit_code == 1
    assert (
        result.stderr == "error: /dev/full cannot be written: No space left on device. The rows that fitted are kept\n"
    )


@pytest.mark.parametrize("name", ["in.jsonl", "in.jsonl.gz"])
def test_a_long_file_is_watched_by_its_bytes(tmp_path: Path, name: str) -> None:
    source, moved = tmp_path / name, []
    data = b"".join(b'{"id": %d}\n' % number for number in range(60_000))
    source.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)

    class Watching(Bars):
        def start(self, stage: str, total: int, done: int = 0) -> None:
            moved.append(-total)

        def advance(self, units: int = 1, **figures: float) -> None:
            moved.append(units)

    with RowFile(str(source)) as given_rows:
        lines = [f"{one}\n" for one in given_rows]
    with RowFile(str(source)) as given_rows:
        assert list(watched((f"{one}\n" for one in given_rows), given_rows, Watching())) == lines
    assert sum(moved) == 0
    assert sum(units > 0 for units in moved) > 1
    assert min(moved[1:]) >= 0


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_workers_give_the_same_file(
    invoke: Invoke, gold: Gold, write_rows: Write, tmp_path: Path, executor: str
) -> None:
    rows: list[Any] = [row(number, f"train-{number % 12}", gold(f"train-{number % 7}")) for number in range(700)]
    rows[3], rows[300] = {"id": "bad"}, "no JSON"
    source = write_rows(rows)
    alone = invoke("score", source, *SUMS, "-o", tmp_path / "alone.jsonl", "--json")
    several = invoke(
        "score", source, *SUMS, "-o", tmp_path / "several.jsonl", "--json", "--workers", "2", "--executor", executor
    )
    assert (several.exit_code, several.stdout) == (alone.exit_code, alone.stdout)
    assert alone.exit_code == 1
    assert several.stderr.replace("several", "alone") == alone.stderr
    assert (tmp_path / "several.jsonl").read_bytes() == (tmp_path / "alone.jsonl").read_bytes()


def test_a_wrong_request_is_refused_before_any_worker_starts(invoke: Invoke, write_rows: Write) -> None:
    result = invoke("score", write_rows([]), "--corpus", "sums-v2", "--workers", "2")
    assert result.exit_code == 2
    assert "Did you mean 'sums-v1'" in result.stderr
    assert invoke("score", write_rows([]), *SUMS, "--workers", "0").exit_code == 2


def test_whether_it_was_cut_off_is_true_or_false(invoke: Invoke, write_rows: Write) -> None:
    result = invoke("score", write_rows([{**row("a", "train-1", "x"), "truncated": "yes"}]), *SUMS)
    assert result.exit_code == 1
    assert "in.jsonl:1: 'truncated' is text, expected true or false" in result.stderr
