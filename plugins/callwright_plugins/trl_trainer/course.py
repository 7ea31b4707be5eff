"""The course of a run in one process of it: model, evaluation, steps, evaluation, final model."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog
import torch
import transformers
from accelerate.utils import broadcast_object_list, gather_object
from attrs import evolve
from datasets import Dataset
from transformers import AutoTokenizer, TrainerCallback
from trl import GRPOConfig

from callwright.errors import DataError, RunError, UsageError
from callwright.machines.interrupts import postponed
from callwright.training.alarms import Watch, alarms_of, mostly_masked, not_finite, stopped, written
from callwright.training.dry_runs.memory_plan import prompt_tokens, too_much
from callwright.training.evaluation import evaluate, summarise
from callwright.training.ledger.seals import SEAL, Lengths
from callwright.training.reporter import SILENT, Reporter
from callwright.training.rollouts.collapse import collapse, undeclared
from callwright.training.rollouts.description import described, zero_variance
from callwright.training.rollouts.peak_memory import peak_memory
from callwright.training.rollouts.task_stream import per_depth
from callwright.training.run_folder import METRICS, ROLLOUTS, Run
from callwright.training.spending import Meter
from callwright_plugins.trl_trainer.base import FINAL, Base
from callwright_plugins.trl_trainer.checkpoints import State, keep, take_up
from callwright_plugins.trl_trainer.export import export
from callwright_plugins.trl_trainer.generating import TrainerEngine, TrainerSampler, positions_of
from callwright_plugins.trl_trainer.grpo import RecipeGRPOTrainer
from callwright_plugins.trl_trainer.last_step import LastStep
from callwright_plugins.trl_trainer.memory import plan
from callwright_plugins.trl_trainer.options import Model, Options
from callwright_plugins.trl_trainer.rollouts import Collected, Group, Rollouts, turns_of
from callwright_plugins.trl_trainer.settings import translate

if TYPE_CHECKING:
    from callwright.episodes.pool import EpisodePool
    from callwright.pipeline import Pipeline

TIMINGS: Final = "timings.jsonl"
EVALUATION: Final = "evaluation.json"
FILES: Final = (METRICS, ROLLOUTS, TIMINGS)

logger = structlog.get_logger(__name__)


class Course:
    """A run from wherever it stands to its end, as one of its processes sees it. The first process writes."""

    def __init__(self, options: Options, pipeline: Pipeline, run: Run, base: Base, reporter: Reporter) -> None:
        if pipeline.algorithm is None:
            raise UsageError("the trainer 'trl' needs a pipeline with an algorithm")
        self.options, self.pipeline, self.run, self.base = options, pipeline, run, base
        self.reporter: Reporter = SILENT
        self._reporter = reporter
        self.evaluation: dict[str, Any] = {"before": None, "during": [], "after": None}
        self.counts = dict.fromkeys(FILES, 0)
        self.lengths = Lengths(run.path, FILES)
        self.seconds: dict[str, float] = {}
        self.last = LastStep()
        self.meter = Meter(pipeline.reward)

    def go(self) -> None:
        """Everything that is left to do; nothing if the run is finished."""
        if (self.run.checkpoints / FINAL).is_dir():
            return
        with steady(self.options.threads), quiet(), self._pool() as pool:
            self._train(pool)

    def _pool(self) -> EpisodePool:
        options = self.options
        return self.pipeline.pool(options.executor, options.workers, options.stuck_after)

    def _train(self, pool: EpisodePool) -> None:
        options, pipeline = self.options, self.pipeline
        assert pipeline.algorithm is not None
        translation = translate(
            options,
            pipeline.algorithm,
            pipeline.conditions.limits,
            seed=pipeline.conditions.seed % 2**32,
            folder=str(self.run.checkpoints),
        )
        config = GRPOConfig(**translation.arguments)
        main = config.process_index == 0
        if config.world_size != options.processes:
            raise UsageError(
                f"there are {config.world_size} processes, but 'processes' in [trainer] is {options.processes}"
            )
        if main:
            self.reporter = self._reporter
        checkpoint = self._taken_up(main, config.world_size)
        self.trainer = trainer = self._trainer(config)
        limits = pipeline.conditions.limits
        positions = [one for one in (limits.context_tokens, positions_of(trainer)) if one is not None]
        self.limits = evolve(
            limits,
            turn_tokens=limits.turn_tokens or options.max_new_tokens,
            context_tokens=min(positions, default=None),
        )
        self.codec = self.base.codec(trainer._tokenizer, pipeline, frozenset(trainer.eos_token_ids))
        self.pool = pool
        self.rollouts = Rollouts(
            pipeline,
            options,
            self.limits,
            self.codec,
            compact=self.base.compact,
            accelerator=trainer.accelerator,
            pool=pool,
        )
        trainer.collect, trainer.changing = self._collect, self.last.changing
        callback = Callback(self)
        trainer.add_callback(callback)
        self.watch = self._watch() if main else None
        self._warn()
        try:
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint[0]))
        except BaseException as error:
            self.last.close()
            self.reporter.finish()
            if isinstance(error, KeyboardInterrupt):
                self._save_stopped()
            raise
        export(trainer, self.base, pipeline.corpus.name, options, self.run.checkpoints)

    def _save_stopped(self) -> None:
        """The checkpoint of the last completed step, of a run in one process that is stopped while it samples."""
        state, updates = self.trainer.state, self.options.updates
        folder = self.run.checkpoints / f"checkpoint-{state.global_step}"
        if not self.last.whole or not state.global_step or state.global_step % updates or (folder / SEAL).is_file():
            return
        if self.options.processes == 1:
            with postponed():
                self.last.restore()
                self.trainer._save_checkpoint(self.trainer.model, None)
                self.checkpointed(state.global_step)

    def _warn(self) -> None:
        """Say so where the plan of memory is larger than the GPU."""
        if self.trainer.accelerator.device.type != "cuda":
            return
        planned = plan(
            self.options,
            Model(path=self.base.path),
            self.limits,
            prompt=prompt_tokens(self.pipeline),
            kl=self.trainer.beta != 0,
        )
        text = too_much(planned, torch.cuda.get_device_properties(self.trainer.accelerator.device).total_memory)
        if text is not None:
            self.reporter.say(text)

    def _taken_up(self, main: bool, world: int) -> tuple[Path, State] | None:
        """The checkpoint to go on from; what was written after it is forgotten."""
        found: list[Any] = [None]
        if main:
            found[0] = take_up(self.run, self.reporter)
            rows = {} if found[0] is None else found[0][1].rows
            for name in FILES:
                self.counts[name] = self.run.truncate(name, int(rows.get(name, 0)))
        if world > 1:
            broadcast_object_list(found)
        if found[0] is not None:
            self.evaluation = copy.deepcopy(dict(found[0][1].evaluation))
        return found[0] if found[0] is None else (found[0][0], found[0][1])

    def _trainer(self, config: GRPOConfig) -> RecipeGRPOTrainer:
        options, algorithm = self.options, self.pipeline.algorithm
        assert algorithm is not None
        rows = Dataset.from_dict({"prompt": [""] * options.prompts})  # their number is all that is read of them
        more: dict[str, Any] = {}
        if options.lora is not None:
            more["peft_config"] = adapter(options)
        if options.quantization != "none":
            more["quantization_config"] = quantised(options)
        try:
            tokenizer = AutoTokenizer.from_pretrained(self.base.path, padding_side="left")
            made = RecipeGRPOTrainer(
                recipe_options=options,
                algorithm=algorithm,
                model=self.base.path,
                args=config,
                train_dataset=rows,
                processing_class=tokenizer,
                **more,
            )
        except (OSError, ValueError) as error:
            raise DataError(f"{self.base.path} cannot be loaded as a causal language model: {error}") from error
        made.remove_callback(transformers.PrinterCallback)
        return made

    # Rows -------------------------------------------------------------------------------------------------------------

    def _collect(self, step: int) -> Collected:
        began = time.perf_counter()
        options = self.options
        longest = self.limits.turn_tokens or options.max_new_tokens
        engine = TrainerEngine(self.trainer, options.temperature, options.sampling_rows, longest)
        self.meter.take()  # an evaluation's, which has rows of its own
        found = self.rollouts.collect(engine, step)
        self.seconds["rollouts"] = round(time.perf_counter() - began, 6)
        return found

    def _watch(self) -> Watch:
        rows = self.run.rows(METRICS)
        self.recent: list[dict[str, Any]] = rows[-2 * self.options.alarm_window :]
        raised = [name for name, text in self._own_alarms() if text is not None]
        return Watch(rows, self.options.not_finite_limit, alarms_of(self.pipeline.algorithm), raised)

    def _own_alarms(self) -> tuple[tuple[str, str | None], ...]:
        if not self.recent:
            return ()
        found = collapse(self.recent, self.options.alarm_window)
        return ("collapse", found), ("undeclared", undeclared(self.recent[-1]))

    def step_over(self, update: int) -> bool:
        """Write the rows of a step whose last optimiser step was number ``update``; whether a checkpoint is in place.

        Raises :class:`callwright.errors.RunError` where an alarm ends the run.
        """
        step, trainer, options = update // self.options.updates, self.trainer, self.options
        collected = trainer.collected
        assert collected is not None
        rows = self.rollouts.rows(collected, step)
        if trainer.accelerator.num_processes > 1:
            rows = gather_object(rows)
        fine = True
        stop = None
        if self.watch is not None:
            row = self._row(collected, step, update)
            self.recent = [*self.recent, row][-2 * options.alarm_window :]
            found = self.watch.look(row, *self._own_alarms())
            row["alarm"] = found.text
            for reason in found.news:
                logger.warning("alarm", step=step, reason=reason)
            stop, fine = found.stop, not mostly_masked(row)
            self._append(METRICS, [row])
            self._append(ROLLOUTS, [written(one) for one in rows])
            self._append(TIMINGS, [{"phase": "train", "step": step, **self.seconds, "memory": peak_memory()}])
            if self.pipeline.registry.listens("callwright_training_step"):
                self.pipeline.registry.hook.callwright_training_step(metrics=row)
            shown = {"reward": row["reward"], "answered": row["answered"]}
            self.reporter.advance(**{name: value for name, value in shown.items() if value is not None})
        stop, fine = self._agreed((stop, fine))
        self.last.reached()
        if stop is not None:
            raise RunError(stopped(step, stop))
        return fine

    def _agreed(self, said: tuple[str | None, bool]) -> tuple[str | None, bool]:
        """What the first process says."""
        if self.trainer.accelerator.num_processes == 1:
            return said
        told = [said]
        broadcast_object_list(told)
        return told[0]

    def _row(self, collected: Collected, step: int, update: int) -> dict[str, Any]:
        figures, faults = self.trainer.figures
        trained: dict[str, Any] = {}
        if bool(collected.valid.any()):
            trained = {**figures, "learning_rate": self.trainer.rate(update - 1)}
            if faults:
                tasks = list(dict.fromkeys(group.task for group in collected.groups))
                trained["not_finite"] = not_finite(len(faults), self.options.updates, tasks, faults)
        seen: list[Group] = collected.seen
        usage = self.meter.take()
        return {
            "step": step,
            **described([one.observed for group in seen for one in group.rollouts]),
            **({} if self.limits.single else turns_of(seen)),
            "groups": len(collected.groups),
            "zero_variance": zero_variance([[one.total for one in group.rollouts] for group in seen]),
            "resampling_rounds": collected.rounds,
            **({"usage": usage} if usage else {}),
            **written(trained),
        }

    def _append(self, name: str, rows: list[Mapping[str, Any]] | list[dict[str, Any]]) -> None:
        if rows:
            self.run.append(name, rows)
            self.counts[name] += len(rows)

    def checkpointed(self, update: int) -> None:
        """Transformers wrote the checkpoint of an optimiser step."""
        if self.watch is not None:
            folder = self.run.checkpoints / f"checkpoint-{update}"
            state = State(update // self.options.updates, self.counts, self.evaluation)
            keep(folder, state, self.lengths, self.options.keep_checkpoints)
        self.trainer.accelerator.wait_for_everyone()

    # Evaluation -------------------------------------------------------------------------------------------------------

    def evaluate_once(self, which: str, step: int | None = None) -> None:
        """An evaluation that is due, unless it was made: ``before``, ``during`` (after ``step``) or ``after``."""
        if which != "during":
            if self.evaluation[which] is None:
                self.evaluation[which] = self._evaluate(f"evaluation {which}")
        elif all(one["step"] != step for one in self.evaluation["during"]):
            self.evaluation["during"].append({"step": step, **self._evaluate(None)})
        if self.watch is not None:
            self.run.write_json(EVALUATION, self.evaluation)

    def _evaluate(self, stage: str | None) -> dict[str, Any]:
        """The summary of one greedy attempt per task; each process has its share of them."""
        options, pipeline, accelerator = self.options, self.pipeline, self.trainer.accelerator
        tasks = per_depth(pipeline.tasks(pipeline.evaluation), options.evaluation_tasks)
        world, process = accelerator.num_processes, accelerator.process_index
        # As many each, so that processes that must sample together do.
        mine = [place % len(tasks) for place in range(process, -(-len(tasks) // world) * world, world)] if tasks else []
        sampler = TrainerSampler(self.trainer, self.codec, options.evaluation_batch, options.max_new_tokens, self.pool)
        if stage is not None:
            self.reporter.start(stage, len(tasks))
        verdicts = evaluate(
            pipeline,
            [tasks[place] for place in mine],
            sampler,
            seed=pipeline.conditions.seed,
            batch=options.evaluation_batch,
            limits=self.limits,
            retries=options.retries,
            on_batch=None if stage is None else self._advancing(len(tasks)),
        )
        found = list(zip(mine, verdicts, strict=True))
        if world > 1:
            found = gather_object(found)
        if stage is not None:
            self.reporter.finish()
        by_place = dict(found)
        return summarise([by_place[place] for place in sorted(by_place)])

    def _advancing(self, total: int) -> Callable[[int], None]:
        """Tells the reporter of evaluated tasks; those of other processes are taken to be as far."""
        world = self.trainer.accelerator.num_processes
        told = 0

        def heard(count: int) -> None:
            nonlocal told
            now = min(total, count * world)
            self.reporter.advance(now - told)
            told = now

        return heard


class Callback(TrainerCallback):  # type: ignore[misc]
    """What a course does at the moments that transformers' loop tells of."""

    def __init__(self, course: Course) -> None:
        self.course = course

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Evaluate before the first step; the model is where it will be trained."""
        course = self.course
        done = state.global_step // course.options.updates
        course.evaluate_once("before")
        self._evaluate_during(done)  # a run may have ended between a step and its evaluation
        course.reporter.start("training", course.options.steps, done)

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """An optimiser step begins, the first one of a step of ours maybe."""
        if state.global_step % self.course.options.updates == 0:
            self.course.trainer.begin_figures()
            self.began = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        """An optimiser step is over, the last one of a step of ours maybe."""
        course = self.course
        if state.global_step % course.options.updates:
            return control
        course.seconds["seconds"] = round(time.perf_counter() - self.began, 6)
        fine = course.step_over(state.global_step)
        step = state.global_step // course.options.updates
        self._evaluate_during(step)
        if not fine and step < course.options.steps:
            control.should_save = False  # what was masked is made again if the run ends over it
        return control

    def _evaluate_during(self, step: int) -> None:
        every = self.course.options.evaluate_every
        if every and step % every == 0 and 0 < step < self.course.options.steps:
            self.course.evaluate_once("during", step)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A checkpoint is written."""
        self.course.checkpointed(state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Evaluate after the last step."""
        self.course.reporter.finish()
        self.course.evaluate_once("after")


def adapter(options: Options) -> Any:
    """The configuration of a low-rank adapter, as peft has it."""
    from peft import LoraConfig

    lora = options.lora
    assert lora is not None
    return LoraConfig(
        task_type="CAUSAL_LM",
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=0.0,
        target_modules=lora.targets,
        use_rslora=lora.rslora,
        use_dora=lora.dora,
    )


def quantised(options: Options) -> Any:
    """How bitsandbytes rounds the weights under an adapter."""
    from transformers import BitsAndBytesConfig

    if options.quantization == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16 if options.dtype == "bfloat16" else torch.float32,
    )


@contextmanager
def steady(threads: int) -> Iterator[None]:
    """Run with ``threads`` torch threads and deterministic kernels where there are any; both are put back."""
    before = torch.get_num_threads()
    deterministic = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        torch.use_deterministic_algorithms(deterministic, warn_only=warn_only)


@contextmanager
def quiet() -> Iterator[None]:
    """Without progress bars on stderr, and without the warnings of libraries about one another."""
    from transformers.utils import logging

    shown, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        with warnings.catch_warnings():
            for module in ("transformers", "torch", "trl", "peft", "accelerate"):
                warnings.filterwarnings("ignore", module=rf"{module}\b")
            yield
    finally:
        logging.set_verbosity(level)
        if shown:
            logging.enable_progress_bar()
