"""Warm start: supervised training on rendered programs, so that reinforcement learning has something to reinforce."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from attrs import evolve, frozen

from callwright.episodes.token_line import TokenLine
from callwright.errors import UsageError
from callwright.language.program import Program
from callwright.training.reporter import SILENT, Reporter
from callwright.walk.limits import SINGLE_TURN, TurnLimits
from callwright.walk.tasks import Task
from callwright_plugins.local_trainer.forward.batches import pad_right
from callwright_plugins.local_trainer.forward.likelihood import FullSequences
from callwright_plugins.local_trainer.learning.steps import clipped_step, learning_rate
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.options import WarmStart
from callwright_plugins.local_trainer.randomness import python_generator
from callwright_plugins.local_trainer.sampling.episodes import demonstrate, shown_ids

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline


@frozen
class Example:
    """One demonstration as token ids: a prompt, and a completion with its end token.

    Of several turns the completion is everything after the prompt, and ``mask`` is 0 for what the environment said.
    """

    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    mask: tuple[int, ...] | None = None

    @property
    def tokens(self) -> int:
        """How many tokens are learnt from."""
        return len(self.completion) if self.mask is None else sum(self.mask)


def examples(
    pipeline: Pipeline,
    policy: Policy,
    options: WarmStart,
    seed: int,
    reporter: Reporter = SILENT,
    limits: TurnLimits = SINGLE_TURN,
) -> list[Example]:
    """The demonstrations, encoded: the program and, as far as ``limits`` go on, what its calls came to and the answer.

    Raises :class:`callwright.UsageError` if there are none, if one is too long, or if the tokenizer does not give back
    the text of one: a policy would then be trained on something that the parser never sees.
    """
    encoded = []
    codec = policy.codec()
    conditions = evolve(pipeline.conditions, limits=limits)
    for task, program in demonstrations(pipeline, options, seed):
        messages = () if policy.form == "compact" else pipeline.messages(task)
        if limits.single:  # nothing follows the program, so nothing has to be executed to show it
            line = TokenLine(codec.prompt_ids(messages, task))
            line.sampled(shown_ids(policy, task, pipeline.parser.render(program)))
        else:
            episode = pipeline.token_episode(task, codec, messages=messages, conditions=conditions)
            demonstrate(episode, policy, program)
            line = episode.line
            if episode.masked is not None:
                reporter.advance()
                continue
        encoded.append(_short_enough(Example(line.prompt_ids, line.response_ids, line.mask), task, options))
        reporter.advance()
    if not encoded:
        raise UsageError("there is nothing to start from: the corpus has no demonstrations and its tasks no programs")
    return encoded


def _short_enough(example: Example, task: Task, options: WarmStart) -> Example:
    length = len(example.prompt) + len(example.completion)
    if length > options.max_tokens:
        raise UsageError(
            f"the demonstration of task {task.id!r} has {length} tokens, more than the {options.max_tokens} of "
            "'warm_start'.max_tokens"
        )
    return example


def demonstrations(pipeline: Pipeline, options: WarmStart, seed: int) -> Iterable[tuple[Task, Program]]:
    """Tasks with a program each: the corpus's own demonstrations, else the reference programs of the train split.

    Raises :class:`callwright.UsageError` if demonstrations are given options and the corpus has none.
    """
    make: Any = getattr(pipeline.corpus, "demonstrations", None)
    if make is not None:
        shown: Iterable[tuple[Task, Program]] = make(seed, options.count, dict(options.demonstrations))
        return shown
    if options.demonstrations:
        raise UsageError(
            f"the corpus {pipeline.corpus.name!r} makes no demonstrations, so 'warm_start'.demonstrations means nothing"
        )
    tasks = pipeline.tasks(pipeline.train, options.count)
    return [(task, task.program) for task in tasks if task.program is not None]


def warm_start_step(
    policy: Policy,
    optimiser: torch.optim.AdamW,
    shown: Sequence[Example],
    options: WarmStart,
    seed: int,
    step: int,
) -> Mapping[str, float]:
    """One step on a batch drawn for this step; the loss (nats a token) is of completion tokens only."""
    rng = python_generator(seed, "warm start", step)
    batch = [shown[rng.randrange(len(shown))] for _ in range(options.batch)]
    batch.sort(key=lambda example: (len(example.completion), len(example.prompt)))
    tokens = sum(example.tokens for example in batch)
    size = -(-len(batch) // options.micro_batches)
    total = 0.0
    for start in range(0, len(batch), size):
        part = batch[start : start + size]
        sequences = FullSequences(policy, [example.prompt for example in part])
        likelihood = sequences.likelihood(
            range(len(part)), [example.completion for example in part], temperature=1, entropy="none"
        )
        mask = likelihood.mask
        if any(example.mask is not None for example in part):
            written, _ = pad_right([example.mask or (1,) * example.tokens for example in part], 0, policy.device)
            mask = mask * written
        loss = -(likelihood.logprobs * mask).sum() / tokens
        loss.backward()  # type: ignore[no-untyped-call]
        total += float(loss.detach())
    rate = learning_rate(step, options.steps, options.learning_rate, options.warm_up, "linear")
    norm = clipped_step(optimiser, policy.model, rate, options.clip_norm)
    return {"loss": total, "learning_rate": rate, "gradient_norm": norm, "tokens": tokens}
