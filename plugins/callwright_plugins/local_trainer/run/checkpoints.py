"""Checkpoints: folders that appear whole or not at all, and hold everything that a run needs to go on.

``checkpoints/<phase>-<step>/`` holds ``model.safetensors``, ``training.pt`` (AdamW, global generators) and
``state.json`` (phase, step, evaluations so far, number of rows of each JSONL file); with a critic also
``critic.safetensors``, and its AdamW in ``training.pt``; with a staleness ``earlier-<updates>.safetensors``, the
weights that sample the next steps. ``checkpoints/reference/`` holds the frozen reference, which is written once;
``checkpoints/final/`` is a Hugging Face directory. Each has the digests of its files
(:mod:`callwright.training.ledger.seals`).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Final, Literal

import torch
from attrs import frozen
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from callwright.errors import RunError
from callwright.training.ledger.seals import SEAL, Lengths, Seal, last_good, refuse_lost_rows, seal
from callwright.training.reporter import Reporter
from callwright.training.run_folder import Run
from callwright_plugins.local_trainer.learning.critic import Critic
from callwright_plugins.local_trainer.models.policy import set_weights, weights
from callwright_plugins.local_trainer.randomness import global_state, set_global_state

Phase = Literal["warm", "train"]
PHASES: Final[tuple[Phase, ...]] = ("warm", "train")
REFERENCE: Final = "reference"
_SCRATCH: Final = ".part-"


@frozen
class State:
    """Where a run stands: ``step`` steps of ``phase`` are done."""

    phase: Phase
    step: int
    rows: Mapping[str, int]
    evaluation: Mapping[str, Any]
    kl_weight: float | None = None  # of an algorithm that moves it


def write_folder(path: Path, fill: Callable[[Path], object], **sealed: Any) -> None:
    """Make a folder in one atomic step: ``fill`` writes a scratch folder, which is forced to the disk and renamed.

    ``sealed`` is what its seal says beside the digests of its files.

    Raises :class:`callwright.errors.RunError` if the disk is full or not writable; nothing that was there before is
    lost.
    """
    scratch = path.with_name(_SCRATCH + path.name)
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        scratch.mkdir(parents=True)
        fill(scratch)
        seal(scratch, **sealed)
        for file in scratch.rglob("*"):
            if file.is_file():
                _force(file)
        if path.exists():
            remove_folder(path)
        scratch.rename(path)
        _force(path.parent)
    except (OSError, SafetensorError, RuntimeError) as error:
        shutil.rmtree(scratch, ignore_errors=True)
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise RunError(f"the checkpoint {path} cannot be written: {reason}") from error


def remove_folder(path: Path) -> None:
    """Remove a folder so that no half of it is ever seen under its name."""
    doomed = path.with_name(f"{_SCRATCH}old-{path.name}")
    shutil.rmtree(doomed, ignore_errors=True)
    path.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def _force(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def save(
    folder: Path,
    state: State,
    model: Any,
    optimiser: torch.optim.Optimizer,
    keep: int | None = None,
    critic: Critic | None = None,
    *,
    earlier: Mapping[int, Any] | None = None,
    lengths: Lengths | None = None,
    needs: Iterable[str] = (),
) -> None:
    """Write the checkpoint of a state and remove all but the ``keep`` newest (none without it).

    ``earlier`` are models by the number of updates that made them, which sample what is trained on next. ``lengths``
    are those of the run's JSONL files; ``needs`` are the folders beside it that it is of no use without.
    """

    def fill(scratch: Path) -> None:
        save_weights(model, scratch / "model.safetensors")
        training = {"optimiser": optimiser.state_dict(), "random": global_state()}
        if critic is not None:
            save_weights(critic.model, scratch / "critic.safetensors")
            training["critic"] = critic.optimiser.state_dict()
        for updates, old in (earlier or {}).items():
            save_weights(old, scratch / _earlier(updates))
        torch.save(training, scratch / "training.pt")
        (scratch / "state.json").write_text(
            json.dumps(
                {
                    "phase": state.phase,
                    "step": state.step,
                    "rows": dict(state.rows),
                    "evaluation": dict(state.evaluation),
                    **({} if state.kl_weight is None else {"kl_weight": state.kl_weight}),
                },
                indent=1,
            ),
            encoding="utf-8",
        )

    write_folder(
        folder / f"{state.phase}-{state.step:06d}",
        fill,
        position=(PHASES.index(state.phase), state.step),
        needs=tuple(needs),
        rows=None if lengths is None else lengths.now(),
    )
    for old in in_order(folder)[:-keep] if keep else ():
        remove_folder(old)


def newest(folder: Path, run: Path | None = None, say: Callable[[str], object] = str) -> Path | None:
    """The checkpoint from which to go on: the newest that is whole. Scratch folders of a crash are removed.

    Damaged ones are set aside, and ``say`` hears of it. Raises :class:`callwright.errors.RunError` if all are damaged.
    """
    for scratch in folder.glob(_SCRATCH + "*"):
        shutil.rmtree(scratch, ignore_errors=True)
    return last_good(in_order(folder), say, run or folder)


def take_up(run: Run, reporter: Reporter) -> Path | None:
    """The checkpoint from which a run goes on, whose rows are all there; ``None`` for the beginning.

    Raises :class:`callwright.errors.RunError` naming the files whose rows were lost or changed, unless the run goes on
    in spite of it (``Run.accept_changes``), which its ledger then says.
    """
    checkpoint = newest(run.checkpoints, run.path, reporter.say)
    if checkpoint is None:
        return None
    sealed = Seal.of(checkpoint)
    if sealed.sealed:
        lost = sealed.lost_rows(run.path)
    else:  # of an earlier version, which counted rows and no more
        counted = {name: len(run.rows(name)) for name in read_state(checkpoint).rows}
        lost = [
            f"{name} is not as {checkpoint.name} left it: it holds {counted[name]} of {rows} rows"
            for name, rows in read_state(checkpoint).rows.items()
            if counted[name] < rows
        ]
    refuse_lost_rows(lost, run, reporter.say)
    return checkpoint


def read_state(checkpoint: Path) -> State:
    """What a checkpoint says of itself. Raises :class:`callwright.errors.RunError` if it cannot be read."""
    try:
        return _state_of(json.loads((checkpoint / "state.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, RecursionError) as error:
        raise _unreadable(checkpoint, ValueError(f"state.json: {error}")) from error


def _state_of(said: Any) -> State:
    """The state that a file says. Raises :class:`ValueError` and :class:`KeyError` for one that is no state."""
    if not isinstance(said, dict):
        raise ValueError(f"expected an object, found {type(said).__name__}")
    rows, evaluation, weight = said["rows"], said["evaluation"], said.get("kl_weight")
    if said["phase"] not in PHASES or type(said["step"]) is not int or said["step"] < 0:
        raise ValueError("'phase' and 'step' say no step of a run")
    if not isinstance(rows, dict) or not all(type(count) is int and count >= 0 for count in rows.values()):
        raise ValueError("'rows' are no numbers of rows by file")
    if not isinstance(evaluation, dict) or type(weight) not in (int, float, type(None)):
        raise ValueError("'evaluation' is no object, or 'kl_weight' no number")
    return State(said["phase"], said["step"], rows, evaluation, weight)


def restore(checkpoint: Path, model: Any, optimiser: torch.optim.Optimizer, critic: Critic | None = None) -> None:
    """Put weights, optimisers and global generators back.

    Raises :class:`callwright.errors.RunError` if they are damaged.
    """
    load_weights(model, checkpoint / "model.safetensors")
    if critic is not None:
        load_weights(critic.model, checkpoint / "critic.safetensors")
    try:
        training = torch.load(checkpoint / "training.pt", map_location="cpu", weights_only=True)
        optimiser.load_state_dict(training["optimiser"])
        if critic is not None:
            critic.optimiser.load_state_dict(training["critic"])
        set_global_state(training["random"])
    except UnpicklingError as error:  # torch's own text advises to load it with less care
        reason = "training.pt is damaged or holds code, which was not run: a checkpoint has tensors and plain values"
        raise _unreadable(checkpoint, ValueError(reason)) from error
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, AttributeError, EOFError) as error:
        raise _unreadable(checkpoint, error) from error


def earlier_weights(checkpoint: Path | None, updates: int) -> Mapping[str, Any]:
    """The weights after so many updates that a checkpoint keeps. Raises :class:`callwright.errors.RunError`."""
    if checkpoint is None:
        raise RunError(f"no checkpoint has the weights after {updates} updates")
    try:
        tensors: Mapping[str, Any] = load_file(checkpoint / _earlier(updates))
    except (OSError, SafetensorError) as error:
        raise _unreadable(checkpoint / _earlier(updates), error) from error
    return tensors


def _earlier(updates: int) -> str:
    return f"earlier-{updates:06d}.safetensors"


def save_weights(model: Any, path: Path) -> None:
    """Write the trained tensors."""
    save_file({name: tensor.contiguous().cpu() for name, tensor in weights(model).items()}, path)


def load_weights(model: Any, path: Path) -> None:
    """Read the trained tensors. Raises :class:`callwright.errors.RunError` if they cannot be read."""
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise _unreadable(path, error) from error
    set_weights(model, tensors)


def _unreadable(path: Path, error: Exception) -> RunError:
    return RunError(f"{path} cannot be read ({error}); remove that folder to go on from the checkpoint before it")


def in_order(folder: Path) -> list[Path]:
    """All checkpoints of a run, from the oldest to the newest."""
    return sorted((path for phase in PHASES for path in folder.glob(f"{phase}-*") if _is_one(path)), key=_order)


def _is_one(path: Path) -> bool:
    return (path / "state.json").is_file() or (path / SEAL).is_file()


def _order(path: Path) -> tuple[int, int]:
    phase, _, step = path.name.rpartition("-")
    return PHASES.index(phase), int(step)
