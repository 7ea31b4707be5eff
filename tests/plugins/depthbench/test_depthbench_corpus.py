"""The corpus: what the paper promises of it, counted on what is shipped."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from callwright.errors import DataError, UnknownName
from callwright.walk.tasks import Corpus, Task
from callwright_plugins.depthbench.build import DATA, build, row_of
from callwright_plugins.depthbench.corpus import FILE, DepthBenchCorpus
from callwright_plugins.depthbench.families.absences import SUBSTITUTES, absences
from callwright_plugins.depthbench.families.arguable import ARGUABLE
from callwright_plugins.depthbench.families.compositions import compositions
from callwright_plugins.depthbench.families.phrasing import FRAMES, surfaces
from callwright_plugins.depthbench.families.pipelines import pipelines
from callwright_plugins.depthbench.families.singles import singles
from callwright_plugins.depthbench.generate import TOGETHER, Generator, compound_of, similar, structure_of
from callwright_plugins.depthbench.proofs import references, scalars
from callwright_plugins.depthbench.tools import SPLIT, TOOLS

CORPUS = DepthBenchCorpus()
TASKS: list[Task] = [task for split in CORPUS.splits for task in CORPUS[split]]
#: TIER's released split, depth 0 to 6.
COUNTS = {"train": [50, 410, 55, 184, 145, 60, 40], "validation": [51, 480, 95, 75, 45, 10, 10]}


def test_the_numbers_of_tasks_are_those_of_tier() -> None:
    assert CORPUS.splits == {"train": 944, "validation": 766}
    for split, counts in COUNTS.items():
        found = Counter(task.depth for task in CORPUS[split])
        assert [found[depth] for depth in range(7)] == counts


def test_each_task_knows_itself() -> None:
    for task in TASKS:
        program = task.program
        assert program is not None
        assert (task.depth, task.chain, task.returns) == (program.depth, program.chain, program.returns)
        assert task.structure == structure_of(program)
        called = list(dict.fromkeys(call.tool for call in program.calls))
        assert task.facts["target_tools"] == called
        assert sorted([*called, *task.facts["distractors"]]) == sorted(task.tools)
        assert task.facts["compound"] == compound_of(program)
        assert CORPUS.task(task.id) is task
    assert len({task.id for task in TASKS}) == 1710


def test_structures_of_depth_three_and_more_are_spread_over_at_least_four_kinds() -> None:
    for split in CORPUS.splits:
        for depth in range(3, 7):
            kinds = Counter(task.structure for task in CORPUS[split] if task.depth == depth)
            assert len(kinds) >= 4
            assert max(kinds.values()) <= 0.5 * kinds.total()
    assert {task.structure for task in TASKS} == {
        "none", "single", "parallel", "linear", "funnel", "tree", "conjunctive", "mixed",
    }  # fmt: skip


def test_compounds_are_at_depth_six_only() -> None:
    for split in CORPUS.splits:
        found = Counter((task.facts["compound"], task.depth) for task in CORPUS[split] if task.facts["compound"])
        assert {name for name, _ in found} == {"funnel-tree", "funnel-conjunction"}
        assert {depth for _, depth in found} == {6}


def test_every_tool_is_a_target_in_its_split_and_occurs_in_no_other() -> None:
    targets: dict[str, set[str]] = {split: set() for split in CORPUS.splits}
    offered: dict[str, set[str]] = {split: set() for split in CORPUS.splits}
    for task in TASKS:
        targets[task.split].update(task.facts["target_tools"])
        offered[task.split].update(task.tools)
    assert targets["train"] | targets["validation"] == set(TOOLS)
    assert not offered["train"] & offered["validation"]
    assert all(SPLIT[name] == split for split, names in offered.items() for name in names)
    distractors = {name for task in TASKS for name in task.facts["distractors"]}
    assert len(distractors) > 150


def test_distractors_resemble_what_is_asked_for() -> None:
    strong = weak = 0
    for task in TASKS:
        named = task.facts["target_tools"]
        for name in task.facts["distractors"]:
            score = max(
                (similar(task.environment.tools[other], task.environment.tools[name]) for other in named), default=9
            )
            assert score > 0, (task.id, name)
            strong += score >= 3
            weak += score < 3
        assert len(task.facts["distractors"]) >= 3
    assert strong > 2 * weak  # most share a parameter or the whole result; the others the types of either


def test_depth_zero_has_three_kinds() -> None:
    for split in CORPUS.splits:
        kinds = Counter(task.facts["kind"] for task in CORPUS[split] if task.depth == 0)
        assert set(kinds) == {"no tool", "missing tool", "missing value"}
        assert min(kinds.values()) >= 16
    families = {family.name: family for family in absences()}
    for task in TASKS:
        assert bool(task.facts["kind"]) == (task.depth == 0) == task.answer.is_no_call
        if task.depth == 0:
            family = families[task.facts["family"]]
            assert not set(family.withheld) & set(task.tools)
            if task.facts["kind"] == "missing tool":
                asked = [step.tool for step in family.steps]
                assert any(name in task.tools for name in asked)
                assert any(name not in task.tools for name in asked)
            elif task.facts["kind"] == "missing value":
                assert family.steps[0].tool in task.tools
                spoken = {slot for form in family.forms for slot in _slots(form.text)}
                assert set(family.slots()) - spoken
    assert all(other in TOOLS for name, others in SUBSTITUTES.items() for other in (name, *others))


def _slots(text: str) -> set[str]:
    import string

    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_every_family_has_twelve_phrasings_of_three_moods() -> None:
    for family in (*singles(), *compositions(), *pipelines(), *absences()):
        phrasings = {
            frame.replace("{f}", form.text).replace("{F}", form.text)
            for form in family.forms
            for frame in FRAMES[form.mood]
        }
        assert len(phrasings) >= 12, family.name
        assert {form.mood for form in family.forms} >= {"request", "thing"}
        if family.kind != "missing value":
            said = [_slots(form.text) for form in family.forms]
            assert all(slots == set(family.slots()) for slots in said), family.name
    assert len(set(TOGETHER)) >= 12


def test_facts_come_in_different_orders() -> None:
    """Of families that say three things or more, nearly all say them in more than one order."""
    several = alike = 0
    for family in (*singles(), *compositions(), *pipelines()):
        orders = {
            tuple(sorted(_slots(form.text), key=lambda name, text=form.text: text.index("{" + name)))
            for form in family.forms
        }
        if len(list(family.slots())) >= 3:
            several += 1
            alike += len(orders) == 1
    assert alike < 0.1 * several


def test_prompts_differ_and_give_no_tool_away() -> None:
    assert len({task.query for task in TASKS}) == 1710
    for task in TASKS:
        assert not any(name in task.query for name in TOOLS)
        assert "{" not in task.query
        assert "_" not in task.query.replace("tok_", "")
        assert task.query == " ".join(task.query.split())
        assert task.query[0].isupper() or task.query[0].isdigit() or task.query[0] in "\"'", task.query
        assert task.query.rstrip()[-1] in ".?!", task.query


def test_every_needed_fact_is_in_the_prompt() -> None:
    constants = Counter()
    for task in TASKS:
        assert task.program is not None
        lowered = task.query.lower()
        for call in task.program.calls:
            for _, value in scalars(call.arguments):
                if not any(said.lower() in lowered for said in surfaces(value)):
                    constants[value] += 1
    assert set(constants) <= {"USD", "EUR", "metres", "kilometres", "kilograms"}  # the units in which tools answer


def test_hidden_context_is_needed_and_not_to_be_read_off_the_scenario() -> None:
    asking = [
        task
        for task in TASKS
        if any(c.tool.startswith(("get_current", "get_home", "locate_", "read_c")) for c in task.program.calls)
    ]  # type: ignore[union-attr]
    assert len(asking) > 250
    assert len({task.scenario for task in TASKS}) > 700
    assert all(task.scenario[5:].isdigit() and len(task.scenario) == 9 for task in TASKS)


def test_references_take_several_forms() -> None:
    found = Counter(
        "deep" if len(r.path) > 1 else "field" if r.path else "bare"
        for task in TASKS
        for call in task.program.calls  # type: ignore[union-attr]
        for _, r in call.located
    )
    assert min(found[form] for form in ("bare", "field", "deep")) >= 3
    nested = [
        path for task in TASKS for call in task.program.calls for path, _ in references(call.arguments) if len(path) > 2
    ]  # type: ignore[union-attr]
    assert len(nested) >= 50


# Loading --------------------------------------------------------------------------------------------------------------


def test_the_corpus_is_one_of_the_core() -> None:
    assert isinstance(CORPUS, Corpus)
    assert CORPUS["validation"][-1].id == "validation-0765"
    assert [task.id for task in CORPUS["train"][:2]] == ["train-0000", "train-0001"]
    with pytest.raises(UnknownName, match="train"):
        CORPUS["test"]
    with pytest.raises(UnknownName, match="validation-0765"):
        CORPUS.task("validation-0766")
    with pytest.raises(IndexError):
        CORPUS["train"][944]


def test_tasks_are_decoded_when_asked_for() -> None:
    corpus = DepthBenchCorpus()
    assert corpus["train"][3] is corpus["train"][3]
    assert len(corpus["train"]._made) == 1  # type: ignore[attr-defined]


def test_files_that_are_no_corpus_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        DepthBenchCorpus(tmp_path / "none.jsonl")
    for text in ('{"id": "x"}\n', "not json\n", "[]\n", '{"split": "test"}\n'):
        (tmp_path / "bad.jsonl").write_text(text)
        with pytest.raises(DataError, match="row 1"):
            DepthBenchCorpus(tmp_path / "bad.jsonl")
    (tmp_path / "short.jsonl").write_text('{"id": "train-0", "split": "train"}\n')
    with pytest.raises(DataError, match="train-0"):
        DepthBenchCorpus(tmp_path / "short.jsonl")["train"][0]


def test_tasks_that_can_be_argued_with_say_so() -> None:
    tasks = [task for split in CORPUS.splits for task in CORPUS[split] if "arguable" in task.facts]
    assert len(tasks) == len(ARGUABLE) == 8
    assert {task.facts["kind"] for task in tasks} == {"missing value"}
    for task in tasks:  # what is argued is that the tool is there
        assert task.facts["family"].removeprefix("vague/") in task.tools


# Building -------------------------------------------------------------------------------------------------------------

_FIRST_ROWS = """
import sys
from callwright_plugins.depthbench.build import row_of
from callwright_plugins.depthbench.generate import Generator
import itertools, json
for row in itertools.islice(Generator().rows(), 560):
    sys.stdout.write(json.dumps(row_of(row, ""), ensure_ascii=False) + "\\n")
"""


def test_drawing_again_gives_the_shipped_rows_under_another_hash_seed() -> None:
    """The first 560 tasks (depths 0 to 3); ``build --check`` compares all of them."""
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", _FIRST_ROWS],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment,
        check=True,
    )
    drawn = [json.loads(line) for line in done.stdout.splitlines()]
    shipped = [json.loads(line) for line in gzip.decompress((DATA / FILE).read_bytes()).splitlines()[:560]]
    assert drawn == [{**row, "id": ""} for row in shipped]


@pytest.mark.slow
@pytest.mark.skipif(
    "CALLWRIGHT_EXHAUSTIVE" not in os.environ, reason="draws all 1,710 tasks; set CALLWRIGHT_EXHAUSTIVE=1"
)
def test_the_whole_corpus_is_built_to_the_same_bytes() -> None:
    assert build(check=True)


def test_the_package_stays_small() -> None:
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 3_000_000


def test_a_generator_keeps_no_state_between_runs() -> None:
    import itertools

    def first() -> list[Any]:
        return [row_of(row, "") for row in itertools.islice(Generator().rows(), 60)]

    assert first() == first()
