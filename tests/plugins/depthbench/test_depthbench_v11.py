"""depthbench-v1.1: as many tasks of each kind as v1, no margins; each bound, call and value decides in some world."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import pickle
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from click.testing import CliRunner

import callwright as cw
from callwright.cli.root import root as root_command
from callwright.commands.app import App
from callwright.plugins import load_plugins
from callwright.testing.checks import check_corpus, check_environment
from callwright.training.evaluation import evaluate, judge, summarise
from callwright.walk.attempt import Attempt
from callwright.walk.conditions import Conditions
from callwright.walk.execution import execute
from callwright.walk.limits import TurnLimits
from callwright.walk.prompt import build_messages
from callwright.walk.tasks import Task
from callwright_plugins.depthbench import refute
from callwright_plugins.depthbench.build import DATA, build
from callwright_plugins.depthbench.corpus import FILES, DepthBenchCorpus, DepthBenchV11Corpus
from callwright_plugins.depthbench.environment import DepthBenchV11
from callwright_plugins.depthbench.examples import MOST
from callwright_plugins.depthbench.families.absences import absences
from callwright_plugins.depthbench.instances import FILES as INSTANCES
from callwright_plugins.depthbench.instances import answer_in, by_heart, is_right
from callwright_plugins.depthbench.mended.boundaries import bounds
from callwright_plugins.depthbench.mended.examples import EXAMPLES_1_1
from callwright_plugins.depthbench.mended.families import ARGUABLE, SAME_VALUE
from callwright_plugins.depthbench.proofs import MUTATIONS, Mutation, mutations_of, survivors
from callwright_plugins.depthbench.prove import Proof, prove, right_in_all, table
from callwright_plugins.depthbench.toolkit import MARGINS
from callwright_plugins.depthbench.tools import TOOLS
from callwright_plugins.depthbench.tools.train import cars, flights, kitchens, restaurants, shopping
from callwright_plugins.depthbench.tools.validation import books, cinema, hotels, songs
from callwright_plugins.depthbench.world import V1, V1_1, within, world

CORPUS = DepthBenchV11Corpus()
FIRST = DepthBenchCorpus()
TASKS: list[Task] = [task for split in CORPUS.splits for task in CORPUS[split]]
SEVERAL: list[Task] = [task for task in TASKS if task.depth > 1]
JSON = cw.parser("json")
PAGE = Path(__file__).parents[3] / "docs" / "depthbench-1-1.md"
#: Pieces of a text, shorter than those of byte-pair tokenizers of 100,000 tokens and more, so that there are more.
PIECES = re.compile(r"[A-Za-z]{1,7}|\d{1,3}|[^\sA-Za-z\d]{1,2}")


@cache
def pieces(text: str) -> int:
    """How many there are. Those of the examples are asked for with every task."""
    return len(PIECES.findall(text))


@pytest.fixture(scope="module")
def proof() -> Proof:
    return prove(TASKS, search=0)


@pytest.fixture(scope="module")
def alone() -> dict[str, list[Mutation]]:
    """By task the wrong programs that the world of the task alone lets pass."""
    return {task.id: survivors(task) for task in SEVERAL}


# Counts ---------------------------------------------------------------------------------------------------------------


def test_each_cell_has_as_many_tasks_as_in_v1() -> None:
    for split in FIRST.splits:
        cells = [Counter((task.depth, task.structure) for task in corpus[split]) for corpus in (FIRST, CORPUS)]
        assert cells[0] == cells[1]
        kinds = [Counter((task.facts["kind"], task.facts["compound"]) for task in c[split]) for c in (FIRST, CORPUS)]
        assert kinds[0] == kinds[1]


def test_every_tool_is_a_target_and_queries_differ_from_one_another_and_from_v1() -> None:
    assert {name for task in TASKS for name in task.facts["target_tools"]} == set(TOOLS)
    queries = {task.query for task in TASKS}
    assert len(queries) == 1710
    others = {task.query for split in FIRST.splits for task in FIRST[split]}
    assert len(queries & others) < 50  # "Tell me today's date." has not many forms


def test_what_can_be_argued_with_is_gone() -> None:
    names = {family.name for family in absences()}
    assert names > ARGUABLE
    assert not ARGUABLE & {task.facts["family"] for task in TASKS}
    for name, other in SAME_VALUE.items():
        called = [task for task in TASKS if name in task.facts["target_tools"]]
        assert called
        assert not any(other in task.tools for task in called if other not in task.facts["target_tools"])


def test_nothing_has_margins() -> None:
    assert any(set(row) & MARGINS for task in FIRST["train"] for value in task.answer.values for row in rows_in(value))
    for task in TASKS:
        assert task.program is not None
        for answer in (task.answer, *(one.answer for one in task.instances)):
            assert not any(set(row) & MARGINS for value in answer.values for row in rows_in(value))
        for spec in task.tools.values():
            assert not MARGINS & set(json.dumps(spec.result).split('"'))
    columns = {name for spec in FIRST.environment.tools.values() for name in json.dumps(spec.result).split('"')}
    assert columns >= MARGINS


def rows_in(value: Any) -> list[dict[str, Any]]:
    """All objects in a JSON value."""
    if isinstance(value, dict):
        return [value, *itertools.chain.from_iterable(map(rows_in, value.values()))]
    return list(itertools.chain.from_iterable(map(rows_in, value))) if isinstance(value, list) else []


# Proofs ---------------------------------------------------------------------------------------------------------------


def test_every_wrong_program_is_wrong_in_some_world_and_equal_ones_are_right_in_all(proof: Proof) -> None:
    assert (proof.survived, proof.unequal, proof.abstaining) == ([], [], [])
    assert {kind for _, kind in proof.tried} == set(MUTATIONS)
    assert sum(proof.tried.values()) > 45_000
    assert sum(proof.equal.values()) > 7_500


def test_a_call_left_out_is_wrong_in_the_world_of_the_task_already(alone: dict[str, list[Mutation]]) -> None:
    assert len(alone) == len(SEVERAL)
    for name, passing in alone.items():
        assert not [one for one in passing if one.kind in ("drop", "skip")], name


def test_other_worlds_are_needed(alone: dict[str, list[Mutation]]) -> None:
    """The world of a task alone lets hundreds of wrong values pass: nothing there lies between 240 and 241."""
    passing = Counter(one.kind for found in alone.values() for one in found)
    assert passing["change"] > 500


def test_of_495_last_calls_by_heart_none_is_right_in_all_worlds() -> None:
    heart = [(task, one) for task in SEVERAL for one in by_heart(task)]
    inside = [(task, one) for task, one in heart if is_right(task, one.program, task.scenario, task.answer)]
    assert len({task.id for task, _ in inside}) == 495
    assert [task.id for task, one in inside if right_in_all(task, one.program)] == []
    task, last = inside[0]
    verdict = judge(Attempt(task, JSON.render(last.program), JSON))
    assert (verdict.answer, verdict.failure) == (False, "answer:other_world")
    alone = DepthBenchV11Corpus(instances=False).task(task.id)
    assert judge(Attempt(alone, JSON.render(last.program), JSON)).answer


def test_each_bound_has_a_row_on_it_and_one_beside_it_in_some_world() -> None:
    found = 0
    for task in SEVERAL:
        assert task.program is not None
        scenarios = (task.scenario, *(one.scenario for one in task.instances))
        traces = [execute(task.program, task.environment, task.tools, scenario=one) for one in scenarios]
        for bound in bounds(task, traces):
            found += 1
            assert bound.on, (task.id, bound)
            assert bound.beside, (task.id, bound)
    assert found == 286


def test_instances_are_what_the_search_finds_and_few() -> None:
    for task in SEVERAL[::29]:
        wrong = refute.right_so_far(task, refute.wrong_programs(task))
        scenarios, left = refute.refutations(evolve(task, instances=()), wrong)
        assert left == []
        assert [one.scenario for one in task.instances] == scenarios
    counts = Counter(len(task.instances) for task in SEVERAL)
    assert max(counts) <= 2
    assert counts[0] + counts[1] > 600
    for task in SEVERAL:
        assert all(answer_in(task, one.scenario) == one.answer for one in task.instances)


# Gold -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["json", "xml", "direct"])
def test_gold_is_right_in_each_form(form: str) -> None:
    pipeline = cw.Pipeline(CORPUS, parser=form)
    gold = pipeline.registry.create("sampler", "gold", ir=form)
    result = summarise(evaluate(pipeline, TASKS, gold))
    assert (result["overall"], result["valid_overall"], result["masked"]) == (1.0, 1.0, 0)


@pytest.mark.parametrize("form", ["hermes", "toolrl"])
def test_gold_is_right_by_native_calls_over_turns(form: str) -> None:
    pipeline = cw.Pipeline(CORPUS, parser=form, conditions=Conditions(limits=TurnLimits()))
    gold = pipeline.registry.create("sampler", "gold", ir=form)
    tasks = TASKS if form == "hermes" else [task for task in TASKS if task.depth > 3]
    result = summarise(evaluate(pipeline, tasks, gold))
    assert (result["overall"], result["valid_overall"], result["masked"]) == (1.0, 1.0, 0)


def test_the_benchmark_is_the_validation_split_in_all_worlds() -> None:
    benchmark = cw.default_registry().create("benchmark", "depthbench-v1.1")
    assert (benchmark.version, len(benchmark.tasks())) == ("1.1", 766)
    assert sum(bool(task.instances) for task in benchmark.tasks()) > 100
    assert pickle.loads(pickle.dumps(benchmark)).tasks() == benchmark.tasks()


def test_the_numbers_of_the_page_are_those_of_the_command(proof: Proof, alone: dict[str, list[Mutation]]) -> None:
    if not PAGE.exists():
        pytest.skip("the documentation is not beside the tests")
    page = PAGE.read_text(encoding="utf-8")
    for line in table(proof).splitlines():
        if not line.startswith("searched"):
            assert line.strip() in page
    worlds = [one for task in SEVERAL for one in task.instances]
    edited = sum("{" in one.scenario for one in worlds)
    assert f"719 tasks of two and more calls, {len(worlds)} instances ({edited} with edits)" in page
    passing = sum(map(len, alone.values()))
    assert f"a single mutation: 37153 programs, {passing} right in one world, 0 in all" in page


# Worlds ---------------------------------------------------------------------------------------------------------------


def names() -> list[set[str]]:
    """The names that queries mention."""
    dishes = {row["dish"] for rows in kitchens.menus().values() for row in rows}
    known = (cars.by_dealership(), cars.by_listing(), kitchens.menus(), restaurants.by_name(), shopping.by_sku())
    others = (cinema.known_cinemas(), cinema.films(), hotels.by_hotel(), songs.by_title(), books.by_isbn())
    numbers = {row["flight_number"] for row in flights.timetable("Oslo", "Paris")}
    return [dishes, numbers, *map(set, known), *map(set, others)]


def attributes() -> list[str]:
    """What is known of them."""
    tables = (cars.by_listing(), kitchens.menus(), restaurants.by_name(), shopping.by_sku(), hotels.by_hotel())
    places = (cars.dealerships(), kitchens.kitchens(), cinema.cinemas(), songs.by_title(), books.by_isbn())
    return [json.dumps(table, sort_keys=True) for table in (*tables, *places)]


def test_names_are_the_same_in_all_worlds_and_what_is_known_of_them_differs() -> None:
    seen = []
    for number in (0, 1, 9, 1234):
        with within(world(number, V1_1)):
            seen.append((names(), attributes()))
    for pinned, varied in seen[1:]:
        assert pinned == seen[0][0]
        assert all(mine != theirs for mine, theirs in zip(varied, seen[0][1], strict=True))
    with within(world(1, V1)):
        assert sum(mine != theirs for mine, theirs in zip(names(), seen[0][0], strict=True)) >= 6


def test_every_reference_finds_what_its_query_names_in_other_worlds() -> None:
    unknown = Counter[str]()
    for task in TASKS[::7]:
        assert task.program is not None
        for number in (3, 4):
            trace = execute(task.program, task.environment, task.tools, scenario=f"{task.scenario}@{number}")
            unknown.update(one.outcome.code for one in trace.failures if (one.outcome.code or "").startswith("unknown"))
    assert not unknown


def test_several_worlds_of_several_versions_live_side_by_side() -> None:
    query = ("find_restaurants", {"city": "Oslo"})

    def ask(environment: Any, scenario: str) -> Any:
        return environment.open(scenario).call(*query).value

    places = [(FIRST.environment, "user-0001"), (CORPUS.environment, "user-0001"), (CORPUS.environment, "user-0001@5")]
    found = [ask(*place) for place in places]
    assert len({json.dumps(value) for value in found}) == len(found)
    assert [ask(*place) for place in reversed(places)] == found[::-1]


# The package ----------------------------------------------------------------------------------------------------------


def test_it_conforms() -> None:
    edited = 'user-0777@3{"cities":{"Oslo":{"elevation":5}}}'
    check_environment(DepthBenchV11(), scenarios=("user-0000", "user-0777@3", edited))
    check_corpus(CORPUS)


def test_exported_rows_are_read_back_with_their_worlds_and_chats_resolve_references(tmp_path: Path) -> None:
    def invoke(*words: str) -> None:
        done = CliRunner().invoke(root_command, words, obj=App(registry=load_plugins()), catch_exceptions=False)
        assert done.exit_code == 0, done.output

    invoke("corpus", "export", "depthbench-v1.1", "-o", str(tmp_path / "rows.jsonl"))
    again = DepthBenchV11Corpus(file=tmp_path / "rows.jsonl")
    assert again.splits == CORPUS.splits
    for task in TASKS[::11]:
        assert again.task(task.id) == task
    split = ("--split", "validation", "--format", "openai")
    invoke("corpus", "export", "depthbench-v1.1", "-o", str(tmp_path / "chat.jsonl"), *split)
    rows = [json.loads(line) for line in (tmp_path / "chat.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 766
    for row in rows:
        called: set[str] = set()
        answered: set[str] = set()
        for message in row["messages"]:
            assert "API_RESPONSE" not in json.dumps(message.get("tool_calls", []))
            answered |= {message["tool_call_id"]} if message["role"] == "tool" else set()
            if message["role"] == "assistant":
                assert called <= answered  # what was called before has been answered
                called |= {call["id"] for call in message.get("tool_calls", ())}
    assert sum(len(row["messages"]) > 2 for row in rows) > 150


def test_it_is_pickled_as_its_options() -> None:
    for corpus in (CORPUS, DepthBenchV11Corpus(instances=False, fresh=1)):
        again = pickle.loads(pickle.dumps(corpus))
        assert type(again) is DepthBenchV11Corpus
        assert again.splits == corpus.splits
        assert again["validation"][760] == corpus["validation"][760]


def test_fresh_tasks_play_in_further_worlds() -> None:
    corpus = DepthBenchV11Corpus(fresh=1)
    fresh = corpus["train"][944:]
    assert len(fresh) > 700
    for task in fresh[::41]:
        assert task.program is not None
        assert judge(Attempt(task, JSON.render(task.program), JSON)).answer


def test_examples_show_each_structure_and_are_right() -> None:
    shots = CORPUS.shots(CORPUS["validation"][0], MOST)
    assert [shot.id for shot in shots] == [name for name, _ in EXAMPLES_1_1[:MOST]]
    shapes = ["linear", "tree", "none", "funnel", "conjunctive", "parallel", "mixed"]
    assert [shot.structure for shot in shots] == shapes
    assert len(EXAMPLES_1_1) == MOST + 1
    for (name, thought), shot in zip(EXAMPLES_1_1, shots, strict=False):
        assert shot.program is not None
        assert shot.program.thought == thought
        assert right_in_all(CORPUS.task(name), shot.program)


@pytest.mark.parametrize("form", ["json", "xml", "direct"])
def test_all_examples_fit_into_the_context_of_the_paper_with_every_task(form: str) -> None:
    parser = cw.parser(form)
    longest = 0
    for task in TASKS:
        messages = build_messages(task, parser, shots=CORPUS.shots(task, MOST))
        longest = max(longest, sum(pieces(message.text) for message in messages))
    assert 8000 < longest <= 12_288


_FIRST_ROWS = """
import sys
from callwright_plugins.depthbench.build import row_of
from callwright_plugins.depthbench.generate import Generator
from callwright_plugins.depthbench.world import V1_1
import itertools, json
for row in itertools.islice(Generator(version=V1_1).rows(), 540):
    sys.stdout.write(json.dumps([row_of(row, ""), list(row.scenarios)], ensure_ascii=False) + "\\n")
