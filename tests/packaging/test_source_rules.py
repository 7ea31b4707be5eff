"""Rules about the sources as a whole."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

TEXT = {".py", ".md", ".toml", ".txt", ".json", ".jsonl", ".cfg", ".yml", ".yaml", ".html", ".css", ".js", ".svg", ""}


def committed(root: Path) -> list[Path]:
    """Files that are, or would be, committed; without git (an unpacked sdist) every file of the tree."""
    if (root / ".git").exists() and shutil.which("git"):
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
        found = [root / name for name in listed.split("\0") if name]
    else:
        found = [path for path in root.rglob("*") if not {"__pycache__", ".venv", "runs"} & set(path.parts)]
    return [path for path in found if path.is_file() and path.suffix in TEXT]


def test_contracts_of_import_linter_hold(root: Path) -> None:
    command = shutil.which("lint-imports", path=str(Path(sys.executable).parent))
    assert command is not None, "import-linter is not installed; run: pip install --editable '.[dev]'"
    done = subprocess.run([command, "--no-cache"], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 kept, 0 broken" in done.stdout


def test_nobody_imports_the_folders_of_the_packages(root: Path) -> None:
    pattern = re.compile(r"^\s*(?:import|from)\s+(?:core|plugins)\b", re.MULTILINE)
    offenders = [path for path in committed(root) if path.suffix == ".py" and pattern.search(path.read_text("utf-8"))]
    assert offenders == []


def test_no_file_names_the_place_where_it_was_written(root: Path) -> None:
    # Absolute paths (a home may be that of a made-up filesystem), and the folder beside the checkout except as the
    # default of CALLWRIGHT_DATA.
    pattern = re.compile(r"(?<![\w.~/-])/(?:work|root)/|\bshared/(?!data\b)|(?<!\.\./)\bshared/data\b")
    found = [
        f"{path.relative_to(root)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
        for path in committed(root)
        if path != Path(__file__)
        for text in [path.read_text("utf-8", errors="replace")]
        for match in pattern.finditer(text)
    ]
    assert found == []


def test_no_test_measures_how_fast_it_is(root: Path) -> None:
    # A busy machine would fail it. What must be linear is held under ``minute_of_work``; speed is for ``benchmarks/``.
    pattern = re.compile(r"\b(?:process_time|perf_counter|timeit)\b")
    others = set((root / "tests").rglob("*.py")) - {Path(__file__), root / "tests" / "conftest.py"}
    assert [path for path in sorted(others) if pattern.search(path.read_text("utf-8"))] == []


#: OpenRLHF's parser is the body of its script: it is run, in OpenRLHF's own interpreter, to check a command line. AWM's
#: verifiers are programs in a row of a file, of a folder that the user named and a foreign recipe asks about.
RUNS_A_PROGRAM = {
    "plugins/callwright_plugins/awm/verifiers.py",
    "plugins/callwright_plugins/openrlhf_trainer/translation/parser_check.py",
}


@pytest.mark.parametrize("word", ["eval", "exec"])
def test_product_code_evaluates_no_text(root: Path, word: str) -> None:
    pattern = re.compile(rf"(?<![\w.]){word}\(")
    offenders = [
        path.relative_to(root)
        for folder in ("core", "plugins")
        for path in (root / folder).rglob("*.py")
        if pattern.search(path.read_text("utf-8"))
    ]
    assert [path for path in offenders if path.as_posix() not in RUNS_A_PROGRAM] == []


#: Folders with a module for each of many things of one kind: commands, environments and their tests.
ONE_A_THING = (
    "core/callwright/cli",
    "plugins/callwright_plugins/mcp_environments",
    "plugins/callwright_plugins/new_plugin/kinds",  # a file for each kind of component
    "tests/plugins/mcp_environments",
)


def test_no_folder_holds_more_than_fifteen_modules(root: Path) -> None:
    modules: Counter[str] = Counter()
    for path in committed(root):
        place = path.parent.relative_to(root).as_posix()
        if path.suffix == ".py" and path.name != "__init__.py" and place.startswith(("core/", "plugins/", "tests/")):
            modules[place] += 1
    assert {place: n for place, n in modules.items() if n > 15 and not place.startswith(ONE_A_THING)} == {}


def test_every_folder_of_modules_says_what_lives_there(root: Path) -> None:
    packages = [path for path in committed(root) if path.name == "__init__.py" and "tests" not in path.parts]
    bare = [path for path in packages if not path.read_text("utf-8").startswith('"""')]
    assert [path.relative_to(root).as_posix() for path in bare] == []
