"""What engines made comes to the step for which they made it, whenever that is read; checkpoints without seals."""

from __future__ import annotations

import os
import random
import socket
from pathlib import Path
from typing import Any

import pytest

from callwright.errors import RunError
from callwright.training.ledger.seals import SEAL, examine
from callwright.training.run_folder import Run
from callwright_plugins.openrlhf_trainer.checkpoints import Sealing, seal_checkpoint, take_up
from callwright_plugins.openrlhf_trainer.spool import SpoolReader, SpoolWriter


def writers(folder: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> list[SpoolWriter]:
    """One for each of some engines, of processes of their own."""
    made = []
    for number in range(count):
        monkeypatch.setattr(os, "getpid", lambda number=number: number)
        made.append(SpoolWriter(folder))
    monkeypatch.undo()
    return made


@pytest.mark.parametrize("seed", range(12))
def test_rollouts_are_of_the_step_for_which_they_were_sampled(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several engines, groups that are filtered out, and a trainer that hears of steps when it comes to it."""
    rng = random.Random(seed)
    engines = writers(tmp_path / "spool", rng.randint(1, 4), monkeypatch)
    steps, prompts, group = rng.randint(1, 8), rng.randint(1, 5), rng.randint(1, 4)
    filtering, slowness = rng.random() * 0.6, rng.random()
    reader = SpoolReader(tmp_path / "spool")
    made: list[tuple[int, int]] = []
    credited: list[tuple[int, int]] = []
    said: list[tuple[int, int]] = []

    def hear() -> None:
        reader.over("rollouts", *said.pop(0))
        credited.extend((step, row["number"]) for step, rows in reader.claimed("rollouts") for row in rows)

    for step in range(1, steps + 1):
        accepted = 0
        while accepted < prompts:
            taken = rng.random() >= filtering
            shown = [{"number": len(made) + place} for place in range(rng.choice([0, 0, 1, group]))]
            rng.choice(engines).write("rollouts", shown, group if taken else 0, len(made))
            made += [(step, row["number"]) for row in shown]
            accepted += taken
        said.append((step, prompts * group))
        if rng.random() > slowness:
            hear()
    while said:
        hear()
    assert credited == made
    assert reader.claimed("rollouts", last=True) == []


def test_what_cannot_be_seen_yet_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = writers(tmp_path / "spool", 2, monkeypatch)
    reader = SpoolReader(tmp_path / "spool")
    first.write("rollouts", [{"of": 1}], 2, 0)
    reader.over("rollouts", 1, 4)
    assert reader.claimed("rollouts") == []  # the other node's line is not there yet
    second.write("rollouts", [], 2, 1)
    assert reader.claimed("rollouts") == [(1, [{"of": 1}])]
    first.write("rollouts", [{"of": 2}], 2, 2)
    reader.over("rollouts", 2, 4)
    assert reader.claimed("rollouts") == []
    assert reader.claimed("rollouts", last=True) == [(2, [{"of": 2}])]
    second.write("rollouts", [{"of": 3}], 2, 3)  # of a step that was never over
    assert reader.claimed("rollouts", last=True) == []


def test_evaluations_have_the_verdicts_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engines = writers(tmp_path / "spool", 2, monkeypatch)
    for step in (2, 4):
        for place in range(3):
            engines[place % 2].write("verdicts", [{"of": step, "place": place}], 1, 9 - place)
            engines[place % 2].write("rollouts", [{"of": step}], 1, place)
    reader = SpoolReader(tmp_path / "spool")
    reader.over("verdicts", 2, 3)
    reader.over("verdicts", 3, 0)
    reader.over("verdicts", 4, 3)
    assert [(step, [(row["of"], row["place"]) for row in rows]) for step, rows in reader.claimed("verdicts")] == [
        (2, [(2, 2), (2, 1), (2, 0)]),  # in the order of prompts
        (3, []),
        (4, [(4, 2), (4, 1), (4, 0)]),
    ]


def test_a_clock_that_is_set_back_changes_no_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (writer,) = writers(tmp_path / "spool", 1, monkeypatch)
    clock = iter([10, 7, 7, 30])
    monkeypatch.setattr("callwright_plugins.openrlhf_trainer.spool.time.time_ns", lambda: next(clock))
    for number in range(4):
        writer.write("rollouts", [{"number": number}], 1, 0)
    reader = SpoolReader(tmp_path / "spool")
    for step in range(4):
        reader.over("rollouts", step, 1)
    assert reader.claimed("rollouts") == [(number, [{"number": number}]) for number in range(4)]


def test_a_line_that_is_half_there_and_a_folder_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (writer,) = writers(tmp_path / "spool", 1, monkeypatch)
    writer.write("rollouts", [{"of": 1}], 1, 0)
    path = tmp_path / "spool" / f"{socket.gethostname()}-0.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    reader = SpoolReader(tmp_path / "spool")
    reader.over("rollouts", 1, 1)
    assert reader.claimed("rollouts") == []
    path.write_bytes(whole)
    assert reader.claimed("rollouts") == [(1, [{"of": 1}])]
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        SpoolWriter(tmp_path / "file").write("rollouts", [], 1, 0)


# Checkpoints without seals --------------------------------------------------------------------------------------------


def checkpoints_of(run: Run, newest: dict[str, int]) -> Path:
    """Steps 1 to 3 of both parts, of which 3 has no seal; ``latest`` of each as given."""
    folder = run.path / "checkpoints" / "openrlhf"
    for role in ("_actor", "_critic"):
        for step in range(1, newest[role] + 1):
            (folder / role / f"global_step{step}").mkdir(parents=True)
            (folder / role / f"global_step{step}" / "model_states.pt").write_bytes(bytes([step]))
        (folder / role / "latest").write_text(f"global_step{newest[role]}")
    for step in (1, 2):
        seal_checkpoint(folder / "_actor" / f"global_step{step}", step, {})
    return folder


def test_a_newest_checkpoint_without_a_seal_is_named_and_sealed_after_the_next_step(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", recipe_text="", manifest={})
    folder = checkpoints_of(run, {"_actor": 3, "_critic": 3})
    assert examine(run.path).unsealed == ["global_step3"]
    said: list[str] = []
    found = take_up(folder, run, said.append)
    assert found is not None
    assert found.name == "global_step3"
    (word,) = said
    assert word.startswith("global_step3 has no digests: OpenRLHF ended before it said the next step")
    sealing = Sealing(folder, run.path)
    sealing.finished(3)  # what is heard with step 4
    sealing.close(stopped=False)
    assert examine(run.path).unsealed == []
    assert examine(run.path).good == "global_step3"
    assert take_up(folder, run, said.append) == found
    assert said == [word]


@pytest.mark.parametrize("behind", ["_actor", "_critic"])
def test_parts_that_do_not_agree_on_a_step_are_of_the_one_before(behind: str, tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", recipe_text="", manifest={})
    newest: dict[str, Any] = {"_actor": 3, "_critic": 3, behind: 2}
    folder = checkpoints_of(run, newest)
    said: list[str] = []
    found = take_up(folder, run, said.append)
    assert found == folder / "_actor" / "global_step2"
    assert [(folder / role / "latest").read_text() for role in ("_actor", "_critic")] == ["global_step2"] * 2
    assert any("global_step3 is not finished" in word for word in said) == (behind == "_critic")
    assert not (folder / "_actor" / "global_step3" / SEAL).exists()
