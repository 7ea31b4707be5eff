"""A run killed with SIGKILL, in real processes, ends in the same bytes as one that was never stopped."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PACKAGES = [str(HERE.parents[3] / "core"), str(HERE.parents[3] / "plugins"), str(HERE.parent / "support")]


class Runs:
    """Starts a recipe in a process of its own, and says how it ended: 0, or -9 where it was killed.

    Two programs fork these processes in turn. They hash texts differently, as any two commands do.
    """

    def __init__(self, folder: Path) -> None:
        path = os.pathsep.join([*PACKAGES, os.environ.get("PYTHONPATH", "")])
        self.said = folder / "said.txt"
        self.servers = [
            subprocess.Popen(
                [sys.executable, str(HERE / "killed_run.py"), str(self.said)],
                env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for seed in ("1", "2")
        ]

    def start(self, recipe: Path, folder: Path, moment: int) -> int:
        server = self.servers[0]
        self.servers.reverse()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps([str(recipe), str(folder), moment]) + "\n")
        server.stdin.flush()
        answer = server.stdout.readline()
        assert answer, "the program that forks is gone"
        status = os.waitstatus_to_exitcode(int(answer))
        assert status in (0, -signal.SIGKILL), self.said.read_text(encoding="utf-8")
        return status


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    made = Runs(tmp_path_factory.mktemp("runs"))
    yield made
    for server in made.servers:
        server.communicate(timeout=60)


def hashes(folder: Path) -> dict[str, str]:
    """Everything but times, the training state, whose archive holds its own name, and the digests of these two."""
    kept = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in kept
        if path.name not in ("timings.jsonl", "training.pt", "digests.json")
    }


#: A critic, a KL weight that moves, mini-batches and several turns: everything else that a checkpoint must hold.
PPO = """
[turns]
assistant_turns = 2
turn_tokens = 100
total_tokens = 300
observation_tokens = 60

[trainer.critic]
learning_rate = 0.01
"""


#: Supervised training of several turns, with an evaluation and perhaps the best weights between any two checkpoints.
SFT = """
[trainer]
name = "sft"
source = "references"
epochs = 2
batch = 6
learning_rate = 0.01
max_new_tokens = 12
checkpoint_every = 1
evaluate_every = 2
best = "loss"
"""


@pytest.fixture(scope="module", params=["bn-grpo", "ppo", "sft", "process", "stale"])
def uninterrupted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, small_recipe: str, runs: Runs
) -> tuple[Path, Path, dict[str, str]]:
    folder = tmp_path_factory.mktemp("kill")
    recipe = folder / "recipe.toml"
    text = small_recipe.replace("checkpoint_every = 2", "checkpoint_every = 1\nmini_batches = 2")
    if request.param == "ppo":
        text = (
            text.replace('name = "bn-grpo"\nkl_weight = 0.1', 'name = "ppo"\nkl_weight = 0.1\nkl_target = 0.01') + PPO
        )
        assert 'name = "ppo"' in text
    elif request.param == "sft":
        text = text[: text.index("[trainer]")] + PPO[: PPO.index("[trainer.critic]")] + SFT
    elif request.param == "process":  # whose workers die with it
        text = text.replace('name = "local"', 'name = "local"\nexecutor = "process"\nworkers = 2')
    elif request.param == "stale":  # with weights of two updates before
        text = text.replace('name = "local"', 'name = "local"\nstaleness = 2\ncorrection = "token_truncate"')
    recipe.write_text(text)
    assert runs.start(recipe, folder / "whole", -1) == 0
    found = hashes(folder / "whole")
    rows = [json.loads(line) for line in (folder / "whole" / "metrics.jsonl").read_text().splitlines()]
    assert all(row["gradient_norm"] > 0 for row in rows)
    assert {"metrics.jsonl", "evaluation.json", "checkpoints/final/model.safetensors"} <= found.keys()
    return folder, recipe, found


@pytest.mark.slow
def test_killed_again_and_again_it_ends_in_the_same_bytes(
    uninterrupted: tuple[Path, Path, dict[str, str]], runs: Runs
) -> None:
    """Each attempt gets a few writes further, dies inside the next write, and leaves half of it behind."""
    folder, recipe, expected = uninterrupted
    rng = random.Random(11)
    deaths = 0
    while runs.start(recipe, folder / "killed", rng.randrange(6, 13)):
        deaths += 1
        assert deaths < 30
    assert deaths >= 3
    assert hashes(folder / "killed") == expected
