"""Overlap of training data and benchmarks: the join against brute force, rows of many makers, official rows."""

from __future__ import annotations

import gzip
import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root as command
from callwright.commands.app import App
from callwright.errors import UsageError
from callwright.measuring.overlap.entries import Entry, entry_of_row, entry_of_task
from callwright.measuring.overlap.findings import Source, overlaps
from callwright.measuring.overlap.grams import NearIndex, character_grams, jaccard, word_grams, words_of


@pytest.fixture(scope="module")
def app() -> App:
    return App()


def invoke(app: App, *words: str | Path) -> Result:
    return CliRunner().invoke(command, ["benchmark", "contamination", *map(str, words)], obj=app)


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


# The join -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("least", [Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(4, 5), Fraction(1)])
def test_the_join_finds_exactly_what_brute_force_finds(least: Fraction) -> None:
    drawn = random.Random(f"{least}")
    sets = [frozenset(drawn.choices("abcdefghijklmnop", k=drawn.randrange(12))) for _ in range(300)]
    index, pairs = NearIndex(sets, least), 0
    for _ in range(300):
        one = frozenset(drawn.choices("abcdefghijklmnopq", k=drawn.randrange(12)))
        expected = {place: found for place, other in enumerate(sets) if (found := jaccard(one, other)) >= least}
        assert dict(index.near(one)) == expected
        pairs += len(expected)
    assert pairs > 20


def test_a_pair_exactly_at_the_threshold_is_near() -> None:
    index = NearIndex([frozenset("abcd")], Fraction(3, 5))
    assert index.near(frozenset("abce")) == [(0, Fraction(3, 5))]
    assert NearIndex([frozenset("abcd")], Fraction(61, 100)).near(frozenset("abce")) == []


def test_nothing_is_near_nothing() -> None:
    assert NearIndex([frozenset()], Fraction(1, 2)).near(frozenset()) == []
    with pytest.raises(UsageError, match="above 0"):
        NearIndex([], Fraction(0))


def test_grams_by_hand() -> None:
    assert words_of("Ｈello, the WORLD!") == ["hello", "the", "world"]
    assert character_grams("abcd", 3) == {"abc", "bcd"}
    assert character_grams("ab", 3) == {"ab"}
    assert character_grams("", 3) == frozenset()
    assert word_grams(["a", "b", "c"], 2) == {"a b", "b c"}
    assert word_grams(["a"], 2) == frozenset()


# Rows -----------------------------------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def test_one_task_in_the_forms_of_many_makers_is_the_same_task() -> None:
    rows: list[dict[str, Any]] = [
        {
            "id": "weather_1",
            "question": [[{"role": "user", "content": "Weather in Rome?"}]],
            "function": [{"name": "weather", "description": "d", "parameters": {**SCHEMA, "type": "dict"}}],
            "ground_truth": [{"weather": {"city": ["Rome"], "unit": ["", "C"]}}],
        },
        {
            "source_id": "weather_1",
            "query": "weather in  ROME",
            "tools": json.dumps([{"name": "weather", "parameters": SCHEMA}]),
            "answers": json.dumps([{"name": "weather", "arguments": {"city": "Rome"}}]),
        },
        {
            "extra_info": {"id": "weather_1"},
            "messages": [
                {"role": "system", "content": "You may call tools."},
                {"role": "user", "content": [{"type": "text", "text": "Weather in Rome?"}]},
                {
                    "role": "assistant",
                    "tool_calls": [{"function": {"name": "weather", "arguments": '{"city": "Rome"}'}}],
                },
            ],
            "tools": [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA, "description": "e"}}],
        },
        {
            "id": "weather_1",
            "conversations": [{"from": "human", "value": "Weather in Rome?"}],
            "functions": [{"name": "weather", "input_schema": SCHEMA}],
            "ground_truth": [["weather(city='Rome')"]],
        },
    ]
    entries = [entry_of_row(row, f"row {number}") for number, row in enumerate(rows)]
    for one in entries:
        assert one.ids == {"weather_1"}
        assert words_of(one.prompt) == ["weather", "in", "rome"]
        assert list(one.schemas) == list(entries[0].schemas)
        assert list(one.schemas.values()) == ["weather"]
        assert one.gold & entries[0].gold
    assert len(entries[0].gold) == 2  # with the unit and without


