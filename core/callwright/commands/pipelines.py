"""The pipeline of commands that are given components by name instead of a recipe file."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from callwright.errors import LISTED, UnknownName, UsageError
from callwright.language.shortening import shortened
from callwright.walk.reward import RewardRecipe
from callwright.walk.tasks import task_of

if TYPE_CHECKING:
    from callwright.environments.isolated.environment import Isolation
    from callwright.measuring.benchmark import Benchmark
    from callwright.pipeline import Pipeline
    from callwright.plugins import Registry
    from callwright.walk.sampling import Sampler
    from callwright.walk.tasks import Corpus, Task

#: For evaluation, which asks only whether the answer is right.
NO_REWARD: Final = RewardRecipe("none", (), normalise=False)

#: Characters of an error message that are still one line.
_LONGEST: Final = 240


def make_pipeline(
    registry: Registry,
    corpus: str,
    options: Mapping[str, Any],
    *,
    ir: str = "json",
    reward: str | None = None,
    reward_options: Mapping[str, Any] | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    isolation: Isolation | None = None,
) -> Pipeline:
    """A pipeline of registered components, as the options of a command name them, without an algorithm.

    ``options`` are those of the corpus. Without ``reward``, which ``reward_options`` are for, the pipeline judges and
    does not score.

    Raises :class:`callwright.errors.UnknownName` for a name that nobody registered.
    """
    from callwright.pipeline import Pipeline
    from callwright.walk.conditions import Conditions
    from callwright.walk.limits import limits_of

    made: Corpus = registry.create("corpus", corpus, **options)
    first = next(iter(made.splits), "train")
    conditions = Conditions(seed=seed, time_limit=time_limit, isolation=isolation or "auto", limits=limits_of(made))
    scored = registry.create("reward recipe", reward, **(reward_options or {})) if reward else NO_REWARD
    return Pipeline(made, scored, ir, conditions=conditions, train=first, evaluation=first, registry=registry)


def make_benchmark(registry: Registry, text: str, options: Mapping[str, Any]) -> Benchmark:
    """The benchmark of ``NAME[:VERSION]`` with these options.

    Raises :class:`callwright.errors.UnknownName` for a name or an option that is not there and
    :class:`callwright.UsageError` for a version that it does not have.
    """
    from callwright.measuring.benchmark import named_version

    name, version = named_version(text)
    stated = {} if version is None else {"version": version}
    made: Benchmark = registry.create("benchmark", name, **stated, **options)
    return made


def benchmark_pipeline(registry: Registry, benchmark: Benchmark, *, ir: str, seed: int = 0) -> Pipeline:
    """A pipeline over the corpus of a benchmark, which judges and does not score."""
    from callwright.measuring.benchmark import users_of
    from callwright.pipeline import Pipeline
    from callwright.walk.conditions import Conditions
    from callwright.walk.limits import limits_of

    users = users_of(benchmark, registry)
    conditions = Conditions(seed=seed, isolation="auto", limits=limits_of(benchmark.corpus), users=users)
    first = next(iter(benchmark.corpus.splits), "train")
    return Pipeline(
        benchmark.corpus, NO_REWARD, ir, conditions=conditions, train=first, evaluation=first, registry=registry
    )


def find_task(pipeline: Pipeline, task_id: str) -> Task:
    """The task of this id. Raises :class:`callwright.UsageError`, in one line even where a corpus has thousands."""
    try:
        return pipeline.placed(task_of(pipeline.corpus, task_id))
    except UnknownName as error:
        whole = str(error)
        if len(whole) <= _LONGEST and len(error.known) <= LISTED:
            raise
        shown = shortened(task_id, 60)
        near = difflib.get_close_matches(task_id[:60], error.known, n=3) or error.known[:3]
        some = f" Some of its {len(error.known):,}: {', '.join(near)}." if len(error.known) > 3 else ""
        raise UsageError(f"There is no task of {pipeline.corpus.name} named {shown!r}.{some}") from error


def make_sampler(registry: Registry, name: str, options: Mapping[str, Any], *, ir: str) -> Sampler:
    """A sampler; one that writes programs itself (it takes an option ``ir``) gets the form of the pipeline."""
    factory = registry.spec("sampler", name).load()
    given = dict(options)
    try:
        if "ir" in inspect.signature(factory).parameters:
            given.setdefault("ir", ir)
    except (TypeError, ValueError):  # something that Python cannot look into
        pass
    try:
        made: Sampler = registry.create("sampler", name, **given)
    except (TypeError, ValueError) as error:
        raise UsageError(f"sampler {name!r}: {error}") from error
    return made
