"""What another process needs to know to drive the same episodes, and how it makes the pipeline again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import asdict, evolve, field, frozen

from callwright.capability import has
from callwright.errors import DataError, UsageError
from callwright.pipeline import Pipeline, build_pipeline
from callwright.plugins import PluginSource
from callwright.recipe_file import load_recipe
from callwright.training.run_folder import write_atomically
from callwright.walk.corpora.capabilities import WritesPrompts
from callwright.walk.limits import TruncationPolicy, TurnLimits

if TYPE_CHECKING:
    from callwright.episodes.codec import ChatCodec, PlainCodec


@frozen
class Configuration:
    """A run as its episodes see it. ``recipe`` is the run folder's copy, read in the folder ``here``."""

    recipe: str
    here: str
    blocked: tuple[str, ...] | None
    modules: tuple[tuple[str, str], ...]
    model: str
    limits: TurnLimits
    steps: int
    group: int
    retries: int
    prompt: str = "auto"
    template_options: Mapping[str, Any] = field(factory=dict)
    filtered: bool = False
    prompts: int = 1
    max_prompt_tokens: int = 1
    rollouts_per_step: int = 0
    depths: tuple[int, ...] | None = None
    evaluation_tasks: int | None = None
    truncated: TruncationPolicy | None = None
    floor: float | None = None

    def write(self, path: Path) -> None:
        """Write the configuration in one atomic step."""
        write_atomically(path, json.dumps(asdict(self), indent=2) + "\n")


def read_configuration(path: Path) -> Configuration:
    """A configuration that was written. Raises :class:`callwright.errors.DataError` if it is none."""
    try:
        data = json.loads(path.read_bytes())
        limits = TurnLimits(**data.pop("limits"))
        blocked, depths = data.pop("blocked"), data.pop("depths")
        modules = tuple((str(name), str(module)) for name, module in data.pop("modules"))
        return Configuration(
            **data,
            limits=limits,
            modules=modules,
            blocked=None if blocked is None else tuple(blocked),
            depths=None if depths is None else tuple(depths),
        )
    except OSError as error:
        raise DataError(f"{path} cannot be read here: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(f"{path} is not a configuration of this trainer: {error}") from error


def load_pipeline(configuration: Configuration) -> Pipeline:
    """The pipeline of the recipe, without its algorithm, in whatever process this is."""
    with standing_in(configuration.here):
        blocked = configuration.blocked
        source = PluginSource(None if blocked is None else frozenset(blocked), configuration.modules)
        registry = source.load()
        pipeline = build_pipeline(load_recipe(configuration.recipe), registry, with_algorithm=False)
        # What a cut-off completion earns hangs on the algorithm, which is not made here.
        reward = evolve(pipeline.reward, truncated=configuration.truncated, floor=configuration.floor)
        pipeline = evolve(pipeline, reward=reward)
        for split in {pipeline.train, pipeline.evaluation}:
            len(pipeline.tasks(split))  # files named relative to that folder are read now
        return pipeline


@contextmanager
def standing_in(folder: str) -> Iterator[None]:
    """The working folder of the user's command, where it exists, for paths that are relative to it."""
    before = Path.cwd()
    if not Path(folder).is_dir():
        yield
        return
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def make_codec(
    tokenizer: Any, pipeline: Pipeline, form: str, ends: frozenset[int], template_options: Mapping[str, Any]
) -> ChatCodec | PlainCodec:
    """The form of prompts that the trainer ``local`` gives the same model: the ids come out the same.

    Raises :class:`callwright.UsageError` for the compact form of a corpus that has none.
    """
    from callwright.episodes.codec import ChatCodec, PlainCodec

    if form != "compact":
        return ChatCodec(tokenizer, template_options=template_options, ends=ends)
    if not has(pipeline.corpus, WritesPrompts):
        raise UsageError(f"the model wants the compact prompt of a corpus, but {pipeline.corpus.name!r} has none")
    return PlainCodec(tokenizer, pipeline.corpus.prompt_text, ends=ends)
