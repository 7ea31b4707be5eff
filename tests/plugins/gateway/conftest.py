"""The scripted engine of the gateway's own tests, and an agent that nobody changed."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT / "tests" / "core" / "episodes" / "gateway" / "support"))
