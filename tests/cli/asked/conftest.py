"""What the tests of commands that ask a server share: the imports of those commands, and one whole evaluation."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

from warm_start import Command, Forge

SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture(scope="module")
def forge() -> Iterator[Forge]:
    """Commands that are imported already."""
    made = Forge({**os.environ, "PYTHONPATH": str(SUPPORT)})
    yield made
    made.close()


@pytest.fixture
def start(forge: Forge, tmp_path: Path) -> Iterator[Callable[..., Command]]:
    """``start("evaluate", …)`` in a process of its own, with the small world as a plugin."""
    begun: list[Command] = []

    def begin(*words: str | Path) -> Command:
        folder = tmp_path / f"command-{len(begun)}"
        begun.append(Command(forge, ["-p", "cli_fakes", *map(str, words)], folder))
        return begun[-1]

    yield begin
    for command in begun:
        command.kill()
        command.communicate()
