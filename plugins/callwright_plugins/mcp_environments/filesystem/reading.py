"""Tools that read the content of one or two files."""

from __future__ import annotations

import hashlib
import json
import zlib
from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.filesystem.archives import is_archive
from callwright_plugins.mcp_environments.filesystem.diffs import blocks, split_lines, unified
from callwright_plugins.mcp_environments.filesystem.paths import (
    READ,
    Path,
    check,
    existing,
    me,
    path_of,
    regular,
)
from callwright_plugins.mcp_environments.filesystem.rows import Blob
from callwright_plugins.mcp_environments.filesystem.tree import content, text

Lines = Annotated[int, Field(ge=0, le=1000, description="How many lines.")]
#: Most characters that one call returns.
MOST_SHOWN: Final = 20_000
_KNOWN: Final = {
    "py": "Python script",
    "sh": "shell script",
    "csv": "CSV text",
    "md": "Markdown text",
    "html": "HTML document",
    "toml": "TOML text",
    "yaml": "YAML text",
    "log": "log text",
}


class TextView(TypedDict):
    """Text of a file; ``truncated`` if there is more after it, which then begins at character ``next_offset``."""

    path: str
    text: str
    truncated: Annotated[bool, Field(description="There is more than is shown.")]
    next_offset: Annotated[int | None, Field(description="Where to read on; null: this is the end.")]


class LinesView(TypedDict):
    """Some lines of a file; ``first_line`` is the number of the first of them, from 1."""

    path: str
    lines: list[str]
    first_line: Annotated[int, Field(description="Number of the first of lines, from 1.")]
    total_lines: int


class CountView(TypedDict):
    """What ``wc`` counts: ``lines`` are line ends."""

    path: str
    lines: Annotated[int, Field(description="Line ends.")]
    words: int
    characters: int
    bytes: Annotated[int, Field(description="Of the file.")]


class DiffView(TypedDict):
    """A unified diff; ``truncated`` if it was too long to show whole."""

    identical: bool
    added: Annotated[int, Field(description="Lines.")]
    removed: Annotated[int, Field(description="Lines.")]
    diff: str
    truncated: Annotated[bool, Field(description="There is more than is shown.")]


class ChecksumView(TypedDict):
    """A checksum in hexadecimal digits."""

    path: str
    algorithm: str
    checksum: str
    size: Annotated[int, Field(description="Bytes.")]


class TypeView(TypedDict):
    """What a file is, judged by its content first and by its name second."""

    path: str
    type: str
    mime: str


@tool(read_only=True)
def cat(
    world: World,
    /,
    path: Path,
    offset: Annotated[int, Field(ge=0, le=10**7, description="Character to begin at.")] = 0,
) -> TextView:
    """The text of a file, at most 20000 characters a call. Fails with ENOENT, EISDIR, EACCES, BINARY_FILE."""
    node = regular(world, path)
    whole = text(world, node)
    end = offset + MOST_SHOWN
    return {
        "path": path_of(world, node),
        "text": whole[offset:end],
        "truncated": end < len(whole),
        "next_offset": end if end < len(whole) else None,
    }


@tool(read_only=True)
def head(world: World, /, path: Path, lines: Lines = 10) -> LinesView:
    """The first lines of a text file. Fails as cat does."""
    node = regular(world, path)
    whole = split_lines(text(world, node))
    return _lines(path_of(world, node), whole[:lines], 1, len(whole))


@tool(read_only=True)
def tail(world: World, /, path: Path, lines: Lines = 10) -> LinesView:
    """The last lines of a text file. Fails as cat does."""
    node = regular(world, path)
    whole = split_lines(text(world, node))
    begin = max(0, len(whole) - lines)
    return _lines(path_of(world, node), whole[begin:], begin + 1, len(whole))


