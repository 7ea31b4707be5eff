"""Rewards: components score one property each; a recipe weights, gates and sums them."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

from attrs import evolve, field, frozen

from callwright.capability import Closes, SetsUp, has
from callwright.errors import UnknownName, UsageError
from callwright.language.shortening import shortened
from callwright.pickling import fields_of
from callwright.plugins import Registry, default_registry
from callwright.walk.attempt import Attempt
from callwright.walk.components.component import RewardComponent as RewardComponent
from callwright.walk.components.component import question_of
from callwright.walk.components.judging import (
    Known,
    Planned,
    abstained,
    closed_score,
    judged_together,
    out_of_range,
    stage_name,
    together,
    told,
)
from callwright.walk.components.scores import STAGES as STAGES
from callwright.walk.components.scores import Deferred as Deferred
from callwright.walk.components.scores import Evidence as Evidence
from callwright.walk.components.scores import Score as Score
from callwright.walk.components.scores import WeightedScore as WeightedScore
from callwright.walk.components.scores import evidence_json as evidence_json
from callwright.walk.conditions import DEFAULT_CONDITIONS, Conditions, Progress
from callwright.walk.limits import TRUNCATION_POLICIES, TruncationPolicy

if TYPE_CHECKING:
    from callwright.environments.isolated.environment import Isolation
    from callwright.language.parser import Parser
    from callwright.machines.questions import Question
    from callwright.walk.completion import Completion
    from callwright.walk.tasks import Task

#: The entry of ``Reward.scores`` that says what a completion lost by being cut off.
TRUNCATED: Final = "truncated"
_WAS_CUT: Final = "the completion was cut off by a limit of tokens"


@frozen
class Term:
    """A component in a recipe. ``weight`` multiplies its value; a term of weight 0 is only a gate.

    ``requires`` names terms of the same recipe, written before this one: if one of them is below its maximum, this term
    scores its minimum without being computed.

    Raises :class:`callwright.UsageError` for what is no component: a function, a class that was not made an object of.
    """

    component: RewardComponent
    weight: float = 1.0
    requires: tuple[str, ...] = ()
    name: str = ""

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.component, RewardComponent):
            given: object = self.component
            meant = f"; an object of it is {given.__name__}(…)" if isinstance(given, type) else ""
            raise UsageError(
                f"a term of a reward is a callwright.RewardComponent, not {shortened(repr(given), 80)}{meant} "
                "(docs/write-a-reward.md)"
            )
        if not self.name:
            object.__setattr__(self, "name", self.component.name or type(self.component).__name__.lower())


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

    def _repr_html_(self) -> str:
        """As a notebook shows it: each term with what it lost and why."""
        from callwright.language.markup import table

        rows = [
            (
                name,
                f"{weighted.score.value:g} of {weighted.score.high:g}",
                f"{weighted.contribution:+.4g}",
                "not reached" if weighted.closed else "; ".join(map(str, weighted.score.evidence)),
            )
            for name, weighted in self.scores.items()
        ]
        total = f"masked: {self.masked}" if self.total is None else f"reward {self.total:g}"
        return table(("term", "score", "adds", "why"), rows, total)

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
    def waits(self) -> bool:
        """Whether a term waits for its scores, so that many attempts at once take less time than one by one."""
        return any(term.component.waits for term in self.terms)

    @cached_property
    def _plan(self) -> tuple[Planned, ...]:
        """Per term what scoring needs, looked up once: name, component, weight, gates, position of its stage.

        Then weighted scores that attempts share: the last full one (``None``), and by gates the closed ones; and how
        the component is asked, if it waits. Those that do not are set up now.
        """
        if at_once := [component for component in self.lives if not component.waits]:
            from callwright.machines import lifetimes

            lifetimes.need(at_once)
        return tuple(
            (
                term.name,
                term.component,
                self.weights[term.name],
                term.requires,
                STAGES.index(term.component.stage) if term.component.stage in STAGES else len(STAGES),
                {},
                term.component.waiting() if term.component.waits else None,
            )
            for term in self.terms
        )

    @property
    def lives(self) -> list[RewardComponent]:
        """The components that are to be set up or closed: those with a ``setup`` or a ``close``."""
        return [one.component for one in self.terms if has(one.component, SetsUp) or has(one.component, Closes)]

    def __enter__(self) -> Self:
        """Set up the components that have a ``setup``, and keep them until the end of the block.

        Without a block each is set up before its first attempt and closed when the process ends.
        """
        if lives := self.lives:
            from callwright.machines import lifetimes

            lifetimes.hold(lives)
        return self

    def __exit__(self, *_: object) -> None:
        if lives := self.lives:
            from callwright.machines import lifetimes

            self.__dict__.pop("_plan", None)  # to be set up again if it is used again
            lifetimes.release(lives)

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

        Raises :class:`callwright.UsageError` for an empty list: an agent that did nothing is no completion.
        """
        if not completion and isinstance(completion, list | tuple):
            raise UsageError(
                "there is no completion to score; an agent that did nothing is scored by "
                "score_attempt(callwright.Attempt.told(task, form, []))"
            )
        parser: Parser = (registry or default_registry()).create("parser", ir) if isinstance(ir, str) else ir
        conditions = DEFAULT_CONDITIONS
        if progress is not None or time_limit is not None or isolation is not None:
            conditions = Conditions(progress=progress, time_limit=time_limit, isolation=isolation)
        return self.score_attempt(Attempt(task, completion, parser, conditions))

    def score_attempt(self, attempt: Attempt) -> Reward:
        """Score an attempt. Raises :class:`callwright.errors.ComponentError` if a component raises: that is its bug.

        A component raises :class:`callwright.errors.DataError` or :class:`callwright.UsageError` for a task or an
        attempt that lacks what it needs; these pass through. :class:`callwright.InfrastructureFailure` masks the
        sample, and so does :class:`callwright.errors.Abstention`. What waits is waited for.
        """
        if self.waits:
            return next(_in_order([self._walk(attempt)]))
        self.check_attempt(attempt)
        return self._judged(attempt)  # type: ignore[return-value]  # no question

    def scoring(self, attempts: Iterable[Attempt]) -> Iterator[Reward]:
        """The rewards of attempts in their order, each when it and those before it are known.

        What waits does so for many attempts at once; all else is done in this thread, for a few attempts at once where
        that takes a moment (:mod:`.components.judging`): so attempts are taken before the rewards of those before them
        are given. The rewards are those of one
        attempt after the other, and so is what is raised: that of the first attempt that raises, after the rewards of
        those before it. A subclass with a ``score_attempt`` of its own is asked one by one; one with a
        ``check_attempt`` is not.
        """
        if type(self).score_attempt is not RewardRecipe.score_attempt:
            return map(self.score_attempt, attempts)
        if not self.waits:
            return together(attempts, self._judged_together)
        most = max(asked.concurrency * (asked.batch_size or 1) for *_, asked in self._plan if asked is not None)
        return _in_order(map(self._walk, attempts), most)

    def score_attempts(self, attempts: Iterable[Attempt]) -> list[Reward]:
        """The rewards of attempts, as :meth:`scoring` gives them."""
        return list(self.scoring(attempts))

    async def ascore(self, attempt: Attempt) -> Reward:
        """The reward of an attempt, in any event loop, which is never blocked: a thread parses, executes and scores.

        To score a task's completion, give ``Attempt(task, completion, parser)``.
        """
        from callwright.machines import event_loop, questions

        if type(self).score_attempt is not RewardRecipe.score_attempt:
            return await event_loop.in_thread(self.score_attempt, attempt)
        return await questions.finished(self._walk(attempt))

    def check_attempt(self, attempt: Attempt) -> None:
        """What a subclass checks of an attempt before any term is asked: it raises what the caller has to mend."""

    def _walk(self, attempt: Attempt) -> Generator[Question | Reward, Any, None]:
        """Asks for the scores of terms that wait, one after the other, and gives the reward."""
        self.check_attempt(attempt)
        known: dict[str, Known] = {}
        while not isinstance(found := self._judged(attempt, known), Reward):
            name, question = found
            try:
                known[name] = yield question
            except Exception as error:
                known[name] = error
        yield found

    def _judged(self, attempt: Attempt, known: dict[str, Known] | None = None) -> Reward | tuple[str, Question]:
        """The reward, or what is to be asked for which term before it is known.

        ``known`` are scores of terms by name, and what came in place of one; it is added to. Without it nothing waits.
        """
        scores: dict[str, WeightedScore] = {}
        shut: dict[str, str | None] = {}
        stage = len(STAGES)
        total = 0.0
        masked = attempt.cut_short  # which a recipe that executes nothing would not notice
        for name, component, weight, requires, position, shared, asked in self._plan:
            if shut:
                blocking = None
                for required in requires:
                    if required in shut and shut[required] != name:
                        blocking = required
                        break
                if blocking is not None:
                    weighted = scores[name] = closed_score(component, blocking, weight, shared)
                    score = weighted.score
                    value = score.value
                    if value < score.high:
                        shut[name] = None
                    total += weight * value
                    continue
            try:  # here, not in a method of its own: every term of every attempt is asked
                if known is None:
                    score = component.score(attempt)
                elif name in known or asked is None:
                    score = told(known, name, component, attempt)
                else:
                    return name, question_of(component, asked, attempt)
                value = score.value
                within = component.low <= value <= component.high  # False for NaN too
            except (Exception, SystemExit) as error:
                score = abstained(component, attempt, error, self.name)
                value, within = score.value, True
            if not within:
                raise out_of_range(component, attempt, value, self.name)
            masked = masked or score.masked
            if value < score.high:
                told_by = shut[name] = score.told_by
                if position < stage:
                    stage = position
                scores[name] = WeightedScore(score, weight, told_by is not None)
            else:  # full scores are mostly one shared object, so their weighted form is too
                usual = shared.get(None)
                if usual is None or usual.score is not score:
                    usual = shared[None] = WeightedScore(score, weight)
                scores[name] = usual
            total += weight * value
        return self._rewarded(attempt, scores, total, stage_name(stage), masked)

    def _rewarded(
        self, attempt: Attempt, scores: dict[str, WeightedScore], total: float, stage: str, masked: str | None
    ) -> Reward:
        if masked is not None:
            return Reward(None, scores, stage, masked)
        if attempt.truncated:
            return self._cut_off(total, scores, stage)
        return Reward(total, scores, stage)

    def _judged_together(self, attempts: Sequence[Attempt]) -> list[Reward | Exception]:
        """The reward of each attempt, or what it raises, where no term waits."""
        check = None if type(self).check_attempt is RewardRecipe.check_attempt else self.check_attempt
        return [
            judged if isinstance(judged, Exception) else self._rewarded(attempt, *judged)
            for attempt, judged in zip(attempts, judged_together(self._plan, attempts, self.name, check), strict=True)
        ]

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


def _in_order(walks: Iterable[Generator[Question | Reward, Any, None]], most: int = 1) -> Iterator[Reward]:
    from callwright.machines import questions  # here, as most recipes have no use for an event loop

    return questions.in_order(walks, most)
