"""Compare this project's ToolRL scores with the reference scores, row by row and variant by variant.

    python benchmarks/toolrl_agreement.py --data DIR           # the folder with reference_scores.jsonl.gz
    python benchmarks/toolrl_agreement.py --data DIR --json

Per variant of the released code: rows on which format, correctness, length and total all agree to 1e-9, and rows whose
expected result is an error, which must be a typed error when the ground truth is loaded. Per matching policy: rows on
which the correctness agrees to 1e-9. The exit status is 1 if a row differs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import callwright as cw
from callwright.errors import DataError
from callwright.walk import Progress

TOLERANCE = 1e-9
#: Columns of the ``matching`` block, and the options under which the released recipe must equal them.
MATCHING: Mapping[str, Mapping[str, str]] = {
    "correct_greedy": {"matching": "greedy"},
    "correct_optimal": {"matching": "optimal"},
    "correct_optimal_any_name": {"matching": "optimal", "pairs": "any"},
    "correct_paper_set_names": {"matching": "optimal", "names": "set"},
}


def reference_rows(data: Path) -> Iterator[dict[str, Any]]:
    path = data / "reference_scores.jsonl.gz"
    if not path.is_file():
        raise SystemExit(f"error: {data} holds no reference_scores.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def score(recipe: Any, row: Mapping[str, Any]) -> dict[str, float] | None:
    """The row's figures under a recipe, ``None`` if its ground truth is refused."""
    try:
        reward = recipe.score_pair(row["completion"], row["ground_truth"], Progress(row["step"], row["total_steps"]))
    except DataError:
        return None
    parts = {name: weighted.contribution for name, weighted in reward.scores.items()}
    return {"length": 0.0, **parts, "total": reward.total}


def compare(rows: list[dict[str, Any]]) -> dict[str, dict[str, list[str]]]:
    """Ids by verdict (``equal``, ``refused``: an expected error, ``differ``) for each variant and matching policy."""
    found: dict[str, dict[str, list[str]]] = {}
    for variant in rows[0]["scores"]:
        recipe = cw.reward(f"toolrl-released-{variant}")
        verdicts = found[variant] = {"equal": [], "refused": [], "differ": []}
        for row in rows:
            expected, ours = row["scores"][variant], score(recipe, row)
            if "error" in expected:
                verdict = "refused" if ours is None else "differ"
            else:
                same = ours is not None and all(abs(ours[key] - expected[key]) <= TOLERANCE for key in expected)
                verdict = "equal" if same else "differ"
            verdicts[verdict].append(row["id"])
    for column, options in MATCHING.items():
        recipe = cw.reward("toolrl-released-default", **options)
        verdicts = found[column] = {"equal": [], "differ": []}
        for row in rows:
            if row["matching"] is not None:
                ours = score(recipe, row)
                same = ours is not None and abs(ours["correctness"] - row["matching"][column]) <= TOLERANCE
                verdicts["equal" if same else "differ"].append(row["id"])
    return found


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--data", type=Path, required=True)
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    found = compare(list(reference_rows(options.data)))
    if options.json:
        print(json.dumps(found))
    else:
        for name, verdicts in found.items():
            counts = ", ".join(f"{len(ids)} {verdict}" for verdict, ids in verdicts.items())
            print(f"{name:28} {sum(map(len, verdicts.values()))} rows: {counts}")
    return 1 if any(verdicts["differ"] for verdicts in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