def test_other_names_types_and_calls_are_not_equal() -> None:
    def entry(name: str, kind: str, city: object) -> Entry:
        parameters = {"type": "object", "properties": {"description": {"type": kind}}}
        calls = [{"name": name, "arguments": {"city": city}}]
        return entry_of_row({"tools": [{"name": name, "parameters": parameters}], "answers": calls}, "")

    one = entry("a", "string", 2)
    for other in (entry("b", "string", 2), entry("a", "integer", 2)):
        assert not set(one.schemas) & set(other.schemas)
    assert one.gold == entry("a", "string", 2.0).gold
    assert not one.gold & entry("a", "string", "2").gold
    assert not one.gold & entry("a", "string", True).gold


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"id": 7, "question": 7, "tools": "[", "ground_truth": "[", "answers": [None], "messages": [None, {"role": 1}]},
        {"id": "12", "question": [[[["deep"]]]], "tools": [[{"name": 1}]], "ground_truth": [{"f": {"a": []}}]},
        {"ground_truth": [["__import__('os').system('true')", "f(", "f(" * 500]], "function": {"name": ""}},
        {"question": {"role": "user"}, "tools": {"function": {"name": None}}, "extra_info": []},
    ],
)
def test_foreign_rows_never_raise_and_hold_nothing(row: dict[str, Any]) -> None:
    found = entry_of_row(row, "x")
    assert (found.ids, found.prompt, dict(found.schemas), found.gold) == (frozenset(), "", {}, frozenset())


def test_a_product_of_accepted_values_is_bounded() -> None:
    accepted = {f"a{number}": ["x", "y", ""] for number in range(20)}
    found = entry_of_row({"ground_truth": [{"f": accepted}, {"g": {"a": ["x", "y"]}}]}, "x")
    assert 1 <= len(found.gold) <= 256


# Findings -------------------------------------------------------------------------------------------------------------


def test_each_kind_is_counted_from_both_sides() -> None:
    long = "please book the cheapest direct flight from rome to oslo on the second of may for two adults and a child"
    train = [
        Entry("t1", frozenset({"b1"}), "Something else entirely"),
        Entry("t2", frozenset(), "HELLO, world"),
        Entry("t3", frozenset(), long.replace("oslo", "bergen")),
        Entry("t4", frozenset(), "unlike anything", {"s": "tool"}, frozenset({'["[\\"f\\", {}]"]'})),
    ]
    against = [
        Entry("b1", frozenset({"b1"}), "hello world"),
        Entry("b2", frozenset(), "Hello world!"),
        Entry("b3", frozenset(), long, {"s": "tool"}, frozenset({'["[\\"f\\", {}]"]'})),
    ]
    count, (found,) = overlaps(iter(train), [Source("b", against, Fraction(1, 2))])
    assert count == 4
    assert found.train == {"id": 1, "prompt": 1, "near": 1, "words": 0, "schema": 1, "calls": 1}
    assert found.hit == {"id": 1, "prompt": 2, "near": 1, "words": 0, "schema": 1, "calls": 1}
    by_kind = {finding.kind: finding for finding in found.findings}
    assert (by_kind["prompt"].against, by_kind["prompt"].more, by_kind["prompt"].similarity) == ("b1", 1, 1.0)
    # Of the first text's 93 runs of 13 characters those that touch the four letters are others.
    mine, others = (character_grams(" ".join(words_of(text))) for text in (train[2].prompt, long))
    assert by_kind["near"].similarity == len(mine & others) / len(mine | others)
    assert by_kind["calls"].what == "f({})"


def test_a_run_of_thirteen_words_is_found_inside_other_text() -> None:
    run = "one two three four five six seven eight nine ten eleven twelve thirteen"
    against = [
        Entry("b", prompt=f"{run} and what follows is of no use to anybody who comes after it, whoever that may be")
    ]
    train = [Entry("t", prompt=f"quite another beginning, and then {run}."), Entry("u", prompt=run[4:])]
    _, (found,) = overlaps(train, [Source("b", against, Fraction(1, 2))])
    assert (found.train["words"], found.train["near"]) == (1, 0)


