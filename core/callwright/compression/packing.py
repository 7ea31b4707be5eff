"""Compressed rows: gzip and Zstandard, recognised by their first bytes and not by the name.

Zstandard needs the extra ``zstd``: the standard library of Python 3.11 has none.
"""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import IO, Any, Final, cast

from callwright.errors import DataError, MissingExtra, cannot_read

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
#: What is not read, by how it begins, and what to do about it.
_FOREIGN: Final = (
    (b"BZh", "is compressed by bzip2: unpack it with bunzip2"),
    (b"\xfd7zXZ", "is compressed by xz: unpack it with unxz"),
    (b"PK\x03\x04", "is a zip archive: unpack it"),
    (b"PAR1", "is a Parquet file: write its rows as JSONL"),
    (b"\xff\xfe", "is UTF-16: save it as UTF-8"),
    (b"\xfe\xff", "is UTF-16: save it as UTF-8"),
)
_HEAD: Final = 6
#: Compressed bytes that are unpacked at a time. A piece can grow much: the less at a time, the less memory.
_PIECE: Final = 1 << 12


def unpacked(file: IO[bytes], name: str) -> IO[bytes]:
    """The file as it would be read unpacked; ``file`` itself if it is not compressed.

    Raises :class:`callwright.errors.DataError` for a kind of file that holds no rows, and
    :class:`callwright.errors.MissingExtra` for Zstandard without its package.
    """
    head = _head(file)
    if head.startswith(_GZIP):
        return cast(IO[bytes], io.BufferedReader(_GzipMembers(file), 1 << 17))
    if head.startswith(_ZSTD) or (head[1:4] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50):  # or a skippable frame
        return cast(IO[bytes], io.BufferedReader(ZstdFrames(file, name), 1 << 17))
    for magic, what in _FOREIGN:
        if head.startswith(magic):
            raise DataError(f"{name} {what}")
    return file


def unpacked_text(path: Path) -> str:
    """The text of a file, whether it is compressed or not.

    Raises :class:`callwright.errors.DataError` for one that is not there, is damaged, or is no UTF-8.
    """
    try:
        with path.open("rb") as file:
            return unpacked(file, str(path)).read().decode("utf-8")
    except (OSError, EOFError) as error:
        raise cannot_read(path, error) from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def is_packed(target: str) -> bool:
    """Whether a file of this name is written compressed."""
    return target.endswith((".gz", ".zst"))


def packed(data: bytes, target: str) -> bytes:
    """Bytes as a file of this name takes them: a gzip member or a Zstandard frame of their own, or as they are.

    The same bytes always give the same ones. Raises :class:`callwright.errors.MissingExtra`.
    """
    if target.endswith(".gz"):
        return gzip.compress(data, compresslevel=6, mtime=0)
    if target.endswith(".zst"):
        frame: bytes = _zstandard(target).ZstdCompressor(level=3).compress(data)
        return frame
    return data


class _GzipMembers(io.RawIOBase):
    """One gzip member after another. What is damaged within is an ``OSError``, as a damaged head is."""

    def __init__(self, file: IO[bytes]) -> None:
        self._members = gzip.GzipFile(fileobj=file)

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Unpack into ``buffer``; 0 at the end."""
        try:
            return self._members.readinto(buffer)
        except zlib.error as error:
            raise OSError(f"damaged gzip data: {error}") from error


class ZstdFrames(io.RawIOBase):
    """One Zstandard frame after another. A file that ends within one raises ``EOFError``, as gzip does."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._library = _zstandard(name)
        self._file = file
        self._frame: Any = None
        self._left = b""  # of the file, after the end of a frame
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Unpack into ``buffer``; 0 at the end."""
        while not self._ready:
            piece = self._left or self._file.read(_PIECE)
            self._left = b""
            if not piece:
                if self._frame is not None:
                    raise EOFError("the Zstandard frame is not whole")
                return 0
            self._unpack(piece)
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def _unpack(self, piece: bytes) -> None:
        if self._frame is None:
            self._frame = self._library.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
        try:
            self._ready = memoryview(self._frame.decompress(piece))
        except self._library.ZstdError as error:
            raise OSError(f"damaged Zstandard data: {error}") from error
        if self._frame.eof:
            self._left, self._frame = self._frame.unused_data, None


def _head(file: IO[bytes]) -> bytes:
    peek = getattr(file, "peek", None)
    if peek is not None:  # waits for the first bytes of a pipe, and takes none
        return bytes(peek(_HEAD)[:_HEAD])
    if not file.seekable():
        return b""
    begin = file.tell()
    head = file.read(_HEAD)
    file.seek(begin)
    return head


def _zstandard(name: str) -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtra(f"{name}: Zstandard", "zstd", "zstandard") from error
    return zstandard
