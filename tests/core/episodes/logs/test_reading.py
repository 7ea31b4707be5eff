"""Logs are written and read back as they were, and conversations are scored without a corpus."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.environments import read_told, tell
from callwright.episodes.logs.files import head_of, peek, pieces_of
from callwright.episodes.logs.unstated import UNSTATED_ANSWER, UNSTATED_TOOLS
from callwright.episodes.logs.writing import log_row
from callwright.errors import Abstention, DataError, RunError

GET_COUNTRY = {
    "type": "function",
    "function": {
        "name": "GetCountry",
        "parameters": {"type": "object", "properties": {"make": {"type": "string"}}, "required": ["make"]},
    },
}


def conversation(result: str, arguments: str = '{"make": "Ford"}') -> list[dict[str, Any]]:
    call = {"id": "c1", "type": "function", "function": {"name": "GetCountry", "arguments": arguments}}
    return [
        {"role": "user", "content": "which country builds Ford"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": result},
        {"role": "assistant", "content": "In the United States."},
    ]


@pytest.fixture
def lived() -> cw.Log:
    """A log of a task with a right call, a failed one and one of an unknown tool."""
    task = cw.corpus("toolworld-mini-v1").task("evaluation-16")
    with cw.Log(task) as log:
        found = log.call("FindRestaurants", {"location": "Lima"}, call_id="a")
        log.call("FilterByOpen", {"restaurants": found.value, "hours": 15}, call_id="b")
        log.call("Nothing", {"x": None, "y": [1.5, 10**23, "ü\ud800"]}, call_id="c")
    return log


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz", "log.jsonl.zst"])
def test_what_is_written_is_read_as_it_was(lived: cw.Log, name: str, tmp_path: Path) -> None:
    if name.endswith(".zst"):
        pytest.importorskip("zstandard", reason="needs zstandard")
    said = conversation("{}")
    lived.write(tmp_path / name, said)
    lived.write(tmp_path / name, append=True)
    first, second = cw.read_log(tmp_path / name)
    for read in (first, second):
        assert read.calls == lived.calls
        assert [one.state for one in read.calls] == [one.state for one in lived.calls] != ["", "", ""]
        assert read.task.tools == lived.task.tools
        assert read.task.answer == lived.task.answer
        assert read.task.program == lived.task.program
        assert (read.task.id, read.task.query) == (lived.task.id, lived.task.query)
        assert (read.task.scenario, read.task.seed) == (lived.task.scenario, lived.task.seed)
    assert [one.to_openai() for one in first.messages] == said
    tier = cw.reward("tier")
    assert tier.score_attempt(second.episode()) == tier.score_attempt(lived.episode())
    assert log_row(second) == log_row(lived)


def test_a_log_that_states_little_stays_so(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"messages": conversation("USA")}), encoding="utf-8")
    (log,) = cw.read_log(tmp_path / "a.jsonl")
    log.write(tmp_path / "b.jsonl")
    (read,) = cw.read_log(tmp_path / "b.jsonl")
    assert read.task.tools is UNSTATED_TOOLS
    assert read.task.answer is UNSTATED_ANSWER
    assert read.calls == log.calls
    assert log_row(read) == log_row(log)


def test_a_log_that_is_no_json_is_not_written(tmp_path: Path) -> None:
    task = cw.corpus("toolworld-mini-v1").task("evaluation-16")
    from callwright.episodes import Logged

    log = cw.Log.recorded(task, [Logged(0, "FindRestaurants", {}, cw.Outcome("ok", float("nan")))])
    path = tmp_path / "a.jsonl"
    path.write_text("kept", encoding="utf-8")
    with pytest.raises(cw.UsageError, match="no JSON"):
        log.write(path)
    assert path.read_text(encoding="utf-8") == "kept"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(RunError, match="cannot be written"):
        log.write(tmp_path / "absent" / "a.jsonl")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"callwright_log": 2}, "no log of this format"),
        ({"seed": "x"}, "'seed' is 'x'"),
        ({"calls": [{"tool": "a"}]}, "call 0 is no object"),
        ({"calls": [{"tool": "a", "arguments": {}, "kind": "fine"}]}, "'fine' is no kind of outcome"),
        ({"tools": [{"nome": "a"}]}, "a tool is a name"),
        ({"messages": [{"role": "robot"}]}, "message 0"),
        ({"query": 7}, "'query' is 7"),
    ],
)
def test_what_is_wrong_with_a_row_is_said_with_its_line(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    good = {"callwright_log": 1, "id": "a", "messages": [], "calls": []}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(good) + "\n\n" + json.dumps({**good, **change}) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=rf"a\.jsonl:3: .*{message}"):
        list(cw.read_log(path, "callwright"))


# Files ----------------------------------------------------------------------------------------------------------------


def test_lines_and_documents_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for text, values in (
        ('{"a": 1}\n\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
        ('{\n "a": 1\n}\n', [{"a": 1}]),
        ('[\n {"a": 1}\n]', [[{"a": 1}]]),
        ('\ufeff{"a": 1}', [{"a": 1}]),
        ("", []),
    ):
        path.write_text(text, encoding="utf-8")
        assert [piece.value for piece in pieces_of(path)] == values
    for text, line in (('{"a": 1}\n{"a": \n', 2), ('{\n "a": 1\n "b"\n}', 3), ("nothing\n", 1)):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=rf"a\.json:{line}: "):
            list(pieces_of(path))


def test_the_beginning_of_a_long_file_is_enough_to_see_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    row = {"schema_version": "ATIF-v1.7", "steps": [{"step_id": 1, "source": "user", "message": "ü" * 200_000}]}
    path.write_text(json.dumps([row], indent=1, ensure_ascii=False), encoding="utf-8")
    assert peek(head_of(path))["schema_version"] == "ATIF-v1.7"
    (log,) = cw.read_log(path)
    assert len(log.task.query) == 200_000


def test_rows_of_parquet_are_read(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pip install 'callwright[data]'")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    table = {"id": ["a"], "messages": [json.dumps(conversation("USA"))], "tools": [json.dumps([GET_COUNTRY])]}
    parquet.write_table(pyarrow.table(table), path)
    (log,) = cw.read_log(path)
    assert log.task.id == "a"
    assert list(log.task.tools) == ["GetCountry"]
    assert [one.tool for one in log.calls] == ["GetCountry"]


# What we told ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "outcome",
    [
        cw.Outcome("ok", {"a": [1, None]}),
        cw.Outcome("partial", 3, "rest", "more is coming"),
        cw.Outcome("execution_error", None, "nowhere", "no such place"),
        cw.Outcome("schema_error", None, "schema_error", "x"),
        cw.Outcome("unknown", None, "unknown", "who knows"),
        cw.Outcome("ok", None, notices=("a parcel arrived",)),
    ],
)
def test_what_is_told_is_read(outcome: cw.Outcome) -> None:
    assert read_told(tell(outcome)) == outcome
    assert read_told(tell(outcome, id="1", name="x")) == outcome


@pytest.mark.parametrize(
    "text", ["", "{}", "3", "null", '{"result": 1}', '{"result":1,"error":2}', '{"error":"x"}', "{" * 5000]
)
def test_other_texts_are_not_ours(text: str) -> None:
    assert read_told(text) is None


def test_a_failure_with_a_code_of_the_machinery_is_unknown() -> None:
    assert read_told(tell(cw.Outcome("infrastructure_error", None, "timeout", "late"))) == cw.Outcome(
        "unknown", None, "timeout", "late"
    )


# Conversations without a corpus ---------------------------------------------------------------------------------------


def test_a_conversation_is_scored_in_five_lines() -> None:
    messages = conversation(tell(cw.Outcome("ok", "USA")))
    assert cw.score_messages(messages, [GET_COUNTRY], {"answer": ["USA"]}).total == 1.0
    assert cw.score_messages(messages, [GET_COUNTRY], {"answer": ["Peru"]}).total == 0.5
    assert cw.score_messages(messages, [GET_COUNTRY], []).total == 0.5  # nothing was to be called


def test_what_nobody_says_masks() -> None:
    unsaid = cw.score_messages(conversation("USA"), [GET_COUNTRY], {"answer": ["USA"]})
    assert unsaid.total is None
    assert "does not say whether this call executed" in str(unsaid.masked)
    said = cw.score_messages(conversation("USA"), [GET_COUNTRY], {"answer": ["USA"]}, failed="^Error")
    assert said.total == 1.0
    assert cw.score_messages(conversation("USA"), [GET_COUNTRY], failed="^Error").total is None
    assert cw.score_messages(conversation("USA"), None, {"answer": ["USA"]}, failed="^Error").total is None
    failed = cw.score_messages(conversation("Error 404"), [GET_COUNTRY], {"answer": ["USA"]}, failed="^Error")
    assert failed.total == pytest.approx(0.4)


def test_calls_as_a_truth() -> None:
    due = [{"name": "GetCountry", "arguments": {"make": "Ford"}}]
    messages = conversation("USA")
    wire = [messages[1]["tool_calls"][0]]
    for truth in (due, wire, {"calls": due}, cw.Program((cw.Call(0, "GetCountry", {"make": "Ford"}),))):
        assert cw.score_messages(messages[:2], [GET_COUNTRY], truth, "toolrl").total == pytest.approx(
            cw.score_messages(messages[:2], [GET_COUNTRY], due, "toolrl").total
        )
    other = [{"name": "GetCountry", "arguments": '{"make": "Fiat"}'}]
    right = cw.score_messages(messages[:2], [GET_COUNTRY], due, "toolrl").total
    wrong = cw.score_messages(messages[:2], [GET_COUNTRY], other, "toolrl").total
    assert right is not None
    assert wrong is not None
    assert right > wrong
    assert cw.score_messages(messages, [GET_COUNTRY], None, "toolrl").total is None


@pytest.mark.parametrize("truth", [{"anser": []}, {}, [7], [{"name": "a", "arguments": "["}], 7, {"answer": 7}])
def test_what_is_no_truth_is_refused(truth: Any) -> None:
    with pytest.raises(DataError):
        cw.score_messages(conversation("USA"), [GET_COUNTRY], truth)


def test_arguments_that_are_no_json_are_the_models_fault() -> None:
    reward = cw.score_messages(conversation("USA", '{"make": '), [GET_COUNTRY], {"answer": ["USA"]}, failed="^Error")
    assert reward.total == 0.0
    assert reward.stage == "format"


def test_what_nobody_states_abstains_and_can_be_sent_elsewhere() -> None:
    for name in ("values", "others", "open"):
        with pytest.raises(Abstention, match="would have been right"):
            getattr(UNSTATED_ANSWER, name)
    with pytest.raises(Abstention, match="would have been right"):
        assert UNSTATED_ANSWER.is_no_call
    with pytest.raises(Abstention, match="which tools were offered"):
        UNSTATED_TOOLS.get("a")
    assert "a" not in UNSTATED_TOOLS
    assert pickle.loads(pickle.dumps(UNSTATED_ANSWER)) == UNSTATED_ANSWER
    assert repr(UNSTATED_ANSWER) == "UnstatedAnswer()"


# Columns --------------------------------------------------------------------------------------------------------------


def test_columns_of_conversations() -> None:
    told, silent = conversation(tell(cw.Outcome("ok", "USA"))), conversation("USA")
    columns = {
        "messages": [told, silent, None, json.dumps(told)],
        "tools": [[GET_COUNTRY], json.dumps([GET_COUNTRY]), None, [GET_COUNTRY]],
        "truth": [{"answer": ["USA"], "calls": None}, {"answer": ["USA"]}, None, None],
    }
    scorer = cw.scorer("tier")
    found = scorer(columns)
    assert found["reward"] == [1.0, None, None, None]
    assert found["masked"][2] == "there is no conversation"
    assert "would have been right" in str(found["masked"][3])
    assert pickle.loads(pickle.dumps(scorer))(columns) == found
    fixed = cw.scorer("tier", messages="m", tools=[GET_COUNTRY])({"m": [told], "truth": [{"answer": ["USA"]}]})
    assert fixed["reward"] == [1.0]
    with pytest.raises(cw.UsageError, match="no column 'messages'"):
        scorer({"text": []})
