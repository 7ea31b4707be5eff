"""Workspaces: the folder of its own that a server process gets, made of a template and thrown away after the session.

Its path differs from process to process, so what goes in and out names it by an alias (``/workspace``): the same calls
have the same answers in every process.
"""

from __future__ import annotations

import difflib
import fnmatch
import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import define

from callwright.errors import DataError, UsageError

#: Stands for the workspace in the command, its environment variables and its working folder.
PLACEHOLDER: Final = "{workspace}"
_NAMED: Final = re.compile(r"(?<!\$)\{([A-Za-z_ -]{5,20})\}")
_CHUNK: Final = 1 << 20


@define(eq=False)
class Workspace:
    """A folder and the name by which calls and answers know it."""

    path: Path
    alias: str = "/workspace"

    @classmethod
    def make(cls, template: Path | None, alias: str = "/workspace") -> Workspace:
        """A new folder with what is in ``template``.

        Raises :class:`callwright.errors.DataError` if that is no folder.
        """
        path = Path(tempfile.mkdtemp(prefix="callwright-")).resolve()
        made = cls(path, alias)
        try:
            made.fill(template)
        except BaseException:
            made.remove()
            raise
        return made

    def fill(self, template: Path | None) -> None:
        """Put in what is in the template, and nothing else."""
        if template is not None and not template.is_dir():
            raise DataError(f"{template}: the workspace template is not a folder")
        for inner in self.path.iterdir():
            _remove(inner)
        if template is not None:
            shutil.copytree(template, self.path, symlinks=True, dirs_exist_ok=True)

    def remove(self) -> None:
        """Delete it."""
        _remove(self.path)

    def into(self, text: str) -> str:
        """A word of the command with the placeholder replaced by the path."""
        return text.replace(PLACEHOLDER, str(self.path))

    def inward(self, value: Any) -> Any:
        """Arguments in which texts that begin with the alias name the folder. Texts inside of contents stay."""
        if isinstance(value, str):
            for prefix in ("", "file://"):
                start = prefix + self.alias
                if value == start or value.startswith(f"{start}/"):
                    return prefix + str(self.path) + value[len(start) :]
            return value
        if isinstance(value, Mapping):
            return {key: self.inward(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.inward(inner) for inner in value]
        return value

    def outward(self, value: Any) -> Any:
        """An answer in which the alias stands for the path of the folder, wherever it is named."""
        path = str(self.path)
        if isinstance(value, str):
            return value.replace(path, self.alias) if path in value else value
        if isinstance(value, Mapping):
            return {self.outward(key): self.outward(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.outward(inner) for inner in value]
        return value

    def digest(self, ignore: Sequence[str] = ()) -> str:
        """SHA-256 of every file's path, kind, permissions and content. Times play no part.

        ``ignore`` are patterns of paths that do not count, such as ``.git/*``.
        """
        found = hashlib.sha256()
        path, alias = os.fsencode(str(self.path)), os.fsencode(self.alias)
        for name in sorted(_walk(self.path)):
            if any(fnmatch.fnmatchcase(os.fsdecode(name), pattern) for pattern in ignore):
                continue
            entry = self.path / os.fsdecode(name)
            status = entry.lstat()
            found.update(name + b"\0" + oct(status.st_mode).encode() + b"\0")
            if stat.S_ISLNK(status.st_mode):
                found.update(os.fsencode(str(entry.readlink())).replace(path, alias))
            elif stat.S_ISREG(status.st_mode):
                found.update(_content(entry, path, alias))
        return found.hexdigest()


def _walk(root: Path) -> list[bytes]:
    found = []
    for folder, folders, files in os.walk(root):
        for name in [*folders, *files]:
            found.append(os.fsencode(str((Path(folder) / name).relative_to(root))))
    return found


def _content(file: Path, path: bytes, alias: bytes) -> bytes:
    inner = hashlib.sha256()
    try:
        size = file.stat().st_size
        with file.open("rb") as source:
            if size <= _CHUNK:  # a server may write where it lives; that is not a difference
                inner.update(source.read().replace(path, alias))
            else:
                while chunk := source.read(_CHUNK):
                    inner.update(chunk)
    except OSError as error:  # unreadable is a state too
        inner.update(type(error).__name__.encode())
    return inner.digest()


def _remove(path: Path) -> None:
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    try:
        shutil.rmtree(path)
    except OSError:  # a tool may have taken the permissions away that deleting needs
        _permit(path)
        shutil.rmtree(path, ignore_errors=True)


def _permit(folder: Path) -> None:
    try:
        folder.chmod(0o700)
        for inner in folder.iterdir():
            if inner.is_dir() and not inner.is_symlink():
                _permit(inner)
    except OSError:
        return


def mentions_workspace(words: Sequence[str]) -> bool:
    """Whether any of these words holds the placeholder."""
    return any(PLACEHOLDER in word for word in words)


def refuse_misspelt(words: Sequence[str]) -> None:
    """Raise :class:`callwright.UsageError` for a word that nearly holds the placeholder: with ``{worspace}`` a server
    would work in a folder of that name, which nobody throws away.
    """
    for word in words:
        for name in _NAMED.findall(word):
            if f"{{{name}}}" != PLACEHOLDER and difflib.get_close_matches(
                name.lower(), [PLACEHOLDER[1:-1]], cutoff=0.75
            ):
                raise UsageError(f"{{{name}}} in {word!r:.80} stands for nothing. Did you mean {PLACEHOLDER}?")
