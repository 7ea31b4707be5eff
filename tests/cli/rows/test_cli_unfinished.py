"""``callwright score -o OUT``: whenever it is stopped, the same command ends in the same bytes, and nothing is lost."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from callwright.commands import jsonl
from callwright.commands.file_formats import schema_of
from callwright.commands.outputs import unfinished

Invoke = Callable[..., Result]
Gold = Callable[[str], str]
Write = Callable[..., Path]
Start = Callable[..., "subprocess.Popen[str]"]
SUMS = ("--corpus", "sums-v1", "--recipe", "sums")


@pytest.fixture
def source(gold: Gold, write_rows: Write) -> Path:
    """Good rows, bad ones, blank lines and masked ones."""
    down = '<think>\n</think>\n<tool_call return="one">{"0": {"outage": {"x": 1}}}</tool_call>'
    rows: list[Any] = [
        {"id": n, "task": f"train-{n % 5}", "completion": (gold(f"train-{n % 3}"), "no program", down)[n % 3]}
        for n in range(24)
    ]
    rows[4], rows[9], rows[15] = "no JSON", "", {"id": "bad"}
    return write_rows(rows)


def score(invoke: Invoke, source: Path, out: Path, *more: str) -> Result:
    return invoke("score", source, *SUMS, "-o", out, "--json", *more)


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz", "out.jsonl.zst"])
def test_every_moment_at_which_it_may_be_killed_leads_to_the_same_bytes(
    invoke: Invoke, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name.endswith(".zst"):
        pytest.importorskip("zstandard")
    monkeypatch.setattr(jsonl, "_CHUNK", 1200)  # several flushes, each with lines that wait for the next one
    monkeypatch.setattr(unfinished, "EVERY", 0.0)
    monkeypatch.setattr(unfinished, "_SHARE", 0.0)
    folder, moments = tmp_path / "at", tmp_path / "moments"
    folder.mkdir()
    out = folder / name

    def kill() -> None:
        """What a kill would leave at this moment."""
        shutil.copytree(folder, moments / str(len(list(moments.glob("*")))))

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            kill()
            function(*args, **more)
            kill()

        return call

    moments.mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(jsonl.RowSink, "_flush", watched(jsonl.RowSink._flush))
        patched.setattr(unfinished, "write_atomically", watched(unfinished.write_atomically))
        whole = score(invoke, source, out)
    assert whole.exit_code == 1
    found = sorted(moments.glob("*"), key=lambda path: int(path.name))
    assert len(found) > 50
    resumed = 0
    for moment in found[:: 5 if name != "out.jsonl" else 3] + found[-3:]:
        again = score(invoke, source, moment / name)
        assert (again.exit_code, again.stdout) == (whole.exit_code, whole.stdout), moment
        assert (moment / name).read_bytes() == out.read_bytes(), moment
        resumed += "going on after line" in again.stderr
    assert resumed > 5


def test_a_ledger_fits_its_schema(invoke: Invoke, source: Path, tmp_path: Path) -> None:
    import jsonschema_rs

    out = tmp_path / "out.jsonl"
    score(invoke, source, out)
    ledger = json.loads(Path(f"{out}.ledger.json").read_text())
    jsonschema_rs.validator_for(schema_of("out-ledger")).validate(ledger)
    assert ledger["finished"]
    assert (ledger["input"]["lines"], ledger["output"]["bytes"]) == (24, out.stat().st_size)


def test_an_empty_input_is_named(invoke: Invoke, tmp_path: Path) -> None:
    empty, blank = tmp_path / "empty.jsonl", tmp_path / "blank.jsonl"
    empty.touch()
    blank.write_text("\n\n")
    assert f"warning: {empty} is empty" in invoke("score", empty, *SUMS).stderr
    assert f"warning: {blank} holds no rows, only blank lines" in invoke("score", blank, *SUMS).stderr


def test_a_finished_output_stays_as_it_is(invoke: Invoke, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    first = score(invoke, source, out)
    written, when = out.read_bytes(), out.stat().st_mtime_ns
    again = score(invoke, source, out)
    assert (again.exit_code, again.stdout) == (1, first.stdout)  # bad rows are bad the second time, too
    assert f"{out} is finished: 21 rows; --overwrite starts anew" in again.stderr
    assert (out.read_bytes(), out.stat().st_mtime_ns) == (written, when)
    anew = score(invoke, source, out, "--overwrite")
    assert (anew.stdout, out.read_bytes()) == (first.stdout, written)
    assert out.stat().st_mtime_ns > when


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--seed", "3"), "seed was 0, is now 3"),
        (("--truncated", "mask"), "reward options was {}, is now {'truncated': 'mask'}"),
        (("--corpus-option", "count=30"), "corpus options was {}, is now {'count': 30}"),
    ],
)
def test_another_command_is_refused(
    invoke: Invoke, source: Path, tmp_path: Path, more: tuple[str, ...], said: str
) -> None:
    out = tmp_path / "out.jsonl"
    score(invoke, source, out)
    written = out.read_bytes()
    refused = score(invoke, source, out, *more)
    assert (refused.exit_code, out.read_bytes()) == (2, written)
    assert said in refused.stderr
    assert "--overwrite" in refused.stderr
    assert score(invoke, source, out, *more, "--overwrite").exit_code == 1


def test_a_file_that_nobody_knows_is_not_emptied(invoke: Invoke, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("precious\n")
    refused = score(invoke, source, out)
    assert (refused.exit_code, out.read_text()) == (2, "precious\n")
    assert "no ledger beside it says what it is of" in refused.stderr
    out.write_text("")  # as mktemp makes it
    assert score(invoke, source, out).exit_code == 1


@pytest.mark.parametrize("what", ["input", "longer", "output", "shorter", "ledger", "state"])
def test_what_was_changed_in_between_is_found(invoke: Invoke, source: Path, tmp_path: Path, what: str) -> None:
    out = tmp_path / "out.jsonl"
    score(invoke, source, out)
    ledger = Path(f"{out}.ledger.json")
    match what:
        case "input":
            source.write_text(source.read_text().replace("no program", "no Program", 1))
        case "longer":
            source.write_text(source.read_text() + '{"id": "new", "task": "train-1", "completion": "x"}\n')
        case "output":
            out.write_text(out.read_text().replace("1.0", "0.9", 1))
        case "shorter":
            out.write_text(out.read_text()[:-10])
        case "ledger":
            ledger.write_text("[]")
        case _:
            ledger.write_text(ledger.read_text().replace('"sums"', '"summs"'))
    written = out.read_bytes()
    refused = score(invoke, source, out)
    assert (refused.exit_code, out.read_bytes()) == (2, written), refused.stderr
    assert "--overwrite" in refused.stderr


def test_a_second_command_on_the_same_output_is_refused(invoke: Invoke, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with jsonl.RowFile(str(source)) as rows, unfinished.UnfinishedOutput(str(out), rows, {}):
        refused = score(invoke, source, out, "--overwrite")
    assert refused.exit_code == 1
    assert f"{out} is being written by process" in refused.stderr


def test_what_was_set_aside_twice_stands_there_once(source: Path, tmp_path: Path) -> None:
    out, aside = tmp_path / "out.jsonl", tmp_path / "aside.jsonl"
    aside.write_text("earlier\n")

    def start() -> unfinished.UnfinishedOutput:
        return unfinished.UnfinishedOutput(str(out), rows, {}, beside=str(aside))

    with jsonl.RowFile(str(source)) as rows, start() as output:
        chunks = output.watched(jsonl.chunks_of(rows, 2))
        next(chunks)
        with output.part():
            pass
        output._save({"done": 1})
        aside.write_text("earlier\nlater\n")  # and then it is killed
    with jsonl.RowFile(str(source)) as rows, start() as output:
        assert (output.state, rows.number) == ({"done": 1}, 2)
        assert aside.read_text() == "earlier\n"


def test_a_command_that_is_killed_goes_on_with_however_many_workers(start: Start, gold: Gold, tmp_path: Path) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    row = {"task": "train-1", "completion": gold("train-1")}
    source.write_text("".join(json.dumps({"id": n, **row}) + "\n" for n in range(8_000)))

    def begin(out: Path, workers: int = 1) -> subprocess.Popen[str]:
        return start("score", source, *SUMS, "-o", out, "--json", "--workers", workers)

    whole = begin(tmp_path / "whole.jsonl")
    said, _ = whole.communicate()
    for number, workers in ((signal.SIGKILL, 2), (signal.SIGTERM, 1)):
        process, before = begin(target, workers), target.stat().st_size if target.exists() else 0
        while process.poll() is None and (not target.exists() or target.stat().st_size <= before):
            time.sleep(0.01)
        process.send_signal(number)
        process.communicate()
    again = begin(target)
    stdout, errors = again.communicate()
    assert again.returncode == 0, errors
    assert stdout == said
    assert target.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
