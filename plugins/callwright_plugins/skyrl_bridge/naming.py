"""Pipelines by names, made once in a process."""

from __future__ import annotations

from functools import lru_cache

from callwright.errors import UsageError
from callwright.pipeline import Pipeline, open_pipeline


@lru_cache(maxsize=64)
def named(recipe: str, corpus: str | None, ir: str, seed: int) -> Pipeline:
    """The pipeline of a reward recipe with a corpus, or of a pipeline recipe. Raises :class:`callwright.UsageError`."""
    for what, given in (("recipe", recipe), ("corpus", corpus), ("ir", ir)):
        if given is not None and not isinstance(given, str):
            raise UsageError(
                f"{what} is given as {type(given).__name__}; SkyRL makes environments in processes of its own, so it "
                "must be a registered name, or the path of a pipeline recipe"
            )
    return open_pipeline(recipe, corpus, ir, seed=seed)
