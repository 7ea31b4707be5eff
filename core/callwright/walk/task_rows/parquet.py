"""Tasks as Parquet: a column for each key of a row, the head in the metadata of the file.

Texts and numbers are columns of their type; everything else is JSON as text, since no two tasks have the same answer or
the same arguments. A table of other columns reads as a data set all the same (``datasets``, pandas, DuckDB).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from callwright.errors import DataError, MissingExtra, UsageError
from callwright.language.long_numbers import json_line, json_text
from callwright.walk.task_rows.head import Head
from callwright.walk.task_rows.lines import RowWriter
from callwright.walk.task_rows.schema import KEYS, MARK

_TEXTS: Final = ("id", "split", "query", "scenario", "structure", "returns")
_NUMBERS: Final = ("depth", "seed", "chain")
_FLAGS: Final = ("tells_costs",)
#: Rows of a group, which is what is held at a time.
_GROUP: Final = 4096


def _arrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ModuleNotFoundError as error:
        raise MissingExtra("the Parquet format", "data", "pyarrow") from error


class ParquetWriter(RowWriter):
    """Groups of rows are written as they come; the head is added where the file ends."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._arrow, self._parquet = _arrow()
        self._held: list[Mapping[str, Any]] = []
        self._file: Any = None

    def open(self) -> None:
        arrow = self._arrow
        kinds = {
            **dict.fromkeys(_TEXTS, arrow.string()),
            **dict.fromkeys(_NUMBERS, arrow.int64()),
            **dict.fromkeys(_FLAGS, arrow.bool_()),
        }
        self._schema = arrow.schema([(name, kinds.get(name, arrow.string())) for name in KEYS])
        self._file = self._parquet.ParquetWriter(str(self.scratch), self._schema, compression="zstd")

    def write(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        self._held.append(row)
        if len(self._held) >= _GROUP:
            self._flush()

    def _flush(self) -> None:
        columns = {name: [_cell(name, row.get(name)) for row in self._held] for name in KEYS}
        try:
            self._file.write_table(self._arrow.table(columns, schema=self._schema))
        except (self._arrow.ArrowException, UnicodeError, OverflowError) as error:
            raise UsageError(f"the rows cannot be written as Parquet, write them as .jsonl: {error}") from error
        self._held.clear()

    def finish(self, head: Head) -> None:
        if self._held:
            self._flush()
        self._file.add_key_value_metadata({MARK: json_text(head.to_json())})
        self._file.close()
        self._file = None
        self.scratch.replace(self.path)

    def close(self) -> None:
        """Leave nothing beside the target."""
        if self._file is not None:
            with contextlib.suppress(Exception):  # what is half-written goes away all the same
                self._file.close()
        super().close()


def _cell(name: str, value: Any) -> Any:
    if value is None or name in _TEXTS or name in _NUMBERS or name in _FLAGS:
        return value
    return json_text(value, ensure_ascii=False, allow_nan=False)


def read_parquet(path: Path) -> tuple[Any, Iterator[bytes]]:
    """The head of a file as JSON, ``None`` if it has none, and its rows as lines of JSON.

    Raises :class:`callwright.errors.DataError` for a file that is no Parquet, and
    :class:`callwright.errors.MissingExtra` without pyarrow.
    """
    arrow, parquet = _arrow()
    try:
        file = parquet.ParquetFile(str(path))
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a Parquet file: {error}") from error
    told = (file.schema_arrow.metadata or file.metadata.metadata or {}).get(MARK.encode())
    told = told or (file.metadata.metadata or {}).get(MARK.encode())
    try:
        head = None if told is None else json.loads(told)
    except ValueError as error:
        raise DataError(f"{path}: its head is no JSON: {error}") from error
    return head, _lines(path, file, arrow)


def _lines(path: Path, file: Any, arrow: Any) -> Iterator[bytes]:
    number = 0
    try:
        for batch in file.iter_batches(_GROUP):
            for entry in batch.to_pylist():
                number += 1
                yield json_line({name: _value(name, value) for name, value in entry.items() if value is not None})
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path}: row {number} cannot be read: {error}") from error
    finally:
        file.close()


def _value(name: str, value: Any) -> Any:
    plain = name in _TEXTS or name in _NUMBERS or name in _FLAGS or name not in KEYS
    return value if plain else json.loads(value)
