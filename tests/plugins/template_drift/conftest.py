"""The command ``doctor`` over a registry with this plugin, and others that a test gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root
from callwright.commands import App
from callwright.plugins import load_plugins
from callwright_plugins import template_drift


@pytest.fixture
def registry() -> cw.Registry:
    return load_plugins(extra={"template-drift": template_drift}, entry_points=False)


@pytest.fixture
def invoke(registry: cw.Registry) -> Callable[..., Result]:
    """``invoke("doctor", …)`` in this process."""

    def run(*words: str | Path, plugins: cw.Registry | None = None) -> Result:
        app = App(registry=registry if plugins is None else plugins)
        return CliRunner().invoke(root, [str(word) for word in words], obj=app, catch_exceptions=False)

    return run
