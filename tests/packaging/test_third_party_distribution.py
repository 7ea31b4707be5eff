"""A distribution that nobody here knows of registers exactly as the built-in plugins do."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any, NamedTuple

import pytest


class Installed(NamedTuple):
    """A virtual environment that holds the distribution, and a copy of its sources."""

    python: Path
    sources: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a module in it."""
        command = [str(self.python), "-m", *arguments]
        return subprocess.run(command, cwd=self.sources, capture_output=True, text=True)

    def json(self, *arguments: str) -> Any:
        """What a command of Callwright prints as JSON."""
        done = self.run("callwright", *arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def installed(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """pip installs the distribution; everything else is seen through a .pth file, so that no network is needed."""
    folder = tmp_path_factory.mktemp("third-party")
    sources = folder / "sources"
    shutil.copytree(root / "sdk_examples" / "third_party_plugin", sources, ignore=shutil.ignore_patterns("__pycache__"))
    venv.create(folder / "venv", symlinks=True)
    python = folder / "venv" / "bin" / "python"
    where = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    seen = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    (Path(where) / "seen.pth").write_text(seen, encoding="utf-8")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), "install", *options, str(sources)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return Installed(python, sources)


def test_it_is_listed_as_the_built_in_plugins_are(installed: Installed) -> None:
    plugins = {plugin["name"]: plugin for plugin in installed.json("plugins", "list", "--json")}
    ours, built_in = plugins["lending"], plugins["tier-rewards"]
    assert ours.keys() == built_in.keys()
    assert (ours["distribution"], ours["version"], ours["error"]) == ("callwright-lending", "1.0.0", "")
    assert {component["name"] for component in ours["components"]} == {
        "banking-goals",
        "banking-with-pledges",
        "lending-v1",
        "lending-mini-v1",
        "look-first",
        "tier-look-first",
        "lending hasty",
    }
    assert [set(component) for component in ours["components"]] == [set(built_in["components"][0])] * 7


def test_its_components_are_found_by_name(installed: Installed) -> None:
    arguments = ["--corpus", "lending-mini-v1", "--split", "evaluation", "--sampler", "gold", "--json"]
    assert installed.json("evaluate", *arguments)["overall"] == 1.0


def test_its_command_is_one_of_the_command_line(installed: Installed) -> None:
    done = installed.run("callwright", "lending", "hasty", "--help")
    assert done.returncode == 0, done.stderr
    assert "List the completions that change something before they looked." in done.stdout
    (installed.sources / "rows.jsonl").write_text('{"id": 1, "task": "evaluation-3", "completion": "no"}\n')
    assert installed.json("lending", "hasty", "rows.jsonl", "--json") == []


def test_nothing_of_it_imports_the_command_line(installed: Installed) -> None:
    """What a command needs is public; the command line is nobody's to import."""
    for path in (installed.sources / "src").rglob("*.py"):
        assert "callwright.cli" not in path.read_text(encoding="utf-8")


def test_it_passes_the_check_of_plugins(installed: Installed) -> None:
    done = installed.run("callwright", "plugins", "check", "lending")
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_can_be_left_out(installed: Installed) -> None:
    command = ["evaluate", "--corpus", "lending-mini-v1", "--sampler", "gold"]
    done = installed.run("callwright", "-p", "no:lending", *command)
    assert done.returncode == 2
    assert "There is no corpus named 'lending-mini-v1'" in done.stderr


def test_its_own_tests_pass(installed: Installed) -> None:
    done = installed.run("pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr


def test_here_it_is_not_installed() -> None:
    """The environment of the tests stays as it was."""
    done = subprocess.run([sys.executable, "-c", "import callwright_lending"], capture_output=True, text=True)
    assert "ModuleNotFoundError" in done.stderr
