"""Rows of ``callwright import`` as Parquet: a column for each key that a row has, in the order in which keys appear.

A column of texts, flags, integers or floats is one of that type; in rows for training conversations are lists of
messages, as trainers take them (TRL's conversational formats). Every other column holds JSON as text, since no two logs
have the same arguments, and the metadata of the file names it, so that reading gives the rows that were written
(:func:`callwright.episodes.logs.files.pieces_of`). An empty cell is a key that the row does not have.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterator, Mapping
from importlib import import_module
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final

from callwright.episodes.logs.files import JSON_COLUMNS, MESSAGE_COLUMNS
from callwright.errors import MissingExtra, RunError
from callwright.language.long_numbers import json_line, json_value

#: Rows of a group, which is what is held at a time.
_GROUP: Final = 1024
_JSON: Final = "json"
#: What a message of a conversation may hold. One that holds more, or parts in place of a text, is JSON.
_MESSAGE: Final = ("role", "content", "name", "reasoning_content", "tool_calls", "tool_call_id")


class ParquetSink:
    """A Parquet file of lines of JSON. It is there whole or not at all.

    The lines wait in a file beside the target, since only the last one says what the columns are. ``conversations``
    are the columns that hold lists of messages in OpenAI's format.
    """

    def __init__(self, target: str, conversations: Collection[str] = ()) -> None:
        self.path, self._conversations = Path(target), frozenset(conversations)
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
            kind = "messages" if name in self._conversations and _are_messages(value) else _kind(value)
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
        types = {
            "text": arrow.string(),
            "flag": arrow.bool_(),
            "integer": arrow.int64(),
            "float": arrow.float64(),
            "messages": self._messages(),
        }
        nested = [name for name, kind in self._kinds.items() if kind == _JSON]
        columns = [(name, types.get(kind, arrow.string())) for name, kind in self._kinds.items()]
        typed = [name for name, kind in self._kinds.items() if kind == "messages"]
        told = {JSON_COLUMNS: json.dumps(nested), MESSAGE_COLUMNS: json.dumps(typed)}
        schema = arrow.schema(columns, metadata=told)
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

    def _messages(self) -> Any:
        arrow, text = self._arrow, self._arrow.string()
        function = arrow.struct([("name", text), ("arguments", text)])
        calls = arrow.list_(arrow.struct([("id", text), ("type", text), ("function", function)]))
        return arrow.list_(arrow.struct([(name, calls if name == "tool_calls" else text) for name in _MESSAGE]))

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


def _are_messages(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_message, value))


def _is_message(value: Any) -> bool:
    """Whether a message loses nothing: each has a content, which may be ``null``, and no other key is."""
    if not isinstance(value, dict) or not set(_MESSAGE).issuperset(value) or "content" not in value:
        return False
    texts = [one for name, one in value.items() if name != "tool_calls" and (one is not None or name != "content")]
    calls = value.get("tool_calls", [])
    return all(_kind(one) == "text" for one in texts) and isinstance(calls, list) and all(map(_is_call, calls))


def _is_call(value: Any) -> bool:
    if not isinstance(value, dict) or not {"id", "type", "function"}.issuperset(value):
        return False
    function = value.get("function")
    if not isinstance(function, dict) or function.keys() != {"name", "arguments"}:
        return False
    return all(_kind(one) == "text" for one in (*function.values(), value.get("id", ""), value.get("type", "")))
