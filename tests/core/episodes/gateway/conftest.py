"""What the tests of the gateway share: a byte tokenizer with a template that drops thoughts, a scripted engine."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent / "support"))
