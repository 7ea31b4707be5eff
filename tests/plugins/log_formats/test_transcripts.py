"""What tracers keep apart is put together: histories that were rewritten, agents below agents, requests without one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import callwright as cw

FILES = Path(__file__).parent / "files"


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., list[cw.Log]]:
    """The logs of a file of lines that were changed together."""

    def read(name: str, change: Callable[[list[Any]], list[Any]]) -> list[cw.Log]:
        rows = change([json.loads(line) for line in (FILES / name).read_text(encoding="utf-8").splitlines()])
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return list(cw.read_log(path, name.partition(".")[0]))

    return read


def calls_of(log: cw.Log) -> list[list[str]]:
    return [[call.id for call in one.tool_calls] for one in log.messages if one.role == "assistant"]


def test_requests_without_their_history_get_the_results_of_runs(changed: Any) -> None:
    def prompts(rows: list[Any]) -> list[Any]:
        for run in rows:
            if run["run_type"] == "llm":
                run["inputs"] = {"prompts": ["Human: …"]}
        return rows

    (log,) = changed("langsmith.jsonl", prompts)
    assert [one.role for one in log.messages] == ["assistant", "tool", "assistant", "tool", "tool", "assistant"]
    assert [one.outcome.kind for one in log.calls] == ["ok", "execution_error", "ok"]
    assert log.messages[1].text == '{"country": "USA"}'


@pytest.mark.parametrize(("name", "first"), [("langsmith.jsonl", 42), ("langfuse.json", 41)])
def test_what_began_within_a_second_is_in_its_order(name: str, first: int, tmp_path: Path) -> None:
    text = (FILES / name).read_text(encoding="utf-8")
    for second in range(first, 48):  # many libraries leave out a fraction that is zero
        short = "" if second == first else f".{second - first}"
        text = re.sub(rf"08:47:{second}\.0+Z", f"08:47:59{short}Z", text)
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    (log,) = cw.read_log(path, name.partition(".")[0])
    assert calls_of(log) == [["c1"], ["c2", "c3"], []]
    assert not [one for one in log.findings() if "does not begin" in one]


def test_a_history_that_was_rewritten_is_a_finding_and_every_answer_is_kept(changed: Any) -> None:
    def compacted(rows: list[Any]) -> list[Any]:
        last = [run for run in rows if run["run_type"] == "llm"][-1]
        (history,) = last["inputs"]["messages"]
        summary = {"lc": 1, "type": "constructor", "id": ["HumanMessage"], "kwargs": {"content": "Ford is of the USA."}}
        last["inputs"]["messages"] = [[history[0], summary, *history[4:]]]
        return rows

    (log,) = changed("langsmith.jsonl", compacted)
    assert calls_of(log) == [["c1"], ["c2", "c3"], []]
    assert any("does not begin with the conversation before it" in one for one in log.findings())
    assert [one.outcome.kind for one in log.calls] == ["ok", "execution_error", "ok"]


def test_agents_below_a_run_of_a_tool_are_logs_of_their_own(changed: Any) -> None:
    def nested(rows: list[Any]) -> list[Any]:
        tool = next(run for run in rows if run["run_type"] == "tool")
        inner = json.loads(json.dumps(next(run for run in rows if run["run_type"] == "llm")))
        return [*rows, {**inner, "id": "inner", "parent_run_id": tool["id"]}]

    outer, inner = changed("langsmith.jsonl", nested)
    assert calls_of(outer) == [["c1"], ["c2", "c3"], []]
    assert calls_of(inner) == [["c1"]]
    assert inner.episode().trace is not None
    assert cw.reward("tier").score_attempt(inner.episode()).total is None


def test_agents_of_a_trace_are_told_apart_by_their_spans(changed: Any) -> None:
    def two(rows: list[Any]) -> list[Any]:
        spans = [span for row in rows for scope in row["resourceSpans"][0]["scopeSpans"] for span in scope["spans"]]
        second = json.loads(
            json.dumps(spans).replace("eee19b7ec3c1b174", "fff19b7ec3c1b174").replace('"ford"', '"two"')
        )
        for number, span in enumerate(second):
            if span["spanId"] != "fff19b7ec3c1b174":
                span["spanId"] = f"ccccccccccccccc{number}"
        rows[0]["resourceSpans"][0]["scopeSpans"][0]["spans"] += second
        return rows

    first, second = changed("otel.jsonl", two)
    assert {first.task.id, second.task.id} == {"ford", "two"}
    assert calls_of(first) == calls_of(second) == [["c1"], ["c2", "c3"], []]
    assert len(first.calls) == len(second.calls) == 3


def test_events_hold_what_spans_do_not(changed: Any) -> None:
    def as_events(rows: list[Any]) -> list[Any]:
        records = []
        for row in rows:
            for span in row["resourceSpans"][0]["scopeSpans"][0]["spans"]:
                told = [one for one in span["attributes"] if one["key"].endswith(".messages")]
                if told:
                    span["attributes"] = [one for one in span["attributes"] if one not in told]
                    about = {"traceId": span["traceId"], "spanId": span["spanId"], "attributes": told}
                    records.append({**about, "eventName": "gen_ai.client.inference.operation.details"})
        return [*rows, {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}]

    (log,) = changed("otel.jsonl", as_events)
    assert calls_of(log) == [["c1"], ["c2", "c3"], []]


def test_a_response_whose_beginning_is_elsewhere_says_so(changed: Any) -> None:
    (log,) = changed("responses.jsonl", lambda rows: rows[1:])
    assert calls_of(log) == [["c2", "c3"], []]
    assert any("resp_1, is not in the file" in one for one in log.findings())


def test_calls_that_openai_ran_on_mcp_servers_have_their_errors(changed: Any) -> None:
    def on_servers(rows: list[Any]) -> list[Any]:
        call = {"type": "mcp_call", "name": "GetCountry", "arguments": '{"make": "Ford"}', "server_label": "cars"}
        output = [
            {**call, "id": "m1", "output": "USA", "error": None},
            {**call, "id": "m2", "output": None, "error": "gone"},
        ]
        return [{**rows[0], "output": [*output, {"type": "web_search_call", "id": "w"}]}]

    (log,) = changed("responses.jsonl", on_servers)
    assert [(one.outcome.kind, one.outcome.value) for one in log.calls] == [("ok", "USA"), ("execution_error", None)]
    assert any("'web_search_call' is left out" in one for one in log.findings())


def test_steps_that_no_model_made_are_left_out(tmp_path: Path) -> None:
    row = json.loads((FILES / "atif.json").read_text(encoding="utf-8"))
    row["steps"][2]["is_copied_context"] = True
    row["steps"][4]["llm_call_count"] = 0
    row["subagent_trajectories"] = [{**row, "trajectory_id": "inner"}]
    path = tmp_path / "atif.json"
    path.write_text(json.dumps(row), encoding="utf-8")
    outer, inner = cw.read_log(path)
    assert calls_of(outer) == calls_of(inner) == [["c2", "c3"]]
    assert len(outer.findings()) == 2
    assert (inner.task.id, inner.task.facts["log"]["parent"]) == ("inner", "ford")
