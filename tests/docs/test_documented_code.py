"""The code of the pages runs, in order, and prints what the pages say.

A fenced block is

- a file, if the comment ``<!-- file: NAME -->`` stands before it (``<!-- more of: NAME -->`` goes on with it);
- Python (``python``), all blocks of a page in one interpreter;
- a dialogue with a shell (``console``): commands after ``$``, then their output. Only ``callwright`` is run.

A ``text`` block directly after Python is its output. ``…`` in an output stands for anything. ``<!-- status: 2 -->``
before a dialogue is the exit status of its last command; ``<!-- not run: REASON -->`` leaves a block out. ``<!-- with:
WORDS -->`` before a dialogue has the test add words to its last command: fewer steps, where the page states no figure.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest
from attrs import frozen

PAGES = [
    "README.md",
    "docs/walk.md",
    "docs/hooks.md",
    "docs/plugins.md",
    "docs/recipes.md",
    "docs/security.md",
    "docs/embedding.md",
    "docs/openenv.md",
    "docs/skyrl.md",
    "docs/traces.md",
    "docs/dependency-graphs.md",
    "docs/gates.md",
    "docs/recording.md",
    "docs/command-line.md",
    "docs/measuring.md",
    "docs/comparing.md",
    "docs/benchmarks.md",
    "docs/environments.md",
    "docs/composing.md",
    "docs/costs.md",
    "docs/outcomes.md",
    "docs/worlds-mini.md",
    "docs/episodes.md",
    "docs/executors.md",
    "docs/users.md",
    "docs/mcp.md",
    "docs/model-servers.md",
    "docs/intermediate-representations.md",
    "docs/toolrl-and-prove.md",
    "docs/teachers.md",
    "docs/suites.md",
    "docs/synthesis.md",
    "docs/synthesis-language.md",
    "docs/judges.md",
    "docs/village.md",
    "docs/task-files.md",
    "docs/synthesizers.md",
    "docs/capabilities.md",
    "docs/your-own-database.md",
    "docs/write-a-form.md",
    "docs/write-a-reward.md",
    "docs/troubleshooting.md",
    "docs/write-a-toolset.md",
    "docs/write-an-algorithm.md",
    "docs/write-a-sampler.md",
    "docs/write-a-trainer.md",
    "docs/write-a-command.md",
    pytest.param("docs/grid.md", marks=pytest.mark.slow),
    pytest.param("docs/trl.md", marks=pytest.mark.slow),
    "docs/verl.md",
    pytest.param("docs/train-on-my-server.md", marks=pytest.mark.slow),
    pytest.param("docs/tutorial.md", marks=pytest.mark.slow),
]
#: Pages that train, or load a model: they run in copies of one process that has torch and transformers.
TRAINING = ["docs/episodes.md", "docs/grid.md", "docs/trl.md", "docs/train-on-my-server.md", "docs/tutorial.md"]
_PROGRAM = Path(__file__).with_name("page_process.py")


@frozen
class Part:
    """Something that runs: Python, or the words of a command; what it must print, and its exit status."""

    line: int
    kind: str
    content: str | list[str]
    output: str | None = None
    status: int = 0


def parts(page: Any) -> list[Part]:
    """What of a page is run, in order."""
    found: list[Part] = []
    blocks = page.blocks
    for number, block in enumerate(blocks):
        if block.note[0] in ("file", "more of", "not run"):
            continue
        if block.language == "python":
            after = blocks[number + 1] if number + 1 < len(blocks) else None
            output = after.text if after is not None and after.language == "text" else None
            found.append(Part(block.line, "python", block.text, output))
        elif block.language == "console":
            found += dialogue(block)
    return found


def dialogue(block: Any) -> list[Part]:
    """The commands of a dialogue that are Callwright's."""
    commands: list[tuple[str, list[str]]] = []
    for line in block.text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        else:
            commands[-1][1].append(line)
    found = []
    for number, (command, output) in enumerate(commands, 1):
        words = shlex.split(command)
        if words[0] == "callwright":
            assert not {"|", ">", "<", "&&"} & set(words), f"{command}: pipes are not run"
            kind, noted = block.note if number == len(commands) else ("", "")
            status = int(noted) if kind == "status" else 0
            words += shlex.split(noted) if kind == "with" else []
            found.append(Part(block.line, "command", words[1:], "\n".join(output) or None, status))
    return found


