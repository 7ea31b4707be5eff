"""``python -m callwright``."""

from __future__ import annotations

from callwright.cli import main

if __name__ == "__main__":
    main()
