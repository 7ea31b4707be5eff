"""ToolRL's training rows as a corpus: what is read, what is refused, and that a right program earns full marks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.errors import DataError, UnknownName
from callwright.plugins import Registry, load_plugins
from callwright.testing import check_component
from callwright.walk.prompt import build_messages
from callwright_plugins import chat_ir, toolrl_rewards, toolrl_rows
from callwright_plugins.toolrl_rows.corpus import ToolRLRows

SYSTEM = """You are a helpful multi-turn dialogue assistant.
**Available Tools**
In your response, you can use the following tools:
1. Name: weather
Description: Weather of a city.
Second line.
Parameters: {"city": {"description": "Where.", "type": "str", "default": ""}, "days": {"type": "int, optional"}}
2. Name: broken
Description: Cannot be read.
Parameters: {nonsense

**Steps for Each Turn**"""
TRUTH = """<think> I should use the tool. </think>
<tool_call>
{"name": "weather", "parameters": {"city": "Rome", "days": 2}}
{"name": "weather", "parameters": {"city": "Oslo"}}
</tool_call>"""
SPEAK = "<think> Nothing to call. </think>\n<response> Hello. </response>"


def raw(truth: str = TRUTH) -> dict[str, Any]:
    return {"instruction": SYSTEM, "input": "<user> Rome and Oslo? </user>", "output": truth}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([raw(TRUTH if number % 2 else SPEAK) for number in range(100)]), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def registry() -> Registry:
    return load_plugins(
        extra={"toolrl-rows": toolrl_rows, "chat-ir": chat_ir, "toolrl-rewards": toolrl_rewards}, entry_points=False
    )


def test_every_fiftieth_row_is_for_testing(file: Path) -> None:
    corpus = ToolRLRows(file)
    assert corpus.splits == {"train": 98, "test": 2}
    assert corpus.task("test-1") is corpus["test"][1]
    with pytest.raises(UnknownName):
        corpus.task("test-2")


def test_tools_are_those_of_the_list(file: Path) -> None:
    (weather,) = ToolRLRows(file)["train"][0].tools.values()
    assert weather.description == "Weather of a city.\nSecond line."
    assert weather.parameters["required"] == ["city"]
    assert weather.parameters["properties"]["days"]["type"] == "integer"


@pytest.mark.parametrize("number", [0, 1])
def test_the_ground_truth_is_right_under_toolrl_and_in_an_evaluation(
    number: int, file: Path, registry: Registry
) -> None:
    task = ToolRLRows(file)["train"][number]
    truth = task.facts["ground_truth"]
    reward = registry.create("reward recipe", "toolrl")
    parser = registry.create("parser", "toolrl")
    attempt = cw.Attempt(task, truth, parser)
    assert reward.score_attempt(attempt).total == 4.0
    from callwright.training.evaluation import judge

    assert judge(attempt).answer
    wrong = truth.replace("Rome", "Lima") if number else TRUTH
    assert not judge(cw.Attempt(task, wrong, parser)).answer


def test_the_prompt_is_the_rows_own(file: Path, registry: Registry) -> None:
    task = ToolRLRows(file)["train"][1]
    assert build_messages(task, registry.create("parser", "toolrl"), registry) == (
        cw.Message.system(SYSTEM),
        cw.Message.user("<user> Rome and Oslo? </user>"),
    )


def test_the_other_shapes_hold_the_same(tmp_path: Path, file: Path) -> None:
    shaped = [
        {
            "prompt": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": raw()["input"]}],
            "reward_model": {"style": "rule", "ground_truth": truth},
            "extra_info": {"split": split},
        }
        for truth, split in ((SPEAK, "train"), (TRUTH, "test"))
    ]
    lines = tmp_path / "rows.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in shaped), encoding="utf-8")
    corpus = ToolRLRows(lines)
    assert corpus.splits == {"train": 1, "test": 1}
    plain = ToolRLRows(file)["train"][1]
    task = corpus["test"][0]
    assert (task.query, task.answer, task.program) == (plain.query, plain.answer, plain.program)
    assert task.facts == plain.facts
    parquet = pytest.importorskip("pyarrow.parquet", reason="parquet files need pyarrow")
    import pyarrow

    parquet.write_table(pyarrow.Table.from_pylist(shaped), tmp_path / "rows.parquet")
    assert ToolRLRows(tmp_path / "rows.parquet")["test"][0].facts == task.facts


@pytest.mark.parametrize("text", ["", "[]", "[1]", "{", '[{"instruction": "a", "input": 3, "output": "b"}]'])
def test_bad_files_are_the_users_fault(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"bad\.json"):
        ToolRLRows(path)


def test_it_conforms(file: Path) -> None:
    check_component("environment", ToolRLRows(file).environment)


def test_a_file_that_is_not_there_is_asked_for(tmp_path: Path) -> None:
    for name in ("rows.json", "rows.parquet"):
        with pytest.raises(DataError, match=r"there is no file .*corpus\.file=FILE"):
            ToolRLRows(tmp_path / name)
