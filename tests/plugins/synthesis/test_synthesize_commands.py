"""The commands: what they print, keep and refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from callwright.cli.root import root
from callwright.commands.app import App
from callwright.errors import UsageError


def run(*words: str) -> Result:
    return CliRunner().invoke(root, ["synthesize", *words], obj=App(), standalone_mode=False)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("graphs") / "meetings.json"
    made = run("graph", "video_meeting", "--calls", "600", "-o", str(path))
    assert made.exception is None, made.output
    assert "of 90 ordered pairs" in made.output
    return path


def test_exploring_names_each_tool_with_a_path(tmp_path: Path) -> None:
    out = tmp_path / "explored.json"
    found = run("explore", "video_meeting", "--calls", "300", "-o", str(out))
    assert "list_meetings" in found.output
    kept = json.loads(out.read_text(encoding="utf-8"))
    assert kept["calls"] == 600
    assert set(kept["witnesses"]) | set(kept["missing"]) == set(kept["tools"])


def test_a_graph_that_is_there_is_taken_as_it_is_and_built_again_on_demand(graph: Path) -> None:
    kept = json.loads(graph.read_text(encoding="utf-8"))
    planted = {**kept, "edges": []}
    graph.write_text(json.dumps(planted), encoding="utf-8")
    taken = run("graph", "video_meeting", "--calls", "600", "-o", str(graph), "--json")
    assert json.loads(taken.output)["edges"] == []
    run("graph", "video_meeting", "--calls", "600", "-o", str(graph), "--overwrite")
    assert json.loads(graph.read_text(encoding="utf-8")) == kept


def test_the_proofs_of_an_edge_are_shown(graph: Path) -> None:
    kept = json.loads(graph.read_text(encoding="utf-8"))["edges"][0]
    shown = run("graph", "video_meeting", "--calls", "600", "-o", str(graph), "--edge", kept["source"], kept["target"])
    assert "with it:" in shown.output
    assert "without:" in shown.output
    unknown = run("graph", "video_meeting", "--calls", "600", "-o", str(graph), "--edge", "start_meting", "end_meeting")
    assert "start_meeting" in str(unknown.exception)


def test_proofs_are_made_again_and_a_broken_one_is_named(graph: Path, tmp_path: Path) -> None:
    assert "proofs hold" in run("graph", "video_meeting", "--check", str(graph)).output
    kept = json.loads(graph.read_text(encoding="utf-8"))
    kept["edges"][0]["proofs"][0]["without"]["code"] = "RAIN"
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(kept), encoding="utf-8")
    found = run("graph", "video_meeting", "--check", str(broken), "--json")
    assert [one["source"] for one in json.loads(found.output)["wrong"]] == [kept["edges"][0]["source"]]


def test_chains_and_drawings(graph: Path, tmp_path: Path) -> None:
    drawn = run("graph", "video_meeting", "--calls", "600", "-o", str(graph), "--chains", "4", "--json")
    assert len(json.loads(drawn.output)["chains"]) == 4
    picture = tmp_path / "meetings.dot"
    run("graph", "video_meeting", "--calls", "300", "-o", str(picture))
    assert picture.read_text(encoding="utf-8").startswith('digraph "video_meeting"')


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("graph", "video_meeting", "--seeds", "0"), "two seeds"),
        (("graph", "video_meeting", "--seeds", "0,x"), "whole numbers"),
        (("graph", "video_meeting", "--seeds", "0,0"), "each seed once"),
        (("graph", "video_meeting", "--check", "nowhere.json"), "nowhere.json"),
        (("explore", "video_meting"), "video_meeting"),
        (("explore", "video_meeting", "--scenario", "typicl"), "typical"),
    ],
)
def test_what_is_wrong_is_said(words: tuple[str, ...], said: str) -> None:
    assert said in str(run(*words).exception)


def test_a_file_that_is_no_graph_is_said_to_be_none(tmp_path: Path) -> None:
    path = tmp_path / "list.json"
    path.write_text("[1, 2]", encoding="utf-8")
    assert "list.json" in str(run("graph", "video_meeting", "--check", str(path)).exception)
    path.write_text("not json", encoding="utf-8")
    assert "list.json" in str(run("graph", "video_meeting", "-o", str(path)).exception)


@pytest.mark.parametrize("words", [("explore", "video_meeting"), ("graph", "video_meeting")])
@pytest.mark.parametrize("name", ["notes.txt", "notes.dot"])
def test_a_file_that_is_there_is_not_replaced(tmp_path: Path, words: tuple[str, ...], name: str) -> None:
    path = tmp_path / name
    path.write_text("mine", encoding="utf-8")
    refused = run(*words, "--calls", "20", "-o", str(path)).exception
    assert isinstance(refused, UsageError)
    assert "--overwrite" in str(refused)
    assert path.read_text(encoding="utf-8") == "mine"
    run(*words, "--calls", "20", "-o", str(path), "--overwrite")
    assert path.read_text(encoding="utf-8") != "mine"


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--calls", "300"), "--calls"), (("--seeds", "0,2", "--calls", "600"), "--seeds"), ((), "--calls")],
)
def test_a_graph_of_other_options_is_not_replaced(graph: Path, words: tuple[str, ...], said: str) -> None:
    kept = graph.read_bytes()
    refused = run("graph", "video_meeting", *words, "-o", str(graph)).exception
    assert isinstance(refused, UsageError)
    assert f"other options ({said})" in str(refused)
    assert "--overwrite" in str(refused)
    assert graph.read_bytes() == kept
