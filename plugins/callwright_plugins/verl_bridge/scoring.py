"""A reward recipe as verl's custom reward function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from typing import Any, Final

from attrs import evolve

from callwright.episodes.rewards import asked_again
from callwright.errors import DataError, InfrastructureFailure, UnknownName, UsageError
from callwright.language.thoughts import THINK
from callwright.pipeline import Pipeline, open_pipeline
from callwright.walk.completion import Completion
from callwright.walk.conditions import Progress
from callwright.walk.limits import TruncationPolicy
from callwright.walk.reward import TRUNCATED, Reward
from callwright.walk.tasks import Task

#: What ``reward_kwargs`` may state.
_OPTIONS: Final = (
    "recipe", "corpus", "ir", "seed", "retries", "masked_score", "total_steps", "truncated", "floor", "thought_opened",
)  # fmt: skip


class ScoreFunction:
    """``f(data_source, solution_str, ground_truth, extra_info=None) -> {"score": …, "tier/format": …, …}``."""

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        retries: int = 1,
        masked_score: float | None = None,
        total_steps: int | None = None,
        thought_opened: bool = False,
    ) -> None:
        _check(retries, masked_score, total_steps)
        self.pipeline = pipeline
        self.retries = retries
        self.masked_score = masked_score
        self.total_steps = total_steps
        self.thought_opened = thought_opened
        self.__name__ = pipeline.reward.name

    def __call__(
        self,
        data_source: str,
        solution_str: str,
        ground_truth: Any,
        extra_info: Mapping[str, Any] | None = None,
        **_ignored: Any,
    ) -> dict[str, float]:
        """Score one completion.

        Raises :class:`callwright.InfrastructureFailure` for a sample that stays masked, without ``masked_score``.
        """
        (found,) = self.many([solution_str], [ground_truth], [extra_info])
        return found

    def many(
        self,
        solution_strs: Sequence[str],
        ground_truths: Sequence[Any],
        extra_infos: Sequence[Mapping[str, Any] | None] | None = None,
    ) -> list[dict[str, float]]:
        """Score completions, those that wait together. Raises as for one, for the first that stays masked."""
        infos = [None] * len(solution_strs) if extra_infos is None else extra_infos
        _check_lengths(solution_strs, ground_truths=ground_truths, extra_infos=infos)
        asked = [
            self._asked(text, truth, info or {})
            for text, truth, info in zip(solution_strs, ground_truths, infos, strict=True)
        ]
        scoring = self.pipeline.scoring
        found = asked_again(scoring(self.pipeline.attempt(*one) for one in asked), self.retries, scoring)
        return [self._row(attempt.task, reward) for attempt, reward in found]

    def _asked(self, text: str, truth: Any, info: Mapping[str, Any]) -> tuple[Task, Completion, Progress | None]:
        task_id = truth if isinstance(truth, str) else info.get("task_id")
        if task_id is None:
            raise DataError(
                f"'ground_truth' is the id of a task, a text, not {truth!r:.60}, and 'extra_info' has no 'task_id' "
                "either; callwright verl-export writes such rows"
            )
        task = self.pipeline.task(task_id)
        if not isinstance(text, str):
            raise DataError(f"task {task.id!r}: 'solution_str' is what was written, a text, not {text!r:.60}")
        # verl itself does not say; our agent loop does, and so may somebody's data or reward manager.
        whole = THINK.opening + text if self.thought_opened else text
        return task, Completion(whole, truncated=info.get("truncated") in (True, 1)), self._progress(info)

    def _row(self, task: Task, reward: Reward) -> dict[str, float]:
        if reward.total is not None:
            return scores(self.pipeline, reward, reward.total)
        if self.masked_score is None:
            raise InfrastructureFailure(
                f"task {task.id!r} cannot be scored: {reward.masked}. verl cannot leave a sample out; set masked_score "
                "to go on with that number in its place"
            )
        return scores(self.pipeline, reward, self.masked_score)

    def _progress(self, extra_info: Mapping[str, Any]) -> Progress | None:
        step = extra_info.get("global_steps")
        if step is None or self.total_steps is None:
            return None
        return Progress(int(step), max(self.total_steps, int(step)))


def _check(retries: Any, masked_score: Any, total_steps: Any) -> None:
    """Raise :class:`callwright.UsageError` for options that a command line got wrong: texts in place of numbers."""
    if type(retries) is not int or retries < 0:
        raise UsageError(f"'retries' is a whole number, 0 or more, not {retries!r:.60}")
    if masked_score is not None and (type(masked_score) not in (int, float) or not isfinite(masked_score)):
        raise UsageError(f"'masked_score' is a number, not {masked_score!r:.60}")
    if total_steps is not None and (type(total_steps) is not int or total_steps < 1):
        raise UsageError(f"'total_steps' is a whole number, 1 or more, not {total_steps!r:.60}")


def _check_lengths(solution_strs: Sequence[Any], **others: Sequence[Any]) -> None:
    for name, column in others.items():
        if len(column) != len(solution_strs):
            raise UsageError(f"'{name}' has {len(column):,} rows for {len(solution_strs):,} of 'solution_strs'")


def _check_further(named: Iterable[str]) -> None:
    """Raise :class:`callwright.errors.UnknownName` for what was meant as an option.

    verl hands on more than is stated (``reward_router_address``), in each version something else; so only what is
    spelt nearly as an option is no such thing.
    """
    for name in named:
        told = UnknownName("option in reward_kwargs", name, _OPTIONS)
        if told.nearest and not name.startswith("reward_"):
            raise told


def scores(pipeline: Pipeline, reward: Reward, total: float) -> dict[str, float]:
    """The total and the values of all components. verl reads the keys off the first sample of a batch."""
    name = pipeline.reward.name
    own = [*pipeline.reward.weights, *([TRUNCATED] if pipeline.reward.truncation == "floor" else ())]
    found = {term: reward.scores.get(term) for term in own}  # nobody loses by being cut off who was not
    values = {f"{name}/{term}": 0.0 if one is None else float(one.score.value) for term, one in found.items()}
    return {"score": float(total), **values, f"{name}/masked": float(reward.total is None)}


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    recipe: str = "tier",
    corpus: str | None = None,
    ir: str = "json",
    seed: int = 0,
    retries: int = 1,
    masked_score: float | None = None,
    total_steps: int | None = None,
    truncated: TruncationPolicy | None = None,
    floor: float | None = None,
    thought_opened: bool = False,
    **further: Any,
) -> dict[str, float]:
    """What ``reward.custom_reward_function`` names; everything after ``extra_info`` are its ``reward_kwargs``.

    ``recipe`` is a reward recipe, with the corpus of the data (by default the one that ``data_source`` names), or a
    pipeline recipe without one. ``truncated`` and ``floor`` are what a cut-off completion earns, by default the
    reward's own choice. ``thought_opened``: the chat template ends a prompt with ``<think>``. What verl adds itself is
    left alone; a name that is nearly that of an option is refused.
    """
    if further:
        _check_further(further)
    shaping = (truncated, floor, thought_opened)
    function = _function(recipe, corpus, data_source, ir, seed, retries, masked_score, total_steps, *shaping)
    return function(data_source, solution_str, ground_truth, extra_info)


def compute_scores(
    data_sources: Sequence[str],
    solution_strs: Sequence[str],
    ground_truths: Sequence[Any],
    extra_infos: Sequence[Mapping[str, Any] | None] | None = None,
    *,
    recipe: str = "tier",
    corpus: str | None = None,
    ir: str = "json",
    seed: int = 0,
    retries: int = 1,
    masked_score: float | None = None,
    total_steps: int | None = None,
    truncated: TruncationPolicy | None = None,
    floor: float | None = None,
    thought_opened: bool = False,
    **further: Any,
) -> list[dict[str, float]]:
    """The same for a batch, as verl's reward manager ``batch`` asks: rewards that wait do so together.

    The options are those of :func:`compute_score`. Samples of one data source are scored together.
    """
    if further:
        _check_further(further)
    shaping = (truncated, floor, thought_opened)
    infos = [None] * len(solution_strs) if extra_infos is None else list(extra_infos)
    _check_lengths(solution_strs, data_sources=data_sources, ground_truths=ground_truths, extra_infos=infos)
    found: list[dict[str, float]] = [{}] * len(solution_strs)
    for source in dict.fromkeys(map(str, data_sources)):
        function = _function(recipe, corpus, source, ir, seed, retries, masked_score, total_steps, *shaping)
        own = [number for number, name in enumerate(data_sources) if str(name) == source]
        rows = function.many(
            [solution_strs[number] for number in own],
            [ground_truths[number] for number in own],
            [infos[number] for number in own],
        )
        for number, row in zip(own, rows, strict=True):
            found[number] = row
    return found


@lru_cache(maxsize=64)
def _function(
    recipe: str,
    corpus: str | None,
    data_source: str,
    ir: str,
    seed: int,
    retries: int,
    masked_score: float | None,
    total_steps: int | None,
    truncated: TruncationPolicy | None,
    floor: float | None,
    thought_opened: bool,
) -> ScoreFunction:
    pipeline = open_named(recipe, corpus, data_source, ir, seed, truncated, floor)
    return ScoreFunction(
        pipeline,
        retries=retries,
        masked_score=masked_score,
        total_steps=total_steps,
        thought_opened=thought_opened,
    )


@lru_cache(maxsize=64)
def open_named(
    recipe: str,
    corpus: str | None,
    data_source: str | None,
    ir: str,
    seed: int,
    truncated: TruncationPolicy | None = None,
    floor: float | None = None,
) -> Pipeline:
    """A pipeline by names, made once in a process. A reward recipe without a corpus is that of the data's source.

    ``truncated`` and ``floor``, where they are given, take the place of what its reward says of cut-off completions.
    """
    from callwright.plugins import default_registry

    registry = default_registry()
    if corpus is None and recipe in registry.names("reward recipe"):
        if data_source is None or not registry.knows("corpus", data_source):
            raise UsageError(
                f"the reward recipe {recipe!r} needs a corpus: set reward_kwargs.corpus (data_source {data_source!r} "
                "is not the name of one)"
            )
        corpus = data_source
    pipeline = open_pipeline(recipe, corpus, ir, seed=seed, registry=registry)
    own = pipeline.reward
    changed = evolve(own, truncated=truncated or own.truncated, floor=own.floor if floor is None else floor)
    return evolve(pipeline, reward=changed)
