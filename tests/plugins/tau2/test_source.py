"""What a dialogue leaves in tau2's databases: over a small source of the same shape, and over tau2's own where it is.

``CALLWRIGHT_TAU2_SOURCE`` is the repository of tau2-bench, ``CALLWRIGHT_TAU2_PYTHON`` an interpreter of 3.12 that has
its base dependencies. Then references of all given tasks are replayed.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.errors import InfrastructureFailure, UsageError
from callwright_plugins.tau2.benchmark import SourceTau2, Tau2Airline, Tau2Retail, Tau2Telecom
from callwright_plugins.tau2.dialogue import Dialogue, RecordedDialogue
from callwright_plugins.tau2.scoring import Call, Criteria
from callwright_plugins.tau2.source import Left, Tau2Source


def task(*actions: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    made = [{"name": name, "arguments": arguments} for name, arguments in actions]
    return {"id": "a", "evaluation_criteria": {"actions": made, **more.pop("criteria", {})}, **more}


def calls(*made: tuple[str, dict[str, Any]]) -> list[Call]:
    return [Call(name, arguments) for name, arguments in made]


BUY, NAME = ("buy", {"item": "i1"}), ("rename", {"item": "i2", "name": "new"})
DROP, STOCK = ("drop", {"item": "i3"}), ("stock", {"item": "x", "price": 1.0})


@pytest.mark.parametrize(
    ("wanted", "made", "same"),
    [
        ([BUY], [BUY], True),
        ([BUY], [], False),
        ([], [BUY], False),
        ([BUY, NAME], [NAME, BUY], True),
        ([NAME], [("rename", {"item": "i2", "name": "old"}), NAME], True),
        ([NAME], [("rename", {"item": "i2", "name": "old"})], False),
        ([NAME], [("rename", {"item": "i4", "name": "new"})], False),
        ([DROP], [DROP], True),
        ([DROP], [], False),
        ([], [DROP], False),
        ([STOCK], [STOCK], True),
        ([STOCK], [], False),
        ([STOCK], [("stock", {"item": "x", "price": 2.0})], False),
        ([], [STOCK, ("drop", {"item": "x"})], True),
        ([("stock", {"item": "i1", "price": 1.0})], [("stock", {"item": "i1", "price": 1.0})], True),
        ([BUY], [("count", {}), BUY, ("nothing", {})], True),  # reads and unknown tools are not made
        ([BUY], [("buy", {"item": "none"}), BUY], True),  # an error leaves nothing
        ([("buy", {"item": "none"}), BUY], [BUY], True),  # nor does one of the reference
    ],
)
def test_databases_are_compared_by_what_was_changed(
    wanted: Any, made: Any, same: bool, shop: tuple[Tau2Source, Path]
) -> None:
    source, _ = shop
    for _ in range(2):  # the second time over the same parsed database, and with the reference that is kept
        assert source.left("shop", task(*wanted), calls(*made)) == Left(same, True)


def test_the_database_is_parsed_once(shop: tuple[Tau2Source, Path]) -> None:
    source, domain = shop
    for number in range(5):
        source.left("shop", task(("buy", {"item": f"i{number}"})), calls(BUY))
    assert (domain / "opened").read_text() == "x"


def test_a_task_begins_where_it_says_and_its_assertions_are_asked(shop: tuple[Tau2Source, Path]) -> None:
    source, _ = shop
    begun = {"initialization_actions": [{"name": "stock", "arguments": {"item": "y", "price": 100.0}}]}
    asked = {"env_assertions": [{"func_name": "total", "arguments": {"expected": 290.0}}]}
    assert source.left("shop", task(criteria=asked, initial_state=begun), []) == Left(True, True)
    assert source.left("shop", task(criteria=asked), []) == Left(True, False)


def test_a_dialogue_that_gives_other_results_is_none_of_this_version(shop: tuple[Tau2Source, Path]) -> None:
    source, _ = shop
    assert source.left("shop", task(BUY), calls(BUY), ["1.0"]) == Left(True, True)
    assert source.left("shop", task(BUY), calls(BUY), ["1"]) == Left(True, True)  # read as JSON
    with pytest.raises(InfrastructureFailure, match=r"cannot be replayed: buy gave 1\.0 in place of 2"):
        source.left("shop", task(BUY), calls(BUY), ["2"])
    with pytest.raises(InfrastructureFailure, match="tau2's code"):
        source.left("no_such_domain", task(BUY), calls(BUY))


def test_folders_that_are_something_else_are_refused(shop: tuple[Tau2Source, Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not the source of tau2-bench"):
        Tau2Source(tmp_path, tmp_path)
    with pytest.raises(UsageError, match="has no tau2/domains"):
        Tau2Source(shop[1].parents[3], tmp_path)


VERSIONS = [
    (Tau2Retail, "a2c0247"),
    (Tau2Retail, "12dddd3"),
    (Tau2Airline, "a2c0247"),
    (Tau2Airline, "12dddd3"),
    (Tau2Telecom, "37199f3"),
]


@pytest.mark.parametrize(("kind", "version"), VERSIONS)
def test_references_of_the_given_tasks_are_right(
    kind: type[SourceTau2], version: str, official_data: Path, tmp_path: Path
) -> None:
    package, python = (os.environ.get(f"CALLWRIGHT_TAU2_{name}") for name in ("SOURCE", "PYTHON"))
    if not package or not python:
        pytest.skip("needs tau2's source and an interpreter for it (CALLWRIGHT_TAU2_SOURCE, CALLWRIGHT_TAU2_PYTHON)")
    domain = kind.name.removeprefix("tau2-")
    held = tmp_path / "tau2/domains" / domain
    held.mkdir(parents=True)
    for path in (official_data / "tau2" / domain).iterdir():
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        name = path.name.removesuffix(".gz").replace("db.rebuilt_from_tau_bench", "db")
        (held / name).write_bytes(data)
    benchmark = kind(version, tmp_path, package, python)
    parser = cw.parser("json")
    attempts: list[tuple[cw.Task, cw.Attempt]] = []
    for task in benchmark.tasks():
        criteria = Criteria.of(benchmark.stated[task.id])
        assert criteria is not None
        made = [Call(one["name"], one["arguments"], one.get("requestor", "assistant")) for one in criteria.actions]
        dialogue = Dialogue(tuple(made), (None,) * len(made), tuple(criteria.communicate), "user_stop")
        attempts.append((task, RecordedDialogue(task, parser, dialogue)))
    for (task, _), found in zip(attempts, benchmark.judge_together(attempts), strict=True):
        assert found.correct, (version, task.id, found)
        assert set(found.evidence) <= {"NL_ASSERTION is left out"}
