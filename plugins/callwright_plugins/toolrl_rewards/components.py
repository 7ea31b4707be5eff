"""The rewards of ToolRL, section 3.3, and what section 5 exchanges in them.

R_correct = (max - min) R / S + min, where R = r_name + r_param + r_value under the best assignment of predicted calls P
to true ones G, and S = 1 + |G| + sum of |keys(G_j)|. The intermediate granularity has S = 1 + |G| and the coarse one 1,
as released: with the S of section 3.3 a right answer could not reach the maximum. A ratio of two empty sets is 1: that
of the names where nothing is due and nothing is called, and that of the keys of a pair without parameters. What else
the paper leaves open is decided here and listed, with the tests, in ``docs/toolrl-and-prove.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final, Literal

from attrs import field, frozen

from callwright.language.program import Program
from callwright.walk.answers import Tolerance, values_equal
from callwright.walk.attempt import Attempt
from callwright.walk.reward import Evidence, RewardComponent, Score
from callwright_plugins.toolrl_rewards.assignment import assign
from callwright_plugins.toolrl_rewards.differences import RawCall, explain_calls
from callwright_plugins.toolrl_rewards.lazy_score import LazyScore
from callwright_plugins.toolrl_rewards.reading import Reading, calls_of, read_text, reading_of
from callwright_plugins.toolrl_rewards.scales import CORRECT, FORMAT, LENGTH, Scale, Target
from callwright_plugins.toolrl_rewards.truth import Truths

Granularity = Literal["full", "finegrained", "intermediate", "coarse"]
Kind = Literal["TC", "TR", "TCR", "T"]
#: 1[P[k] = G[k]]: numbers of a text are compared as they are written, with no tolerance for having been computed.
_EXACTLY: Final = Tolerance(0.0, 0.0)
_WORDS: Final = {"T": "<think>", "C": "<tool_call>", "R": "<response>"}


@frozen(eq=False)
class Truth:
    """The right calls, which blocks an answer has, and ``1 + |G| + number of parameters``."""

    kind: Kind
    calls: list[RawCall] = field(repr=False)
    names: frozenset[str] = field(repr=False)
    lines: dict[str, RawCall] = field(factory=dict, repr=False)
    #: |G| + the number of parameters: the most that r_param and r_value can be.
    most: float = 0.0


def read_truth(source: str | Program) -> Truth:
    """Read a ground truth. Raises ``ValueError`` if one of its calls cannot be read or it has no block."""
    lines: dict[str, RawCall] = {}
    if isinstance(source, Program):
        kind, calls = ("TC" if source.calls else "TR"), calls_of(source)
    else:
        reading = read_text(source, lines, lines)  # equal lines become one object
        if reading.defects:
            raise ValueError(reading.defects[0].reason)
        calls = reading.calls
        kind = "".join(block for block in "TCR" if block in reading.blocks or block == "T")
        if "C" in kind and not calls:
            raise ValueError("its block of calls is empty")
        if not reading.blocks:
            raise ValueError("it has no <think>, <tool_call> or <response>")
    most = float(len(calls) + sum(len(call.parameters) for call in calls))
    return Truth(kind, calls, frozenset(call.name for call in calls), lines, most)  # type: ignore[arg-type]


TRUTHS: Final = Truths(read_truth)


class Format(RewardComponent):
    """R_format: the blocks of the ground truth, in order, and nothing outside of them (section 3.3)."""

    name: ClassVar[str] = "format"
    stage: ClassVar[str] = "format"

    def __init__(self, scale: Scale = FORMAT) -> None:
        self.scale = scale
        self.low, self.high = scale.low, scale.high

    def score(self, attempt: Attempt) -> Score:
        """The high or the low end of the scale."""
        low, high = self.scale.at(attempt.progress)
        truth = TRUTHS.of(attempt.task)
        reading = reading_of(attempt, truth.lines)
        if reading.stray is None and reading.blocks == truth.kind:
            return Score(high, low, high)
        return LazyScore(low, low, high, _explain_format, truth.kind, reading)


def _explain_format(kind: str, reading: Reading) -> tuple[Evidence, ...]:
    found = []
    if reading.stray is not None:
        found.append(Evidence(reading.stray.code, reading.stray.reason))
    if reading.blocks != kind:
        expected, has = (" ".join(_WORDS[block] for block in blocks) or "no block" for blocks in (kind, reading.blocks))
        found.append(Evidence("blocks", f"the completion has {has}, expected {expected}", None, "", expected, has))
    return tuple(found)


class Correctness(RewardComponent):
    """R_correct (section 3.3) at a granularity of section 5.3.

    ``matching``: the ``optimal`` assignment, or ``greedy`` in the order of the true calls. ``pairs``: a true call may
    be assigned to ``any`` predicted one, as printed, or to one of the ``same-name``. ``extra_calls``: ``free`` is S as
    printed; ``counted`` multiplies the part of S that belongs to calls with max(1, |P| / |G|), so that |G| right calls
    among more are worth less, and |P| includes calls that cannot be read. These have no name and agree with nothing.
    """

    name: ClassVar[str] = "correctness"
    stage: ClassVar[str] = "answer"

    def __init__(
        self,
        scale: Scale = CORRECT,
        granularity: Granularity = "full",
        matching: Literal["optimal", "greedy"] = "optimal",
        pairs: Literal["any", "same-name"] = "any",
        extra_calls: Literal["free", "counted"] = "free",
    ) -> None:
        self.scale, self.granularity = scale, granularity
        self.low, self.high = scale.low, scale.high
        self._optimal, self._any, self._counted = matching == "optimal", pairs == "any", extra_calls == "counted"

    def score(self, attempt: Attempt) -> Score:
        """On the scale of the step."""
        low, high = self.scale.at(attempt.progress)
        truth = TRUTHS.of(attempt.task)
        reading = reading_of(attempt, truth.lines)
        calls = reading.calls
        if not reading.defects and len(calls) == len(truth.calls) and _same_objects(truth.calls, calls):
            return Score(high, low, high)
        value = low + (high - low) * self.share(truth, reading)
        if value >= high:
            return Score(high, low, high)
        return LazyScore(value, low, high, _explain_correctness, truth, reading)

    def share(self, truth: Truth, reading: Reading) -> float:
        """R / S, in [0, 1]."""
        calls = reading.calls
        if not truth.calls:  # S = 1, and r_name is all there is: 0/0, or 0 of the names of P
            return 0.0 if reading.attempted else 1.0
        if self.granularity == "coarse":
            return 1.0 if not reading.defects and _equal_multisets(truth.calls, calls) else 0.0
        if not calls:
            return 0.0
        earned = self._names(truth.names, frozenset([call.name for call in calls]))
        weights = [[self._pair(mine, theirs) for theirs in calls] for mine in truth.calls]
        earned += _best(weights) if self._optimal else _greedy(weights)
        most = float(len(truth.calls)) if self.granularity == "intermediate" else truth.most
        if self._counted and reading.attempted > len(truth.calls):
            most *= reading.attempted / len(truth.calls)
        return earned / (1.0 + most)

    def _names(self, mine: frozenset[str], theirs: frozenset[str]) -> float:
        if mine == theirs:
            return 1.0
        return 0.0 if self.granularity == "finegrained" else len(mine & theirs) / len(mine | theirs)

    def _pair(self, mine: RawCall, theirs: RawCall) -> float:
        """r_param + r_value of a pair."""
        if not self._any and mine.name != theirs.name:
            return 0.0
        wanted, given = mine.parameters, theirs.parameters
        if self.granularity == "intermediate":
            return 1.0 if equal(wanted, given) else 0.0
        if wanted.keys() == given.keys():
            weight = 1.0
        elif self.granularity == "finegrained":
            weight = 0.0
        else:
            both = len(wanted.keys() & given.keys())
            weight = both / (len(wanted) + len(given) - both)
        for key, value in wanted.items():
            if key in given and equal(value, given[key]):
                weight += 1.0
        return weight


def equal(expected: Any, found: Any) -> bool:
    """Equality of the values of two parameters: ``True`` is not ``1``, ``1`` is ``1.0``, and 0.1 + 0.2 is not 0.3."""
    return values_equal(expected, found, _EXACTLY)


def _best(weights: list[list[float]]) -> float:
    if len(weights) == 1:
        return max(weights[0])
    return sum(row[column] for row, column in zip(weights, assign(weights), strict=True) if column >= 0)


def _greedy(weights: list[list[float]]) -> float:
    earned = 0.0
    used: set[int] = set()
    for row in weights:
        best, at = 0.0, -1
        for column, weight in enumerate(row):
            if weight > best and column not in used:
                best, at = weight, column
        if at >= 0:
            used.add(at)
            earned += best
    return earned


def _same_objects(mine: Sequence[RawCall], theirs: Sequence[RawCall]) -> bool:
    """Whether every call was read from a line of the ground truth, in its order. Quick, and often true."""
    for one, other in zip(mine, theirs, strict=True):  # noqa: SIM110  # a generator takes twice as long
        if one is not other:
            return False
    return True


def _equal_multisets(mine: Sequence[RawCall], theirs: Sequence[RawCall]) -> bool:
    left = list(theirs)
    for call in mine:
        for index, other in enumerate(left):
            if call.name == other.name and equal(call.parameters, other.parameters):
                del left[index]
                break
        else:
            return False
    return not left


def _explain_correctness(truth: Truth, reading: Reading) -> tuple[Evidence, ...]:
    found = [Evidence(defect.code, defect.reason) for defect in reading.defects]
    if not truth.calls and reading.calls:
        names = ", ".join(call.name[:40] for call in reading.calls[:3])
        found.append(Evidence("should_abstain", f"nothing should be called, found {names}", 0, "", "no calls", names))
    elif truth.calls:
        found.extend(explain_calls(truth.calls, reading.calls, equal=equal))
    return tuple(found)


class Length(RewardComponent):
    """R_length = min(L_think / L_target, 1) in words of the thought (section 5.1; the paper states no unit)."""

    name: ClassVar[str] = "length"

    def __init__(self, target: Target = LENGTH) -> None:
        self.target = target

    def score(self, attempt: Attempt) -> Score:
        """At most 1; 0 without a thought."""
        reading = reading_of(attempt, TRUTHS.of(attempt.task).lines)
        words = len(reading.thought.split()) if reading.thought else 0
        target = self.target.at(attempt.progress)
        if words >= target:
            return Score(1.0)
        return LazyScore(words / target, 0.0, 1.0, _explain_length, words, target)


def _explain_length(words: int, target: float) -> tuple[Evidence, ...]:
    reason = f"the thought has {words} words, {target:g} are asked for"
    return (Evidence("short_thought", reason, expected=f"{target:g} words", found=f"{words} words"),)
