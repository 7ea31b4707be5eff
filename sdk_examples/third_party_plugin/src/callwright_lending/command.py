"""``callwright lending hasty``: a command of ours, made of what Callwright's own commands are made of."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click

import callwright as cw
from callwright.commands import App, BadRow, RowFile, find_task, make_pipeline, options, say, screen, table, text
from callwright_lending.rewards import LookFirst


@click.command("hasty")
@click.argument("source", metavar="IN.jsonl")
@click.option("--corpus", default="lending-mini-v1", show_default=True, metavar="NAME", help="What the tasks are of.")
@options.data_option
@options.corpus_settings
@options.ir_option
@options.seed_option
@options.json_option
@click.pass_obj
def hasty(
    app: App,
    source: str,
    corpus: str,
    data: str | None,
    corpus_options: tuple[str, ...],
    ir: str,
    seed: int,
    as_json: bool,
) -> None:
    """List the completions that change something before they looked.

    IN.jsonl ('-': stdin; '.gz' is read too) has rows {"id", "task", "completion"}, as `callwright score` reads them. A
    row that cannot be read is reported with its line; the exit status is then 1.
    """
    given = options.corpus_keys(data, corpus_options)
    pipeline = make_pipeline(app.registry, corpus, given, ir=ir, seed=seed)
    found: list[tuple[str, cw.Evidence]] = []
    with RowFile(source) as rows:
        bad = 0
        for row in rows:
            try:
                found += _reasons(pipeline, row)
            except (BadRow, cw.UsageError) as error:
                bad += 1
                say(f"{rows.name}:{rows.number}: {error}")
    if as_json:
        click.echo(json.dumps([{"id": row_id, "call": one.call, "reason": one.reason} for row_id, one in found]))
    else:
        shown = table("id", "call", "what is wrong", right=(1,))
        for row_id, one in found:
            shown.add_row(text(row_id), text(one.call), text(one.reason))
        screen().print(shown)
    if bad:
        click.get_current_context().exit(1)


def _reasons(pipeline: cw.Pipeline, row: dict[str, object] | BadRow) -> Iterator[tuple[str, cw.Evidence]]:
    if isinstance(row, BadRow):
        raise row
    task, completion = row.get("task"), row.get("completion")
    if not isinstance(task, str) or not isinstance(completion, str):
        raise BadRow("the row needs 'task', the id of a task, and 'completion', a string")
    attempt = pipeline.attempt(find_task(pipeline, task), completion)
    for evidence in LookFirst().score(attempt).evidence:
        if evidence.call is not None:
            yield str(row.get("id", task)), evidence