@tool(read_only=True)
def word_count(world: World, /, path: Path) -> CountView:
    """Lines, words, characters and bytes of a text file. Fails as cat does."""
    node = regular(world, path)
    whole = text(world, node)
    return {
        "path": path_of(world, node),
        "lines": whole.count("\n"),
        "words": len(whole.split()),
        "characters": len(whole),
        "bytes": node.size,
    }


@tool(read_only=True)
def diff(
    world: World,
    /,
    old: Path,
    new: Path,
    context: Annotated[int, Field(ge=0, le=20, description="Lines around changes.")] = 3,
) -> DiffView:
    """Compare two text files, as diff -u does. Fails as cat does for either of them."""
    before, after = regular(world, old), regular(world, new)
    left, right = split_lines(text(world, before)), split_lines(text(world, after))
    shown = "\n".join(unified(left, right, path_of(world, before), path_of(world, after), context))
    edits = [block for block in blocks(left, right) if block[0] == "edit"]
    return {
        "identical": not edits,
        "added": sum(block[4] - block[3] for block in edits),
        "removed": sum(block[2] - block[1] for block in edits),
        "diff": shown[:MOST_SHOWN],
        "truncated": len(shown) > MOST_SHOWN,
    }


@tool(read_only=True)
def checksum(
    world: World,
    /,
    path: Path,
    algorithm: Annotated[Literal["sha256", "sha1", "md5", "crc32"], Field(description="Kind.")] = "sha256",
) -> ChecksumView:
    """The checksum of a file's bytes. Fails with ENOENT, EISDIR, EACCES."""
    node = regular(world, path)
    data = content(world, node)
    if algorithm == "crc32":
        digits = f"{zlib.crc32(data):08x}"
    else:
        digits = hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()
    return {"path": path_of(world, node), "algorithm": algorithm, "checksum": digits, "size": node.size}


@tool(read_only=True)
def file_type(world: World, /, path: Path) -> TypeView:
    """Directory, link, empty, text, JSON, script, tar archive or data."""
    node = existing(world, path, follow=False)
    at = path_of(world, node)
    if node.kind == "dir":
        return {"path": at, "type": "directory", "mime": "inode/directory"}
    if node.kind == "link":
        return {"path": at, "type": f"symbolic link to {node.target}", "mime": "inode/symlink"}
    check(world, me(world), node, READ)
    kind, mime = _kind(world.need(Blob, node.blob), node.name)
    return {"path": at, "type": kind, "mime": mime}


def _kind(blob: Blob, name: str) -> tuple[str, str]:
    if not blob.size:
        return "empty", "inode/x-empty"
    if is_archive(blob.data):
        return "POSIX tar archive", "application/x-tar"
    if blob.binary or "\0" in blob.text:
        return "data", "application/octet-stream"
    if blob.text.startswith("#!"):
        return f"{blob.text[2:60].split()[0] if blob.text[2:60].split() else 'a'} script", "text/x-script"
    if blob.text.lstrip()[:1] in ("{", "[") and _is_json(blob.text):
        return "JSON text data", "application/json"
    encoding = "ASCII text" if blob.text.isascii() else "UTF-8 Unicode text"
    known = _KNOWN.get(name.rpartition(".")[2].lower()) if "." in name else None
    return (f"{known}, {encoding}" if known else encoding), "text/plain"


def _is_json(whole: str) -> bool:
    if len(whole) > 100_000 or whole.count("[") + whole.count("{") > 5000:
        return False
    try:
        json.loads(whole, parse_int=str)
    except (ValueError, RecursionError):
        return False
    return True


def _lines(path: str, lines: list[str], first: int, total: int) -> LinesView:
    if sum(map(len, lines)) > 10 * MOST_SHOWN:
        raise ToolError("TOO_MUCH_OUTPUT", f"these lines of {path} are too long to show; ask for fewer")
    return {
        "path": path,
        "lines": [line.removesuffix("\n") for line in lines],
        "first_line": first,
        "total_lines": total,
    }


TOOLS: Final[list[FunctionTool]] = [cat, head, tail, word_count, diff, checksum, file_type]
