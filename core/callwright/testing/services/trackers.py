"""Conformance checks for trackers, tried on a run folder of a few steps."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from callwright.testing.expectations import expect, expect_members, expect_name, never_raises, shown
from callwright.testing.texts import NASTY
from callwright.training.run_folder import Run
from callwright.training.tracking.rows import cells_of
from callwright.training.tracking.tracker import Cell, Step, TrackedRun, Tracker

_RECIPE: Final = (
    'name = "tried"\ncorpus = "toolworld-mini-v1"\n\n[model.tiny]\nwidth = 16\n\n[trainer]\nname = "local"\n'
)
_FIGURES: Final = {"reward": 0.5, "scores/a name, with: marks": 1.0, "evaluation/by_depth/2/accuracy": 0.0}


def check_tracker(tracker: Tracker) -> None:
    """It has the members of :class:`callwright.training.Tracker` and a name."""
    expect_members(tracker, Tracker)
    expect_name(tracker)


def check_follow(tracker: Tracker) -> None:
    """It shows steps in parts, with figures, with rollouts of whatever a model wrote, and with neither."""
    with _run() as run, never_raises("following a run"):
        shown_run = tracker.follow(run, None)
        expect_members(shown_run, TrackedRun)
        for step in (Step(0), Step(0, _FIGURES), Step(1, _FIGURES, _rollouts()), Step(1, {"kl": 1e-300}), Step(7)):
            shown_run.send(step)
        shown_run.close(True)
        known = shown_run.id
        expect(isinstance(known, str) and known != "", f"id must be a text that is not empty, but is {shown(known)}")


def check_goes_on(tracker: Tracker) -> None:
    """With the id of a run that was stopped it goes on with that one."""
    with _run() as run, never_raises("going on with a run"):
        first = tracker.follow(run, None)
        first.send(Step(1, _FIGURES, _rollouts()))
        first.close(False)
        known = first.id
        again = tracker.follow(run, known)
        again.send(Step(2, _FIGURES, _rollouts()))
        again.close(True)
    expect(again.id == known, f"it was to go on with {shown(known)}, and its id is {shown(again.id)}")


def _rollouts() -> tuple[dict[str, Cell], ...]:
    row = {"task": "t-1", "depth": 2, "query": "?", "total": None, "scores": {"a": {"value": 0.5, "evidence": []}}}
    return tuple(cells_of({**row, "completion": text}) for text in NASTY)


@contextmanager
def _run() -> Iterator[Run]:
    # What a tracker leaves open stands in it: a folder that cannot be removed is no finding.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield Run.create(Path(folder) / "tried", recipe_text=_RECIPE, manifest={})


TRACKER_CHECKS: Final = (check_tracker, check_follow, check_goes_on)
