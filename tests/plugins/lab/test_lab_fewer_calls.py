"""Right answers that skip calls, the literal shortcut on whole corpora, and calls that had better not been made."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App
from callwright.language.program import Call, Program, Reference
from callwright.training.evaluation import judge
from callwright_plugins.lab.fewer_calls import broken_calls, needs_results, skipped_calls
from callwright_plugins.lab.probes import PROBES, Pool, variants

Invoke = Callable[..., Result]

CHAIN = Program(
    (
        Call(0, "Locate", {}),
        Call(1, "Find", {"place": Reference(0), "mode": "near"}),
        Call(2, "Filter", {"rows": Reference(1, ("rows",)), "least": 4}),
    )
)


def calls(*made: tuple[str, dict[str, Any]]) -> Program:
    return Program(tuple(Call(number, tool, arguments) for number, (tool, arguments) in enumerate(made)))


@pytest.mark.parametrize(
    ("program", "skipped"),
    [
        (CHAIN, ()),
        (calls(("Filter", {"rows": [{"n": 1}], "least": 4})), ("Find", "Locate")),
        (calls(("Find", {"place": "Rome"}), ("Filter", {"rows": Reference(0), "least": 4})), ("Locate",)),
        # Another way: a tool fewer, and nothing written out.
        (calls(("Search", {}), ("Filter", {"rows": Reference(0), "least": 4})), ()),
        # Everything is called, and a result is written out all the same: wasteful, but nothing is skipped.
        (calls(("Locate", {}), ("Find", {"place": "Rome"}), ("Filter", {"rows": [], "least": 4})), ()),
        # The argument is not there at all.
        (calls(("Filter", {"least": 4})), ()),
        (calls(), ()),
    ],
)
def test_what_counts_as_skipping(program: Program, skipped: tuple[str, ...]) -> None:
    assert skipped_calls(program, CHAIN) == skipped


def test_tools_are_a_multiset() -> None:
    reference = calls(
        ("Price", {"item": "a"}), ("Price", {"item": "b"}), ("Sum", {"first": Reference(0), "second": Reference(1)})
    )
    short = calls(("Price", {"item": "a"}), ("Sum", {"first": Reference(0), "second": 7}))
    twice = calls(("Price", {"item": "a"}), ("Sum", {"first": Reference(0), "second": Reference(0)}))
    assert skipped_calls(short, reference) == ("Price",)
    assert skipped_calls(twice, reference) == ()


def test_a_literal_is_one_only_where_the_reference_has_a_result() -> None:
    reference = calls(("Locate", {}), ("Find", {"place": Reference(0)}), ("Find", {"place": "Oslo"}))
    other = calls(("Find", {"place": "Oslo"}), ("Find", {"place": Reference(0)}))
    assert skipped_calls(other, reference) == ()
    assert skipped_calls(calls(("Find", {"place": "Rome"}), ("Find", {"place": "Oslo"})), reference) == ("Locate",)


def test_references_inside_lists_and_tables() -> None:
    reference = calls(("Locate", {}), ("Order", {"items": [{"sku": "a"}, {"sku": Reference(0)}]}))
    for items in ([{"sku": "a"}, {"sku": "b"}], [{"sku": "a"}], "a, b", []):
        assert skipped_calls(calls(("Order", {"items": items})), reference) == ("Locate",)


def test_references_written_as_text_are_references() -> None:
    reference = calls(("Locate", {}), ("Find", {"place": "API_RESPONSE_0"}))
    assert needs_results(reference)
    assert skipped_calls(calls(("Find", {"place": "Rome"})), reference) == ("Locate",)


def test_the_shortcut_skips_and_programs_that_are_right_in_another_way_do_not(registry: cw.Registry) -> None:
    tasks = list(registry.create("corpus", "toolworld-mini-v1")["evaluation"][:140])
    pool = Pool.of([task.program for task in tasks if task.program is not None])
    parser = registry.create("parser", "json")
    played = 0
    for task in tasks:
        for probe, program in variants(task, pool):
            if probe.kind in ("gold", "valid", "verbose"):
                assert skipped_calls(program, task.program) == (), (task.id, probe.name)
            if probe.kind == "shortcut" and judge(cw.Attempt(task, parser.render(program), parser)).answer:
                played += 1
                assert len(program.calls) == 1
                assert not program.calls[0].located
                missing = sorted(call.tool for call in task.program.calls[:-1])
                assert list(skipped_calls(program, task.program)) == missing
    assert played > 40


@pytest.mark.parametrize(("split", "count"), [("train", 337), ("validation", 158)])
def test_on_every_one_answer_task_of_depthbench_the_shortcut_earns_at_least_0_975(split: str, count: int) -> None:
    words = ["lab", "--corpus", "depthbench-v1", "--split", split, "--recipes", "tier", "--probe-tasks", "2000"]
    result = CliRunner().invoke(root, [*words, "--probe", "literal shortcut", "--json"], obj=App())
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["probes"]["probes"]
    assert set(found) == {"gold", "literal shortcut"}
    cell = found["literal shortcut"]["recipes"]["tier"]
    assert not found["literal shortcut"]["left_out"]
    assert [total for total, _ in cell["totals"]] == [1.0, 0.975]
    assert sum(number for _, number in cell["totals"]) == cell["n"] == count
    corpus = cw.corpus("depthbench-v1")
    assert count == sum(task.returns == "one" and task.depth > 1 for task in corpus[split])


def test_the_lab_counts_right_answers_that_skip_calls(invoke: Invoke, registry: cw.Registry, tmp_path: Path) -> None:
    tasks = [task for task in registry.create("corpus", "toolworld-mini-v1")["evaluation"] if task.depth > 1]
    pool = Pool.of([task.program for task in tasks])
    parser = registry.create("parser", "json")
    rows, played = [], []
    for task in tasks[:40]:
        made = {probe.name: program for probe, program in variants(task, pool)}
        names = [name for name in ("gold", "literal shortcut", "no calls") if name in made]
        for name in names:
            text = parser.render(made[name])
            rows.append({"id": len(rows), "task": task.id, "completion": text})
            if name == "literal shortcut" and judge(cw.Attempt(task, text, parser)).answer:
                played.append(registry.create("reward recipe", "tier").score(task, text).total)
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = invoke("lab", source, "--corpus", "toolworld-mini-v1", "--recipes", "tier", "--json")
    found = json.loads(result.stdout)["skips"]
    able = {task.id for task in tasks[:40] if needs_results(task.program)}
    assert found["attempts"] == sum(row["task"] in able for row in rows)
    assert found["skipping"] == len(played) > 5
    assert found["right"] == len(able) + len(played)
    assert found["share_of_right"] == len(played) / found["right"]
    assert found["mean"]["tier"] == pytest.approx(sum(played) / len(played))


def test_a_broken_call_that_is_left_out_costs_nothing(
    invoke: Invoke, registry: cw.Registry, tmp_path: Path, texts: Mapping[str, str]
) -> None:
    """Section 2.2 counts the mismatches of the calls that are made: 0.35 with two broken calls, 0.375 with one."""
    parser, tier = registry.create("parser", "json"), registry.create("reward recipe", "tier")
    task = registry.create("corpus", "bank-v1").task("t0")
    program = calls(("Deposit", {}), ("Deposit", {}), ("Balance", {}))
    less = evolve(program, calls=program.calls[1:])
    empty = evolve(program, calls=())
    totals = [tier.score(task, parser.render(one)).total for one in (program, less, empty)]
    assert totals == pytest.approx([0.35, 0.375, 0.5])
    assert broken_calls(cw.Attempt(task, parser.render(program), parser)) == [0, 1]
    source = tmp_path / "rows.jsonl"
    written = [parser.render(program), texts["gold0"], texts["wrong"], texts["garbage"]]
    source.write_text(
        "".join(json.dumps({"id": i, "task": "t0", "completion": t}) + "\n" for i, t in enumerate(written))
    )
    page = tmp_path / "lab.html"
    words = ("lab", source, "--corpus", "bank-v1", "--recipes", "tier,simple", "--seed", 4, "-o", page)
    found = json.loads(invoke(*words, "--json").stdout)["dropping"]
    assert (found["attempts"], found["tried"]) == (1, 1)
    row = found["recipes"]["tier"]
    assert row["dropping_earns_more"] == row["calling_nothing_earns_more"] == 1.0
    assert row["mean_gain"] == pytest.approx(0.025)
    assert row["example"]["before"] == pytest.approx(0.35)
    assert row["example"]["after"] == pytest.approx(0.375)
    assert found["recipes"]["simple"]["dropping_earns_more"] == 0.0
    assert "Leaving one broken call out would earn more, and the answer stays wrong" in page.read_text()


def test_dropping_is_what_scoring_the_shorter_program_gives(
    invoke: Invoke, registry: cw.Registry, tmp_path: Path
) -> None:
    tasks = [task for task in registry.create("corpus", "toolworld-mini-v1")["evaluation"] if task.depth > 2][:30]
    pool = Pool.of([task.program for task in tasks])
    parser, tier = registry.create("parser", "json"), registry.create("reward recipe", "tier")
    rows, expected, right = [], [], 0
    for task in tasks:
        for probe, program in variants(task, pool):
            if probe.name not in ("dangling reference", "wrong parameter name"):
                continue
            text = parser.render(program)
            rows.append({"id": len(rows), "task": task.id, "completion": text})
            now = tier.score(task, text).total
            shorter = (
                evolve(program, calls=tuple(other for other in program.calls if other.id != call))
                for call in broken_calls(cw.Attempt(task, text, parser))[:6]
            )
            attempts = [cw.Attempt(task, parser.render(one), parser) for one in shorter]
            wrong = [tier.score_attempt(one).total for one in attempts if not judge(one).answer]
            right += len(wrong) < len(attempts)
            expected.append(any(total > now + 1e-9 for total in wrong))
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("--corpus", "toolworld-mini-v1", "--recipes", "tier", "--json", "--probe", "gold")
    found = json.loads(invoke("lab", source, *words).stdout)["dropping"]
    assert found["tried"] == len(rows)
    assert found["put_right"] == right
    assert found["recipes"]["tier"]["dropping_earns_more"] == sum(expected) / len(expected)
    some = json.loads(invoke("lab", source, *words, "--probe-tasks", 7).stdout)["dropping"]
    assert (some["attempts"], some["tried"]) == (len(rows), 7)


def test_a_call_that_had_better_not_been_made_is_no_reason_to_complain(
    invoke: Invoke, registry: cw.Registry, tmp_path: Path
) -> None:
    """Where nothing is to be called, leaving the broken call out puts the attempt right."""
    text = registry.create("parser", "json").render(calls(("Deposit", {})))
    source = tmp_path / "rows.jsonl"
    source.write_text(json.dumps({"id": 0, "task": "t2", "completion": text}) + "\n")
    result = invoke("lab", source, "--corpus", "bank-v1", "--recipes", "tier", "--seed", 4, "--json")
    found = json.loads(result.stdout)["dropping"]
    assert found["put_right"] == 1
    row = found["recipes"]["tier"]
    assert row["dropping_earns_more"] == row["calling_nothing_earns_more"] == 0.0


def test_a_corpus_is_probed_without_rollouts(invoke: Invoke, tmp_path: Path) -> None:
    page = tmp_path / "lab.html"
    result = invoke("lab", "--corpus", "toolworld-mini-v1", "--split", "evaluation", "--probe-tasks", 30, "-o", page)
    assert result.exit_code == 0, result.output
    assert "Probes of 30 tasks of toolworld-mini-v1, evaluation" in result.output
    text = page.read_text()
    assert all(probe.name in text for probe in PROBES)
    assert "Distribution" not in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--corpus alone to probe its tasks"),
        (["--corpus", "bank-v1", "--weights", "answer=1"], "compare rewards over rollouts"),
        (["--corpus", "bank-v1", "--split", "trian"], "Did you mean 'train'?"),
        (["--corpus", "bank-without-truth-v1", "--recipes", "tier"], "no task with a reference program"),
    ],
)
def test_what_cannot_be_probed_is_said(invoke: Invoke, words: list[str], said: str) -> None:
    result = invoke("lab", *words)
    assert result.exit_code == 2, result.output
    assert said in " ".join(result.output.split())
