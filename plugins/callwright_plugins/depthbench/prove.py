"""``python -m callwright_plugins.depthbench.prove``: every proof over every task, with its numbers.

For each depth: equal programs (reorderings, renumberings, commutations) and how many reach the answer; mutations by
kind and how many lose it; and for how many tasks the bounded search finds a program of fewer calls. A mutation loses
where it is wrong in one of the task's worlds; the search is in the first of them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from attrs import Factory, define

from callwright.language.program import Program
from callwright.walk.answers import answers_match
from callwright.walk.tasks import Task
from callwright_plugins.depthbench.corpus import CORPORA
from callwright_plugins.depthbench.proofs import MUTATIONS, equals, mutations_of, right, shorter
from callwright_plugins.depthbench.world import V1


@define
class Proof:
    """What was tried and found; ``survived`` names every mutation that still reached the answer."""

    tasks: Counter[int] = Factory(Counter)
    equal: Counter[int] = Factory(Counter)
    unequal: list[str] = Factory(list)
    tried: Counter[tuple[int, str]] = Factory(Counter)
    lost: Counter[tuple[int, str]] = Factory(Counter)
    survived: list[str] = Factory(list)
    abstaining: list[str] = Factory(list)
    searched: int = 0
    shortened: list[str] = Factory(list)

    def share_lost(self, depth: int, kind: str) -> float:
        """The share of mutations of a kind at a depth that lose the answer; 1 where there are none."""
        tried = self.tried[depth, kind]
        return self.lost[depth, kind] / tried if tried else 1.0


def prove(tasks: Iterable[Task], *, search: int = 6000, report: Callable[[str], object] = lambda text: None) -> Proof:
    """Prove every task; ``search`` bounds the executed calls of the search for shorter programs (0 leaves it out)."""
    proof = Proof()
    for task in tasks:
        program = task.program
        assert program is not None
        depth = task.depth
        proof.tasks[depth] += 1
        if answers_match(task.answer, ()) != (depth == 0):
            proof.abstaining.append(task.id)
        for other in equals(program):
            proof.equal[depth] += 1
            if not right_in_all(task, other):
                proof.unequal.append(task.id)
        for mutation in mutations_of(task):
            proof.tried[depth, mutation.kind] += 1
            if right_in_all(task, mutation.program):
                proof.survived.append(f"{task.id} {mutation.kind} {mutation.what}")
            else:
                proof.lost[depth, mutation.kind] += 1
        if search and depth > 1:
            proof.searched += 1
            if shorter(task, search) is not None:
                proof.shortened.append(task.id)
        if sum(proof.tasks.values()) % 100 == 0:
            report(f"{sum(proof.tasks.values())} tasks")
    return proof


def right_in_all(task: Task, program: Program) -> bool:
    """Whether a program reaches the answer of a task in its world, and in each of its instances."""
    worlds = [(task.answer, task.scenario), *((one.answer, one.scenario) for one in task.instances)]
    return all(right(answer, program, task.environment, task.tools, scenario) for answer, scenario in worlds)


def table(proof: Proof) -> str:
    """The numbers by depth."""
    lines = [f"{'depth':>5} {'tasks':>6} {'equal':>7} " + " ".join(f"{kind:>14}" for kind in MUTATIONS)]
    for depth in sorted(proof.tasks):
        cells = [
            f"{proof.lost[depth, kind]}/{proof.tried[depth, kind]}" if proof.tried[depth, kind] else "-"
            for kind in MUTATIONS
        ]
        lines.append(
            f"{depth:>5} {proof.tasks[depth]:>6} {proof.equal[depth]:>7} " + " ".join(f"{cell:>14}" for cell in cells)
        )
    lines.append(
        "(equal: other right programs tried; then, by kind of mutation, how many of those tried lose the answer)"
    )
    lines.append(f"equal programs that fail: {len(proof.unequal)} {proof.unequal[:5] or ''}")
    lines.append(f"mutations that survive: {len(proof.survived)}")
    lines.extend(f"    {text}" for text in proof.survived)
    lines.append(f"tasks on which calling nothing is judged wrongly: {len(proof.abstaining)}")
    lines.append(
        f"searched for shorter programs: {proof.searched} tasks, found: {len(proof.shortened)} {proof.shortened or ''}"
    )
    return "\n".join(lines)


def summary(proof: Proof) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "tasks": dict(sorted(proof.tasks.items())),
        "equal": dict(sorted(proof.equal.items())),
        "unequal": proof.unequal,
        "lost": {
            f"{depth}/{kind}": [proof.lost[depth, kind], count] for (depth, kind), count in sorted(proof.tried.items())
        },
        "survived": proof.survived,
        "searched": proof.searched,
        "shortened": proof.shortened,
    }


def main() -> int:
    """The program; its status is 1 if anything is not as it should be."""
    options = argparse.ArgumentParser(description="Prove every task of DepthBench.")
    options.add_argument("--corpus", choices=sorted(CORPORA), default=V1.name, help="which version")
    options.add_argument(
        "--search", type=int, default=6000, help="most executed calls of a search for shorter programs"
    )
    options.add_argument("--every", type=int, default=1, help="only every so many tasks")
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    corpus = CORPORA[chosen.corpus]()
    tasks = [task for split in corpus.splits for task in corpus[split]][:: chosen.every]
    proof = prove(tasks, search=chosen.search, report=lambda text: print(text, file=sys.stderr))
    print(json.dumps(summary(proof)) if chosen.json else table(proof))
    return 1 if proof.unequal or proof.survived or proof.abstaining or proof.shortened else 0


if __name__ == "__main__":
    sys.exit(main())
