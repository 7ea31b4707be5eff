"""What the tests of every front share: a corpus whose answers hang on the seeds of its tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import callwright as cw


@cw.tool
def turn(vault: dict[str, int], /, by: int) -> int:
    """Turn the dial of the vault, and read where it stands.

    Args:
        by: How far to turn it.
    """
    vault["dial"] += by
    return vault["dial"]


class VaultCorpus:
    """Tasks of a vault whose dial stands where the session's seed says; ``opened`` are the seeds of all sessions."""

    name = "vault-v1"
    seeds: Mapping[str, tuple[int, ...]] = {"train": (5, 9), "evaluation": (2,)}

    def __init__(self) -> None:
        self.opened: list[int] = []
        # Not a function of a module: its sessions stay in this process, where they are counted.
        self.environment: Any = cw.environment("vault", tools=[turn], state=lambda name, seed: self._vault(name, seed))
        self.splits = {split: len(seeds) for split, seeds in self.seeds.items()}

    def _vault(self, scenario: str, seed: int) -> dict[str, int]:
        self.opened.append(seed)
        return {"dial": 100 * seed}

    def __getitem__(self, split: str) -> Sequence[cw.Task]:
        return [self.task(f"{split}-{number}") for number in range(self.splits[split])]

    def task(self, task_id: str) -> cw.Task:
        split, _, number = task_id.rpartition("-")
        seed = self.seeds[split][int(number)]
        return cw.Task(
            id=task_id,
            query=f"Turn the dial of vault {task_id} by 3. Where does it stand?",
            tools=self.environment.tools,
            answer=cw.Answer((100 * seed + 3,)),
            environment=self.environment,
            seed=seed,
            split=split,
            depth=1,
            chain=1,
            structure="linear",
            program=cw.Program((cw.Call(0, "turn", {"by": 3}),)),
        )

    def prompt_text(self, task: cw.Task) -> str:
        return f"{task.id}: "


@pytest.fixture
def vault() -> VaultCorpus:
    """A corpus of seeded worlds: its golds earn 1.0 only in sessions that are opened with their task's seed."""
    return VaultCorpus()
