"""Checkpoints: whole or not at all, and everything comes back."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from callwright.errors import RunError
from callwright_plugins.local_trainer.learning.steps import adamw, clipped_step
from callwright_plugins.local_trainer.models.policy import Policy, weights
from callwright_plugins.local_trainer.run import checkpoints
from callwright_plugins.local_trainer.run.checkpoints import State

Make = Callable[[str], Policy]
IDS = torch.tensor([[4, 5, 6, 7]])


def step(policy: Policy, optimiser: torch.optim.AdamW) -> None:
    policy.model(input_ids=IDS, labels=IDS).loss.backward()
    clipped_step(optimiser, policy.model, 1e-2, 1.0)


def state(phase: Any, number: int) -> State:
    return State(phase, number, {"metrics.jsonl": number}, {"before": None})


def test_weights_optimiser_and_generators_come_back(tmp_path: Path, make_policy: Make) -> None:
    first, second = make_policy("llama"), make_policy("llama")
    optimiser = adamw(first.model, 0.01, (0.9, 0.95))
    for _ in range(3):
        step(first, optimiser)
    checkpoints.save(tmp_path, state("train", 3), first.model, optimiser, keep=2)
    drawn = (torch.rand(3).tolist(), random.random(), float(np.random.rand()))
    step(first, optimiser)

    other = adamw(second.model, 0.01, (0.9, 0.95))
    found = checkpoints.newest(tmp_path)
    assert found is not None
    assert checkpoints.read_state(found) == state("train", 3)
    torch.rand(7)
    checkpoints.restore(found, second.model, other)
    assert (torch.rand(3).tolist(), random.random(), float(np.random.rand())) == drawn
    step(second, other)
    for name, tensor in weights(first.model).items():
        assert torch.equal(tensor, weights(second.model)[name])


def test_only_the_newest_are_kept_and_training_comes_after_the_warm_start(tmp_path: Path, make_policy: Make) -> None:
    policy = make_policy("gpt2")
    optimiser = adamw(policy.model, 0.0, (0.9, 0.95))
    for phase, number in (("warm", 900), ("train", 0), ("train", 5), ("train", 10)):
        checkpoints.save(tmp_path, state(phase, number), policy.model, optimiser, keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train-000005", "train-000010"]
    found = checkpoints.newest(tmp_path)
    assert found is not None
    assert found.name == "train-000010"


def test_half_a_checkpoint_is_never_seen(tmp_path: Path, make_policy: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = make_policy("gpt2")
    optimiser = adamw(policy.model, 0.0, (0.9, 0.95))
    checkpoints.save(tmp_path, state("train", 1), policy.model, optimiser, keep=2)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(RunError, match="No space left on device"):
        checkpoints.save(tmp_path, state("train", 2), policy.model, optimiser, keep=1)
    assert [path.name for path in tmp_path.iterdir()] == ["train-000001"]


def test_leavings_of_a_crash_are_swept_up(tmp_path: Path) -> None:
    (tmp_path / ".part-train-000007").mkdir()
    (tmp_path / ".part-old-train-000001").mkdir()
    assert checkpoints.newest(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_checkpoint_says_what_to_do(tmp_path: Path, make_policy: Make) -> None:
    policy = make_policy("gpt2")
    optimiser = adamw(policy.model, 0.0, (0.9, 0.95))
    checkpoints.save(tmp_path, state("train", 1), policy.model, optimiser, keep=2)
    path = tmp_path / "train-000001"
    (path / "model.safetensors").write_bytes(b"\x00" * 20)
    with pytest.raises(RunError, match="remove that folder"):
        checkpoints.restore(path, policy.model, optimiser)
    (path / "state.json").write_text("{")
    with pytest.raises(RunError, match="remove that folder"):
        checkpoints.read_state(path)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "3",
        '"warm"',
        '{"phase": "cold", "step": 1, "rows": {}, "evaluation": {}}',
        '{"phase": "train", "step": true, "rows": {}, "evaluation": {}}',
        '{"phase": "train", "step": 1, "rows": [], "evaluation": {}}',
        '{"phase": "train", "step": 1, "rows": {"metrics.jsonl": -1}, "evaluation": {}}',
        '{"phase": "train", "step": 1, "rows": {}, "evaluation": null}',
        '{"phase": "train", "step": 1, "rows": {}, "evaluation": {}, "kl_weight": "x"}',
        "[" * 100_000,
    ],
)
def test_a_state_that_is_none_is_refused_by_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(RunError, match=r"cannot be read \(state\.json: .*remove that folder"):
        checkpoints.read_state(tmp_path)


class Touch:
    """A pickle that makes a file when it is read without care."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_code_in_a_checkpoint_is_refused_in_our_words(tmp_path: Path, make_policy: Make) -> None:
    policy = make_policy("gpt2")
    optimiser = adamw(policy.model, 0.0, (0.9, 0.95))
    checkpoints.save(tmp_path, state("train", 1), policy.model, optimiser, keep=1)
    folder = checkpoints.newest(tmp_path)
    assert folder is not None
    torch.save({"optimiser": Touch(tmp_path / "was run")}, folder / "training.pt")
    with pytest.raises(RunError, match=r"cannot be read \(training\.pt .*holds code, which was not run") as raised:
        checkpoints.restore(folder, policy.model, optimiser)
    assert "weights_only" not in str(raised.value)
    assert not (tmp_path / "was run").exists()


def test_a_checkpoint_is_data_and_runs_nothing(
    tmp_path: Path, make_policy: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = make_policy("llama")
    optimiser = adamw(policy.model, 0.0, (0.9, 0.95))
    touched = tmp_path / "touched"
    with monkeypatch.context() as patch:  # written by the program itself, so that no checksum can tell
        patch.setattr(optimiser, "state_dict", lambda: {"state": Touch(touched)})
        checkpoints.save(tmp_path, state("train", 1), policy.model, optimiser, keep=1)
    with pytest.raises((RunError, pickle.UnpicklingError)):
        checkpoints.restore(tmp_path / "train-000001", policy.model, optimiser)
    assert not touched.exists()
    pickle.loads(pickle.dumps(Touch(touched)))
    assert touched.exists(), "the file would have been touched"
