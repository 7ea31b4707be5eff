"""``trainer = "openrlhf"``: what a recipe names. Writes a folder, starts OpenRLHF, and follows it into the run."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import structlog

from callwright.capability import has
from callwright.errors import ComponentError, RunError, UsageError, raise_together
from callwright.machines.redaction import is_secret, redacted
from callwright.options import read_options
from callwright.training.alarms import Watch, alarms_of, stopped
from callwright.training.algorithm import ActorCritic, SamplesDynamically
from callwright.training.evaluation import Verdict, summarise
from callwright.training.ledger.seals import Seal, refuse_lost_rows, seal
from callwright.training.reporter import SILENT, Reporter
from callwright.training.run_folder import METRICS, ROLLOUTS, Run, write_atomically
from callwright.walk.components.capabilities import Scheduled
from callwright_plugins.openrlhf_trainer.checkpoints import Sealing, step_of, take_up
from callwright_plugins.openrlhf_trainer.configuration import Configuration
from callwright_plugins.openrlhf_trainer.following import Program
from callwright_plugins.openrlhf_trainer.interpreter import (
    VERSION,
    NoOpenRLHF,
    check,
    find_interpreter,
    how_to_install,
    requirements,
)
from callwright_plugins.openrlhf_trainer.jobs import Job
from callwright_plugins.openrlhf_trainer.memory import plan
from callwright_plugins.openrlhf_trainer.metrics import Finished, metrics_row, names_a_step, read_line
from callwright_plugins.openrlhf_trainer.options import Model, Options, split_local
from callwright_plugins.openrlhf_trainer.spool import SpoolReader
from callwright_plugins.openrlhf_trainer.translation.arguments import Translation
from callwright_plugins.openrlhf_trainer.translation.translating import Files, episode_limits, translate

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline
    from callwright.recipe_file import LoadedRecipe

MODULE = "openrlhf.cli.train_ppo_ray"

ENTRIES: Mapping[str, str] = {
    "agent": '''"""What OpenRLHF loads in each of its engines. Generated."""

from openrlhf.utils.agent import AgentExecutorBase

from callwright_plugins.openrlhf_trainer.agent import Agent

CONFIG = {config!r}


class AgentExecutor(Agent, AgentExecutorBase):
    """Episodes of Callwright; OpenRLHF makes this object without arguments."""

    def __init__(self):
        Agent.__init__(self, CONFIG)
''',
    "function": '''"""What OpenRLHF loads in each of its engines. Generated."""

from callwright_plugins.openrlhf_trainer.agent import reward_function

reward_func = reward_function({config!r})
''',
}

logger = structlog.get_logger(__name__)


class OpenRLHFTrainer:
    """Trains by OpenRLHF, on many GPUs and nodes. Options: :class:`.options.Options`.

    Options of the trainer ``local`` without counterpart are accepted and listed as unsupported. Raises
    :class:`callwright.UsageError` for an option that does not exist or has an impossible value.
    """

    name = "openrlhf"

    def __init__(self, **options: Any) -> None:
        known, self.local = split_local(options)
        self.options = read_options(Options, known, "the trainer 'openrlhf'")

    @property
    def group(self) -> int:
        """Completions a prompt: :class:`callwright.training.trainer.SamplesGroups`."""
        return self.options.group

    def check(self, loaded: LoadedRecipe, pipeline: Pipeline | None) -> list[UsageError]:
        """The mistakes that training would end with, as far as they are known without OpenRLHF."""
        if pipeline is None or pipeline.algorithm is None:
            return []
        try:
            refused = [one for one in self._translate(pipeline, Files(Path("RUN"))).unsupported if one.refused]
        except UsageError as error:
            return [error]
        return [loaded.error(f"{one.key} = {one.wanted!r}: {one.why}", *one.key.split(".")) for one in refused]

    def dry_run(
        self, pipeline: Pipeline, *, strict: bool = False, strict_except: Collection[str] = ()
    ) -> Mapping[str, Any]:
        """What a run in the folder ``RUN`` would be; nothing is written.

        ``argv``, ``approximated``, ``unsupported``, ``defaults`` (options that the recipe leaves to this trainer),
        ``memory`` (a plan) and ``files``. Where an interpreter with OpenRLHF is at hand, its parser has read the
        arguments. Raises :class:`callwright.UsageError` for what OpenRLHF cannot be told, where it refuses the
        arguments, and with ``strict`` where anything but the keys of ``strict_except`` is not exact.
        """
        files = Files(Path("RUN"))
        translated = self._translate(pipeline, files)
        raise_together(self.check(pipeline.recipe, pipeline))
        if strict or self.options.strict:
            refuse_inexact(translated, {*strict_except, *self.options.strict_except})
        try:
            check(find_interpreter(self.options.python), translated.argv)
        except NoOpenRLHF as error:
            if self.options.python is not None:
                raise
            logger.warning("the arguments were not checked by OpenRLHF's own parser", reason=str(error))
        model = read_options(Model, pipeline.recipe.recipe.model, "the table [model]")
        given = self.options.model_fields_set
        return {
            "argv": translated.argv,
            "approximated": [one.to_json() for one in translated.approximated],
            "unsupported": [one.to_json() for one in translated.unsupported],
            "defaults": {
                name: value for name, value in self.options.model_dump(mode="json").items() if name not in given
            },
            "memory": plan(
                self.options,
                model,
                pipeline.conditions.limits,
                reference=pipeline.algorithm is not None and pipeline.algorithm.kl_weight > 0,
                critic=isinstance(pipeline.algorithm, ActorCritic),
            ),
            "files": files.described(self.options),
        }

    def train(self, pipeline: Pipeline, run: Run, *, reporter: Reporter = SILENT) -> None:
        """Write the folder ``openrlhf`` of the run, train, and go on from OpenRLHF's newest checkpoint if there is one.

        Raises :class:`callwright.CallwrightError` in all foreseen cases: what OpenRLHF cannot be told, an environment
        without it, an episode that a bug ended, and OpenRLHF's own failures with the end of its log.
        """
        files = Files(run.path.resolve())
        if (files.final / "config.json").is_file():
            return
        if any(letter in str(files.train) for letter in ",@"):
            raise UsageError(f"OpenRLHF reads ',' and '@' in the name of a data file as its own; {run.path} has one")
        translated = self._translate(pipeline, files)
        if self.options.strict:
            refuse_inexact(translated, self.options.strict_except)
        raise_together(self.check(pipeline.recipe, pipeline))
        python = find_interpreter(self.options.python)
        found = check(python, translated.argv)
        for kind, differences in (("approximated", translated.approximated), ("left out", translated.unsupported)):
            for one in differences:
                reporter.say(f"{kind}: {one.key}: {one.given!r} in place of {one.wanted!r}; {one.why}")
        if found["openrlhf"] != VERSION:
            reporter.say(f"this is OpenRLHF {found['openrlhf']}; what is known here is that of {VERSION}")
        self._write(pipeline, files, translated, python, reporter)
        _Following(self.options, pipeline, run, files, reporter).start(python, translated)

    def _translate(self, pipeline: Pipeline, files: Files) -> Translation:
        recipe = pipeline.recipe.recipe
        if pipeline.algorithm is None:
            raise UsageError("the trainer 'openrlhf' needs a pipeline with an algorithm")
        limits = pipeline.conditions.limits
        if self.options.rewards == "function" and not limits.single:
            raise pipeline.recipe.error(
                'OpenRLHF knows single turns only where it is given a reward function; use rewards = "agent"',
                "trainer",
                "rewards",
            )
        if self.options.rewards == "function" and pipeline.reward.truncation == "mask":
            raise pipeline.recipe.error(
                'a reward function of OpenRLHF cannot mask: use rewards = "agent" in [trainer], or another policy than '
                'truncated = "mask"',
                "reward",
                "truncated",
            )
        try:
            model = read_options(Model, recipe.model, "the table [model]")
        except UsageError as error:
            raise pipeline.recipe.error(str(error), "model", *getattr(error, "path", ())) from error
        try:
            return translate(
                files,
                self.options,
                model,
                pipeline.algorithm,
                limits,
                seed=recipe.seed,
                scheduled=has(pipeline.reward, Scheduled) and pipeline.reward.scheduled,
                local=self.local,
            )
        except UsageError as error:
            raise pipeline.recipe.error(str(error), "algorithm") from error

    def _write(
        self, pipeline: Pipeline, files: Files, translated: Translation, python: str, reporter: Reporter
    ) -> None:
        """Everything that OpenRLHF needs. The prompts are exported once."""
        files.folder.mkdir(exist_ok=True)
        configuration = self._configuration(pipeline, files)
        configuration.write(files.config)
        write_atomically(files.entry, ENTRIES[self.options.rewards].format(config=str(files.config)))
        write_atomically(files.requirements, requirements())
        if not files.prompts.exists():
            reporter.start("prompts", 1)
            done = subprocess.run(
                [python, "-m", "callwright_plugins.openrlhf_trainer.export", str(files.config)],
                capture_output=True, text=True, errors="replace", check=False,
            )  # fmt: skip
            reporter.finish()
            if done.returncode:
                said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
                if "No module named 'callwright" in said or "Error while finding module" in said:
                    raise NoOpenRLHF(f"{python} has no Callwright, which drives the episodes there; {how_to_install()}")
                raise UsageError(f"the prompts cannot be exported: {said.removeprefix('error: ')}")
        made = json.loads(files.prompts.read_bytes())
        for split, left_out in (("train", made["too_long"]), ("evaluation", made["evaluation_too_long"])):
            if left_out:
                reporter.say(f"left out of {split}: {left_out} tasks with prompts that are too long")

    def _configuration(self, pipeline: Pipeline, files: Files) -> Configuration:
        """What an engine's process needs to make the same pipeline.

        Raises :class:`callwright.UsageError` for objects that an embedder put into this one.
        """
        recipe, options = pipeline.recipe.recipe, self.options
        named = pipeline.registry.create("reward recipe", recipe.reward.name, **recipe.reward.options)
        for what, given, expected in (
            ("corpus", pipeline.corpus.name, recipe.corpus.name),
            ("environment", pipeline.environment is not None, recipe.environment is not None),
            ("rewards", list(pipeline.reward.weights), list(named.weights)),
        ):
            if given != expected:
                raise UsageError(
                    f"the {what} of this pipeline is an object of this process, and OpenRLHF's engines make theirs by "
                    "the recipe; register it in a plugin and name it there"
                )
        source = pipeline.registry.description()
        model = read_options(Model, recipe.model, "the table [model]")
        assert model.path is not None
        path = Path(model.path)
        return Configuration(
            recipe=str(files.run / "recipe.toml"),
            here=str(Path.cwd()),
            blocked=None if source.blocked is None else tuple(sorted(source.blocked)),
            modules=source.modules,
            model=str(path.resolve()) if path.is_dir() else model.path,
            limits=episode_limits(pipeline.conditions.limits, options),
            steps=options.steps,
            group=options.group,
            retries=options.retries,
            prompt=model.prompt,
            template_options=model.chat_template_options,
            filtered=has(pipeline.algorithm, SamplesDynamically) and pipeline.algorithm.dynamic_sampling,
            prompts=options.prompts,
            max_prompt_tokens=options.max_prompt_tokens,
            rollouts_per_step=options.rollouts_per_step,
            depths=None if options.depths is None else tuple(options.depths),
            evaluation_tasks=options.evaluation_tasks,
            truncated=pipeline.reward.truncated,
            floor=pipeline.reward.floor,
        )


def refuse_inexact(translated: Translation, allowed: Collection[str] = ()) -> None:
    """Raises :class:`callwright.UsageError` naming all that is not as the recipe says, but for the ``allowed`` keys."""
    left = [
        (kind, one)
        for kind, differences in (("approximated", translated.approximated), ("unsupported", translated.unsupported))
        for one in differences
        if one.key not in allowed
    ]
    if not left:
        return
    lines = [f"  {kind}: {one.key}: {one.given!r} in place of {one.wanted!r}; {one.why}" for kind, one in left]
    keys = ",".join(dict.fromkeys(one.key for _, one in left))
    raise UsageError(
        "strict: OpenRLHF cannot do exactly what the recipe says "
        f"(--strict-except {keys} lets it pass)\n" + "\n".join(lines)
    )


class _Following:
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
        self._said: set[str] = set()

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
                status = program.follow(self._hear, lambda: self._look(program))
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
        if not self._steps and done < options.steps:
            self._warn(
                f"OpenRLHF trained, and its log named no step: metrics.jsonl lacks them; {files.log} is what it said"
            )
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
        """Whether the program must end now; on the way, whether it has been silent for too long."""
        if time.monotonic() - self._heard > 60 * self.options.silent_after:
            self._heard = time.monotonic()
            last = f"its last line is {program.last_line!r:.200}" if program.last_line else "it has printed nothing"
            self._warn(
                f"no step and no evaluation for {self.options.silent_after:g} minutes; {last}. {self.files.log} has "
                "the rest, and docs/openrlhf.md says what to look at first (When it hangs)"
            )
        return self.files.failure.exists()

    def _warn(self, text: str) -> None:
        logger.warning(text)
        self.reporter.say(f"warning: {text}")

    def _hear(self, line: str) -> None:
        finished = read_line(line)
        if finished is None:
            if names_a_step(line) and "unread" not in self._said:
                self._said.add("unread")
                self._warn(
                    f"a step in OpenRLHF's log cannot be read, and is not in metrics.jsonl: {line.strip()[:300]}"
                )
            return
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
