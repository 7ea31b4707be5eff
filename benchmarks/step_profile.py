"""What a step of the demo costs: seconds of CPU by phase, operator calls, and the gradients of its two forwards.

    OMP_NUM_THREADS=1 python benchmarks/step_profile.py
    OMP_NUM_THREADS=1 python benchmarks/step_profile.py --only few --warm 200 --steps 10

The recipe's model is warmed up by some steps and then measured in two forms, a step of each in turn on the same tasks:
``few``, small Llamas in few operators, and ``transformers``, the forward of that library. Printed are the means of
seconds of CPU of a step of the warm start, and of one of reinforcement learning, by phase; the operator calls of each
(``torch.profiler``); and by how much the gradients of one batch differ, over the largest of them. Both forms take part
in the same run and share its weights; the steps that are measured change nothing. The exit status is 1 where gradients
are further apart than ``--tolerance``.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from attrs import evolve

from callwright.options import read_options
from callwright.pipeline import build_pipeline
from callwright.recipe_file import load_recipe
from callwright.training.rollouts.task_stream import TaskStream
from callwright.walk.conditions import Progress
from callwright_plugins.local_trainer.forward import generation, likelihood
from callwright_plugins.local_trainer.learning.steps import adamw, clipped_step
from callwright_plugins.local_trainer.learning.supervised import negative_log_likelihood
from callwright_plugins.local_trainer.learning.update import Batch, descend, make_batch, prepare
from callwright_plugins.local_trainer.learning.warm_start import examples, warm_start_step
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.local_trainer.randomness import steady
from callwright_plugins.local_trainer.run.training import make_policy
from callwright_plugins.local_trainer.sampling.episodes import longest, sample_groups, turn_limits
from callwright_plugins.local_trainer.sampling.rollouts import Group, rewards_of

FORMS = ("few", "transformers")


@contextmanager
def in_form(form: str) -> Iterator[None]:
    """In this block the trainer computes in one of the forms."""
    before = generation.understood, likelihood.understood
    if form == "transformers":
        generation.understood = likelihood.understood = lambda policy: False
    try:
        yield
    finally:
        generation.understood, likelihood.understood = before


def cpu(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of CPU that a call takes, and what it gives."""
    began = time.process_time()
    found = call()
    return time.process_time() - began, found


def operators(call: Callable[[], Any]) -> int:
    """How many operators a call calls, those that operators call included."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        call()
    return sum(event.count for event in profile.key_averages() if event.key.startswith("aten::"))


class Bench:
    """The demo's parts, ready to be measured."""

    def __init__(self, recipe: str, warm: int, seed: int) -> None:
        loaded = load_recipe(recipe, [f"seed={seed}"])
        self.pipeline = build_pipeline(loaded)
        given = dict(loaded.recipe.trainer.options)
        self.options = read_options(Options, given, "the table [trainer]")
        self.seed = seed
        self.policy: Policy = make_policy(self.pipeline, self.options)
        self.limits = turn_limits(self.pipeline, self.policy, self.options)
        start = self.options.warm_start
        self.shown = examples(self.pipeline, self.policy, evolve_options(start, warm), seed, limits=self.limits)
        optimiser = adamw(self.policy.model, 0.0, self.options.betas)
        for step in range(warm):
            warm_start_step(self.policy, optimiser, self.shown, start, seed, step)
        self.reference = evolve(self.policy, model=frozen(self.policy.model))
        self.stream = TaskStream(self.pipeline.tasks(self.pipeline.train), self.options.depths, seed)
        self.spare = adamw(self.policy.model, 0.0, self.options.betas)

    def demonstrations(self, step: int) -> Any:
        """What a step of the warm start shows."""
        size = self.options.warm_start.batch
        return [self.shown[(step * size + place) % len(self.shown)] for place in range(size)]

    def warm(self, step: int) -> None:
        """A step of the warm start, at a rate of 0."""
        shown = self.demonstrations(step)
        (negative_log_likelihood(self.policy, shown) / len(shown)).backward()  # type: ignore[no-untyped-call]
        clipped_step(self.spare, self.policy.model, 0.0, 1.0)

    def sample(self, step: int, lap: Callable[[str], object]) -> list[Group]:
        """The rollouts of a step."""
        tasks = self.stream.draw(self.options.prompts, step, 0)
        purpose = (self.seed, "sampling", step, 0)
        progress = Progress(step, self.options.steps)
        return sample_groups(self.pipeline, self.policy, tasks, self.options, self.limits, purpose, progress, lap)

    def batch(self, groups: list[Group]) -> Batch:
        """What is trained on."""
        rewards, valid, _ = rewards_of(groups)
        algorithm = self.pipeline.algorithm
        assert algorithm is not None
        return make_batch(groups, algorithm.advantages(rewards, valid), valid, longest(self.limits, self.options))

    def update(self, batch: Batch) -> None:
        """The step on it, at a rate of 0."""
        algorithm = self.pipeline.algorithm
        assert algorithm is not None
        prepared = prepare(self.policy, self.reference, algorithm, batch, self.options)
        descend(self.policy, algorithm, self.spare, prepared, self.options, 0.0)

    def gradients(self, step: int) -> dict[str, torch.Tensor]:
        """Of the demonstrations of a step."""
        negative_log_likelihood(self.policy, self.demonstrations(step)).backward()  # type: ignore[no-untyped-call]
        found = {name: one.grad.clone() for name, one in self.policy.model.named_parameters() if one.grad is not None}
        self.policy.model.zero_grad()
        return found


