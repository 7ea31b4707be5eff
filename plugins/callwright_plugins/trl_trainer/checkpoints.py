"""Checkpoints of transformers that a run can go on from: each with a seal and what of the run's files belongs to it.

``checkpoints/checkpoint-N/`` holds what transformers writes after optimiser step N (weights or adapter, optimiser,
schedule, random states), ``callwright.json`` (step, rows, evaluations so far) and the digests of all of it. One without
digests was being written when the run ended, and is not taken.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from callwright.errors import RunError
from callwright.training.ledger.seals import SEAL, Lengths, Seal, last_good, refuse_lost_rows, seal
from callwright.training.reporter import Reporter
from callwright.training.run_folder import Run, write_atomically

STATE: Final = "callwright.json"
_PREFIX: Final = "checkpoint-"


@frozen
class State:
    """Where a run stands after ``step`` steps: rows of each JSONL file, and the evaluations so far."""

    step: int
    rows: Mapping[str, int]
    evaluation: Mapping[str, Any]


def keep(folder: Path, state: State, lengths: Lengths, count: int) -> None:
    """Finish the checkpoint that transformers wrote, and remove all sealed ones but the newest ``count``.

    Raises :class:`callwright.errors.RunError` if the disk is full or not writable.
    """
    try:
        said = {"step": state.step, "rows": dict(state.rows), "evaluation": dict(state.evaluation)}
        write_atomically(folder / STATE, json.dumps(said) + "\n")
        seal(folder, position=(state.step,), rows=lengths.now())
    except OSError as error:
        raise RunError(f"the checkpoint {folder} cannot be written: {error.strerror or error}") from error
    for old in _in_order(folder.parent)[:-count]:
        shutil.rmtree(old, ignore_errors=True)


def take_up(run: Run, reporter: Reporter) -> tuple[Path, State] | None:
    """The newest whole checkpoint, whose rows are all there; ``None`` for the beginning.

    Raises :class:`callwright.errors.RunError` if all are damaged, or if rows were lost that it had.
    """
    for half in run.checkpoints.glob(_PREFIX + "*"):
        if not (half / SEAL).is_file():
            shutil.rmtree(half, ignore_errors=True)
    found = last_good(_in_order(run.checkpoints), reporter.say, run.path)
    if found is None:
        return None
    refuse_lost_rows(Seal.of(found).lost_rows(run.path), run, reporter.say)
    try:
        said = json.loads((found / STATE).read_bytes())
        return found, State(int(said["step"]), dict(said["rows"]), dict(said["evaluation"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(
            f"{found / STATE} cannot be read ({error}); without that folder the run goes on from before"
        ) from error


def _in_order(folder: Path) -> list[Path]:
    known = [path for path in folder.glob(_PREFIX + "*") if (path / SEAL).is_file()]
    return sorted(known, key=lambda path: int(path.name.removeprefix(_PREFIX)))
