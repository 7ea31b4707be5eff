"""BFCL's single-turn categories: verdicts on official rows, versions that are never mixed, forms and figures."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.errors import UsageError
from callwright.measuring.benchmark import Judged, Judgement, attempt_of
from callwright.testing import check_component
from callwright_plugins.bfcl.benchmark import BfclV3, BfclV4
from callwright_plugins.bfcl.single_turn.java_values import java_value
from callwright_plugins.bfcl.single_turn.javascript_values import _LISTS, _end_of_lists, javascript_value

BENCHMARKS = {"v3": (BfclV3, "v3_git"), "v4": (BfclV4, "v4_package")}
FORMS = ("json", "xml", "direct", "toolrl", "hermes")


def parser(name: str = "json") -> Any:
    return cw.parser(name)


def verdict(benchmark: Any, row: dict[str, Any]) -> tuple[bool, str]:
    attempt = benchmark.answer(row, parser())
    judgement = benchmark.judge(benchmark.corpus.task(row["id"]), attempt)
    return judgement.correct, judgement.error


@pytest.mark.parametrize("version", ["v3", "v4"])
def test_every_official_verdict_on_calls_is_given(version: str, official: Path) -> None:
    kind, folder = BENCHMARKS[version]
    benchmark = kind(data=official / folder)
    text = gzip.decompress((official / f"official_verdicts_ast_perturbed_{version}.jsonl.gz").read_bytes())
    rows = [json.loads(line) for line in text.splitlines()]
    assert len(rows) == 3760
    differing = [row for row in rows if verdict(benchmark, row) != (row["valid"], row["error_type"] or "")]
    assert differing == []


@pytest.mark.parametrize("version", ["v3", "v4"])
@pytest.mark.parametrize("form", FORMS)
def test_gold_calls_are_right_in_every_form_but_where_labels_are_wrong(version: str, form: str, official: Path) -> None:
    kind, folder = BENCHMARKS[version]
    benchmark = kind(data=official / folder)
    written = parser(form)
    wrong = set()
    for task in benchmark.tasks():
        if task.program is None:
            continue
        found = attempt_of({"completion": written.render(task.program)}, task, written)
        assert found is not None
        if not benchmark.judge(task, found[1]).correct:
            wrong.add(task.id)
    assert wrong <= KNOWN[version]


#: Entries that no answer satisfies, as the page on BFCL lists them.
LIVE = {"live_simple_106-63-0", "live_simple_112-68-0", "live_multiple_862-181-3", "live_multiple_964-207-0"}
KNOWN = {
    "v3": {"simple_363", "java_36", "java_64", "java_65", "javascript_41", *LIVE},
    "v4": {"simple_java_36", "simple_java_64", "simple_java_65", *LIVE},
}


def test_data_of_the_other_version_are_refused_in_words(small: Path) -> None:
    with pytest.raises(UsageError, match="holds BFCL v3, and this is v4: they are never mixed"):
        BfclV4(data=small)


def test_rows_of_the_other_version_under_its_file_names_are_refused(small: Path) -> None:
    for folder in (small, small / "possible_answer"):
        for file in folder.glob("BFCL_v3_*"):
            file.rename(file.with_name(file.name.replace("_v3_simple", "_v4_simple_python").replace("_v3_", "_v4_")))
    with pytest.raises(cw.errors.DataError, match="no id of simple_python in BFCL v4"):
        BfclV4(data=small).tasks()


@pytest.mark.parametrize(
    ("calls", "error"),
    [
        ([{"shapes.area": {"base": 10, "height": 5}}], ""),
        ([{"shapes.area": {"base": 10, "height": 5.0, "unit": "CM 2"}}], ""),
        ([{"shapes.area": {"base": True, "height": 5}}], "type_error:simple"),
        ([{"shapes.area": {"base": 11, "height": 5}}], "value_error:others"),
        ([{"shapes.area": {"base": 10, "height": 5, "unit": "inch"}}], "value_error:string"),
        ([{"shapes.area": {"base": 10}}], "simple_function_checker:missing_required"),
        ([{"shapes.area": {"base": 10, "height": 5, "colour": 1}}], "simple_function_checker:unexpected_param"),
        ([{"area": {"base": 10, "height": 5}}], "simple_function_checker:wrong_func_name"),
        ([], "simple_function_checker:wrong_count"),
        ([{"shapes.area": {}, "again": {}}], "ast_decoder:decoder_wrong_output_format"),
        ("no calls", "ast_decoder:decoder_wrong_output_format"),
    ],
)
def test_what_is_wrong_has_the_official_name(calls: Any, error: str, small: Path) -> None:
    assert verdict(BfclV3(data=small), {"id": "simple_0", "calls": calls}) == (not error, error)


def test_parallel_calls_may_come_in_any_order(small: Path) -> None:
    calls = [{"shapes.area": {"base": 1, "height": 2}}, {"shapes.area": {"base": 10, "height": 5}}]
    assert verdict(BfclV3(data=small), {"id": "parallel_0", "calls": calls}) == (True, "")
    found = verdict(BfclV3(data=small), {"id": "parallel_0", "calls": [calls[0], calls[0]]})
    assert found == (False, "parallel_function_checker_no_order:cannot_find_match")


@pytest.mark.parametrize(
    ("result", "error"),
    [
        ("[shapes.area(base=10, height=5)]", ""),
        ("```\nshapes.area(base=5+5, height=5.0)\n```", ""),
        ([{"shapes_area": '{"base": 10, "height": 5}'}], ""),
        ("[shapes.area(base=10, height=__import__('os'))]", "type_error:simple"),
        ("It is large.", "ast_decoder:decoder_failed"),
        ([{"shapes_area": "{"}], "ast_decoder:decoder_failed"),
        (None, "ast_decoder:decoder_failed"),
    ],
)
def test_rows_of_official_result_files_are_read(result: Any, error: str, small: Path) -> None:
    assert verdict(BfclV3(data=small), {"id": "simple_0", "result": result}) == (not error, error)


def test_java_calls_are_read_with_their_values_as_source(small: Path) -> None:
    benchmark = BfclV3(data=small)
    right = '[Counter.count(limit = 5L, words = new ArrayList<>(Arrays.asList("a", "b")))]'
    assert verdict(benchmark, {"id": "java_0", "result": right}) == (True, "")
    assert verdict(benchmark, {"id": "java_0", "result": "[Counter.count(limit=5)]"}) == (False, "type_error:simple")
    assert verdict(benchmark, {"id": "java_0", "calls": [{"Counter.count": {"limit": 5}}]}) == (
        False,
        "type_error:java",
    )


@pytest.mark.parametrize(
    ("result", "calls"),
    [
        ("[f(a=1)]", True), ("f()", True), ("[]", False), ("I cannot do that.", False), ([], False), ("", False),
        ([{"f": "{}"}], True), ([{"f": "no JSON"}], False), ([{}], False), ([{"f": "[]"}], False), ("5", False),
    ],
)  # fmt: skip
def test_relevance_and_irrelevance_ask_whether_anything_is_called(result: Any, calls: bool, small: Path) -> None:
    benchmark = BfclV3(data=small)
    relevant = (True, "") if calls else (False, "relevance_error:decoder_failed")
    irrelevant = (False, "irrelevance_error:decoder_success") if calls else (True, "")
    assert verdict(benchmark, {"id": "live_relevance_0", "result": result}) == relevant
    assert verdict(benchmark, {"id": "irrelevance_0", "result": result}) == irrelevant


@pytest.mark.parametrize(
    ("calls", "called"),
    [
        (None, False), ("f()", False), (5, False), ({}, False), ({"f": {}}, False), ([], False), ([{}], False),
        ([{}, {}], False), ([{"f": {}}, {}], False), ([{"f": {}, "g": {}}], False), ([{"f": []}], False),
        ([{"f": "{}"}], False), ([None], False), ([["f"]], False), (["f()"], False), ([{"f": {}}, "f()"], False),
        ([{"f": {}}], True), ([{"f": {"a": 1}}], True), ([{"f": {}}, {"f": {}}], True), ([{"nobody.offers": {}}], True),
    ],
)  # fmt: skip
def test_every_outcome_of_decoding_is_a_call_or_none(calls: Any, called: bool, small: Path) -> None:
    """As the release's ``is_empty_output`` has it: a list of objects of one name with an object of arguments each."""
    benchmark = BfclV3(data=small)
    relevant = (True, "") if called else (False, "relevance_error:decoder_failed")
    irrelevant = (False, "irrelevance_error:decoder_success") if called else (True, "")
    assert verdict(benchmark, {"id": "live_relevance_0", "calls": calls}) == relevant
    assert verdict(benchmark, {"id": "irrelevance_0", "calls": calls}) == irrelevant


