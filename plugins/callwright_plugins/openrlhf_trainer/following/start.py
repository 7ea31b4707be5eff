"""One start of OpenRLHF, and what of its work becomes rows of the run folder."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import structlog

from callwright.capability import has
from callwright.errors import CallwrightError, ComponentError, RunError
from callwright.machines.redaction import is_secret, redacted
from callwright.training.alarms import Watch, alarms_of, stopped
from callwright.training.algorithm import SamplesDynamically
from callwright.training.evaluation import Verdict, summarise
from callwright.training.ledger.seals import Seal, refuse_lost_rows, seal
from callwright.training.reporter import Reporter
from callwright.training.run_folder import METRICS, ROLLOUTS, Run, write_atomically
from callwright_plugins.openrlhf_trainer.checkpoints import Sealing, step_of, take_up
from callwright_plugins.openrlhf_trainer.following.events import EventReader
from callwright_plugins.openrlhf_trainer.following.metrics import Finished, Steps, metrics_row
from callwright_plugins.openrlhf_trainer.following.program import Program
from callwright_plugins.openrlhf_trainer.jobs import Job
from callwright_plugins.openrlhf_trainer.options import Options
from callwright_plugins.openrlhf_trainer.spool import SpoolReader
from callwright_plugins.openrlhf_trainer.translation.arguments import Translation
from callwright_plugins.openrlhf_trainer.translation.translating import Files

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline

MODULE = "openrlhf.cli.train_ppo_ray"

logger = structlog.get_logger(__name__)


class Following:
    """One start of OpenRLHF, and what of its work becomes rows of the run folder."""

    def __init__(self, options: Options, pipeline: Pipeline, run: Run, files: Files, reporter: Reporter) -> None:
        self.options, self.pipeline, self.run, self.files, self.reporter = options, pipeline, run, files, reporter
        self.evaluation: dict[str, Any] = {"before": None, "during": [], "after": None}
        self._start = uuid4().hex[:12]
        self._spool = SpoolReader(files.spool / self._start)
        self._watch = Watch()
        self._sealing: Sealing | None = None
        self._heard = time.monotonic()
        self._steps = 0
        self._stopped = False
        self._events = EventReader(files.events)
        self._logged = Steps(
            filtered=has(pipeline.algorithm, SamplesDynamically) and pipeline.algorithm.dynamic_sampling
        )

    def start(self, python: str, translated: Translation) -> None:
        """Train from the newest checkpoint to the end; the final model is then in its place."""
        files, options = self.files, self.options
        done = self._take_up()
        if not done and self.evaluation["before"] is None:
            self._measure_before(python)
        words = [python, "-m", MODULE, *translated.argv, *(["--ckpt.load_enable"] if done else [])]
        write_atomically(files.argv, json.dumps(words[3:], indent=1) + "\n")
        write_atomically(files.script, script(words, self._environment()))
        files.script.chmod(0o755)
        ending = None
        if options.job_address is not None:
            name = re.sub(r"[^A-Za-z0-9_.-]+", "-", f"callwright-{self.run.path.name}-{self._start}")
            job = Job(python, options.job_address, name)
            words, ending = job.submitted(words, self._environment()), job.stopped()
            self.reporter.say(f"submitted to {options.job_address} as the job {name}")
        program = Program(words, self._environment(), files.log, ending)
        self._heard = time.monotonic()
        self.reporter.start("training", options.steps, done)
        self._sealing = Sealing(files.checkpoints, self.run.path)
        status = None
        try:
            try:
                status = program.follow(lambda: self._look(program))
                self._read_on(last=status == 0)
            except BaseException:
                with contextlib.suppress(CallwrightError):  # what ended the run is what is said
                    self._read_on()
                raise
            finally:
                self._keep_rollouts(last=True)
                self._keep_evaluations(last=True)
            if not status:
                self._sealing.finished(options.steps)
        finally:
            self._sealing.close(stopped=status != 0)
        self.reporter.finish()
        if files.failure.exists():
            said = json.loads(files.failure.read_bytes())
            raise ComponentError(f"an episode ended the run: {said['error']}: {said['message']} (in {files.failure})")
        if status:
            raise program.failed(status, files.log)
        if not (files.model / "config.json").is_file():
            raise program.failed(status, files.log)
        if self._events.unread or (not self._steps and done < options.steps):
            lacking = f"{self._nothing_logged()}: metrics.jsonl lacks steps"
            self._warn(f"OpenRLHF trained, and {lacking}; {files.log} is what it said")
        shutil.rmtree(files.final, ignore_errors=True)
        try:
            seal(files.model)
            files.model.rename(files.final)
        except OSError as error:
            raise RunError(f"{files.final} cannot be written: {error.strerror or error}") from error

    def _environment(self) -> dict[str, str]:
        fixed = {"PYTHONUNBUFFERED": "1", "RAY_DEDUP_LOGS": "0", "TOKENIZERS_PARALLELISM": "false"}
        address = {"RAY_ADDRESS": self.options.ray_address} if self.options.ray_address else {}
        return {**fixed, **address, **self.options.environment}

    def _take_up(self) -> int:
        """The step of the checkpoint from which OpenRLHF will go on; everything after it is forgotten."""
        files = self.files
        checkpoint = take_up(files.checkpoints, self.run, self.reporter.say)
        done = step_of(checkpoint.name) if checkpoint is not None else 0
        if checkpoint is not None:
            refuse_lost_rows(Seal.of(checkpoint).lost_rows(self.run.path), self.run, self.reporter.say)
        else:
            # At most half of a first checkpoint, which would not load.
            shutil.rmtree(files.checkpoints, ignore_errors=True)
        shutil.rmtree(files.spool, ignore_errors=True)
        shutil.rmtree(files.model, ignore_errors=True)
        files.failure.unlink(missing_ok=True)
        for name in (METRICS, ROLLOUTS):
            self.run.truncate(name, sum(1 for row in self.run.rows(name) if row["step"] <= done))
        rules = alarms_of(self.pipeline.algorithm)
        self._watch = Watch(self.run.rows(METRICS), self.options.not_finite_limit, rules)
        written = self.run.read_json("evaluation.json")
        if written:
            during = [one for one in [*written["during"], written["after"]] if one and one.get("step", 0) <= done]
            self.evaluation["during"] = during
            self.evaluation["before"] = written["before"]
        self._write_progress(done)
        return done

    def _measure_before(self, python: str) -> None:
        """The evaluation before the first step. Training is what was asked for: it goes on without one that fails."""
        if not self.options.evaluate_before:
            return
        if self.options.job_address is not None:
            self.reporter.say(
                "not evaluated before the first step: the GPUs are the cluster's; use callwright evaluate"
            )
            return
        self.reporter.start("evaluation", 1)
        parallel = {"tensor_parallel_size": self.options.tensor_parallel}
        done = subprocess.run(
            [python, "-m", "callwright_plugins.openrlhf_trainer.before", str(self.files.config), json.dumps(parallel)],
            capture_output=True, text=True, errors="replace", check=False, env={**os.environ, **self._environment()},
        )  # fmt: skip
        self.reporter.finish()
        said = (done.stdout if not done.returncode else done.stderr).strip().splitlines()
        try:
            made = None if done.returncode else json.loads(said[-1])
        except (ValueError, IndexError):
            made = None
        if not isinstance(made, dict):
            last = said[-1].removeprefix("error: ") if said else f"it ended with {done.returncode} and said nothing"
            self._warn(f"not evaluated before the first step: {last[:300]}")
            return
        self.evaluation["before"] = made
        self.run.write_json("evaluation.json", self.evaluation)

    def _write_progress(self, step: int) -> None:
        write_atomically(self.files.progress, json.dumps({"step": step, "start": self._start}) + "\n")

    def _look(self, program: Program) -> bool:
        """Read what there is; whether the program must end now. On the way, whether it has been silent for too long."""
        self._read_on()
        if time.monotonic() - self._heard > 60 * self.options.silent_after:
            self._heard = time.monotonic()
            last = f"its last line is {program.last_line!r:.200}" if program.last_line else "it has printed nothing"
            nothing = "" if self._events.seen else f", and {self._nothing_logged()}"
            self._warn(
                f"no step and no evaluation for {self.options.silent_after:g} minutes; {last}{nothing}. "
                f"{self.files.log} has the rest, and docs/openrlhf.md says what to look at first (When it hangs)"
            )
        return self.files.failure.exists()

    def _nothing_logged(self) -> str:
        """Why there is no step, as far as the files of its logger say."""
        for path, at in self._events.unread.items():
            return f"{path} is damaged at byte {at}"
        return f"{self.files.events} has no {'step' if self._events.seen else 'file'} of this start"

    def _warn(self, text: str) -> None:
        logger.warning(text)
        self.reporter.say(f"warning: {text}")

    def _read_on(self, *, last: bool = False) -> None:
        """Rows for the steps and evaluations that are over. The ``last`` time, after an end in good order, of all."""
        if self._stopped:
            return
        for finished in self._logged.over(self._events.read()):
            self._over(finished)
        for finished in self._logged.rest() if last else ():
            self._over(finished)

    def _over(self, finished: Finished) -> None:
        self._heard = time.monotonic()
        self._steps += not finished.evaluation
        if finished.evaluation:
            self._evaluated(finished)
        else:
            self._stepped(finished)

    def _stepped(self, finished: Finished) -> None:
        if self._sealing is not None:  # OpenRLHF says this after it wrote the checkpoint of the step before
            self._sealing.finished(finished.step - 1)
        self._write_progress(finished.step)
        row = metrics_row(finished)
        found = self._watch.look(row)
        row["alarm"] = found.text
        for reason in found.news:
            logger.warning("alarm", step=finished.step, reason=reason)
        self.run.append(METRICS, [row])
        samples = finished.figures.get("rollout/num_samples")
        self._spool.over(
            "rollouts", finished.step, round(samples) if samples else self.options.prompts * self.options.group
        )
        self._keep_rollouts()
        hook = self.pipeline.registry
        if hook.listens("callwright_training_step"):
            hook.hook.callwright_training_step(metrics=row)
        shown = {"reward": row["reward"], "answered": row.get("answered")}
        self.reporter.advance(**{name: value for name, value in shown.items() if value is not None})
        if found.stop is not None:  # the program is ended on the way out, and goes on from its own checkpoint
            self._stopped = True
            raise RunError(stopped(finished.step, found.stop))

    def _evaluated(self, finished: Finished) -> None:
        if self._sealing is not None:  # this step's checkpoint was written before the evaluation began
            self._sealing.finished(finished.step)
        samples = finished.figures.get("eval_num_samples")
        if samples is None and finished.figures:
            samples = json.loads(self.files.prompts.read_bytes())["evaluation_rows"]
        self._spool.over("verdicts", finished.step, round(samples or 0))
        self._keep_evaluations()

    def _keep_rollouts(self, *, last: bool = False) -> None:
        for step, shown in self._spool.claimed("rollouts", last=last):
            if shown:
                self.run.append(ROLLOUTS, [{"step": step, **one} for one in shown])

    def _keep_evaluations(self, *, last: bool = False) -> None:
        for step, rows in self._spool.claimed("verdicts", last=last):
            if not rows:
                continue
            made = {"step": step, **summarise([Verdict(**one) for one in rows])}
            if step >= self.options.steps:
                self.evaluation["after"] = made
            else:
                self.evaluation["during"].append(made)
            self.run.write_json("evaluation.json", self.evaluation)


def script(words: list[str], environment: Mapping[str, str]) -> str:
    """The same start as a shell script, one flag a line."""
    lines: list[str] = []
    for word in words[3:]:
        if word.startswith("--"):
            lines.append(shlex.quote(word))
        else:
            lines[-1] += " " + shlex.quote(word)
    exports = "".join(
        # A run folder is passed on: whoever starts this sets the secrets.
        f"# export {name}=…\n" if is_secret(name) else f"export {name}={shlex.quote(redacted(value))}\n"
        for name, value in sorted(environment.items())
    )
    command = " \\\n  ".join([shlex.join(words[:3]), *lines])
    about = "# The start of OpenRLHF that Callwright made last. It does not fill metrics.jsonl.\n"
    return f"#!/bin/sh\n{about}{exports}exec {command}\n"
