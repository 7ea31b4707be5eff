"""Fewer calls: answers that skip what the reference program calls, and what leaving a broken call out would earn.

TIER judges a program by its answer. So the last call alone, with what the others would have given it written out, is
right; and since mismatches are counted over the calls that are made, a broken call that is left out costs nothing.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from attrs import define, evolve, field, frozen

from callwright.errors import CannotExpress
from callwright.language.program import Call, Path, Program, revive
from callwright.pipeline import Pipeline
from callwright.training.evaluation import judge
from callwright.walk.attempt import Attempt
from callwright.walk.reward import Reward
from callwright_plugins.lab.ledger import AT_ONCE, Entry, Ledger
from callwright_plugins.lab.weighting.recording import shown

_SAME: Final = 1e-9
#: Of a program with more broken calls than this the first are tried.
_MOST_CALLS: Final = 6


def skipped_calls(program: Program, reference: Program) -> tuple[str, ...]:
    """The tools of reference calls that a program skips by writing out what they would have given; ``()`` if none.

    Two things must hold. As a multiset, the tools that are called lack one of the reference's. And for some tool and
    some place in its arguments, more calls of the program hold a literal there than calls of the reference do, while
    the reference has a reference to another call's result there. A program that goes another way skips nothing.
    """
    missing = Counter(call.tool for call in reference.calls) - Counter(call.tool for call in program.calls)
    if not missing:
        return ()
    truth = [(call.tool, revive(dict(call.arguments))) for call in reference.calls]
    made = [(call.tool, call.arguments) for call in program.calls]
    places = {(called, path) for called, arguments in truth for path, _ in Call(0, called, arguments).located}
    for tool, path in places:
        if _literals(made, tool, path) > _literals(truth, tool, path):
            return tuple(sorted(missing.elements()))
    return ()


def _literals(calls: Sequence[tuple[str, Mapping[str, Any]]], tool: str, path: Path) -> int:
    """How many calls of a tool hold something without a reference at a place, or where the way to it ends."""
    found = 0
    for called, arguments in calls:
        if called != tool or path[0] not in arguments:
            continue
        value: Any = arguments
        for key in path:
            known = value if isinstance(value, Mapping) else range(len(value) if isinstance(value, list) else 0)
            if key not in known:
                break
            value = value[key]
        found += not Call(0, tool, {"": value}).located
    return found


def needs_results(reference: Program) -> bool:
    """Whether a reference program uses the result of one of its calls, so that something can be skipped."""
    return any(Call(0, call.tool, revive(dict(call.arguments))).located for call in reference.calls)


@define(eq=False)
class Skipping:
    """Right answers that skip calls, among the attempts at tasks whose reference program uses results.

    ``totals`` holds what those that skip calls earned, by recipe; ``tools`` what they do not call.
    """

    attempts: int = 0
    right: int = 0
    skipping: int = 0
    totals: dict[str, list[float]] = field(factory=dict)
    tools: Counter[str] = field(factory=Counter)
    example: dict[str, Any] | None = None
    _able: dict[str, bool] = field(factory=dict)

    def enter(self, entry: Entry) -> None:
        """Count an attempt that is not masked."""
        attempt = entry.sample.attempt
        task, program = attempt.task, attempt.program
        if task.program is None:
            return
        able = self._able.get(task.id)
        if able is None:
            able = self._able[task.id] = needs_results(task.program)
        if not able:
            return
        self.attempts += 1
        if not entry.verdict.answer or program is None:
            return
        self.right += 1
        skipped = skipped_calls(program, task.program)
        if not skipped:
            return
        self.skipping += 1
        self.tools.update(skipped)
        for name, reward in entry.rewards.items():
            if reward.total is not None:
                self.totals.setdefault(name, []).append(reward.total)
        if self.example is None:
            self.example = {
                "id": entry.sample.row_id,
                "task": task.id,
                "program": shown(attempt),
                "skipped": list(skipped),
            }

    def figures(self) -> dict[str, Any]:
        """Counts, shares in [0, 1], and the mean total by recipe."""
        return {
            "attempts": self.attempts,
            "right": self.right,
            "skipping": self.skipping,
            "share": self.skipping / self.attempts if self.attempts else None,
            "share_of_right": self.skipping / self.right if self.right else None,
            "mean": {name: math.fsum(totals) / len(totals) for name, totals in self.totals.items()},
            "tools": dict(self.tools.most_common(8)),
            "example": self.example,
        }


def broken_calls(attempt: Attempt) -> list[int]:
    """Ids of the calls with a mismatch or that did not execute, in the order of the program."""
    program, validation, trace = attempt.program, attempt.validation, attempt.trace
    if program is None or validation is None or trace is None:
        return []
    broken = {one.call for part in (validation.names, validation.parameters, validation.types) for one in part}
    broken |= {record.call for record in trace.failures}
    broken |= {program.calls[position].id for position, _, _ in program.dangling}
    return [call.id for call in program.calls if call.id in broken]


@frozen
class Drawn:
    """An attempt with a broken call, and what it earned under each recipe."""

    attempt: Attempt = field(repr=False)
    totals: dict[str, float]


@define(eq=False)
class Dropping:
    """Attempts with a broken call, at most ``most`` of them, drawn evenly; then what leaving calls out would earn."""

    most: int
    seen: int = 0
    drawn: list[Drawn] = field(factory=list)
    _rng: random.Random = field(factory=lambda: random.Random(0))

    def enter(self, attempt: Attempt, rewards: dict[str, Reward]) -> None:
        """Keep an attempt that is not masked, if it has a broken call and the draw takes it."""
        if not broken_calls(attempt):
            return
        self.seen += 1
        place = len(self.drawn) if len(self.drawn) < self.most else self._rng.randrange(self.seen)
        if place < self.most:
            kept = Drawn(attempt, {name: reward.total for name, reward in rewards.items() if reward.total is not None})
            self.drawn[place : place + 1] = [kept]

    def figures(
        self, pipeline: Pipeline, ledger: Ledger, advance: Callable[[], object] = lambda: None
    ) -> dict[str, Any]:
        """Per recipe: in which share of these attempts one broken call less, or no call at all, would earn more.

        Programs that are right after it do not count: they are better, and ``put_right`` says of how many attempts one
        is. What is left is worse than the attempt, or no better, and earns more.
        """
        put_right = 0
        gains: dict[str, list[tuple[float, Drawn, float, str]]] = {account.name: [] for account in ledger.accounts}
        empty: dict[str, list[bool]] = {account.name: [] for account in ledger.accounts}
        shorter = [_shorter(drawn.attempt) for drawn in self.drawn]
        all_of_them = [(drawn.attempt, less) for drawn, some in zip(self.drawn, shorter, strict=True) for less in some]
        earnings = _earned(pipeline, ledger, all_of_them)
        for drawn, some in zip(self.drawn, shorter, strict=True):
            program = drawn.attempt.program
            assert program is not None
            best: dict[str, tuple[float, str]] = {}
            mended = False
            for call in broken_calls(drawn.attempt)[: len(some) - 1]:
                right, totals = next(earnings)
                mended = mended or right
                for name, earned in totals.items() if not right else ():
                    if name not in best or earned > best[name][0]:
                        tool = next(other.tool for other in program.calls if other.id == call)
                        best[name] = (earned, f"{call}: {tool}")
            put_right += mended
            right, nothing = next(earnings)
            for name, total in drawn.totals.items():
                if name in gains:
                    earned, dropped = best.get(name, (total, ""))
                    gains[name].append((earned - total, drawn, earned, dropped))
                    empty[name].append(not right and nothing.get(name, total) > total + _SAME)
            advance()
        return {
            "attempts": self.seen,
            "tried": len(self.drawn),
            "put_right": put_right,
            "recipes": {name: _row(gains[name], empty[name]) for name in gains if gains[name]},
        }


def _row(gains: list[tuple[float, Drawn, float, str]], empty: list[bool]) -> dict[str, Any]:
    rising = [one for one in gains if one[0] > _SAME]
    row: dict[str, Any] = {
        "n": len(gains),
        "dropping_earns_more": len(rising) / len(gains),
        "mean_gain": sum(one[0] for one in rising) / len(rising) if rising else None,
        "calling_nothing_earns_more": sum(empty) / len(empty),
        "example": None,
    }
    if rising:
        gain, drawn, earned, dropped = max(rising, key=lambda one: one[0])
        row["example"] = {
            "task": drawn.attempt.task.id,
            "program": shown(drawn.attempt),
            "dropped": dropped,
            "before": earned - gain,
            "after": earned,
        }
    return row


def _shorter(attempt: Attempt) -> list[Program]:
    """The program of an attempt without each of its broken calls, the first ones at least, and without any call."""
    program = attempt.program
    assert program is not None
    return [
        *(
            evolve(program, calls=tuple(other for other in program.calls if other.id != call))
            for call in broken_calls(attempt)[:_MOST_CALLS]
        ),
        evolve(program, calls=()),
    ]


def _earned(
    pipeline: Pipeline, ledger: Ledger, programs: Sequence[tuple[Attempt, Program]]
) -> Iterator[tuple[bool, dict[str, float]]]:
    """Whether other programs are right for the task of an attempt, and their totals; none for what cannot be written.

    Components that wait do so for many of them together.
    """
    at_once = AT_ONCE if any(account.recipe.waits for account in ledger.accounts) else 1
    rest = iter(programs)
    while taken := list(islice(rest, at_once)):
        made = [_written(pipeline, attempt, program) for attempt, program in taken]
        scored = ledger.scoring([other for other in made if other is not None])
        for other in made:
            if other is None:
                yield False, {}
                continue
            named = zip(ledger.accounts, next(scored), strict=True)  # rewards of the accounts that are left by then
            totals = {account.name: reward.total for account, reward in named if reward.total is not None}
            yield judge(other).answer, totals


def _written(pipeline: Pipeline, attempt: Attempt, program: Program) -> Attempt | None:
    try:
        return pipeline.attempt(attempt.task, pipeline.parser.render(program), attempt.progress)
    except CannotExpress:
        return None
