"""The program for GPUs, on a CPU: its numbers, its page, and recipes that load."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import callwright as cw

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("trl")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import gpu

    return gpu


def test_the_numbers_of_a_device_are_those_of_the_cpu_and_stand_in_the_page(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    page = tmp_path / "page.md"
    page.write_text("Before.\n\n<!-- gpu.py writes what follows -->\n\nold\n\n<!-- and ends here -->\n\nAfter.\n")
    words = ["--device", "cpu", "--small", "--parts", "numbers", "--output", str(tmp_path / "out"), "--page", str(page)]
    done = subprocess.run([sys.executable, str(BENCHMARKS / "gpu.py"), *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out" / "gpu.json").read_text())["parts"]["numbers"]
    exact, rough = found
    assert (exact["log-probability"], exact["gradient"], exact["close"]) == (0.0, 0.0, True)
    assert 0 < rough["gradient"] < 0.1
    text = page.read_text()
    assert text.startswith("Before.\n\n<!-- gpu.py writes")
    assert text.endswith("<!-- and ends here -->\n\nAfter.\n")
    assert "old" not in text
    assert "| arithmetic | log-probability | gradient | close |" in text


def test_its_recipes_are_recipes(gpu: Any) -> None:
    asked = argparse.Namespace(steps=2, device="cpu", warm_start={"steps": 3})
    for trainer in gpu.TRAINERS.values():
        recipe = cw.load_recipe("tier-mini", gpu.changes(asked, trainer)).recipe
        made = cw.default_registry().create("trainer", recipe.trainer.name, **recipe.trainer.options)
        assert made.options.steps == 2
        assert recipe.trainer.options["warm_start"]["steps"] == 3


def test_the_page_of_the_docs_has_its_marks_and_failures_are_said(gpu: Any, tmp_path: Path) -> None:
    page = tmp_path / "gpu.md"
    page.write_text((BENCHMARKS.parent / "docs" / "gpu.md").read_text(encoding="utf-8"), encoding="utf-8")
    about = {"day": "2026-01-01", "device": "a GPU", "versions": "torch 1"}
    parts = {"steps": "RuntimeError: out of memory", "runs": [{"reward": [0.5, 1234.0], "GiB": None, "close": False}]}
    gpu.write_page(page, gpu.markdown({"where": about, "parts": parts}))
    text = page.read_text(encoding="utf-8")
    assert "This part failed: `RuntimeError: out of memory`" in text
    assert "| 0.5 → 1,234 | – | **no** |" in text
    (tmp_path / "other.md").write_text("x")
    with pytest.raises(ValueError, match="lacks the lines"):
        gpu.write_page(tmp_path / "other.md", "")
