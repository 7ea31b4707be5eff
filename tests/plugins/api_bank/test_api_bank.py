"""API-Bank: ToolRL's soft match with all that it lets pass, and its table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright.cli.root import root as cli
from callwright.commands.app import App
from callwright.errors import DataError
from callwright.measuring.benchmark import Judged
from callwright_plugins.api_bank.benchmark import ApiBank, tools_of
from callwright_plugins.api_bank.matching import released_calls, soft_match

GOLD = {"name": "Alarm", "parameters": {"time": "07:00", "token": "t"}}
SYSTEM = """You are helpful.

**Available Tools**
In your response, you can use the following tools:
1. Name: Alarm
Description: Set an alarm.
It rings: once.
Parameters: {'time': {'type': 'str', 'description': "When it's to ring."}, 'days': {'type': 'list(str)'}}
2. Weather: The weather.
Parameters: {'latitude': {'type': 'float', 'description': 'In degrees.'}}

**Steps for Each Turn**
1. **Think:** Recall.
"""


def block(*lines: Any) -> str:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in lines]
    return "\n".join(("<think> Hm. </think>", "<tool_call>", *texts, "</tool_call>"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for level in (1, 2, 3):
        answer: Any = GOLD if level == 2 else [GOLD]
        rows = [{"system": SYSTEM, "user": f"Ring {number}.", "answer": answer} for number in range(level)]
        (tmp_path / f"level-{level}-api_processed.json").write_text(json.dumps(rows))
    return tmp_path


@pytest.fixture(scope="session")
def official_api_bank(official_data: Path) -> Path:
    folder = official_data / "apibank"
    if not folder.is_dir():
        pytest.skip("the questions of API-Bank are not here (CALLWRIGHT_DATA)")
    return folder


def test_gold_of_every_level_and_form_is_right(official_api_bank: Path) -> None:
    benchmark = ApiBank(official_api_bank)
    assert all(benchmark.categories[f"level {level}"] >= least for level, least in ((1, 161), (2, 29), (3, 44)))
    for name in ("json", "xml", "direct", "toolrl", "hermes"):
        parser = cw.parser(name)
        for task in benchmark.tasks():
            assert task.program is not None
            assert task.tools
            assert benchmark.judge(task, cw.Attempt(task, parser.render(task.program), parser)).correct, (name, task.id)


#: Every verdict here was given by the released ``generate.py`` and ``evaluate.py``, run with a stand-in for its engine.
@pytest.mark.parametrize(
    ("text", "error"),
    [
        (block(GOLD), ""),
        (block({"name": "x", "parameters": {}}, GOLD), ""),
        (f"{block({'name': 'x', 'parameters': {}})}{block(GOLD)}", ""),
        (f"{block(GOLD)}<tool_call>\n</tool_call>", "no_call"),
        (block(GOLD["parameters"]), ""),  # bare parameters are those of the right tool
        (block({"name": "Alarm", "arguments": GOLD["parameters"]}), "wrong_parameters"),
        (block({"name": "alarm", "parameters": GOLD["parameters"]}), "wrong_tool"),
        (block({"name": "Alarm", "parameters": {"time": "07:00"}}), "wrong_parameters"),
        (block({**GOLD, "id": 1}), ""),
        ("Sure.\n" + json.dumps(GOLD) + "\nDone.", ""),
        ("<tool_call>\n" + json.dumps(GOLD), ""),
        (block("{oops", "", GOLD), ""),
        (block("[]", GOLD), ""),
        (block("null", GOLD), "no_object"),  # a line that is no object ends the search
        (block("5", GOLD), "no_object"),
        (block('"abc"', GOLD), "no_object"),
        (block(json.dumps(json.dumps(GOLD))), ""),
        (block([GOLD]), "wrong_parameters"),
        (block(json.dumps(GOLD, indent=1)), "no_call"),
        (block("1" * 5000, GOLD), ""),
        ("<think> Hm. </think>\n<response>Hello.</response>", "no_call"),
        ("", "no_call"),
    ],
)
def test_what_the_soft_match_lets_pass(folder: Path, text: str, error: str) -> None:
    benchmark = ApiBank(folder)
    task = benchmark.corpus.task("Level2_1")
    found = benchmark.judge(task, cw.Attempt(task, text, cw.parser("toolrl")))
    assert (found.correct, found.error) == (not error, error)
    row = benchmark.answer({"id": "Level2_1", "raw_output": text, "score": 1}, cw.parser("json"))
    assert row is not None
    assert benchmark.judge(task, row) == found


def test_numbers_are_compared_as_python_does() -> None:
    answer = {"name": "a", "parameters": {"n": 1}}
    assert not soft_match([{"name": "a", "parameters": {"n": 1.0}}], answer)
    assert soft_match([{"name": "a", "parameters": {"n": "1"}}], answer) == "wrong_parameters"


@given(st.text() | st.lists(st.sampled_from(["<tool_call>", "</tool_call>", "\n", "{", "}", '"name"', "1", "[]"])))
def test_reading_is_total(written: Any) -> None:
    soft_match(released_calls("".join(written)), GOLD)


def test_reading_is_linear(minute_of_work: Any) -> None:
    with minute_of_work():
        for text in ("<tool_call>" * 100_000, "\n{" * 100_000, "[" * 1_000_000, "</tool_call>\n" * 100_000):
            released_calls(text)


def test_tools_are_read_from_the_system_message() -> None:
    alarm, weather = tools_of(SYSTEM)
    assert (alarm.name, alarm.description) == ("Alarm", "Set an alarm.\nIt rings: once.")
    assert alarm.parameters["properties"]["time"] == {"description": "When it's to ring.", "type": "string"}
    assert alarm.parameters["properties"]["days"] == {"type": "array"}
    assert (weather.name, weather.description) == ("Weather", "The weather.")


def test_overall_counts_questions_and_not_levels(folder: Path) -> None:
    benchmark = ApiBank(folder)
    assert dict(benchmark.categories) == {"level 1": 1, "level 2": 2, "level 3": 3}
    parser = cw.parser("toolrl")
    judged = []
    for task in benchmark.tasks():
        text = block(GOLD) if task.facts["level"] != 3 else ""
        judged.append(
            Judged(task.id, benchmark.category_of(task), benchmark.judge(task, cw.Attempt(task, text, parser)))
        )
    assert benchmark.aggregate(judged) == {"overall": 0.5, "level 1": 1.0, "level 2": 1.0, "level 3": 0.0}
    assert len(benchmark.unofficial) == 3


def test_judge_and_evaluate(folder: Path, tmp_path: Path) -> None:
    app = App(registry=cw.default_registry())
    rows = [
        {"id": "Level1_0", "tool_calls": [GOLD]},
        {"id": "Level3_2", "completion": cw.parser("json").render(cw.Program((cw.Call(0, **_call(GOLD)),)))},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["benchmark", "judge", "api-bank", str(tmp_path / "a.jsonl"), "--data", str(folder), "--json"]
    result = CliRunner().invoke(cli, [*words, "-o", str(tmp_path / "o.jsonl")], obj=app, catch_exceptions=False)
    assert json.loads(result.stdout)["values"]["overall"] == 1.0
    words = [
        "evaluate",
        "--benchmark",
        "api-bank",
        "--data",
        str(folder),
        "--sampler",
        "gold",
        "--ir",
        "toolrl",
        "--json",
    ]
    found = json.loads(CliRunner().invoke(cli, [*words, "--json"], obj=app, catch_exceptions=False).stdout)
    assert found["values"] == {"overall": 1.0, "level 1": 1.0, "level 2": 1.0, "level 3": 1.0}


def _call(gold: Any) -> dict[str, Any]:
    return {"tool": gold["name"], "arguments": gold["parameters"]}


def test_folders_without_the_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no level-1-api_processed\.json"):
        ApiBank(tmp_path)
    (tmp_path / "level-1-api_processed.json").write_text('[{"system": "", "user": "Hi"}]')
    with pytest.raises(DataError, match="question 0 cannot be read: KeyError: 'answer'"):
        ApiBank(tmp_path)
