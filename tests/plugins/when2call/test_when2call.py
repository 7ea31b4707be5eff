"""When2Call: decisions of forms and of words, and tables of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import callwright as cw
from callwright.cli.root import root as cli
from callwright.commands.app import App
from callwright.errors import DataError
from callwright.measuring.benchmark import Judged, Judgement
from callwright_plugins.when2call.benchmark import When2Call, macro_f1
from callwright_plugins.when2call.decisions import decision_of, decision_of_text, decision_of_words

TOOL = {
    "name": "weather",
    "description": "The weather in a city.",
    "parameters": {"type": "dict", "required": ["city"], "properties": {"city": {"type": "string"}}},
}
ANSWERS = {
    "direct": "It is sunny in Oslo.",
    "tool_call": json.dumps({"name": "weather", "arguments": {"city": "Oslo"}}),
    "request_for_info": "For which city would you like to know the weather?",
    "cannot_answer": "I'm sorry, but I have no access to weather reports.",
}


def question(uuid: str, decision: str, *tools: dict[str, Any]) -> dict[str, Any]:
    return {
        "uuid": uuid,
        "question": "What will the weather be?",
        "correct_answer": decision,
        "answers": ANSWERS,
        "tools": [json.dumps(one) for one in tools],
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [
        question("call", "tool_call", TOOL),
        question("ask", "request_for_info", TOOL),
        question("bare", "cannot_answer"),
        question("other", "cannot_answer", {**TOOL, "name": "tides"}),
    ]
    (tmp_path / "when2call_test_llm_judge.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


@pytest.fixture(scope="session")
def official_when2call(official_data: Path) -> Path:
    folder = official_data / "when2call"
    if not folder.is_dir():
        pytest.skip("the questions of When2Call are not here (CALLWRIGHT_DATA)")
    return folder


def test_gold_answers_of_every_question_and_form_are_right(official_when2call: Path) -> None:
    benchmark = When2Call(official_when2call)
    tasks = benchmark.tasks()
    assert len(tasks) >= 111
    for name in ("json", "xml", "direct", "hermes"):
        parser = cw.parser(name)
        for task in tasks:
            assert task.program is not None
            assert benchmark.judge(task, cw.Attempt(task, parser.render(task.program), parser)).correct, (name, task.id)


def test_the_released_answers_to_other_decisions_are_told_apart(official_when2call: Path) -> None:
    """Each question has an answer of every kind, and those that are wrong here were written in the same way."""
    with gzip.open(official_when2call / "when2call_test_llm_judge.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    for kind, least in (("tool_call", 1.0), ("request_for_info", 0.98), ("cannot_answer", 0.98), ("direct", 0.92)):
        right = [decision_of_text(row["answers"][kind]) == kind for row in rows]
        assert sum(right) / len(right) >= least, kind


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("Which city?", "request_for_info"),
        ("I'm sorry, could you tell me the city?", "request_for_info"),
        ("To proceed, I need to know which city you mean.", "request_for_info"),
        ("Please provide the name of the city.", "request_for_info"),
        ("I can’t look up the weather. Is there anything else I can help with?", "cannot_answer"),
        ("Unfortunately none of the tools fits; I am unable to do that.", "cannot_answer"),
        ("I don't have the ability to book flights.", "cannot_answer"),
        ("It will rain. Can I help you with anything else?", "direct"),
        ("42", "direct"),
        ('{"name": "weather", "arguments": {}}', "tool_call"),
        ('[{"name": "weather", "arguments": {}}]', "tool_call"),
        ('{"weather": 3}', "direct"),
    ],
)
def test_what_words_decide(text: str, decision: str) -> None:
    assert decision_of_text(text) == decision


def test_what_forms_decide(folder: Path) -> None:
    task = When2Call(folder).corpus.task("call")
    parser = cw.parser("json")
    head = "<think>\nWhat now?\n</think>\n"
    for text, decision in (
        (f'{head}<tool_call return="one">\n{{"0": {{"nobody": {{}}}}}}\n</tool_call>', "tool_call"),
        (f'{head}<tool_call return="one">\n{{}}\n</tool_call>', "cannot_answer"),
        (f'{head}<tool_call return="one">\n{{}}\n</tool_call>\nWhich city?', "request_for_info"),
        (f"{head}Which city?", "request_for_info"),
        ("I'm afraid not.", "cannot_answer"),
        (f'{head}<tool_call return="one">\n{{"0": \n</tool_call>', "unreadable"),
        (head, "unreadable"),
        ("", "unreadable"),
    ):
        assert decision_of(cw.Attempt(task, text, parser)) == decision, text


def test_words_are_read_in_linear_time(minute_of_work: Any) -> None:
    with minute_of_work():
        for text in ("I am " * 100_000, "?" * 500_000, "please " * 70_000, "so sorry " * 50_000, "a" * 500_000 + "?"):
            decision_of_words(text)


def test_a_table_by_hand(folder: Path) -> None:
    benchmark = When2Call(folder)

    def judged(uuid: str, text: str, sample: int = 0) -> Judged:
        attempt = benchmark.answer({"uuid": uuid, "model_response": text}, cw.parser("json"))
        assert attempt is not None
        return Judged(uuid, benchmark.category_of(attempt.task), benchmark.judge(attempt.task, attempt), sample)

    made = [
        judged("call", ANSWERS["tool_call"]),
        judged("ask", ANSWERS["direct"]),
        judged("bare", ANSWERS["tool_call"]),
        judged("other", ANSWERS["cannot_answer"]),
    ]
    found = benchmark.aggregate(made)
    assert found["overall"] == 0.5
    assert (found["tool_call"], found["request_for_info"], found["cannot_answer"]) == (1.0, 0.0, 0.5)
    assert found["cannot_answer as tool_call"] == found["cannot_answer as cannot_answer"] == 0.5
    assert found["request_for_info as direct"] == 1.0
    assert found["hallucinated calls"] == 1.0
    # direct 0, request_for_info 0, tool_call 2·1/(1+2), cannot_answer 2·1/(2+1)
    assert found["macro f1"] == pytest.approx((0 + 0 + 2 / 3 + 2 / 3) / 4)
    assert made[1].judgement.error == "said_direct"
    kept = [
        Judged(one.task, one.category, Judgement.from_json(json.loads(json.dumps(one.judgement.to_json()))))
        for one in made
    ]
    assert benchmark.aggregate(kept[::-1]) == found
    # A task that was answered rightly in one of two samples counts half.
    assert benchmark.aggregate([*made, judged("call", "Hm.", 1)])["tool_call"] == 0.5


def test_what_cannot_be_read_is_no_class_of_macro_f1() -> None:
    assert macro_f1([("a", "a"), ("b", "unreadable")]) == 0.5
    assert macro_f1([("a", "a"), ("b", "c")]) == pytest.approx(1 / 3)
    assert macro_f1([]) == 0.0


def test_judge_reads_released_rows(folder: Path, tmp_path: Path) -> None:
    rows = [{"uuid": "call", "model_response": ANSWERS["tool_call"]}, {"id": "ask", "completion": "Which city?"}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["benchmark", "judge", "when2call", str(tmp_path / "a.jsonl"), "--data", str(folder), "--json"]
    app = App(registry=cw.default_registry())
    result = CliRunner().invoke(cli, [*words, "-o", str(tmp_path / "o.jsonl")], obj=app, catch_exceptions=False)
    assert json.loads(result.stdout)["values"]["overall"] == 1.0


def test_evaluate_gold(folder: Path) -> None:
    words = ["evaluate", "--benchmark", "when2call", "--data", str(folder), "--sampler", "gold", "--json"]
    app = App(registry=cw.default_registry())
    found = json.loads(CliRunner().invoke(cli, words, obj=app, catch_exceptions=False).stdout)
    assert (found["values"]["overall"], found["benchmark"]["official"]) == (1.0, False)


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds neither"):
        When2Call(tmp_path)
    path = tmp_path / "when2call_test_mcq.jsonl"
    path.write_text(json.dumps(question("x", "perhaps")) + "\n")
    with pytest.raises(DataError, match=r"mcq\.jsonl:1: no question of When2Call: ValueError: 'correct_answer'"):
        When2Call(tmp_path)
