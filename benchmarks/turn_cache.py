"""What it saves to keep keys and values between turns: prefilled tokens, and seconds of CPU of sampling, both ways.

    OMP_NUM_THREADS=1 python benchmarks/turn_cache.py
    OMP_NUM_THREADS=1 python benchmarks/turn_cache.py --only conversations --turns 8 --prompt 1024

``village``: rollouts of the recipe ``village-cpu`` after some steps of its warm start: real episodes of up to 12 turns,
with short prompts and a tiny model. ``conversations``: a model of 4.1 million parameters and random weights, prompts of
512 tokens, four copies of each, six turns of 32 sampled tokens and 64 that the environment adds. Each is sampled with
and without the cache in turn, by the forward in few operators and by transformers' own, from the same seeds. Prefilled
are the tokens of contexts that went through a forward pass, equal contexts once. Seconds are of the engine alone; calls
are executed beside them. One round is not counted.

Log-probabilities of the two ways are compared row by row up to the first token that is another one: it is where a
number that was drawn falls between two sums of probabilities that differ in their last bits. So are those of the two
forwards without a cache, to tell how much is rounding. The exit status is 1 where the two ways are more than 1e-4
apart, or more than one row of twenty goes another way.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from attrs import evolve, field, frozen
from transformers import Qwen3Config, Qwen3ForCausalLM

from callwright.episodes.driving import drive
from callwright.options import read_options
from callwright.pipeline import build_pipeline
from callwright.recipe_file import load_recipe
from callwright.training.rollouts.task_stream import TaskStream
from callwright_plugins.local_trainer.forward import generation
from callwright_plugins.local_trainer.forward.generation import continue_contexts
from callwright_plugins.local_trainer.forward.turn_cache import TurnCache
from callwright_plugins.local_trainer.learning.steps import adamw
from callwright_plugins.local_trainer.learning.warm_start import examples, warm_start_step
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.models.vocabulary import build_tokenizer
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.local_trainer.randomness import seed_of, steady
from callwright_plugins.local_trainer.run.training import make_policy
from callwright_plugins.local_trainer.sampling.episodes import Engine, turn_limits

FORMS = ("few operators", "transformers")
CLOSE = 1e-4
MOST_OTHERS = 0.05
VOCABULARY = 2048
#: What rows said: ids with log-probabilities.
Said = list[tuple[tuple[int, ...], tuple[float, ...]]]


@contextmanager
def in_form(form: str) -> Iterator[None]:
    """In this block small models are computed in one of the forms."""
    before = generation.understood
    if form == "transformers":
        generation.understood = lambda policy: False
    try:
        yield
    finally:
        generation.understood = before


@frozen(eq=False)
class Figures:
    """Of some rounds: seconds of CPU, tokens that were prefilled and sampled, turns, the most bytes that were kept."""

    seconds: list[float] = field(factory=list)
    prefilled: list[int] = field(factory=list)
    sampled: list[int] = field(factory=list)
    turns: list[float] = field(factory=list)
    kept: list[int] = field(factory=list)


class Village:
    """Rollouts of the recipe, step by step."""

    def __init__(self, warm: int, seed: int) -> None:
        loaded = load_recipe("village-cpu", [f"seed={seed}"])
        self.pipeline, self.seed = build_pipeline(loaded), seed
        self.options = read_options(Options, dict(loaded.recipe.trainer.options), "the table [trainer]")
        self.policy = make_policy(self.pipeline, self.options)
        self.limits = turn_limits(self.pipeline, self.policy, self.options)
        start = self.options.warm_start.model_copy(update={"count": 600})
        shown = examples(self.pipeline, self.policy, start, seed, limits=self.limits)
        optimiser = adamw(self.policy.model, 0.0, self.options.betas)
        for step in range(warm):
            warm_start_step(self.policy, optimiser, shown, start, seed, step)
        self.stream = TaskStream(self.pipeline.tasks(self.pipeline.train), None, seed)

    def play(self, step: int, cache: TurnCache, figures: Figures) -> Said:
        """The rollouts of a step."""
        policy, codec = self.policy, self.policy.codec()
        tasks = self.stream.draw(self.options.prompts, step, 0)
        conditions = [
            evolve(self.pipeline.conditions, limits=self.limits, seed=seed_of(self.seed, "sampling", step, copy))
            for copy in range(self.options.group)
        ]
        live = [self.pipeline.token_episode(task, codec, conditions=one) for task in tasks for one in conditions]
        engine = Engine(policy, 1.0, None, self.options.sampling_rows, self.options.max_new_tokens, cache)
        seconds, most = 0.0, 0

        def ask(some: list[Any]) -> Sequence[Any]:
            nonlocal seconds, most
            began = time.process_time()
            answers = engine(some)
            seconds += time.process_time() - began
            most = max(most, cache.size)
            return answers

        drive(live, ask)
        figures.seconds.append(seconds)
        figures.prefilled.append(cache.computed)
        figures.sampled.append(sum(sum(one.mask) for one in live))
        figures.turns.append(sum(len(one.ranges) for one in live) / len(live))
        figures.kept.append(most)
        return [(one.response_ids, one.logprobs) for one in live]


class Conversations:
    """Turns of a length that is given, of a model that was never trained."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        torch.manual_seed(arguments.seed)
        added = arguments.turns * (arguments.new + arguments.heard)
        config = Qwen3Config(
            vocab_size=VOCABULARY,
            hidden_size=256,
            intermediate_size=512,
            num_hidden_layers=6,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=64,
            max_position_embeddings=arguments.prompt + added,
            tie_word_embeddings=True,
            initializer_range=0.1,
        )
        model = Qwen3ForCausalLM(config).eval()
        model.generation_config.eos_token_id = VOCABULARY - 1
        with torch.no_grad():
            model.model.embed_tokens.weight[-1] *= 0  # an end is as rare as any
        self.policy = Policy(model, build_tokenizer([]), torch.device("cpu"))

    def play(self, step: int, cache: TurnCache, figures: Figures) -> Said:
        """Six turns of each row."""
        given = self.arguments
        draw = random.Random(step)

        def words(count: int) -> tuple[int, ...]:
            return tuple(draw.randrange(VOCABULARY - 1) for _ in range(count))

        contexts = [one for _ in range(given.prompts) for one in [words(given.prompt)] * given.copies]
        said: Said = [((), ())] * len(contexts)
        rows, seconds, most = list(range(len(contexts))), 0.0, 0
        for turn in range(given.turns):
            began = time.process_time()
            found = continue_contexts(
                self.policy,
                contexts,
                [given.new] * len(rows),
                temperature=1.0,
                seeds=[seed_of(step, row, turn) for row in rows],
                kept=cache,
                owners=rows,
                goes_on=[turn + 1 < given.turns] * len(rows),
            )
            seconds += time.process_time() - began
            most = max(most, cache.size)
            said = [
                ((*ids, *one.ids), (*logprobs, *one.logprobs)) for (ids, logprobs), one in zip(said, found, strict=True)
            ]
            contexts = [(*one, *more.ids, *words(given.heard)) for one, more in zip(contexts, found, strict=True)]
        figures.seconds.append(seconds)
        figures.prefilled.append(cache.computed)
        figures.sampled.append(sum(len(ids) for ids, _ in said))
        figures.turns.append(given.turns)
        figures.kept.append(most)
        return said


