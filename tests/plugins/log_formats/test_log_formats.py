"""Each format read from a small file that we wrote after its published description: the same errand in all of them.

An agent looks two cities up at once, the second call fails, and answers. What a format has no place for is ``unknown``,
and rewards that need it are masked: never 0, and never a guess.
"""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.episodes import write_logs
from callwright.errors import DataError, UnknownName, UsageError

FUNCTION = {
    "name": "population",
    "description": "How many people live in a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
TOOLS = [{"type": "function", "function": FUNCTION}]
CALLS = [("c1", {"city": "Lima"}), ("c2", {"city": "Atlantis"})]
RESULTS = {"c1": "10092000", "c2": "no such city"}
QUERY, ANSWER = "How many people live in Lima and Atlantis?", "Ten million; the other sank."

OPENAI = {
    "id": "errand",
    "tools": TOOLS,
    "messages": [
        {"role": "user", "content": QUERY},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": i, "type": "function", "function": {"name": "population", "arguments": json.dumps(a)}}
                for i, a in CALLS
            ],
        },
        *({"role": "tool", "tool_call_id": i, "content": text} for i, text in RESULTS.items()),
        {"role": "assistant", "content": ANSWER},
    ],
}
RESPONSES = {
    "id": "errand",
    "tools": [{"type": "function", **FUNCTION}, {"type": "web_search"}],
    "input": [
        {"role": "user", "content": QUERY},
        *({"type": "function_call", "call_id": i, "name": "population", "arguments": json.dumps(a)} for i, a in CALLS),
        *({"type": "function_call_output", "call_id": i, "output": text} for i, text in RESULTS.items()),
    ],
    "output": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]},
    ],
}
ATIF = {
    "schema_version": "ATIF-v1.7",
    "session_id": "errand",
    "agent": {"name": "a", "version": "1", "tool_definitions": TOOLS},
    "steps": [
        {"step_id": 1, "source": "user", "message": QUERY},
        {
            "step_id": 2,
            "source": "agent",
            "message": "",
            "tool_calls": [{"tool_call_id": i, "function_name": "population", "arguments": a} for i, a in CALLS],
            "observation": {"results": [{"source_call_id": i, "content": text} for i, text in RESULTS.items()]},
        },
        {"step_id": 3, "source": "agent", "message": ANSWER},
    ],
}


def attribute(key: str, value: Any) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value if isinstance(value, str) else json.dumps(value)}}


def span(start: int, about: dict[str, Any], status: int = 0) -> dict[str, Any]:
    attributes = [attribute(key, value) for key, value in about.items()]
    return {
        "traceId": "errand",
        "spanId": f"{start:016x}",
        "startTimeUnixNano": str(start),
        "attributes": attributes,
        "status": {"code": status},
    }


def called(start: int, call_id: str, arguments: Any, **more: Any) -> dict[str, Any]:
    return span(
        start,
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "population",
            "gen_ai.tool.call.id": call_id,
            "gen_ai.tool.call.arguments": arguments,
            **more,
        },
        2 if "error.type" in more else 0,
    )


INPUT = [
    {"role": "user", "parts": [{"type": "text", "content": QUERY}]},
    {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": i, "name": "population", "arguments": a} for i, a in CALLS],
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": i, "response": t} for i, t in RESULTS.items()]},
]
OUTPUT = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}], "finish_reason": "stop"}]
OTEL = {
    "resourceSpans": [
        {
            "scopeSpans": [
                {
                    "spans": [
                        called(2, "c2", CALLS[1][1], **{"error.type": "LookupError"}),
                        called(3, "c1", CALLS[0][1], **{"gen_ai.tool.call.result": RESULTS["c1"]}),
                        span(
                            4,
                            {
                                "gen_ai.operation.name": "chat",
                                "gen_ai.input.messages": INPUT,
                                "gen_ai.output.messages": OUTPUT,
                                "gen_ai.tool.definitions": TOOLS,
                            },
                        ),
                    ]
                }
            ]
        }
    ]
}
LANGCHAIN = [
    {"type": "human", "data": {"content": QUERY}},
    {
        "type": "ai",
        "data": {"content": "", "tool_calls": [{"id": i, "name": "population", "args": a} for i, a in CALLS]},
    },
    {"type": "tool", "data": {"content": RESULTS["c1"], "tool_call_id": "c1", "status": "success"}},
    {"type": "tool", "data": {"content": RESULTS["c2"], "tool_call_id": "c2", "status": "error"}},
    {"type": "ai", "data": {"content": ANSWER}},
]


