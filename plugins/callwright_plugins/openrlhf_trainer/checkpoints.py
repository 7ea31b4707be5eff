"""OpenRLHF's checkpoints: which is the newest that is whole, and seals for what it has finished.

    checkpoints/openrlhf/_actor/{global_step50/…, latest}, and _critic likewise

OpenRLHF writes them from its own processes, by DeepSpeed, and loads the one that ``latest`` names. It says that a step
is done before it writes that step's checkpoint, waits for it, and then evaluates: so what is of an earlier step than
the last one said, or of one whose evaluation was said, is finished, and gets a seal
(:mod:`callwright.training.ledger.seals`). One that was not sealed is taken as it is, with a word, if its parts agree on
it; it gets its seal once OpenRLHF has gone on from it by a step.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

import structlog

from callwright.training.ledger.seals import SEAL, SET_ASIDE, Lengths, last_good, seal, set_aside
from callwright.training.run_folder import METRICS, ROLLOUTS, Run, write_atomically

ACTOR: Final = "_actor"
CRITIC: Final = "_critic"
LATEST: Final = "latest"
#: Seconds that a run which ends in an error or by a signal waits for digests.
PATIENCE: Final = 10.0

logger = structlog.get_logger(__name__)


def step_of(tag: str) -> int:
    """The step of a checkpoint's name, such as ``global_step50``; 0 for another name."""
    digits = tag.rpartition("global_step")[2]
    return int(digits) if digits.isdecimal() and not tag.startswith(SET_ASIDE) else 0


def newest_tag(checkpoints: Path) -> str:
    """The checkpoint that OpenRLHF would load; empty if there is none."""
    tag = _latest(checkpoints / ACTOR)
    return tag if step_of(tag) and (checkpoints / ACTOR / tag).is_dir() else ""


def _latest(folder: Path) -> str:
    try:
        return (folder / LATEST).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _half_written(checkpoints: Path, tag: str) -> bool:
    """Whether the critic's part is not finished: both are written side by side, and each at its end in ``latest``."""
    if (checkpoints / ACTOR / tag / SEAL).is_file() or not (checkpoints / CRITIC).is_dir():
        return False
    return _latest(checkpoints / CRITIC) != tag or not (checkpoints / CRITIC / tag).is_dir()


def take_up(checkpoints: Path, run: Run, say: Callable[[str], object]) -> Path | None:
    """The checkpoint from which OpenRLHF will go on, the newest that is whole; ``None`` for the beginning.

    Damaged ones are set aside, with a word, and ``latest`` names the one before them, of both parts. Raises
    :class:`callwright.errors.RunError` if all are damaged.
    """
    tag = newest_tag(checkpoints)
    newest = step_of(tag)
    half = bool(tag) and _half_written(checkpoints, tag)
    if half:
        say(f"{tag} is not finished: the critic's part of it is not there; going on without it")
    known = [
        path
        for path in _folders(checkpoints / ACTOR)
        if (path.name == tag and not half)
        or ((path / SEAL).is_file() and step_of(path.name) <= (newest or step_of(path.name)))
    ]
    found = last_good(sorted(known, key=lambda path: (step_of(path.name), path.name == tag)), say, run.path)
    if found is not None and not (found / SEAL).is_file():
        say(
            f"{found.name} has no digests: OpenRLHF ended before it said the next step, so that nothing shows whether "
            "it is whole. It is taken as it is, and gets digests after the next step"
        )
    for role in (ACTOR, CRITIC):
        _move_out(checkpoints / role)
        for path in _folders(checkpoints / role):
            if found is None or step_of(path.name) > step_of(found.name):
                (path / SEAL).unlink(missing_ok=True)  # its files are written anew
        if found is not None and (checkpoints / role).is_dir() and _latest(checkpoints / role) != found.name:
            write_atomically(checkpoints / role / LATEST, found.name)
    return found


def _folders(folder: Path) -> Iterator[Path]:
    yield from (path for path in folder.glob("*") if path.is_dir() and step_of(path.name))


def _move_out(folder: Path) -> None:
    """What was set aside goes out of a folder that OpenRLHF counts and clears."""
    for path in folder.glob(f"{SET_ASIDE}*"):
        name = f"openrlhf{folder.name}-{path.name.removeprefix(SET_ASIDE)}"
        set_aside(path.rename(folder.parents[1] / name))


class Sealing:
    """Seals checkpoints in a thread of its own: the digests of many gigabytes take a while."""

    def __init__(self, checkpoints: Path, run: Path) -> None:
        self._checkpoints = checkpoints
        self._lengths = Lengths(run, (METRICS, ROLLOUTS))
        self._asked: SimpleQueue[tuple[int, Mapping[str, Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="callwright seals", daemon=True)
        self._thread.start()

    def finished(self, step: int) -> None:
        """Everything up to ``step`` is written: its checkpoint, and its rows, which are the last ones there."""
        if any(step_of(path.name) == step for path in _folders(self._checkpoints / ACTOR)):
            self._asked.put((step, self._lengths.now()))

    def close(self, *, stopped: bool) -> None:
        """No more. Waits for the digests; where the run is being ``stopped`` only a while: no seal is no damage."""
        self._asked.put(None)
        self._thread.join(PATIENCE if stopped else None)

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None:
            step, rows = asked
            for path in _folders(self._checkpoints / ACTOR):
                if step_of(path.name) == step and not (path / SEAL).exists():
                    try:
                        seal_checkpoint(path, step, rows)
                    except OSError as error:  # OpenRLHF keeps only the newest
                        logger.info("a checkpoint was not sealed", checkpoint=path.name, reason=str(error))


def seal_checkpoint(actor: Path, step: int, rows: Mapping[str, Any]) -> None:
    """Write the digests of a checkpoint, and first of the critic's. Raises :class:`OSError`."""
    critic = actor.parent.parent / CRITIC / actor.name
    if critic.is_dir():
        seal(critic)
    needs = [f"../{CRITIC}/{actor.name}"] if critic.is_dir() else []
    seal(actor, position=(step,), needs=needs, rows=rows)
