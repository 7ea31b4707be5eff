"""The stand-in model server, importable, and teachers that are kept out of the network."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "core" / "support"))
