"""``python -m callwright_plugins.depthbench.build``: derive the specifications and draw the corpus, to the same bytes.

The uncompressed rows are what is compared: compressed bytes also depend on the version of zlib.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from callwright.language.program import Program, plain
from callwright_plugins.depthbench.corpus import FILES, read_task
from callwright_plugins.depthbench.environment import made
from callwright_plugins.depthbench.instances import FILES as INSTANCES
from callwright_plugins.depthbench.instances import kept, search_all
from callwright_plugins.depthbench.specifications import FILE as SPECIFICATIONS
from callwright_plugins.depthbench.specifications import derive, text_of
from callwright_plugins.depthbench.world import V1, VERSIONS, Version

DATA = Path(__file__).parent / "data"


def program_of(program: Program) -> dict[str, Any]:
    """A program in the JSON form."""
    return {str(call.id): {call.tool: plain(call.arguments)} for call in program.calls}


def row_of(row: Any, task_id: str) -> dict[str, Any]:
    """A generated row as it is written."""
    task = row.task
    called = list(dict.fromkeys(call.tool for call in task.program.calls))
    return {
        "id": task_id,
        "split": task.split,
        "depth": task.depth,
        "chain": task.chain,
        "structure": task.structure,
        "returns": task.returns,
        "scenario": task.scenario,
        "prompt": task.query,
        "target_tools": called,
        "distractors": [name for name in task.tools if name not in called],
        "tools": list(task.tools),
        "program": program_of(task.program),
        "answer": list(task.answer.values),
        "family": row.family,
        "kind": row.kind,
        "compound": row.compound,
        "would": program_of(row.would),
    }


def corpus_text(
    report: Callable[[str], object] = lambda text: None, version: Version = V1
) -> tuple[str, dict[str, list[str]]]:
    """The corpus as JSON lines, and the further worlds of its tasks that were found while it was drawn."""
    from callwright_plugins.depthbench.generate import Generator

    counts: dict[str, int] = {}
    lines = []
    worlds: dict[str, list[str]] = {}
    for row in Generator(report, version).rows():
        number = counts.get(row.task.split, 0)
        counts[row.task.split] = number + 1
        task_id = f"{row.task.split}-{number:04d}"
        lines.append(json.dumps(row_of(row, task_id), ensure_ascii=False))
        if row.scenarios:
            worlds[task_id] = list(row.scenarios)
    return "\n".join(lines) + "\n", worlds


def build(
    folder: Path = DATA,
    *,
    check: bool = False,
    report: Callable[[str], object] = lambda text: None,
    version: Version = V1,
) -> bool:
    """Write the files of a version, or (``check``) compare them with those that are there; whether they are the same.

    Both versions share the specifications of the tools.
    """
    same = True
    specifications = text_of(derive())
    path = folder / SPECIFICATIONS
    same &= path.exists() and path.read_text(encoding="utf-8") == specifications
    if not check:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(specifications, encoding="utf-8")
    drawn, worlds = corpus_text(report, version)
    text = drawn.encode()
    path = folder / FILES[version.name]
    same &= path.exists() and gzip.decompress(path.read_bytes()) == text
    if not check:
        path.write_bytes(gzip.compress(text, 9, mtime=0))
    if version is V1:
        tasks = [read_task(json.loads(line), made(version)) for line in text.splitlines()]
        worlds = search_all(tasks, report)
    same &= kept(worlds, folder / INSTANCES[version.name], check=check)
    report(f"{len(text.splitlines())} tasks, {len(text)} bytes, sha256 {hashlib.sha256(text).hexdigest()}")
    return same


def main() -> int:
    """The program."""
    parser = argparse.ArgumentParser(description="Build DepthBench again.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file would change")
    parser.add_argument("--corpus", choices=sorted(VERSIONS), default=V1.name, help="which version to build")
    options = parser.parse_args()
    check: bool = options.check
    same = build(check=check, report=print, version=VERSIONS[options.corpus])
    print("the files are as they were" if same else "the files differ" if check else "the files have changed")
    return 0 if same or not check else 1


if __name__ == "__main__":
    sys.exit(main())
