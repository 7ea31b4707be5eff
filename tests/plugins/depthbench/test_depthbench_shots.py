"""Worked examples tell nothing of the task; those that do are marked wherever their numbers stand."""

from __future__ import annotations

import json
import pickle
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import callwright as cw
import callwright_plugins.depthbench as plugin
from callwright.cli.root import root as root_command
from callwright.commands.app import App
from callwright.plugins import Registry, load_plugins
from callwright.walk.execution import execute
from callwright.walk.prompt import build_messages, draw_shots, oracle_shots
from callwright_plugins.depthbench.corpus import DepthBenchCorpus
from callwright_plugins.depthbench.examples import EXAMPLES, MOST

CORPUS = DepthBenchCorpus()
ORACLE = DepthBenchCorpus(shots="oracle")
TASKS = [task for split in CORPUS.splits for task in CORPUS[split]]
#: Pieces of a text, shorter than those of byte-pair tokenizers of 100,000 tokens and more, so that there are more.
PIECES = re.compile(r"[A-Za-z]{1,7}|\d{1,3}|[^\sA-Za-z\d]{1,2}")


@cache
def pieces(text: str) -> int:
    """How many there are. Those of the examples are asked for with every task."""
    return len(PIECES.findall(text))


@pytest.fixture(scope="module")
def registry() -> Registry:
    registry = load_plugins()
    if plugin.NAME not in registry.names("corpus"):
        registry.add(plugin, name="depthbench")
    return registry


def test_examples_are_the_same_for_every_task_that_is_none_of_them() -> None:
    named = {name for name, _ in EXAMPLES}
    drawn = {tuple(shot.id for shot in CORPUS.shots(task, MOST)) for task in TASKS if task.id not in named}
    assert drawn == {tuple(name for name, _ in EXAMPLES[:MOST])}
    shots = CORPUS.shots(CORPUS["validation"][0], MOST)
    shapes = ["linear", "tree", "none", "funnel", "conjunctive", "parallel", "mixed"]
    assert [shot.structure for shot in shots] == shapes
    assert [shot.returns for shot in shots] == ["one", "all", "one", "one", "one", "all", "one"]
    for count in range(MOST + 1):
        assert CORPUS.shots(CORPUS["validation"][5], count) == shots[:count]


def test_a_task_is_never_its_own_example() -> None:
    for name, _ in EXAMPLES:
        shots = draw_shots(CORPUS, CORPUS.task(name), MOST)
        assert [shot.id for shot in shots] == [other for other, _ in EXAMPLES if other != name][:MOST]
    with pytest.raises(cw.UsageError, match="has 7 examples for task 'validation-0000', not 8"):
        draw_shots(CORPUS, CORPUS["validation"][0], MOST + 1)


def test_an_example_has_a_thought_its_own_tools_and_a_program_that_is_right() -> None:
    for name, thought in EXAMPLES:
        (shot,) = (
            (one for one in CORPUS.shots(CORPUS["validation"][0], MOST) if one.id == name)
            if (name != EXAMPLES[-1][0])
            else (CORPUS.shots(CORPUS.task(EXAMPLES[0][0]), MOST)[-1],)
        )
        assert shot.program is not None
        assert len(thought.split()) > 10
        assert shot.program.thought == thought
        called = {call.tool for call in shot.program.calls}
        assert set(shot.tools) == (called or set(CORPUS.task(name).tools))
        trace = execute(shot.program, shot.environment, shot.tools, scenario=shot.scenario)
        assert Counter(map(repr, trace.returned)) == Counter(map(repr, shot.answer.values))


@pytest.mark.parametrize("form", ["json", "xml", "direct"])
def test_all_examples_fit_into_the_context_of_the_paper_with_every_task(registry: Registry, form: str) -> None:
    parser = registry.create("parser", form)
    longest = 0
    for task in TASKS:
        messages = build_messages(task, parser, shots=CORPUS.shots(task, MOST))
        longest = max(longest, sum(pieces(message.text) for message in messages))
    assert 9000 < longest <= 12_288


def test_oracle_examples_are_training_tasks_of_the_structure() -> None:
    for task in (*ORACLE["validation"][::37], *ORACLE["train"][::61]):
        shots = ORACLE.shots(task)
        assert shots == ORACLE.shots(task) == DepthBenchCorpus(shots="oracle").shots(task)
        assert len({shot.id for shot in shots}) == 3
        assert all(shot.split == "train" and shot.structure == task.structure and shot is not task for shot in shots)
        if task.split == "validation":
            assert not any(set(shot.tools) & set(task.tools) for shot in shots)


def test_how_examples_are_drawn_is_a_choice_that_travels() -> None:
    assert oracle_shots(ORACLE, 3)
    assert not oracle_shots(ORACLE, 0)
    assert not oracle_shots(CORPUS, 3)
    assert pickle.loads(pickle.dumps(ORACLE)).oracle_shots is True
    assert pickle.loads(pickle.dumps(CORPUS)).oracle_shots is False
    with pytest.raises(cw.UsageError, match="'fixed' or 'oracle', not 'best'"):
        DepthBenchCorpus(shots="best")  # type: ignore[arg-type]


def test_a_file_without_the_examples_says_so(tmp_path: Path) -> None:
    lines = [line for line in CORPUS["train"].lines if b'"train-0547"' not in line]  # type: ignore[attr-defined]
    (tmp_path / "some.jsonl").write_bytes(b"\n".join(lines))
    corpus = DepthBenchCorpus(tmp_path / "some.jsonl")
    assert len(corpus.shots(corpus["train"][0], 1)) == 1
    with pytest.raises(cw.UsageError, match=r"some\.jsonl lacks the task 'train-0547'.*shots='oracle'"):
        corpus.shots(corpus["train"][0], 2)


@pytest.mark.parametrize("drawn", ["oracle", "fixed"])
def test_numbers_with_oracle_examples_are_marked_in_table_json_and_page(
    registry: Registry, tmp_path: Path, drawn: str, runner: CliRunner
) -> None:
    command = ["evaluate", "--corpus", "depthbench-v1", "--corpus-option", f"shots={drawn}", "--sampler", "gold"]
    command += ["--limit", "4", "--shots", "2", "-o", str(tmp_path / "e")]
    marked = drawn == "oracle"

    def invoke(*words: str) -> Result:
        return runner.invoke(root_command, words, obj=App(registry=registry), catch_exceptions=False)

    table = invoke(*command)
    assert table.exit_code == 0, table.output
    assert ("oracle shots" in table.output) == marked
    again = invoke(*command, "--json")
    assert json.loads(again.stdout).get("shots") == ("oracle" if marked else None)
    assert json.loads((tmp_path / "e" / "evaluation.json").read_text()).get("shots") == ("oracle" if marked else None)
    assert invoke("report", str(tmp_path / "e")).exit_code == 0
    (page,) = (tmp_path / "e").glob("*.html")
    assert ("no few-shot accuracy" in page.read_text()) == marked
