"""The course of a supervised run: policy, demonstrations, evaluation, steps, evaluation, final model."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import structlog

from callwright.errors import RunError, UsageError
from callwright.machines.interrupts import postponed
from callwright.training.alarms import Watch, stopped
from callwright.training.evaluation import Verdict
from callwright.training.ledger.seals import Lengths
from callwright.training.reporter import Reporter
from callwright.training.rollouts.peak_memory import peak_memory
from callwright.training.run_folder import METRICS, ROLLOUTS, Run
from callwright.walk.attempt import Attempt
from callwright.walk.trace import observations
from callwright_plugins.local_trainer.learning.demonstrations import Example
from callwright_plugins.local_trainer.learning.steps import adamw, learning_rate
from callwright_plugins.local_trainer.learning.supervised import mean_loss, supervised_step
from callwright_plugins.local_trainer.models.policy import FINAL
from callwright_plugins.local_trainer.options import SupervisedOptions
from callwright_plugins.local_trainer.randomness import python_generator
from callwright_plugins.local_trainer.run import checkpoints
from callwright_plugins.local_trainer.run.checkpoints import Phase, State
from callwright_plugins.local_trainer.run.choosing import BEST, is_best
from callwright_plugins.local_trainer.run.evaluating import evaluate_policy, evaluation_tasks
from callwright_plugins.local_trainer.run.stopping import LastStep, Plan, tidy
from callwright_plugins.local_trainer.run.training import EVALUATION, TIMINGS, make_policy
from callwright_plugins.local_trainer.sampling.episodes import scored_by, turn_limits
from callwright_plugins.local_trainer.sampling.prompts import PromptBound
from callwright_plugins.local_trainer.supervised.epochs import Epochs
from callwright_plugins.local_trainer.supervised.material import held_out, material

if TYPE_CHECKING:
    import torch

    from callwright.pipeline import Pipeline

logger = structlog.get_logger(__name__)

#: What was shown, counted.
DEMONSTRATIONS: Final = "demonstrations.json"
#: Among the checkpoints of a run: the model of its best evaluation, where the recipe asks for it.
FILES: Final = (METRICS, ROLLOUTS, TIMINGS)
#: Attempts that are kept until they are scored: what waits does so for as many together.
_AT_ONCE: Final = 256


class SupervisedTraining:
    """One run from wherever it stands to its end."""

    def __init__(self, options: SupervisedOptions, pipeline: Pipeline, run: Run, reporter: Reporter) -> None:
        self.options = options
        self.pipeline = pipeline
        self.store = run
        self.reporter = reporter
        self.seed = pipeline.conditions.seed
        self.evaluation: dict[str, Any] = {"before": None, "during": [], "after": None}
        self.counts = dict.fromkeys(FILES, 0)
        self.lengths = Lengths(run.path, FILES)
        self.pool = pipeline.pool(options.executor, options.workers, options.stuck_after)
        self.policy = make_policy(pipeline, options)
        self.limits = turn_limits(pipeline, self.policy, options)
        self.tasks = evaluation_tasks(pipeline, options)
        self._too_long = 0
        self.last = LastStep(self._save_stopped)
        self._optimiser: torch.optim.AdamW | None = None
        self._steps = 0

    def run(self) -> None:
        """Everything that is left to do; nothing if the run is finished. Stopped, it keeps the last completed step."""
        with self.pool, self.last.kept():
            self._run()

    def _run(self) -> None:
        if (self.store.checkpoints / FINAL).is_dir():
            return
        if not any(parameter.requires_grad for parameter in self.policy.model.parameters()):
            raise UsageError("the model has no weights to train")
        checkpoint = checkpoints.take_up(self.store, self.reporter)
        state = checkpoints.read_state(checkpoint) if checkpoint else State("train", 0, {}, self.evaluation)
        self.counts.update(state.rows)
        self.evaluation = copy.deepcopy(dict(state.evaluation))
        for name in FILES:
            self.counts[name] = self.store.truncate(name, self.counts[name])
        shown = material(self.pipeline, self.policy, self.options, self.limits, self.reporter)
        epochs = Epochs(len(shown.examples), self.options, self.seed)
        passes = {"steps": epochs.steps, "epochs": round(epochs.shown / epochs.count, 4)}
        self.store.write_json(DEMONSTRATIONS, {**shown.to_json(), **passes})
        bound, asked = PromptBound(self.pipeline, self.policy, self.limits, None), self.tasks
        self.tasks = bound.within(asked, self.pipeline.evaluation)
        self._too_long = len(asked) - len(self.tasks)
        self._held_out = held_out(self.pipeline, self.policy, self.tasks, self.limits)
        optimiser = adamw(self.policy.model, self.options.weight_decay, self.options.betas)
        self._optimiser, self._steps = optimiser, epochs.steps
        if checkpoint is None:
            self._evaluate(0, "evaluation before")
            self._checkpoint(0, optimiser)
        else:
            self._tidy(checkpoint.name)
            checkpoints.restore(checkpoint, self.policy.model, optimiser)
            self.store.write_json(EVALUATION, self.evaluation)
        self._train(optimiser, shown.examples, epochs, state.step)
        self._evaluate(epochs.steps, "evaluation after")
        checkpoints.write_folder(self.store.checkpoints / FINAL, self.policy.save)

    def _train(self, optimiser: torch.optim.AdamW, shown: Sequence[Example], epochs: Epochs, done: int) -> None:
        options = self.options
        watch = Watch(self.store.rows(METRICS), options.not_finite_limit, rules=())
        self.last.reached("train", done)
        self._evaluate_during(done)  # a run may have been stopped in the middle of it
        self.reporter.start("training", epochs.steps, done)
        for step in range(done, epochs.steps):
            began = time.perf_counter()
            batch = [shown[row] for row in epochs.rows(step)]
            rate = learning_rate(
                step, epochs.steps, options.learning_rate, epochs.warm_up, options.schedule, options.schedule_floor
            )
            with self.last.changing():
                figures = supervised_step(
                    self.policy,
                    optimiser,
                    batch,
                    options.micro_batches,
                    rate,
                    options.clip_norm,
                    options.tokens_per_micro_batch,
                )
                row = {
                    "step": step + 1,
                    "reward": None,
                    "epoch": round(epochs.done(step), 6),
                    "demonstrations": len(batch),
                    **figures,
                }
                found = watch.look(row)
                if found.text is not None:
                    row["alarm"] = found.text
                self._append(METRICS, [row])
                spent = {"seconds": round(time.perf_counter() - began, 6), "memory": peak_memory()}
                self._append(TIMINGS, [{"phase": "train", "step": step + 1, **spent}])
                self.last.reached("train", step + 1)
                if self.pipeline.registry.listens("callwright_training_step"):
                    self.pipeline.registry.hook.callwright_training_step(metrics=row)
            for reason in found.news:
                logger.warning("alarm", step=step + 1, reason=reason)
            if found.stop is not None:
                self.last.save()
                raise RunError(stopped(step + 1, found.stop))
            self.reporter.advance(**({} if row["loss"] is None else {"loss": row["loss"]}))
            self._evaluate_during(step + 1)
            last = step + 1 == epochs.steps
            if last or (step + 1) % options.checkpoint_every == 0:
                self._checkpoint(step + 1, optimiser)
        self.reporter.finish()

    def _evaluate_during(self, step: int) -> None:
        """The evaluation that is due after ``step`` steps, if one is and is not made yet."""
        every, made = self.options.evaluate_every, self.evaluation["during"]
        if every and step % every == 0 and 0 < step < self._steps and all(one["step"] != step for one in made):
            self._evaluate(step)

    # What is measured

    def _evaluate(self, step: int, stage: str | None = None) -> None:
        """Evaluate after ``step`` steps; write it, some of its completions, and the weights if they are the best."""
        totals: list[float] = []
        rows: list[Mapping[str, Any]] = []
        count = min(self.options.rollouts_per_evaluation, len(self.tasks))
        logged = set(python_generator(self.seed, "evaluation sample", step).sample(range(len(self.tasks)), count))
        seen = 0
        kept: list[tuple[Attempt, Verdict]] = []

        def score() -> None:
            nonlocal seen
            attempts = [attempt for attempt, _ in kept]
            for (attempt, verdict), (_, reward) in zip(
                kept, scored_by(self.pipeline, self.pool, attempts), strict=True
            ):
                if reward.total is not None:
                    totals.append(reward.total)
                if seen in logged:
                    rows.append(self._row(attempt, verdict, step) | reward.to_json())
                seen += 1
            kept.clear()

        def keep(attempt: Attempt, verdict: Verdict) -> None:
            kept.append((attempt, verdict))
            if len(kept) >= _AT_ONCE:
                score()

        result = evaluate_policy(
            self.pipeline, self.policy, self.tasks, self.options, self.limits, self.reporter, stage, keep, self.pool
        )
        score()
        if self._too_long:
            result["prompts_too_long"] = self._too_long
        result["reward"] = sum(totals) / len(totals) if totals else None
        at_once = -(-self.options.batch // self.options.micro_batches)
        result["loss"] = mean_loss(self.policy, self._held_out, at_once, self.options.tokens_per_micro_batch)
        with postponed():
            earlier = (self.evaluation["before"], *self.evaluation["during"])
            best = self.options.best != "none" and is_best(self.options.best, result, earlier)
            if stage is None:
                self.evaluation["during"].append({"step": step, **result})
                self.last.reached("train", step)
            else:
                self.evaluation["after" if self.evaluation["before"] else "before"] = result
            self._append(ROLLOUTS, rows)
            self.store.write_json(EVALUATION, self.evaluation)
            if best:
                checkpoints.write_folder(self.store.checkpoints / BEST, self.policy.save)

    def _row(self, attempt: Attempt, verdict: Verdict, step: int) -> dict[str, Any]:
        task = attempt.task
        return {
            "step": step,
            "task": task.id,
            "depth": task.depth,
            "structure": task.structure,
            "query": task.query,
            "prompt": self.policy.text(self.policy.prompt_ids(task, self.pipeline.messages(task))),
            "completion": attempt.completion.text,
            "truncated": attempt.completion.truncated,
            "answered": verdict.answer,
            "failure": verdict.failure,
            "observations": observations(attempt.trace),
        }

    # What is written

    def _append(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            self.store.append(name, rows)
            self.counts[name] += len(rows)

    def _checkpoint(self, step: int, optimiser: torch.optim.Optimizer) -> None:
        """Write a checkpoint, and remove those that are not needed any more."""
        folder, state = self.store.checkpoints, State("train", step, self.counts, self.evaluation)
        checkpoints.save(folder, state, self.policy.model, optimiser, lengths=self.lengths)
        self._tidy(f"train-{step:06d}")

    def _tidy(self, newest: str) -> None:
        plan: Plan = {"train": (self.options.checkpoint_every, self._steps)}
        tidy(self.store.checkpoints, plan, self.options.keep_checkpoints, but=newest)

    def _save_stopped(self, phase: Phase, step: int) -> None:
        """The checkpoint of a run that stops, if there is none of this step."""
        if not (self.store.checkpoints / f"{phase}-{step:06d}").is_dir():
            assert self._optimiser is not None
            self._checkpoint(step, self._optimiser)
