"""``callwright env record``: record what an environment answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from attrs import evolve

from callwright.commands.options import ComponentName
from callwright.errors import DataError, UsageError
from callwright.plugins import Registry
from callwright.training.run_folder import read_jsonl
from callwright.walk.attempt import Attempt
from callwright_plugins.recorded.recording import RecordingEnvironment


@click.command("record")
@click.option(
    "--corpus",
    "corpus_name",
    type=ComponentName("corpus"),
    metavar="NAME",
    help="Record the environment of this corpus.",
)
@click.option("--data", metavar="DIR", help="The corpus' option data.")
@click.option("--split", "splits", multiple=True, metavar="NAME", help="Run the reference programs of this split.")
@click.option("--completions", metavar="FILE", help='Run the programs of these rows: {"id", "task", "completion"}.')
@click.option(
    "--ir",
    type=ComponentName("parser"),
    default="json",
    show_default=True,
    metavar="NAME",
    help="The form of the completions.",
)
@click.option("--environment", "environment_name", metavar="NAME", help="Record this environment (with --calls).")
@click.option("--calls", metavar="FILE", help='Run these rows: {"scenario", "tool", "arguments"}, one session each.')
@click.option("-o", "--output", required=True, metavar="DIR", help="The folder of the recording; it may exist.")
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON.")
@click.pass_obj
def record(
    obj: object,
    corpus_name: str | None,
    data: str | None,
    splits: tuple[str, ...],
    completions: str | None,
    ir: str,
    environment_name: str | None,
    calls: str | None,
    output: str,
    as_json: bool,
) -> None:
    """Record an environment, so that slow, paid or remote tools can be trained against offline.

    The calls to record are the reference programs of a corpus' splits, the programs in a file of completions, or a
    plain list of calls. Train against the result with the environment ``recorded`` (option ``data``).
    """
    registry = _registry(obj)
    if (corpus_name is None) == (environment_name is None):
        raise UsageError("name what to record: either --corpus NAME or --environment NAME --calls FILE")
    if environment_name is not None:
        if calls is None:
            raise UsageError("--environment needs --calls FILE; a corpus brings its own programs (--corpus)")
        recording = RecordingEnvironment(registry.create("environment", environment_name), Path(output))
        attempted = _run_calls(recording, Path(calls))
    else:
        assert corpus_name is not None
        corpus = registry.create("corpus", corpus_name, **({"data": data} if data else {}))
        recording = RecordingEnvironment(corpus.environment, Path(output))
        parser = registry.create("parser", ir)
        texts: list[tuple[Any, str]] = []
        if completions:
            texts = [
                (corpus.task(str(row.get("task"))), str(row.get("completion"))) for row in read_jsonl(Path(completions))
            ]
        chosen = splits or (() if completions else tuple(corpus.splits))
        texts += [(task, parser.render(task.program)) for split in chosen for task in corpus[split] if task.program]
        for task, text in texts:
            _ = Attempt(evolve(task, environment=recording), text, parser).trace
        attempted = len(texts)
    counts = {"programs": attempted, "rows": recording.rows, "folder": output}
    click.echo(json.dumps(counts) if as_json else f"{recording.rows} new calls of {attempted} programs in {output}")


def _run_calls(recording: RecordingEnvironment, path: Path) -> int:
    count = 0
    for number, row in enumerate(read_jsonl(path), 1):
        tool, arguments = row.get("tool"), row.get("arguments", {})
        if not isinstance(tool, str) or not isinstance(arguments, dict):
            raise DataError(f"{path}: row {number} needs a string 'tool' and an object 'arguments'")
        session = recording.open(str(row.get("scenario", "")))
        try:
            session.call(tool, arguments)
        finally:
            session.close()
        count += 1
    return count


def _registry(obj: object) -> Registry:
    from callwright.plugins import default_registry

    registry = getattr(obj, "registry", None)
    return registry if isinstance(registry, Registry) else default_registry()
