"""A corpus as the parquet files that verl reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attrs import asdict

from callwright.errors import DataError, MissingExtra, UsageError
from callwright.language.parser import Parser
from callwright.plugins import Registry, default_registry
from callwright.walk.openings.opening import need_no_opening
from callwright.walk.prompt import build_messages
from callwright.walk.tasks import Corpus, Task, first_tasks
from callwright.walk.users.said import need_no_user


def rows(
    corpus: Corpus,
    split: str,
    parser: Parser | None,
    *,
    agent: str | None = None,
    limit: int | None = None,
    registry: Registry | None = None,
) -> list[dict[str, Any]]:
    """A row a task: ``data_source``, ``prompt``, ``ability``, ``reward_model``, ``extra_info``, perhaps ``agent_name``.

    Without a parser the rows are for verl's own loop of tool calls: ``extra_info`` says which tools are offered
    (``tool_selection``) and how each opens the session of the task (``tools_kwargs``).
    """
    tasks = first_tasks(corpus[split], limit)
    made = []
    for index, task in enumerate(tasks):
        info: dict[str, Any] = {
            "index": index,
            "split": split,
            "task_id": task.id,
            "depth": task.depth,
            "structure": task.structure,
        }
        if parser is None:
            instead = "export with a form, and train with the agent loop of this bridge"
            need_no_user(task, "verl's own loop", instead)
            need_no_opening(task, "verl's own loop", instead)
            info |= _tools(task, corpus)
        row: dict[str, Any] = {
            "data_source": corpus.name,
            "prompt": _prompt(task, parser, registry),
            "ability": "tool use",
            "reward_model": {"style": "rule", "ground_truth": task.id},
            "extra_info": info,
        }
        if agent is not None:
            row["agent_name"] = agent
        made.append(row)
    return made


def _prompt(task: Task, parser: Parser | None, registry: Registry | None) -> list[dict[str, Any]]:
    if parser is None:
        return [{"role": "user", "content": task.query}]
    return [message.to_openai() for message in build_messages(task, parser, registry)]


def _tools(task: Task, corpus: Corpus) -> dict[str, Any]:
    """verl looks up a called tool here even where it is not offered, so that every tool of the corpus is listed."""
    opening: dict[str, Any] = {"scenario": task.scenario, "seed": task.seed}
    if task.clock is not None:
        opening["clock"] = json.dumps(asdict(task.clock))
    if task.hazards is not None:
        opening["hazards"] = json.dumps(task.hazards.to_json())
    create = {"create_kwargs": opening}
    everything = {name: create for name, spec in corpus.environment.tools.items() if not spec.hidden}
    offered = list(task.offered)
    return {"need_tools_kwargs": True, "tools_kwargs": everything, "tool_selection": offered}


def write_parquet(
    corpus: str | Corpus,
    path: Path,
    split: str,
    ir: str | Parser | None,
    *,
    agent: str | None,
    limit: int | None,
    registry: Registry | None,
) -> int:
    """What :func:`callwright_plugins.verl_bridge.export` does. Raises :class:`callwright.errors.DataError`."""
    if path.suffix.lower() != ".parquet":  # readers go by the name: another one would promise what is not in it
        raise UsageError(f"{path}: verl's data is written as Parquet; name a file that ends in .parquet")
    try:
        import pyarrow
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise MissingExtra("parquet files for verl", "data", error.name or "pyarrow") from error
    registry = registry or default_registry()
    source: Corpus = registry.create("corpus", corpus) if isinstance(corpus, str) else corpus
    parser: Parser | None = registry.create("parser", ir) if isinstance(ir, str) else ir
    made = rows(source, split, parser, agent=agent, limit=limit, registry=registry)
    if not made:
        raise DataError(f"the split {split!r} of corpus {source.name!r} is empty; there is nothing to write")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(pyarrow.Table.from_pylist(made), path)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from error
    return len(made)
