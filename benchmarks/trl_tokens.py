"""Tokens per second of the local trainer and of TRL's GRPOTrainer, at equal work on the CPU, in one process.

    OMP_NUM_THREADS=1 python benchmarks/trl_tokens.py
    OMP_NUM_THREADS=1 python benchmarks/trl_tokens.py --prompt 64 --rounds 5

Both train the same model (Qwen3 architecture, random weights) on the same prompts: as many completions of as many
tokens, one optimiser step a batch, ``loss_type="bnpo"`` with a KL weight of 0.04 against a frozen reference, float32,
one thread, no gradient checkpointing. They take turns, a step each; the first step of both is not counted. Seconds are
of CPU time, so that other processes on the machine do not count. "Sampling" is what makes completions; "training" is
all else but the reward: log-probabilities of policy and reference, loss, gradients, AdamW. The exit status is 1 if the
local trainer is less than twice as fast in total.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from attrs import evolve

from callwright_plugins.local_trainer.forward.generation import Sampled, generate
from callwright_plugins.local_trainer.learning.steps import adamw
from callwright_plugins.local_trainer.learning.update import Batch, descend, prepare
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.local_trainer.randomness import torch_generator
from callwright_plugins.policy_gradient.bn_grpo import BatchNormalisedGRPO

VOCABULARY, PAD, END = 2048, 2046, 2047
RATE = 1e-4


def clock(device: str) -> float:
    """Seconds of CPU time; on a GPU those that pass, once it has done what it was told."""
    if device == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()


class Meter:
    """Seconds and tokens of one side."""

    def __init__(self) -> None:
        self.steps: list[tuple[float, float, int]] = []

    def step(self, sampling: float, training: float, tokens: int) -> None:
        """Count a step."""
        self.steps.append((sampling, training, tokens))

    def rates(self) -> dict[str, float]:
        """Tokens a second of sampling, of training, and of both together, over all steps but the first."""
        sampling, training, tokens = (sum(column) for column in zip(*self.steps[1:], strict=True))
        return {
            "sampling": tokens / sampling,
            "training": tokens / training,
            "together": tokens / (sampling + training),
        }


def variety(completion: Sequence[int]) -> float:
    """The reward of both sides: how many different tokens there are."""
    return len(set(completion)) / len(completion)


def make_model(arguments: argparse.Namespace) -> Any:
    """The model of both sides: 3.5 million parameters unless asked otherwise."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=arguments.width,
        intermediate_size=2 * arguments.width,
        num_hidden_layers=arguments.layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=arguments.width // 4,
        max_position_embeddings=arguments.prompt + arguments.new + 8,
        tie_word_embeddings=True,
        pad_token_id=PAD,
        bos_token_id=None,
        eos_token_id=END,
    )
    return Qwen3ForCausalLM(config)


