"""The page of a synthesis: what it says is what the files say, and nothing in them can act."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App
from callwright.errors import DataError
from callwright_plugins.synthesis.blueprints.knowledge import known
from callwright_plugins.synthesis.report.folders import read_manifest
from callwright_plugins.synthesis.report.measuring import Measured, measure
from callwright_plugins.synthesis.report.page import render, write_page
from callwright_plugins.synthesis.report.picture import picture
from callwright_plugins.synthesis.report.unused import unused


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a synthesis leaves it, of the fifty tasks made by hand."""
    corpus = cw.corpus("worlds-mini-v1")
    path = tmp_path_factory.mktemp("synthesis")
    count = cw.write_tasks(path / "tasks.jsonl", [task for split in corpus.splits for task in corpus[split]])
    gone = [
        {"unit": f"u{n}", "stage": "sound", "reason": "doing <b>nothing</b> earns it", "evidence": {"n": n}}
        for n in range(3)
    ]
    (path / "rejected.jsonl").write_text("".join(json.dumps(row) + "\n" for row in gone), encoding="utf-8")
    manifest = {
        "name": "<script>alert(1)</script>",
        "seed": 7,
        "yields": {"planned": count + 3, "accepted": count, "kept": count, "rejected": {}},
        "files": {"tasks.jsonl": "", "rejected.jsonl": ""},
    }
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return path


def rows(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "tasks.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines[1:]]


def test_the_page_is_one_file_that_loads_and_runs_nothing_and_is_the_same_each_time(folder: Path) -> None:
    page = write_page(folder)
    text = page.read_text(encoding="utf-8")
    assert page == folder / "report.html"
    assert "default-src 'none'" in text
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "<b>nothing" not in text
    assert not re.search(r"(?:src|href)=", text)
    assert write_page(folder, folder / "again.html").read_text(encoding="utf-8") == text


def test_it_counts_what_is_in_the_files(folder: Path) -> None:
    text = write_page(folder).read_text(encoding="utf-8")
    assert text.count('class="example"') == 10
    assert re.search(r"<td class='right'>3</td>", text)
    found = measure(rows(folder))
    assert found.tasks == 50
    calls = Counter(call["tool"] for row in rows(folder) for call in (row.get("program") or {}).get("calls", ()))
    assert found.calls == calls
    assert sum(found.lengths.values()) == 50
    for row in rows(folder):
        for tool in {call["tool"] for call in (row.get("program") or {}).get("calls", ())}:
            assert found.tools[row["environment"]][tool] >= 1


def test_failures_levels_difficulty_and_pairs_come_from_the_facts() -> None:
    def row(name: str, rate: float, text: str) -> dict[str, Any]:
        calls = [
            {"tool": "find", "arguments": {"name": "Kim"}},
            {"tool": "pay", "arguments": {"to": "API_RESPONSE_0.id", "cents": 5}},
        ]
        failing = [{"call": 1, "code": "LIMIT", "recovery": "parameters"}]
        return {
            "id": name,
            "environment": {"name": "desk", "options": {}},
            "query": text,
            "program": {"calls": [{"id": at, **call} for at, call in enumerate(calls)]},
            "answer": [1],
            "facts": {
                "information": "partial",
                "kind": "task",
                "difficulty": {"pass@1": rate},
                "blueprint": {"stages": [{"calls": calls, "failing": failing}]},
            },
        }

    found = measure([row("a", 0.25, "Pay Kim five cents please"), row("b", 1.0, "Something that is quite different")])
    assert found.pairs["desk"] == {("find", "pay"): 2}
    assert found.codes == {("pay", "LIMIT", "parameters"): 2}
    assert found.lengths == {(2, "partial"): 2}
    assert found.passed == {"a": 0.25, "b": 1.0}
    assert [(one.one.id, one.other.id, one.alike, one.by) for one in found.near] == [("a", "b", 1.0, "calls")]
    assert len(found.values["pay", "cents"]) == 1


def test_tasks_over_two_environments_count_for_each_of_these_and_miss_no_tool() -> None:
    def row(number: int, environment: str, *tools: str) -> dict[str, Any]:
        calls = [{"id": place, "tool": tool, "arguments": {}} for place, tool in enumerate(tools)]
        return {"id": f"t{number}", "query": "q", "environment": environment, "program": {"calls": calls}}

    found = measure([row(1, "email", "send"), row(2, "email+crm", "send", "find"), row(3, "a+b", "x")])
    offered = {"email": ["send", "read"], "email+crm": ["send", "read", "find", "sell"], "a+b": ["x", "y"]}
    page = render({"yields": {"planned": 3, "accepted": 3, "kept": 3}}, found, offered, [])
    assert "<b>email</b>: 1 of 2 tools" in page
    assert "send 2" in page
    assert "<b>email+crm</b>" not in page.split("Edges")[0]
    assert "sell" not in page
    assert "count for each of these: email+crm (1)" in page
    assert "<b>a+b</b>: 1 of 2 tools" in page  # asked for as one: neither has tasks of its own


def test_each_request_stands_above_its_own_calls() -> None:
    plans = [
        {
            "calls": [{"tool": "stop", "arguments": {}}, {"tool": "start", "arguments": {"gear": "P"}}],
            "failing": [{"call": 0, "code": "OFF", "recovery": "tool"}],
        },
        {"calls": []},
        {"calls": [{"tool": "fuel", "arguments": {}}]},
    ]
    row = {
        "id": "t1",
        "query": "Stop it.",
        "environment": "car",
        "program": {"calls": [{"id": n, "tool": tool, "arguments": {}} for n, tool in enumerate(("start", "fuel"))]},
        "facts": {
            "stages": [{"query": "Stop it."}, {"query": "The moon?"}, {"query": "How full is it?"}],
            "blueprint": {"stages": plans},
        },
    }
    found = measure([row])
    page = render({"yields": {"planned": 1, "accepted": 1, "kept": 1}}, found, {"car": ["stop"]}, [])
    shown = page.split("<h2>Examples</h2>")[1]
    assert re.findall(r"<p[^>]*>(?:<code>)?([^<]+)(?:</code>)?</p>", shown)[1:] == [
        "Stop it.",
        "stop()  fails with OFF",
        "start(gear=&quot;P&quot;)",
        "The moon?",
        "nothing is called",
        "How full is it?",
        "fuel()",
    ]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("a", "b"), "2"),
        (("a", "b", "a+c"), "2, and 1 combination of several"),
        (("a", "a+b", "a+c"), "1, and 2 combinations of several"),
        (("a+b",), "1"),
    ],
)
def test_the_head_counts_environments_apart_from_their_combinations(names: tuple[str, ...], said: str) -> None:
    found = measure([{"id": str(n), "query": "q", "environment": name} for n, name in enumerate(names)])
    page = render({"yields": {"planned": 1, "accepted": 1, "kept": 1}}, found, {}, [])
    assert f"<dt>Environments</dt><dd>{said}</dd>" in page


