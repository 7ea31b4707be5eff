"""``callwright explain``: one completion, the whole walk, and where each point was lost."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.options import ComponentName

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline
    from callwright.walk.tasks import Task


@click.command("explain")
@click.argument("file", metavar="COMPLETION_FILE", required=False)
@click.option("--completion", metavar="TEXT", help="The completion itself, instead of a file ('-': stdin).")
@click.option("--gold", is_flag=True, help="Explain the task's reference program instead.")
@click.option(
    "--corpus", type=ComponentName("corpus"), required=True, metavar="NAME", help="The corpus that the task is of."
)
@click.option("--task", "task_id", required=True, metavar="ID", help="The task that the completion is for.")
@options.data_option
@options.corpus_settings
@options.ir_option
@options.reward_option
@options.seed_option
@options.json_option
@click.pass_obj
def explain(
    app: App,
    file: str | None,
    completion: str | None,
    gold: bool,
    corpus: str,
    task_id: str,
    data: str | None,
    corpus_options: tuple[str, ...],
    ir: str,
    reward: str,
    seed: int,
    as_json: bool,
) -> None:
    """Walk through one completion: the task, the program, every mismatch, every call, every score."""
    from callwright.commands.pipelines import find_task, make_pipeline
    from callwright_plugins.explain.walk_data import Walk

    if sum((file is not None, completion is not None, gold)) != 1:
        raise click.UsageError("give one completion: a COMPLETION_FILE ('-': stdin), --completion TEXT or --gold")
    given = options.corpus_keys(data, corpus_options)
    pipeline = make_pipeline(app.registry, corpus, given, ir=ir, reward=reward, seed=seed)
    task = find_task(pipeline, task_id)
    if gold:
        completion = _reference(pipeline, task)
    elif completion is None:
        assert file is not None
        completion = _read(file)
    walk = Walk.of(pipeline, task, completion)
    if as_json:
        click.echo(json.dumps(walk.to_json(), indent=2))
    else:
        from callwright_plugins.explain.drawing import draw

        draw(walk)


def _reference(pipeline: Pipeline, task: Task) -> str:
    from callwright.errors import UsageError

    if task.program is None:
        raise UsageError(f"task {task.id!r} has no reference program")
    return pipeline.parser.render(task.program)


def _read(file: str) -> str:
    from callwright.errors import DataError, cannot_read

    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise cannot_read(file, error) from error
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{file} is not UTF-8 text: {error.reason} at byte {error.start}") from error
