"""The whole of training in a few seconds: too short to learn, long enough to see.

Run: python sdk_examples/train_tiny.py [FOLDER]. The real thing is `callwright run tier-mini`; what is shortened here is
all that differs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import callwright as cw

SHORT = [
    "trainer.steps=3",
    "trainer.prompts=2",
    "trainer.group=4",
    "trainer.max_new_tokens=40",
    "trainer.evaluation_tasks=2",
    "trainer.warm_start.steps=30",
    "trainer.warm_start.count=200",
]


def main(folder: Path) -> cw.Run:
    """Train into a folder. Called again with the same folder, it goes on, or finds that it has finished."""
    run = cw.train("tier-mini", output=folder, overrides=SHORT)
    for row in run.rows("metrics.jsonl"):
        print(f"step {row['step']}: mean reward {row['reward']:.3f}")
    print(f"report: {run.path / 'report.html'}")
    return run


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/tiny"))
