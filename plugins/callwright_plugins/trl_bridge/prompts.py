"""Data for TRL: the tasks of a split as prompts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from callwright.capability import has
from callwright.errors import DataError, MissingExtra, UsageError
from callwright.language.native import NATIVE_FORM
from callwright.language.parser import Parser
from callwright.pipeline import Pipeline
from callwright.plugins import Registry, default_registry
from callwright.walk.corpora.capabilities import WritesPrompts
from callwright.walk.limits import SINGLE_TURN
from callwright.walk.prompt import build_messages
from callwright.walk.tasks import Corpus, Task, first_tasks

FORMS: Final = ("chat", "text")
#: The key of a prompt's last message that says which task it is of: a rollout function is told nothing but prompts.
MARK: Final = "task_id"


def compact_prompt(corpus: Corpus) -> Callable[[Task], str]:
    """The corpus's short prompt for tiny models. Raises :class:`callwright.UsageError` if it has none."""
    if not has(corpus, WritesPrompts):
        raise UsageError(f"corpus {corpus.name!r} has no compact prompts (prompt_text); use form='chat'")

    write: Callable[[Task], str | None] = corpus.prompt_text

    def text(task: Task) -> str:
        written = write(task)
        if written is None:
            raise DataError(f"corpus {corpus.name!r} has no compact prompt for task {task.id!r}")
        return written

    return text


def make_dataset(
    corpus: str | Corpus | Pipeline,
    split: str,
    ir: str | Parser | None,
    *,
    form: str,
    limit: int | None,
    registry: Registry | None,
) -> Any:
    """What :func:`callwright_plugins.trl_bridge.dataset` returns."""
    if form not in FORMS:
        raise UsageError(f"form is 'chat' or 'text', not {form!r}")
    try:
        from datasets import Dataset
    except ModuleNotFoundError as error:
        raise MissingExtra("the data of the TRL bridge", "trl", error.name or "datasets") from error
    if isinstance(corpus, Pipeline):
        pipeline = corpus
        registry, source = pipeline.registry, pipeline.corpus
        ir = None if ir is None else pipeline.parser
    else:
        registry = registry or default_registry()
        source = registry.create("corpus", corpus) if isinstance(corpus, str) else corpus
    native = ir is None
    form_of_calls = NATIVE_FORM if ir is None else ir
    parser = registry.create("parser", form_of_calls) if isinstance(form_of_calls, str) else form_of_calls
    limits = None if native else SINGLE_TURN  # its reward reads one completion; only tools take several turns
    tasks = first_tasks(source[split], limit)
    write = compact_prompt(source) if form == "text" else None

    def prompt(task: Task) -> Any:
        if write is not None:
            return write(task)
        made = build_messages(task, parser, registry, native=native, limits=limits)
        messages = [message.to_openai() for message in made]
        messages[-1][MARK] = task.id
        return messages

    rows = [
        {"prompt": prompt(task), "task_id": task.id, "depth": task.depth, "structure": task.structure} for task in tasks
    ]
    return Dataset.from_list(rows)
