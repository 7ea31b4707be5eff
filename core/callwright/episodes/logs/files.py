"""Files of recorded conversations: JSON lines or one JSON document, plain or compressed, recognised as they are."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

from attrs import frozen

from callwright.compression.packing import unpacked
from callwright.errors import CallwrightError, DataError, MissingExtra, cannot_read

#: How much of a file its format is recognised by, in bytes.
HEAD: Final = 1 << 16
_PARQUET: Final = b"PAR1"
#: Columns that hold objects and lists, which Parquet files mostly have as texts.
_NESTED: Final = frozenset(
    "messages tools prompt completion items input output inputs outputs extra metadata request response calls".split()
)
#: Where the metadata of a Parquet file that we wrote say which of its columns hold JSON: no other one is decoded.
JSON_COLUMNS: Final = "callwright_json_columns"
#: The same, of its columns that hold conversations: what is empty in a message is a key that it does not have.
MESSAGE_COLUMNS: Final = "callwright_message_columns"
_UNREADABLE: Final = (OSError, EOFError, zlib.error)


@frozen
class Piece:
    """A value of a file: that of a line, or the whole of a document. ``where`` names it in errors: ``file:line``."""

    where: str
    number: int
    value: Any


def head_of(path: Path) -> bytes:
    """The first bytes of a file, unpacked; of a zip archive as they are.

    Raises :class:`callwright.errors.DataError` for a file that cannot be read.
    """
    try:
        with path.open("rb") as raw:
            first = raw.read(4)
            raw.seek(0)
            if first == _PARQUET:
                row = next(_parquet(path), None)
                return b"" if row is None else json.dumps(row.value, default=str).encode()[:HEAD]
            return raw.read(HEAD) if first == b"PK\x03\x04" else unpacked(raw, str(path)).read(HEAD)
    except _UNREADABLE as error:
        raise _damaged(path, error) from error


def pieces_of(path: Path) -> Iterator[Piece]:
    """The value of each line that is not blank; of a file that is one document over several lines, that document.

    Of a Parquet file it is each row, in which texts of JSON are decoded: in the columns that the file says hold JSON,
    or else in those that formats nest.

    Raises :class:`callwright.errors.DataError` with the line for what is no JSON, and for a file that cannot be read.
    """
    try:
        with path.open("rb") as raw:
            if raw.peek(4)[:4] == _PARQUET:
                yield from _parquet(path)
            else:
                yield from _read(path, unpacked(raw, str(path)))
    except CallwrightError:
        raise
    except _UNREADABLE as error:
        raise _damaged(path, error) from error


def _parquet(path: Path) -> Iterator[Piece]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra(f"{path}: Parquet", "data", "pyarrow") from error
    number = 0
    try:
        file = pyarrow.parquet.ParquetFile(path)
        told = file.schema_arrow.metadata or {}
        ours = frozenset(json.loads(told[JSON_COLUMNS.encode()])) if JSON_COLUMNS.encode() in told else None
        typed = json.loads(told.get(MESSAGE_COLUMNS.encode(), b"[]"))
        for batch in file.iter_batches(batch_size=256):
            for row in batch.to_pylist():
                number += 1
                value = {name: _decoded(name, held, ours) for name, held in row.items() if held is not None}
                for name in value.keys() & typed:
                    value[name] = [_message(one) for one in value[name]]
                yield Piece(f"{path}: row {number}", number, value)
    except (pyarrow.ArrowException, ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _message(row: Mapping[str, Any]) -> dict[str, Any]:
    """A message without the keys that it does not have, and so its calls."""
    found = {name: value for name, value in row.items() if value is not None or name == "content"}
    if calls := found.get("tool_calls"):
        found["tool_calls"] = [{name: one for name, one in call.items() if one is not None} for call in calls]
    return found


def _decoded(name: str, value: Any, ours: frozenset[str] | None) -> Any:
    if ours is not None:
        return parse(value.encode("utf-8")) if name in ours and isinstance(value, str) else value
    if name in _NESTED and isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return parse(value.encode("utf-8", "surrogatepass"))
        except (ValueError, RecursionError):
            return value
    return value


def peek(head: bytes) -> Any:
    """The first value in the first bytes of a file, as far as it is there; ``None`` where these hold no JSON.

    Of a list it is the first member, unless the list is empty.
    """
    from pydantic_core import from_json

    text = head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "ignore").lstrip()
    try:
        value = parse(text.partition("\n")[0].encode())
    except (ValueError, RecursionError):
        try:
            value = from_json(text, allow_partial=True)
        except (ValueError, RecursionError):
            return None
    return value[0] if isinstance(value, list) and value else value


def peeked(head: bytes) -> Mapping[str, Any]:
    """The same, of a file whose first value is an object; empty for any other."""
    value = peek(head)
    return value if isinstance(value, dict) else {}


def _read(path: Path, file: IO[bytes]) -> Iterator[Piece]:
    for number, line in enumerate(file, 1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.isspace() or not line:
            continue
        try:
            value = parse(line)
        except (ValueError, RecursionError) as error:
            if number > 1 and not _begins(line):
                raise DataError(f"{path}:{number}: {reason(error)}") from error
            yield _document(path, number, line, file, error)
            return
        yield Piece(f"{path}:{number}", number, value)


def _begins(line: bytes) -> bool:
    """Whether a document of several lines begins so."""
    return line.strip() in (b"{", b"[")


def _document(path: Path, number: int, line: bytes, file: IO[bytes], first: Exception) -> Piece:
    rest = file.read()
    if not rest.strip():
        raise DataError(f"{path}:{number}: {reason(first)}") from first
    try:
        return Piece(str(path), number, parse(line + rest))
    except (ValueError, RecursionError) as error:
        at = error.lineno - 1 if isinstance(error, json.JSONDecodeError) and _begins(line) else 0
        raise DataError(f"{path}:{number + at}: {reason(error)}") from error


def parse(text: bytes) -> Any:
    """The value of a JSON text. Raises ``ValueError`` and ``RecursionError``."""
    from pydantic_core import from_json  # here: who only asks for help need not wait for it

    try:
        return from_json(text, cache_strings="keys")
    except (ValueError, RecursionError):
        return json.loads(text)  # which also takes halves of surrogate pairs, and deeper nestings


def reason(error: Exception) -> str:
    """Why a text is no JSON."""
    if isinstance(error, RecursionError):
        return "nested too deeply to be read"
    told = str(error)
    if isinstance(error, json.JSONDecodeError):  # some of its messages end in "at"
        told = f"{error.msg.removesuffix(' at')} at column {error.colno}"
    return f"not valid JSON: {told}"


def _damaged(path: Path, error: Exception) -> DataError:
    if isinstance(error, OSError) and error.strerror:
        return cannot_read(path, error)
    return DataError(f"{path} cannot be read: {error}")
