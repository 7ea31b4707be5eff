"""GRPO with its divergence in the reward against the numbers of verl's own code (``make_verl_golden.py``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from callwright.plugins import load_plugins
from callwright.training import TokenBatch
from callwright.training.algorithm import Experience
from callwright_plugins import policy_gradient

GOLDEN = json.loads(Path(__file__).with_name("verl_golden.json").read_text(encoding="utf-8"))
#: Our algorithm and its options for each case of the file, stated a second time: they are what the test is about.
OURS: dict[str, tuple[str, dict[str, Any]]] = {
    "toolrl, as its scripts run": (
        "bn-grpo",
        {"kl_weight": 0.001, "kl_in": "reward", "std_epsilon": 1e-6, "entropy_weight": 0.001},
    ),
    "toolrl, k3": ("bn-grpo", {"kl_weight": 0.1, "kl_in": "reward", "kl_estimator": "k3", "std_epsilon": 1e-6}),
    "verl, token-mean": ("bn-grpo", {"kl_weight": 0.001, "kl_in": "reward", "std_epsilon": 1e-6}),
    "verl, seq-mean-token-mean, k2": (
        "grpo",
        {"kl_weight": 0.05, "kl_in": "reward", "kl_estimator": "k2", "std_epsilon": 1e-6},
    ),
    "verl, clip-higher, k3": (
        "dapo",
        {"kl_weight": 0.05, "kl_in": "reward", "kl_estimator": "k3", "std_epsilon": 1e-6, "overlong_buffer": 0},
    ),
    "verl, no division": ("dr-grpo", {"kl_weight": 0.01, "kl_in": "reward"}),
}
registry = load_plugins(extra={"policy-gradient": policy_gradient}, entry_points=False)
each_batch = pytest.mark.parametrize(
    ("case", "number"), [(case, number) for case in OURS for number in range(len(GOLDEN["cases"][case]))]
)


def tensors(case: str, number: int) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    name, options = OURS[case]
    row = GOLDEN["cases"][case][number]
    given = {key: torch.tensor(values, dtype=torch.float64) for key, values in row["given"].items()}
    return registry.create("algorithm", name, **options), given, row["found"]


def advantages(algorithm: Any, given: dict[str, Any]) -> Any:
    """Of each token, by the way that a trainer takes."""
    rewards = given["rewards"].reshape(-1, GOLDEN["group"])
    scores = algorithm.advantages(rewards, torch.ones_like(rewards, dtype=torch.bool)).reshape(-1)
    groups = torch.arange(len(scores)) // GOLDEN["group"]
    experience = Experience(scores, groups, given["mask"], given["old_logprobs"], given["ref_logprobs"])
    return algorithm.token_advantages(experience)[0]


def test_the_file_says_which_code_it_is_from() -> None:
    assert GOLDEN["commits"] == {
        "verl": "b178a3cd56f58b2d502255daba591e92833930a7",
        "toolrl": "8cee13ec0ca72f0461da372a93a6fd8140dbb840",
    }
    assert set(GOLDEN["cases"]) == set(OURS)


@each_batch
def test_advantages_are_verls(case: str, number: int) -> None:
    algorithm, given, found = tensors(case, number)
    ours = advantages(algorithm, given)
    expected = torch.tensor(found["advantages"], dtype=torch.float64).unsqueeze(1) * given["mask"]
    assert (ours - expected).abs().max() < 1e-11  # rounding of rewards near 4, over the deviation of a flat group


@each_batch
def test_the_loss_and_its_gradient_are_verls(case: str, number: int) -> None:
    algorithm, given, found = tensors(case, number)
    logprobs = given["logprobs"].requires_grad_()
    output = algorithm.loss(
        TokenBatch(
            logprobs=logprobs,
            old_logprobs=given["old_logprobs"],
            mask=given["mask"],
            advantages=advantages(algorithm, given),
            ref_logprobs=given["ref_logprobs"],
            entropy=given["entropy"],
            # verl's sum over a constant is not divided by the number of sequences as well
            normaliser=float(logprobs.shape[1]) if algorithm.name == "dr-grpo" else None,
        )
    )
    output.loss.backward()
    bound = 1e-8 if algorithm.name == "grpo" else 1e-11  # verl adds 1e-8 to the length of a sequence
    assert float(output.loss.detach()) == pytest.approx(found["loss"], abs=bound)
    assert (logprobs.grad - torch.tensor(found["gradient"], dtype=torch.float64)).abs().max() < bound


def test_a_flat_group_has_advantages_of_unit_size() -> None:
    """The second group of each batch earned 4 throughout; in the second batch its policy still is the reference."""
    algorithm, given, found = tensors("toolrl, as its scripts run", 0)
    assert given["rewards"][4:8].tolist() == [4.0] * 4
    flat = torch.tensor(found["advantages"][4:8])
    assert 0.9 < float(flat.std()) < 1  # not 0.001 nats' worth
    _, given, found = tensors("toolrl, as its scripts run", 1)
    assert found["advantages"][4:8] == [0.0] * 4
    assert float(advantages(algorithm, given)[4:8].abs().max()) == 0
