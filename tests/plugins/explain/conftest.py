"""``callwright explain`` over the small world of the command line's tests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root as root_command
from callwright.commands import App
from callwright.plugins import load_plugins
from callwright_plugins import explain, json_ir

SUPPORT = Path(__file__).parents[2] / "cli" / "support"
if str(SUPPORT) not in sys.path:
    sys.path.insert(0, str(SUPPORT))


@pytest.fixture
def registry() -> cw.Registry:
    """The small world, the JSON form, and the command itself."""
    import cli_fakes

    return load_plugins(
        extra={"explain": explain, "json-ir": json_ir, "fakes": cli_fakes},
        entry_points=False,
    )


@pytest.fixture
def invoke(registry: cw.Registry) -> Callable[..., Result]:
    """``invoke("explain", …)`` in this process; ``input`` is stdin."""

    def run(*words: str | Path, input: str | bytes | None = None) -> Result:
        arguments = [str(word) for word in words]
        return CliRunner().invoke(root_command, arguments, obj=App(registry=registry), input=input)

    return run


@pytest.fixture
def gold(registry: cw.Registry) -> Callable[[str], str]:
    """The right completion of a task of the small world."""
    corpus, parser = registry.create("corpus", "sums-v1"), registry.create("parser", "json")
    return lambda task: str(parser.render(corpus.task(task).program))
