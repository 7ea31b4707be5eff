"""The ledger: every sample scored under every recipe, parsed and executed once."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, Final

from attrs import define, field, frozen

from callwright.errors import ComponentError, DataError, RecipeError, UsageError
from callwright.plugins import Registry
from callwright.training.evaluation import Verdict, judge
from callwright.walk.attempt import Attempt
from callwright.walk.conditions import Progress
from callwright.walk.reward import TRUNCATED, Reward, RewardRecipe
from callwright.walk.tasks import Task
from callwright_plugins.lab.reading import Sample

#: Attempts that wait for their rewards together.
AT_ONCE: Final = 256
_NOTHING: Final[Mapping[str, Iterator[Reward]]] = MappingProxyType({})
#: What went wrong first, whatever the recipe; in the order in which a completion is judged.
STAGES = {
    "format": "no program",
    "schema": "does not fit the schemas",
    "execution": "a call fails",
    "abstained": "calls nothing where calls are due",
    "should_abstain": "calls where none is due",
    "answer": "executes, wrong answer",
    "right": "right answer",
}


#: The same, told apart by what a schema did not allow.
KINDS = {
    "schema:unknown_tool": "unknown tool",
    "schema:missing_parameter": "missing parameter",
    "schema:unexpected_parameter": "unexpected parameter",
    "schema:wrong_type": "wrong type",
}


def stage_of(verdict: Verdict) -> str:
    """The stage of :data:`STAGES` at which an attempt went wrong first."""
    stage, _, code = verdict.failure.partition(":")
    return code if code in STAGES else stage or "right"


def kind_of(verdict: Verdict) -> str:
    """What went wrong first, in words."""
    return KINDS.get(verdict.failure) or STAGES.get(stage_of(verdict), verdict.failure)


@define(eq=False)
class Account:
    """One recipe's totals and contributions, one number a sample (0.0 for a term behind a closed gate of minimum 0)."""

    recipe: RewardRecipe
    name: str
    totals: array[float] = field(factory=lambda: array("d"))
    contributions: dict[str, array[float]] = field(factory=dict)
    full: dict[str, int] = field(factory=dict)
    closed: dict[str, int] = field(factory=dict)
    #: Of terms that wait (a judge): what they said, with the position of the sample; nothing of one behind a gate.
    said: dict[str, list[tuple[int, float]]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.said = {term.name: [] for term in self.recipe.terms if term.component.waits}
        for name in (*(term.name for term in self.recipe.terms), TRUNCATED):
            self.contributions[name] = array("d")
            self.full[name] = self.closed[name] = 0

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """What makes the totals, with the ends of each contribution: the terms, and being cut off where it took any."""
        recipe = self.recipe
        ends = {
            term.name: (weight * term.component.low, weight * term.component.high)
            for term, weight in zip(recipe.terms, recipe.weights.values(), strict=True)
        }
        ranges = {name: (min(pair), max(pair)) for name, pair in ends.items()}
        if recipe.floor is not None and self.full[TRUNCATED] < len(self.totals):
            ranges[TRUNCATED] = (min(0.0, recipe.floor - recipe.high), 0.0)
        return ranges

    def add(self, reward: Reward) -> None:
        """Enter one reward that is not masked."""
        assert reward.total is not None
        for name, said in self.said.items():
            weighted = reward.scores[name]
            if not weighted.closed:
                said.append((len(self.totals), weighted.score.value))
        self.totals.append(reward.total)
        if TRUNCATED not in reward.scores:  # it ended by itself, or that is all the same here
            self.contributions[TRUNCATED].append(0.0)
            self.full[TRUNCATED] += 1
        for name, weighted in reward.scores.items():
            score = weighted.score
            self.contributions[name].append(weighted.weight * score.value)
            if weighted.closed:
                self.closed[name] += 1
            elif score.value >= score.high:
                self.full[name] += 1


@frozen(eq=False)
class Entry:
    """A sample that was entered: the verdict on it and its reward under each recipe."""

    sample: Sample
    verdict: Verdict
    rewards: dict[str, Reward]


@define(eq=False)
class Ledger:
    """The accounts of all recipes over the same samples.

    A sample that is masked under any recipe is counted and entered nowhere, so that every account holds the same
    samples. A recipe that cannot score the corpus is taken out, with the reason. ``progress`` is the latest one seen.
    """

    accounts: list[Account]
    skipped: dict[str, str] = field(factory=dict)
    groups: list[int] = field(factory=list)
    stages: list[str] = field(factory=list)
    tasks: dict[str, Task] = field(factory=dict)
    masked: int = 0
    progress: Progress | None = None
    _numbers: dict[Hashable, int] = field(factory=dict)

    def entering(self, samples: Iterable[Sample]) -> Iterator[tuple[Sample, Entry | None]]:
        """Samples, each with what :meth:`enter` makes of it; those whose rewards wait do so together."""
        rest = iter(samples)
        while taken := list(islice(rest, AT_ONCE if any(account.recipe.waits for account in self.accounts) else 1)):
            for sample, rewards in zip(taken, self.scoring([sample.attempt for sample in taken]), strict=True):
                yield sample, self.enter(sample, rewards)

    def enter(self, sample: Sample, rewards: Sequence[Reward] | None = None) -> Entry | None:
        """Score a sample under every recipe, unless that was done; ``None`` for one that is masked."""
        attempt = sample.attempt
        self.progress = attempt.progress or self.progress
        rewards = self.score(attempt) if rewards is None else rewards
        verdict = judge(attempt)
        self.tasks.setdefault(attempt.task.id, attempt.task)
        if verdict.masked or any(reward.total is None for reward in rewards):
            self.masked += 1
            return None
        for account, reward in zip(self.accounts, rewards, strict=True):
            account.add(reward)
        self.stages.append(stage_of(verdict))
        self.groups.append(self._numbers.setdefault(sample.group, len(self._numbers)))
        named = {account.name: reward for account, reward in zip(self.accounts, rewards, strict=True)}
        return Entry(sample, verdict, named)

    def scoring(self, attempts: Sequence[Attempt]) -> Iterator[list[Reward]]:
        """What :meth:`score` gives for each attempt; components that wait do so for all of them together."""
        waiting = [account for account in self.accounts if account.recipe.waits]
        under_way = {account.name: account.recipe.scoring(attempts) for account in waiting}
        for attempt in attempts:
            yield self.score(attempt, under_way)

    def score(self, attempt: Attempt, under_way: Mapping[str, Iterator[Reward]] = _NOTHING) -> list[Reward]:
        """The reward under each recipe, in order; a recipe that cannot score the task is taken out first.

        ``under_way`` are rewards that are being made, by recipe; the next of each is that of this attempt.
        """
        rewards = []
        for account in list(self.accounts):
            coming = under_way.get(account.name)
            try:
                rewards.append(account.recipe.score_attempt(attempt) if coming is None else next(coming))
            except ComponentError:
                raise
            except (DataError, UsageError) as error:
                self.skipped[account.name] = str(error)
                self.accounts.remove(account)
        return rewards

    def members(self) -> list[list[int]]:
        """The positions of each group, groups of one left out: there is nothing to compare."""
        found: dict[int, list[int]] = {}
        for position, group in enumerate(self.groups):
            found.setdefault(group, []).append(position)
        return [group for group in found.values() if len(group) > 1]


def open_ledger(
    registry: Registry, names: Sequence[str], options: Mapping[str, Mapping[str, Any]] | None = None
) -> Ledger:
    """An empty ledger; ``options`` are those of recipes, by name.

    Raises :class:`callwright.errors.UnknownName` for a recipe that nobody registered.
    """
    accounts, skipped = [], {}
    for name in dict.fromkeys(names):
        registry.spec("reward recipe", name)
        try:
            accounts.append(Account(registry.create("reward recipe", name, **(options or {}).get(name, {})), name))
        except (UsageError, RecipeError) as error:
            skipped[name] = str(error)
    return Ledger(accounts, skipped)