"""


def test_drawing_again_gives_the_shipped_rows_under_another_hash_seed() -> None:
    """The first 540 tasks (depths 0 to 3); ``corpus build depthbench-v1.1 --check`` compares all of them."""
    done = subprocess.run(
        [sys.executable, "-c", _FIRST_ROWS],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONHASHSEED": "4711", "PYTHONIOENCODING": "utf-8"},
        check=True,
    )
    drawn = [json.loads(line) for line in done.stdout.splitlines()]
    lines = gzip.decompress((DATA / FILES[V1_1.name]).read_bytes()).splitlines()
    shipped = [json.loads(line) for line in lines[:540]]
    worlds = json.loads((DATA / INSTANCES[V1_1.name]).read_text(encoding="utf-8"))
    assert drawn == [[{**row, "id": ""}, worlds.get(row["id"], [])] for row in shipped]


@pytest.mark.slow
@pytest.mark.skipif(
    "CALLWRIGHT_EXHAUSTIVE" not in os.environ, reason="draws all 1,710 tasks; set CALLWRIGHT_EXHAUSTIVE=1"
)
def test_the_whole_corpus_is_built_to_the_same_bytes() -> None:
    assert build(check=True, version=V1_1)


def test_mutations_take_names_that_the_tasks_own_data_have() -> None:
    """Else a name that is unknown in v1.1 would make a mutation fail for no reason of the task."""
    for task in SEVERAL[::31]:
        tried = [one for one in mutations_of(task) if one.kind == "change"]
        codes = Counter[str]()
        for one in tried:
            trace = execute(one.program, task.environment, task.tools, scenario=task.scenario)
            codes.update(step.outcome.code or "" for step in trace.failures)
        named = {code for code in codes if code.startswith("unknown") and code not in ("unknown_word", "unknown_dish")}
        assert named <= {"unknown_message", "unknown_coupon", "unknown_flight", "unknown_showing"}, (task.id, codes)


def test_exports_and_imports_replace_nothing_unasked(tmp_path: Path) -> None:
    def invoke(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(root_command, words, obj=App(registry=load_plugins()), catch_exceptions=False)
        return done.exit_code, done.output

    folder, rows = tmp_path / "official", tmp_path / "rows.jsonl"
    export = ("corpus", "export", "depthbench-v1", "--split", "validation", "--format", "official", "-o", str(folder))
    back = ("corpus", "import", str(folder), "--format", "official", "-o", str(rows))
    assert invoke(*export)[0] == 0
    assert invoke(*back)[0] == 0
    for words, there in ((export, folder / "queries.json"), (back, rows)):
        assert invoke(*words) == (
            2,
            f"error: {there} is there already: name another file, or replace it with --overwrite\n",
        )
        assert invoke(*words, "--overwrite")[0] == 0
