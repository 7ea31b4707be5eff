"""Several processes for one run: a launcher starts them, and this one follows what they write."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import asdict

from callwright.errors import RunError, UsageError
from callwright.training.reporter import Reporter
from callwright.training.run_folder import METRICS, Run, write_atomically
from callwright_plugins.trl_trainer.base import FINAL, Base
from callwright_plugins.trl_trainer.options import Options

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline

FOLDER: Final = "trl"
#: In the folder ``trl`` of a run: what the processes are told, what they print, and why they ended.
CONFIGURATION: Final = "configuration.json"
LOG: Final = "processes.log"
FAILURE: Final = "failure.json"
_LOOK_EVERY: Final = 0.5  # seconds
_PATIENCE: Final = 10.0  # seconds


def launch(options: Options, pipeline: Pipeline, run: Run, base: Base, reporter: Reporter) -> None:
    """Train in ``options.processes`` processes. Returns when all are over.

    Raises :class:`callwright.errors.RunError` with what one of them said, or with the end of their log, and
    :class:`callwright.UsageError` for a pipeline that other processes cannot make by its recipe.
    """
    folder = run.path.resolve() / FOLDER
    folder.mkdir(exist_ok=True)
    (folder / FAILURE).unlink(missing_ok=True)
    write_atomically(folder / CONFIGURATION, json.dumps(_configuration(options, pipeline, run, base), indent=2) + "\n")
    words = _words(options, folder / CONFIGURATION)
    with (folder / LOG).open("ab") as log:
        process = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, env=_environment(options))
        try:
            _follow(process, options, run, reporter)
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(_PATIENCE)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
    if process.returncode or not (run.checkpoints / FINAL).is_dir():
        raise _failed(folder, process.returncode)


def _words(options: Options, configuration: Path) -> list[str]:
    """The command: accelerate's launcher, and torch's for the CPU, where accelerate would ask for MPI."""
    count, port = str(options.processes), str(_free_port())
    module = ["-m", "callwright_plugins.trl_trainer.worker", str(configuration)]
    if options.device == "cpu":
        own = ["--nproc_per_node", count, "--master_addr", "127.0.0.1", "--master_port", port]
        return [sys.executable, "-m", "torch.distributed.run", *own, *options.launch, *module]
    own = ["--num_processes", count, "--num_machines", "1", "--main_process_port", port]
    if not any(word.startswith("--config_file") for word in options.launch):
        own += ["--mixed_precision", "no", "--dynamo_backend", "no"]  # GRPOConfig says which precision
        if options.processes > 1 and not any(word.startswith("--use_") for word in options.launch):
            own.append("--multi_gpu")
    return [sys.executable, "-m", "accelerate.commands.launch", *own, *options.launch, *module]


def _environment(options: Options) -> dict[str, str]:
    here = os.pathsep.join(path for path in sys.path if path)
    fixed = {"PYTHONPATH": here, "TOKENIZERS_PARALLELISM": "false"}
    if options.device == "cpu":
        fixed |= {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": str(options.threads)}
    return {**os.environ, **fixed}


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


def _follow(process: subprocess.Popen[bytes], options: Options, run: Run, reporter: Reporter) -> None:
    """Tell the reporter of the rows that the processes write."""
    reporter.start("training", options.steps)
    told = 0
    while True:
        over = process.poll() is not None
        rows = run.rows(METRICS)
        if len(rows) > told:
            shown = {name: rows[-1][name] for name in ("reward", "answered") if rows[-1].get(name) is not None}
            reporter.advance(len(rows) - told, **shown)
            told = len(rows)
        if over:
            break
        time.sleep(_LOOK_EVERY)
    reporter.finish()


def _configuration(options: Options, pipeline: Pipeline, run: Run, base: Base) -> dict[str, Any]:
    """What a process needs to make the same pipeline.

    Raises :class:`callwright.UsageError` for objects that an embedder put into this one.
    """
    recipe = pipeline.recipe.recipe
    named = pipeline.registry.create("reward recipe", recipe.reward.name, **recipe.reward.options)
    for what, given, expected in (
        ("corpus", pipeline.corpus.name, recipe.corpus.name),
        ("environment", pipeline.environment is not None, recipe.environment is not None),
        ("rewards", list(pipeline.reward.weights), list(named.weights)),
    ):
        if given != expected:
            raise UsageError(
                f"the {what} of this pipeline is an object of this process, and the processes of a run make theirs by "
                "the recipe; register it in a plugin and name it there, or train in one process"
            )
    source = pipeline.registry.description()
    return {
        "run": str(run.path.resolve()),
        "blocked": None if source.blocked is None else sorted(source.blocked),
        "modules": list(source.modules),
        "options": options.model_dump(mode="json", exclude_unset=True),
        "base": {**asdict(base), "template_options": dict(base.template_options)},
        "accept_changes": run.accept_changes,
    }


def _failed(folder: Path, status: int | None) -> RunError:
    try:
        said = json.loads((folder / FAILURE).read_bytes())
        return RunError(f"a process of the run ended: {said['message']}")
    except (OSError, ValueError, KeyError):
        pass
    lines = (folder / LOG).read_text(encoding="utf-8", errors="replace").strip().splitlines()[-20:]
    end = "\n".join(lines)
    return RunError(f"the processes of the run ended with status {status}; the end of {folder / LOG}:\n{end}")
