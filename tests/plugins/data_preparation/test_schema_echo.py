"""Appendix E.2 on rows written by us in the published formats, and on the 4,211 schemas that TIER released."""

from __future__ import annotations

import gzip
import itertools
import json
import pickle
import random
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.errors import DataError, UnknownName, UsageError
from callwright.testing import check_corpus, check_environment
from callwright.tools.spec import ToolSpec
from callwright.walk.answers import answers_match
from callwright.walk.tasks import Answer, Task
from callwright_plugins.data_preparation.conversations import Parameter
from callwright_plugins.data_preparation.schema_echo.corpus import SchemaEchoCorpus
from callwright_plugins.data_preparation.schema_echo.declared import default_of, type_schema
from callwright_plugins.data_preparation.schema_echo.environment import SchemaEcho

WEATHER = {
    "name": "weather",
    "description": "Weather of a city",
    "parameters": {
        "city": {"type": "str", "description": "the city"},
        "days": {"type": "int, optional", "description": "how many", "default": "3"},
        "units": {"type": "str", "description": "of temperature", "default": "C"},
    },
}
ALARM = {"name": "alarm", "description": "Set an alarm", "parameters": {"at": {"type": "List[int]", "description": ""}}}


def xlam(query: str, *answers: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    said = [{"name": name, "arguments": arguments} for name, arguments in answers]
    return {"id": 0, "query": query, "tools": json.dumps([WEATHER, ALARM]), "answers": json.dumps(said)}


def corpus_of(tmp_path: Path, *rows: dict[str, Any], data: str = "xlam", **options: Any) -> SchemaEchoCorpus:
    path = tmp_path / f"{data}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = cw.corpus("schema-echo", **{data: str(path)}, **options)
    assert isinstance(made, SchemaEchoCorpus)
    return made


def total(task: Task, *calls: dict[str, Any]) -> Any:
    """What TIER's reward pays for calls, in the form json."""
    body = json.dumps({str(number): call for number, call in enumerate(calls)})
    text = f'<think>So.</think>\n<tool_call return="{task.returns}">\n{body}\n</tool_call>'
    return cw.reward("tier").score_attempt(cw.Attempt(task, text, cw.parser("json"))).total


def test_required_arguments_are_scored_and_optional_ones_are_not(tmp_path: Path) -> None:
    (task,) = corpus_of(tmp_path, xlam("Oslo?", ("weather", {"city": "Oslo", "days": 3})), held_out=0)["train"]
    full = total(task, {"weather": {"city": "Oslo", "days": 3}})
    assert full == cw.reward("tier").high
    assert total(task, {"weather": {"city": "Oslo"}}) == full
    assert total(task, {"weather": {"city": "Oslo", "units": "F", "days": 9}}) == full
    for wrong in (
        {"weather": {"city": "oslo"}},
        {"weather": {"days": 3}},
        {"weather": {"city": "Oslo", "days": "3"}},
        {"weather": {"city": "Oslo", "sea": True}},
        {"alarm": {"at": [7]}},
    ):
        assert total(task, wrong) < full, wrong


def test_an_optional_argument_at_its_default_returns_what_leaving_it_out_returns(tmp_path: Path) -> None:
    (task,) = corpus_of(tmp_path, xlam("Oslo?", ("weather", {"city": "Oslo"})), held_out=0)["train"]
    session = task.environment.open(task.scenario, task.seed)
    short = session.call("weather", {"city": "Oslo"})
    assert short == session.call("weather", {"units": "C", "days": 3, "city": "Oslo"})
    assert short.value == {"name": "weather", "arguments": {"city": "Oslo", "days": 3, "units": "C"}}
    assert session.call("weather", {}).kind == "schema_error"
    assert session.call("wether", {}).kind == "unknown_tool"


def test_calls_count_in_any_order_and_each_once(tmp_path: Path) -> None:
    row = xlam("both", ("weather", {"city": "Oslo"}), ("weather", {"city": "Rome"}), ("alarm", {"at": [7, 30]}))
    (task,) = corpus_of(tmp_path, row, held_out=0)["train"]
    calls = [{"alarm": {"at": [7, 30]}}, {"weather": {"city": "Rome", "days": 1}}, {"weather": {"city": "Oslo"}}]
    assert total(task, *calls) == cw.reward("tier").high
    assert total(task, calls[0], calls[1], calls[1]) < total(task, *calls)
    assert (task.depth, task.chain, task.returns) == (3, 1, "all")


def test_where_a_list_of_required_parameters_is_it_decides(tmp_path: Path) -> None:
    tool = {
        "name": "Get Weather",
        "description": "of a city",
        "parameters": {
            "type": "dict",
            "properties": {
                "city": {"type": "string", "description": "", "default": "Oslo"},
                "days": {"type": "int", "description": ""},
                "kind": {"type": "string", "description": "", "enum": ["sea", "sky"]},
            },
            "required": ["city"],
        },
        "required": None,
    }
    system = f"Here is a list of functions in JSON format that you can invoke:\n{json.dumps([tool])}\n"
    said = [
        {"from": "user", "value": "Rome?"},
        {"from": "assistant", "value": '[Get Weather(city="Rome", kind="sea")]'},
    ]
    rows = [
        {"system": system, "conversations": said},
        {"system": system, "conversations": [*said, {"from": "user", "value": "And Oslo?"}]},
        {"system": system, "conversations": [said[0], {"from": "assistant", "value": "Which Rome?"}]},
        {"system": system, "conversations": [said[0], {"from": "assistant", "value": '[Get Weather(kind="air")]'}]},
    ]
    corpus = corpus_of(tmp_path, *rows, data="toolace", held_out=0)
    assert corpus.left_out == {"several turns of the user": 1, "a trajectory that does not fit its schemas": 1}
    first, nothing = corpus["train"]
    assert total(first, {"Get Weather": {"city": "Rome", "days": 5}}) == cw.reward("tier").high
    session = first.environment.open(first.scenario)
    assert session.call("Get Weather", {"days": 5}).kind == "schema_error", "a default does not make it optional"
    assert session.call("Get Weather", {"city": "Rome"}).value["arguments"] == {"city": "Rome"}
    assert session.call("Get Weather", {"city": "Rome", "kind": "air"}).kind == "schema_error"
    assert nothing.answer.is_no_call


def test_a_trajectory_that_does_not_fit_is_dropped_or_speaks_against_calls_that_do(tmp_path: Path) -> None:
    rows = [
        xlam("lacks", ("weather", {"days": 3})),
        xlam("type", ("alarm", {"at": "7"})),
        xlam("unknown", ("wether", {"city": "Oslo"})),
        xlam("fits", ("weather", {"city": "Oslo", "units": None})),
    ]
    assert [task.query for task in corpus_of(tmp_path, *rows, held_out=0)["train"]] == ["fits"]
    kept = corpus_of(tmp_path, *rows, held_out=0, mismatched="keep")["train"]
    assert [task.query for task in kept] == ["lacks", "type", "unknown", "fits"]
    tries = [{"weather": {"city": "Oslo"}}, {"alarm": {"at": [7]}}, {"weather": {"city": "Oslo"}}]
    full = cw.reward("tier").high
    assert all(total(task, call) < full for task, call in zip(kept[:3], tries, strict=True))
    assert total(kept[3], tries[0]) == full


def test_splits_hold_equal_queries_together_and_it_is_the_same_elsewhere(tmp_path: Path) -> None:
    rows = [xlam(f"query {number % 150}", ("weather", {"city": str(number)})) for number in range(300)]
    corpus = corpus_of(tmp_path, *rows, held_out=0.3)
    assert sum(corpus.splits.values()) == 300
    sides = [{task.query for task in corpus[split]} for split in ("train", "validation")]
    assert not sides[0] & sides[1]
    assert 20 < len(sides[1]) < 70
    task = corpus["validation"][-1]
    again = pickle.loads(pickle.dumps(task))
    assert (again.id, again.answer, again.environment is task.environment) == (task.id, task.answer, True)
    assert corpus.task(task.id).query == task.query
    with pytest.raises(UnknownName, match="xlam-999"):
        corpus.task("xlam-999")


def test_the_kit_of_conformance_has_nothing_to_say(tmp_path: Path) -> None:
    rows = [xlam(f"query {number}", ("weather", {"city": str(number)})) for number in range(8)]
    corpus = corpus_of(tmp_path, *rows, xlam("nothing"), held_out=0.4)
    check_corpus(corpus)
    check_environment(corpus.environment)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, UsageError, "needs a file"),
        ({"xlam": "none.json"}, DataError, "there is no file"),
        ({"xlam": "bad.jsonl"}, DataError, "no row is a task: keys that are not those of the format"),
        ({"xlam": "bad.jsonl", "mismatched": "maybe"}, UsageError, "drop or keep"),
        ({"xlam": "bad.jsonl", "held_out": 1}, UsageError, "share"),
    ],
)
def test_mistakes_are_said(options: dict[str, Any], error: type[Exception], words: str, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("{}\n")
    given = {name: str(tmp_path / value) if name == "xlam" else value for name, value in options.items()}
    with pytest.raises(error, match=words):
        cw.corpus("schema-echo", **given)


# Declared types -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("str", {"type": "string"}),
        ("int, optional", {"type": "integer"}),
        ("Optional[int]", {"type": ["integer", "null"]}),
        ("List[Union[int, str]], optional", {"type": "array", "items": {"type": ["integer", "string"]}}),
        ("List[List[float]]", {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}),
        ("Tuple[int, str]", {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}),
        ("Tuple[int, ...]", {"type": "array", "items": {"type": "integer"}}),
        ("Dict[str, int]", {"type": "object", "additionalProperties": {"type": "integer"}}),
        ("dict[str, Any]", {"type": "object"}),
        ("typing.List[str]", {"type": "array", "items": {"type": "string"}}),
        ("int or List[int]", {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}),
        ("Literal['a', 'b']", {"enum": ["a", "b"]}),
        ("set", {"type": "array"}),
        ("Callable[[float], float]", {}),
        ("np.ndarray", {}),
        ("Any", {}),
        ("", {}),
        ("List[", {}),
        ("[" * 5000, {}),
        ("List[" * 500 + "]" * 500, None),
    ],
)  # fmt: skip
def test_declared_types(text: str, schema: dict[str, Any] | None) -> None:
    found = type_schema(text)
    assert found["type"] == "array" if schema is None else found == schema


