"""Components that read costs. Each lies in [0, 1] and is 1 where nothing is wasted; recipes put them behind an answer.

The paper names "latency, noisy outputs, rate limits, monetary cost, and irreversible side effects" and leaves them to
others (TIER, section 7); formulas and weights are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from callwright.capability import has
from callwright.digests import digest_of
from callwright.environments.capabilities import NamesScenarios
from callwright.environments.protocol import EXECUTED
from callwright.environments.stateful.environment import Scenario
from callwright.errors import UsageError
from callwright.tools.spec import ToolSpec
from callwright.walk.attempt import Attempt
from callwright.walk.reward import Evidence, RewardComponent, Score
from callwright.walk.trace import CallRecord, Trace
from callwright_plugins.cost_rewards.spending import NEEDS, Needed, cents, seconds

FULL: Final = Score(1.0)
_MOST_SHOWN: Final = 8


class _Share(RewardComponent):
    """Of what was spent, the share that the task needs: needed / spent, at most 1."""

    stage: ClassVar[str] = "answer"
    #: What it counts, for people.
    unit: ClassVar[str]

    def __init__(self, slack: int = 0) -> None:
        if type(slack) is not int or slack < 0:
            raise UsageError(
                f"slack is {slack!r:.60}; what may be spent beside what is needed is a whole number from 0 on"
            )
        self.slack = slack

    def needed(self, needed: Needed) -> int:
        """What the task needs of it."""
        raise NotImplementedError

    def of(self, record: CallRecord, tools: Mapping[str, ToolSpec]) -> int:
        """What a call spent of it."""
        raise NotImplementedError

    def score(self, attempt: Attempt) -> Score:
        """1 within what is needed and the slack."""
        task, trace = attempt.task, attempt.whole_trace
        if trace.masked is not None:
            return masked(trace.masked)
        each = [(record, self.of(record, task.tools)) for record in trace.records]
        total = sum(one for _, one in each)
        if not total:
            return FULL
        needed = NEEDS.of(task, task.clock or attempt.conditions.clock)
        if needed.masked is not None:
            return masked(needed.masked)
        allowed = self.needed(needed) + self.slack
        if total <= allowed:
            return FULL
        unit = self.unit
        told = [
            Evidence(self.name, f"call {record.call} {record.tool} took {one} {unit}", record.call, found=str(one))
            for record, one in each
            if one
        ]
        reason = f"{total} {unit} were spent on calls; the task needs {allowed}"
        whole = Evidence(f"too_much_{self.name}", reason, None, "", str(allowed), str(total))
        return Score(allowed / total, evidence=(whole, *told[:_MOST_SHOWN]))


class Cost(_Share):
    """In [0, 1]: the cents that the task needs over those that calls cost, 1 if they cost no more.

    A call costs what its tool declares (:class:`callwright.ToolSpec`), if it was made. What the task needs is what its
    reference program costs in the same world without hazards, or the ``cents`` of its fact ``budget``. ``slack`` cents
    may be spent beside that.
    """

    name: ClassVar[str] = "cost"
    unit: ClassVar[str] = "cents"

    def needed(self, needed: Needed) -> int:
        """Cents."""
        return needed.cents

    def of(self, record: CallRecord, tools: Mapping[str, ToolSpec]) -> int:
        """Cents."""
        return cents(record, tools)


class Latency(_Share):
    """In [0, 1]: the seconds that the task needs over those that calls took, 1 if they took no more.

    Those of the tools' own latency: neither what a clock policy adds to every call, nor what time-outs took. What the
    task needs is what its reference program takes, or the ``seconds`` of its fact ``budget``.
    """

    name: ClassVar[str] = "latency"
    unit: ClassVar[str] = "seconds"

    def needed(self, needed: Needed) -> int:
        """Seconds."""
        return needed.seconds

    def of(self, record: CallRecord, tools: Mapping[str, ToolSpec]) -> int:
        """Seconds."""
        return seconds(record, tools)


class RateLimits(RewardComponent):
    """In [0, 1]: the share of calls that used room under a limit of rates well; 1 where no limit holds.

    Wasted are calls that a limit refused, and calls that were answered before with the same and by no hazard.
    """

    name: ClassVar[str] = "rate_limits"
    stage: ClassVar[str] = "execution"

    def score(self, attempt: Attempt) -> Score:
        trace = attempt.whole_trace
        if trace.masked is not None:
            return masked(trace.masked)
        if not trace.records or not _limited(attempt):
            return FULL
        answered: set[tuple[str, str, str]] = set()
        wasted = []
        for position in trace.ran:
            record = trace.records[position]
            outcome = record.outcome
            if outcome.injected == "rate_limit":
                reason = f"call {record.call} {record.tool} was over a limit of rates: {outcome.message}"
                wasted.append(Evidence("over_the_limit", reason, record.call, found=outcome.code))
            elif outcome.kind in EXECUTED and not outcome.injected:
                known = _digest(record.tool, record.arguments, outcome.value)
                if known is not None and known in answered:
                    reason = f"call {record.call} {record.tool} asks again what was answered before, and it is the same"
                    wasted.append(Evidence("asked_again", reason, record.call))
                elif known is not None:
                    answered.add(known)
        if not wasted:
            return FULL
        return Score(1.0 - len(wasted) / len(trace.records), evidence=tuple(wasted[:_MOST_SHOWN]))


class Recovery(RewardComponent):
    """In {0, 1}: every call executes, but for those that a hazard hit; those are made again, if there is a chance to.

    As TIER's R_exec where there are no hazards. A call that failed by a hazard is put right by a later one of the same
    tool that executes. Where the model had no turn after it, nothing is held against it, nor is what depended on it.
    """

    name: ClassVar[str] = "execution"
    stage: ClassVar[str] = "execution"

    def score(self, attempt: Attempt) -> Score:
        if attempt.trace is None:
            failure = attempt.failure
            code, reason = (failure.code, failure.message) if failure else ("no_program", "there is no program")
            return Score(0.0, evidence=(Evidence(code, reason),))
        trace = attempt.whole_trace
        if trace.executed:
            return FULL
        evidence = tuple(self._held_against(trace, _last_turn(attempt)))
        if evidence:
            return Score(0.0, evidence=evidence[:_MOST_SHOWN])
        return FULL if trace.masked is None else masked(trace.masked)

    def _held_against(self, trace: Trace, last_turn: int) -> Any:
        """Evidence for each failed call that is the model's doing. ``last_turn``: where the last turn's calls begin."""
        hit = False
        for position, record in enumerate(trace.records):
            outcome = record.outcome
            if outcome.executed or outcome.kind == "infrastructure_error":
                continue
            expected, reason = "a result", outcome.message or outcome.kind
            if outcome.injected:
                hit = True
                later = trace.records[position + 1 :]
                if position >= last_turn or any(one.tool == record.tool and one.outcome.executed for one in later):
                    continue
                expected, reason = "the call, made again", f"{reason}; it was not made again"
            elif hit and outcome.code == "failed_dependency":
                continue  # of a call that a hazard hit
            yield Evidence(
                outcome.code or outcome.kind,
                f"call {record.call} {record.tool} did not execute: {reason}",
                record.call,
                expected=expected,
                found=outcome.kind,
            )


def _last_turn(attempt: Attempt) -> int:
    """Where the records of the last turn begin."""
    traces = attempt.executed_traces
    return sum(len(trace.records) for trace in traces[:-1])


def _limited(attempt: Attempt) -> bool:
    task = attempt.task
    hazards = attempt.conditions.hazards_of(task)
    if hazards is None:
        place = task.environment
        scenarios = place.scenarios if has(place, NamesScenarios) else None
        name = task.scenario or next(iter(scenarios), "") if scenarios else ""
        stated = scenarios.get(name) if isinstance(scenarios, Mapping) else None
        hazards = stated.hazards if isinstance(stated, Scenario) else None
    return bool(hazards and hazards.limits)


def _digest(tool: str, arguments: Mapping[str, Any], value: Any) -> tuple[str, str, str] | None:
    try:
        return tool, digest_of(dict(arguments)), digest_of(value)
    except (TypeError, ValueError, RecursionError):
        return None


def masked(reason: str) -> Score:
    """Nothing is known, because the machinery failed."""
    return Score(0.0, evidence=(Evidence("infrastructure_error", reason),), masked=reason)
