"""Files of rows, a row at a time: JSON lines, a JSON list, or Parquet. Memory does not grow with the file."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from callwright.commands import jsonl
from callwright.compression.packing import unpacked
from callwright.errors import DataError, MissingExtra, NotThere

_PIECE: Final = 1 << 20
_BATCH: Final = 256
_BLANK: Final = " \t\r\n"


def read_values(path: Path, advance: Callable[[int], object] = lambda size: None) -> Iterator[Any]:
    """The values of a file; ``None`` for a line that is not valid JSON. ``advance`` hears of bytes that were read.

    Raises :class:`callwright.errors.DataError` for a file that is missing or damaged, and
    :class:`callwright.errors.MissingExtra` for Parquet without pyarrow.
    """
    if not path.is_file():
        raise NotThere(f"there is no file {path}: name the file of the data set that you downloaded")
    if path.suffix == ".parquet":
        yield from _parquet(path, advance)
        return
    try:
        with path.open("rb") as raw, unpacked(raw, str(path)) as file:
            begin = file.read(_PIECE)
            is_list = begin.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"[")
            if is_list:
                before = 0
                for value in _listed(path, begin.removeprefix(codecs.BOM_UTF8), file.read):
                    advance(raw.tell() - before)
                    before = raw.tell()
                    yield value
                return
    except (OSError, EOFError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    with jsonl.RowFile(str(path)) as rows:
        before = 0
        for row in rows:
            advance(rows.position - before)
            before = rows.position
            yield None if isinstance(row, jsonl.BadRow) else row


def _parquet(path: Path, advance: Callable[[int], object]) -> Iterator[Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra(f"reading {path}", "data", "pyarrow") from error
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            each = path.stat().st_size // max(1, file.metadata.num_rows)
            for batch in file.iter_batches(batch_size=_BATCH):
                advance(each * batch.num_rows)
                yield from batch.to_pylist()
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"{path} cannot be read as Parquet: {error}") from error


def _listed(path: Path, begin: bytes, read: Callable[[int], bytes]) -> Iterator[Any]:
    """The items of a JSON list, each as soon as it is there."""
    decoder, decode = json.JSONDecoder(), codecs.getincrementaldecoder("utf-8")()
    number, wanted = 0, _PIECE
    try:
        text = decode.decode(begin).lstrip(_BLANK)[1:]
        while True:
            text = text.lstrip(_BLANK)
            if text.startswith("]"):
                return
            position, more = 0, False
            while not more:
                try:
                    value, stop = decoder.raw_decode(text, position)
                except ValueError:
                    break
                rest = _after(text, stop)
                if rest >= len(text):  # a number may go on, and what follows is not yet known
                    break
                number += 1
                yield value
                if text[rest] == "]":
                    return
                if text[rest] != ",":
                    raise DataError(f"{path}: after item {number} of its list comes {text[rest]!r} instead of a comma")
                position = _after(text, rest + 1)
                more = position >= len(text)
                wanted = _PIECE
            piece = read(wanted)
            if not piece:
                raise DataError(f"{path}: its list breaks off or is damaged after item {number}")
            wanted *= 2  # an item that is longer than a piece is not tried again for every piece
            text = text[position:] + decode.decode(piece)
    except (UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{path} cannot be read after item {number} of its list: {error}") from error


def _after(text: str, position: int) -> int:
    while position < len(text) and text[position] in _BLANK:
        position += 1
    return position
