"""``callwright corpus export``, ``corpus import`` and ``corpus build``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from callwright.commands.options import ComponentName, refuse_existing, refuse_inputs, replace_option
from callwright.plugins import Registry
from callwright_plugins.depthbench import NAME, NAME_1_1


def _registry(obj: object) -> Registry:
    from callwright.plugins import default_registry

    registry = getattr(obj, "registry", None)
    return registry if isinstance(registry, Registry) else default_registry()


def _options(texts: tuple[str, ...]) -> dict[str, object]:
    from callwright.errors import UsageError

    made: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"an option of a corpus is NAME=VALUE, not {text!r}")
        try:
            made[name] = json.loads(value)
        except ValueError:
            made[name] = value
    return made


@click.command("export")
@click.argument("corpus_name", type=ComponentName("corpus"), metavar="CORPUS")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="File, or folder (official).")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "official", "parquet", "openai"]),
    default="jsonl",
    show_default=True,
    help="Tasks as lines, the released benchmark's files, a table, or chats of the references.",
)
@click.option("--split", "splits", multiple=True, metavar="NAME", help="Only these splits.")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of the corpus.")
@replace_option
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON.")
@click.pass_obj
def export(
    obj: object,
    corpus_name: str,
    output: Path,
    form: str,
    splits: tuple[str, ...],
    options: tuple[str, ...],
    overwrite: bool,
    as_json: bool,
) -> None:
    """Write a corpus to a file: one task a row with its reference program and answer.

    jsonl and parquet are files of tasks, as callwright tasks export writes them; official is the released benchmark's
    format (a folder with queries.json and function_definitions.json); openai has chat rows with tools.
    """
    from callwright_plugins.depthbench.exchange import DEFINITIONS, QUERIES, write

    files = [output / QUERIES, output / DEFINITIONS] if form == "official" else [output]
    refuse_existing(output, *files, overwrite=overwrite)
    registry = _registry(obj)
    corpus = registry.create("corpus", corpus_name, **_options(options))
    count = write(corpus, output, form, splits, registry)
    click.echo(json.dumps({"rows": count, "output": str(output)}) if as_json else f"{count} tasks in {output}")


@click.command("import")
@click.argument("source", type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="The file of tasks to write.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "official", "parquet"]),
    required=True,
    help="What SOURCE is: tasks as lines, the released benchmark's files, or a table.",
)
@replace_option
@click.option("--json", "as_json", is_flag=True, help="Print the counts as JSON.")
@click.pass_obj
def import_(obj: object, source: Path, output: Path, form: str, overwrite: bool, as_json: bool) -> None:
    """Read exported tasks back into a file of tasks, which the corpus depthbench-v1 takes as its option `file`."""
    from callwright.walk.task_rows.writing import write_tasks
    from callwright_plugins.depthbench import NAME
    from callwright_plugins.depthbench.corpus import read_task
    from callwright_plugins.depthbench.exchange import read

    refuse_inputs(output, source)
    refuse_existing(output, overwrite=overwrite)
    registry = _registry(obj)
    environment = registry.create("environment", NAME)
    tasks = (read_task(row, environment) for row in read(source, form, registry, NAME))
    count = write_tasks(output, tasks, about={"corpus": NAME}, registry=registry)
    click.echo(json.dumps({"rows": count, "output": str(output)}) if as_json else f"{count} tasks in {output}")


@click.command("build")
@click.argument("corpus_name", metavar="[CORPUS]", default=NAME, type=click.Choice([NAME, NAME_1_1]))
@click.option("--check", is_flag=True, help="Write nothing; fail if a file would change.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Another folder than the package's own.")
@click.pass_context
def build(ctx: click.Context, corpus_name: str, check: bool, output: Path | None) -> None:
    """Draw and prove DepthBench again, and write it (or compare it) where it is shipped.

    CORPUS is depthbench-v1 (which it is if nothing is said) or depthbench-v1.1.
    """
    from callwright_plugins.depthbench import build as building
    from callwright_plugins.depthbench.world import VERSIONS

    version = VERSIONS[corpus_name]
    same = building.build(output or building.DATA, check=check, report=click.echo, version=version)
    click.echo("the files are as they were" if same else "the files differ" if check else "the files are written")
    if check and not same:
        ctx.exit(1)
