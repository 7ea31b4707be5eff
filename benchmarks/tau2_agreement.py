"""tau2-bench's rewards beside those of its own evaluators, on the same dialogues, in one run.

    python benchmarks/tau2_agreement.py --package DIR --data DIR --interpreter PYTHON [--domain retail] [--limit 10]

``--package`` is the repository of tau2-bench, ``--data`` its folder ``data``, ``--interpreter`` a Python of 3.12 with
its base dependencies and pandas. A dialogue holds the calls of a task's reference, and then those without the last one
that changes something. NL_ASSERTION is left out on both sides.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from callwright.machines.foreign_code.code import ForeignCode, ForeignLimits
from callwright_plugins.tau2.scoring import Call, Criteria, score
from callwright_plugins.tau2.source import Tau2Source

SIDE = "tau2_official_side.py"


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--package", type=Path, required=True)
    asked.add_argument("--data", type=Path, required=True)
    asked.add_argument("--interpreter", required=True)
    asked.add_argument("--domain", action="append", default=[])
    asked.add_argument("--tasks", default="tasks.json", help="the file of tasks, whose name is its version")
    asked.add_argument("--limit", type=int, default=None)
    given = asked.parse_args()
    official = ForeignCode(
        Path(__file__).parent,
        interpreter=given.interpreter,
        paths=[given.package / "src"],
        variables={"TAU2_DATA_DIR": str(given.data.absolute())},
        limits=ForeignLimits(time=600),
    )
    with official, Tau2Source(given.package, given.data, given.interpreter) as source:
        for domain in given.domain or ["retail", "airline", "telecom"]:
            run(domain, given, official, source)


def run(domain: str, given: argparse.Namespace, official: ForeignCode, source: Tau2Source) -> None:
    tasks = json.loads((given.data / "tau2/domains" / domain / given.tasks).read_text())[: given.limit]
    same = other = matches = 0
    gold = {"official": 0.0, "ours": 0.0}
    mine = theirs = 0.0
    for task in tasks:
        criteria = Criteria.of(task)
        if criteria is None:
            continue
        for dropped in (0, 1):
            found = official.call(f"{SIDE}:dialogue", domain, task, dropped)
            if not found:
                continue
            said = list(criteria.communicate)
            stated = official.call(f"{SIDE}:reward", domain, task, found["calls"], said)
            calls = [Call(name, arguments, by) for by, name, arguments, _ in found["calls"]]
            results = [content for *_, content in found["calls"]]
            if same + other == 0:  # the databases are parsed once
                source.left(domain, task, calls, results)
            begun = time.perf_counter()
            left = source.left(domain, task, calls, results)
            scored = score(criteria, calls, said, db=left.db, assertions=left.assertions)
            mine += time.perf_counter() - begun
            theirs += stated["seconds"]
            alike = dict(scored.factors) == stated["factors"] and left.db == stated["db_match"]
            same, other = same + alike, other + (not alike)
            matches += left.db and not dropped
            if not dropped:
                gold["official"] += all(stated["factors"].values())
                gold["ours"] += scored.reward
            if not alike:
                print("other:", domain, task["id"], dropped, stated, scored, left, sep="\n  ")
    count = same + other
    print(
        f"{domain}: {same} of {count} dialogues equal; gold right of {len(tasks)}: {gold}; db_match of gold {matches}"
    )
    print(
        f"  {count / mine:,.1f} evaluations/s, official {count / theirs:,.2f}: {theirs / mine:,.0f} times", flush=True
    )


if __name__ == "__main__":
    main()
