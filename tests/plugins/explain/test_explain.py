"""``callwright explain``: the walk, drawn and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from click.testing import Result
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import callwright as cw
from callwright.commands.file_formats import schema_of
from callwright.plugins import load_plugins
from callwright_plugins.explain.drawing import draw, pointed
from callwright_plugins.explain.walk_data import Walk

Invoke = Callable[..., Result]
TASK = ("--corpus", "sums-v1", "--recipe", "sums", "--task", "train-2")


def body(text: str) -> str:
    return f'<think>\nI see.\n</think>\n<tool_call return="one">\n{text}\n</tool_call>'


def test_a_right_completion(invoke: Invoke) -> None:
    result = invoke("explain", *TASK, "--gold")
    assert result.exit_code == 0
    for part in (
        "Task train-2  train, depth 2, chain 2, linear, returns one",
        "What is twice 2 plus 1?",
        "expected: 6.0",
        "add(a: number, b: number) -> number",
        "1  double(x=API_RESPONSE_0)  uses 0",
        "every call fits",
        "every call executed",
        "✓ returned: 6.0",
        "total 1",
    ):
        assert part in result.stdout


def test_help(invoke: Invoke) -> None:
    assert "Walk through one completion" in invoke("explain", "--help").stdout


def test_where_points_are_lost(invoke: Invoke) -> None:
    text = body('{"0": {"add": {"a": "two", "c": 1}}, "1": {"dubble": {"x": "API_RESPONSE_0"}}}')
    output = invoke("explain", *TASK, "--completion", text).stdout
    for part in (
        "4 mismatches",
        "✗ name: call 1 dubble",
        "✗ missing: call 0 add.b",
        "✗ unexpected: call 0 add.c",
        "✗ type: call 0 add.a: expected number, found string",
        "2 failed",
        "failed_dependency",
        "the first point was lost at answer",
    ):
        assert part in output


def test_one_mismatch_is_one(invoke: Invoke) -> None:
    output = invoke("explain", *TASK, "--completion", body('{"0": {"add": {"a": 1, "b": "two"}}}')).stdout
    assert "1 mismatch\n" in output


def test_a_reference_to_nothing(invoke: Invoke) -> None:
    output = invoke("explain", *TASK, "--completion", body('{"0": {"double": {"x": "API_RESPONSE_7"}}}')).stdout
    assert "x: API_RESPONSE_7 names no earlier call" in output


def test_a_parse_failure_is_pointed_at(invoke: Invoke) -> None:
    text = body('{"0": {"add": {"a": 1,, "b": 2}}}')
    output = invoke("explain", *TASK, "--completion", text).stdout
    lines = output.splitlines()
    at = next(number for number, line in enumerate(lines) if "1,, " in line)
    assert lines[at].startswith("5 │ ")
    assert lines[at + 1].strip() == "^"
    assert lines[at][lines[at + 1].index("^")] == ","
    assert "not looked at" in output
    assert "total 0; the first point was lost at format" in output


def test_masked(invoke: Invoke) -> None:
    output = invoke("explain", *TASK, "--completion", body('{"0": {"outage": {"x": 1}}}')).stdout
    assert "infrastructure_error" in output
    assert "masked: call 0 outage" in output
    assert "the server does not answer" in output


def test_a_file_and_stdin(invoke: Invoke, tmp_path: Path, gold: Callable[[str], str]) -> None:
    path = tmp_path / "completion.txt"
    path.write_text(gold("train-2"), encoding="utf-8")
    from_file = invoke("explain", *TASK, path)
    assert "total 1" in from_file.stdout
    assert invoke("explain", *TASK, "-", input=gold("train-2")).stdout == from_file.stdout


def test_as_json(invoke: Invoke) -> None:
    import jsonschema_rs

    found = json.loads(invoke("explain", *TASK, "--gold", "--json").stdout)
    jsonschema_rs.validator_for(schema_of("task")).validate(found["task"])
    assert found["task"]["target_tools"] == ["add", "double"]
    assert found["task"]["distractors"] == ["divide", "outage", "stumble"]
    assert found["task"]["program"] == found["completion"]
    assert found["program"]["edges"] == [[0, 1]]
    assert found["trace"][1] == {"call": 1, "tool": "double", "arguments": {"x": 3.0}, "outcome": "ok", "value": 6.0}
    assert found["verdict"] == {"answer": True, "valid": True, "failure": "", "masked": False}
    assert found["reward"]["total"] == 1.0
    failed = json.loads(invoke("explain", *TASK, "--completion", "nothing", "--json").stdout)
    assert failed["program"] is None
    assert failed["failure"]["code"] == "missing_think"
    assert failed["trace"] == []


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ((*TASK,), 2, "give one completion"),
        ((*TASK, "--gold", "--completion", "x"), 2, "give one completion"),
        ((*TASK, "no-such-file"), 2, "error: no-such-file cannot be read: No such file or directory"),
        (
            ("--corpus", "sums-v1", "--recipe", "sums", "--task", "train-77", "--gold"),
            2,
            "There is no task of sums-v1 named 'train-77'. Some of its 24: train-7, ",
        ),
    ],
)
def test_requests_that_cannot_be_met(invoke: Invoke, words: tuple[str, ...], status: int, said: str) -> None:
    result = invoke("explain", *words)
    assert result.exit_code == status
    assert said in result.stderr


def test_a_file_that_is_no_text(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"abc\xff")
    result = invoke("explain", *TASK, path)
    assert result.exit_code == 2
    assert result.stderr == f"error: {path} is not UTF-8 text: invalid start byte at byte 3\n"


def test_escape_sequences_of_a_model_do_not_reach_the_terminal(invoke: Invoke) -> None:
    for text in (
        "\x1b]0;owned\x07",
        body('{"0": {"\\u001b[2J": {}}}'),
        body('{"0": {"add": {"a": "\\u202e", "b": 1}}}'),
    ):
        output = invoke("explain", *TASK, "--completion", text).stdout
        assert "\x1b" not in output
        assert "\u202e" not in output
        assert "[bold]" not in output


_PIECES = st.sampled_from(
    [
        "<think>",
        "</think>",
        '<tool_call return="one">',
        "</tool_call>",
        '{"0": {"add": {"a": 1}}}',
        "\ud800",
        "\x1b[31m",
        "[red]",
        "日本",
        "\t",
        "\n",
        '"',
        "{",
        "}",
    ]
)


@settings(max_examples=60, deadline=None)
@given(text=st.lists(_PIECES | st.text(max_size=5), max_size=12).map("".join))
def test_any_completion_can_be_drawn_and_written(text: str) -> None:
    registry = _registry()
    task = registry.create("corpus", "sums-v1").task("train-2")
    walk = Walk.of(_pipeline(registry), task, text)
    out = StringIO()
    draw(walk, Console(file=out, width=80, markup=False, emoji=False, highlight=False))
    out.getvalue().encode("utf-8")
    assert "\x1b" not in out.getvalue()
    json.dumps(walk.to_json()).encode("ascii")


@given(st.text(), st.tuples(st.integers(-5, 60), st.integers(-5, 60)))
def test_a_span_anywhere_in_any_text_can_be_pointed_at(text: str, span: tuple[int, int]) -> None:
    drawn = pointed(text, span, width=20)
    assert any("^" in line.plain for line in drawn)


_CACHE: list[cw.Registry] = []


def _registry() -> cw.Registry:
    if not _CACHE:
        import cli_fakes

        import callwright_plugins.json_ir

        modules = {"json-ir": callwright_plugins.json_ir, "fakes": cli_fakes}
        _CACHE.append(load_plugins(extra=modules, entry_points=False))
    return _CACHE[0]


def _pipeline(registry: cw.Registry) -> cw.Pipeline:
    from callwright.commands.pipelines import make_pipeline

    return make_pipeline(registry, "sums-v1", {}, reward="sums")
