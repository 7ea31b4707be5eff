"""The release's files, its functions, and a folder of functions that do what the release's do at their worst."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

BASIC = """
import math


def add(arg_0, arg_1):
    return arg_0 + arg_1


def divide(arg_0, arg_1):
    return arg_0 / arg_1
"""
FILES = {
    "turned.py": "def turned(items):\n    items.reverse()\n    return items[0]\n",
    "total.py": "def total(items):\n    return sum(items)\n",
    "dice.py": "import random\n\nrandom.seed(42)\n\n\ndef dice():\n    return random.randint(1, 10**9)\n",
    "pair.py": "def pair(first, second):\n    return first, [second]\n",
    "forever.py": "def forever():\n    while True:\n        pass\n",
    "leaves.py": "import sys\n\n\ndef leaves():\n    sys.exit(3)\n",
    "dies.py": "import os\n\n\ndef dies():\n    os._exit(3)\n",
    "needs.py": "import a_module_that_nobody_has\n\n\ndef needs():\n    return 1\n",
    "counts.py": "seen = []\n\n\ndef counts():\n    seen.append(1)\n    return len(seen)\n",
}


def tool(name: str, *parameters: str, output: str = "result") -> dict[str, Any]:
    return {
        "name": name,
        "description": f"What {name} does.",
        "parameters": {one: {"description": "", "type": "int or float"} for one in parameters},
        "output_parameters": {output: {"description": "", "type": "int or float"}},
    }


TOOLS = [
    tool("add", "arg_0", "arg_1"),
    tool("divide", "arg_0", "arg_1"),
    tool("turned", "items"),
    tool("total", "items"),
    tool("pair", "first", "second"),
    *map(tool, ("dice", "forever", "leaves", "dies", "needs", "counts")),
    {**tool("two"), "output_parameters": {"a": {}, "b": {}}},
]


def call(number: int, name: str, *given: Any) -> dict[str, Any]:
    return {"name": name, "label": f"$var_{number}", "arguments": {f"arg_{at}": one for at, one in enumerate(given)}}


def row(sample_id: str, calls: list[dict[str, Any]], gold: Any) -> dict[str, Any]:
    return {"sample_id": sample_id, "input": f"Do {sample_id}.", "output": calls, "tools": TOOLS, "gold_answer": gold}


ROWS = [
    row("half", [call(1, "add", 1, 4), call(2, "divide", "$var_1.result$", 2)], 2.5),
    row("zero", [call(1, "add", 1, -1), call(2, "add", "$var_1.result$", 0)], 0),
    row("rounded", [call(1, "divide", 2, 3)], 0.67),
    row("dice", [call(1, "dice"), call(2, "dice")], 0),
    row("pair", [call(1, "pair", 1, 2)], [1, [2]]),
    row("counts", [call(1, "counts"), call(2, "counts")], 1),
    row("turned", [call(1, "turned", [1, 2, 3])], 3),
]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sequences have a minute, so that a busy machine changes no verdict; the release's limit is ten seconds."""
    monkeypatch.setattr("callwright_plugins.nestful.corpus.SECONDS", 60.0)


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like the release's, with its own samples and functions."""
    import random

    root = tmp_path_factory.mktemp("release")
    folder = root / "data_v2" / "executable_functions"
    folder.mkdir(parents=True)
    (folder / "basic_functions.py").write_text(BASIC)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "func_file_map.json").write_text(json.dumps({name.removesuffix(".py"): name for name in FILES}))
    seeded = random.Random(42).randint(1, 10**9)
    rows = [{**one, "gold_answer": seeded} if one["sample_id"] == "dice" else one for one in ROWS]
    (root / "data_v2" / "nestful_data.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    return root


@pytest.fixture(scope="session")
def official_nestful(official_data: Path) -> Path:
    """The given part of the second release; the test is skipped where it is absent."""
    folder = official_data / "nestful"
    if not (folder / "v2").is_dir():
        pytest.skip("the samples of NESTFUL are not here (CALLWRIGHT_DATA)")
    return folder


@pytest.fixture(scope="session")
def official_functions(official_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release's functions (``CALLWRIGHT_NESTFUL``: their folder, or an archive of it); skipped where absent."""
    place = Path(os.environ.get("CALLWRIGHT_NESTFUL") or official_data.parent / "oracles" / "nestful-functions.tar.gz")
    if not place.exists():
        pytest.skip("the functions of NESTFUL are not here (CALLWRIGHT_NESTFUL)")
    if place.is_dir():
        return place
    root = tmp_path_factory.mktemp("functions")
    with tarfile.open(place) as archive:
        archive.extractall(root, filter="data")
    return next(root.rglob("executable_functions"))
