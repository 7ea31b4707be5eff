"""Where the entries of an overlap come from: a file of rows, a folder of them, a benchmark or a corpus."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from callwright.commands.app import App
from callwright.commands.pipelines import make_benchmark

if TYPE_CHECKING:
    from callwright.measuring.overlap.entries import Entry

#: How files of rows are called. A ``.json`` file may hold a row a line, too, as BFCL's do, or one list or object.
_ROWS: Final = (".jsonl", ".json", ".jsonl.gz", ".json.gz", ".jsonl.zst", ".json.zst")


def entries_named(app: App, name: str, given: Mapping[str, Any], split: str | None) -> Iterator[Entry]:
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
