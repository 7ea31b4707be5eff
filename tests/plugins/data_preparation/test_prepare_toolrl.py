"""ToolRL's mix from small files in the published formats, all written by us: no row is published data."""

from __future__ import annotations

import contextlib
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from callwright.errors import DataError
from callwright_plugins.data_preparation import formats, literals, reading, rows, toolrl
from callwright_plugins.data_preparation.command import prepare
from callwright_plugins.data_preparation.conversations import BadRow, Called, Conversation, Turn
from callwright_plugins.data_preparation.sampling import Sample
from callwright_plugins.toolrl_rows.corpus import ToolRLRows, calls_of, tools_of

WEATHER = {
    "name": "Get Weather",
    "description": "Weather of\na city.",
    "parameters": {
        "type": "dict",
        "properties": {
            "city": {"type": "string", "description": "Where.", "default": "Oslo"},
            "days": {"type": "int", "description": "How long.", "default": 1},
            "unit": {"type": "string", "description": "Of degrees."},
        },
        "required": ["city"],
    },
    "required": None,
}


def toolace(number: int = 0) -> dict[str, Any]:
    """A conversation of four turns and two steps (our own)."""
    return {
        "system": f"Here are functions:\n{json.dumps([WEATHER])}. \nUse [func(a=b)] and nothing else.",
        "conversations": [
            {"from": "user", "value": f"Weather in Rome, case {number}?"},
            {"from": "assistant", "value": "[Get Weather(city=\"Rome, (Italy)\", days=2), Get Weather(city='Bonn')]"},
            {"from": "tool", "value": '[{"name": "Get Weather", "results": {"sky": "clear"}}]'},
            {"from": "assistant", "value": "It is clear."},
        ],
    }


def xlam(number: int = 0) -> dict[str, Any]:
    """A query with two calls (our own)."""
    tool = {
        "name": "add",
        "description": "Adds.",
        "parameters": {
            "a": {"type": "int", "description": "One."},
            "b": {"type": "int", "description": "Two.", "default": 5},
            "c": {"type": "str, optional", "description": "Three."},
        },
    }
    calls = [{"name": "add", "arguments": {"a": number, "b": 2}}, {"name": "add", "arguments": {"a": 3}}]
    return {"id": number, "query": f"Add {number}", "tools": json.dumps([tool]), "answers": json.dumps(calls)}


def hammer(number: int = 0) -> dict[str, Any]:
    """A row with masked names (our own)."""
    tools = [{"name": "qZx_1", "description": "Adds.", "parameters": {"p0": {"type": "int", "description": "One."}}}]
    return {
        "instruction": "[BEGIN OF TASK INSTRUCTION]\nCall.\n[END OF TASK INSTRUCTION]\n\n"
        f"[BEGIN OF AVAILABLE TOOLS]\n{tools}\n[END OF AVAILABLE TOOLS]\n\n"
        f"[BEGIN OF QUERY]\nAdd {number}\n[END OF QUERY]\n\n",
        "input": "",
        "output": json.dumps([{"name": "qZx_1", "arguments": {"p0": number}}]),
    }


def files_of(folder: Path, count: int) -> list[str]:
    """Options for files of ``count`` rows each."""
    (folder / "toolace.json").write_text(json.dumps([toolace(number) for number in range(count)], indent=2))
    (folder / "hammer.json").write_text(json.dumps([hammer(number) for number in range(count)]))
    (folder / "xlam.jsonl").write_text("".join(json.dumps(xlam(number)) + "\n" for number in range(count)))
    found = []
    for name, file in (("toolace", "toolace.json"), ("hammer", "hammer.json"), ("xlam", "xlam.jsonl")):
        found += [f"--{name}", str(folder / file)]
    return found


def made_of(conversation: Conversation) -> list[rows.Row]:
    """The rows, none of which was refused."""
    found = list(rows.rows_of(conversation))
    assert not [row for row in found if isinstance(row, BadRow)]
    return [row for row in found if isinstance(row, rows.Row)]


