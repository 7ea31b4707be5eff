"""The examples that hypothesis draws are the same whatever else was imported or collected."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DRAWING = """
from hypothesis import given, settings
from hypothesis import strategies as st

drawn = []


@settings(max_examples=400)
@given(st.integers(), st.floats(), st.text())
def test_draw(number, real, text):
    drawn.append((number, real, text))


def test_print():
    import hashlib
    print("drawn", len(drawn), hashlib.sha256(repr(drawn).encode()).hexdigest())
"""
CONSTANTS = "A, B, C = 738_221_906, 4.625e17, 'a constant of another module'\n"


def test_examples_do_not_hang_on_what_is_imported(tmp_path: Path, root: Path) -> None:
    """Another module is imported in the second process, and stands where hypothesis takes it for one of the project."""
    said = []
    (tmp_path / "test_drawing.py").write_text(DRAWING, encoding="utf-8")
    (tmp_path / "conftest.py").write_text((root / "tests" / "conftest.py").read_text(encoding="utf-8"), "utf-8")
    (tmp_path / "constants.py").write_text(CONSTANTS, encoding="utf-8")
    for other in ("json", "constants"):
        options = ["-q", "-s", "-p", other, "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "-c", "/dev/null"]
        command = [sys.executable, "-m", "pytest", *options, "test_drawing.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        said.append([line for line in done.stdout.splitlines() if "drawn" in line])
    assert said[0]
    assert said[0] == said[1]
