"""What the tests of adapters share: an errand, and the scripted engine of the gateway."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path += [str(HERE / "support"), str(HERE.parents[1] / "core" / "episodes" / "gateway" / "support")]
