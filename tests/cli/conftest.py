"""The command line over a registry of its own, in this process and in others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root as root_command
from callwright.commands.app import App
from callwright.plugins import load_plugins

SUPPORT = Path(__file__).parent / "support"
if str(SUPPORT) not in sys.path:
    sys.path.insert(0, str(SUPPORT))

RECIPE = """name = "sums"
reward = "sums"
algorithm = "nothing"

[corpus]
name = "sums-v1"
evaluation = "validation"

[trainer]
name = "slow"
steps = 3
"""


@pytest.fixture
def registry() -> cw.Registry:
    """The plugins that these tests need: the small world, the JSON form, the scripted samplers, the report."""
    import cli_fakes

    import callwright_plugins.json_ir
    import callwright_plugins.report
    import callwright_plugins.scripted_samplers

    modules: Mapping[str, Any] = {
        "json-ir": callwright_plugins.json_ir,
        "report": callwright_plugins.report,
        "scripted-samplers": callwright_plugins.scripted_samplers,
        "fakes": cli_fakes,
    }
    return load_plugins(extra=modules, entry_points=False)


@pytest.fixture
def invoke(registry: cw.Registry) -> Callable[..., Result]:
    """``invoke("score", …)`` in this process; ``input`` is stdin."""

    def run(*words: str | Path, input: str | bytes | None = None, plugins: cw.Registry | None = None) -> Result:
        app = App(registry=plugins or registry)
        arguments = [str(word) for word in words]
        return CliRunner().invoke(root_command, arguments, obj=app, input=input, catch_exceptions=False)

    return run


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """``start("run", …)`` in a process of its own, with the small world as a plugin."""
    begun: list[subprocess.Popen[str]] = []

    def begin(*words: str | Path, env: Mapping[str, str] | None = None, **options: Any) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(SUPPORT), **(env or {})}
        command = [sys.executable, "-m", "callwright", "-p", "cli_fakes", *map(str, words)]
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, text=True, env=environment, **{**streams, **options})
        begun.append(process)
        return process

    yield begin
    for process in begun:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture
def gold(registry: cw.Registry) -> Callable[[str], str]:
    """The right completion of a task of the small world."""
    corpus = registry.create("corpus", "sums-v1")
    parser = registry.create("parser", "json")
    return lambda task: str(parser.render(corpus.task(task).program))


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    """A recipe file of the small world."""
    path = tmp_path / "sums.toml"
    path.write_text(RECIPE, encoding="utf-8")
    return path


@pytest.fixture
def write_rows(tmp_path: Path) -> Callable[..., Path]:
    """Writes JSONL files."""

    def write(rows: list[Any], name: str = "in.jsonl") -> Path:
        path = tmp_path / name
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    return write
