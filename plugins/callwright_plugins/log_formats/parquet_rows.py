"""Rows of ``callwright import`` as Parquet: a column for each key that a row has, in the order in which keys appear.

A column of texts, flags, integers or floats is one of that type. Every other one holds JSON as text, since no two logs
have the same arguments, and the metadata of the file names it, so that reading gives the rows that were written
(:func:`callwright.episodes.logs.files.pieces_of`). An empty cell is a key that the row does not have.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

from callwright.episodes.logs.files import JSON_COLUMNS
from callwright.errors import MissingExtra, RunError
from callwright.language.long_numbers import json_line, json_value

#: Rows of a group, which is what is held at a time.
_GROUP: Final = 1024
_JSON: Final = "json"


class ParquetSink:
    """A Parquet file of lines of JSON. It is there whole or not at all.

    The lines wait in a file beside the target, since only the last one says what the columns are.
    """

    def __init__(self, target: str) -> None:
        self.path = Path(target)
        self._rows = self.path.with_name(self.path.name + ".rows")
        self._part = self.path.with_name(self.path.name + ".part")
        self._file: IO[bytes] | None = None
        #: The kind of each column, by its name.
        self._kinds: dict[str, str] = {}

    def __enter__(self) -> ParquetSink:
        """Open the file.

        Raises :class:`callwright.errors.RunError` if it cannot be written, and
        :class:`callwright.errors.MissingExtra` without pyarrow.
        """
        try:
            self._arrow, self._parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
        except ModuleNotFoundError as error:
            raise MissingExtra("the Parquet format", "data", "pyarrow") from error
        with self._errors():
            self._file = self._rows.open("w+b")
        return self

    def write(self, line: str) -> None:
        """Add a row, as a line of JSON. Raises :class:`callwright.errors.RunError` if it does not fit."""
        assert self._file is not None
        for name, value in json_value(line).items():
            kind = _kind(value)
            if self._kinds.setdefault(name, kind) != kind:
                self._kinds[name] = _JSON
        with self._errors():
            self._file.write(line.encode("utf-8", "surrogatepass"))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Write the columns, and put the file in its place; after an error nothing is left of it."""
        assert self._file is not None
        try:
            if kind is None:
                with self._errors():
                    self._finish(self._file)
        finally:
            self._file.close()
            for scratch in (self._rows, self._part):
                with contextlib.suppress(OSError):
                    scratch.unlink()

    def _finish(self, file: IO[bytes]) -> None:
        arrow = self._arrow
        types = {"text": arrow.string(), "flag": arrow.bool_(), "integer": arrow.int64(), "float": arrow.float64()}
        nested = [name for name, kind in self._kinds.items() if kind == _JSON]
        columns = [(name, types.get(kind, arrow.string())) for name, kind in self._kinds.items()]
        schema = arrow.schema(columns, metadata={JSON_COLUMNS: json.dumps(nested)})
        file.seek(0)
        with self._parquet.ParquetWriter(str(self._part), schema, compression="zstd") as writer:
            while lines := list(islice(file, _GROUP)):
                rows = [json_value(line.decode("utf-8", "surrogatepass")) for line in lines]
                cells = {name: [self._cell(name, row) for row in rows] for name in self._kinds}
                writer.write_table(arrow.table(cells, schema=schema))
        self._part.replace(self.path)

    def _cell(self, name: str, row: Mapping[str, Any]) -> Any:
        if name not in row or self._kinds[name] != _JSON:
            return row.get(name)
        return json_line(row[name]).decode("utf-8").removesuffix("\n")

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(f"{self.path} cannot be written: {error.strerror or error}") from error


def _kind(value: Any) -> str:
    """The kind of column that holds a value of JSON."""
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int):
        return "integer" if -(2**63) <= value < 2**63 else _JSON
    if isinstance(value, float):
        return "float"
    # Half of a surrogate pair is no text of Parquet, but has an escape in JSON.
    return "text" if isinstance(value, str) and not any("\ud800" <= one <= "\udfff" for one in value) else _JSON
