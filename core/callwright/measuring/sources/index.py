"""A package index as PEP 503 has it, over http(s) or in a folder: where a file is, and its bytes, gone on with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urldefrag, urljoin, urlsplit
from urllib.request import Request, url2pathname, urlopen

from callwright.errors import DataError, InfrastructureFailure, UsageError
from callwright.measuring.sources.source import Source

#: The index that is asked unless another one is named.
USUAL: Final = "https://pypi.org/simple"
#: Seconds without a byte after which a connection counts as lost.
_PATIENCE: Final = 60.0
_PIECE: Final = 1 << 18
#: A page of a package is not larger.
_LARGEST_PAGE: Final = 2**26
_SCHEMES: Final = ("http", "https", "file")


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if tag == "a" and name == "href" and value]


def place_of(source: Source, index: str) -> str:
    """Where an index has the file of a source.

    ``index`` is the address of a simple index, or a folder: one that holds the file, or that is an index.

    Raises :class:`callwright.UsageError` for an index of another kind, and :class:`callwright.errors.DataError` if it
    does not have the file, or says another digest of it.
    """
    if urlsplit(index).scheme not in _SCHEMES:
        folder = Path(index)
        if not folder.is_dir():
            raise UsageError(f"{index} is no package index: give an address (http, https, file) or a folder")
        if (folder / source.file).is_file():
            return (folder / source.file).absolute().as_uri()
        index = folder.absolute().as_uri()
    name = re.sub(r"[-_.]+", "-", source.package).lower()
    page = f"{index.rstrip('/')}/{name}/"
    links = _Links()
    at = urljoin(page, "index.html") if page.startswith("file:") else page
    links.feed(_whole(at).decode("utf-8", "replace"))
    for link in links.found:
        address, said = urldefrag(urljoin(page, link))
        parts = urlsplit(address)
        if unquote(parts.path).rpartition("/")[2] != source.file:
            continue
        if parts.scheme not in _SCHEMES or (parts.scheme == "file" and not index.startswith("file:")):
            raise DataError(f"{page} sends {source.file} to {address:.200}, which is not followed")
        if said.startswith("sha256=") and said[7:].lower() != source.sha256:
            raise DataError(
                f"{page} has another {source.file}: sha256 {said[7:].lower():.64}, and {source.sha256} is pinned"
            )
        return address
    raise DataError(f"{page} has no {source.file}")


def fetch(address: str, partial: Path, size: int, said: Callable[[int], object]) -> None:
    """Bring a file into ``partial``, going on where an earlier try ended. ``said`` hears how many bytes there are.

    Never more than ``size`` bytes are written. Raises :class:`callwright.InfrastructureFailure` where the connection
    fails; what came stays.
    """
    have = partial.stat().st_size if partial.exists() else 0
    if have > size:
        partial.unlink()
        have = 0
    said(have)
    while have < size:
        before = have
        for begins, piece in _pieces(address, have):
            if begins is not None and begins != have:
                have = begins  # the server does not go on: from the beginning
                with partial.open("wb"):
                    pass
            with partial.open("r+b" if partial.exists() else "wb") as file:
                file.seek(have)
                file.write(piece[: size + 1 - have])
            have = min(have + len(piece), size + 1)
            said(have)
            if have > size:
                return  # it is another file, which its digest will say
        if have == before:
            raise InfrastructureFailure(f"{address} ended after {have:,} of {size:,} bytes; give the command again")


def _pieces(address: str, have: int) -> Iterator[tuple[int | None, bytes]]:
    """The bytes from ``have`` on; with the first where they begin, which may be 0 all the same."""
    begins: int | None = have
    with _opened(address, have) as answer:
        if address.startswith("file:"):
            answer.seek(have)
        elif have and getattr(answer, "status", 200) != 206:
            begins = 0
        while True:
            try:
                piece = answer.read(_PIECE)
            except OSError as error:
                raise InfrastructureFailure(f"{address} was cut off: {error}; give the command again") from error
            if not piece:
                return
            yield begins, piece
            begins = None


def _opened(address: str, have: int = 0) -> Any:
    if address.startswith("file:"):
        path = Path(url2pathname(urlsplit(address).path))
        try:
            return path.open("rb")
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    headers = {"User-Agent": "callwright", "Accept": "text/html, */*;q=0.1", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        return urlopen(Request(address, headers=headers), timeout=_PATIENCE)
    except HTTPError as error:
        error.close()
        if error.code in (404, 410, 401, 403):
            raise DataError(f"{address} is not there (status {error.code}): --index names another one") from error
        raise InfrastructureFailure(f"{address} answered with status {error.code}; give the command again") from error
    except (URLError, OSError, ValueError) as error:
        raise InfrastructureFailure(f"{address} cannot be reached: {error}") from error


def _whole(address: str) -> bytes:
    with _opened(address) as answer:
        try:
            read: bytes = answer.read(_LARGEST_PAGE)
        except OSError as error:
            raise InfrastructureFailure(f"{address} was cut off: {error}") from error
    return read


def shown(size: int) -> str:
    """A number of bytes for people."""
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size:,} bytes"
