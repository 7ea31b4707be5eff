"""Programs that are wrong, in one world and in all: how many are right all the same, and how fast that is judged.

    python benchmarks/depthbench_instances.py [CORPUS]

Counts over all tasks of ``depthbench-v1`` (or ``depthbench-v1.1``) of two and more calls: programs of the last call
alone with what the others return written out, programs with one call replaced by what it returns, and single mutations
of the reference; and the bounds of the queries with the rows that the worlds have on and beside them. Then the
reference program and one other of each task that has instances are judged in the task's world and four further ones,
on one core.
"""

from __future__ import annotations

import sys
import time
from collections import Counter

from attrs import evolve

import callwright as cw
from callwright.language.program import Program
from callwright.training.evaluation import judge
from callwright.walk.attempt import Attempt
from callwright.walk.execution import execute
from callwright.walk.tasks import Task
from callwright_plugins.depthbench.instances import answer_in, by_heart, candidates, instances_of, is_right, reason_of
from callwright_plugins.depthbench.mended.boundaries import bounds
from callwright_plugins.depthbench.proofs import mutations_of

#: Worlds in which programs are judged, the task's own among them.
WORLDS = 5
ROUNDS = 3


def five_worlds(task: Task) -> Task:
    """The task with four further worlds, whichever come first."""
    found: list[str] = []
    for scenario in candidates(task):
        if len(found) == WORLDS - 1:
            break
        if scenario not in found and answer_in(task, scenario) is not None:
            found.append(scenario)
    return evolve(task, instances=instances_of(task, found))


def wrong_programs(task: Task) -> list[tuple[str, Program]]:
    """The wrong programs of a task, each with its kind."""
    kinds = ["the last call alone", *["one call written out"] * 8]
    heart = [(kind, one.program) for kind, one in zip(kinds, by_heart(task), strict=False)]
    return heart + [("a single mutation", one.program) for one in mutations_of(task)]


def main() -> int:
    """The program."""
    name = sys.argv[1] if len(sys.argv) > 1 else "depthbench-v1"
    corpus = cw.corpus(name, instances=True)
    tasks = [task for split in corpus.splits for task in corpus[split] if task.depth > 1]
    tried: Counter[str] = Counter()
    first: Counter[str] = Counter()
    every: Counter[str] = Counter()
    placed: Counter[tuple[bool, bool]] = Counter()
    left: list[Task] = []
    for task in tasks:
        for kind, program in wrong_programs(task):
            tried[kind] += 1
            if is_right(task, program, task.scenario, task.answer):
                first[kind] += 1
                if all(is_right(task, program, other.scenario, other.answer) for other in task.instances):
                    every[kind] += 1
                    left += [task] if kind == "the last call alone" else []
        assert task.program is not None
        scenarios = (task.scenario, *(other.scenario for other in task.instances))
        traces = [execute(task.program, task.environment, task.tools, scenario=one) for one in scenarios]
        placed.update((bound.on, bound.beside) for bound in bounds(task, traces))
    instances = [len(task.instances) for task in tasks]
    edited = sum("{" in other.scenario for task in tasks for other in task.instances)
    print(f"{len(tasks)} tasks of two and more calls, {sum(instances)} instances ({edited} with edits), ", end="")
    print(f"{max(instances)} a task at most")
    for kind, count in tried.items():
        print(f"{kind}: {count} programs, {first[kind]} right in one world, {every[kind]} in all")
    for task in left:
        print(f"  {task.id} ({reason_of(task)}): {task.query}")
    idle = placed.total() - placed[True, True]
    print(f"{placed.total()} bounds, {idle} without a row on and one beside them in some world")

    parser = cw.parser("json")
    chosen = [five_worlds(task) for task in tasks if task.instances]
    texts = [(task, parser.render(task.program)) for task in chosen if task.program is not None]
    texts += [(task, parser.render(one.program)) for task in chosen for one in list(by_heart(task))[1:2]]
    rates = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        for task, text in texts:
            judge(Attempt(task, text, parser))
        rates.append(len(texts) / (time.process_time() - begun))
    worlds = sum(1 + len(task.instances) for task, _ in texts) / len(texts)
    print(f"{len(texts)} programs in {worlds:.1f} worlds: {max(rates):,.0f} programs/s a core")
    return 0


if __name__ == "__main__":
    sys.exit(main())