def test_a_conversation_is_cut_into_steps_with_the_dialogue_so_far() -> None:
    first, second = made_of(formats.read_toolace(toolace()))
    assert calls_of(first.output) == [
        ("Get Weather", {"city": "Rome, (Italy)", "days": 2}),
        ("Get Weather", {"city": "Bonn"}),
    ]
    assert first.input == "**Dialogue Records History**\n<user> Weather in Rome, case 0? </user>\n"
    assert second.output.endswith("<response> It is clear. </response>")
    assert "<tool_call>" not in second.output
    call, result = first.output, '<obs> [{"name": "Get Weather", "results": {"sky": "clear"}}] </obs>'
    assert second.input == f"{first.input}\n{call}\n{result}\n"


def test_required_decides_over_defaults_in_toolace_and_defaults_decide_in_xlam() -> None:
    (row, _) = made_of(formats.read_toolace(toolace()))
    schema = tools_of(row.instruction)["Get Weather"].parameters
    assert schema["required"] == ["city"]
    assert set(schema["properties"]) == {"city", "days", "unit"}
    (row,) = made_of(formats.read_xlam(xlam()))
    assert tools_of(row.instruction)["add"].parameters["required"] == ["a"]
    (row,) = made_of(formats.read_hammer(hammer(4)))
    assert calls_of(row.output) == [("qZx_1", {"p0": 4})]
    assert "<user> Add 4 </user>" in row.input


def test_the_mix_is_drawn_by_seed_and_read_by_the_corpus(tmp_path: Path) -> None:
    given_files = files_of(tmp_path, 1100)
    out = tmp_path / "rows"
    done = CliRunner().invoke(prepare, ["toolrl", *given_files, "-o", str(out), "--parquet", "--sft", "40"])
    assert done.exit_code == 0, done.output
    manifest = json.loads((out / "manifest.json").read_text())
    counts = {name: facts["rl"]["drawn"] for name, facts in manifest["sources"].items()}
    assert counts == {"toolace": 2000, "hammer": 1000, "xlam": 1000}
    assert manifest["rl"]["rows"] == 4000
    assert manifest["sft"]["rows"] == 40
    assert manifest["seed"] == 0
    texts = ((out / name).read_text() for name in ("rl.jsonl", "sft.jsonl"))
    rl, sft = ([json.loads(line) for line in text.splitlines()] for text in texts)
    keys = [(row["instruction"], row["input"]) for row in rl + sft]
    assert len(set(keys)) == len(keys) == 4040
    plain, columns = ToolRLRows(out / "rl.jsonl"), ToolRLRows(out / "rl.parquet")
    assert plain.splits == columns.splits == {"train": 3920, "test": 80}
    for split in plain.splits:
        assert [task.facts for task in plain[split]] == [task.facts for task in columns[split]]


def test_equal_seeds_give_equal_bytes_in_any_order_of_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "xlam.json"
    made = []
    for order, seed in ((1, 0), (-1, 0), (1, 7)):
        path.write_text(json.dumps([*[xlam(number) for number in range(1500)][::order], xlam(3)]))
        made.append(toolrl.mix({"xlam": path}, seed=seed))
    assert made[0].rl == made[1].rl
    assert made[0].sft == made[1].sft
    assert set(made[0].rl) != set(made[2].rl)
    assert len(made[0].rl) == 1000


def test_of_rows_that_ask_the_same_one_is_drawn_whatever_their_order() -> None:
    same = [rows.Row("tools", "the same question", text) for text in ("two", "one", "three")]
    for order in (same, same[::-1]):
        sample = Sample(5, seed=0)
        for row in order:
            sample.add(row)
        assert [row for _, row in sample.rows()] == [same[1]]


def test_a_data_set_that_has_fewer_is_said_and_bad_rows_are_counted_by_reason(tmp_path: Path) -> None:
    bad = toolace(1)
    bad["conversations"][1]["value"] = "[Get Weather(city=)]"
    tagged = toolace(2)
    tagged["conversations"][0]["value"] = "say <response>"
    path, out = tmp_path / "toolace.jsonl", tmp_path / "rows"
    path.write_text("\n".join([*map(json.dumps, (toolace(), bad, tagged, {"system": 3})), "{nonsense"]))
    arguments = ["toolrl", "--toolace", str(path), "-o", str(out)]
    done = CliRunner().invoke(prepare, arguments)
    assert done.exit_code == 0
    assert "2 of 2,000" in done.output
    assert "fewer than the paper's 4,000" in done.output
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["missing"] == ["hammer", "xlam"]
    assert manifest["sources"]["toolace"]["rejected"] == {
        literals.UNREADABLE: 1,
        "keys that are not those of the format": 1,
        "not an object": 1,
        "tags of the format within a text": 2,
    }
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    path.write_text(json.dumps(toolace(9)))
    again = CliRunner().invoke(prepare, arguments)
    assert again.exit_code != 0
    assert "--overwrite" in str(again.exception)
    assert before == {file.name: file.read_bytes() for file in out.iterdir()}
    assert CliRunner().invoke(prepare, [*arguments, "--overwrite"]).exit_code == 0
    assert before["rl.jsonl"] != (out / "rl.jsonl").read_bytes()


