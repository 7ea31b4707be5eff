"""Replay: the reference, made again in a fresh session, executes, ends the same and comes to the answer.

Errors are counted as in Prove (section 3.2, step 5): schema errors and failures of the call. An empty result is none.
``refused`` is counted, too; what executed in part is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from multiprocessing import get_context
from typing import Any, Final

from callwright.digests import digest_of
from callwright.errors import CallwrightError, InfrastructureFailure
from callwright.plugins import default_registry
from callwright.training.synthesis.units import Rejected
from callwright.walk.tasks import Task
from callwright.walk.trace import CallRecord
from callwright_plugins.synthesis.gates.case import Case
from callwright_plugins.synthesis.gates.running import Run, run

#: The share of failed calls above which a conversation is discarded (Prove, section 3.2).
MOST_ERRORS: Final = 0.30
#: Tasks that go to another process at a time.
_AT_A_TIME: Final = 64


class Replay:
    """The gate ``replay``."""

    name: Final = "replay"

    def __call__(self, case: Case) -> Rejected | None:
        """Calls that fail, other outcomes or another end when it is made again."""
        task, gold = case.task, case.gold
        if not case.turns and not task.answer.is_no_call:
            return Rejected(self.name, "there is no reference", {})
        failed = [record for record in gold.records if record.outcome.failed]
        intended = _intended(case)
        if len(failed) - intended > MOST_ERRORS * len(gold.records):
            return Rejected(
                self.name, "calls of the reference fail", {"calls": len(gold.records), "failed": _told(failed)}
            )
        again = run(task, case.turns, judged=False)
        if not _to_the_letter(again, gold) and fingerprint(again) != fingerprint(gold):
            return Rejected(self.name, "another end when it is made again", {"calls": _told(gold.records)})
        return None


def _intended(case: Case) -> int:
    """How many calls fail on purpose, where the plan says so: they are recovered from, or are the end."""
    return 0 if case.blueprint is None else sum(len(stage.failing) for stage in case.blueprint.stages)


def fingerprint(found: Run) -> list[Any]:
    """What has to be the same each time: every outcome, and the digest of the end."""
    return [[one.tool, one.outcome.kind, one.outcome.code, digest_of(one.outcome.value)] for one in found.records] + [
        found.digest
    ]


def _to_the_letter(one: Run, other: Run) -> bool:
    """Whether two runs came to the same in every character, as nearly all do: no digests are needed then."""
    return repr(_told_of(one)) == repr(_told_of(other))


def _told_of(found: Run) -> list[Any]:
    return [[one.tool, one.outcome.kind, one.outcome.code, one.outcome.value] for one in found.records] + [found.digest]


def replayed_elsewhere(tasks: Iterable[Task], advance: Callable[[int], None] | None = None) -> list[Rejected | None]:
    """Replay the references in a fresh process, where hashes fall otherwise, and hold what they come to against here.

    One process makes all of them; ``advance`` is told how many are done. ``None`` for each that is the same, and for
    what cannot be tried here either. Raises :class:`callwright.errors.InfrastructureFailure` where that process ends
    too soon.
    """
    verdicts: list[Rejected | None] = []
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        rest = iter(tasks)
        while batch := list(islice(rest, _AT_A_TIME)):
            there = pool.submit(_fingerprints, batch)
            here = _fingerprints(batch)
            try:
                verdicts += map(_compared, here, there.result())
            except BrokenProcessPool as error:
                raise InfrastructureFailure(
                    f"the process that replays references ended after {len(verdicts)} tasks, in the middle of its "
                    "work: it was killed, ran out of memory, or cannot import this program (a script needs an "
                    'if __name__ == "__main__")'
                ) from error
            if advance is not None:
                advance(len(batch))
    return verdicts


def _compared(here: list[Any] | str, there: list[Any] | str) -> Rejected | None:
    if here == there or isinstance(here, str):
        return None
    if isinstance(there, str):
        return Rejected(Replay.name, "it cannot be replayed in another process", {"error": there})
    other = [(one, two) for one, two in zip(here, there, strict=False) if one != two]
    shown: Any = list(chain(*other[:1])) or [len(here), len(there)]
    return Rejected(Replay.name, "another end in another process", {"here and there": shown})


def _fingerprints(tasks: Sequence[Task]) -> list[list[Any] | str]:
    registry = default_registry()
    found: list[list[Any] | str] = []
    for task in tasks:
        try:
            found.append(fingerprint(Case(task, None, registry).gold))
        except CallwrightError as error:
            found.append(str(error))
    return found


def _told(records: Sequence[CallRecord]) -> list[dict[str, Any]]:
    return [
        {"tool": one.tool, "kind": one.outcome.kind, "code": one.outcome.code, "message": one.outcome.message[:120]}
        for one in records[:8]
    ]
