"""OpenRLHF's own code against this trainer, on the CPU: parser, executors, advantages, losses, training steps.

Runs where OpenRLHF can be imported, or where ``CALLWRIGHT_OPENRLHF_PYTHON`` names an interpreter that can; what it does
stands in ``openrlhf_checks.py``.
"""

from __future__ import annotations

import json
import math
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import callwright
import callwright_plugins.openrlhf_trainer
from callwright.recipe_file import shipped_recipes
from callwright_plugins.openrlhf_trainer.interpreter import VARIABLE

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("openrlhf_checks.py")
Checks = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> Checks:
    """``checks("maths", …)``: what the script measured."""
    here = find_spec("openrlhf") is not None and find_spec("deepspeed") is not None
    python = os.environ.get(VARIABLE) or (sys.executable if here else None)
    if python is None:
        pytest.skip(f"needs OpenRLHF: name an interpreter that has it in {VARIABLE}")
    sources = [Path(module.__file__ or "").parents[levels] for module, levels in (
        (callwright, 1), (callwright_plugins.openrlhf_trainer, 2),
    )]  # fmt: skip
    path = os.pathsep.join([*map(str, sources), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}

    def run(*names: str) -> dict[str, Any]:
        folder = tmp_path_factory.mktemp("openrlhf")
        done = subprocess.run(
            [python, str(SCRIPT), str(folder), *names], capture_output=True, text=True, check=False, env=environment
        )
        assert done.returncode == 0, done.stderr[-4000:]
        found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        assert set(found["stubs"]) <= {"flash_attn", "vllm"}
        return found

    return run


def test_every_shipped_recipe_passes_the_parser(checks: Checks) -> None:
    found = checks("arguments")["arguments"]
    assert set(found) == set(shipped_recipes())
    assert {name: made["error"] for name, made in found.items() if "error" in made} == {}
    tier = found["tier-qwen3-8b"]["values"]
    assert tier["algo"]["advantage"]["estimator"] == "group_norm"
    assert tier["algo"]["kl"] == {
        **tier["algo"]["kl"], "use_loss": True, "init_coef": 0.04, "estimator": "k3", "unbiased_gradient": False
    }  # fmt: skip
    assert tier["actor"]["loss_agg_mode"] == "token-mean"
    assert tier["data"]["max_len"] == 12288
    assert tier["train"]["batch_size"] == 64
    assert (tier["actor"]["lr_warmup_ratio"], tier["actor"]["min_lr_ratio"]) == (0.1, 0.1)
    assert tier["reward"]["remote_url"] == ["agent"]
    assert found["tier-qwen3-8b-grpo"]["values"]["actor"]["loss_agg_mode"] == "seq-mean-token-mean"
    dapo = found["tier-qwen3-8b-dapo"]["values"]
    assert dapo["actor"]["eps_clip_low_high"] == [0.2, 0.28]
    assert dapo["algo"]["dynamic_filtering_enable"] is True
    assert (dapo["reward"]["overlong_buffer_len"], dapo["reward"]["overlong_penalty_factor"]) == (409, 0.5)
    toolrl = found["toolrl-qwen2.5-3b"]["values"]
    assert (toolrl["rollout"]["batch_size"], toolrl["rollout"]["n_samples_per_prompt"]) == (512, 4)
    assert toolrl["train"]["batch_size"] == 512
    ppo = found["toolrl-llama3.2-3b-ppo"]["values"]
    assert ppo["algo"]["advantage"]["estimator"] == "gae"
    critic = ppo["critic"]
    assert (critic["adam"]["lr"], critic["value_clip"], critic["freezing_steps"]) == (1e-5, 0.5, -1)
    assert ppo["critic"]["model_name_or_path"] == ppo["actor"]["model_name_or_path"]
    prove = found["prove-qwen3-8b"]["values"]
    assert (prove["data"]["max_len"], prove["rollout"]["max_new_tokens"]) == (28768, 16384)
    assert (prove["vllm"]["num_engines"], prove["vllm"]["tensor_parallel_size"]) == (4, 2)
    assert prove["actor"]["adam"]["lr"] == 5e-8
    for name, made in found.items():
        if name.startswith(("tier-qwen3", "toolrl-q", "toolrl-l", "prove-q", "prove-granite")):
            assert made["unsupported"] == [], name


@pytest.mark.parametrize("kind", ["qwen3", "llama"])
def test_ids_masks_and_log_probabilities_are_those_of_everybody_else(checks: Checks, kind: str) -> None:
    """Our executor, the core's driver, the local trainer, OpenRLHF's experience and its own executor agree."""
    found = checks(f"executors-{kind}")[f"executors-{kind}"]
    assert found["differences"] == []
    assert found["episodes"] == 6
    assert found["cut"] < 6
    assert found["turns"] > found["episodes"]
    assert found["logprob_error"] < 1e-5


def test_single_turns_and_limits(checks: Checks) -> None:
    found = checks("single-turn", "limits")
    assert found["single-turn"]["differences"] == []
    assert found["single-turn"]["rewards"] == [1.0, 0.0] * 6
    limits = found["limits"]
    assert limits["within"] is True
    assert limits["sampled"] == 40
    assert limits["truncated"] is True
    assert limits["logprobs"] is None
    assert limits["turns"] == 4  # the cap of the recipe, whatever the model would like
    assert limits["response"] <= 1200
    assert limits["figures"] is True


def test_advantages_and_losses_on_the_same_tensors(checks: Checks) -> None:
    found = checks("maths", "equal-rewards", "overlong")
    for name, worst in found["maths"].items():
        assert worst["largest"] > 0.5, name  # nothing is compared where nothing is
        assert worst["advantages"] < 2e-6, name
        assert worst["gradient"] < 1e-7, name
        assert worst["value_loss"] < 1e-6, name
        if "unbiased KL" not in name:  # there the gradients are the same, of different values
            assert worst["loss"] < 1e-6, name
    assert found["overlong"] == 0.0
    assert found["equal-rewards"]["grid"] == 0.0
    assert found["equal-rewards"]["decimals"] > 0.1  # what the grid is for


def test_masked_episodes_enter_no_loss_and_move_no_baseline(checks: Checks) -> None:
    found = checks("masking")["masking"]
    assert found["masked_tokens"] == 0
    assert found["gradient_of_masked"] == 0.0
    assert found["finite"] is True
    assert found["keys"] == 1
    assert found["rewards"][1] == pytest.approx(2 / 3, abs=1e-6)
    # the mean is that of the others; the deviation counts one more: sqrt((4 - 1) / (3 - 1))
    factor = (3 / 2) ** 0.5
    for given, exact in zip(found["advantages"], found["exact"], strict=True):
        assert given == pytest.approx(exact * factor, abs=2e-3)
    assert found["lost"] == [[], [], [], []]
    assert 0 < found["scores"]["mixed"] < 1
    assert found["scores"]["equal"] == 0.0  # outside of (0, 1): drawn anew
    assert found["scores"]["right"] == 0.0
    assert found["failure"] is False


@pytest.mark.parametrize("kind", ["qwen3", "llama"])
def test_the_training_step_takes_updates(checks: Checks, kind: str) -> None:
    found = checks(f"training-{kind}")[f"training-{kind}"]
    assert len(found["updates"]) == 3
    for update in found["updates"]:
        assert update["norm"] > 0.01
        assert update["loss"] == pytest.approx(update["our_loss"], abs=1e-6)
        assert update["sampled_error"] < 1e-4
        assert len(set(update["rewards"])) > 1
    assert 1e-3 < found["moved"] < 1e-2
    assert "callwright/answered" in found["figures"]


def test_what_its_own_logger_writes_is_read(checks: Checks) -> None:
    """All figures of all steps and evaluations, each as soon as it is logged, in single precision."""
    found = checks("events")["events"]
    assert found["live"] == len(found["given"]) == 4
    for (step, evaluation, given), (read_step, read_evaluation, read) in zip(
        found["given"], found["read"], strict=True
    ):
        assert (read_step, read_evaluation, list(read)) == (step, evaluation, list(given))
        for name, value in given.items():
            if math.isnan(value):
                assert read[name] is None
            else:
                assert struct.pack("<f", read[name]) == struct.pack("<f", value), name
        assert "kl" not in read or read["kl"] is None
