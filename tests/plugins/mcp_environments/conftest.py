"""The tests of the environments share what they do with sessions: ``from environment_sessions import ok, fails``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent / "support"))
