"""Rewards: components score one property each; a recipe weights, gates and sums them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Set
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from attrs import evolve, field, frozen

from callwright.errors import Abstention, ComponentError, DataError, PluginError, UnknownName, UsageError
from callwright.pickling import fields_of
from callwright.plugins import Registry, default_registry
from callwright.walk.attempt import Attempt
from callwright.walk.conditions import DEFAULT_CONDITIONS, Conditions, Progress
from callwright.walk.limits import TRUNCATION_POLICIES, TruncationPolicy

if TYPE_CHECKING:
    from callwright.environments.isolated.environment import Isolation
    from callwright.language.parser import Parser
    from callwright.walk.completion import Completion
    from callwright.walk.tasks import Task

#: The order in which a completion is judged; ``Reward.stage`` is the first one that lost a point.
STAGES = ("format", "parse", "execution", "answer")

#: The entry of ``Reward.scores`` that says what a completion lost by being cut off.
TRUNCATED: Final = "truncated"
_WAS_CUT: Final = "the completion was cut off by a limit of tokens"


@frozen(slots=False)  # which attrs makes faster
class Evidence:
    """One reason for a lost point: which call, which path, what was expected and what came."""

    code: str
    reason: str
    call: int | None = None
    path: str = ""
    expected: str = ""
    found: str = ""

    def __str__(self) -> str:
        return self.reason


@frozen
class Score:
    """The value of one component in ``[low, high]``. Below ``high`` there is at least one piece of evidence.

    ``masked`` says why the value is not known: the machinery failed where the property would have been seen. The whole
    sample is then masked, whatever the value.
    """

    value: float
    low: float = 0.0
    high: float = 1.0
    evidence: tuple[Evidence, ...] = ()
    masked: str | None = None

    @property
    def full(self) -> bool:
        """Whether the value is at its maximum."""
        return self.value >= self.high

    @property
    def told_by(self) -> str | None:
        """The term of the recipe that tells why points are lost, if it is not this one."""
        return None


@frozen
class Deferred(Score):
    """The score of a term that was not looked at, because another one, ``told``, tells why points are lost.

    It shuts off the terms that require it, but not that one.
    """

    told: str = ""

    @property
    def told_by(self) -> str | None:
        """The term that tells."""
        return self.told or None


class RewardComponent(ABC):
    """One verifiable property of an attempt.

    Subclasses set ``name``, the range ``low`` … ``high`` and, if it fits one, the ``stage`` (of :data:`STAGES`) that
    the property belongs to. ``score`` is pure: same attempt, same score. It must not raise on any completion.
    """

    name: ClassVar[str] = ""
    stage: ClassVar[str] = ""
    low: float = 0.0
    high: float = 1.0

    @abstractmethod
    def score(self, attempt: Attempt) -> Score:
        """The score of an attempt, with evidence for every point that is lost."""


@frozen
class Term:
    """A component in a recipe. ``weight`` multiplies its value; a term of weight 0 is only a gate.

    ``requires`` names terms of the same recipe, written before this one: if one of them is below its maximum, this term
    is not looked at and gets its minimum.
    """

    component: RewardComponent
    weight: float = 1.0
    requires: tuple[str, ...] = ()
    name: str = ""

    def __attrs_post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.component.name or type(self.component).__name__.lower())


@frozen(slots=False)
class WeightedScore:
    """A score as it enters a total: ``weight * score.value`` is its contribution. ``closed``: a gate shut it off."""

    score: Score
    weight: float
    closed: bool = False

    @property
    def contribution(self) -> float:
        """What this term adds to the total."""
        return self.weight * self.score.value


@frozen(slots=False)
class Reward:
    """The total with everything that made it. The contributions of ``scores`` sum to ``total``.

    ``total`` is ``None`` if the sample is masked, and ``masked`` says why: the machinery failed or, ``masked_cut``, the
    attempt was cut off under a recipe that leaves such out. ``stage`` is the first stage that lost a point (``done`` if
    none did).

    Under a recipe with a floor, ``scores`` of a cut-off attempt have an entry ``truncated`` beside those of the terms:
    what being cut off took from the total, at most 0, with weight 1.
    """

    total: float | None
    scores: Mapping[str, WeightedScore] = field(repr=False)
    stage: str = "done"
    masked: str | None = None
    masked_cut: bool = False

    def explain(self) -> str:
        """Why the total is what it is, in one line per lost point."""
        if self.total is None:
            return f"masked: {self.masked}"
        lines = []
        for name, weighted in self.scores.items():
            score = weighted.score
            if not score.full and not weighted.closed:
                reasons = "; ".join(str(evidence) for evidence in score.evidence[:4])
                more = len(score.evidence) - 4
                lines.append(
                    f"{name} {score.value:g}/{score.high:g}: {reasons}" + (f"; {more} more" if more > 0 else "")
                )
        closed = [name for name, weighted in self.scores.items() if weighted.closed]
        if closed:
            lines.append(f"not reached: {', '.join(closed)}")
        return f"{self.total:g}" + (": " + "\n  ".join(lines) if lines else ": every point")

    def to_json(self) -> dict[str, object]:
        """The row that ``callwright score`` writes, without the id."""
        row: dict[str, object] = {
            "total": self.total,
            "scores": {
                name: {
                    "value": weighted.score.value,
                    "low": weighted.score.low,
                    "high": weighted.score.high,
                    "weight": weighted.weight,
                    "evidence": [evidence_json(evidence) for evidence in weighted.score.evidence],
                }
                for name, weighted in self.scores.items()
            },
            "stage": self.stage,
        }
        if self.masked is not None:
            row["masked"] = self.masked
        return row


def evidence_json(evidence: Evidence) -> dict[str, object]:
    """A piece of evidence as it stands in a row of ``callwright score``."""
    row: dict[str, object] = {"code": evidence.code, "reason": evidence.reason}
    if evidence.call is not None:
        row["call"] = evidence.call
    for key in ("path", "expected", "found"):
        if getattr(evidence, key):
            row[key] = getattr(evidence, key)
    return row


@frozen(slots=False)
class RewardRecipe:
    """Weighted terms. With ``normalise`` the weights are divided by the largest reachable sum, so that 1 is the most.

    An ablation is another recipe with fewer terms, renormalised over those that are left.

    ``truncated`` is what an attempt earns that was cut off; left out, ``floor`` where the recipe states one, else
    ``as_is``. ``floor`` is a total: under that policy a cut-off attempt earns it, or less if its text does. No paper
    says what cut-off completions earn; docs/walk.md has our reasons.
    """

    name: str
    terms: tuple[Term, ...]
    normalise: bool = True
    summary: str = ""
    truncated: TruncationPolicy | None = field(default=None, kw_only=True)
    floor: float | None = field(default=None, kw_only=True)

    def __attrs_post_init__(self) -> None:
        seen: set[str] = set()
        for term in self.terms:
            for required in term.requires:
                if required not in seen:
                    raise UsageError(
                        f"reward recipe {self.name!r}: {term.name!r} requires {required!r}, "
                        "which is not a term before it"
                    )
            if term.name in seen:
                raise UsageError(f"reward recipe {self.name!r}: two terms are named {term.name!r}")
            if not math.isfinite(term.weight):
                raise UsageError(f"reward recipe {self.name!r}: the weight of {term.name!r} is not a finite number")
            seen.add(term.name)
        if self.normalise and not self._scale > 0:
            raise UsageError(
                f"reward recipe {self.name!r}: the weights sum to {self._scale:g}, so nothing can be earned"
            )
        self._check_truncation(seen)

    def _check_truncation(self, terms: Set[str]) -> None:
        policy, floor = self.truncated, self.floor
        if policy is not None and policy not in TRUNCATION_POLICIES:
            raise UnknownName("policy of truncated completions", str(policy), TRUNCATION_POLICIES)
        if floor is not None:
            if isinstance(floor, bool) or not isinstance(floor, int | float) or not math.isfinite(floor):
                raise UsageError(f"reward recipe {self.name!r}: 'floor' is a finite number, not {floor!r:.40}")
            object.__setattr__(self, "floor", float(floor))
        elif policy == "floor":
            raise UsageError(
                f"reward recipe {self.name!r}: 'truncated' is \"floor\", but it states no floor; set 'floor' to the "
                "total that a cut-off completion earns"
            )
        if TRUNCATED in terms and self.truncation == "floor":
            raise UsageError(
                f"reward recipe {self.name!r}: a term is named {TRUNCATED!r}, as is what a cut-off completion loses; "
                "give it another name"
            )

    @property
    def truncation(self) -> TruncationPolicy:
        """What a cut-off attempt earns: ``truncated``, or what holds where that is left out."""
        return self.truncated or ("as_is" if self.floor is None else "floor")

    def __getstate__(self) -> dict[str, Any]:
        return fields_of(self)

    @cached_property
    def _scale(self) -> float:
        return sum(max(term.weight * term.component.high, term.weight * term.component.low) for term in self.terms)

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """The effective weight of each term."""
        scale = self._scale if self.normalise else 1.0
        return {term.name: term.weight / scale for term in self.terms}

    @cached_property
    def _plan(
        self,
    ) -> tuple[tuple[str, RewardComponent, float, tuple[str, ...], int, dict[str | None, WeightedScore]], ...]:
        """Per term what scoring needs, looked up once: name, component, weight, gates, position of its stage.

        The last are weighted scores that attempts share: the last full one (``None``), and by gates the closed ones.
        """
        return tuple(
            (
                term.name,
                term.component,
                self.weights[term.name],
                term.requires,
                STAGES.index(term.component.stage) if term.component.stage in STAGES else len(STAGES),
                {},
            )
            for term in self.terms
        )

    @property
    def low(self) -> float:
        """The smallest total, that of cut-off attempts included."""
        least = sum(
            min(weight * term.component.low, weight * term.component.high)
            for term, weight in zip(self.terms, self.weights.values(), strict=True)
        )
        return least if self.floor is None or self.truncation != "floor" else min(least, self.floor)

    @property
    def high(self) -> float:
        """The largest total."""
        return sum(
            max(weight * term.component.low, weight * term.component.high)
            for term, weight in zip(self.terms, self.weights.values(), strict=True)
        )

    def with_terms(self, *extra: RewardComponent | Term, name: str | None = None) -> RewardRecipe:
        """This recipe with more terms, renormalised if it is normalised."""
        added = tuple(term if isinstance(term, Term) else Term(term) for term in extra)
        return evolve(self, name=name or self.name, terms=(*self.terms, *added))

    def score(
        self,
        task: Task,
        completion: Completion | str,
        *,
        ir: str | Parser = "json",
        progress: Progress | None = None,
        time_limit: float | None = None,
        isolation: Isolation | None = None,
        registry: Registry | None = None,
    ) -> Reward:
        """Score one completion of a task. ``ir`` is a parser or the name of a registered one.

        ``time_limit`` and ``isolation`` are those of :class:`Conditions`. Without ``isolation`` tools run in this
        process, whose objects they are, and in others once two threads hang for ever. Several turns or an attempt that
        was made elsewhere: :meth:`score_attempt`.
        """
        parser: Parser = (registry or default_registry()).create("parser", ir) if isinstance(ir, str) else ir
        conditions = DEFAULT_CONDITIONS
        if progress is not None or time_limit is not None or isolation is not None:
            conditions = Conditions(progress=progress, time_limit=time_limit, isolation=isolation)
        return self.score_attempt(Attempt(task, completion, parser, conditions))

    def score_attempt(self, attempt: Attempt) -> Reward:
        """Score an attempt. Raises :class:`callwright.errors.ComponentError` if a component raises: that is its bug.

        A component raises :class:`callwright.errors.DataError` or :class:`callwright.UsageError` for a task or an
        attempt that lacks what it needs; these pass through.
        """
        scores: dict[str, WeightedScore] = {}
        shut: dict[str, str | None] = {}
        stage = len(STAGES)
        total = 0.0
        masked = attempt.cut_short  # which a recipe that executes nothing would not notice
        for name, component, weight, requires, position, shared in self._plan:
            if shut:
                blocking = None
                for required in requires:
                    if required in shut and shut[required] != name:
                        blocking = required
                        break
                if blocking is not None:
                    weighted = shared.get(blocking)
                    if weighted is None:
                        weighted = shared[blocking] = WeightedScore(_closed(component, blocking), weight, True)
                    scores[name] = weighted
                    score = weighted.score
                    value = score.value
                    if value < score.high:
                        shut[name] = None
                    total += weight * value
                    continue
            try:  # here, not in a method of its own: every term of every attempt is asked
                score = component.score(attempt)
                value = score.value
                within = component.low <= value <= component.high  # False for NaN too
            except Exception as error:
                score = self._abstained(component, attempt, error)
                value, within = score.value, True
            if not within:
                found = f"returned {value!r}, outside [{component.low:g}, {component.high:g}]"
                raise self._bug(component, attempt, found)
            masked = masked or score.masked
            if value < score.high:
                told_by = shut[name] = score.told_by
                if position < stage:
                    stage = position
                scores[name] = WeightedScore(score, weight, told_by is not None)
            else:  # full scores are mostly one shared object, so their weighted form is too
                weighted = shared.get(None)
                if weighted is None or weighted.score is not score:
                    weighted = shared[None] = WeightedScore(score, weight)
                scores[name] = weighted
            total += weight * value
        reached = STAGES[stage] if stage < len(STAGES) else "done"
        if masked is not None:
            return Reward(None, scores, reached, masked)
        if attempt.truncated:
            return self._cut_off(total, scores, reached)
        return Reward(total, scores, reached)

    def _cut_off(self, total: float, scores: dict[str, WeightedScore], stage: str) -> Reward:
        """The reward of an attempt that was cut off, from that of the same text."""
        policy, floor = self.truncation, self.floor
        if policy == "mask":
            why = f'{_WAS_CUT}, and with truncated = "mask" such samples are left out'
            return Reward(None, scores, stage, why, masked_cut=True)
        if policy != "floor" or floor is None:
            return Reward(total, scores, stage)
        lost = min(0.0, floor - total)
        evidence = (Evidence("truncated", f"{_WAS_CUT}, which earns at most {floor:g}"),) if lost else ()
        scores[TRUNCATED] = WeightedScore(Score(lost, min(lost, floor - self.high), 0.0, evidence), 1.0)
        # That it did not end is seen before anything else is.
        return Reward(min(total, floor), scores, STAGES[0] if lost else stage)

    def _abstained(self, component: RewardComponent, attempt: Attempt, error: Exception) -> Score:
        """The score of a component that abstains. Raises what any other exception of it means."""
        if isinstance(error, Abstention):
            reason = f"{component.name or type(component).__name__} abstains: {error}"
            return Score(component.low, component.low, component.high, (Evidence("unknown", reason),), reason)
        if isinstance(error, ComponentError | DataError | PluginError | UsageError):  # says itself whose fault it is
            raise error
        raise self._bug(component, attempt, f"raised {type(error).__name__}: {error}") from error

    def _bug(self, component: RewardComponent, attempt: Attempt, what: str) -> ComponentError:
        return ComponentError(
            f"reward component {component.name or type(component).__name__!r} of {self.name!r} {what} "
            f"(task {attempt.task.id!r}). This is a bug of the component; the completion was: "
            f"{attempt.completion.text[:400]!r}"
        )


_CLOSED: dict[tuple[float, float, str], Score] = {}


def _closed(component: RewardComponent, blocking: str) -> Score:
    key = (component.low, component.high, blocking)
    score = _CLOSED.get(key)
    if score is None:
        evidence = Evidence("gate_closed", f"not looked at, because {blocking} is not at its maximum")
        score = _CLOSED[key] = Score(component.low, component.low, component.high, (evidence,))
    return score
