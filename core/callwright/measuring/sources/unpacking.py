"""Archives, unpacked: only plain files, only below the folder, never more than was said."""

from __future__ import annotations

import hashlib
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Final

from callwright.errors import DataError
from callwright.measuring.sources.source import Source

_PIECE: Final = 1 << 18
#: An archive does not have more members.
_MOST_MEMBERS: Final = 200_000


def unpack(archive: Path, source: Source, folder: Path) -> dict[str, str]:
    """Write what is taken of an archive below ``folder``; its files with their sha256.

    Raises :class:`callwright.errors.DataError` for an archive that is none, for a member whose path leaves the folder
    or that is no plain file, for one that comes twice, for more bytes than the source says, and if nothing is taken.
    """
    written: dict[str, str] = {}
    left = source.unpacked
    try:
        with _members(archive) as members:
            for number, (name, open_member) in enumerate(members):
                if number >= _MOST_MEMBERS:
                    raise DataError(f"{source.file} has more than {_MOST_MEMBERS:,} members")
                place = source.place_of(name)
                if place is None:
                    continue
                if open_member is None:
                    raise DataError(f"{source.file} holds {name!r}, which is no plain file: it is not unpacked")
                inside = _inside(name, place, source)
                if inside in written:
                    raise DataError(f"{source.file} holds {name!r} twice")
                target = folder / inside
                target.parent.mkdir(parents=True, exist_ok=True)
                digest = hashlib.sha256()
                with open_member as read, target.open("xb") as file:
                    while piece := read.read(_PIECE):
                        left -= len(piece)
                        if left < 0:
                            raise DataError(f"{source.file} holds more than the {source.unpacked:,} bytes it may hold")
                        digest.update(piece)
                        file.write(piece)
                written[inside] = digest.hexdigest()
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, FileExistsError) as error:
        raise DataError(f"{source.file} cannot be unpacked: {error}") from error
    if not written:
        raise DataError(f"{source.file} holds nothing of {', '.join(map(repr, source.take))}; a bug of the benchmark")
    return written


def _inside(name: str, place: PurePosixPath, source: Source) -> str:
    parts = PurePosixPath(name).parts
    if "\\" in name or ":" in name or PurePosixPath(name).is_absolute() or ".." in (*parts, *place.parts):
        raise DataError(f"{source.file} holds {name!r}, which is not below its folder: it is not unpacked")
    return place.as_posix()


#: The name of a member, and how to read it; ``None`` for what is no plain file. Folders are not among them.
_Members = Iterator[tuple[str, IO[bytes] | None]]


@contextmanager
def _members(archive: Path) -> Iterator[_Members]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as file:
            yield _of_zip(file)
    else:
        with tarfile.open(archive, "r:gz") as packed:
            yield _of_tar(packed)


def _of_zip(file: zipfile.ZipFile) -> _Members:
    for member in file.infolist():
        if member.is_dir():
            continue
        kind = member.external_attr >> 28
        yield member.filename, file.open(member) if kind in (0, 8) else None


def _of_tar(packed: tarfile.TarFile) -> _Members:
    for member in packed:
        if not member.isdir():
            yield member.name, packed.extractfile(member) if member.isreg() else None
