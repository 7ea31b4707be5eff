"""What only shows when tasks are compared."""

from __future__ import annotations

import pytest
from attrs import evolve

import callwright as cw
from callwright.language.program import Call
from callwright.measuring.overlap.entries import entry_of_task
from callwright.plugins import default_registry
from callwright.training.synthesis.units import Accepted, Made, Unit
from callwright.walk.task_rows.rows import task_row
from callwright_plugins.synthesis.gates import compare
from callwright_plugins.synthesis.gates.comparing import Compared, compared, held_out, leaks
from callwright_plugins.synthesis.gates.contamination import Decontaminated

TASKS = list(cw.corpus("worlds-mini-v1")["validation"])[:6]


def one(number: int, *tools: str, text: str = "", world: str = "w") -> Compared:
    calls = tuple(Call(place, tool, {"key": f"v{number}", "more": number}) for place, tool in enumerate(tools))
    return Compared(f"t{number}", "shop", world, calls, text or f"words of their own for task {number}")


def test_later_near_duplicates_go_by_calls_and_then_by_words() -> None:
    again = evolve(one(1, "a", "b"), id="t3")
    tasks = [one(1, "a", "b"), one(2, "a", "c"), again, one(4, "d", text="Words of THEIR own, for task 2")]
    verdicts = compared(tasks)
    assert [None if verdict is None else (verdict.reason, verdict.evidence["task"]) for verdict in verdicts] == [
        None,
        None,
        ("nearly the same calls", "t1"),
        ("nearly the same words", "t2"),
    ]
    assert compared(tasks, texts=None)[3] is None


def test_the_evidence_says_how_near_and_what_is_apart() -> None:
    longer = evolve(one(1, "a", "b"), id="t3", calls=(*one(1, "a", "b").calls, Call(2, "c", {"key": "v1"})))
    _, verdict = compared([one(1, "a", "b"), longer])
    assert verdict is not None
    # 10 elements are common, of 13: the tool, its key and the value are what the longer one has beside them.
    apart = ["shop c", "shop c key", 'shop c key "v1"']
    assert verdict.evidence == {"task": "t1", "threshold": 0.7, "similarity": 0.769, "apart": apart}


def test_equal_calls_of_two_environments_are_no_duplicates() -> None:
    tasks = [one(1, "a", "b"), evolve(one(1, "a", "b", text="Something else"), environment="bank")]
    assert compared(tasks) == [None, None]


def test_quotas_bound_chains_and_tools() -> None:
    tasks = [one(number, "a") for number in range(6)] + [one(number, "b", "c") for number in range(6, 8)]
    chains = compared(tasks, texts=None, calls=1.0, most_of_a_chain=2)
    assert [verdict is None for verdict in chains] == [True, True, False, False, False, False, True, True]
    tools = compared(tasks, texts=None, calls=1.0, most_of_a_tool=0.5)
    assert [verdict is None for verdict in tools] == [True] * 4 + [False] * 2 + [True] * 2
    for chain, tool in ((0, None), (None, 0.0), (None, 1.5)):
        with pytest.raises(cw.UsageError):
            compared(tasks, most_of_a_chain=chain, most_of_a_tool=tool)


@pytest.mark.parametrize("by", ["environment", "chain", "world"])
def test_what_is_held_out_shares_nothing_with_the_rest(by: str) -> None:
    tasks = [
        evolve(one(number, "abc"[number % 3], "de"[number % 2], world=f"w{number % 5}"), environment=f"e{number % 4}")
        for number in range(60)
    ]
    chosen = held_out(tasks, by, 0.3)
    assert 0 < sum(chosen) < 60
    split = [evolve(task, split="test" if out else "train") for task, out in zip(tasks, chosen, strict=True)]
    assert leaks(split, by) == [None] * 60
    mixed = [evolve(task, split="test" if number else "train") for number in range(2) for task in tasks]
    assert [verdict is not None for verdict in leaks(mixed, by)] == [False] * 60 + [True] * 60
    with pytest.raises(cw.UsageError):
        held_out(tasks, "weather", 0.3)


def test_rows_of_a_synthesis_are_compared_as_their_tasks_are() -> None:
    rows = [task_row(task, default_registry()) for task in [*TASKS, TASKS[2]]]
    made = [Made(Unit(f"u{place}", place, 0), Accepted(row)) for place, row in enumerate(rows)]
    verdicts = compare(made)
    assert verdicts[:-1] == [None] * 6
    assert verdicts[-1] is not None
    assert verdicts[-1].evidence["task"] == TASKS[2].id
    assert [Compared.of_row(row).calls for row in rows[:6]] == [Compared.of_task(task).calls for task in TASKS]


def test_what_stands_in_a_benchmark_is_not_learnt() -> None:
    against = Decontaminated([("known", [entry_of_task(evolve(TASKS[1], id="other"))]), ("empty", [])])
    verdicts = against.of_tasks(TASKS)
    assert [verdict is None for verdict in verdicts] == [True, False, True, True, True, True]
    assert verdicts[1] is not None
    assert verdicts[1].evidence["source"] == "known"
    assert against.of_tasks(TASKS[:1]) == [None]
