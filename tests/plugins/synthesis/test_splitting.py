"""Splits: training sees no environment, chain or world of what is held out, nor calls that are nearly the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App
from callwright.errors import UnknownName, UsageError
from callwright.training.synthesis.units import Rejected
from callwright_plugins.synthesis.duplicates.elements import elements
from callwright_plugins.synthesis.duplicates.jaccard import THRESHOLD, jaccard
from callwright_plugins.synthesis.gates.comparing import Compared
from callwright_plugins.synthesis.splitting import Split, check

PLACES = ("here", "there", "elsewhere")


def row(number: int, *calls: tuple[str, dict[str, Any]], environment: str = "desk", seed: int = 0) -> dict[str, Any]:
    stated = [{"id": place, "tool": tool, "arguments": arguments} for place, (tool, arguments) in enumerate(calls)]
    program = {"calls": stated}
    return {"id": f"t{number}", "split": "train", "query": f"q{number}", "environment": environment, "seed": seed,
            "program": program}  # fmt: skip


def rows_at_random(rng: Random, count: int) -> list[dict[str, Any]]:
    return [
        row(
            number,
            *[(rng.choice("abcd"), {"at": rng.choice(PLACES), "n": rng.randrange(3)}) for _ in range(rng.randrange(4))],
            environment=rng.choice(["desk", "shop", "bank", "desk+shop", "bank+shop"]),
            seed=rng.randrange(4),
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("by", ["environment", "chain", "world"])
@pytest.mark.parametrize("seed", range(6))
def test_training_sees_nothing_of_what_is_held_out(by: str, seed: int) -> None:
    rows = rows_at_random(Random(seed), 80)
    split = Split(by, 0.2, "held")
    said = split.of(iter(rows), seed)
    assert said == split.of(iter(rows), seed)
    sides: dict[str, list[Compared]] = {"train": [], "held": []}
    for one, verdict in zip(rows, said, strict=True):
        if isinstance(verdict, str):
            sides[verdict].append(Compared.of_row(one))
    assert all(sides.values())
    keys = {
        side: {
            part
            for one in tasks
            for part in (
                one.environment.split("+")
                if by == "environment"
                else [one.world if by == "world" else (one.environment, one.chain)]
            )
        }
        for side, tasks in sides.items()
    }
    assert not keys["train"] & keys["held"]
    for learnt in sides["train"]:
        for held in sides["held"]:
            if learnt.calls and learnt.environment == held.environment:
                assert jaccard(elements(learnt.calls), elements(held.calls)) < THRESHOLD
    assert {verdict.stage for verdict in said if isinstance(verdict, Rejected)} <= {"splits"}


def test_what_is_nearly_evaluated_is_rejected_even_where_evaluated_tasks_are_alike() -> None:
    # The second of what is held out is like the first, and the task to learn from is like the second alone.
    values = [dict.fromkeys(keys, 1) for keys in ("abcdefghij", "bcdefghijk", "cdefghijkl")]
    rows = [row(number, ("look", one), seed=0 if number < 2 else 1) for number, one in enumerate(values)]
    sets = [elements(Compared.of_row(one).calls) for one in rows]
    assert jaccard(sets[0], sets[2]) < THRESHOLD <= jaccard(sets[1], sets[2])
    rows += [row(9, ("go", {"to": 1}), seed=1)]
    for seed in range(20):  # whichever world is held out
        said = Split("world", 0.5, "held").of(rows, seed)
        assert Counter("rejected" if isinstance(one, Rejected) else one for one in said)["rejected"] >= 1


def test_a_leak_is_said() -> None:
    tasks = [Compared.of_row(row(number, ("look", {"at": number}))) for number in range(2)]
    with pytest.raises(UsageError, match="the splits leak: 1 tasks, the first of them 't1'"):
        check(tasks, ["train", "held"], "chain")
    check(tasks, ["train", "train"], "chain")


def test_what_is_no_split_is_said_in_words() -> None:
    with pytest.raises(UnknownName, match="share"):
        Split.from_json({"shares": 0.1})
    with pytest.raises(UnknownName, match="chain"):
        Split.from_json({"by": "chains"})
    for wrong in ({"share": 1}, {"share": True}, {"name": "train"}, {"name": ""}, "chain"):
        with pytest.raises(UsageError):
            Split.from_json(wrong)
    with pytest.raises(UsageError, match="all 2 tasks are of one"):
        Split("environment").of([row(0), row(1)], 0)


def test_a_synthesis_holds_out_and_its_file_passes_the_check_of_its_splits(
    tmp_path: Path, kept_knowledge: Path
) -> None:
    recipe = tmp_path / "talks.toml"
    recipe.write_text(
        'name = "talks"\n[synthesis]\nenvironments = ["vehicle"]\ncount = 24\n'
        f"[synthesis.synthesizer]\nname = \"grounded\"\ncalls = 1500\ncache = '{kept_knowledge}'\n"
        'split = { by = "chain", share = 0.25, name = "validation" }\n'
    )
    folder = tmp_path / "talks"
    for words in (
        ["synthesize", str(recipe), "-o", str(folder)],
        ["synthesize", "check", "--against", "none", "--held-out", "chain", str(folder / "tasks.jsonl")],
    ):
        done = CliRunner().invoke(root, words, obj=App(), catch_exceptions=False)
        assert done.exit_code == 0, done.output
    splits = cw.read_tasks(folder / "tasks.jsonl").splits
    assert set(splits) == {"train", "validation"}
    assert 1 <= len(splits["validation"]) <= 0.5 * len(splits["train"])
