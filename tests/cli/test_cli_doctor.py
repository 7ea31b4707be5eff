"""``callwright doctor``."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import metadata

import pytest
from click.testing import Result

import callwright as cw
from callwright.cli import installation

Invoke = Callable[..., Result]


def test_a_whole_installation(invoke: Invoke) -> None:
    result = invoke("doctor", "--json")
    found = json.loads(result.stdout)
    assert found["problems"] == []
    assert result.exit_code == 0
    assert found["callwright"] == cw.__version__
    assert found["packages"]["click"] == metadata.version("click")
    assert found["extras"]["train"]["install"] == "pip install 'callwright[train]'"
    assert found["cores"] >= 1
    assert "✓ nothing is broken" in invoke("doctor").stdout


def test_what_is_missing_is_named(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    stated = [
        "click>=8",
        "no-such-package>=2; python_version >= '3'",
        "attrs>=999",
        'torch>=2.4 ; extra == "train"',
        "no-such-engine==1 ; extra == 'vllm'",
        "callwright[train,vllm] ; extra == 'all'",
    ]
    monkeypatch.setattr(installation.metadata, "requires", lambda name: stated)
    result = invoke("doctor", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 1
    assert found["problems"][0] == "no-such-package is not installed: pip install callwright"
    assert found["problems"][1].endswith("callwright needs >=999: pip install --upgrade callwright")
    assert found["extras"]["vllm"]["missing"] == ["no-such-engine==1"]
    assert "no-such-engine==1" in found["extras"]["all"]["missing"]
    drawn = invoke("doctor").stdout
    assert "pip install 'callwright[vllm]'" in drawn
    assert "✗ no-such-package is not installed" in drawn


def test_a_folder_that_cannot_be_written_is_said(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(installation.tempfile, "TemporaryFile", refuse)
    result = invoke("doctor")
    assert result.exit_code == 0
    assert "this folder cannot be written" in result.stdout


def test_a_checkout_that_was_never_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(installation.metadata, "requires", requires)
    assert installation.requirements() == ([], {})
