"""The example that four libraries have: the table of the docs is what the program prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def rows(text: str) -> dict[str, list[str]]:
    found = re.findall(r"^\| (callwright|trl|verifiers|art)(?: [\d.]+)? \| ([\d |]+) \| (.*) \|$", text, re.M | re.I)
    return {name.lower(): [*re.findall(r"\d+", counts), rewards] for name, counts, rewards in found}


def test_the_table_of_the_docs_is_what_comes_out() -> None:
    pytest.importorskip("trl", reason="needs the extra 'trl'")
    program = ROOT / "benchmarks" / "lines_of_code.py"
    ran = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
    printed, stated = rows(ran.stdout), rows((ROOT / "docs" / "embedding.md").read_text("utf-8"))
    assert {name: row[:-1] for name, row in printed.items()} == {name: row[:-1] for name, row in stated.items()}
    assert printed["callwright"][-1] == printed["trl"][-1] == stated["callwright"][-1] == "1, 0.5, 0, 0"
    assert len(printed) == 4