def evolve_options(start: Any, steps: int) -> Any:
    """The warm start's options with as many demonstrations as some steps need."""
    return start.model_copy(update={"count": max(1, min(start.count, start.batch * max(steps, 20)))})


def frozen(model: Any) -> Any:
    """A copy without gradients."""
    return copy.deepcopy(model).requires_grad_(False)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="tier-mini", help="a recipe of the local trainer with a warm start")
    parser.add_argument("--warm", type=int, default=200, help="steps of the warm start before anything is measured")
    parser.add_argument(
        "--steps", type=int, default=6, help="steps of each form that are counted, after one that is not"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=FORMS, help="one form alone")
    parser.add_argument("--tolerance", type=float, default=1e-6, help="how far apart gradients may be")
    arguments = parser.parse_args()
    with steady(1, arguments.seed):
        return measured(arguments)


def measured(arguments: argparse.Namespace) -> int:
    """What :func:`main` does, with one thread."""
    bench = Bench(arguments.recipe, arguments.warm, arguments.seed)
    forms = [form for form in FORMS if arguments.only in (None, form)]
    spent: dict[str, dict[str, float]] = {form: {} for form in forms}
    calls: dict[str, dict[str, int]] = {form: {} for form in forms}
    for step in range(arguments.steps + 1):
        for form in forms:
            with in_form(form):
                laps: dict[str, float] = {}
                began = time.process_time()

                def lap(name: str, laps: dict[str, float] = laps, began: float = began) -> None:
                    laps[name] = time.process_time() - began

                groups = bench.sample(step, lap)
                parts = {"sampling": laps["sampling"], "scoring": time.process_time() - began - laps["sampling"]}
                batch = bench.batch(groups)
                parts["update"], _ = cpu(partial(bench.update, batch))
                parts["warm start"], _ = cpu(partial(bench.warm, step))
                for name, seconds in parts.items() if step else ():
                    spent[form][name] = spent[form].get(name, 0.0) + seconds / arguments.steps
                if step == arguments.steps:
                    calls[form] = {
                        "sampling": operators(partial(bench.sample, step, lambda name: None)),
                        "update": operators(partial(bench.update, batch)),
                        "warm start": operators(partial(bench.warm, step)),
                    }
    for form in forms:
        whole = sum(spent[form][name] for name in ("sampling", "scoring", "update"))
        count = calls[form]["sampling"] + calls[form]["update"]
        sys.stdout.write(f"{form}: {whole:.3f} s of CPU and {count:,} operator calls a step\n")
        for name, seconds in spent[form].items():
            share = f"{seconds / whole:4.0%}" if name != "warm start" else "    "
            count = calls[form].get(name, 0)
            sys.stdout.write(f"  {name:11} {seconds * 1000:8.1f} ms {share} {count:8,} calls\n")
    if len(forms) < 2:
        return 0
    found = []
    for form in FORMS:
        with in_form(form):
            found.append(bench.gradients(0))
    largest = max(float(one.abs().max()) for one in found[1].values())
    apart = max(float((found[0][name] - found[1][name]).abs().max()) for name in found[1]) / largest
    sys.stdout.write(f"gradients are {apart:.1e} of the largest apart\n")
    return int(apart > arguments.tolerance)


if __name__ == "__main__":
    sys.exit(main())