@pytest.mark.parametrize(
    ("kind", "written", "meant"),
    [
        ("int", "250", 250),
        ("bool", "false", False),
        ("float", "1.5", 1.5),
        ("int", "", ""),
        ("str", "250", "250"),
        ("Any", "5", "5"),
    ],
)
def test_defaults_that_are_written_as_text(kind: str, written: str, meant: Any) -> None:
    found = default_of(Parameter("p", kind, "", False, True, written))
    assert (found, type(found)) == (meant, type(meant))


# All schemas of TIER's release ----------------------------------------------------------------------------------------

VALUES: dict[Any, Any] = {
    "string": "x",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
    None: 0,
}
WRONG: dict[Any, Any] = {"string": 1, "integer": "x", "number": "x", "boolean": "x", "array": "x", "object": "x"}


def test_the_rules_hold_for_every_schema_that_was_released(official_data: Path) -> None:
    """4,211 tools: what is required is what declares no default, and nothing else decides whether a call passes."""
    path = official_data / "xlam" / "function_definitions.json.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        declared = json.load(file)
    environment = cw.environment("schema-echo", schemas=str(path))
    assert len(environment.tools) == len(declared) == 4211
    session = environment.open()
    required = optional = 0
    for name, definition in declared.items():
        spec: ToolSpec = environment.tools[name.strip()]
        properties = spec.parameters["properties"]
        needed = [one for one, facts in definition["parameters"]["properties"].items() if "default" not in facts]
        assert list(spec.parameters.get("required", [])) == needed
        arguments = {one: VALUES[properties[one].get("type")] for one in needed}
        told = session.call(spec.name, arguments)
        assert told.kind == "ok"
        defaults = {one: facts["default"] for one, facts in properties.items() if one not in needed}
        assert told.value == {"name": spec.name, "arguments": {**arguments, **defaults}}
        assert list(told.value["arguments"]) == list(properties)
        for one in needed:
            assert session.call(spec.name, {k: v for k, v in arguments.items() if k != one}).code == "missing"
            if properties[one].get("type") in WRONG:
                wrong = {**arguments, one: WRONG[properties[one]["type"]]}
                assert session.call(spec.name, wrong).kind == "schema_error"
        for one, default in defaults.items():
            given = session.call(spec.name, {**arguments, one: default})
            assert given == told or given.kind == "schema_error", "a default of another type cannot be passed"
        assert session.call(spec.name, {**arguments, "not there": 1}).kind == "schema_error"
        required, optional = required + len(needed), optional + len(defaults)
    assert (required, optional) == (6103, 3701)


