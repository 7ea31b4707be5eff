"""A corpus as the rows that SkyRL's ``PromptDataset`` reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attrs import evolve

from callwright.errors import DataError, MissingExtra, UsageError
from callwright.pipeline import Pipeline, open_pipeline
from callwright.plugins import Registry
from callwright.walk.limits import TurnLimits
from callwright.walk.openings.opening import begins_with_user
from callwright.walk.tasks import Task, first_tasks


def limits_of(pipeline: Pipeline, turns: int) -> TurnLimits:
    """The limits of an episode that SkyRL ends after ``turns`` answers at the latest.

    Those of a pipeline recipe or of the corpus hold where they are tighter; SkyRL bounds tokens by itself.
    """
    stated = pipeline.conditions.limits
    own = stated if not stated.single else TurnLimits(assistant_turns=turns)
    return evolve(own, assistant_turns=min(own.assistant_turns, turns))


def make_rows(
    recipe: str,
    *,
    corpus: str | None,
    split: str,
    ir: str,
    turns: int,
    limit: int | None,
    id: str,
    registry: Registry | None,
) -> list[dict[str, Any]]:
    """What :func:`callwright_plugins.skyrl_bridge.rows` returns."""
    if type(turns) is not int or turns < 1:
        raise UsageError(f"turns is {turns!r:.40}; it is SkyRL's generator.max_turns, a whole number from 1 on")
    pipeline = open_pipeline(recipe, corpus, ir, registry=registry)
    limits = limits_of(pipeline, turns)
    source = pipeline.corpus
    tasks = first_tasks(source[split], limit)
    return [
        {
            "data_source": source.name,
            "prompt": [
                {"role": one.role, "content": one.text} for one in pipeline.messages(asked(task), limits=limits)
            ],
            "env_class": id,
            "reward_spec": {"method": "rule", "ground_truth": task.id},
            "task_id": task.id,
            "extra_info": {"split": split, "index": index, "depth": task.depth, "structure": task.structure},
        }
        for index, task in enumerate(tasks)
    ]


def asked(task: Task) -> Task:
    """The task. Raises :class:`callwright.UsageError` for one that its user begins: a row needs the first message."""
    if begins_with_user(task):
        raise UsageError(
            f"task {task.id!r} begins with its user, whose first words are said in the episode; SkyRL's rows hold the "
            "whole prompt. Train such tasks with the local trainer or the bridges to TRL and verl"
        )
    return task


def write(recipe: str, path: Path, **options: Any) -> int:
    """What :func:`callwright_plugins.skyrl_bridge.export` does."""
    made = make_rows(recipe, **options)
    if not made:
        raise DataError(f"the split {options['split']!r} is empty; there is nothing to write")
    kind = path.suffix.lower()
    if kind not in (".parquet", ".json", ".jsonl"):
        raise UsageError(f"{path}: SkyRL reads .parquet, .json and .jsonl, by the name")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == ".parquet":
            _parquet(made, path)
        else:
            path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in made), "utf-8")
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from error
    return len(made)


def _parquet(made: list[dict[str, Any]], path: Path) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise MissingExtra("parquet files for SkyRL", "data", error.name or "pyarrow") from error
    parquet.write_table(pyarrow.Table.from_pylist(made), path)