def dumped(kind: str, **kwargs: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": kwargs}


def run(kind: str, order: str, **more: Any) -> dict[str, Any]:
    return {"id": order, "trace_id": "errand", "run_type": kind, "dotted_order": order, "error": None, **more}


HEARD = [
    dumped("HumanMessage", content=QUERY),
    dumped("AIMessage", content="", tool_calls=[{"id": i, "name": "population", "args": a} for i, a in CALLS]),
    *(dumped("ToolMessage", content=text, tool_call_id=i) for i, text in RESULTS.items()),
]
LANGSMITH = [
    run("chain", "1"),
    run("tool", "1.2", outputs={"output": dumped("ToolMessage", content=RESULTS["c1"], tool_call_id="c1")}),
    run("tool", "1.3", error="LookupError('no such city')", extra={"tool_call_id": "c2"}),
    run(
        "llm",
        "1.4",
        inputs={"messages": [HEARD]},
        outputs={"generations": [[{"message": dumped("AIMessage", content=ANSWER)}]]},
    ),
]
LANGFUSE = {
    "id": "errand",
    "observations": [
        {"type": "TOOL", "name": "population", "input": CALLS[0][1], "output": RESULTS["c1"], "startTime": "1"},
        {
            "type": "TOOL",
            "name": "population",
            "input": CALLS[1][1],
            "level": "ERROR",
            "statusMessage": "no such city",
            "startTime": "2",
        },
        {
            "type": "GENERATION",
            "startTime": "3",
            "input": {"messages": OPENAI["messages"][:-1], "tools": TOOLS},
            "output": OPENAI["messages"][-1],
        },
    ],
}
SAMPLE = {
    "id": "errand",
    "epoch": 1,
    "messages": [
        {"role": "user", "content": QUERY},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": i, "function": "population", "arguments": a, "type": "function"} for i, a in CALLS],
        },
        {"role": "tool", "content": RESULTS["c1"], "tool_call_id": "c1", "function": "population", "error": None},
        {
            "role": "tool",
            "content": "",
            "tool_call_id": "c2",
            "function": "population",
            "error": {"type": "unknown", "message": RESULTS["c2"]},
        },
        {"role": "assistant", "content": [{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": ANSWER}]},
    ],
}
INSPECT = {"version": 2, "eval": {"eval_id": "e"}, "samples": [SAMPLE]}
#: What is in a file of each format, and whether it says what came of calls.
FILES: dict[str, tuple[str, Any, bool]] = {
    "openai": ("a.jsonl", OPENAI, False),
    "responses": ("a.json", RESPONSES, False),
    "atif": ("a.json", ATIF, False),
    "otel": ("a.json", OTEL, True),
    "langchain": ("a.json", LANGCHAIN, True),
    "langsmith": ("a.json", LANGSMITH, True),
    "langfuse": ("a.json", LANGFUSE, True),
    "inspect": ("a.json", INSPECT, True),
}


def written(folder: Path, name: str, value: Any = None) -> Path:
    file, content, _ = FILES[name]
    path = folder / file
    path.write_text(json.dumps(content if value is None else value) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", FILES)
def test_the_same_errand_comes_out_of_every_format(name: str, tmp_path: Path) -> None:
    """Recognised without being named; calls, texts and outcomes as they were; what is not flagged is unknown."""
    (log,) = cw.read_log(
        written(tmp_path, name), tools=None if name not in ("langchain", "langsmith", "inspect") else TOOLS
    )
    flagged = FILES[name][2]
    attempt = log.episode()
    assert [[(call.tool, dict(call.arguments)) for call in turn.calls] for turn in attempt.turns] == [
        [("population", arguments) for _, arguments in CALLS],
        [],
    ]
    assert attempt.turns[-1].completion.text.endswith(ANSWER)
    assert log.task.query == QUERY
    trace = attempt.trace
    assert trace is not None
    kinds = [record.outcome.kind for record in trace.records]
    reward = cw.reward("tier").score_attempt(attempt)
    if flagged:
        assert kinds == ["ok", "execution_error"]
        assert trace.records[0].outcome.value == 10092000
        assert reward.masked is None
        assert reward.total is not None
    else:
        assert kinds == ["unknown", "unknown"]
        assert reward.total is None
        assert "is not known" in str(reward.masked)
        assert any("what came of 2 of 2 calls is not in the file" in one for one in log.findings())
    # Names, parameters and types can be judged either way.
    assert cw.reward("tier-no-execution").score_attempt(attempt).total is not None or not flagged


@pytest.mark.parametrize("name", ["langchain", "langsmith", "inspect"])
def test_a_log_that_does_not_say_which_tools_there_were_is_masked(name: str, tmp_path: Path) -> None:
    (log,) = cw.read_log(written(tmp_path, name))
    reward = cw.reward("tier").score_attempt(log.episode())
    assert reward.total is None
    assert "does not say which tools were offered" in str(reward.masked)


def test_the_order_in_which_calls_ran_is_that_of_their_spans(tmp_path: Path) -> None:
    (log,) = cw.read_log(written(tmp_path, "otel"))
    assert [one.call_id for one in log.calls] == ["c2", "c1"]
    trace = log.episode().trace
    assert trace is not None
    assert list(trace.ran) == [1, 0]


def test_an_archive_of_inspect_has_a_file_for_each_sample(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", "{}")
        for epoch in (1, 2):
            archive.writestr(f"samples/errand_epoch_{epoch}.json", json.dumps({**SAMPLE, "epoch": epoch}))
    logs = cw.read_log(path, tools=TOOLS)
    assert [log.task.id for log in logs] == ["errand-1", "errand-2"]
    assert logs[0].messages[-1].thought == "Hm."


def test_results_in_our_own_words_are_believed(tmp_path: Path) -> None:
    """Rows that Callwright's own loops wrote need no flag: the words say what came of a call."""
    told = [
        {"role": "tool", "tool_call_id": "c1", "content": '{"result":10092000}'},
        {"role": "tool", "tool_call_id": "c2", "content": '{"error":{"code":"GONE","message":"it sank"}}'},
    ]
    row = {**OPENAI, "messages": [*OPENAI["messages"][:2], *told, OPENAI["messages"][-1]]}
    (log,) = cw.read_log(written(tmp_path, "openai", row))
    assert [(one.outcome.kind, one.outcome.code) for one in log.calls] == [("ok", ""), ("execution_error", "GONE")]


def test_our_own_format_keeps_everything(tmp_path: Path) -> None:
    world = cw.environment("banking")
    with cw.Log(world, scenario="typical", seed=7) as log:
        log.call("find_customer", {"query": "a"}, call_id="x")
        log.call("get_account", {"account_id": "A99999"})
    (other,) = cw.read_log(written(tmp_path, "otel"))
    path = tmp_path / "kept.jsonl"
    assert write_logs([log, other], path) == 2
    back = cw.read_log(path)
    assert [one.calls for one in back] == [log.calls, other.calls]
    assert back[1].messages == other.messages
    assert back[1].episode().parts == other.episode().parts
    assert (back[0].task.scenario, back[0].task.seed) == ("typical", 7)
    packed = tmp_path / "kept.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert len(cw.read_log(packed)) == 2


def test_a_record_of_a_server_has_exact_outcomes_and_no_words(tmp_path: Path) -> None:
    rows = [
        {"session": "a", "scenario": "typical", "seed": 3, "tool": "population", "arguments": {"city": "Lima"},
         "kind": "ok", "code": "", "message": "", "value": 7, "digest": "d1"},
        {"session": "b", "tool": "population", "arguments": {}, "kind": "schema_error", "code": "missing"},
        {"session": "a", "op": "close"},
    ]  # fmt: skip
    path = tmp_path / "calls.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    one, two = cw.read_log(path, tools=TOOLS)
    assert one.calls[0].outcome == cw.Outcome("ok", 7)
    assert (one.task.scenario, one.task.seed, one.calls[0].state) == ("typical", 3, "d1")
    assert two.calls[0].outcome.kind == "schema_error"
    assert "does not say which tools" in str(cw.read_log(path)[0].episode().masked)


def test_parquet_has_messages_as_columns(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'callwright[data]'")
    import pyarrow as pa
    from pyarrow import parquet

    rows = [{"id": "errand", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]}]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    (log,) = cw.read_log(tmp_path / "a.parquet")
    assert [message.text for message in log.messages] == ["hi", "ho"]


# What cannot be read --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("openai", '{"messages": 7}', "expected 'messages'"),
        ("openai", '{"messages": [{"role": "robot", "content": "x"}]}', "'role' is 'robot'"),
        ("openai", '{"messages": []}\n{"mess', "a.jsonl:2: it is not JSON"),
        ("otel", '{"resourceSpans": [7]}', "no export of OTLP JSON"),
        ("atif", '{"steps": [{"source": "robot"}]}', "a step has a 'source'"),
        ("langchain", '[{"type": "alien"}]', "expected messages of LangChain"),
        ("langfuse", '{"observations": [{}]}', "an observation has no 'type'"),
        ("inspect", '{"samples": [{}]}', "a sample has 'messages'"),
        ("callwright", '{"callwright_log": 1}', "no row of a log"),
        ("mcp-record", '{"tool": "x"}', "has a 'session'"),
        ("responses", '{"input": [{"type": "computer_call"}]}', "only messages, thoughts and functions"),
    ],
)
def test_what_is_no_row_is_named_with_its_place(name: str, content: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(content)
    with pytest.raises(DataError, match=r"a\.jsonl") as caught:
        cw.read_log(path, name)
    assert said in str(caught.value)


def test_a_file_that_no_format_knows_and_a_format_that_is_none_are_said(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("hello")
    with pytest.raises(UsageError, match="no log format knows this file; name one of atif, callwright"):
        cw.read_log(path)
    with pytest.raises(UnknownName, match="no log format named 'open-ai'"):
        cw.read_log(path, "open-ai")
    with pytest.raises(DataError, match="it cannot be read"):
        cw.read_log(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match="expected a list of tools"):
        cw.read_log(path, "openai", tools={"tools": 7})


# Scores ---------------------------------------------------------------------------------------------------------------


def test_messages_are_scored_in_one_line() -> None:
    truth = [{"name": "population", "arguments": arguments} for _, arguments in CALLS]
    reward = cw.score_messages(OPENAI["messages"][:2], "toolrl", tools=TOOLS, truth=truth)
    worse = cw.score_messages(
        OPENAI["messages"][:2], "toolrl", tools=TOOLS, truth=[{"name": "population", "arguments": {"city": "Oslo"}}]
    )
    assert reward.total is not None
    assert worse.total is not None
    assert reward.total > worse.total
    assert cw.score_messages(OPENAI["messages"], tools=TOOLS).total is None
    told = [*OPENAI["messages"][:1]]
    told.append({**OPENAI["messages"][1], "tool_calls": OPENAI["messages"][1]["tool_calls"][:1]})
    told.append({"role": "tool", "tool_call_id": "c1", "content": '{"result":10092000}'})
    assert cw.score_messages(told, tools=TOOLS, answer=10092000).total == 1.0
    assert cw.score_messages(told, tools=TOOLS, answer=1).total == 0.5
    with pytest.raises(DataError, match=r"truth\[0\] is no call"):
        cw.score_messages(told, "toolrl", tools=TOOLS, truth=["x"])


def test_the_command_lists_scores_and_writes(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from callwright.cli.root import root
    from callwright.commands.app import App

    app = App(registry=cw.default_registry())
    path = written(tmp_path, "otel")
    runner = CliRunner()
    made = runner.invoke(root, ["import", str(path), "--reward", "tier"], obj=app)
    assert made.exit_code == 0, made.output
    assert "errand: 2 turns, 2 calls, 0.375" in made.stdout or "errand: 2 turns, 2 calls, 0." in made.stdout
    for shape, key in (
        ("callwright", "callwright_log"),
        ("openai", "messages"),
        ("atif", "schema_version"),
        ("rewards", "total"),
        ("sft", "reward"),
    ):
        out = tmp_path / f"{shape}.jsonl"
        made = runner.invoke(root, ["import", str(path), "--reward", "tier", "--as", shape, "-o", str(out)], obj=app)
        assert made.exit_code == 0, made.output
        (row,) = [json.loads(line) for line in out.read_text().splitlines()]
        assert key in row
    again = runner.invoke(root, ["import", str(path), "-o", str(tmp_path / "sft.jsonl")], obj=app)
    assert again.exit_code != 0
    (back,) = cw.read_log(tmp_path / "atif.jsonl")
    (first,) = cw.read_log(path)
    assert back.messages == first.messages


def test_pairs_are_of_one_query_and_different_rewards(tmp_path: Path) -> None:
    from callwright_plugins.log_formats.training_rows import preference_rows, sft_rows

    good = {**OPENAI, "id": "good", "messages": [OPENAI["messages"][0], {"role": "assistant", "content": "fine"}]}
    bad = {**OPENAI, "id": "bad", "messages": OPENAI["messages"][:2]}
    bad["messages"][1]["tool_calls"][1]["function"]["arguments"] = '{"town": 3}'
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(good) + "\n" + json.dumps(bad) + "\n")
    logs = cw.read_log(path)
    recipe = cw.reward("tier-no-execution")
    scored = [(log, recipe.score_attempt(log.episode())) for log in logs]
    known = [(log, reward) for log, reward in scored if reward.total is not None]
    rows = list(preference_rows(known))
    totals = {reward.total for _, reward in known}
    assert len(rows) == (len(totals) > 1)
    for row in rows:
        assert row["prompt"] == [OPENAI["messages"][0]]
        assert row["chosen_reward"] > row["rejected_reward"]
    assert all(row["reward"] == max(totals) for row in sft_rows(known))
