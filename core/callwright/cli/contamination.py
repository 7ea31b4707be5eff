"""``callwright benchmark contamination``: what training data shares with what a model is measured on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.pipelines import make_benchmark
from callwright.measuring.overlap import CONTAMINATED, KINDS

if TYPE_CHECKING:
    from callwright.measuring.overlap.entries import Entry
    from callwright.measuring.overlap.findings import Overlap

#: How files of rows are called. A ``.json`` file may hold a row a line, too, as BFCL's do, or one list or object.
_ROWS: Final = (".jsonl", ".json", ".jsonl.gz", ".json.gz", ".jsonl.zst", ".json.zst")


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
    from callwright.errors import UsageError
    from callwright.measuring.overlap.findings import Source, overlaps
    from callwright.training.run_folder import write_atomically

    try:
        least = Fraction(near)
    except (ValueError, ZeroDivisionError) as error:
        raise UsageError(f"--near {near}: expected a number above 0 and at most 1, such as 0.5") from error
    if not 0 < least <= 1:
        raise UsageError(f"--near {near}: it has to be above 0 and at most 1")
    given = options.corpus_keys(data, corpus_options)
    sources = []
    for name in dict.fromkeys([*names, *others]):
        entries = list(_entries(app, name, given, None))
        if not entries:
            raise UsageError(f"{name} holds no rows: there is nothing to hold training data against")
        sources.append(Source(name, entries, least))
    count, found = overlaps(_entries(app, train, given, split or "train"), sources)
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


# Where entries come from ----------------------------------------------------------------------------------------------


def _entries(app: App, name: str, given: Mapping[str, Any], split: str | None) -> Iterator[Entry]:
    """The entries of a file, a folder, a benchmark or a corpus, whichever has this name; files come first.

    With ``split`` it is training data, where a corpus comes before a benchmark.
    """
    from callwright.errors import UnknownName
    from callwright.measuring.benchmark import named_version
    from callwright.measuring.overlap.entries import entry_of_task

    path = Path(name)
    if path.exists():
        if path.is_dir():
            files = sorted(one for one in path.rglob("*") if one.name.endswith(_ROWS))
            yield from _with_truth(entry for file in files for entry in _rows(file))
        else:
            yield from _rows(path)
        return
    registry = app.registry
    corpora, benchmarks = registry.names("corpus"), registry.names("benchmark")
    if name in corpora and (split is not None or name not in benchmarks):
        corpus = registry.create("corpus", name, **given)
        splits = list(corpus.splits)
        chosen = [split] if split is not None and (split in splits or split != "train") else splits
        for each in chosen:
            for task in corpus[each]:
                yield entry_of_task(task)
        return
    bare = named_version(name)[0]
    if bare not in benchmarks:
        raise UnknownName("benchmark, corpus or file", name, sorted({*benchmarks, *corpora}))
    for task in make_benchmark(registry, name, given).tasks():
        yield entry_of_task(task)


def _with_truth(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Entries with a prompt take what rows of the same id without one say: truth is often in files of its own."""
    kept = list(entries)
    truths: dict[str, list[int]] = {}
    for place, entry in enumerate(kept):
        if not entry.prompt:
            for row_id in entry.ids:
                truths.setdefault(row_id, []).append(place)
    taken: set[int] = set()
    for place, entry in enumerate(kept if truths else ()):
        if entry.prompt:
            for other in dict.fromkeys(each for row_id in sorted(entry.ids) for each in truths.get(row_id, ())):
                kept[place] = kept[place].with_truth(kept[other])
                taken.add(other)
    yield from (entry for place, entry in enumerate(kept) if place not in taken)


def _rows(path: Path) -> Iterator[Entry]:
    """The rows of a file. Raises :class:`callwright.errors.DataError` with its line for one that is none."""
    from callwright.commands.jsonl import BadRow, RowFile
    from callwright.errors import DataError
    from callwright.measuring.overlap.entries import entry_of_row

    with RowFile(str(path)) as rows:
        for row in rows:
            where = f"{path.name}:{rows.number}"
            if isinstance(row, BadRow):
                if rows.number > 1:
                    raise DataError(f"{path}:{rows.number}: {row}")
                whole = _whole(path)
                if whole is None:
                    raise DataError(f"{path}:{rows.number}: {row}")
                for number, one in enumerate(whole, 1):
                    yield entry_of_row(one, f"{path.name}[{number}]")
                return
            row_id = row.get("id")
            yield entry_of_row(row, row_id if isinstance(row_id, str) and row_id else where)


def _whole(path: Path) -> Sequence[Mapping[str, Any]] | None:
    """The objects of a file that is one JSON value over many lines: a list, or an object by name."""
    from callwright.compression.packing import unpacked

    try:
        with path.open("rb") as file:
            read = json.load(unpacked(file, str(path)))
    except (ValueError, RecursionError, OSError, EOFError):
        return None
    if isinstance(read, dict):
        read = list(read.values()) if all(isinstance(one, dict) for one in read.values()) else [read]
    return read if isinstance(read, list) and all(isinstance(one, dict) for one in read) else None
