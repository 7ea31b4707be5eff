"""Probing: the reward of each probe under each recipe, beside the reference program's on the same tasks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from attrs import define, field

from callwright.errors import CannotExpress
from callwright.pipeline import Pipeline
from callwright.training.evaluation import judge
from callwright.walk.attempt import Attempt
from callwright.walk.tasks import Task
from callwright_plugins.lab.ledger import AT_ONCE, Ledger
from callwright_plugins.lab.probes import PROBES, Pool, Probe, variants

#: So many different totals of a probe are told.
_TOTALS: Final = 8


@define(eq=False)
class Probing:
    """``rewards[recipe][probe][task]``, and why probes were left out: counts per probe and reason."""

    tasks: int = 0
    rewards: dict[str, dict[str, dict[str, float]]] = field(factory=dict)
    left_out: dict[str, dict[str, int]] = field(factory=dict)
    probes: Sequence[Probe] = PROBES

    def leave_out(self, probe: Probe, reason: str) -> None:
        """Count a probe that is not used."""
        counts = self.left_out.setdefault(probe.name, {})
        counts[reason] = counts.get(reason, 0) + 1

    def paired(self, recipe: str, probe: str, other: str = "gold") -> tuple[float, float, int] | None:
        """Mean rewards of two probes over the tasks that have both, and their number; ``None`` if there are none."""
        rewards = self.rewards.get(recipe, {})
        mine, theirs = rewards.get(probe, {}), rewards.get(other, {})
        both = [task for task in mine if task in theirs]
        if not both:
            return None
        return sum(mine[t] for t in both) / len(both), sum(theirs[t] for t in both) / len(both), len(both)

    def to_json(self) -> dict[str, Any]:
        """Tasks, per probe what it is and per recipe its mean, the reference's on the same tasks, and how many.

        ``totals`` are the commonest totals with the number of tasks on which they were earned.
        """
        found: dict[str, Any] = {}
        for probe in self.probes:
            cells = {}
            for recipe in self.rewards:
                pair = self.paired(recipe, probe.name)
                if pair is not None:
                    totals = Counter(round(total, 9) for total in self.rewards[recipe][probe.name].values())
                    cells[recipe] = {
                        "mean": pair[0],
                        "gold": pair[1],
                        "n": pair[2],
                        "totals": [
                            [total, count] for total, count in sorted(totals.most_common(_TOTALS), reverse=True)
                        ],
                    }
            left_out = self.left_out.get(probe.name, {})
            found[probe.name] = {"kind": probe.kind, "about": probe.about, "recipes": cells, "left_out": left_out}
        return {"tasks": self.tasks, "probes": found}


def spread(tasks: Sequence[Task], count: int) -> list[Task]:
    """``count`` tasks with reference programs, always the same ones, in order.

    They are drawn, since every tenth task of a corpus may well be of one depth.
    """
    known = [task for task in tasks if task.program is not None]
    if len(known) <= count:
        return known
    return [known[index] for index in sorted(random.Random(0).sample(range(len(known)), max(0, count)))]


def probe_tasks(
    pipeline: Pipeline,
    ledger: Ledger,
    tasks: Sequence[Task],
    advance: Callable[[], object] = lambda: None,
    probes: Sequence[Probe] = PROBES,
) -> Probing:
    """Make, execute and score the probes of some tasks. A recipe that cannot score them is taken out of the ledger."""
    made = Probing(len(tasks), probes=probes)
    pool = Pool.of([task.program for task in tasks if task.program is not None])
    waiting: list[tuple[Task, Probe, Attempt]] = []
    at_once = AT_ONCE if any(account.recipe.waits for account in ledger.accounts) else 1

    def score() -> None:
        each = ledger.scoring([attempt for _, _, attempt in waiting])
        for (task, probe, _), rewards in zip(waiting, each, strict=True):
            for account, reward in zip(ledger.accounts, rewards, strict=True):
                if reward.total is not None:
                    made.rewards.setdefault(account.name, {}).setdefault(probe.name, {})[task.id] = reward.total
        waiting.clear()

    for task in tasks:
        for probe, program in variants(task, pool, probes):
            try:
                text = pipeline.parser.render(program)
            except CannotExpress:
                made.leave_out(probe, "the form cannot write it")
                continue
            attempt = pipeline.attempt(task, text, ledger.progress)
            verdict = judge(attempt)
            if verdict.masked:
                made.leave_out(probe, "masked")
            elif verdict.answer is (probe.kind == "wrong"):
                made.leave_out(probe, "its answer is right" if verdict.answer else "its answer is wrong")
            elif probe.name == "one safe call" and verdict.failure not in ("answer:wrong", "answer:should_abstain"):
                made.leave_out(probe, "its call does not execute")
            else:
                waiting.append((task, probe, attempt))
                if len(waiting) >= at_once:
                    score()
        advance()
    score()
    return made
