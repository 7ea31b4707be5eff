"""``callwright benchmark contamination``: what training data shares with what a model is measured on."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from callwright.commands import options
from callwright.commands.app import App
from callwright.measuring.overlap import CONTAMINATED, KINDS

if TYPE_CHECKING:
    from callwright.measuring.overlap.findings import Overlap


@click.command("contamination")
@click.option("--train", required=True, metavar="CORPUS|FILE", help="What is trained on: a corpus, a file or a folder.")
@click.option("--split", metavar="NAME", help="The split of a training corpus. Default: train, else all of them.")
@click.option(
    "--against",
    "names",
    multiple=True,
    required=True,
    metavar="NAME...",
    help="What is measured on: a benchmark, a corpus, a file of rows or a folder of them. May be repeated.",
)
@click.argument("others", nargs=-1, metavar="[NAME]...")
@options.data_option
@options.corpus_settings
@click.option(
    "--near",
    default="0.5",
    show_default=True,
    metavar="J",
    help="Jaccard similarity over runs of 13 characters from which prompts are near-equal.",
)
@click.option(
    "--fail-on",
    type=click.Choice(KINDS),
    multiple=True,
    help="The kinds that make the exit status 1. May be repeated. Default: id, prompt, near.",
)
@click.option("--show", default=3, show_default=True, type=click.IntRange(0), help="Findings of a kind in the table.")
@click.option("-o", "--output", metavar="OUT.jsonl", help="Where all findings go, a row each.")
@options.json_option
@click.pass_obj
def contamination(
    app: App,
    train: str,
    split: str | None,
    names: tuple[str, ...],
    others: tuple[str, ...],
    data: str | None,
    corpus_options: tuple[str, ...],
    near: str,
    fail_on: tuple[str, ...],
    show: int,
    output: str | None,
    as_json: bool,
) -> None:
    """Find what training data shares with benchmarks.

    Shared are ids, equal prompts, near-equal ones, runs of 13 words, schemas of tools and gold calls. The exit status
    is 1 if something of --fail-on is.
    """
    from callwright.commands.overlaps.entries import entries_named
    from callwright.errors import UsageError
    from callwright.measuring.overlap.findings import Source, overlaps
    from callwright.training.run_folder import write_atomically

    if output is not None:
        options.refuse_stdout(Path(output))
    try:
        least = Fraction(near)
    except (ValueError, ZeroDivisionError) as error:
        raise UsageError(f"--near {near}: expected a number above 0 and at most 1, such as 0.5") from error
    if not 0 < least <= 1:
        raise UsageError(f"--near {near}: it has to be above 0 and at most 1")
    given = options.corpus_keys(data, corpus_options)
    sources = []
    for name in dict.fromkeys([*names, *others]):
        entries = list(entries_named(app, name, given, None))
        if not entries:
            raise UsageError(f"{name} holds no rows: there is nothing to hold training data against")
        sources.append(Source(name, entries, least))
    count, found = overlaps(entries_named(app, train, given, split or "train"), sources)
    if not count:
        raise UsageError(f"{train} holds no rows: there is nothing to look for")
    if output is not None:
        rows = [{"source": one.against, **finding.to_json()} for one in found for finding in one.findings]
        write_atomically(Path(output), "".join(json.dumps(row) + "\n" for row in rows))
    kinds = fail_on or CONTAMINATED
    contaminated = any(one.train[kind] for one in found for kind in kinds)
    if as_json:
        result = {"train": train, "entries": count, "contaminated": contaminated, "kinds": list(kinds)}
        click.echo(json.dumps({**result, "against": [_as_json(one) for one in found]}, indent=2))
    else:
        for one in found:
            _draw(train, count, one, show)
    if contaminated:
        click.get_current_context().exit(1)


def _as_json(one: Overlap) -> dict[str, Any]:
    counts = {kind: {"train": one.train[kind], "against": one.hit[kind]} for kind in one.train}
    findings = [finding.to_json() for finding in one.findings]
    return {"name": one.against, "entries": one.entries, "shared": counts, "findings": findings}


def _draw(train: str, count: int, one: Overlap, show: int) -> None:
    from callwright.commands.terminal import screen, table, text

    console = screen()
    title = f"{train} ({count:,}) against {one.against} ({one.entries:,})"
    shown = table("shared", "of training", "of the other", right=(1, 2), title=title)
    for kind, number in one.train.items():
        shown.add_row(text(kind), text(f"{number:,}"), text(f"{one.hit[kind]:,}"))
    console.print(shown)
    for kind in one.train:
        for finding in [each for each in one.findings if each.kind == kind][:show]:
            more = f" and {finding.more:,} more" if finding.more else ""
            near = "" if finding.similarity is None or kind == "prompt" else f" {finding.similarity:.2f}"
            console.print(text(f"{kind}{near}: {finding.train} = {finding.against}{more}: {finding.what}"))