# The command ----------------------------------------------------------------------------------------------------------


def test_a_benchmark_is_not_in_its_corpus_training_split_but_in_itself(app: App, tmp_path: Path) -> None:
    tasks = list(cw.corpus("toolworld-mini-v1")["evaluation"])[:5]
    rows = write(tmp_path / "train.jsonl", [{"id": task.id, "query": task.query} for task in tasks])
    found = invoke(app, "--train", rows, "--against", "toolworld-mini-v1", "--json")
    assert found.exit_code == 1
    shared = json.loads(found.stdout)["against"][0]["shared"]
    assert (shared["id"]["train"], shared["prompt"]["train"]) == (5, 5)
    assert entry_of_task(tasks[0]).ids == {tasks[0].id}


def test_statuses_table_and_file_of_findings(app: App, tmp_path: Path) -> None:
    tool = {"name": "f", "parameters": SCHEMA}
    train = write(tmp_path / "train.jsonl", [{"id": "a", "query": "one thing", "tools": [tool]}])
    clean = write(tmp_path / "clean.jsonl", [{"id": "b", "query": "quite another", "tools": [tool]}])
    dirty = tmp_path / "dirty.json.gz"
    dirty.write_bytes(gzip.compress(json.dumps([{"id": "c", "query": "One thing."}], indent=1).encode()))
    assert invoke(app, "--train", train, "--against", clean).exit_code == 0
    assert invoke(app, "--train", train, "--against", clean, "--fail-on", "schema").exit_code == 1
    found = invoke(app, "--train", train, "--against", clean, dirty, "-o", tmp_path / "out.jsonl")
    assert found.exit_code == 1
    assert "one thing" in found.stdout
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert [(line["kind"], line["train"], line["against"]) for line in lines] == [
        ("schema", "a", "b"),
        ("prompt", "a", "dirty.json.gz[1]"),
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--near", "0"), "above 0"),
        (("--near", "much"), "expected a number"),
        (("--near", "1.5"), "at most 1"),
        (("nowhere",), "nowhere"),
    ],
)
def test_what_cannot_be_asked_is_said(app: App, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    train = write(tmp_path / "train.jsonl", [{"id": "a"}])
    found = invoke(app, "--train", train, "--against", train, *words)
    assert found.exit_code == 2
    assert said in found.output


def test_bad_rows_and_empty_files_are_said_with_their_place(app: App, tmp_path: Path) -> None:
    good, empty = write(tmp_path / "good.jsonl", [{"id": "a"}]), write(tmp_path / "empty.jsonl", [])
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"id": "a"}\n[1]\n', encoding="utf-8")
    for train, against, said in ((bad, good, "bad.jsonl:2"), (empty, good, "no rows"), (good, empty, "no rows")):
        found = invoke(app, "--train", train, "--against", against)
        assert said in f"{found.output}{found.exception}"


def test_all_when2call_rows_come_from_bfcl(app: App, official_data: Path) -> None:
    rows, bfcl = official_data / "when2call", official_data / "bfcl"
    if not rows.is_dir() or not bfcl.is_dir():
        pytest.skip("the rows of When2Call or BFCL are not here (CALLWRIGHT_DATA)")
    (file,) = rows.glob("*.jsonl.gz")
    official = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    asked = {}
    for path in (bfcl / "v4_package").glob("BFCL_*"):
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        asked |= {one["id"]: one["question"][0][-1]["content"] for one in map(json.loads, text.splitlines())}
    same = sum(words_of(asked[row["source_id"]]) == words_of(row["question"]) for row in official)
    for train, against, side in ((file, bfcl / "v4_package", "train"), (bfcl / "v4_package", file, "against")):
        found = invoke(app, "--train", train, "--against", against, "--json")
        assert found.exit_code == 1
        shared = json.loads(found.stdout)["against"][0]["shared"]
        assert shared["id"][side] == len(official) == 111
        assert shared["prompt"][side] >= same > 40
