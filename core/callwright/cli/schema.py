"""``callwright schema``: the JSON Schema of every file that Callwright reads or writes."""

from __future__ import annotations

import json

import click

from callwright.commands import options


@click.command("schema")
@click.argument("name", required=False)
@options.json_option
def schema(name: str | None, as_json: bool) -> None:
    """Print the JSON Schema (2020-12) of the format NAME; without NAME list the formats.

    JSONL formats describe one row.
    """
    from callwright.commands.file_formats import FORMATS, schema_of

    if name is not None:
        click.echo(json.dumps(schema_of(name), indent=2, ensure_ascii=False))
    elif as_json:
        click.echo(json.dumps(dict(FORMATS), indent=2))
    else:
        width = max(map(len, FORMATS))
        for key, about in FORMATS.items():
            click.echo(f"{key:<{width}}  {about}")
