"""When2Call and xLAM-irrelevance as tasks: small rows in the published formats, all written by us, and given data."""

from __future__ import annotations

import contextlib
import gzip
import json
import pickle
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright.errors import DataError, UsageError
from callwright.walk.tasks import Task
from callwright_plugins.data_preparation.command import prepare
from callwright_plugins.data_preparation.conversations import BadRow
from callwright_plugins.data_preparation.decisions import DECISIONS, kind_of_words

TRAINS = {
    "name": "trains",
    "description": "Trains of a day.",
    "parameters": {
        "type": "dict",
        "properties": {
            "to": {"type": "str", "description": "Where to."},
            "day": {"type": "str", "description": "When.", "default": "today"},
        },
    },
    "required": ["to"],
}


def supervised(query: str, answer: str) -> dict[str, Any]:
    """A row of ``when2call_train_sft.jsonl`` (our own)."""
    return {
        "tools": [TRAINS],
        "messages": [{"role": "user", "content": query}, {"role": "assistant", "content": answer}],
    }


def preferred(query: str, chosen: str, rejected: str) -> dict[str, Any]:
    """A row of ``when2call_train_pref.jsonl`` (our own)."""
    return {
        "tools": [TRAINS],
        "messages": [{"role": "user", "content": query}],
        "chosen_response": {"role": "assistant", "content": chosen},
        "rejected_response": {"role": "assistant", "content": rejected},
    }


def questioned(query: str, right: str) -> dict[str, Any]:
    """A row of When2Call's files for testing (our own)."""
    answers = {
        "direct": "At nine.",
        "tool_call": json.dumps({"name": "trains", "arguments": {"to": "Oslo"}}),
        "request_for_info": "Where to?",
        "cannot_answer": "Sorry, I can't.",
    }
    return {"question": query, "correct_answer": right, "answers": answers, "tools": [json.dumps(TRAINS)]}


def irrelevant(query: str, *answers: dict[str, Any]) -> dict[str, Any]:
    """A row of xLAM-irrelevance, or with answers one of xLAM (our own)."""
    tool = {"name": "trains", "description": "Trains.", "parameters": {"to": {"type": "str", "description": "x"}}}
    return {"id": 0, "query": query, "tools": json.dumps([tool]), "answers": json.dumps(answers)}


def call(**arguments: Any) -> str:
    return f"<TOOLCALL>{json.dumps([{'name': 'trains', 'arguments': arguments}])}</TOOLCALL>"


ROWS = [
    supervised("Trains to Bergen?", call(to="Bergen")),
    supervised("Find me a train.", "Where would you like to go?"),
    supervised("Write a poem.", "I'm sorry, I can't write poems with these tools. Is there anything else?"),
    preferred("When does it leave?", "Please tell me where you want to go.", call(to="Paris")),
    preferred("To Bodø tomorrow?", call(to="Bodø", day="tomorrow"), "Sorry, I can't."),
    preferred("Book a table.", "Apologies, but I am unable to book tables.", "Booked!"),
    questioned("To Oslo?", "tool_call"),
    questioned("A train.", "request_for_info"),
    questioned("A plane.", "cannot_answer"),
]