def test_no_output_without_a_row(tmp_path: Path) -> None:
    path = tmp_path / "xlam.json"
    path.write_text(json.dumps([{**xlam(), "answers": "[]"}]))
    done = CliRunner().invoke(prepare, ["toolrl", "--xlam", str(path), "-o", str(tmp_path / "rows")])
    assert done.exit_code != 0
    assert "neither calls nor words" in done.output
    assert not (tmp_path / "rows").exists()


@pytest.mark.parametrize("text", ["[1, 2", '[{"a": 1} {"a": 2}]', "[1, nonsense]"])
def test_a_damaged_list_names_the_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "list.json").write_text(text)
    with pytest.raises(DataError, match=r"list\.json"):
        list(reading.read_values(tmp_path / "list.json"))


@given(st.lists(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner), max_leaves=5)))
def test_a_list_in_small_pieces_is_read_as_a_whole(values: list[Any]) -> None:
    data = json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass")
    pieces = iter([data[at : at + 3] for at in range(1, len(data), 3)])
    assert list(reading._listed(Path("x"), data[:1], lambda size: next(pieces, b""))) == values


@given(st.text(max_size=60))
def test_the_reader_of_calls_is_total(text: str) -> None:
    for tried in (text, f"[{text})]", f"[f({text})]"):
        with contextlib.suppress(BadRow):
            literals.read_calls(tried)


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "1e999", '{"a": [NaN]}', "float('nan')"])
def test_what_is_no_number_of_json_is_no_value_of_a_call(value: str) -> None:
    """A row that held it would be no JSON, and nobody could write the call."""
    with pytest.raises(BadRow):
        literals.read_calls(f"[f(x={value})]")
    row = {"query": "q", "tools": '[{"name": "f"}]', "answers": f'[{{"name": "f", "arguments": {{"x": {value}}}}}]'}
    with pytest.raises(BadRow):
        formats.read_xlam(row)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text("ab,()[]{}=\\\"' \n", max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), _VALUES, max_size=3), min_size=1, max_size=3), st.booleans())
def test_calls_are_read_as_they_were_written(calls: list[dict[str, Any]], python: bool) -> None:
    show = repr if python else json.dumps
    text = ", ".join(
        f"Some Tool/v2({', '.join(f'{key}={show(value)}' for key, value in call.items())})" for call in calls
    )
    assert literals.read_calls(f"[{text}]") == tuple(Called("Some Tool/v2", call) for call in calls)


def test_ground_truths_have_the_form_of_the_released_ones(official_data: Path) -> None:
    """Calls of released ground truths, written anew: the same labels and keys, and the same block line for line."""
    with gzip.open(official_data / "toolrl" / "reference_scores.jsonl.gz", "rt", encoding="utf-8") as file:
        truths = {row["ground_truth"] for row in map(json.loads, file) if row["gt_kind"] == "real_rl"}
    seen = 0
    for truth in truths:
        calls = calls_of(truth)
        if not calls:
            continue
        turns = (Turn("user", "q"), Turn("assistant", "", tuple(Called(*call) for call in calls)))
        (row,) = made_of(Conversation((), turns))
        assert calls_of(row.output) == calls
        released, ours = (text.partition("</think>")[2] for text in (truth, row.output))
        assert json.loads("[" + ",".join(released.strip().splitlines()[1:-1]) + "]") == [
            json.loads(line) for line in ours.strip().splitlines()[1:-1]
        ]
        seen += 1
    assert seen > 20
