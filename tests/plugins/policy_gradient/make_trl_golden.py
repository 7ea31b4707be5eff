"""What TRL's GRPOTrainer computes, live (for the tests where TRL is installed) and on file (for those where it is not).

    pip install torch==2.13.0 && pip install trl==1.16.0 transformers==5.23.0
    python tests/plugins/policy_gradient/make_trl_golden.py             # rewrites trl_golden.json beside this file
    python tests/plugins/policy_gradient/make_trl_golden.py --compare   # prints the largest differences from ours

The trainer is TRL's own, on the CPU, around a one-layer model with random weights; nothing is downloaded. For a loss on
given tensors only its forward pass is replaced, by one that returns those tensors.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from attrs import frozen
from torch import Tensor

from callwright.plugins import load_plugins
from callwright.training import TokenBatch

GOLDEN = Path(__file__).with_name("trl_golden.json")
PAD, END = 30, 31

#: Case: our algorithm with its options, and the options of TRL's GRPOConfig that state the same loss (beside those of
#: ``Trl``: ``use_bias_correction_kl`` is off unless a case turns it on).
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "grpo": ("grpo", {}, {"loss_type": "grpo", "beta": 0.04}),
    "grpo, no KL": ("grpo", {"kl_weight": 0.0}, {"loss_type": "grpo", "beta": 0.0}),
    "grpo, clip-higher": (
        "grpo",
        {"epsilon": 0.1, "epsilon_high": 0.3},
        {"loss_type": "grpo", "beta": 0.04, "epsilon": 0.1, "epsilon_high": 0.3},
    ),
    "grpo, unbiased KL": (
        "grpo",
        {"unbiased_kl": True},
        {"loss_type": "grpo", "beta": 0.04, "use_bias_correction_kl": True},
    ),
    "bn-grpo": ("bn-grpo", {}, {"loss_type": "bnpo", "beta": 0.04}),
    "bn-grpo, no KL": ("bn-grpo", {"kl_weight": 0.0}, {"loss_type": "bnpo", "beta": 0.0}),
    "bn-grpo, clip-higher": (
        "bn-grpo",
        {"epsilon_high": 0.28, "kl_weight": 0.2},
        {"loss_type": "bnpo", "beta": 0.2, "epsilon": 0.2, "epsilon_high": 0.28},
    ),
    "bn-grpo, unbiased KL": (
        "bn-grpo",
        {"unbiased_kl": True},
        {"loss_type": "bnpo", "beta": 0.04, "use_bias_correction_kl": True},
    ),
    "dapo": ("dapo", {}, {"loss_type": "dapo", "beta": 0.0, "epsilon": 0.2, "epsilon_high": 0.28}),
    "dapo, with KL": (
        "dapo",
        {"epsilon_high": 0.4, "kl_weight": 0.04},
        {"loss_type": "dapo", "beta": 0.04, "epsilon": 0.2, "epsilon_high": 0.4},
    ),
    "dapo, unbiased KL": (
        "dapo",
        {"kl_weight": 0.1, "unbiased_kl": True},
        {"loss_type": "dapo", "beta": 0.1, "epsilon": 0.2, "epsilon_high": 0.28, "use_bias_correction_kl": True},
    ),
}
#: TRL's name of each diagnostic that it reports too.
METRICS = {
    "kl": "kl",
    "entropy": "entropy",
    "clip_fraction_low": "clip_ratio/low_mean",
    "clip_fraction_high": "clip_ratio/high_mean",
    "clip_fraction": "clip_ratio/region_mean",
}


@frozen(eq=False)
class Tensors:
    """The tensors of one batch, as both sides read them: ``[N, L]`` but for advantages ``[N]``."""

    logprobs: Tensor
    old_logprobs: Tensor
    ref_logprobs: Tensor
    entropy: Tensor
    mask: Tensor
    advantages: Tensor

    def __getitem__(self, rows: slice) -> Tensors:
        return Tensors(**{name: getattr(self, name)[rows] for name in self.__slots__ if not name.startswith("_")})


def random_tensors(seed: int, rows: int, tokens: int, dtype: torch.dtype = torch.float64) -> Tensors:
    """Ragged rows with holes (environment tokens), ratios well beyond the clip range, noise in the padding."""
    generator = torch.Generator().manual_seed(seed)

    def noise(scale: float, *shape: int) -> Tensor:
        return scale * torch.randn(shape or (rows, tokens), generator=generator, dtype=torch.float64)

    def short(values: Tensor) -> Tensor:  # so that the file is short and holds them exactly
        return values.round(decimals=4).to(dtype)

    logprobs = -1.5 - noise(0.8).abs()
    lengths = torch.randint(1, tokens + 1, (rows,), generator=generator)
    mask = (torch.arange(tokens) < lengths.unsqueeze(1)).long()
    mask *= (torch.rand(rows, tokens, generator=generator) > 0.15) | (torch.arange(tokens) == 0)
    return Tensors(
        logprobs=short(logprobs),
        old_logprobs=short(logprobs + noise(0.3)),
        ref_logprobs=short(logprobs + noise(0.4)),
        entropy=short(noise(1.0).abs()),
        mask=mask,
        advantages=short(noise(1.0, rows)),
    )


def random_rewards(seed: int, prompts: int, generations: int) -> list[list[float | None]]:
    """Rewards in steps of 0.05 in [0, 1]: one missing, one group of equal ones, and one with a single one left."""
    generator = torch.Generator().manual_seed(seed)
    rewards: list[list[float | None]] = [
        [round(0.05 * value, 2) for value in torch.randint(0, 21, (generations,), generator=generator).tolist()]
        for _ in range(prompts)
    ]
    rewards[0][1] = None
    rewards[1] = [0.35] * generations
    rewards[2] = [None] * (generations - 1) + [0.7]
    return rewards


class Trl:
    """A GRPOTrainer for given options of its GRPOConfig; ``rows`` completions a batch, ``generations`` a prompt."""

    def __init__(self, rows: int, generations: int, **options: Any) -> None:
        self.rows, self.generations = rows, generations
        self.rewards: list[float | None] = [0.0] * rows
        self.completions: list[list[int]] = [[END]] * rows
        self.env_masks: list[list[int]] = [[1]] * rows
        with quiet():
            self.trainer = self._make(options)
        self.trainer.current_gradient_accumulation_steps = options.get("gradient_accumulation_steps", 1)

    def _make(self, options: dict[str, Any]) -> Any:
        from datasets import Dataset
        from tokenizers import Tokenizer, models, pre_tokenizers
        from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
        from trl import GRPOConfig, GRPOTrainer

        tokenizer = Tokenizer(models.WordLevel({f"w{i}": i for i in range(PAD)} | {"<pad>": PAD, "<end>": END}, "w0"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        config = Qwen3Config(
            vocab_size=32,
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=8,
            max_position_embeddings=64,
            initializer_range=0.5,
            pad_token_id=PAD,
            eos_token_id=END,
        )
        with torch.random.fork_rng(), tempfile.TemporaryDirectory() as folder:
            torch.manual_seed(5)
            Qwen3ForCausalLM(config).save_pretrained(folder)  # TRL loads the reference from where the policy came from
            arguments = {
                "output_dir": folder,
                "num_generations": self.generations,
                "per_device_train_batch_size": self.rows,
                "gradient_accumulation_steps": 1,
                "max_completion_length": 16,
                "use_bias_correction_kl": False,
                "use_cpu": True,
                "bf16": False,
                "report_to": "none",
            }
            trainer = GRPOTrainer(
                model=Qwen3ForCausalLM.from_pretrained(folder),
                reward_funcs=lambda prompts, completions, **columns: self.rewards,
                args=GRPOConfig(**(arguments | options)),
                train_dataset=Dataset.from_list([{"prompt": "w1 w2"}] * self.rows),
                processing_class=PreTrainedTokenizerFast(
                    tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<end>"
                ),
                rollout_func=lambda prompts, trainer: {
                    "prompt_ids": [[1, 2, 3]] * len(prompts),
                    "completion_ids": self.completions,
                    "logprobs": [[0.0] * len(ids) for ids in self.completions],
                    "env_mask": self.env_masks,
                },
            )
            with torch.no_grad():  # the policy leaves its reference, so that there is a KL divergence
                for parameter in trainer.model.parameters():
                    parameter.add_(0.1 * torch.randn_like(parameter))
        trainer.model.train()
        return trainer

    def loss(
        self, tensors: Tensors, tokens_of_whole: int | None = None, importance: Tensor | None = None
    ) -> tuple[Tensor, Tensor, dict[str, float]]:
        """``_compute_loss`` on given tensors: loss, gradient with respect to the log-probabilities, and metrics.

        ``importance`` are the weights of tokens that TRL makes of vLLM's log-probabilities.
        """
        logprobs = tensors.logprobs.clone().requires_grad_()
        rows, tokens = logprobs.shape
        completion_mask = tensors.mask.flip(1).cummax(1).values.flip(1)  # up to the last active token
        self.trainer._get_per_token_logps_and_entropies = lambda *_, **__: (logprobs, tensors.entropy, None)
        self.trainer._metrics["train"].clear()
        self.trainer.use_vllm = self.trainer.vllm_importance_sampling_correction = importance is not None
        try:
            loss = self.trainer._compute_loss(
                self.trainer.model,
                {
                    "prompt_ids": torch.zeros(rows, 1, dtype=torch.long),
                    "prompt_mask": torch.ones(rows, 1, dtype=torch.long),
                    "completion_ids": torch.zeros(rows, tokens, dtype=torch.long),
                    "completion_mask": completion_mask,
                    "tool_mask": torch.where(completion_mask == 1, tensors.mask, 1),
                    "advantages": tensors.advantages,
                    "old_per_token_logps": tensors.old_logprobs,
                    "ref_per_token_logps": tensors.ref_logprobs,
                    "num_items_in_batch": torch.tensor(tokens_of_whole or int(tensors.mask.sum())),
                    **({} if importance is None else {"importance_sampling_ratio": importance}),
                },
            )
        finally:
            self.trainer.use_vllm = False
            del self.trainer._get_per_token_logps_and_entropies
        loss.backward()
        logged = self.trainer._metrics["train"]
        metrics = {ours: logged[theirs][-1] for ours, theirs in METRICS.items() if theirs in logged}
        if self.trainer.args.use_bias_correction_kl:
            del metrics["kl"]  # times the ratio; ours is the plain estimate always
        return loss.detach(), logprobs.grad, metrics

    def step(
        self, rewards: Sequence[float | None], completions: list[list[int]], env_masks: list[list[int]]
    ) -> dict[str, Tensor]:
        """``_generate_and_score_completions``: TRL's inputs to its loss, from completions and their rewards."""
        self.rewards, self.completions, self.env_masks = list(rewards), completions, env_masks
        with quiet():
            return self.trainer._generate_and_score_completions([{"prompt": "w1 w2"}] * self.rows)

    def advantages(self, rewards: list[list[float | None]]) -> Tensor:
        """TRL's advantages ``[B, G]`` of rewards ``[B, G]``, None where a sample has none, in float64."""
        flat = [reward for group in rewards for reward in group]
        column = torch.tensor([torch.nan if reward is None else reward for reward in flat], dtype=torch.float64)
        self.trainer._calculate_rewards = lambda *_: column.unsqueeze(1)  # TRL's own would round them to float32
        try:
            scored = self.step(flat, [[END]] * self.rows, [[1]] * self.rows)
        finally:
            del self.trainer._calculate_rewards
        return scored["advantages"].view(len(rewards), -1)


