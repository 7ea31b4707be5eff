"""Mixtures: exact counts of kinds, of what a synthesis makes and of files."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from tests.core.training.synthesis.test_synthesis import plugin_of, registry_of, run

import callwright as cw
from callwright.errors import DataError, UsageError
from callwright.testing.synthesis.shop import Prices
from callwright.training import Accepted, Materials, Rejected, Unit
from callwright.training.synthesis.folder import MANIFEST, REJECTED
from callwright.training.synthesis.mixture import lines
from callwright.walk.task_rows.reading import read_rows


class Kinds:
    """Questions about prices, of the kinds ``task``, ``clarification`` and ``odd`` in turn."""

    name = "mine"

    def plan(self, materials: Materials) -> Any:
        return Prices().plan(materials)

    def make(self, unit: Unit, materials: Materials) -> Accepted | Rejected:
        made = Prices(things=("apple",)).make(evolve(unit, payload={"name": "apple"}), materials)
        if isinstance(made, Rejected):
            return made
        kind = ("task", "clarification", "odd")[unit.index % 3]
        return Accepted({**made.row, "facts": {"kind": kind}}, made.facts)

    def compare(self, made: Any) -> list[None]:
        return [None] * len(made)


def imported(path: Path, kinds: dict[str, int], split: str = "train", prefix: str = "other") -> Path:
    """A file of tasks of some kinds."""
    shop = cw.environment("sample-shop", registry=registry_of())
    tasks = [
        cw.Task(
            id=f"{prefix}-{kind}-{number}",
            query="Nothing?",
            tools=dict(shop.tools),
            answer=cw.Answer(()),
            environment=shop,
            split=split,
            depth=0,
            facts={"kind": kind},
        )
        for kind, count in kinds.items()
        for number in range(count)
    ]
    cw.write_tasks(path, tasks, registry=registry_of())
    return path


def mixed(folder: Path, *parts: dict[str, Any], **options: Any) -> dict[str, Any]:
    table = {"synthesizer": "mine", "count": 12, "mixture": list(parts)}
    return run(folder, registry_of(plugin_of(Kinds())), table=table, **options)


def kinds_in(folder: Path) -> Counter[str]:
    return Counter(row["facts"]["kind"] for row in read_rows(folder / "tasks.jsonl")[1])


def test_counts_are_exact_and_what_is_too_much_is_rejected_with_its_reason(tmp_path: Path) -> None:
    file = imported(tmp_path / "other.jsonl", {"abstention": 9, "task": 3})
    manifest = mixed(
        tmp_path / "mixed",
        {"count": 3, "kinds": ["task"]},
        {"count": 2, "kinds": ["clarification"]},
        {"count": 4, "kinds": ["abstention"], "file": str(file)},
    )
    assert kinds_in(tmp_path / "mixed") == {"task": 3, "clarification": 2, "abstention": 4}
    assert [(part["asked"], part["made"]) for part in manifest["mixture"]] == [(3, 3), (2, 2), (4, 4)]
    assert json.loads((tmp_path / "mixed" / MANIFEST).read_text()) == manifest
    reasons = manifest["yields"]["rejected"]["mixture"]
    assert set(reasons) == {"more than the count of its part", "a kind that the mixture does not name"}
    gone = [json.loads(line) for line in (tmp_path / "mixed" / REJECTED).read_text().splitlines()]
    assert Counter(one["stage"] for one in gone)["mixture"] == sum(reasons.values())
    assert manifest["yields"]["kept"] == 5


def test_a_part_without_kinds_takes_those_that_no_other_part_names(tmp_path: Path) -> None:
    mixed(tmp_path / "mixed", {"count": 6}, {"count": 1, "kinds": ["clarification"]})
    found = kinds_in(tmp_path / "mixed")
    assert found["clarification"] == 1
    assert found["task"] + found["odd"] == 6


def test_what_is_taken_hangs_on_the_seed_and_the_ids_alone(tmp_path: Path) -> None:
    file = imported(tmp_path / "other.jsonl", {"abstention": 30})
    turned = tmp_path / "turned.jsonl"
    head, *rows = file.read_text().splitlines()
    turned.write_text("\n".join([head, *reversed(rows)]) + "\n")

    def taken(name: str, source: Path, seed: int = 3) -> set[str]:
        part = {"count": 5, "file": str(source)}
        table = {"synthesizer": "mine", "count": 3, "seed": seed, "mixture": [{"count": 1}, part]}
        run(tmp_path / name, registry_of(plugin_of(Kinds())), table=table)
        return {row["id"] for row in read_rows(tmp_path / name / "tasks.jsonl")[1] if row["id"].startswith("other")}

    first = taken("first", file)
    assert len(first) == 5
    assert taken("second", turned) == first
    assert taken("third", file, seed=4) != first


def test_too_few_of_its_own_are_said_and_stand_in_the_manifest(tmp_path: Path) -> None:
    manifest = mixed(tmp_path / "mixed", {"count": 500})
    (part,) = manifest["mixture"]
    assert part["made"] == manifest["yields"]["kept"] < 500
    (line,) = lines(manifest["mixture"])
    assert line.endswith("too few; raise synthesis.count")


def test_files_are_looked_at_before_anything_is_made(tmp_path: Path) -> None:
    file = imported(tmp_path / "other.jsonl", {"abstention": 2})
    tests = imported(tmp_path / "tests.jsonl", {"abstention": 2}, split="test")
    same = imported(tmp_path / "same.jsonl", {"abstention": 2})
    for parts, error, words in (
        ([{"count": 3, "file": str(file)}], DataError, "has 2 tasks in the split 'train', and the mixture takes 3"),
        ([{"count": 1, "file": str(tests)}], DataError, "has 0 tasks"),
        ([{"count": 1, "file": str(tmp_path / "none.jsonl")}], DataError, "none.jsonl"),
        ([{"count": 2, "file": str(file)}, {"count": 2, "file": str(same)}], DataError, "two files of the mixture"),
        ([{"count": 1}, {"count": 2}], UsageError, "two parts of the mixture take all other kinds"),
        ([{"count": 1, "kinds": ["task"]}, {"count": 2, "kinds": ["odd", "task"]}], UsageError, "the kind 'task'"),
    ):
        with pytest.raises(error, match=words):
            mixed(tmp_path / "mixed", *parts)
        assert not (tmp_path / "mixed" / "plan.jsonl").exists()


def test_a_mixture_goes_on_with_the_same_bytes(tmp_path: Path) -> None:
    file = imported(tmp_path / "other.jsonl", {"abstention": 9})
    parts = ({"count": 5}, {"count": 4, "file": str(file)})
    mixed(tmp_path / "whole", *parts)
    mixed(tmp_path / "again", *parts)
    (tmp_path / "again" / MANIFEST).unlink()
    (tmp_path / "again" / "tasks.jsonl").unlink()
    mixed(tmp_path / "again", *parts)
    for name in ("tasks.jsonl", REJECTED, MANIFEST):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
