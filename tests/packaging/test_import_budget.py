"""Nothing heavy is imported before it is used."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

#: Heavy, or none of a library's business at import.
HEAVY = {
    "torch", "transformers", "tokenizers", "safetensors", "numpy", "scipy", "pandas", "datasets", "trl", "ray", "vllm",
    "mcp", "openai", "pydantic", "pydantic_core", "jsonschema_rs", "rich", "pygments", "structlog", "asyncio",
    "multiprocessing",
}  # fmt: skip


def imported_by(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter has imported after running ``code``."""
    tail = (
        "\nimport json, sys"
        "\nnames = sorted({name.partition('.')[0] for name in sys.modules})"
        "\nprint(); print(json.dumps(names))"
    )
    done = subprocess.run([sys.executable, "-c", code + tail], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_callwright_brings_nothing_else() -> None:
    third_party = imported_by("import callwright") - imported_by("") - sys.stdlib_module_names
    assert third_party == {"callwright"}


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("import callwright", id="import"),
        pytest.param("from callwright.plugins import load_plugins; load_plugins()", id="plugins"),
        pytest.param(
            "from callwright.plugins import load_plugins; load_plugins().spec('trainer', 'local')", id="trainer-spec"
        ),
        pytest.param(
            "from callwright.commands import *\nfrom callwright.commands import options, terminal", id="commands"
        ),
        pytest.param(
            "import sys; sys.argv = ['callwright', '--help']\n"
            "from callwright.cli import main\n"
            "try: main()\n"
            "except SystemExit as end: assert not end.code",
            id="help",
        ),
    ],
)
def test_nothing_heavy_is_imported(code: str) -> None:
    assert not imported_by(code) & HEAVY


def test_scoring_rows_needs_nothing_of_logs_and_tasks_of_files() -> None:
    code = "import callwright.cli.score, sys; assert 'callwright.walk.task_rows.rows' not in sys.modules"
    assert "pydantic" not in imported_by(code)


def test_scoring_needs_no_torch() -> None:
    code = (
        "import callwright as cw\n"
        "task = cw.corpus('toolworld-mini-v1')['evaluation'][0]\n"
        "cw.reward('tier').score(task, 'no program')"
    )
    assert not imported_by(code) & {"torch", "transformers", "numpy", "rich", "asyncio"}


def test_logging_is_not_configured_by_importing() -> None:
    code = (
        "import logging, callwright, callwright.pipeline, callwright.cli\n"
        "assert not logging.getLogger().handlers\n"
        "import structlog\n"
        "assert not structlog.is_configured()"
    )
    imported_by(code)


@pytest.mark.parametrize(
    "words",
    [
        ["run", "dapo-small.toml", "--dry-run"],
        ["plugins", "show", "grpo"],
        ["plugins", "show", "ppo"],
        ["plugins", "show", "local"],
    ],
)
def test_options_are_read_without_torch(words: list[str], tmp_path: Path) -> None:
    recipe = tmp_path / "dapo-small.toml"
    recipe.write_text(
        'corpus = "toolworld-mini-v1"\nalgorithm = "dapo"\n[trainer]\nname = "local"\nsteps = 1\n[model.tiny]\n'
    )
    given = [str(recipe) if word == recipe.name else word for word in words]
    code = (
        f"import sys; sys.argv = ['callwright', *{given!r}]\n"
        "from callwright.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code"
    )
    assert not imported_by(code) & {"torch", "transformers", "tokenizers", "safetensors"}