def written(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def prepared(tmp_path: Path, *words: str) -> tuple[Path, str]:
    output = tmp_path / "tasks.jsonl"
    done = CliRunner().invoke(prepare, ["tasks", "-o", str(output), *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return output, done.output


def tasks_of(tmp_path: Path) -> list[Task]:
    when2call = written(tmp_path / "w.jsonl", ROWS)
    other = written(tmp_path / "x.jsonl", [irrelevant("What is the capital of Peru?")])
    output, _ = prepared(tmp_path, "--when2call", str(when2call), "--irrelevance", str(other))
    return list(cw.read_tasks(output))


def test_rows_are_calls_clarifications_and_abstentions(tmp_path: Path) -> None:
    tasks = tasks_of(tmp_path)
    kinds = [task.facts["kind"] for task in tasks]
    assert kinds == [
        "call", "clarification", "abstention", "clarification", "call", "abstention",
        "call", "clarification", "abstention", "abstention",
    ]  # fmt: skip
    assert [task.split for task in tasks] == 6 * ["train"] + 3 * ["test"] + ["train"]
    assert tasks[-1].facts["source"] == "xLAM-irrelevance"
    assert [step["calls"] for step in tasks[4].facts["steps"]] == [
        [{"name": "trains", "arguments": {"to": "Bodø", "day": "tomorrow"}}]
    ]
    assert all(not task.facts["steps"] for task in tasks if task.facts["kind"] != "call")


@pytest.mark.parametrize("ir", ["json", "hermes", "toolrl"])
@pytest.mark.parametrize("name", ["tier", "prove", "toolrl"])
def test_the_reference_earns_everything_and_the_other_decision_less(tmp_path: Path, name: str, ir: str) -> None:
    parser, reward = cw.parser(ir), cw.reward(name)
    called = cw.Program((cw.Call(0, "trains", {"to": "Kiruna"}),))
    said = cw.Program((), text="I cannot do this.")
    for task in tasks_of(tmp_path):
        assert task.program is not None
        other = said if task.program.calls else called
        right, wrong = (
            reward.score_attempt(cw.Attempt(task, parser.render(program), parser)).total
            for program in (task.program, other)
        )
        # Prove adds its bonuses for calls alone, so that an abstention earns 1 and no more.
        full = 1.0 if name == "prove" and not task.program.calls else reward.high
        assert right == pytest.approx(full), (task.id, name)
        assert wrong < right, (task.id, name)


def test_an_optional_argument_may_be_left_out_or_be_another_for_tier(tmp_path: Path) -> None:
    task = next(task for task in tasks_of(tmp_path) if "Bodø" in task.query)
    parser, reward = cw.parser("json"), cw.reward("tier")
    program = cw.Program((cw.Call(0, "trains", {"to": "Bodø"}),))
    assert reward.score_attempt(cw.Attempt(task, parser.render(program), parser)).total == reward.high


def test_what_cannot_be_used_is_counted_by_reason_and_stands_in_the_manifest(tmp_path: Path) -> None:
    rows: list[Any] = [
        ROWS[0],
        ROWS[0],
        questioned("Six times seven?", "direct"),
        supervised("To Rome?", call(day="today")),
        supervised("To Rome?", "<TOOLCALL>[nonsense]</TOOLCALL>"),
        supervised("", "Where to?"),
        {**ROWS[0], "tools": []},
        {**ROWS[0], "tools": [TRAINS, TRAINS]},
        {"text": "nothing of the kind"},
        [1, 2],
    ]
    file = written(tmp_path / "w.jsonl", rows)
    output, said = prepared(tmp_path, "--when2call", str(file))
    manifest = json.loads((tmp_path / "tasks.jsonl.manifest.json").read_text())
    assert manifest["sources"][0]["kinds"] == {"call": 1}
    assert manifest["sources"][0]["left out"] == {
        "keys that are not those of the format": 1,
        "the same request over the same tools": 1,
        "answered without tools": 1,
        "calls that do not fit their schemas": 1,
        "calls that cannot be read": 1,
        "nothing asked": 1,
        "no tools": 1,
        "two tools of one name": 1,
        "not an object": 1,
    }
    assert "1 call" in said
    assert len(cw.read_tasks(output)) == 1


def test_rows_of_another_data_set_are_refused_in_words(tmp_path: Path) -> None:
    file = written(tmp_path / "x.jsonl", [irrelevant("To Oslo?", {"name": "trains", "arguments": {"to": "Oslo"}})])
    words = ["tasks", "-o", str(tmp_path / "out.jsonl"), "--irrelevance", str(file)]
    with pytest.raises(DataError, match="none of the files gave a task"):
        CliRunner().invoke(prepare, words, catch_exceptions=False)
    assert not (tmp_path / "out.jsonl").exists()
    with pytest.raises(UsageError, match="name at least one file"):
        CliRunner().invoke(prepare, ["tasks", "-o", str(tmp_path / "out.jsonl")], catch_exceptions=False)


def test_an_earlier_output_stays_unless_it_is_to_be_replaced(tmp_path: Path) -> None:
    file = str(written(tmp_path / "w.jsonl", ROWS))
    output, _ = prepared(tmp_path, "--when2call", file)
    before = output.read_bytes()
    with pytest.raises(UsageError, match="exists"):
        CliRunner().invoke(prepare, ["tasks", "-o", str(output), "--when2call", file], catch_exceptions=False)
    prepared(tmp_path, "--when2call", file, "--overwrite")
    assert output.read_bytes() == before


def test_the_environment_of_given_tools_keeps_their_order_in_files_and_pickles(tmp_path: Path) -> None:
    tools = json.dumps([TRAINS, {**TRAINS, "name": "buses"}])
    environment = cw.environment("schema-echo", definitions=tools)
    again = pickle.loads(pickle.dumps(environment))
    assert list(again.tools) == list(environment.tools) == ["trains", "buses"]
    assert list(environment.tools["trains"].parameters["properties"]) == ["to", "day"]
    for wrong, error in ((["trains"], UsageError), ("{", UsageError), ("[]", DataError), ([{"name": ""}], DataError)):
        with pytest.raises(error):
            cw.environment("schema-echo", definitions=wrong)
    with pytest.raises(UsageError, match="or the definitions themselves"):
        cw.environment("schema-echo")


@given(st.text())
def test_any_text_is_of_a_kind(text: str) -> None:
    assert kind_of_words(text) in ("clarification", "abstention")


@pytest.mark.parametrize("name", sorted(DECISIONS))
@given(
    row=st.dictionaries(
        st.sampled_from(["query", "tools", "answers", "messages", "question", "correct_answer", "chosen_response"]),
        st.recursive(st.none() | st.text(max_size=20), lambda inner: st.lists(inner, max_size=2), max_leaves=4),
    )
)
def test_any_row_is_read_or_refused(name: str, row: dict[str, Any]) -> None:
    with contextlib.suppress(BadRow):
        assert DECISIONS[name](row).query


def test_words_of_the_release_are_told_apart_as_it_labels_them(official_data: Path) -> None:
    released = official_data / "when2call" / "when2call_test_llm_judge.jsonl.gz"
    if not released.is_file():
        pytest.skip("the released questions of When2Call are not here")
    counts: Counter[tuple[str, str]] = Counter()
    with gzip.open(released, "rt", encoding="utf-8") as lines:
        for line in lines:
            answers = json.loads(line)["answers"]
            for label, kind in (("request_for_info", "clarification"), ("cannot_answer", "abstention")):
                counts[kind, kind_of_words(answers[label])] += 1
    right = counts["clarification", "clarification"] + counts["abstention", "abstention"]
    assert right >= 0.98 * sum(counts.values()), counts
