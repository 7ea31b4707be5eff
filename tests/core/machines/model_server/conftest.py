"""Where the stand-in server is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("openai", reason="needs the client: pip install 'callwright[openai]'")
sys.path.append(str(Path(__file__).parents[2] / "support"))

from grants import Grants

import callwright.machines.command_folder as common
from callwright.machines.model_server.limiter import Limiter


@pytest.fixture(autouse=True)
def own_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each test is a command of its own."""
    monkeypatch.setenv(common.FOLDER, str(tmp_path / "command"))
    monkeypatch.delenv(common.SHARE, raising=False)
    monkeypatch.setattr(common, "_named_here", [os.getpid()])


@pytest.fixture
def grants(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Grants:
    """What limiters grant from now on, in this process and in those with :func:`grants.environment`."""
    import grants as recording

    found = Grants(tmp_path / "grants.jsonl")
    monkeypatch.setenv(recording.FILE, str(found.path))
    monkeypatch.setattr(Limiter, "take", recording.take)
    return found
