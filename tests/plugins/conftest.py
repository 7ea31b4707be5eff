"""What the tests of every front share: a corpus whose answers hang on the seeds of its tasks, and what is known."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from attrs import evolve

import callwright as cw
from callwright.plugins import Lazy, load_plugins


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


class Drawing:
    """A kind of user that notes the seed of each user that speaks: ``spoke`` are (task, seed), in their order."""

    name = "drawing"
    spoke: ClassVar[list[tuple[str, int]]] = []

    def begin(self, task: cw.Task, seed: int) -> Any:
        def reply(messages: Any, session: Any) -> cw.Said:
            self.spoke.append((task.id, seed))
            return cw.Said(done=True)

        return SimpleNamespace(reply=reply)


class DrawingPlugin:
    """Registers it."""

    @cw.hookimpl
    def callwright_users(self) -> list[Lazy]:
        """The one kind."""
        return [Lazy(Drawing.name, Drawing, "a test user")]


class VaultWithUsers(VaultCorpus):
    """The same tasks, whose users note their seeds in ``spoke``; ``registry`` knows them."""

    def __init__(self) -> None:
        super().__init__()
        self.registry, self.spoke = load_plugins(extra={"drawing-users": DrawingPlugin()}), Drawing.spoke
        self.spoke.clear()

    def task(self, task_id: str) -> cw.Task:
        """A task, with a user."""
        return evolve(super().task(task_id), user=cw.UserSpec(Drawing.name))


@pytest.fixture
def vault_with_users() -> VaultWithUsers:
    """Vaults with users: whether each sample has a user of its own, and the same one again."""
    return VaultWithUsers()


@pytest.fixture(scope="session")
def kept_knowledge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the ``cache`` of synthesis: what one test has explored and proven, the next one reads.

    That it is the same from there stands in ``synthesis/blueprints/test_knowledge.py``, which has folders of its own.
    Processes that share the tests share the folder: whoever is second reads a whole file, or finds out the same.
    """
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "kept-knowledge"
    folder.mkdir(exist_ok=True)
    return folder
