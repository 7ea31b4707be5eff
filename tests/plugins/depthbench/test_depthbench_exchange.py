"""Export and import: what goes out comes back, and others can read it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve
from click.testing import CliRunner

import callwright_plugins.depthbench as plugin
from callwright.errors import DataError, UsageError
from callwright.plugins import load_plugins
from callwright.tools.spec import ToolSpec
from callwright.walk.task_rows.chats import chat_row
from callwright.walk.task_rows.writing import write_tasks
from callwright_plugins.depthbench.command import build, export, import_
from callwright_plugins.depthbench.corpus import FILE, DepthBenchCorpus
from callwright_plugins.depthbench.exchange import read, rows_of, write

CORPUS = DepthBenchCorpus()
ROWS = list(rows_of(CORPUS))
FIELDS = {
    "id", "split", "depth", "chain", "structure", "returns", "scenario", "prompt", "target_tools", "distractors",
    "program", "answer",
}  # fmt: skip


def _same(corpus: DepthBenchCorpus) -> None:
    assert corpus.splits == CORPUS.splits
    for split in CORPUS.splits:
        assert all(mine == theirs for mine, theirs in zip(CORPUS[split], corpus[split], strict=True))


def test_lines_hold_every_field_and_read_back_as_the_corpus(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    assert write(CORPUS, path, "jsonl") == 1710
    assert all(set(row) >= FIELDS for row in ROWS)
    _same(DepthBenchCorpus(path))
    assert read(path, "jsonl") == ROWS
    assert write(CORPUS, path, "jsonl", ["validation"]) == 766


def test_files_of_tasks_of_another_environment_are_refused(tmp_path: Path) -> None:
    tasks = load_plugins().create("corpus", "toolworld-mini-v1")["evaluation"][:2]
    write_tasks(tmp_path / "other.jsonl", tasks)
    with pytest.raises(DataError, match=r"is of the environment 'toolworld-mini-v1'; the corpus 'tasks' reads it"):
        DepthBenchCorpus(tmp_path / "other.jsonl")


def test_the_released_format_round_trips(tmp_path: Path) -> None:
    assert write(CORPUS, tmp_path / "official", "official") == 1710
    assert read(tmp_path / "official", "official") == ROWS
    queries = json.loads((tmp_path / "official" / "queries.json").read_text(encoding="utf-8"))
    assert list(queries) == [str(number) for number in range(1710)]
    for query, row in zip(queries.values(), ROWS, strict=True):
        assert set(query) == {
            "prompt", "num_calls", "follow_up", "return_all", "tag", "apis", "api_calls", "response", "callwright",
        }  # fmt: skip
        calls = json.loads(query["api_calls"])
        assert query["num_calls"] == len(calls) == row["depth"]
        if not calls:
            assert (query["api_calls"], query["response"]) == ("{}", "")
        else:
            assert list(json.loads(query["response"])) == (
                list(calls) if query["return_all"] else [max(calls, key=int)]
            )


def test_definitions_in_the_released_dialect_mean_the_same(tmp_path: Path) -> None:
    write(CORPUS, tmp_path, "official", ["train"])
    definitions = json.loads((tmp_path / "function_definitions.json").read_text(encoding="utf-8"))
    assert len(definitions) == 163
    assert '"object"' not in json.dumps(definitions)
    assert definitions["filter_cars_by_make"]["parameters"]["properties"]["cars"]["type"] == "pandas.DataFrame"
    for name, definition in definitions.items():
        back, spec = ToolSpec.from_tier(definition), CORPUS.environment.tools[name]
        assert (back.name, back.description, back.result_field) == (name, spec.description, spec.result_field)
        assert _types(back.parameters) == _types(spec.parameters)


def _types(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    return (
        schema.get("type"),
        {key: _types(inner) for key, inner in schema.get("properties", {}).items()},
        schema.get("required"),
    )


def test_the_released_benchmarks_reader_reads_it(tmp_path: Path) -> None:
    from callwright_plugins.recorded.depthbench_official import DepthBenchOfficial

    write(CORPUS, tmp_path, "official")
    (tmp_path / "cassette.jsonl").write_text("", encoding="utf-8")
    other = DepthBenchOfficial(tmp_path)
    task = other.task("1700")
    assert task.query == ROWS[1700]["prompt"]
    assert task.depth == ROWS[1700]["depth"]
    assert list(task.answer.values) == ROWS[1700]["answer"]


def test_parquet_round_trips(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    path = tmp_path / "corpus.parquet"
    assert write(CORPUS, path, "parquet") == 1710
    assert read(path, "parquet") == ROWS
    schema = parquet.read_schema(path)
    assert str(schema.field("depth").type) == "int64"
    assert {"id", "query", "program", "answer", "facts"} <= set(schema.names)
    (tmp_path / "bad.parquet").write_bytes(b"no")
    with pytest.raises(DataError, match=r"bad\.parquet"):
        read(tmp_path / "bad.parquet", "parquet")


def test_chat_rows_have_tools_and_calls(tmp_path: Path) -> None:
    chained = 0
    assert write(CORPUS, tmp_path / "chat.jsonl", "openai") == 1710
    for line, row in zip((tmp_path / "chat.jsonl").read_text(encoding="utf-8").splitlines(), ROWS, strict=True):
        chat = json.loads(line)
        user, *others = chat["messages"]
        assert user == {"role": "user", "content": row["prompt"]}
        assert [tool["function"]["name"] for tool in chat["tools"]] == row["tools"]
        calls = [call for message in others for call in message.get("tool_calls", [])]
        assert len(calls) == len(row["program"])
        assert "API_RESPONSE" not in json.dumps(others)
        if "API_RESPONSE" not in json.dumps(row["program"]):
            assert [{c["function"]["name"]: json.loads(c["function"]["arguments"])} for c in calls] == list(
                row["program"].values()
            )
            assert [message["role"] for message in others] == ["assistant"]
        else:
            chained += 1
        assert bool(others[0]["content"]) == (not calls)
    assert chained == 604
    with pytest.raises(UsageError, match="cannot be read back"):
        read(tmp_path / "chat.jsonl", "openai")


def test_chained_tasks_are_chats_in_the_order_of_what_the_calls_need() -> None:
    for task in (*CORPUS["train"][465::7], *CORPUS["validation"][532::7]):
        assert task.program is not None
        messages = chat_row(task)["messages"]
        answered: dict[str, Any] = {}
        open_calls: dict[str, Any] = {}
        session = task.environment.open(task.scenario)
        for message in messages[1:]:
            if message["role"] == "tool":
                call = open_calls.pop(message["tool_call_id"])
                outcome = session.call(call["name"], json.loads(call["arguments"]))
                assert json.loads(message["content"]) == json.loads(json.dumps(outcome.value))
                answered[message["tool_call_id"]] = outcome.value
            else:
                assert open_calls == {}  # every call of the message before was answered
                open_calls = {call["id"]: call["function"] for call in message["tool_calls"]}
                for call in open_calls.values():
                    arguments = json.loads(call["arguments"])
                    assert task.tools[call["name"]].compiled.received.validator.is_valid(arguments)
        assert messages[-1]["role"] == "assistant"
        values = {**answered}
        for name, call in open_calls.items():
            values[name] = session.call(call["name"], json.loads(call["arguments"])).value
        ids = [f"call_{call.id}" for call in task.program.calls]
        wanted = ids if task.returns == "all" else ids[-1:]
        assert [json.loads(json.dumps(values[name])) for name in wanted] == list(task.answer.values)


def test_a_program_that_does_not_execute_is_no_chat() -> None:
    task = next(one for one in CORPUS["train"] if one.structure == "linear")
    with pytest.raises(DataError, match="does not execute"):
        chat_row(evolve(task, tools={}))


def test_files_that_are_not_of_the_format_are_refused(tmp_path: Path) -> None:
    (tmp_path / "queries.json").write_text('{"0": {"prompt": "x"}}')
    with pytest.raises(DataError, match="official"):
        read(tmp_path, "official")
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path / "none", "jsonl")
    with pytest.raises(UsageError, match="jsonl, official, parquet, openai"):
        write(CORPUS, tmp_path / "x", "csv")
    with pytest.raises(UsageError, match=r"is called \.parquet"):
        write(CORPUS, tmp_path / "x.jsonl", "parquet")
    (tmp_path / "old.jsonl").write_text(json.dumps(ROWS[0]) + "\n")
    with pytest.raises(DataError, match="is no file of tasks"):
        read(tmp_path / "old.jsonl", "jsonl")


def _registry() -> SimpleNamespace:
    registry = load_plugins()
    if plugin.NAME not in registry.names("corpus"):
        registry.add(plugin, name="depthbench")
    return SimpleNamespace(registry=registry)


def test_the_commands_export_and_import(tmp_path: Path) -> None:
    runner = CliRunner()
    out = str(tmp_path / "official")
    done = runner.invoke(
        export, [plugin.NAME, "-o", out, "--format", "official", "--json"], obj=_registry(), catch_exceptions=False
    )
    assert json.loads(done.output) == {"rows": 1710, "output": out}
    back = str(tmp_path / "back.jsonl")
    done = runner.invoke(import_, [out, "-o", back, "--format", "official"], obj=_registry(), catch_exceptions=False)
    assert done.output == f"1710 tasks in {back}\n"
    _same(DepthBenchCorpus(back))
    again = str(tmp_path / "again.jsonl")
    options = [plugin.NAME, "-o", again, "--option", f"file={back}", "--split", "train"]
    assert runner.invoke(export, options, obj=_registry(), catch_exceptions=False).output == f"944 tasks in {again}\n"


def test_tasks_of_another_version_are_not_imported_as_ones_of_this(tmp_path: Path) -> None:
    runner = CliRunner()
    other, back = str(tmp_path / "other.jsonl"), tmp_path / "back.jsonl"
    runner.invoke(export, ["depthbench-v1.1", "-o", other, "--split", "validation"], obj=_registry())
    done = runner.invoke(import_, [other, "-o", str(back), "--format", "jsonl"], obj=_registry())
    assert isinstance(done.exception, DataError)
    assert "is of 'depthbench-v1.1', not of 'depthbench-v1'" in str(done.exception)
    assert not back.exists()


def test_a_damaged_file_is_said_to_be_none_that_can_be_read(tmp_path: Path) -> None:
    from callwright_plugins.depthbench import build as building

    data = bytearray((building.DATA / FILE).read_bytes())
    data[10] = 0xFF  # no kind of block: an error of zlib's own
    (tmp_path / "damaged.gz").write_bytes(data)
    with pytest.raises(DataError, match="cannot be read"):
        DepthBenchCorpus(tmp_path / "damaged.gz")


def test_a_build_that_differs_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from callwright_plugins.depthbench import build as building

    shipped = gzip.decompress((building.DATA / FILE).read_bytes()).decode()
    first, second = shipped.splitlines(keepends=True)[:2]
    monkeypatch.setattr(building, "corpus_text", lambda report, version: (first, {}))
    runner = CliRunner()
    assert "written" in runner.invoke(build, ["-o", str(tmp_path)], catch_exceptions=False).output
    assert runner.invoke(build, ["-o", str(tmp_path), "--check"], catch_exceptions=False).exit_code == 0
    monkeypatch.setattr(building, "corpus_text", lambda report, version: (second, {}))
    done = runner.invoke(build, ["-o", str(tmp_path), "--check"], catch_exceptions=False)
    assert done.exit_code == 1
    assert "differ" in done.output