def make_tokenizer() -> Any:
    """A tokenizer whose word ``wN`` is the id N."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {f"w{number}": number for number in range(PAD)} | {"<pad>": PAD, "<end>": END}
    tokenizer = Tokenizer(models.WordLevel(words, "w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<end>")


def make_prompts(arguments: argparse.Namespace) -> list[tuple[int, ...]]:
    """Prompts of random tokens, between half of the length that was asked for and all of it."""
    generator = torch.Generator().manual_seed(1)
    lengths = torch.linspace(arguments.prompt / 2, arguments.prompt, arguments.prompts).round().int().tolist()
    return [tuple(torch.randint(0, PAD, (length,), generator=generator).tolist()) for length in lengths]


# The local trainer ----------------------------------------------------------------------------------------------------


def local_steps(model: Any, prompts: list[tuple[int, ...]], arguments: argparse.Namespace) -> Iterator[Meter]:
    """A step of the local trainer at each turn."""
    meter = Meter()
    device = arguments.device
    policy = Policy(model.eval().to(device), make_tokenizer(), torch.device(device), getattr(torch, arguments.dtype))
    reference = evolve(policy, model=copy.deepcopy(model).requires_grad_(False))
    algorithm = BatchNormalisedGRPO(kl_weight=0.04)
    options = Options(group=arguments.group, max_new_tokens=arguments.new, device=device, dtype=arguments.dtype)
    optimiser = adamw(policy.model, 0.0, (0.9, 0.999))
    step = 0
    while True:
        began = clock(device)
        groups = generate(
            policy,
            prompts,
            copies=arguments.group,
            max_new_tokens=arguments.new,
            temperature=1.0,
            generator=torch_generator(0, "sampling", step),
        )
        sampling = clock(device) - began
        rewards = torch.tensor([[variety(one.ids) for one in group] for group in groups])
        began = clock(device)
        flat: list[Sampled] = [one for group in groups for one in group]
        batch = Batch(
            prompts,
            [row for row, group in enumerate(groups) for _ in group],
            [one.ids for one in flat],
            algorithm.advantages(rewards, torch.ones_like(rewards, dtype=torch.bool)).reshape(-1),
            limit=arguments.new,
        )
        prepared = prepare(policy, reference, algorithm, batch, options)
        descend(policy, algorithm, optimiser, prepared, options, RATE)
        meter.step(sampling, clock(device) - began, sum(len(one.ids) for one in flat))
        step += 1
        yield meter


# TRL ------------------------------------------------------------------------------------------------------------------


def trl_steps(
    model: Any, prompts: list[tuple[int, ...]], arguments: argparse.Namespace, adapter: Any = None
) -> Iterator[Meter]:
    """A step of TRL's trainer at each turn: what its training loop does, once. ``adapter`` is peft's, for LoRA."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    meter = Meter()
    device = arguments.device
    spent = {"generating": 0.0, "rewarding": 0.0}
    tokens = 0

    def reward(prompts: Any, completions: Any, completion_ids: Any, **columns: Any) -> list[float]:
        nonlocal tokens
        tokens = sum(len(ids) for ids in completion_ids)
        return [variety(ids) for ids in completion_ids]

    rows = arguments.prompts * arguments.group
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)  # from where TRL loads the reference
        trainer = GRPOTrainer(
            model=type(model).from_pretrained(folder),
            reward_funcs=reward,
            args=GRPOConfig(
                output_dir=folder,
                num_generations=arguments.group,
                per_device_train_batch_size=rows,
                gradient_accumulation_steps=1,
                max_completion_length=arguments.new,
                loss_type="bnpo",
                beta=0.04,
                learning_rate=RATE,
                lr_scheduler_type="constant",
                temperature=1.0,
                gradient_checkpointing=False,
                shuffle_dataset=False,
                use_cpu=device == "cpu",
                bf16=arguments.dtype == "bfloat16",
                report_to="none",
                logging_strategy="no",
                save_strategy="no",
                disable_tqdm=True,
                max_steps=10**6,
            ),
            train_dataset=Dataset.from_list([{"prompt": " ".join(f"w{one}" for one in ids)} for ids in prompts]),
            processing_class=make_tokenizer(),
            peft_config=adapter,
        )

    def timed(name: str, part: str) -> None:
        inner = getattr(trainer, name)

        def call(*given: Any, **more: Any) -> Any:
            began = clock(device)
            try:
                return inner(*given, **more)
            finally:
                spent[part] += clock(device) - began

        setattr(trainer, name, call)

    timed("_generate", "generating")
    timed("_calculate_rewards", "rewarding")
    trainer.create_optimizer_and_scheduler(num_training_steps=10**6)
    wrapped = trainer.accelerator.prepare(trainer.model)
    wrapped.train()
    trainer.current_gradient_accumulation_steps = 1
    feed = iter(trainer.get_train_dataloader())
    while True:
        spent.update(generating=0.0, rewarding=0.0)
        try:
            inputs = next(feed)
        except StopIteration:
            feed = iter(trainer.get_train_dataloader())
            inputs = next(feed)
        began = clock(device)
        trainer.training_step(wrapped, inputs, num_items_in_batch=None)
        torch.nn.utils.clip_grad_norm_(wrapped.parameters(), 1.0)
        trainer.optimizer.step()
        wrapped.zero_grad()
        whole = clock(device) - began
        meter.step(spent["generating"], whole - spent["generating"] - spent["rewarding"], tokens)
        yield meter


# Both -----------------------------------------------------------------------------------------------------------------


def main() -> int:
    """Take turns, and print a row a side and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prompts", type=int, default=8, help="prompts a step")
    parser.add_argument("--group", type=int, default=8, help="completions a prompt")
    parser.add_argument("--prompt", type=int, default=256, help="tokens of the longest prompt; the shortest has half")
    parser.add_argument("--new", type=int, default=64, help="most tokens of a completion")
    parser.add_argument("--width", type=int, default=256, help="of the residual stream")
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3, help="steps of each side that are counted")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    arguments.device, arguments.dtype = "cpu", "float32"
    torch.set_num_threads(1)
    model, prompts = make_model(arguments), make_prompts(arguments)
    size = sum(parameter.numel() for parameter in model.parameters())
    sides = {
        "callwright": local_steps(copy.deepcopy(model), prompts, arguments),
        "TRL": trl_steps(copy.deepcopy(model), prompts, arguments),
    }
    meters: dict[str, Meter] = {}
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        for _ in range(arguments.rounds + 1):
            for side, steps in sides.items():
                meters[side] = next(steps)
    rates = {side: meter.rates() for side, meter in meters.items()}
    ratio = {part: rates["callwright"][part] / rates["TRL"][part] for part in rates["TRL"]}
    versions = ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "trl"))
    tokens = sum(tokens for _, _, tokens in meters["TRL"].steps[1:]) / arguments.rounds
    sys.stdout.write(
        f"{size / 1e6:.2f} million parameters, {arguments.prompts} prompts of {arguments.prompt // 2} to "
        f"{arguments.prompt} tokens, {arguments.group} completions each of up to {arguments.new} ({tokens:.0f} tokens "
        f"a step), {arguments.rounds} steps each; {versions}\n\n"
    )
    line = "{:12} {:>10} {:>10} {:>10}\n".format
    sys.stdout.write(line("tokens/CPU s", "sampling", "training", "together"))
    for side in sides:
        sys.stdout.write(line(side, *(f"{value:.0f}" for value in rates[side].values())))
    sys.stdout.write(line("ratio", *(f"{value:.2f}" for value in ratio.values())))
    if arguments.json:
        figures = {"parameters": size, "versions": versions, "rates": rates, "ratio": ratio}
        arguments.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return int(ratio["together"] < 2)


if __name__ == "__main__":
    sys.exit(main())
