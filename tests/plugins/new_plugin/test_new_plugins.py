"""``callwright plugins new``: what it writes is installed, checked and tested as whoever asked for it would."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from click.testing import CliRunner

import callwright as cw
from callwright.cli.root import root as root_command
from callwright.commands import App
from callwright.plugins import KINDS as component_kinds
from callwright_plugins.new_plugin.command import new
from callwright_plugins.new_plugin.kind import KINDS
from callwright_plugins.new_plugin.writing import NewPlugin


def names() -> list[str]:
    return [f"fine-{kind}" for kind in KINDS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new plugin of every kind, one folder beside the other."""
    made = tmp_path_factory.mktemp("new")
    for kind, name in zip(KINDS, names(), strict=True):
        NewPlugin(name, kind).write(made / f"callwright-{name}")
    return made


@pytest.fixture(scope="module")
def python(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment in which pip has installed all of them; the rest is seen through a .pth file."""
    place = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(place, symlinks=True)
    made = place / "bin" / "python"
    where = subprocess.run(
        [str(made), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    seen = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
    (Path(where) / "seen.pth").write_text(seen, encoding="utf-8")
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet"]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(made),
            "install",
            *options,
            *map(str, sorted(folder.glob("callwright-*"))),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return made


@pytest.mark.slow
def test_each_kind_is_green_at_once(folder: Path, python: Path) -> None:
    pytest.importorskip("torch")
    done = subprocess.run(
        [str(python), "-m", "callwright", "plugins", "check", *names()], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # A trainer needs a recipe to be tried; its own tests give it one.
    assert [line.split(":")[1] for line in done.stdout.splitlines() if line.startswith("skipped:")] == [" fine-trainer"]
    assert "1 skipped, 0 errors" in done.stdout
    options = ["-q", "-W", "error", "-p", "no:cacheprovider", "--rootdir", str(folder)]
    done = subprocess.run(
        [str(python), "-m", "pytest", *options, *map(str, sorted(folder.glob("callwright-*/tests")))],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ passed, 2 skipped in", done.stdout), done.stdout  # those of the trainer without a recipe


def test_it_is_written_as_ruff_writes(folder: Path) -> None:
    for command in (["check", "--quiet"], ["format", "--check", "--quiet"]):
        for one in sorted(folder.glob("callwright-*")):
            done = subprocess.run(
                [sys.executable, "-m", "ruff", *command, "--no-cache", str(one)], capture_output=True, text=True
            )
            assert done.returncode == 0, done.stdout


def test_nothing_keeps_the_name_of_the_sample() -> None:
    for kind, name in zip(KINDS, names(), strict=True):
        for path, text in NewPlugin(name, kind).files().items():
            assert not re.search("zebra|«|»", f"{path}{text}", re.IGNORECASE), path


@pytest.mark.parametrize("kind", KINDS)
def test_the_commands_of_its_readme_run(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if KINDS[kind].extra:
        pytest.importorskip("torch")
    plugin = NewPlugin(f"fine-{kind}", kind)
    plugin.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path / "src"))
    for line in (tmp_path / "README.md").read_text("utf-8").partition("How it is used:")[2].splitlines():
        if not line.strip().startswith("callwright "):
            continue  # in Python
        words = shlex.split(line)[1:]
        dry = ["--dry-run"] if words[:2] == ["run", "tier-mini"] else []  # which would train for minutes
        done = CliRunner().invoke(root_command, ["-p", plugin.module, *words, *dry])
        assert done.exit_code == 0, f"{line}: {done.output}"


def test_the_page_lists_all_of_them(root: Path) -> None:
    page = (root / "docs" / "plugins.md").read_text("utf-8")
    listed = page.partition("`--kind` is ")[2].partition(";")[0]
    assert sorted(re.findall(r"`([^`]+)`", listed)) == sorted(KINDS)


def test_there_is_one_for_everything_that_can_be_registered() -> None:
    made = {one.kind for kind in KINDS.values() for one in kind.registered}
    hooks = {one.hook for kind in KINDS.values() for one in kind.registered}
    assert made | {"model check"} == set(component_kinds)
    assert len(hooks) == len(made)


@pytest.mark.parametrize("name", ["Fine", "2fine", "fine_one", "fine--one", "-fine", "fine-", "f" * 41, "", "a/b", "é"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(cw.UsageError, match="cannot be the name of a plugin"):
        NewPlugin(name, "form")


def test_the_command_says_what_comes_next(tmp_path: Path) -> None:
    target = tmp_path / "here"
    options = ["callwright-fine", "--kind", "reward", "-o", str(target), "--licence", "apache-2.0", "--author", "Ann"]
    done = CliRunner().invoke(new, options, obj=App(registry=cw.default_registry()))
    assert done.exit_code == 0, done.output
    assert "callwright plugins check fine" in done.stderr
    assert 'license = "Apache-2.0"' in (target / "pyproject.toml").read_text("utf-8")
    assert "Ann" in (target / "LICENSE").read_text("utf-8")


def test_nothing_is_overwritten_and_no_plugin_named_twice(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine", encoding="utf-8")
    app = App(registry=cw.default_registry())
    done = CliRunner().invoke(new, ["fine", "--kind", "form", "-o", str(tmp_path)], obj=app)
    assert isinstance(done.exception, cw.UsageError)
    assert "is there already" in str(done.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    done = CliRunner().invoke(new, ["report", "--kind", "form", "-o", str(tmp_path / "new")], obj=app)
    assert "a plugin 'report' already" in str(done.exception)
    done = CliRunner().invoke(new, ["grpo", "--kind", "algorithm", "-o", str(tmp_path / "new")], obj=app)
    assert "the algorithm 'grpo' is there already, of the plugin 'policy-gradient'" in str(done.exception)
    assert not (tmp_path / "new").exists()


def test_without_a_licence_there_is_none(tmp_path: Path) -> None:
    made = NewPlugin("fine", "command", "none").files()
    assert Path("LICENSE") not in made
    assert "license" not in made[Path("pyproject.toml")]
