"""Prompts of tasks as they are exported: rendered and tokenised in batches, and where they are many in processes."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from callwright.errors import DataError
from callwright.machines import ChunkWork, make_executor
from callwright_plugins.openrlhf_trainer.configuration import (
    Configuration,
    load_pipeline,
    make_codec,
    read_configuration,
)

if TYPE_CHECKING:
    from callwright.episodes.codec import ChatCodec, PlainCodec
    from callwright.pipeline import Pipeline
    from callwright.walk.tasks import Task

#: Prompts that are tokenised at once.
BATCH: Final = 64
#: Prompts for which another process, which has to load tokenizer and corpus first, is worth it; and most processes.
A_PROCESS: Final = 512
MOST_PROCESSES: Final = 16


@frozen
class Prompt:
    """What is exported of a task: ``length`` in tokens, ``digest`` of them, and the text that gives them again."""

    id: str
    depth: int
    length: int
    digest: str
    text: str


@frozen
class Renderer:
    """Makes prompts of tasks, by their places in a split."""

    pipeline: Pipeline
    codec: ChatCodec | PlainCodec
    longest: int

    def prompts(self, split: str, places: Sequence[int]) -> list[Prompt | None]:
        """Those of some tasks of a split; ``None`` for each that has more than ``longest`` tokens."""
        tasks = self.pipeline.corpus[split]  # which may be made one by one, as they are asked for
        chosen = [self.pipeline.placed(tasks[place]) for place in places]
        batch = self.codec.prompts_ids([(self.pipeline.messages(task), task) for task in chosen])
        return [self._prompt(task, ids) for task, ids in zip(chosen, batch, strict=True)]

    def _prompt(self, task: Task, ids: tuple[int, ...]) -> Prompt | None:
        if len(ids) > self.longest:
            return None
        text = self.codec.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return Prompt(task.id, task.depth, len(ids), digest_of_ids(ids), text)


def digest_of_ids(ids: Sequence[int]) -> str:
    """A short digest of a prompt: the engine's process must come to the same ids."""
    return blake2b(json.dumps(list(ids)).encode(), digest_size=8).hexdigest()


def make_renderer(
    pipeline: Pipeline, configuration: Configuration, tokenizer: Any, form: str, ends: Sequence[int]
) -> Renderer:
    """A renderer of this process."""
    room = configuration.limits.context_tokens
    longest = configuration.max_prompt_tokens if room is None else min(configuration.max_prompt_tokens, room - 1)
    codec = make_codec(tokenizer, pipeline, form, frozenset(ends), configuration.template_options)
    return Renderer(pipeline, codec, longest)


def all_prompts(
    renderer: Renderer,
    wanted: Sequence[tuple[str, Sequence[int]]],
    *,
    config: Path | None,
    form: str,
    ends: Sequence[int],
) -> Generator[Prompt | None, None, None]:
    """The prompts of the tasks at these places of these splits, in order.

    By ``renderer``, or, where they are many, by processes that make their own of the configuration ``config``, once
    for all splits. The result is the same.
    """
    chunks = [(split, places[at : at + BATCH]) for split, places in wanted for at in range(0, len(places), BATCH)]
    workers = min(_processors(), MOST_PROCESSES, sum(len(places) for _, places in wanted) // A_PROCESS)
    if config is None or workers < 2:
        for chunk in chunks:
            yield from renderer.prompts(*chunk)
        return
    work = ChunkWork(partial(_open, config, form, tuple(ends)), _render)
    with make_executor("process", workers) as executor:
        for made in executor.map(work, chunks):
            yield from made


def _open(config: Path, form: str, ends: Sequence[int]) -> Renderer:
    """What a process begins with."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the processes are the parallelism
    configuration = read_configuration(config)
    return make_renderer(load_pipeline(configuration), configuration, load_tokenizer(configuration.model), form, ends)


def _render(renderer: Renderer, chunk: tuple[str, Sequence[int]]) -> list[Prompt | None]:
    return renderer.prompts(*chunk)


def load_tokenizer(model: str) -> Any:
    """The tokenizer of a directory or of a name. Raises :class:`callwright.errors.DataError` if there is none."""
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError) as error:
        raise DataError(f"the tokenizer of {model!r} cannot be loaded: {error}") from error


def _processors() -> int:
    """Those that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS has no such list
        return os.cpu_count() or 1
