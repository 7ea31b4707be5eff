"""``callwright tasks export``, ``tasks show`` and ``tasks check``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.options import ComponentName

if TYPE_CHECKING:
    from callwright.walk.tasks import Corpus, Task

#: Tasks that do not hold which are named.
_NAMED: Final = 20

_file = click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
_any_version = click.option("--any-version", is_flag=True, help="Environments of other versions with equal tools do.")
_trust = click.option("--trust", is_flag=True, help="The file's environments may start programs and send secrets.")


@click.command("export")
@click.argument("corpus", type=ComponentName("corpus"), metavar="CORPUS")
@click.option("-o", "--output", required=True, metavar="FILE", type=click.Path(path_type=Path), help="What to write.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["tasks", "openai"]),
    default="tasks",
    show_default=True,
    help="Tasks, or chats of their references for supervised training.",
)
@click.option("--split", "splits", multiple=True, metavar="NAME", help="Only these splits. May be repeated.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N tasks of each split.")
@options.data_option
@options.corpus_settings
@options.replace_option
@options.json_option
@click.pass_obj
def export(
    app: App,
    corpus: str,
    output: Path,
    form: str,
    splits: tuple[str, ...],
    limit: int | None,
    data: str | None,
    corpus_options: tuple[str, ...],
    overwrite: bool,
    as_json: bool,
) -> None:
    """Write tasks of a corpus to FILE: .jsonl, .jsonl.gz, .jsonl.zst or .parquet.

    The file says which environments its tasks are of, and the corpus 'tasks' reads it: --corpus tasks --corpus-option
    file=FILE. With --format openai, FILE (.jsonl) has chats with tools, in which chained calls stand with their
    results between them.
    """
    from callwright.errors import UnknownName
    from callwright.walk.limits import SINGLE_TURN, limits_of
    from callwright.walk.task_rows.writing import write_tasks

    options.refuse_existing(output, overwrite=overwrite)
    made: Corpus = app.registry.create("corpus", corpus, **options.corpus_keys(data, corpus_options))
    for name in splits:
        if name not in made.splits:
            raise UnknownName(f"split of {made.name}", name, made.splits)
    tasks = _tasks(made, splits or tuple(made.splits), limit)
    if form == "openai":
        count = _write_chats(made, tasks, output)
    else:
        limits = limits_of(made)
        count = write_tasks(
            output,
            tasks,
            limits=None if limits == SINGLE_TURN else limits,
            about={"corpus": made.name},
            registry=app.registry,
        )
    click.echo(json.dumps({"rows": count, "output": str(output)}) if as_json else f"{count:,} tasks in {output}")


def _tasks(corpus: Corpus, splits: Sequence[str], limit: int | None) -> Iterator[Task]:
    for split in splits:
        yield from islice(corpus[split], limit)


def _write_chats(corpus: Corpus, tasks: Iterator[Task], output: Path) -> int:
    from callwright.errors import UsageError
    from callwright.training.demonstrations import reference_of
    from callwright.training.run_folder import jsonl_lines, write_atomically
    from callwright.walk.task_rows.chats import chat_row

    if output.suffix != ".jsonl":
        raise UsageError(f"{output}: chats are written to a file that ends in .jsonl")
    rows = []
    for task in tasks:
        reference = reference_of(corpus, task)
        if isinstance(reference, str):
            raise UsageError(f"task {task.id!r} is shown a text, not calls: it is no chat with tools")
        rows.append(chat_row(task, reference))
    output.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(output, b"".join(jsonl_lines(output, rows)))
    return len(rows)


@click.command("show")
@_file
@click.argument("task_id", metavar="[ID]", required=False)
@_any_version
@_trust
@options.json_option
@click.pass_obj
def show(app: App, file: Path, task_id: str | None, any_version: bool, trust: bool, as_json: bool) -> None:
    """What a file of tasks holds, by split, environment and depth; or one of its tasks as its row."""
    from callwright.commands.safe_text import visible
    from callwright.walk.task_rows.reading import read_tasks

    tasks = read_tasks(file, any_version=any_version, trust=trust, registry=app.registry)
    if task_id is not None:
        place = tasks.place(task_id)
        tasks.task(task_id)  # a row that is no task is told of
        row = tasks.row(place)
        click.echo(json.dumps(row, indent=None if as_json else 2) if as_json else visible(_text(row)))
        return
    environments: Counter[str] = Counter()
    for place in range(len(tasks)):
        stated = tasks.row(place).get("environment")
        environments[stated if isinstance(stated, str) else json.dumps(stated, sort_keys=True)] += 1
    found: dict[str, Any] = {
        "tasks": len(tasks),
        "splits": {name: len(part) for name, part in tasks.splits.items()},
        "depths": {str(depth): count for depth, count in sorted(Counter(tasks.depths).items())},
        "environments": dict(environments.most_common()),
        "head": tasks.head.to_json(),
    }
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for title, counts in (("split", "splits"), ("depth", "depths"), ("environment", "environments")):
        for name, count in found[counts].items():
            click.echo(visible(f"{title} {name}: {count:,}"))
    for one, was in tasks.head.environments.items():
        click.echo(visible(f"{one.name}: {len(was.tools)} tools, {was.version or 'no version'}, {was.schema[:23]}"))
    click.echo(f"{len(tasks):,} tasks")


def _text(row: dict[str, Any]) -> str:
    return json.dumps(row, indent=2, ensure_ascii=False)


@click.command("check")
@_file
@_any_version
@_trust
@options.json_option
@click.pass_context
def check(ctx: click.Context, file: Path, any_version: bool, trust: bool, as_json: bool) -> None:
    """Whether the tasks of a file hold: every row is a task, and its program comes to its answer in its world.

    Exit status 1 if one does not.
    """
    from callwright.commands.bars import reporter
    from callwright.commands.safe_text import visible
    from callwright.errors import DataError
    from callwright.walk.task_rows.reading import read_tasks
    from callwright_plugins.task_files.checking import NO_PROGRAM, complaint

    app = ctx.ensure_object(App)
    tasks = read_tasks(file, any_version=any_version, trust=trust, registry=app.registry)
    if not len(tasks):  # nothing that holds: most often a synthesis that rejected all it made
        raise DataError(f"{file} holds no tasks")
    wrong: list[dict[str, str]] = []
    without = 0
    with reporter() as bars:
        bars.start("tasks", len(tasks))
        for place in range(len(tasks)):
            try:
                task = tasks[place]
                said = complaint(task)
            except DataError as error:
                wrong.append({"place": tasks.where(place), "task": "", "wrong": str(error)})
            else:
                without += said == NO_PROGRAM
                if said:
                    wrong.append({"place": tasks.where(place), "task": task.id, "wrong": said})
            bars.advance()
        bars.finish()
    held = len(tasks) - len(wrong)
    if as_json:
        click.echo(
            json.dumps({"tasks": len(tasks), "hold": held, "without_program": without, "wrong": wrong}, indent=2)
        )
    else:
        for one in wrong[:_NAMED]:
            click.echo(visible(one["wrong"] if not one["task"] else f"{one['place']}: {one['task']}: {one['wrong']}"))
        if len(wrong) > _NAMED:
            click.echo(f"… and {len(wrong) - _NAMED:,} more")
        told = f"; {without:,} have no program, of these the world alone was opened" if without else ""
        click.echo(f"{held:,} of {len(tasks):,} tasks hold{told}")
    if wrong:
        ctx.exit(1)
