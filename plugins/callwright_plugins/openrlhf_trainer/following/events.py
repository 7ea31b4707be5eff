"""TensorBoard's event files, read while they are written: the scalars that OpenRLHF's own logger keeps.

A file is a row of frames (TFRecord): the length of the data in 8 bytes, their checksum, the data, its checksum.
Checksums are CRC-32C, rotated and shifted so that data with checksums in it has others. The data is TensorBoard's
protocol buffer ``Event``: field 2 is the step, field 5 the summary, in which field 1 is a value with a tag (1) and a
scalar (2, in single precision). All else in there is passed over.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from attrs import frozen

#: Bytes before and after the data of a frame.
_HEAD: Final = 12
_FOOT: Final = 4
#: Kinds of fields that end by themselves, and the lengths of those that do not say theirs.
_VARINT: Final = 0
_BYTES: Final = 2
_FIXED: Final = {1: 8, 5: 4}


@frozen
class Scalar:
    """One number of one step."""

    step: int
    tag: str
    value: float


class EventReader:
    """The event files of a folder and the folders in it, but for those that are there already.

    A frame that is not whole yet, or not visible yet on a shared file system, is asked for again the next time.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._before = frozenset(self._files())
        self._read: dict[Path, int] = {}
        self._behind: dict[Path, int] = {}

    def read(self) -> list[Scalar]:
        """The scalars that have come since, in the order in which each file has them."""
        found: list[Scalar] = []
        for path in self._files():
            if path in self._before:
                continue
            at = self._read.get(path, 0)
            with path.open("rb") as file:
                file.seek(at)
                data = file.read()
            whole = 0
            for event, end in frames(data):
                found += scalars(event)
                whole = end
            self._read[path] = at + whole
            self._behind[path] = len(data) - whole
        return found

    @property
    def unread(self) -> dict[Path, int]:
        """Files with bytes behind the last whole frame, as of the last reading, and where those begin."""
        return {path: self._read[path] for path, count in self._behind.items() if count}

    @property
    def seen(self) -> bool:
        """Whether there is a file at all."""
        return bool(self._read)

    def _files(self) -> list[Path]:
        return sorted(self._folder.rglob("events.out.tfevents.*"))


def frames(data: bytes) -> Iterator[tuple[bytes, int]]:
    """The data of each frame up to the first that is not whole, or has another checksum, and where the frame ends."""
    at = 0
    while at + _HEAD <= len(data):
        length, check = struct.unpack_from("<QI", data, at)
        start, end = at + _HEAD, at + _HEAD + length
        if masked_crc(data[at : at + 8]) != check or end + _FOOT > len(data):
            return
        event = data[start:end]
        if masked_crc(event) != struct.unpack_from("<I", data, end)[0]:
            return
        at = end + _FOOT
        yield event, at


def scalars(event: bytes) -> Iterator[Scalar]:
    """The scalars of an ``Event``; none of one that is about something else, or is no protocol buffer."""
    try:
        step, summaries = 0, []
        for number, value in _fields(event):
            if number == 2 and isinstance(value, int):
                step = value
            elif number == 5 and isinstance(value, bytes):
                summaries.append(value)
        for summary in summaries:
            for number, value in _fields(summary):
                fields = dict(_fields(value)) if number == 1 and isinstance(value, bytes) else {}
                tag, scalar = fields.get(1), fields.get(2)
                if isinstance(tag, bytes) and isinstance(scalar, bytes):
                    yield Scalar(step, tag.decode("utf-8", "replace"), shortest(scalar))
    except (IndexError, struct.error):
        return


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protocol buffer: varints as numbers, all else as bytes. Raises ``IndexError`` at its end."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            length, at = _varint(message, at)
        else:
            length = _FIXED.get(kind, len(message) + 1)  # groups are none of TensorBoard's
        if at + length > len(message):
            raise IndexError("a field goes beyond the message")
        yield key >> 3, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Seven bits a byte, the lowest first; and where it ends."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def shortest(packed: bytes) -> float:
    """A number of single precision, given as its 4 bytes: the shortest decimal that is rounded to it, such as 1e-06."""
    (value,) = struct.unpack("<f", packed)
    if value - value != 0:  # no number, or infinite
        return float(value)
    for digits in range(1, 9):
        near = float(f"{value:.{digits}g}")
        if abs(near) < _LARGEST and struct.pack("<f", near) == packed:
            return near
    return float(f"{value:.9g}")


_LARGEST: Final = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]


def _table() -> tuple[int, ...]:
    """The remainders of single bytes under the polynomial of Castagnoli, bits reversed."""
    made = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        made.append(byte)
    return tuple(made)


_REMAINDERS: Final = _table()


def masked_crc(data: bytes) -> int:
    """The checksum of a frame's data: CRC-32C, rotated right by 15 bits, plus a constant."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _REMAINDERS[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
