"""The scripted engine and tokenizer of the gateway's own tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3] / "core" / "episodes" / "gateway" / "support"))
