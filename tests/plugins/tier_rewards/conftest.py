"""The oracle and the tables of adversarial completions are plain modules in two folders; tests import them by name."""

from __future__ import annotations

import sys
from pathlib import Path

for folder in ("oracle", "adversarial"):
    place = str(Path(__file__).parent / folder)
    if place not in sys.path:
        sys.path.insert(0, place)
