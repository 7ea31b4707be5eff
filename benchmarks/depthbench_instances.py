"""Programs that have results by heart, in one world and in all: how many are right, and how fast that is judged.

    python benchmarks/depthbench_instances.py

Counts over all tasks of ``depthbench-v1`` of two and more calls: programs of the last call alone with what the others
return written out, and programs with one call replaced by what it returns. Then the reference program and one other of
each task that has instances are judged in the task's world and four further ones, on one core.
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
from callwright.walk.tasks import Task
from callwright_plugins.depthbench.instances import answer_in, by_heart, candidates, instances_of, is_right, reason_of

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


def main() -> int:
    """The program."""
    corpus = cw.corpus("depthbench-v1", instances=True)
    tasks = [task for split in corpus.splits for task in corpus[split] if task.depth > 1]
    counts: Counter[str] = Counter()
    left: list[tuple[Task, Program]] = []
    for task in tasks:
        for number, one in enumerate(by_heart(task)):
            kind = "last" if number == 0 else "one"
            if not is_right(task, one.program, task.scenario, task.answer):
                continue
            counts[kind, "one world"] += 1
            if all(is_right(task, one.program, other.scenario, other.answer) for other in task.instances):
                counts[kind, "all worlds"] += 1
                if kind == "last":
                    left.append((task, one.program))
    instances = [len(task.instances) for task in tasks]
    print(f"{len(tasks)} tasks of two and more calls, {sum(instances)} instances, {max(instances)} a task at most")
    for kind, what in (("last", "the last call alone"), ("one", "one call written out")):
        print(f"{what}: {counts[kind, 'one world']} right in one world, {counts[kind, 'all worlds']} in all")
    for task, _ in left:
        print(f"  {task.id} ({reason_of(task)}): {task.query}")

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
