"""NESTFUL: verdicts equal the official scorer's, functions run in a process that may die, nothing unknown is wrong."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import callwright as cw
from callwright.cli.root import root as cli
from callwright.commands.app import App
from callwright.errors import DataError, UsageError
from callwright.measuring.benchmark import Judged, Judgement
from callwright_plugins.nestful.benchmark import Nestful

from .conftest import ROWS, TOOLS, call

JSON = cw.parser("json")


@pytest.fixture(scope="module")
def nestful(release: Path) -> Nestful:
    return Nestful(release, package=release)


def judged(benchmark: Nestful, sample: str, calls: Any, **members: Any) -> Judgement:
    attempt = benchmark.answer({"sample_id": sample, "calls": calls, **members}, JSON)
    assert attempt is not None
    return benchmark.judge(attempt.task, attempt)


def verdicts(folder: Path) -> list[dict[str, Any]]:
    with gzip.open(folder / "v2" / "official_verdicts_perturbed.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


# Against the official scorer ------------------------------------------------------------------------------------------


def test_win_and_partial_are_official_on_every_given_row(official_nestful: Path, official_functions: Path) -> None:
    benchmark = Nestful(official_nestful, package=official_functions)
    rows = verdicts(official_nestful)
    assert len(rows) >= 456
    for row in rows:
        found = judged(benchmark, row["sample_id"], row["calls"])
        assert (found.correct, found.parts["partial"], found.masked) == (row["win"], row["partial"], None), row


def test_without_functions_nothing_is_wrong_and_most_rows_are_decided(official_nestful: Path) -> None:
    benchmark = Nestful(official_nestful)
    rows = verdicts(official_nestful)
    known = 0
    for row in rows:
        found = judged(benchmark, row["sample_id"], row["calls"])
        assert found.parts["partial"] == row["partial"]
        if found.masked is None:
            known += 1
            assert found.correct == row["win"], row
        else:
            assert "--package" in found.masked
    assert known >= len(rows) * 387 / 456


def test_gold_programs_of_every_form_win_and_match(official_nestful: Path) -> None:
    benchmark = Nestful(official_nestful)
    for name in ("json", "xml", "direct"):
        parser = cw.parser(name)
        for task in benchmark.tasks():
            assert task.program is not None
            found = benchmark.judge(task, cw.Attempt(task, parser.render(task.program), parser))
            assert found.correct
            assert {found.parts[part] for part in ("win", "em", "full", "full grounded")} == {1.0}


# Execution ------------------------------------------------------------------------------------------------------------


def test_gold_wins_again_and_again_though_functions_change_what_they_are_given(nestful: Nestful) -> None:
    for _ in range(2):
        for row in ROWS:
            assert judged(nestful, row["sample_id"], row["output"]).correct, row["sample_id"]


@pytest.mark.parametrize(
    ("calls", "error"),
    [
        ([call(1, "add", 5, 0), call(2, "divide", "$var_1.result$", 2)], ""),  # another way to the same answer
        ([call(1, "add", 1, 4), call(2, "divide", "$var_1.result", 2)], ""),  # the last sign may be left out
        ([{**call(1, "divide"), "arguments": {"b": 5, "a": 2}}], ""),  # by position, whatever the names
        ([call(1, "add", 2, 0.5)], ""),
        ([call(1, "add", 2.4, 0.05)], "other_answer"),  # 2.45 rounds to 2.5 by one decimal only in half of all books
        ([call(1, "add", 1, "$var_1.result$")], "unresolved"),
        ([call(1, "add", 1, 4), call(2, "divide", "$var_1.sum$", 2)], "unresolved"),
        ([call(1, "add", 1, "$var")], "unresolved"),
        ([call(1, "nobody", 1)], "unknown_function"),
        ([call(1, "two")], "unresolved"),  # there is no such function, whatever the tools say
        ([call(1, "add", 1)], "raised"),
        ([call(1, "divide", 1, 0)], "raised"),
        ([call(1, "leaves")], "raised"),
        ([{"name": "add", "arguments": {"a": 1, "b": 1.5}}], "unresolved"),  # without a label
        (["add(1, 2)"], "unresolved"),
        (7, "unresolved"),
        ({"name": "add"}, "unresolved"),
        ([], "no_call"),
    ],
)
def test_what_is_executed(nestful: Nestful, calls: Any, error: str) -> None:
    found = judged(nestful, "half", calls)
    assert (found.correct, found.error, found.masked) == (not error, error, None)


def test_a_failure_equals_a_gold_answer_of_zero_as_in_the_official_scorer(nestful: Nestful) -> None:
    assert judged(nestful, "zero", [call(1, "divide", 1, 0)]).correct
    assert not judged(nestful, "zero", []).correct


def test_floats_are_rounded_to_the_decimals_of_gold_and_nothing_else_is(nestful: Nestful) -> None:
    assert judged(nestful, "rounded", [call(1, "divide", 671, 1000)]).correct
    assert not judged(nestful, "rounded", [call(1, "divide", 66, 100)]).correct
    assert judged(nestful, "zero", [call(1, "divide", 0, 5)]).correct  # 0.0 is 0
    assert not judged(nestful, "zero", [call(1, "divide", 1, 5)]).correct


def test_a_process_that_ends_or_lacks_a_module_is_masked_and_the_next_call_has_another(nestful: Nestful) -> None:
    lost = judged(nestful, "half", [call(1, "dies")])
    assert lost.masked
    assert "status 3" in lost.masked
    assert lost.parts["partial"] == 0.0
    missing = judged(nestful, "half", [call(1, "needs")])
    assert missing.masked
    assert "a_module_that_nobody_has" in missing.masked
    assert judged(nestful, "half", ROWS[0]["output"]).correct


def test_what_never_ends_fails_as_in_the_official_scorer(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callwright_plugins.nestful.corpus.SECONDS", 0.2)
    benchmark = Nestful(release, package=release)
    assert judged(benchmark, "half", [call(1, "forever")]).error == "timeout"
    monkeypatch.setattr("callwright_plugins.nestful.corpus.SECONDS", 60.0)
    assert judged(benchmark, "pair", ROWS[4]["output"]).correct


def test_judging_together_is_judging_one_by_one_though_one_ends_the_process(nestful: Nestful) -> None:
    rows = [
        *((row["sample_id"], row["output"]) for row in ROWS),
        ("half", [call(1, "dies")]),
        ("half", []),
        ("half", [call(1, "add", 1, 1)]),
        ("dice", ROWS[3]["output"]),
    ]
    attempts = [nestful.answer({"sample_id": sample, "calls": calls}, JSON) for sample, calls in rows]
    together = nestful.judge_together([(one.task, one) for one in attempts if one is not None])
    assert together == [judged(nestful, sample, calls) for sample, calls in rows]
    assert [one.correct for one in together] == [True] * len(ROWS) + [False, False, False, True]


# The table ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def recorded(release: Path, tmp_path: Path) -> Nestful:
    rows = (release / "data_v2" / "nestful_data.jsonl").read_text()
    (tmp_path / "nestful_data.jsonl").write_text(rows)
    steps = [
        ("half", [("add", [1, 4], 5, False), ("divide", [5, 2], 2.5, False)]),
        ("turned", [("turned", [[1, 2, 3]], 3, True)]),
        ("pair", [("pair", [1, 2], [1, [2]], False)]),
    ]
    lines = [
        {
            "sample_id": sample,
            "steps": [
                {"name": name, "args": dict(zip("abc", given, strict=False)), "result": result, "mutates_args": changed}
                for name, given, result, changed in some
            ],
        }
        for sample, some in steps
    ]
    (tmp_path / "execution_traces.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Nestful(tmp_path)


@pytest.mark.parametrize(
    ("calls", "verdict"),
    [
        (ROWS[0]["output"], True),
        ([call(1, "divide", 5, 2)], True),
        ([call(1, "divide", 5.0, 2)], None),  # another argument than 5
        ([call(1, "add", 1, 4)], False),
        ([call(1, "add", 4, 1), call(2, "divide", "$var_1.result$", 2)], None),
        ([call(1, "add", 4, 1), call(2, "nobody")], False),  # whatever the first gives
        ([call(1, "add", 4, 1), call(2, "add", "$var_7.result$", 1)], False),
        ([call(1, "pair", 1, 2), call(2, "total", "$var_1.result$")], None),
        ([call(1, "two")], False),  # it has two outputs
    ],
)
def test_what_a_table_decides(recorded: Nestful, calls: Any, verdict: bool | None) -> None:
    found = judged(recorded, "half", calls)
    assert (None if found.masked else found.correct) is verdict


def test_a_value_that_a_recorded_call_changed_is_not_known_any_more() -> None:
    from callwright_plugins.nestful.execution import Table, followed

    table = Table()
    table.learn("pair", [1, 2], [False, False], [1, 2], mutates=False)
    table.learn("turned", [[1, 2]], [True], 2, mutates=True)
    table.learn("total", [[1, 2]], [True], 3, mutates=False)
    first = call(1, "pair", 1, 2)
    turned, total = (call(number, name, "$var_1.result$") for number, name in ((2, "turned"), (3, "total")))
    assert followed([first, turned], TOOLS, 2, table)[:2] == [True, ""]
    assert followed([first, total], TOOLS, 3, table)[:2] == [True, ""]
    assert followed([first, turned, total], TOOLS, 3, table)[:2] == [False, "unknown"]
    # A list that was written is no list that another call returned, which may have been a tuple.
    assert followed([call(1, "total", [1, 2])], TOOLS, 3, table)[:2] == [False, "unknown"]


# Rows, files, prompts, tables -----------------------------------------------------------------------------------------


def test_result_rows_are_read_as_the_release_reads_them(nestful: Nestful) -> None:
    text = json.dumps(ROWS[0]["output"])
    for generated, right in ((text, True), (f"<|tool_call|>{text}", True), (f"Sure: {text}", False), ("[", False)):
        attempt = nestful.answer({"sample_id": "half", "generated_text": generated, "win": not right}, JSON)
        assert attempt is not None
        assert nestful.judge(attempt.task, attempt).correct is right
    assert nestful.answer({"sample_id": "half", "win": True}, JSON) is None


def test_a_reference_that_goes_further_than_an_output_finds_nothing(nestful: Nestful) -> None:
    task = nestful.corpus.task("half")

    def found(tail: str) -> Judgement:
        program = cw.Program(
            (
                cw.Call(0, "add", {"arg_0": 1, "arg_1": 4}),
                cw.Call(1, "divide", {"arg_0": cw.Reference.parse(f"API_RESPONSE_0{tail}"), "arg_1": 2}),
            )
        )
        return nestful.judge(task, cw.Attempt(task, JSON.render(program), JSON))

    assert found("").correct
    assert found("").parts["full"] == 1.0
    assert found(".result").correct
    assert found(".result[0]").error == "unresolved"
    unread = nestful.judge(task, cw.Attempt(task, "no program", JSON))
    assert unread.error == "unparsed"


def test_judge_reads_the_given_rows(release: Path, tmp_path: Path) -> None:
    rows = [{"sample_id": one["sample_id"], "kind": "gold", "calls": one["output"]} for one in ROWS]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in [*rows, {**rows[0], "calls": []}]))
    words = ["benchmark", "judge", "nestful", str(tmp_path / "a.jsonl"), "--data", str(release)]
    words += ["--package", str(release), "-o", str(tmp_path / "o.jsonl"), "--json"]
    app = App(registry=cw.default_registry())
    result = CliRunner().invoke(cli, words, obj=app, catch_exceptions=False)
    found = json.loads(result.stdout)
    lines = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert [line["valid"] for line in lines] == [True] * len(ROWS) + [False]
    assert {line["kind"] for line in lines} == {"gold"}
    # The first sample was answered twice, rightly and not at all: a task counts once, by its mean.
    assert found["values"]["win"] == found["values"]["overall"] == pytest.approx((len(ROWS) - 0.5) / len(ROWS))


def test_evaluate_with_three_examples_of_the_release(official_nestful: Path, tmp_path: Path) -> None:
    words = ["evaluate", "--benchmark", "nestful", "--data", str(official_nestful), "--sampler", "gold", "--shots", "3"]
    app = App(registry=cw.default_registry())
    result = CliRunner().invoke(
        cli, [*words, "--limit", "5", "--json", "-o", str(tmp_path / "e")], obj=app, catch_exceptions=False
    )
    found = json.loads(result.stdout)
    assert found["values"]["win"] == found["values"]["em"] == found["values"]["f1 parameter"] == 1.0
    assert not found["benchmark"]["official"]
    kept = json.loads((tmp_path / "e" / "verdicts.jsonl").read_text().splitlines()[0])
    asked = [one["content"] for one in kept["messages"] if one["role"] == "user"]
    examples = json.loads((official_nestful / "v2" / "icl_examples.json").read_text())
    assert [text.rpartition("\n")[2] for text in asked[:3]] == [one["input"] for one in examples]
    assert len(asked) == 4


def test_f1_of_a_table_by_hand(nestful: Nestful) -> None:
    rows = {
        "half": [call(1, "add", 1, 4), call(2, "divide", "$var_1.result$", 3)],
        "rounded": [call(1, "add", 2, 3), call(2, "nobody", 1)],
    }
    found = nestful.aggregate([Judged(one, "mathematical", judged(nestful, one, calls)) for one, calls in rows.items()])
    # Functions of gold: add (1 right, 1 too many: 2/3), divide (1 right, 1 missing: 2/3). "nobody" is no class.
    assert found["f1 function"] == pytest.approx(2 / 3)
    # arg_1 = 4 and arg_0 = $add.result$ are right, and arg_0 = 1 once, but "nobody" has it, too, in a row of its own.
    # arg_1 = 2 is missing, and so are arg_0 = 2 and arg_1 = 3 of divide: where they were written, gold has neither.
    assert found["f1 parameter"] == pytest.approx((2 / 3 + 1 + 1 + 0 + 0 + 0) / 6)
    assert found["win"] == 0.0
    assert nestful.aggregate([])["f1 function"] is None


def test_a_judgement_keeps_its_labels_and_judging_again_gives_the_same_table(nestful: Nestful) -> None:
    made = [Judged(one["sample_id"], "mathematical", judged(nestful, one["sample_id"], one["output"])) for one in ROWS]
    kept = [
        Judged(one.task, one.category, Judgement.from_json(json.loads(json.dumps(one.judgement.to_json()))))
        for one in made
    ]
    assert kept == made
    assert nestful.aggregate(kept[::-1]) == nestful.aggregate(made)


def test_what_is_not_there_is_said(tmp_path: Path, release: Path) -> None:
    with pytest.raises(DataError, match=r"holds no nestful_data\.jsonl"):
        Nestful(tmp_path)
    with pytest.raises(DataError, match="is not there"):
        Nestful(tmp_path / "gone")
    with pytest.raises(UsageError, match=r"holds no basic_functions\.py"):
        Nestful(release, package=tmp_path)
    with pytest.raises(UsageError, match="has no version '3'"):
        Nestful(release, version="3")
    (tmp_path / "nestful_data.jsonl").write_text(json.dumps(ROWS[0]) + '\n{"sample_id": "x"}\n')
    with pytest.raises(DataError, match=r"nestful_data\.jsonl:2: no sample of NESTFUL"):
        Nestful(tmp_path)


def test_the_first_release_is_read_and_matched(tmp_path: Path) -> None:
    specs = [
        {
            "name": "search",
            "query_parameters": {
                "q": {"type": "string", "required": True},
                "n": {"type": "Number", "required": False, "allowed_values": "1-100"},
                "kind": {"type": "Enum", "required": False, "allowed_values": ["a", "b"]},
            },
            "output_parameters": {"id": {"type": "string"}, "name": {"type": "string"}},
        },
        {"name": "book", "arguments": {"id": {"required": True}}, "output_parameters": {"code": {}}},
    ]
    calls = [
        {"name": "search", "arguments": {"q": "Oslo"}, "label": "var1"},
        {"name": "book", "arguments": {"id": "$var1.id$", "note": "for $var1.name$"}, "label": "var2"},
        {"name": "var_result", "arguments": {"code": "$var2$"}},
    ]
    for folder, stem in (("executable", ""), ("non-executable", "-glaive"), ("non-executable", "-sgd")):
        (tmp_path / "data" / folder).mkdir(parents=True, exist_ok=True)
        name = f"{folder}{stem}"
        (tmp_path / "data" / folder / f"{name}-data.json").write_text(json.dumps([{"input": "Book", "output": calls}]))
        (tmp_path / "data" / folder / f"{name}-spec.json").write_text(json.dumps(specs))
    benchmark = Nestful(tmp_path, version="1")
    assert dict(benchmark.categories) == {"executable": 1, "glaive": 1, "sgd": 1}
    for task in benchmark.tasks():
        assert task.program is not None
        schema = task.tools["search"].parameters
        assert (schema["required"], schema["properties"]["n"]) == (["q"], {"type": "number"})
        assert schema["properties"]["kind"] == {"enum": ["a", "b"]}
        found = benchmark.judge(task, cw.Attempt(task, JSON.render(task.program), JSON))
        assert (found.correct, found.parts["partial grounded"]) == (True, 1.0)
        assert "win" not in found.parts
    half = judged(benchmark, "sgd-0", calls[:1])
    assert (half.correct, half.error, half.parts["partial grounded"]) == (False, "other_calls", 0.5)
    assert set(benchmark.aggregate([])) >= {"overall", "partial", "full grounded", "f1 function"}
    assert Counter(benchmark.unofficial)["the folder holds 3 of the release's 300 samples"] == 1


def test_evaluate_executes_what_a_sampler_writes(release: Path) -> None:
    words = ["evaluate", "--benchmark", "nestful", "--data", str(release), "--package", str(release), "--json"]
    app = App(registry=cw.default_registry())
    result = CliRunner().invoke(
        cli, [*words, "--sampler", "noisy-gold", "--sampler-option", "p=0.4", "--seed", "1"], obj=app
    )
    found = json.loads(result.stdout)
    assert 0 < found["values"]["win"] < 1
    assert found["masked"] == 0
    refused = CliRunner().invoke(cli, ["evaluate", "--corpus", "toolworld-mini-v1", "--package", "."], obj=app)
    assert "--package and --benchmark-option go with --benchmark" in refused.stderr
