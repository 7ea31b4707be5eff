"""One process of a run with several: ``accelerate launch -m callwright_plugins.trl_trainer.worker CONFIGURATION``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from attrs import evolve

from callwright.errors import CallwrightError
from callwright.options import read_options
from callwright.pipeline import build_pipeline
from callwright.plugins import PluginSource
from callwright.recipe_file import load_recipe
from callwright.training.run_folder import Run, write_atomically
from callwright_plugins.trl_trainer.base import Base
from callwright_plugins.trl_trainer.launching import FAILURE
from callwright_plugins.trl_trainer.options import Options


def main(configuration: str) -> int:
    """Take part in the run that a file describes; 1 where it ended by a foreseen error, which is written beside it."""
    path = Path(configuration)
    try:
        _take_part(json.loads(path.read_bytes()))
    except CallwrightError as error:
        said = {"error": type(error).__name__, "message": str(error)}
        write_atomically(path.parent / FAILURE, json.dumps(said) + "\n")
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _take_part(told: dict[str, Any]) -> None:
    from callwright.training.reporter import SILENT
    from callwright_plugins.trl_trainer.course import Course

    blocked = told["blocked"]
    modules = tuple((str(name), str(module)) for name, module in told["modules"])
    registry = PluginSource(None if blocked is None else frozenset(blocked), modules).load()
    run = evolve(Run(Path(told["run"])), accept_changes=bool(told["accept_changes"]))
    pipeline = build_pipeline(load_recipe(str(run.path / "recipe.toml")), registry)
    options = read_options(Options, told["options"], "the trainer 'trl'")
    with pipeline:
        Course(options, pipeline, run, Base(**told["base"]), SILENT).go()
    leave_together()


def leave_together() -> None:
    """Wait until all processes have done their part, and take leave of one another.

    The first one still writes while the others have nothing left to do. One that just ends may be aborted on the way
    out by threads of its own that wait for the others, and the launcher then stops the first one, too.
    """
    from torch import distributed

    if distributed.is_available() and distributed.is_initialized():
        distributed.barrier()
        distributed.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