def write_files(page: Any, folder: Path) -> None:
    """The files of a page."""
    for block in page.blocks:
        kind, name = block.note
        if kind == "file":
            assert not (folder / name).exists(), f"{page.name}:{block.line}: {name} is written twice"
            (folder / name).write_text(block.text, encoding="utf-8")
        elif kind == "more of":
            with (folder / name).open("a", encoding="utf-8") as file:
                file.write("\n\n" + block.text)


def matches(expected: str, found: str) -> bool:
    """Whether an output is the expected one; blanks at the ends of lines do not count."""
    wanted, came = (re.sub(r"[ \t]+$", "", text.strip("\n"), flags=re.MULTILINE) for text in (expected, found))
    pattern = ".*?".join(re.escape(part) for part in wanted.split("…"))
    return re.fullmatch(pattern, came, re.DOTALL) is not None


def environment() -> dict[str, str]:
    """The variables of a process in which pages run."""
    # Where ``callwright`` is installed: a page may start it as a server.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, "COLUMNS": "100", "OMP_NUM_THREADS": "1", "PYTHONPATH": ".", "PATH": path}


@pytest.fixture(scope="module")
def prepared() -> Iterator[Callable[[Path], tuple[int, str]]]:
    """Runs the page of a folder in a copy of a process that has imported what training takes long to import."""
    started: list[subprocess.Popen[str]] = []
    with TemporaryFile("w+", encoding="utf-8") as errors:

        def run(folder: Path) -> tuple[int, str]:
            if not started:
                started.append(
                    subprocess.Popen(
                        [sys.executable, str(_PROGRAM), "--prepared"],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=errors,
                        text=True,
                        env=environment(),
                    )
                )
            process = started[0]
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{folder}\n")
            process.stdin.flush()
            status = process.stdout.readline()
            errors.seek(0)
            said = errors.read()
            assert status, said
            return int(status), said

        yield run
        for process in started:
            process.communicate()
            assert process.returncode == 0


def run_fresh(folder: Path) -> tuple[int, str]:
    """Run the page of a folder in a process that has imported nothing."""
    done = subprocess.run(
        [sys.executable, str(_PROGRAM)], cwd=folder, capture_output=True, text=True, env=environment()
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("name", PAGES)
def test_the_code_of_the_page_does_what_the_page_says(
    page: Any, name: str, tmp_path: Path, prepared: Callable[[Path], tuple[int, str]]
) -> None:
    one = page(name)
    write_files(one, tmp_path)
    todo = parts(one)
    assert todo, f"{name} has no code to run"
    (tmp_path / "_parts.json").write_text(json.dumps([(part.kind, part.content) for part in todo]), encoding="utf-8")
    status, said = prepared(tmp_path) if name in TRAINING else run_fresh(tmp_path)
    assert status == 0, said
    results = json.loads((tmp_path / "_results.json").read_text(encoding="utf-8"))
    for part, (status, printed) in zip(todo, results, strict=True):
        where = f"{name}:{part.line}: {part.content}"
        assert status == part.status, f"{where} ended with {status}:\n{printed}"
        assert part.output is None or matches(part.output, printed), f"{where} printed:\n{printed}"
    if name == "docs/tutorial.md":
        evaluation = json.loads((tmp_path / "runs" / "city-guide" / "evaluation.json").read_text(encoding="utf-8"))
        before, after = (evaluation[when]["by_depth"]["2"]["accuracy"] for when in ("before", "after"))
        assert after >= before + 0.5, "the policy of the tutorial learns"


def test_scoring_a_string_takes_less_than_ten_lines(page: Any) -> None:
    block = next(block for block in page("README.md").blocks if block.language == "python" and ".score(" in block.text)
    assert len([line for line in block.text.splitlines() if line.strip()]) < 10


def test_outputs_are_compared() -> None:
    assert matches("a\nb…d\n", "a\nb\nc\nd")
    assert not matches("a\nb", "a\nc")