def test_lists_of_required_parameters_decide_where_one_names_something(tmp_path: Path) -> None:
    lists: Any = [
        {"name": "a", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": []}},
        {"name": "b", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}},
    ]
    path = tmp_path / "schemas.json"
    path.write_text(json.dumps(lists))
    required = {
        rule: [name for name, spec in SchemaEcho(path, rule).tools.items() if spec.parameters.get("required")]
        for rule in ("auto", "listed", "defaults")
    }
    assert required == {"auto": ["b"], "listed": ["b"], "defaults": ["a", "b"]}
    path.write_text("{}")
    with pytest.raises(DataError, match="holds no tools"):
        SchemaEcho(path)
    path.write_text("{")
    with pytest.raises(DataError, match="cannot be read as JSON"):
        SchemaEcho(path)
    with pytest.raises(UsageError, match="auto, listed or defaults"):
        SchemaEcho(path, "none")


# The relaxed match ----------------------------------------------------------------------------------------------------


def test_values_are_paired_as_well_as_they_can_be() -> None:
    """Against every assignment, on values whose open objects make pairing ambiguous."""
    rng = random.Random(7)

    def value(least: int) -> dict[str, Any]:
        names = rng.sample("abc", rng.randint(least, 3))
        return {"name": "t", "arguments": {name: rng.randint(0, 1) for name in names}}

    def fits(expected: dict[str, Any], found: dict[str, Any]) -> bool:
        return expected["arguments"].items() <= found["arguments"].items()

    seen = set()
    for _ in range(3000):
        expected = [value(0) for _ in range(rng.randint(1, 4))]
        returned = [value(2) for _ in expected]
        right = any(
            all(fits(*pair) for pair in zip(expected, order, strict=True)) for order in itertools.permutations(returned)
        )
        assert answers_match(Answer(tuple(expected), open=("arguments",)), tuple(returned)) is right
        seen.add(right)
    assert seen == {True, False}


def test_only_the_named_members_are_open() -> None:
    expected = {"name": "t", "arguments": {"a": {"x": 1}}}
    open_arguments = Answer((expected,), open=("arguments",))
    assert answers_match(open_arguments, ({"name": "t", "arguments": {"a": {"x": 1}, "b": 2}},))
    assert not answers_match(open_arguments, ({"name": "t", "arguments": {"a": {"x": 1, "y": 2}}},))
    assert not answers_match(open_arguments, ({"name": "t", "arguments": {"a": {"x": 1}}, "more": 1},))
    assert not answers_match(Answer((expected,)), ({"name": "t", "arguments": {"a": {"x": 1}, "b": 2}},))
    assert not answers_match(open_arguments, ("text",))
