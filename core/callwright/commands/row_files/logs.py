"""Logs as commands are told of them: a file, its format, the tools, the truths, the corpus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from callwright.commands.options import key_values
from callwright.episodes.logs.files import pieces_of
from callwright.episodes.logs.logged import ORIGIN
from callwright.episodes.logs.reading import read_log
from callwright.errors import DataError

if TYPE_CHECKING:
    from callwright.episodes.logs.log import Log
    from callwright.plugins import Registry


@frozen
class LogSource:
    """Where logs come from. ``form`` is the name of a format, or ``auto``; ``options`` are the format's, ``K=V``."""

    path: str
    form: str = "auto"
    tools: str | None = None
    truths: str | None = None
    options: tuple[str, ...] = ()
    corpus: str | None = None
    corpus_options: Mapping[str, Any] = field(factory=dict)


def read_logs(registry: Registry, source: LogSource) -> Iterator[Log]:
    """The logs, with what is known of their tasks. Raises :class:`callwright.errors.DataError` with the line."""
    from callwright.episodes.logs.scoring import truthful  # which takes as long to import as all that rows need

    truths = {} if source.truths is None else read_truths(source.truths)
    task = registry.create("corpus", source.corpus, **source.corpus_options) if source.corpus else None
    keys = key_values(source.options, "--format-option")
    form = None if source.form == "auto" else source.form
    for log in read_log(source.path, form, tools=source.tools, task=task, registry=registry, **keys):
        origin = log.task.facts.get(ORIGIN)
        stated = origin.get("truth") if isinstance(origin, Mapping) else None
        where, truth = truths.get(log.task.id, (source.path, stated))
        try:
            told = truthful(log, truth, registry)
        except DataError as error:
            raise DataError(f"{where}: the truth of the log {log.task.id!r}: {error}") from error
        yield told


def read_truths(path: str) -> dict[str, tuple[str, Any]]:
    """Truths by the ids of logs, each with its place in the file, of a file of rows ``{"id", "truth"}``.

    Raises :class:`callwright.errors.DataError`.
    """
    found = {}
    for piece in pieces_of(Path(path)):
        for row in piece.value if isinstance(piece.value, list) else [piece.value]:
            if not isinstance(row, Mapping) or not {"id", "truth"} <= row.keys():
                raise DataError(f"{piece.where}: a truth is a row with the 'id' of a log and its 'truth'")
            found[str(row["id"])] = piece.where, row["truth"]
    return found