def apart(one: Said, other: Said) -> tuple[float, int]:
    """The largest difference of a log-probability, and how many rows go another way from some token on."""
    worst, others = 0.0, 0
    for (ids, logprobs), (more, known) in zip(one, other, strict=True):
        same = next((place for place, (a, b) in enumerate(zip(ids, more, strict=False)) if a != b), len(ids))
        worst = max([worst, *(abs(a - b) for a, b in zip(logprobs[:same], known[:same], strict=True))])
        others += ids != more
    return worst, others


def measured(name: str, play: Callable[[int, TurnCache, Figures], Said], rounds: int, gib: float) -> bool:
    """Both ways and forms in turn; a line of each, and whether they are close."""
    figures = {(form, gib_): Figures() for form in FORMS for gib_ in (0.0, gib)}
    worst, forwards, rows, others = 0.0, 0.0, 0, 0
    for step in range(rounds + 1):
        anew: list[Said] = []
        for form in FORMS:
            with in_form(form):
                said = [play(step, TurnCache(one * (1 << 30)), figures[form, one]) for one in (0.0, gib)]
            anew.append(said[0])
            far, differing = apart(*said)
            worst, rows, others = max(worst, far), rows + len(said[0]), others + differing
        forwards = max(forwards, apart(*anew)[0])
    for form in FORMS:
        spent = []
        for one in (0.0, gib):
            some = figures[form, one]
            means = (sum(column[1:]) / rounds for column in (some.seconds, some.prefilled, some.sampled, some.turns))
            seconds, prefilled, sampled, turns = means
            spent.append(seconds)
            way = "kept" if one else "anew"
            sys.stdout.write(
                f"{name:14} {form:14} {way:5} {turns:4.1f} turns {prefilled:9,.0f} prefilled {sampled:8,.0f} sampled "
                f"{seconds:7.2f} s of CPU {max(some.kept) / 2**20:7.1f} MiB kept\n"
            )
        sys.stdout.write(f"{name:14} {form:14} {spent[0] / spent[1]:.2f} times as fast\n")
    sys.stdout.write(
        f"{name}: log-probabilities are at most {worst:.1e} apart (of the two forwards {forwards:.1e}); "
        f"{others} of {rows} rows go another way\n"
    )
    return worst <= CLOSE and others <= MOST_OTHERS * rows


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("village", "conversations"))
    parser.add_argument("--warm", type=int, default=300, help="steps of the village's warm start")
    parser.add_argument("--rounds", type=int, default=3, help="that are counted, after one that is not")
    parser.add_argument("--gib", type=float, default=1.0, help="what the cache may hold")
    parser.add_argument("--prompts", type=int, default=4)
    parser.add_argument("--copies", type=int, default=4)
    parser.add_argument("--prompt", type=int, default=512, help="tokens of a prompt")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--new", type=int, default=32, help="tokens that a turn samples")
    parser.add_argument("--heard", type=int, default=64, help="tokens that the environment adds")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    close = []
    with steady(1, arguments.seed):
        if arguments.only != "conversations":
            village = Village(arguments.warm, arguments.seed)
            close.append(measured("village", village.play, arguments.rounds, arguments.gib))
        if arguments.only != "village":
            close.append(measured("conversations", Conversations(arguments).play, arguments.rounds, arguments.gib))
    return int(not all(close))


if __name__ == "__main__":
    sys.exit(main())