@pytest.mark.parametrize("form", FORMS)
def test_what_models_write_is_a_call_or_none_in_every_form(form: str, small: Path) -> None:
    benchmark, written = BfclV3(data=small), parser(form)
    one, two = (cw.Call(number, "shapes_area", {"base": 1, "height": 2.0}) for number in range(2))
    whole = written.render(cw.Program((one,)))
    texts = {
        whole: True,
        written.render(cw.Program((one, two), "all")): True,
        written.render(cw.Program((cw.Call(0, "nobody_offers", {}),))): True,
        written.render(cw.Program((cw.Call(0, "shapes_area", {}),))): True,  # arguments are not looked at
        written.render(cw.Program()): False,
        written.render(cw.Program(text="None of these tools can do that.")): False,
        whole[: len(whole) // 2]: False,
        "None of these tools can do that.": False,
        "shapes_area": False,
        " ": False,
    }
    for text, called in texts.items():
        for key, right in (("irrelevance_0", not called), ("live_relevance_0", called)):
            found = attempt_of({"completion": text}, benchmark.corpus.task(key), written)
            assert found is not None
            assert benchmark.judge(found[1].task, found[1]).correct is right, (key, text)


@pytest.mark.parametrize("form", FORMS)
def test_models_are_told_names_without_dots_in_every_form(form: str, small: Path) -> None:
    benchmark = BfclV3(data=small)
    written = parser(form)
    task = benchmark.corpus.task("parallel_0")
    assert list(task.tools) == ["shapes_area"]
    found = attempt_of({"completion": written.render(task.program)}, task, written)
    assert found is not None
    assert benchmark.judge(task, found[1]).correct
    unread = attempt_of({"completion": "Well."}, benchmark.corpus.task("irrelevance_0"), written)
    assert unread is not None
    assert benchmark.judge(unread[1].task, unread[1]).correct


def test_calls_in_the_wire_format_are_read_under_the_documented_names(small: Path) -> None:
    benchmark = BfclV3(data=small)
    call = {"name": "shapes_area", "arguments": '{"base": 10, "height": 5}'}
    said = {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": call}]}
    found = attempt_of({"messages": [said]}, benchmark.corpus.task("simple_0"), parser())
    assert found is not None
    assert benchmark.judge(found[1].task, found[1]).correct


def test_the_benchmark_keeps_the_contract(small: Path) -> None:
    check_component("benchmark", BfclV3(data=small))


@pytest.mark.parametrize("release", ["2025.8.6.2", "2026.3.23"])
def test_mutated_answers_get_the_verdicts_of_the_official_checker(release: str) -> None:
    folder = os.environ.get("CALLWRIGHT_BFCL")
    if not folder or not Path(folder).is_dir():
        pytest.skip("the wheels of bfcl-eval are not here (CALLWRIGHT_BFCL, a folder of pip download --no-deps)")
    program = Path(__file__).parents[3] / "benchmarks" / "bfcl_speed.py"
    wheel = Path(folder) / f"bfcl_eval-{release}-py3-none-any.whl"
    command = [sys.executable, str(program), "--wheel", str(wheel), "--mutants", "1", "--rounds", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert " 0 differ" in done.stdout


def test_a_benchmark_is_pickled_with_its_tasks(small: Path) -> None:
    corpus = pickle.loads(pickle.dumps(BfclV3(data=small).corpus))
    assert [task.id for task in corpus["simple"]] == ["simple_0"]


# Figures --------------------------------------------------------------------------------------------------------------


def judged(shares: dict[str, list[int]]) -> list[Judged]:
    return [
        Judged(f"{category}_{number}", category, Judgement(bool(right), float(right)))
        for category, values in shares.items()
        for number, right in enumerate(values)
    ]


def test_figures_of_v3_are_added_up_as_its_table_does(small: Path) -> None:
    turns = ("base", "miss_func", "miss_param", "long_context")
    rows = judged({
        "simple": [1, 1], "java": [0], "javascript": [1, 0], "multiple": [1], "parallel": [0], "parallel_multiple": [1],
        "irrelevance": [0], "live_simple": [1, 1, 1], "live_multiple": [0], "live_parallel": [1],
        "live_parallel_multiple": [0], "live_irrelevance": [1, 1, 0], "live_relevance": [1],
        **{f"multi_turn_{one}": [1, 0, 0, 0] for one in turns},
    })  # fmt: skip
    figures = BfclV3(data=small).aggregate(rows)
    assert figures["non-live simple"] == pytest.approx(0.5)
    assert figures["non-live AST"] == pytest.approx(2.5 / 4)
    assert figures["non-live"] == pytest.approx(2.5 / 5)
    assert figures["live"] == pytest.approx(7 / 10)
    assert figures["live AST"] == pytest.approx(4 / 6)
    assert figures["irrelevance"] == pytest.approx((0 + 2 / 3) / 2)
    assert figures["overall"] == pytest.approx((0.5 + 0.7 + 0.25) / 3)


def test_figures_of_which_a_part_is_missing_are_missing(small: Path, tmp_path: Path) -> None:
    benchmark = BfclV3(data=small)
    figures = benchmark.aggregate(judged({"simple": [1], "live_relevance": [1]}))
    assert (figures["simple"], figures["relevance"], figures["overall"], figures["non-live"]) == (1, 1, None, None)
    assert any("multi-turn is not measured" in why for why in benchmark.unofficial)


# Text of models -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "[[" + "a],[" * 2400, "new Array([" + "1],[" * 2400, "{" + "a:" * 4900, "{" + "a" * 9000 + "}",
        "new HashMap<>() {{ " + 'put("a", ' * 1000, "new HashMap<>() {" + " " * 9000,
        "new ArrayList<>() {{" + " " * 9000,
        "new ArrayList<>() {{ " + "add(" * 2400, "new ArrayList<>(Arrays.asList(" * 330, "new HashMap<" * 800,
        'new HashMap<>() {{ put("' + '",' * 4800 + "}",
    ],
)  # fmt: skip
@pytest.mark.usefixtures("minute_of_work")
def test_no_source_text_takes_long(text: str) -> None:
    for kind in ("HashMap", "ArrayList", "Array", "long", "double"):
        java_value(text, kind, "integer")
        java_value(text * 50, kind, "integer")
    for kind in ("dict", "array", "float", "Bigint"):
        javascript_value(text, kind)
        javascript_value(text * 50, kind)


#: What the official converter takes for a list of lists. It takes exponential time, so texts are short here.
LISTS = re.compile(r"\[\s*\[.*?\]\s*(,\s*\[.*?\]\s*)*\]|\bnew\s+Array\(\s*\[.*?\]\s*(,\s*\[.*?\]\s*)*\)")


@pytest.mark.parametrize("opening", ["[", "[[", "new Array([", "new Array( ["])
def test_lists_of_lists_end_where_the_official_pattern_says(opening: str) -> None:
    draw = random.Random(17)
    ends = 0
    for _ in range(4000):
        text = opening + "".join(draw.choice("[[]]],,,a )\n") for _ in range(draw.randint(1, 14)))
        text = text.strip()
        match = LISTS.match(text)
        found = [
            end
            for close, begin in _LISTS
            if (start := begin.match(text)) and (end := _end_of_lists(text, start.end(), close)) >= 0
        ]
        assert found[:1] == ([match.end()] if match else []), text
        ends += match is not None
    assert ends > 20


def test_lists_of_lists_are_read() -> None:
    assert javascript_value("[[1, 2], [3]]", "array") == [[1, 2], [3]]
    assert javascript_value("new Array([1], ['a'])", "array") == [[1], ["a"]]
