"""Probes: each is what its name says, on every family of the small world."""

from __future__ import annotations

import pytest

import callwright as cw
from callwright.language.program import Call, Program, Reference
from callwright.training.evaluation import judge
from callwright_plugins.lab.ledger import open_ledger
from callwright_plugins.lab.probes import PROBES, Pool, in_order, variants
from callwright_plugins.lab.probing import Probing, probe_tasks, spread


@pytest.fixture
def tasks(registry: cw.Registry) -> list[cw.Task]:
    return list(registry.create("corpus", "toolworld-mini-v1")["evaluation"][:140])


def test_right_ones_are_right_and_wrong_ones_wrong(tasks: list[cw.Task], registry: cw.Registry) -> None:
    parser = registry.create("parser", "json")
    pool = Pool.of([task.program for task in tasks if task.program is not None])
    counts = {probe.name: [0, 0] for probe in PROBES}
    for task in tasks:
        for probe, program in variants(task, pool):
            verdict = judge(cw.Attempt(task, parser.render(program), parser))
            counts[probe.name][verdict.answer is (probe.kind != "wrong")] += 1
    for probe in PROBES:
        bad, good = counts[probe.name]
        assert good, probe.name
        # The lab leaves these out: a call too many is an answer too many where all results are returned, and now and
        # then a step can be skipped without harm.
        assert bad == 0 if probe.kind in ("gold", "valid") else bad < good, (probe.name, bad, good)


def test_valid_probes_keep_what_they_must(tasks: list[cw.Task]) -> None:
    pool = Pool.of([task.program for task in tasks if task.program is not None])
    for task in tasks:
        assert task.program is not None
        for probe, program in variants(task, pool):
            if probe.name == "gold":
                assert program == task.program
            if probe.kind == "valid":
                assert program != task.program or probe.name == "key order" or not task.program.calls
                assert sorted(call.tool for call in program.calls) == sorted(call.tool for call in task.program.calls)
                assert not program.dangling


def test_numbering_anew_moves_the_references_along() -> None:
    program = Program((Call(0, "a", {}), Call(1, "b", {"x": [Reference(0, ("k",))], "y": {"z": Reference(0)}})))
    moved = in_order(program, program.calls, [2, 5])
    assert moved.calls == (Call(2, "a", {}), Call(5, "b", {"x": [Reference(2, ("k",))], "y": {"z": Reference(2)}}))
    assert in_order(moved, moved.calls) == program


def test_a_probe_that_is_not_what_it_claims_is_left_out(registry: cw.Registry) -> None:
    from callwright.commands.pipelines import make_pipeline

    pipeline = make_pipeline(registry, "bank-v1", {}, seed=4)
    ledger = open_ledger(registry, ["tier"])
    probing = probe_tasks(pipeline, ledger, list(pipeline.corpus["train"]))
    # depositing twice changes the balance, so the first call repeated is no longer right
    assert "repeated call" not in probing.rewards["tier"]
    assert probing.left_out["repeated call"] == {"its answer is wrong": 2}
    assert probing.rewards["tier"]["gold"] == {"t0": 1.0, "t1": 1.0, "t2": 1.0}
    assert probing.rewards["tier"]["no calls"] == {"t0": 0.5, "t1": 0.5}


def test_pairs_are_of_the_same_tasks() -> None:
    probing = Probing(3, {"r": {"gold": {"a": 1.0, "b": 0.5}, "no calls": {"b": 0.25, "c": 0.0}}})
    assert probing.paired("r", "no calls") == (0.25, 0.5, 1)
    assert probing.paired("r", "wrong value") is None


def test_the_tasks_of_probes_are_drawn_and_stay_the_same(tasks: list[cw.Task]) -> None:
    assert spread(tasks, 20) == spread(tasks, 20)
    assert len({task.id for task in spread(tasks, 20)}) == 20
    assert spread(tasks, 1000) == tasks
    assert spread(tasks, 0) == []
