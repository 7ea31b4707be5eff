"""How many tasks of each kind a corpus has: the same in all versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: Split -> depth -> structure -> tasks. The totals per split and depth are those of TIER's released split.
QUOTAS: Final[Mapping[str, Mapping[int, Mapping[str, int]]]] = {
    "train": {
        0: {"no tool": 17, "missing tool": 16, "missing value": 17},
        1: {"single": 410},
        2: {"linear": 33, "parallel": 22},
        3: {"linear": 40, "conjunctive": 44, "funnel": 38, "tree": 34, "parallel": 28},
        4: {"linear": 28, "conjunctive": 36, "funnel": 20, "tree": 24, "mixed": 24, "parallel": 13},
        5: {"linear": 10, "conjunctive": 19, "funnel": 6, "tree": 10, "mixed": 12, "parallel": 3},
        6: {"linear": 4, "conjunctive": 12, "funnel": 3, "tree": 5, "mixed": 16},
    },
    "validation": {
        0: {"no tool": 17, "missing tool": 17, "missing value": 17},
        1: {"single": 480},
        2: {"linear": 60, "parallel": 35},
        3: {"linear": 15, "conjunctive": 19, "funnel": 16, "tree": 14, "parallel": 11},
        4: {"linear": 8, "conjunctive": 12, "funnel": 7, "tree": 8, "mixed": 7, "parallel": 3},
        5: {"linear": 2, "conjunctive": 3, "funnel": 1, "tree": 2, "mixed": 2},
        6: {"linear": 1, "conjunctive": 3, "tree": 2, "mixed": 4},
    },
}
#: Of the mixed tasks of depth 6, how many are a funnel into a tree; as many are a conjunction after a funnel.
COMPOUNDS: Final[Mapping[str, int]] = {"train": 8, "validation": 2}
