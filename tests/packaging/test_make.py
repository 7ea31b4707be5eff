"""The two commands of the README: what they would do, and what they say where Python is missing or too old."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make in the checkout, without what an outer make may have left in the environment."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(["make", *arguments], cwd=root, capture_output=True, text=True, env=environment)


def stamped(folder: Path, root: Path, *names: str) -> Path:
    """A virtual environment as make left it: stamps newer than the requirements."""
    folder.mkdir()
    for name in (".python", *names):
        (folder / name).touch()
    newest = max((root / name).stat().st_mtime for name in ("pyproject.toml", "constraints.txt"))
    for name in (".python", *names):
        os.utime(folder / name, (newest + 1, newest + 1))
    return folder


def test_demo_trains_and_nothing_is_installed_again(root: Path, tmp_path: Path) -> None:
    folder = stamped(tmp_path / "venv", root, ".train")
    done = make(root, "--dry-run", "demo", f"VENV={folder}")
    assert done.stdout.splitlines() == [f"{folder}/bin/callwright run tier-mini --output runs/demo"]


def test_test_runs_every_check_and_nothing_is_installed_again(root: Path, tmp_path: Path) -> None:
    folder = stamped(tmp_path / "venv", root, ".dev")
    done = make(root, "--dry-run", "test", f"VENV={folder}")
    tools = [Path(line.split()[0]).name for line in done.stdout.splitlines()]
    assert tools[0] == "ruff"
    assert {"lint-imports", "mypy"} <= set(tools)
    assert "-m pytest" in done.stdout.splitlines()[-1]


@pytest.mark.parametrize("fails", ["", "mypy", "pytest", "ruff"])
def test_types_and_tests_run_beside_each_other_and_either_may_fail(root: Path, tmp_path: Path, fails: str) -> None:
    folder = stamped(tmp_path / "venv", root, ".dev")
    (folder / "bin").mkdir()
    for name in ("ruff", "lint-imports", "mypy", "python"):
        program = folder / "bin" / name
        program.write_text(f'#!/bin/sh\necho "{name} $*"\ncase "{name} $*" in *{fails or "nothing"}*) exit 1; esac\n')
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    done = make(root, "test", f"VENV={folder}")
    said = [
        line for line in done.stdout.splitlines() if line.startswith(("ruff ", "mypy", "python -m pytest", "test: "))
    ]
    begun = [line.split(" -n")[0].split(":")[0].strip() for line in said]
    assert (done.returncode == 0) == (not fails)
    if fails == "ruff":
        assert begun == ["ruff check ."]
    elif fails == "pytest":
        assert begun == ["ruff check .", "python -m pytest", "mypy"]
    else:
        assert begun == ["ruff check .", "python -m pytest", "test", "mypy"]  # whatever mypy said stands at the end


def test_a_change_of_the_requirements_installs_again(root: Path, tmp_path: Path) -> None:
    folder = stamped(tmp_path / "venv", root, ".train")
    oldest = min((root / name).stat().st_mtime for name in ("pyproject.toml", "constraints.txt"))
    os.utime(folder / ".train", (oldest - 1, oldest - 1))
    done = make(root, "--dry-run", "demo", f"VENV={folder}")
    assert "pip install" in done.stdout
    assert "--constraint constraints.txt" in done.stdout


def test_an_old_python_is_named(root: Path, tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text('#!/bin/sh\n[ "$1" = -V ] && echo "Python 3.9.2" && exit 0\nexit 1\n')
    old.chmod(old.stat().st_mode | stat.S_IXUSR)
    done = make(root, "demo", f"PYTHON={old}", f"VENV={tmp_path / 'venv'}")
    assert done.returncode != 0
    assert f"Callwright needs Python 3.11 or newer, and {old} is Python 3.9.2." in done.stderr
    assert "make PYTHON=python3.12" in done.stderr


def test_a_missing_python_is_named(root: Path, tmp_path: Path) -> None:
    done = make(root, "demo", "PYTHON=no-such-python", f"VENV={tmp_path / 'venv'}")
    assert done.returncode != 0
    assert "There is no no-such-python. Install Python 3.11 or newer" in done.stderr
