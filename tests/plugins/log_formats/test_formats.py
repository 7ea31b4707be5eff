"""The same conversation in every format: what each file says is read, and what it does not say is not guessed."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.errors import DataError, UnknownName
from callwright.walk.tasks import Answer, Task

FILES = Path(__file__).parent / "files"
FORMATS = {path.name: path.name.partition(".")[0] for path in sorted(FILES.iterdir()) if path.suffix != ".md"}
#: Formats without a mark for failed calls.
SILENT = {"openai", "responses", "atif"}
#: Formats that say in which order calls ran, and by which the second of two parallel ones ran first.
ORDERED = {"otel", "langsmith", "langfuse"}
CAPITAL = {"USA": "Washington", "Fordland": None}


def only(name: str, **options: Any) -> cw.Log:
    (log,) = cw.read_log(FILES / name, **options)
    return log


def the_task(log: cw.Log) -> Task:
    """What the agent was asked, with the right answer: here the two capitals."""
    tools = log.task.tools or only("openai.jsonl").task.tools
    return Task("ford", "", tools, Answer(("Washington",)), log.task.environment)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_file_is_recognised_and_its_conversation_read(name: str) -> None:
    log = only(name)
    assert log.task.facts["log"]["format"] == FORMATS[name]
    assert log.task.id.startswith(("ford", "01a20796"))
    written = [(one.tool, dict(one.arguments)) for one in sorted(log.calls, key=lambda one: str(one.arguments))]
    assert written == [
        ("GetCapital", {"country": "Fordland"}),
        ("GetCapital", {"country": "USA"}),
        ("GetCountry", {"make": "Ford"}),
    ]
    if FORMATS[name] == "mcp-record":
        assert not log.messages
        return
    assert list(log.task.tools) == ["GetCountry", "GetCapital"]
    assert log.task.tools["GetCapital"].parameters["required"] == ["country"]
    assert log.task.query == "Which country builds Ford, and what is its capital?"
    roles = ["system", "user", "assistant", "tool", "assistant", "tool", "tool", "assistant"]
    assert [message.role for message in log.messages] == roles
    assert log.messages[2].thought == "One call will do."
    assert [call.id for call in log.messages[4].tool_calls] == ["c2", "c3"]
    assert log.messages[-1].text == "Washington."


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_outcomes_are_what_the_file_says_and_unknown_where_it_says_nothing(name: str) -> None:
    outcomes = {str(one.arguments): one.outcome for one in only(name).calls}
    built, washington, nowhere = (
        outcomes[str({key: value})] for key, value in (("make", "Ford"), ("country", "USA"), ("country", "Fordland"))
    )
    if FORMATS[name] in SILENT:
        assert {built.kind, washington.kind, nowhere.kind} == {"unknown"}
        return
    assert (built.kind, built.value) == ("ok", {"country": "USA"})
    assert (washington.kind, washington.value) == ("ok", "Washington")
    assert nowhere.kind == "execution_error"
    assert nowhere.message == "no country named Fordland"


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_log_without_error_flags_gives_no_reward_where_one_would_be_a_guess(name: str) -> None:
    log = only(name)
    told = cw.Log.recorded(the_task(log), log.calls, log.messages)
    reward = cw.reward("tier").score_attempt(told.episode())
    if FORMATS[name] in SILENT:
        assert reward.total is None
        assert "not known" in str(reward.masked)
    else:
        assert reward.total == pytest.approx(0.4)  # names, parameters and types are right, and a call failed


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.parametrize("reward", ["tier-no-execution", "state", "prove", "toolrl"])
def test_without_a_truth_a_reward_masks_and_is_never_a_number(name: str, reward: str) -> None:
    assert cw.reward(reward).score_attempt(only(name).episode()).total is None


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_state_that_no_file_holds_masks(name: str) -> None:
    log = only(name)
    program = cw.Program((cw.Call(0, "GetCountry", {"make": "Ford"}),))
    task = Task("ford", "", the_task(log).tools, Answer(("USA",)), log.task.environment, program=program)
    reward = cw.reward("state").score_attempt(cw.Log.recorded(task, log.calls, log.messages).episode())
    assert reward.total is None
    assert "does not hold the world" in str(reward.masked)


@pytest.mark.parametrize("name", ["openai.jsonl", "responses.jsonl", "atif.json"])
def test_who_knows_how_failures_look_says_so(name: str) -> None:
    log = only(name, format=FORMATS[name], failed="^no country")
    assert [one.outcome.kind for one in log.calls] == ["ok", "ok", "execution_error"]
    with pytest.raises(DataError, match="no regular expression"):
        list(cw.read_log(FILES / name, FORMATS[name], failed="("))


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"mcp-record.jsonl"}))
def test_every_turn_and_the_order_in_which_calls_ran(name: str) -> None:
    log = only(name)
    turns = log.episode().turns
    assert [len(turn.calls) for turn in turns] == [1, 2, 0]
    trace = turns[1].trace
    assert trace is not None
    assert list(trace.ran) == ([1, 0] if FORMATS[name] in ORDERED else [0, 1])
    assert any("ran in the order" in one for one in log.findings()) == (FORMATS[name] in ORDERED)


def test_responses_that_go_on_with_the_same_one_have_its_beginning(tmp_path: Path) -> None:
    def response(id: str, before: str | None, asked: str) -> dict[str, Any]:
        said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": f"{asked}!"}]}
        held: dict[str, Any] = {"id": id, "object": "response", "input": asked, "output": [said]}
        return held | ({"previous_response_id": before} if before else {})

    def read(*lines: Any) -> list[tuple[str, list[str]]]:
        path = tmp_path / "asked.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        logs = list(cw.read_log(path, "responses"))
        assert not any(log.findings() for log in logs)
        return [(log.task.id, [message.text for message in log.messages]) for log in logs]

    one, other = response("b", "a", "b"), response("c", "a", "c")
    assert read(response("a", None, "a"), one, other) == [("b", ["a", "a!", "b", "b!"]), ("c", ["a", "a!", "c", "c!"])]
    # No row is lost, whatever it is called.
    rows = [[response("", None, f"{line}{at}") for at in "xy"] for line in "12"]
    assert sorted(said[0] for _, said in read(*rows)) == ["1x", "1y", "2x", "2y"]


def changed(name: str, tmp_path: Path, change: Callable[[Any], Any]) -> list[cw.Log]:
    """The logs of a file whose values were changed."""
    text = (FILES / name).read_text(encoding="utf-8")
    path = tmp_path / name
    if name.endswith(".jsonl"):
        rows = [change(json.loads(line)) for line in text.splitlines()]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows if row is not None), encoding="utf-8")
    else:
        path.write_text(json.dumps(change(json.loads(text))), encoding="utf-8")
    return list(cw.read_log(path, FORMATS[name]))


def without_runs(export: Any) -> Any:
    for scope in export["resourceSpans"][0]["scopeSpans"]:
        scope["spans"] = [span for span in scope["spans"] if not span["name"].startswith("execute_tool")]
    return export


def without_results(export: Any) -> Any:
    for span in export["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        span["attributes"] = [one for one in span["attributes"] if one["key"] != "gen_ai.tool.call.result"]
    return export


def without_status(row: Any) -> Any:
    for message in row["messages"]:
        message["kwargs"].pop("status", None)
    return row


def without_runs_of_tools(run: Any) -> Any:
    if run["run_type"] == "tool":
        return None
    return json.loads(
        json.dumps(run).replace('"status": "success"', '"status": null').replace('"status": "error"', '"status": null')
    )


def without_levels(trace: Any) -> Any:
    for one in trace["observations"]:
        del one["level"]
    return trace


def ours(log: Any) -> Any:
    log["eval"]["packages"] = {"callwright": "0.1.0"}
    for message in log["samples"][0]["messages"]:
        message.pop("error", None)
    return log


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("otel.jsonl", without_runs),
        ("otel.jsonl", without_results),
        ("langchain.jsonl", without_status),
        ("langsmith.jsonl", without_runs_of_tools),
        ("langfuse.json", without_levels),
        ("inspect.json", ours),
    ],
)
def test_what_is_taken_out_of_a_file_is_unknown(name: str, change: Callable[[Any], Any], tmp_path: Path) -> None:
    (log,) = changed(name, tmp_path, change)
    kinds = [one.outcome.kind for one in log.calls]
    assert len(kinds) == 3
    assert "ok" not in kinds
    told = cw.Log.recorded(the_task(log), [one for one in log.calls if one.outcome.kind == "unknown"], log.messages)
    reward = cw.reward("simple").score_attempt(told.episode())
    assert reward.total is None


def test_texts_that_we_told_say_what_came_of_a_call(tmp_path: Path) -> None:
    def told(row: Any) -> Any:
        row["messages"][3]["content"] = '{"id":"c1","name":"GetCountry","result":{"country":"USA"}}'
        row["messages"][5]["content"] = '{"result":"Washington","warning":{"code":"old","message":"of 1790"}}'
        row["messages"][6]["content"] = '{"error":{"code":"nowhere","message":"no country named Fordland"}}'
        return row

    (log,) = changed("openai.jsonl", tmp_path, told)
    assert [one.outcome.kind for one in log.calls] == ["ok", "partial", "execution_error"]
    assert [one.outcome.value for one in log.calls] == [{"country": "USA"}, "Washington", None]


def test_texts_that_only_look_like_ours_say_nothing(tmp_path: Path) -> None:
    def alike(row: Any) -> Any:
        row["messages"][3]["content"] = '{"result": {"country": "USA"}}'  # not compact
        row["messages"][5]["content"] = '{"result":"Washington","source":"an atlas"}'
        row["messages"][6]["content"] = '{"error":"no country named Fordland"}'
        return row

    (log,) = changed("openai.jsonl", tmp_path, alike)
    assert {one.outcome.kind for one in log.calls} == {"unknown"}


def test_a_failure_that_may_be_the_machinerys_is_nobodys(tmp_path: Path) -> None:
    def lost(row: Any) -> Any:
        row["messages"][3]["content"] = '{"error":{"code":"timeout","message":"no answer in 30 s"}}'
        return row

    (log,) = changed("openai.jsonl", tmp_path, lost)
    assert log.calls[0].outcome.kind == "unknown"


def test_without_tools_nobody_says_that_a_name_is_wrong(tmp_path: Path) -> None:
    def untold(row: Any) -> Any:
        del row["tools"]
        return row

    (log,) = changed("openai.jsonl", tmp_path, untold)
    reward = cw.reward("tier").score_attempt(log.episode())
    assert reward.total is None
    assert "which tools were offered" in str(reward.masked)
    (again,) = cw.read_log(tmp_path / "openai.jsonl", tools=[only("openai.jsonl").task.tools["GetCountry"]])
    names = cw.reward("tier").score_attempt(again.episode()).scores["names"].score
    assert names.value == 0.0
    assert "GetCapital" in names.evidence[0].reason


def test_calls_that_could_not_be_read_stay_as_they_were_sampled(tmp_path: Path) -> None:
    def broken(row: Any) -> Any:
        call = {"name": "GetCountry", "args": '{"make": "Ford"', "id": "c1", "error": None, "type": "invalid_tool_call"}
        row["messages"][2]["kwargs"] |= {"tool_calls": [], "invalid_tool_calls": [call]}
        return row

    (log,) = changed("langchain.jsonl", tmp_path, broken)
    reward = cw.reward("tier").score_attempt(cw.Log.recorded(the_task(log), log.calls, log.messages).episode())
    assert reward.total == 0.0
    assert reward.stage == "format"


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"inspect.eval"}))
def test_compressed_files_are_read_whatever_their_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(gzip.compress((FILES / name).read_bytes()))
    (log,) = cw.read_log(tmp_path / name)
    assert log.calls == only(name).calls


@pytest.mark.parametrize("name", sorted(name for name in FORMATS if name.endswith(".jsonl")))
def test_an_error_names_the_file_and_the_line(name: str, tmp_path: Path) -> None:
    text = (FILES / name).read_text(encoding="utf-8")
    (tmp_path / name).write_text(text + '{"broken": \n', encoding="utf-8")
    line = text.count("\n") + 1
    with pytest.raises(DataError, match=rf"{name}:{line}: "):
        list(cw.read_log(tmp_path / name, FORMATS[name]))


def test_a_file_of_no_format_names_those_that_there_are(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "a"}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"rows\.jsonl is of no format.*openai.*otel"):
        cw.read_log(path)
    with pytest.raises(UnknownName, match="Did you mean 'openai'"):
        cw.read_log(path, "openia")
    with pytest.raises(DataError, match="no such file"):
        cw.read_log(tmp_path / "absent.jsonl")


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes((FILES / "inspect.eval").read_bytes()[:300])
    with pytest.raises(DataError, match=r"log\.eval"):
        list(cw.read_log(path))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("samples/a_epoch_1.json", "{")
    with pytest.raises(DataError, match="a_epoch_1"):
        list(cw.read_log(path))


def test_a_corpus_says_what_a_log_worked_on(tmp_path: Path) -> None:
    corpus = cw.corpus("toolworld-mini-v1")
    rows = [{"task": "evaluation-16", "messages": [{"role": "user", "content": "x"}]}]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (log,) = cw.read_log(path, task=corpus)
    assert log.task is corpus.task("evaluation-16")
    path.write_text(json.dumps({**rows[0], "task": "evaluation-99999"}), encoding="utf-8")
    with pytest.raises(UnknownName):
        list(cw.read_log(path, task=corpus))


def test_atif_files_are_valid_by_the_independent_models() -> None:
    atif = pytest.importorskip("atif", reason="pip install atif")
    atif.Trajectory.model_validate(json.loads((FILES / "atif.json").read_text(encoding="utf-8")))


def test_tools_come_from_a_file(tmp_path: Path) -> None:
    definitions: list[Mapping[str, Any]] = [
        {"type": "function", "function": {"name": "a"}},
        {"name": "b", "inputSchema": {"type": "object"}},
        {"name": "c", "input_schema": {"type": "object", "properties": {"x": {"type": "string"}}}},
    ]
    path = tmp_path / "tools.json"
    for written in (
        json.dumps(definitions),
        json.dumps({"tools": definitions}, indent=1),
        "\n".join(map(json.dumps, definitions)),
    ):
        path.write_text(written, encoding="utf-8")
        log = only("openai.jsonl", tools=path)
        assert list(log.task.tools) == ["GetCountry", "GetCapital", "a", "b", "c"]
    path.write_text("[7]", encoding="utf-8")
    with pytest.raises(DataError, match=r"tools\.json"):
        only("openai.jsonl", tools=path)