@contextlib.contextmanager
def quiet() -> Any:
    """TRL and its dependencies warn of their own deprecations and draw progress bars."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def main() -> None:
    """Write the golden file."""
    import transformers
    import trl

    golden: dict[str, Any] = {
        "versions": {"torch": torch.__version__, "trl": trl.__version__, "transformers": transformers.__version__},
        "batches": [],
        "losses": {case: [] for case in CASES},
        "rewards": [random_rewards(seed, 6, 4) for seed in (1, 2)],
        "advantages": {},
    }
    batches = [random_tensors(1, 4, 6), random_tensors(2, 6, 5)]
    for batch in batches:
        values = {name: getattr(batch, name).tolist() for name in batch.__slots__ if not name.startswith("_")}
        golden["batches"].append(values)
    for case, (_, _, options) in CASES.items():
        for batch in batches:
            loss, gradient, metrics = Trl(4, 2, **options).loss(batch)
            golden["losses"][case].append({"loss": loss.item(), "gradient": gradient.tolist(), "metrics": metrics})
    for std in ("group", "batch", "none"):
        oracle = Trl(24, 4, scale_rewards=std, beta=0.0)
        golden["advantages"][std] = [oracle.advantages(rewards).tolist() for rewards in golden["rewards"]]
    text = json.dumps(golden, indent=1)
    text = re.sub(r"\[[^\[\]]+\]", lambda row: " ".join(row.group().split()), text)  # one row, one line
    GOLDEN.write_text(text + "\n")
    sys.stdout.write(f"wrote {GOLDEN.name}: {GOLDEN.stat().st_size} bytes\n")


def compare() -> None:
    """Print, for each case, the largest absolute difference of loss and gradient over 200 random batches."""
    # MOVED
    from callwright_plugins import policy_gradient

    registry = load_plugins(extra={"policy-gradient": policy_gradient}, entry_points=False)
    row = "{:22} {:>14} {:>14} {:>14} {:>14}\n".format
    write = sys.stdout.write
    write(row("", "loss float32", "gradient", "loss float64", "gradient"))
    for case, (name, options, trl_options) in CASES.items():
        algorithm, trl, worst = registry.create("algorithm", name, **options), Trl(4, 2, **trl_options), []
        for dtype in (torch.float32, torch.float64):
            losses, gradients = [0.0], [0.0]
            for seed in range(100, 300):
                tensors = random_tensors(seed, rows=1 + seed % 16, tokens=1 + seed % 48, dtype=dtype)
                logprobs = tensors.logprobs.clone().requires_grad_()
                batch = TokenBatch(
                    logprobs, tensors.old_logprobs, tensors.mask, tensors.advantages, tensors.ref_logprobs
                )
                loss = algorithm.loss(batch).loss
                loss.backward()
                expected, expected_gradient, _ = trl.loss(tensors)
                losses.append((loss - expected).abs().item())
                gradients.append((logprobs.grad - expected_gradient).abs().max().item())
            worst += [f"{max(losses):.1e}", f"{max(gradients):.1e}"]
        write(row(case, *worst))
    write("\n" + row("advantages", "std = group", "batch", "none", ""))
    for name in ("grpo", "bn-grpo"):
        worst = []
        for std in ("group", "batch", "none"):
            trl, algorithm = Trl(32, 4, scale_rewards=std, beta=0.0), registry.create("algorithm", name, std=std)
            differences = []
            for seed in range(200):
                rewards = random_rewards(seed, 8, 4)
                holes = [[torch.nan if reward is None else reward for reward in group] for group in rewards]
                values = torch.tensor(holes, dtype=torch.float64)
                found = algorithm.advantages(values, ~values.isnan())
                differences.append((found - trl.advantages(rewards)).abs().max().item())
            worst.append(f"{max(differences):.1e}")
        write(row(name, *worst, ""))


if __name__ == "__main__":
    compare() if "--compare" in sys.argv[1:] else main()
