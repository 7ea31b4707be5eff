"""What verl's own GRPO computes with its KL penalty in the reward, on file for the tests: verl_golden.json.

    git clone https://github.com/volcengine/verl && git clone https://github.com/qiancheng0/ToolRL
    python tests/plugins/policy_gradient/make_verl_golden.py verl=b178a3c:verl toolrl=8cee13e:ToolRL

An argument is NAME=COMMIT:FOLDER. The functions are executed as they stand in the folder's files; nothing else of verl
is imported, so that neither it nor Ray must be installed. ToolRL carries an older verl, which its paper was trained
with. Everything is computed in double precision.
"""

from __future__ import annotations

import ast
import json
import random
import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import torch

GOLDEN = Path(__file__).with_name("verl_golden.json")

#: File of verl: the functions that are taken from it.
TAKEN = {
    "utils/torch_functional.py": ("masked_mean", "masked_sum"),
    "trainer/ppo/core_algos.py": (
        "kl_penalty",
        "kl_penalty_forward",
        "compute_grpo_outcome_advantage",
        "compute_policy_loss",
        "compute_policy_loss_vanilla",
        "agg_loss",
    ),
    "trainer/ppo/ray_trainer.py": ("apply_kl_penalty",),
}

#: Case: our algorithm with its options, and verl's options for the same.
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "toolrl, as its scripts run": (
        "bn-grpo",
        {"kl_weight": 0.001, "kl_in": "reward", "std_epsilon": 1e-6, "entropy_weight": 0.001},
        {"source": "toolrl", "coefficient": 0.001, "penalty": "kl", "entropy": 0.001},
    ),
    "toolrl, k3": (
        "bn-grpo",
        {"kl_weight": 0.1, "kl_in": "reward", "kl_estimator": "k3", "std_epsilon": 1e-6},
        {"source": "toolrl", "coefficient": 0.1, "penalty": "low_var_kl", "entropy": 0.0},
    ),
    "verl, token-mean": (
        "bn-grpo",
        {"kl_weight": 0.001, "kl_in": "reward", "std_epsilon": 1e-6},
        {"source": "verl", "coefficient": 0.001, "penalty": "kl", "mode": "token-mean"},
    ),
    "verl, seq-mean-token-mean, k2": (
        "grpo",
        {"kl_weight": 0.05, "kl_in": "reward", "kl_estimator": "k2", "std_epsilon": 1e-6},
        {"source": "verl", "coefficient": 0.05, "penalty": "mse", "mode": "seq-mean-token-mean"},
    ),
    "verl, clip-higher, k3": (
        "dapo",
        {"kl_weight": 0.05, "kl_in": "reward", "kl_estimator": "k3", "std_epsilon": 1e-6, "overlong_buffer": 0},
        {"source": "verl", "coefficient": 0.05, "penalty": "low_var_kl", "mode": "token-mean", "high": 0.28},
    ),
    "verl, no division": (
        "dr-grpo",
        {"kl_weight": 0.01, "kl_in": "reward"},
        {"source": "verl", "coefficient": 0.01, "penalty": "kl", "mode": "seq-mean-token-sum-norm", "divide": False},
    ),
}
BATCHES = 2
PROMPTS, GROUP, TOKENS = 3, 4, 6
REWARDS = (-3.0, -1.5, -0.25, 0.0, 0.5, 1.0, 2.125, 4.0)


class Data(dict[str, Any]):
    """The part of verl's DataProto.batch that the penalty reads."""

    batch_size = (PROMPTS * GROUP,)


