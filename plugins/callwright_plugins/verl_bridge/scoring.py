"""A reward recipe as verl's custom reward function."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from attrs import evolve

from callwright.errors import InfrastructureFailure, UsageError
from callwright.language.thoughts import THINK
from callwright.pipeline import Pipeline, open_pipeline
from callwright.walk.completion import Completion
from callwright.walk.conditions import Progress
from callwright.walk.limits import TruncationPolicy
from callwright.walk.reward import TRUNCATED, Reward


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
        task_id = ground_truth if isinstance(ground_truth, str) else (extra_info or {}).get("task_id")
        task = self.pipeline.task(task_id)
        progress = self._progress(extra_info or {})
        # verl itself does not say; our agent loop does, and so may somebody's data or reward manager.
        text = THINK.opening + solution_str if self.thought_opened else solution_str
        completion = Completion(text, truncated=(extra_info or {}).get("truncated") in (True, 1))
        for _ in range(self.retries + 1):
            reward = self.pipeline.score(self.pipeline.attempt(task, completion, progress))
            if reward.total is not None:
                return scores(self.pipeline, reward, reward.total)
            if reward.masked_cut:
                break
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
    **_ignored: Any,
) -> dict[str, float]:
    """What ``reward.custom_reward_function`` names; everything after ``extra_info`` are its ``reward_kwargs``.

    ``recipe`` is a reward recipe, with the corpus of the data (by default the one that ``data_source`` names), or a
    pipeline recipe without one. ``truncated`` and ``floor`` are what a cut-off completion earns, by default the
    reward's own choice. ``thought_opened``: the chat template ends a prompt with ``<think>``.
    """
    shaping = (truncated, floor, thought_opened)
    function = _function(recipe, corpus, data_source, ir, seed, retries, masked_score, total_steps, *shaping)
    return function(data_source, solution_str, ground_truth, extra_info)


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
        if data_source not in registry.names("corpus"):
            raise UsageError(
                f"the reward recipe {recipe!r} needs a corpus: set reward_kwargs.corpus (data_source {data_source!r} "
                "is not the name of one)"
            )
        corpus = data_source
    pipeline = open_pipeline(recipe, corpus, ir, seed=seed, registry=registry)
    own = pipeline.reward
    changed = evolve(own, truncated=truncated or own.truncated, floor=own.floor if floor is None else floor)
    return evolve(pipeline, reward=changed)