def test_rows_that_say_little_are_counted_all_the_same() -> None:
    found = measure([{"id": "x", "environment": "desk", "query": "", "answer": [], "facts": {"blueprint": 3}}])
    assert (found.tasks, found.lengths) == (1, {(0, "not stated"): 1})
    assert measure([]).examples == []


def test_the_command_writes_it_and_refuses_other_folders(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    done = CliRunner().invoke(root, ["synthesize", "report", str(folder), "-o", str(out)], obj=App())
    assert done.exit_code == 0
    assert out.is_file()
    for other, why in ((tmp_path, "no file manifest.json is in it"), (tmp_path / "x", "there is no such folder")):
        refused = CliRunner().invoke(root, ["synthesize", "report", str(other)], obj=App(), standalone_mode=False)
        assert isinstance(refused.exception, DataError)
        assert f"holds no finished synthesis: {why};" in str(refused.exception)


def test_the_folder_around_a_synthesis_is_not_mistaken_for_it_without_a_word(folder: Path, tmp_path: Path) -> None:
    around = tmp_path / "shop"
    (around / "tasks").mkdir(parents=True)
    (around / "tasks" / "manifest.json").write_bytes((folder / "manifest.json").read_bytes())
    with pytest.raises(DataError, match=re.escape(f"Did you mean {around / 'tasks'}?")):
        read_manifest(around)


def test_columns_of_one_teacher_are_told_apart_by_their_folders(folder: Path, tmp_path: Path) -> None:
    teachers: dict[str, dict[str, str]] = {"a": {}, "b": {}, "c": {"teacher": "openai"}}
    for name, teacher in teachers.items():
        shutil.copytree(folder, tmp_path / name)
        (tmp_path / name / "plan.jsonl").write_text('{"sha256": "0"}\n', encoding="utf-8")
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        (tmp_path / name / "manifest.json").write_text(json.dumps({**manifest, **teacher}), encoding="utf-8")
    places = [str(tmp_path / name) for name in "abc"]
    shown = CliRunner().invoke(root, ["synthesize", "compare", *places], obj=App(), env={"COLUMNS": "400"}).stdout
    head = next(line for line in shown.splitlines() if "tasks of all" in line)
    assert re.split(r"  +", head.strip())[1:] == [f"scripted in {places[0]}", f"scripted in {places[1]}", "openai"]


def test_the_edges_are_drawn_with_every_tool_and_pair_and_the_same_each_time() -> None:
    pairs = {("find", "open"): 3, ("open", "close"): 1, ("find", "close"): 2, ("<b>", "find"): 1}
    names = {name: name.replace("<", "&lt;") for pair in pairs for name in pair}
    drawn = picture(pairs, names)
    assert drawn == picture(dict(reversed(pairs.items())), names)
    assert (drawn.count("<path"), drawn.count("<circle"), drawn.count("<text")) == (4, 4, 4)
    assert "<b>" not in drawn
    assert 'aria-label="4 tools, 4 edges"' in drawn
    widths = {float(one) for one in re.findall(r'stroke-width="([0-9.]+)"', drawn)}
    assert len(widths) == 3
    places = re.findall(r'cx="([0-9.]+)" cy="([0-9.]+)"', drawn)
    assert len(set(places)) == 4
    assert picture({}, {}) == ""


def test_what_is_known_and_no_task_has_is_told_where_the_knowledge_is_kept(tmp_path: Path) -> None:
    registry, name = cw.default_registry(), "village-bakery"
    knowledge = known(registry.create("environment", name), registry=registry, calls=150, cache=tmp_path)
    edges = sorted(knowledge.graph.pairs())
    cells = sorted((tool, code) for tool, codes in knowledge.explored.failures.items() for code in codes)
    assert len(edges) > 1
    assert len(cells) > 2
    settings = {
        "synthesizer": {"name": "grounded", "cache": str(tmp_path), "calls": 150},
        "environments": [{"name": name}, {"name": "nobody-has-this"}],
    }
    manifest = {"settings": settings, "yields": {"planned": 1, "accepted": 1, "kept": 1, "rejected": {}}}
    found = Measured(tasks=1, pairs={name: Counter([edges[0]])}, met={f"{name}+other": {cells[1]}})
    (told,) = unused(manifest, found, registry)
    assert (told.environment, told.edges, told.failures) == (name, len(edges), len(cells))
    assert told.unused_edges == tuple(edges[1:])
    assert told.unused_failures == (cells[0], *cells[2:])
    text = render(manifest, found, {}, [], [told])
    assert f"1 of {len(edges):,} edges, 1 of {len(cells):,} failures" in text
    assert " → ".join(edges[1]) in text
    assert f"{cells[0][0]}: {cells[0][1]}" in text
    # Nothing is explored for a page, and nothing is said of what other synthesizers know.
    elsewhere = {**settings["synthesizer"], "cache": str(tmp_path / "none")}
    assert unused({**manifest, "settings": {**settings, "synthesizer": elsewhere}}, found, registry) == []
    assert not (tmp_path / "none").exists()
    for synthesizer in ({"name": "other"}, {"name": "grounded", "calls": "many"}, {"name": "grounded", "who": 1}):
        assert unused({**manifest, "settings": {**settings, "synthesizer": synthesizer}}, found, registry) == []


def test_nothing_is_started_for_a_page_of_anybodys_folder(tmp_path: Path) -> None:
    started = tmp_path / "started"
    server = {"name": "mcp", "command": ["touch", str(started)]}
    settings = {"synthesizer": {"name": "grounded", "cache": str(tmp_path)}, "environments": [server]}
    assert unused({"settings": settings}, Measured(), cw.default_registry()) == []
    assert not started.exists()
