"""The course of a run: policy, warm start, evaluation, steps of reinforcement learning, evaluation, final model."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog
import torch
from attrs import evolve

from callwright.capability import has
from callwright.errors import RunError, UsageError
from callwright.machines.interrupts import postponed
from callwright.options import read_options
from callwright.training.alarms import Watch, alarms_of, mostly_masked, stopped, written
from callwright.training.algorithm import ActorCritic, Algorithm, PlacesCredit, TokenLevel
from callwright.training.ledger.seals import Lengths
from callwright.training.reporter import Reporter
from callwright.training.rollouts.collapse import collapse, undeclared
from callwright.training.rollouts.description import zero_variance
from callwright.training.rollouts.peak_memory import peak_memory
from callwright.training.rollouts.task_stream import TaskStream
from callwright.training.run_folder import METRICS, ROLLOUTS, Run
from callwright.training.spending import Meter
from callwright.walk.corpora.capabilities import HasVocabulary, WritesPrompts
from callwright.walk.sampling import Sampler
from callwright_plugins.local_trainer.forward.recomputing import layers_of
from callwright_plugins.local_trainer.learning.critic import Critic, make_critic
from callwright_plugins.local_trainer.learning.steps import adamw, learning_rate
from callwright_plugins.local_trainer.learning.update import descend, make_batch, prepare
from callwright_plugins.local_trainer.learning.warm_start import examples, warm_start_step
from callwright_plugins.local_trainer.models.masters import to_bfloat16
from callwright_plugins.local_trainer.models.policy import FINAL, Policy, load_policy, model_folder, pick_device
from callwright_plugins.local_trainer.models.tiny import build_tiny
from callwright_plugins.local_trainer.models.vocabulary import build_tokenizer
from callwright_plugins.local_trainer.options import Model, Options, SupervisedOptions
from callwright_plugins.local_trainer.randomness import torch_generator
from callwright_plugins.local_trainer.run import checkpoints
from callwright_plugins.local_trainer.run.ahead import Rollouts
from callwright_plugins.local_trainer.run.checkpoints import REFERENCE, Phase, State
from callwright_plugins.local_trainer.run.choosing import BEST, is_best, since_best
from callwright_plugins.local_trainer.run.evaluating import evaluate_policy, evaluation_tasks
from callwright_plugins.local_trainer.run.stopping import LastStep, Plan, tidy
from callwright_plugins.local_trainer.sampling.agents import agents_of
from callwright_plugins.local_trainer.sampling.collecting import Clock, Collected, collect
from callwright_plugins.local_trainer.sampling.episodes import describe_turns, longest, turn_limits
from callwright_plugins.local_trainer.sampling.prompts import PromptBound
from callwright_plugins.local_trainer.sampling.rollouts import (
    Group,
    describe,
    rewards_of,
    rollout_rows,
)

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline

WARM_START: Final = "warm_start.jsonl"
#: Wall times live apart, so that all other files of two runs with one seed are the same bytes.
TIMINGS: Final = "timings.jsonl"
EVALUATION: Final = "evaluation.json"
FILES: Final = (WARM_START, METRICS, ROLLOUTS, TIMINGS)

logger = structlog.get_logger(__name__)


class Training:
    """One run from wherever it stands to its end."""

    def __init__(self, options: Options, pipeline: Pipeline, run: Run, reporter: Reporter) -> None:
        if pipeline.algorithm is None:
            raise UsageError("the local trainer needs a pipeline with an algorithm")
        self.options = options
        self.pipeline = pipeline
        self.store = run
        self.reporter = reporter
        self.seed = pipeline.conditions.seed
        self.algorithm: Algorithm = pipeline.algorithm
        self.evaluation: dict[str, Any] = {"before": None, "during": [], "after": None}
        self.counts = dict.fromkeys(FILES, 0)
        self.lengths = Lengths(run.path, FILES)
        self.pool = pipeline.pool(options.executor, options.workers, options.stuck_after)
        self.policy = make_policy(pipeline, options)
        self.limits = turn_limits(pipeline, self.policy, options)
        # An agent writes prompts of its own, whose lengths nobody knows before.
        bounded = self.limits if options.agent is None else evolve(self.limits, context_tokens=None)
        most = options.max_prompt_tokens if options.agent is None else None
        self.prompts = PromptBound(pipeline, self.policy, bounded, most, ", or raise max_prompt_tokens")
        self._agents: Sampler | None = None
        if options.agent is not None:
            self._agents = agents_of(pipeline, self.policy, options, self.limits)
        self.reference: Policy | None = None
        self.critic: Critic | None = None
        self.kl_weight: float | None = None
        self.last = LastStep(self._save_stopped)
        self.rollouts = Rollouts(self._collect, self.policy, options.staleness, options.steps)
        self._stream: TaskStream | None = None
        self._meter = Meter(pipeline.reward)
        self._optimiser: torch.optim.AdamW | None = None
        self._unwritten: list[Mapping[str, Any]] = []  # rows of the warm start

    def run(self) -> None:
        """Everything that is left to do; nothing if the run is finished.

        Stopped by a signal it keeps the last completed step, and by an alarm what is said in ``metrics.jsonl``.
        """
        with self.pool, self.rollouts, self.last.kept():
            self._run()

    def _run(self) -> None:
        if (self.store.checkpoints / FINAL).is_dir():
            return
        if not any(parameter.requires_grad for parameter in self.policy.model.parameters()):
            raise UsageError("the model has no weights to train")
        checkpoint = checkpoints.take_up(self.store, self.reporter)
        if checkpoint is not None:
            self._tidy(checkpoint.name)
        state = checkpoints.read_state(checkpoint) if checkpoint else State("warm", 0, {}, self.evaluation)
        self.counts.update(state.rows)
        self.evaluation = copy.deepcopy(dict(state.evaluation))
        for name in FILES:
            self.counts[name] = self.store.truncate(name, self.counts[name])
        if checkpoint is None or state.phase == "warm":
            self._warm_start(checkpoint, state.step)
            optimiser = adamw(self.policy.model, self.options.weight_decay, self.options.betas)
            step = 0
            if self._uses_critic():
                self.critic = make_critic(self.policy, self.options)
            if self._uses_reference():
                checkpoints.write_folder(
                    self.store.checkpoints / REFERENCE,
                    lambda folder: checkpoints.save_weights(self.policy.model, folder / "model.safetensors"),
                )
            self.evaluation["before"] = self._evaluate("evaluation before")
            self._write_evaluation()
            self._keep_best(self.evaluation["before"], [])
            self._checkpoint("train", 0, optimiser)
        else:
            optimiser = adamw(self.policy.model, self.options.weight_decay, self.options.betas)
            if self._uses_critic():
                self.critic = make_critic(self.policy, self.options)
            checkpoints.restore(checkpoint, self.policy.model, optimiser, self.critic)
            step, self.kl_weight = state.step, state.kl_weight
            self._write_evaluation()
        if self._uses_reference():
            self.reference = frozen_copy(self.policy, self.store.checkpoints / REFERENCE / "model.safetensors")
        self._train(optimiser, step, checkpoint)
        self.evaluation["after"] = self._evaluate("evaluation after")
        self._write_evaluation()
        checkpoints.write_folder(self.store.checkpoints / FINAL, self.policy.save)

    # Warm start

    def _warm_start(self, checkpoint: Path | None, done: int) -> None:
        options = self.options.warm_start
        if not options.steps:
            return
        optimiser = adamw(self.policy.model, options.weight_decay, self.options.betas)
        if checkpoint is not None:
            checkpoints.restore(checkpoint, self.policy.model, optimiser)
        self._optimiser = optimiser
        self.reporter.start("demonstrations", options.count)
        shown = examples(self.pipeline, self.policy, options, self.seed, self.reporter, self.limits)
        self.reporter.finish()
        self.reporter.start("warm start", options.steps, done)
        self.last.reached("warm", done)
        watch = Watch(self.store.rows(WARM_START), self.options.not_finite_limit, rules=())
        for step in range(done, options.steps):
            began = time.perf_counter()
            with self.last.changing():
                tokens = self.options.tokens_per_micro_batch
                figures = warm_start_step(self.policy, optimiser, shown, options, self.seed, step, tokens)
                row = {"step": step + 1, **figures}
                found = watch.look(row)
                self._unwritten.append(row if found.text is None else {**row, "alarm": found.text})
                self.last.reached("warm", step + 1)
                last = step + 1 == options.steps
                if last or (step + 1) % self._warm_every == 0:
                    self._flush_warm_start()
                    self._append(TIMINGS, [{"phase": "warm", "step": step + 1, "seconds": time.perf_counter() - began}])
                    self._checkpoint("warm", step + 1, optimiser)
            self._heed(found.news, found.stop, step + 1, " of the warm start")
            self.reporter.advance(**({} if row["loss"] is None else {"loss": row["loss"]}))
        self.reporter.finish()

    @property
    def _warm_every(self) -> int:
        return 4 * self.options.checkpoint_every

    def _flush_warm_start(self) -> None:
        rows, self._unwritten = self._unwritten, []
        self._append(WARM_START, rows)

    # Reinforcement learning

    def _train(self, optimiser: torch.optim.AdamW, done: int, checkpoint: Path | None) -> None:
        options = self.options
        if done < options.steps:
            stages = [(stage.last(options.steps), stage.depths) for stage in options.curriculum]
            self._stream = TaskStream(self.pipeline.tasks(self.pipeline.train), options.depths, self.seed, stages)
        rows = self.store.rows(METRICS)
        raised = [name for name, text in self._own_alarms(rows) if text is not None]
        watch = Watch(rows, options.not_finite_limit, alarms_of(self.algorithm), raised)
        self._optimiser = optimiser
        self.last.reached("train", done)
        self._evaluate_during(done)  # a run may have been stopped in the middle of it
        self.rollouts.begin(done, partial(checkpoints.earlier_weights, checkpoint))
        self.reporter.start("training", options.steps, done)
        for step in range(done, options.steps):
            if self._enough():
                logger.info("stopped early", steps=step, evaluations_without_a_better_one=options.patience)
                self.evaluation["stopped_early"] = step
                self.rollouts.end()
                break
            batch, clock = self.rollouts.take(step)
            groups, seen = batch.groups, batch.seen
            told = {**describe(seen), **describe_turns(seen)}
            told |= {"prompts_too_long": batch.too_long} if batch.too_long else {}
            if mostly_masked(told) and not (rows and mostly_masked(rows[-1])):
                self.last.save()  # if this goes on, the run stops, and goes on from here
            with self.last.changing():
                row, logged, timing = self._step(groups, optimiser, step, clock)
                row = {
                    "step": step + 1,
                    **told,
                    "groups": len(groups),
                    "zero_variance": zero_variance([[one.reward.total for one in group.rollouts] for group in seen]),
                    "resampling_rounds": batch.rounds,
                    **({"usage": batch.usage} if batch.usage else {}),
                    **self.rollouts.age(step),
                    **row,
                }
                rows = [*rows, row][-2 * options.alarm_window :]
                found = watch.look(row, *self._own_alarms(rows))
                row["alarm"] = found.text
                self._append(METRICS, [row])
                self._append(ROLLOUTS, logged)
                self._append(TIMINGS, [{**timing, "memory": peak_memory()}])
                self.rollouts.updated(step + 1)
                self.last.reached("train", step + 1)
                if self.pipeline.registry.listens("callwright_training_step"):
                    self.pipeline.registry.hook.callwright_training_step(metrics=row)
            self._heed(found.news, found.stop, step + 1, again=mostly_masked(row))
            shown = {"reward": row["reward"], "answered": row["answered"]}
            self.reporter.advance(**{name: value for name, value in shown.items() if value is not None})
            self._evaluate_during(step + 1)
            last = step + 1 == options.steps
            if last or ((step + 1) % options.checkpoint_every == 0 and not mostly_masked(row)):
                self._checkpoint("train", step + 1, optimiser)
        self.reporter.finish()

    def _own_alarms(self, rows: list[dict[str, Any]]) -> tuple[tuple[str, str | None], ...]:
        """The alarms of this trainer alone, of the newest row."""
        if not rows:
            return ()
        return ("collapse", collapse(rows, self.options.alarm_window)), ("undeclared", undeclared(rows[-1]))

    def _heed(self, news: Sequence[str], stop: str | None, step: int, where: str = "", again: bool = False) -> None:
        """Say what is new, and end the run if it must: with a checkpoint, unless its last steps are to be made again.

        Raises :class:`callwright.errors.RunError`.
        """
        for reason in news:
            logger.warning("alarm", step=step, reason=reason)
        if stop is None:
            return
        if not again:
            self.last.save()
        raise RunError(stopped(step, stop, where))

    def _evaluate_during(self, step: int) -> None:
        """The evaluation that is due after ``step`` steps, if one is and is not made yet."""
        every, made = self.options.evaluate_every, self.evaluation["during"]
        if not every or step % every or not 0 < step < self.options.steps or any(one["step"] == step for one in made):
            return
        found = {"step": step, **self._evaluate(None)}
        with postponed():
            earlier = [self.evaluation["before"], *made]
            made.append(found)
            self.last.reached("train", step)
            self._write_evaluation()
            self._keep_best(found, earlier)

    def _keep_best(self, found: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]]) -> None:
        """Write the model as it is, if no earlier evaluation was as good."""
        if self.options.best != "none" and is_best(self.options.best, found, earlier):
            checkpoints.write_folder(self.store.checkpoints / BEST, self.policy.save)

    def _enough(self) -> bool:
        """Whether as many evaluations as the recipe waits for have come after the best."""
        made, patience = [self.evaluation["before"], *self.evaluation["during"]], self.options.patience
        return patience is not None and since_best("accuracy", made) >= patience

    def _step(
        self,
        groups: list[Group],
        optimiser: torch.optim.AdamW,
        step: int,
        clock: Clock,
    ) -> tuple[dict[str, Any], list[Mapping[str, Any]], dict[str, Any]]:
        """One step: what its row of metrics says of the update, its logged rollouts, and how long its parts took."""
        options = self.options
        counted = self.limits.total_tokens is not None
        rewards, valid, lengths = rewards_of(groups, with_environment=counted)
        advantages = torch.zeros_like(rewards)
        trained: dict[str, Any] = {}
        if groups and bool(valid.any()):
            limit = longest(self.limits, options)
            shaped = self.algorithm.shape_rewards(rewards, lengths, limit)
            advantages = self.algorithm.advantages(shaped, valid)
            rate = learning_rate(
                step, options.steps, options.learning_rate, options.warm_up, options.schedule, options.schedule_floor
            )
            places = has(self.algorithm, PlacesCredit) and self.algorithm.credit_share > 0
            batch = make_batch(groups, advantages, valid, limit, self.policy.written if places else None)
            prepared = prepare(self.policy, self.reference, self.algorithm, batch, options, self.critic, self.kl_weight)
            if isinstance(self.algorithm, TokenLevel):
                advantages[valid] = prepared.advantages.to(advantages)
            trained = descend(
                self.policy,
                self.algorithm,
                optimiser,
                prepared,
                options,
                rate,
                self.critic,
                learning_rate(step, options.steps, options.critic.learning_rate, options.critic.warm_up, "constant"),
                step < options.critic.head_start,
            )
            trained["learning_rate"] = rate
            if "not_finite" in trained:
                trained["not_finite"]["tasks"] = list(dict.fromkeys(group.task.id for group in groups))
            else:
                self.kl_weight = prepared.kl_weight
        clock.lap("training")
        logged = rollout_rows(groups, advantages, self.policy, step + 1, self.seed, options.keeping)
        return written(trained), [written(one) for one in logged], {"phase": "train", "step": step + 1, **clock.read()}

    def _collect(self, step: int, policy: Policy) -> Collected:
        assert self._stream is not None
        told = self.options, self.limits, self.prompts, self.pool, self._agents, self._meter
        return collect(self.pipeline, policy, self.algorithm, self._stream, step, *told)

    # What is written

    def _uses_reference(self) -> bool:
        return self.algorithm.kl_weight > 0 and self.options.steps > 0

    def _uses_critic(self) -> bool:
        return isinstance(self.algorithm, ActorCritic) and self.options.steps > 0

    def _append(self, name: str, rows: list[Mapping[str, Any]]) -> None:
        if rows:
            self.store.append(name, rows)
            self.counts[name] += len(rows)

    def _checkpoint(self, phase: Phase, step: int, optimiser: torch.optim.Optimizer) -> None:
        """Write a checkpoint, and remove those that are not needed any more."""
        folder, state = self.store.checkpoints, State(phase, step, self.counts, self.evaluation, self.kl_weight)
        needs = (REFERENCE,) if phase == "train" and self._uses_reference() else ()
        checkpoints.save(
            folder,
            state,
            self.policy.model,
            optimiser,
            critic=self.critic,
            earlier=self.rollouts.kept(step) if phase == "train" and step else {},
            lengths=self.lengths,
            needs=needs,
        )
        self._tidy(f"{phase}-{step:06d}")

    def _tidy(self, newest: str) -> None:
        tidy(self.store.checkpoints, self._planned(), self.options.keep_checkpoints, but=newest)

    def _planned(self) -> Plan:
        """Where a run without a stop has checkpoints."""
        options = self.options
        return {
            "warm": (self._warm_every, options.warm_start.steps),
            "train": (options.checkpoint_every, options.steps),
        }

    def _save_stopped(self, phase: Phase, step: int) -> None:
        """The checkpoint of a run that stops, if there is none of this step."""
        if step and not (self.store.checkpoints / f"{phase}-{step:06d}").is_dir():
            assert self._optimiser is not None
            self._flush_warm_start()
            self._checkpoint(phase, step, self._optimiser)

    def _write_evaluation(self) -> None:
        self.store.write_json(EVALUATION, self.evaluation)

    def _evaluate(self, stage: str | None) -> dict[str, Any]:
        asked = evaluation_tasks(self.pipeline, self.options)
        tasks = self.prompts.within(asked, self.pipeline.evaluation)
        asked_of = self.pipeline, self.policy, tasks, self.options, self.limits, self.reporter, stage
        with self.rollouts.alone():
            found = evaluate_policy(*asked_of, pool=self.pool, agents=self._agents)
        return found if len(tasks) == len(asked) else {**found, "prompts_too_long": len(asked) - len(tasks)}


def make_policy(pipeline: Pipeline, options: Options | SupervisedOptions) -> Policy:
    """The policy of the recipe's ``[model]`` table.

    Raises :class:`callwright.errors.RecipeError` naming file and line.
    """
    policy = evolve(_make_policy(pipeline, options), recompute=options.gradient_checkpointing)
    if policy.recompute and not layers_of(policy.model):
        raise pipeline.recipe.error(
            f"the layers of a {type(policy.model).__name__} cannot be computed again; "
            "leave 'gradient_checkpointing' out",
            "trainer",
            "gradient_checkpointing",
        )
    if options.weights == "bfloat16":
        to_bfloat16(policy.model)
    return policy


def _make_policy(pipeline: Pipeline, options: Options | SupervisedOptions) -> Policy:
    loaded, corpus = pipeline.recipe, pipeline.corpus
    given = loaded.recipe.model
    try:
        model = read_options(Model, given, "the table [model]")
        device, dtype = pick_device(options.device), getattr(torch, options.dtype)
        compact = corpus.prompt_text if has(corpus, WritesPrompts) else None
        if model.path is not None:
            return load_policy(
                model_folder(Path(model.path)),
                device=device,
                dtype=dtype,
                compact=compact,
                form=model.prompt,
                template_options=model.chat_template_options,
            )
        if not has(corpus, HasVocabulary):
            raise UsageError(
                f"a tiny model needs a vocabulary, and the corpus {corpus.name!r} has none; give a model directory: "
                'path = "DIRECTORY"; for a file of tasks, corpus.name = "compact-tasks" has one'
            )
        assert model.tiny is not None
        tokenizer = build_tokenizer(corpus.vocabulary())
        made = build_tiny(model.tiny, tokenizer, torch_generator(pipeline.conditions.seed, "weights"))
        made.to(device).eval()
        form = "chat" if model.prompt == "chat" or compact is None else "compact"
        if model.prompt == "compact" and compact is None:
            raise UsageError(f"the corpus {corpus.name!r} has no compact prompt")
        return Policy(made, tokenizer, device, dtype, "compact" if form == "compact" else "chat", compact, corpus.name)
    except UsageError as error:
        raise loaded.error(str(error), "model", *getattr(error, "path", ())) from error


def frozen_copy(policy: Policy, path: Path) -> Policy:
    """The policy with the weights of a file, without gradients."""
    model = copy.deepcopy(policy.model)
    checkpoints.load_weights(model, path)
    model.requires_grad_(False)
    return evolve(policy, model=model)
