"""``callwright import`` to Parquet: the same rows as JSON lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright.cli.root import root as root_command
from callwright.commands.app import App
from callwright.episodes.logs.files import pieces_of
from callwright.errors import RunError
from callwright_plugins.log_formats.parquet_rows import ParquetSink

pytest.importorskip("pyarrow", reason="pip install 'callwright[data]'")
FILES = Path(__file__).parent / "files"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def run(*words: object) -> tuple[int, str]:
    app = App(registry=cw.default_registry())
    done = CliRunner().invoke(root_command, [str(word) for word in words], obj=app, catch_exceptions=False)
    return done.exit_code, done.stderr


def read(path: Path) -> list[Any]:
    return [piece.value for piece in pieces_of(path)]


def same(path: Path, *words: object) -> list[Any]:
    """The rows of both forms, which are to be equal."""
    for name in ("out.jsonl", "out.parquet"):
        status, said = run("import", *words, "-o", path / name)
        assert status == 0, said
    lines = [json.loads(line) for line in (path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [piece.value for piece in pieces_of(path / "out.parquet")] == lines
    assert sorted(one.name for one in path.iterdir() if one.name.startswith("out.")) == ["out.jsonl", "out.parquet"]
    return lines


@pytest.mark.parametrize("name", ["openai.jsonl", "otel.jsonl", "langchain.jsonl", "atif.json", "inspect.json"])
@pytest.mark.parametrize("kind", [(), ("--atif",)])
def test_rows_are_those_of_json_lines(name: str, kind: tuple[str, ...], tmp_path: Path) -> None:
    assert same(tmp_path, FILES / name, *kind)


def test_logs_score_the_same(tmp_path: Path) -> None:
    truths = tmp_path / "truths.jsonl"
    truths.write_text(json.dumps({"id": "ford", "truth": {"answer": ["Washington"]}}), encoding="utf-8")
    same(tmp_path, FILES / "otel.jsonl", "--truths", truths)
    totals = []
    for name in ("out.jsonl", "out.parquet"):
        status, said = run("score", tmp_path / name, "--format", "auto", "-o", tmp_path / "r.jsonl", "--overwrite")
        assert status == 0, said
        totals.append((tmp_path / "r.jsonl").read_text(encoding="utf-8"))
    assert totals[0] == totals[1]
    assert json.loads(totals[0])["total"] == 0.4
    (row,) = same(tmp_path, FILES / "otel.jsonl", "--truths", truths, "--sft", "--recipe", "tier", "--overwrite")
    assert row["reward"] == 0.4


def test_columns_have_the_type_of_their_values(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [
        {"id": "a", "seed": 1, "reward": 0.5, "cut": True, "tools": [{"x": None}], "mixed": 1, "metadata": "[1]"},
        {"id": "b", "seed": -2, "reward": 1.0, "mixed": "1", "wide": 2**80, "none": None, "half": "\ud800"},
    ]
    path = tmp_path / "a.parquet"
    with ParquetSink(str(path)) as sink:
        for row in rows:
            sink.write(json.dumps(row) + "\n")
    assert [piece.value for piece in pieces_of(path)] == rows
    types = {field.name: str(field.type) for field in parquet.read_schema(path)}
    plain = {"id": "string", "seed": "int64", "reward": "double", "cut": "bool"}
    assert types == plain | dict.fromkeys(["tools", "mixed", "metadata", "wide", "none", "half"], "string")


def test_no_rows_are_a_file(tmp_path: Path) -> None:
    with ParquetSink(str(tmp_path / "a.parquet")):
        pass
    assert list(pieces_of(tmp_path / "a.parquet")) == []


def test_after_an_error_what_was_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"before")

    def fail() -> None:
        with ParquetSink(str(path)) as sink:
            sink.write('{"id": "a"}\n')
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [one.name for one in tmp_path.iterdir()] == ["a.parquet"]
    assert path.read_bytes() == b"before"


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be written"), ParquetSink(str(tmp_path / "no" / "a.parquet")):
        pass


def test_trainers_find_conversations_as_they_want_them(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="needs the extra 'data' with datasets")
    (row,) = [json.loads(line) for line in (FILES / "openai.jsonl").read_text("utf-8").splitlines()]
    short = {**row, "id": "short", "messages": [*row["messages"][:4], row["messages"][-1]]}
    rows = [
        {**one, "truth": {"answer": answer}} for one, answer in ((row, ["Washington"]), (short, [{"country": "USA"}]))
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    words = ("import", tmp_path / "log.jsonl", "--recipe", "tier-no-execution", "--format", "openai")
    words = (*words, "--format-option", "failed=^no country")
    for kind, columns in (("--sft", ("messages",)), ("--pairs", ("prompt", "chosen", "rejected"))):
        out = tmp_path / f"rows{kind}.parquet"
        assert run(*words, kind, "-o", out)[0] == 0
        assert run(*words, kind, "-o", tmp_path / "rows.jsonl", "--overwrite")[0] == 0
        wanted = read(tmp_path / "rows.jsonl")
        found = datasets.Dataset.from_parquet(str(out), cache_dir=str(tmp_path / "cache"))
        assert len(found) == len(wanted) > 0
        for there, row in zip(found, wanted, strict=True):
            for name in columns:
                assert [_said(one) for one in there[name]] == [_said(one) for one in row[name]]
            assert json.loads(there["tools"]) == row["tools"]


def _said(message: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if value is not None}


def test_one_document_is_no_rows(tmp_path: Path) -> None:
    words = ("import", FILES / "otel.jsonl", "--otel", "--recipe", "tier", "-o", tmp_path / "events.parquet")
    assert run(*words)[0] == 2
    assert not (tmp_path / "events.parquet").exists()


@given(rows=st.lists(st.dictionaries(st.sampled_from("abc"), JSON, min_size=1, max_size=3), max_size=5))
def test_any_rows_come_back(rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    with ParquetSink(str(path), ("a",)) as sink:
        for row in rows:
            sink.write(json.dumps(row) + "\n")
    assert read(path) == rows