def functions(folder: Path) -> SimpleNamespace:
    """The functions of ``TAKEN`` as they stand in the files, without the decorators that register them."""
    found: dict[str, Any] = {"torch": torch, "np": numpy, "defaultdict": defaultdict}
    found["AlgoConfig"] = type("AlgoConfig", (), {})  # what a configuration must not be
    found["core_algos"] = found["verl_F"] = taken = SimpleNamespace()
    for path, names in TAKEN.items():
        tree = ast.parse((folder / "verl" / path).read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name in names:
                node.decorator_list = []
                body = ast.Module([ast.ImportFrom("__future__", [ast.alias("annotations")], 0), node], [])
                exec(compile(ast.fix_missing_locations(body), path, "exec"), found)
                setattr(taken, node.name, found[node.name])
    return taken


def sample(seed: int, holes: bool) -> dict[str, Any]:
    """A batch whose second group earned the same throughout; in odd ones the policy still is the reference there."""
    drawn = random.Random(seed)
    rows = PROMPTS * GROUP

    def matrix(low: float, high: float) -> list[list[float]]:
        return [[round(drawn.uniform(low, high), 4) for _ in range(TOKENS)] for _ in range(rows)]

    rewards = [drawn.choice(REWARDS) for _ in range(rows)]
    rewards[GROUP : 2 * GROUP] = [4.0] * GROUP
    mask = []
    for _ in range(rows):
        length = drawn.randint(1, TOKENS)
        row = [int(t < length) for t in range(TOKENS)]
        if holes and length > 2:
            row[drawn.randrange(length)] = 0
        mask.append(row)
    old = matrix(-3, 0)
    reference = [[round(value + drawn.uniform(-0.5, 0.5), 4) for value in row] for row in old]
    if seed % 2:
        reference[GROUP : 2 * GROUP] = old[GROUP : 2 * GROUP]
    logprobs = [[round(value + drawn.uniform(-0.4, 0.4), 4) for value in row] for row in old]
    return {
        "rewards": rewards,
        "mask": mask,
        "old_logprobs": old,
        "ref_logprobs": reference,
        "logprobs": logprobs,
        "entropy": matrix(0, 2),
    }


def computed(verl: SimpleNamespace, given: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Advantages of the sequences, the loss, and its gradient with respect to the log-probabilities."""
    tensors = {name: torch.tensor(values, dtype=torch.float64) for name, values in given.items()}
    mask = tensors["mask"]
    last = mask * (mask.flip(1).cumsum(1).flip(1) == 1)
    data = SimpleNamespace(
        batch=Data(
            responses=mask,
            attention_mask=mask,
            response_mask=mask,
            token_level_scores=last * tensors["rewards"].unsqueeze(1),
            old_log_probs=tensors["old_logprobs"],
            ref_log_prob=tensors["ref_logprobs"],
        )
    )
    fixed = SimpleNamespace(value=options["coefficient"], update=lambda **_: None)
    verl.apply_kl_penalty(data, fixed, options["penalty"])
    index = [str(row // GROUP) for row in range(len(mask))]
    more = {} if options.get("divide", True) else {"norm_adv_by_std_in_grpo": False}
    advantages, _ = verl.compute_grpo_outcome_advantage(data.batch["token_level_rewards"], mask, index, **more)
    logprobs = tensors["logprobs"].requires_grad_()
    if options["source"] == "toolrl":
        loss, _, _ = verl.compute_policy_loss(tensors["old_logprobs"], logprobs, advantages, mask, 0.2)
        loss = loss - options["entropy"] * verl.masked_mean(tensors["entropy"], mask)
    else:
        config = type("Config", (dict,), {})(clip_ratio_c=1e9)  # the dual clip, which is not part of PPO, never bites
        config.clip_ratio, config.clip_ratio_low, config.clip_ratio_high = 0.2, 0.2, options.get("high", 0.2)
        config.global_batch_info = {}
        loss, _ = verl.compute_policy_loss_vanilla(
            tensors["old_logprobs"], logprobs, advantages, mask, options["mode"], config
        )
    loss.backward()
    per_sequence = (advantages * mask).sum(1) / mask.sum(1)
    return {"advantages": per_sequence.tolist(), "loss": float(loss.detach()), "gradient": logprobs.grad.tolist()}


def main() -> None:
    """Write the file."""
    sources, commits = {}, {}
    for argument in sys.argv[1:]:
        name, _, rest = argument.partition("=")
        commits[name], _, folder = rest.partition(":")
        sources[name] = functions(Path(folder))
    torch.set_default_dtype(torch.float64)
    cases = {}
    for number, (case, (_, _, options)) in enumerate(CASES.items()):
        batches = [sample(10 * number + count, options["source"] == "verl") for count in range(BATCHES)]
        verl = sources[options["source"]]
        cases[case] = [{"given": given, "found": computed(verl, given, options)} for given in batches]
    document = {"commits": commits, "group": GROUP, "cases": cases}
    GOLDEN.write_text(json.dumps(document, separators=(",", ":")).replace('{"given"', '\n{"given"') + "\n", "utf-8")


if __name__ == "__main__":
    main()
