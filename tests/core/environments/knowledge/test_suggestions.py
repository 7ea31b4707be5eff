"""Suggestions: texts for free-text arguments, from a file, with gaps that hold what was told."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from random import Random
from typing import Any

import pytest

from callwright.environments.knowledge.suggestions import Source, read_suggestions
from callwright.errors import DataError, UnknownName

GOOD: dict[str, Any] = {
    "gaps": {
        "table": {"from": ["tables", "create.query"], "pattern": r"'name': '(\w+)'|TABLE \w+"},
        "word": {"any_of": ["milk"]},
    },
    "templates": [{"tool": "read", "argument": "query", "text": "SELECT {word} FROM {table} -- {word}"}],
}


def written(folder: Path, content: Any) -> Path:
    path = folder / "texts.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_gaps_are_filled_with_what_was_told_and_alike_in_one_text(tmp_path: Path) -> None:
    content = {**GOOD, "gaps": {**GOOD["gaps"], "table": {"from": ["tables"], "pattern": r"'name': '(\w+)'"}}}
    found = read_suggestions(written(tmp_path, content))
    (template,) = found.of("read", "query")
    told = {"tables": ["[{'name': 'notes'}]"]}
    assert found.filled(template, Random(0), lambda source: told.get(source, [])) == "SELECT milk FROM notes -- milk"
    assert found.filled(template, Random(0), lambda source: []) is None
    assert found.of("read", "other") == []


def test_a_gap_may_be_one_place_of_a_result_or_a_whole_text(tmp_path: Path) -> None:
    gaps = {"name": {"from": ["read_graph:entities[].name", "add.entities[].name"]}}
    content = {"gaps": gaps, "templates": [{"tool": "open", "argument": "names[]", "text": "{name}"}]}
    found = read_suggestions(written(tmp_path, content))
    assert [Source.of(one) for one in found.gaps["name"].sources] == [
        Source("result", "read_graph", "entities[].name"),
        Source("argument", "add", "entities[].name"),
    ]
    assert Source.of("tables") == Source("result", "tables")
    found.check({"read_graph": 0, "add": 0, "open": 0})
    told = {"read_graph:entities[].name": ["Bo\nDi"]}
    assert found.filled(found.templates[0], Random(0), lambda source: told.get(source, [])) == "Bo\nDi"


def test_what_a_template_has_made_is_read_back(tmp_path: Path) -> None:
    found = read_suggestions(written(tmp_path, GOOD))
    (template,) = found.templates
    assert found.read("read", "query", "SELECT milk FROM notes -- milk") == (
        template,
        {"word": "milk", "table": "notes"},
    )
    assert template.with_values({"word": "milk", "table": "notes"}) == "SELECT milk FROM notes -- milk"
    for other in ("SELECT milk FROM notes -- bread", "SELECT bread FROM notes -- bread", "SELECT milk"):
        assert found.read("read", "query", other) is None


def test_what_was_told_last_is_taken_more_often(tmp_path: Path) -> None:
    content = {**GOOD, "gaps": {**GOOD["gaps"], "table": {"from": ["tables"]}}}
    found = read_suggestions(written(tmp_path, content))
    told = [f"t{number}" for number in range(40)]
    drawn = [found.filled(found.templates[0], Random(seed), lambda source: told) for seed in range(200)]
    late = sum(any(f"FROM {name} " in str(text) for name in told[-3:]) for text in drawn)
    assert 80 < late < 140


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([], "suggestions are"),
        ({**GOOD, "templates": []}, "suggestions are"),
        ({**GOOD, "gaps": {**GOOD["gaps"], "table": {"from": "a"}}}, "the gap 'table'"),
        (
            {**GOOD, "gaps": {**GOOD["gaps"], "table": {"from": ["a"], "pattern": "("}}},
            "the pattern of the gap 'table'",
        ),
        ({**GOOD, "templates": [{"tool": "read", "argument": "query"}]}, "template 1"),
        ({**GOOD, "templates": [{"tool": "read", "argument": "q", "text": "{tabel}"}]}, "table"),
    ],
)
def test_what_is_wrong_is_said_with_the_file_and_the_place(tmp_path: Path, content: Any, said: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(DataError, match=r"texts\.json") as raised:
        read_suggestions(path)
    assert said in str(raised.value)


def test_a_tool_that_is_not_there_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    found = read_suggestions(written(tmp_path, GOOD))
    with pytest.raises(UnknownName, match="'reed'"):
        found.check({"reed": 0, "tables": 0, "create": 0})


def test_every_text_that_ships_for_sqlite_is_a_statement_that_sqlite_runs() -> None:
    found = read_suggestions("sqlite")
    database = sqlite3.connect(":memory:")
    told: dict[str, list[str]] = {}
    draw = Random(1)
    order = ("create_table", "write_query")
    for template in sorted(found.templates, key=lambda one: order.index(one.tool) if one.tool in order else len(order)):
        text = found.filled(template, draw, lambda source: told.get(source, []))
        assert text is not None
        assert "{" not in text
        if template.argument == "query":
            database.execute(text)
        if template.tool in order:  # what was written is what others are about
            told.setdefault(f"{template.tool}.query", []).append(text)
    database.close()
