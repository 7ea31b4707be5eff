"""Where the stand-in server is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("openai", reason="needs the client: pip install 'callwright[openai]'")
sys.path.append(str(Path(__file__).parents[2] / "support"))

import callwright.machines.command_folder as common


@pytest.fixture(autouse=True)
def own_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each test is a command of its own."""
    monkeypatch.setenv(common.FOLDER, str(tmp_path / "command"))
    monkeypatch.delenv(common.SHARE, raising=False)
    monkeypatch.setattr(common, "_named_here", [os.getpid()])
