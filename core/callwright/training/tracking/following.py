"""Runs while they are shown: each tracker in a thread of its own, woken by the event hooks, fed from the run folder."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog

from callwright.errors import CallwrightError, DataError
from callwright.hookspecs import hookimpl
from callwright.machines.redaction import redacted
from callwright.recipe_parts import create_part
from callwright.training.run_folder import Run
from callwright.training.tracking.reading import Marks, News
from callwright.training.tracking.tracker import TrackedRun, Tracker

if TYPE_CHECKING:
    from callwright.plugins import Registry
    from callwright.recipe_file import LoadedRecipe

#: The folder of a run that trackers keep their files in.
FOLDER: Final = "trackers"
#: Seconds that a run which is over waits for a tracker.
PATIENCE: Final = 120.0

logger = structlog.get_logger(__name__)


def create_trackers(loaded: LoadedRecipe, registry: Registry) -> list[Tracker]:
    """The trackers that a recipe names. Raises :class:`callwright.errors.RecipeError` with file and line."""
    made: list[Tracker] = []
    for path, choice in loaded.choices("tracker"):
        if choice.name in [tracker.name for tracker in made]:
            raise loaded.error(f"the tracker {choice.name!r} is named twice; leave one out", *path)
        made.append(create_part(loaded, registry, "tracker", path, choice))
    return made


@contextlib.contextmanager
def followed(run: Run, trackers: Sequence[Tracker], registry: Registry) -> Iterator[None]:
    """Have trackers show a run until the end of the block, for which they are waited for as long as ``PATIENCE``."""
    if not trackers:
        yield
        return
    following = Following(run, trackers)
    try:
        with registry.hearing(following):
            yield
    finally:
        following.end()


class Following:
    """Hears of a run, and wakes its trackers. They read the folder: what they are told is that there is something."""

    def __init__(self, run: Run, trackers: Sequence[Tracker]) -> None:
        self._run = run
        self._completed = False
        self._followers = [_Follower(tracker, run) for tracker in trackers]

    @hookimpl
    def callwright_training_step(self) -> None:
        """There are new rows."""
        for follower in self._followers:
            follower.wake()

    @hookimpl
    def callwright_run_finished(self, run: Run) -> None:
        """There will be no more."""
        if run.path == self._run.path:
            self._completed = True

    def end(self) -> None:
        """Have everything sent that the folder holds, and wait for it."""
        for follower in self._followers:
            follower.end(self._completed)
        for follower in self._followers:
            follower.join(PATIENCE)


class _Follower:
    """One tracker at work for one run."""

    def __init__(self, tracker: Tracker, run: Run) -> None:
        self._tracker, self._run = tracker, run
        self._woken = threading.Event()
        self._ended: bool | None = None
        # A process that ends does not wait for one that hangs.
        self._thread = threading.Thread(target=self._follow, name=f"tracker {tracker.name}", daemon=True)
        self._left_out = False

    def wake(self) -> None:
        if not self._thread.ident:
            self._thread.start()  # not before: a trainer that goes on first takes back rows past its checkpoint
        self._woken.set()

    def end(self, completed: bool) -> None:
        self._ended = completed
        self.wake()

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)
        if self._thread.is_alive():
            self._leave_out(f"it was not done {seconds:g} seconds after the run")

    def _follow(self) -> None:
        try:
            self._send_all()
        except (Exception, SystemExit) as error:  # somebody else's program and its network: nothing of it is ours
            self._leave_out(str(error) if isinstance(error, CallwrightError) else f"{type(error).__name__}: {error}")

    def _send_all(self) -> None:
        place = _Place(self._run.path / FOLDER, self._tracker.name)
        known, marks = place.read()
        news = News(self._run, marks)
        shown: TrackedRun | None = None
        while True:
            self._woken.wait()
            self._woken.clear()
            ended = self._ended  # asked before the folder is read, so that nothing is missed
            before = marks.to_json()
            if steps := news.read():
                if shown is None:
                    shown = self._tracker.follow(self._run, known)
                    place.write(shown.id, before)  # whatever ends the process from here on, there is one run
                for step in steps:
                    shown.send(step)
                    if self._left_out:  # the run is over, and its folder may be another process' by now
                        return
                place.write(shown.id, marks.to_json())
            if ended is not None:
                if shown is not None:
                    shown.close(ended)
                return

    def _leave_out(self, why: str) -> None:
        if not self._left_out:
            self._left_out = True
            logger.warning("tracker left out", tracker=self._tracker.name, reason=redacted(why))


class _Place:
    """``trackers/NAME.json``: with which run of a tracker to go on, and from where."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = Run(folder)
        self._file = f"{name}.json"

    def read(self) -> tuple[str | None, Marks]:
        kept = self._folder.read_json(self._file)
        if kept is None:
            return None, Marks()
        try:
            known, steps, evaluations = kept["id"], kept["steps"], kept["evaluations"]
            return str(known), Marks({str(name): int(step) for name, step in steps.items()}, [*map(str, evaluations)])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"{self._folder.path / self._file} does not say how far the tracker has come; remove it, and a new "
                "run is begun there"
            ) from error

    def write(self, known: str, marks: Mapping[str, Any]) -> None:
        self._folder.path.mkdir(exist_ok=True)
        self._folder.write_json(self._file, {"id": known, **marks})
