"""Demonstrations: each kind of sloppiness by itself, and all of them at their usual rates."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from callwright.errors import UnknownName, UsageError
from callwright.language.program import Program, Reference
from callwright.walk.tasks import Task
from callwright_plugins.toolworld.annotator import SYNONYMS
from callwright_plugins.toolworld.corpus import ToolWorldCorpus

CLEAN = dict.fromkeys(["alias", "unfiltered", "reference", "literal", "tool", "hallucination"], 0.0)
FILTERS = {"FilterByCuisine", "FilterByRating", "FilterByOpen", "FilterByPrice"} | {
    "FilterByMake",
    "FilterByColour",
    "FilterByYear",
}


def shown(corpus: ToolWorldCorpus, count: int = 250, **options: Any) -> list[tuple[Task, Program]]:
    return list(corpus.demonstrations(1, count, {**CLEAN, **options}))


def pairs(demonstrations: list[tuple[Task, Program]], clean: list[tuple[Task, Program]]) -> list[Any]:
    """Calls of demonstrations of two calls or more beside those of the same tasks without noise."""
    for (task, program), (same, right) in zip(demonstrations, clean, strict=True):
        assert (task.query, program.depth, program.returns) == (same.query, right.depth, right.returns)
    return [
        (task, mine, theirs)
        for (task, program), (_, right) in zip(demonstrations, clean, strict=True)
        if right.depth >= 2
        for mine, theirs in zip(program.calls, right.calls, strict=True)
    ]


@pytest.fixture(scope="module")
def clean(corpus: ToolWorldCorpus) -> list[tuple[Task, Program]]:
    return shown(corpus)


def test_without_noise_every_demonstration_is_right(clean: list[tuple[Task, Program]], interpreter: Any) -> None:
    for task, program in clean:
        if task.depth:
            found = interpreter.run(interpreter.calls(program), program.returns, task.scenario)
            assert found == interpreter.expected(task)
        else:
            assert program == Program()


def test_calls_follow_the_order_of_the_query(clean: list[tuple[Task, Program]]) -> None:
    for task, program in clean:
        if task.facts["family"] in ("weather/cities", "money/prices"):
            named = [next(v for v in call.arguments.values() if isinstance(v, str)) for call in program.calls]
            assert sorted(named, key=task.query.index) == named


def test_reordered_demonstrations_are_the_reference_programs(corpus: ToolWorldCorpus) -> None:
    demonstrations = shown(corpus, reorder=1.0)
    assert all(program == task.program for task, program in demonstrations)


def test_aliases(corpus: ToolWorldCorpus, clean: list[tuple[Task, Program]]) -> None:
    assert len(set(SYNONYMS.values())) == len(SYNONYMS)
    assert not set(SYNONYMS) & set(SYNONYMS.values())
    for _, mine, theirs in pairs(shown(corpus, alias=1.0), clean):
        assert mine.tool == theirs.tool
        assert dict(mine.arguments) == {SYNONYMS[name]: value for name, value in theirs.arguments.items()}


def test_unfiltered_lists(corpus: ToolWorldCorpus, clean: list[tuple[Task, Program]]) -> None:
    changed = 0
    for (_, program), (_, right) in zip(shown(corpus, unfiltered=1.0), clean, strict=True):
        for mine, theirs in zip(program.calls, right.calls, strict=True):
            if mine.tool not in FILTERS:
                assert mine == theirs
                continue
            table = next(iter(mine.arguments.values()))
            assert isinstance(table, Reference)
            assert program.calls[table.call].tool in ("FindRestaurants", "ListCars")
            changed += mine != theirs
    assert changed > 40


def test_references(corpus: ToolWorldCorpus, clean: list[tuple[Task, Program]]) -> None:
    seen = 0
    for _, mine, theirs in pairs(shown(corpus, reference=1.0), clean):
        for name, value in theirs.arguments.items():
            if isinstance(value, Reference):
                seen += 1
                assert isinstance(mine.arguments[name], Reference)
                assert mine.arguments[name] != value
            else:
                assert mine.arguments[name] == value
    assert seen > 200


def test_literals(corpus: ToolWorldCorpus, clean: list[tuple[Task, Program]]) -> None:
    seen = 0
    for _, mine, theirs in pairs(shown(corpus, literal=1.0), clean):
        for name, value in theirs.arguments.items():
            if isinstance(value, Reference):
                assert mine.arguments[name] == value
            else:
                seen += 1
                assert mine.arguments[name] != value
                assert type(mine.arguments[name]) is type(value)
    assert seen > 150


@pytest.mark.parametrize(("option", "offered"), [("tool", True), ("hallucination", False)])
def test_tools(corpus: ToolWorldCorpus, clean: list[tuple[Task, Program]], option: str, offered: bool) -> None:
    for task, mine, theirs in pairs(shown(corpus, **{option: 1.0}), clean):
        assert mine.tool != theirs.tool
        assert (mine.tool in task.tools) is offered
        assert mine.tool in task.environment.tools
        assert mine.arguments == theirs.arguments


def test_usual_rates(corpus: ToolWorldCorpus, interpreter: Any) -> None:
    demonstrations = list(corpus.demonstrations(0, 1500))
    depths = Counter(task.depth for task, _ in demonstrations)
    assert depths.keys() == set(range(7))
    assert 0.35 < (depths[0] + depths[1]) / 1500 < 0.45
    assert min(depths[depth] for depth in range(2, 7)) > 130
    right = {True: 0, False: 0}
    names = synonyms = 0
    for task, program in demonstrations:
        calls = interpreter.calls(program)
        found = interpreter.run(calls, program.returns, task.scenario) if self_contained(program) else None
        if task.depth < 2:
            assert program == task.program
        else:
            right[found == interpreter.expected(task)] += 1
            given = [name for call in program.calls for name in call.arguments]
            names += len(given)
            synonyms += sum(name in SYNONYMS.values() for name in given)
    assert abs(synonyms / names - 0.75) < 0.02
    assert 0 < right[True] < 0.1 * right[False]  # wrong in practice, with a few right ones to build on


def self_contained(program: Program) -> bool:
    return not program.dangling


def test_depths_can_be_chosen(corpus: ToolWorldCorpus) -> None:
    depths = Counter(task.depth for task, _ in corpus.demonstrations(0, 60, {"simple": 0, "depths": [3]}))
    assert depths == {3: 60}
    depths = Counter(task.depth for task, _ in corpus.demonstrations(0, 60, {"simple": 1.0, "simple_depths": 1}))
    assert depths == {1: 60}


def test_seeds(corpus: ToolWorldCorpus) -> None:
    first, again, other = (list(corpus.demonstrations(seed, 20)) for seed in (0, 0, 1))
    assert first == again
    assert first != other
    assert list(corpus.demonstrations(0, 5)) == first[:5]
    assert len({task.id for task, _ in [*first, *other]}) == 40


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alais": 0.5}, "no option of the annotator named 'alais'. Did you mean 'alias'"),
        ({"alias": 1.5}, "'alias' of the annotator is a probability between 0 and 1, not 1.5"),
        ({"tool": "0.5"}, "'tool' of the annotator is a probability"),
        ({"literal": True}, "'literal' of the annotator is a probability"),
        ({"reference": float("nan")}, "'reference' of the annotator is a probability"),
        ({"depths": [7]}, "'depths' of the annotator lists depths from 0 to 6"),
        ({"depths": []}, "'depths' of the annotator lists depths"),
        ({"simple_depths": "01"}, "'simple_depths' of the annotator lists depths"),
    ],
)
def test_options_are_checked_before_anything_is_drawn(
    corpus: ToolWorldCorpus, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        corpus.demonstrations(0, 1, options)
    assert isinstance(caught.value, UnknownName) == ("alais" in options)
