"""What a benchmark says of the files that it needs: in which archive of a package index they are, and where they go."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from attrs import Attribute, field, frozen

from callwright.errors import ComponentError

_DIGEST: Final = re.compile("[0-9a-f]{64}")
_ARCHIVES: Final = (".whl", ".zip", ".tar.gz", ".tgz")


def _digest(instance: Any, attribute: Attribute[Any], value: Any) -> None:
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise ComponentError(f"the sha256 of a source is 64 hexadecimal digits, not {value!r:.80}; a bug of its plugin")


def _file(instance: Any, attribute: Attribute[Any], value: Any) -> None:
    if not isinstance(value, str) or "/" in value or "\\" in value or not value.endswith(_ARCHIVES):
        raise ComponentError(
            f"the file of a source is the name of a wheel or an sdist ({', '.join(_ARCHIVES)}), not {value!r:.80}; "
            "a bug of its plugin"
        )


def _take(instance: Any, attribute: Attribute[Any], value: Mapping[str, str]) -> None:
    for prefix, folder in value.items():
        for path in (prefix, folder):
            if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                raise ComponentError(f"a source takes from and to paths inside of folders, not {path!r}; its bug")


@frozen
class Source:
    """An archive of a package index: the ``file`` of a ``package``, ``size`` bytes long, with this ``sha256``.

    ``take`` says what of it is unpacked and where to: a path in the archive (a folder with ``/`` at its end, or a file)
    to a folder of the data; ``{"": ""}`` takes all of it. ``unpacked`` bounds the bytes that come out. It is never
    installed, and nothing of it is run.

    Raises :class:`callwright.errors.ComponentError` for what is none of this.
    """

    package: str
    file: str = field(validator=_file)
    sha256: str = field(validator=_digest)
    size: int
    take: Mapping[str, str] = field(factory=lambda: {"": ""}, validator=_take)
    licence: str = ""
    unpacked: int = 2**30

    def place_of(self, member: str) -> PurePosixPath | None:
        """Where a member of the archive goes, seen from the folder of the data; ``None`` if it is not taken."""
        for prefix, folder in self.take.items():
            if member == prefix:
                return PurePosixPath(folder, PurePosixPath(member).name)
            if (prefix == "" or prefix.endswith("/")) and member.startswith(prefix):
                return PurePosixPath(folder, member[len(prefix) :])
        return None


def sources_of(factory: object, name: str, version: str | None) -> tuple[str, Sequence[Source]]:
    """A version of a benchmark, the first if none is named, and the sources that its factory declares for it.

    The factory need not be called: it has an attribute ``sources``, lists by version. Raises
    :class:`callwright.UsageError` for a version that is not among them.
    """
    from callwright.measuring.benchmark import version_of

    declared = getattr(factory, "sources", None)
    if not isinstance(declared, Mapping) or not declared:
        return version or "", ()
    chosen = version_of(name, version, list(declared))
    return chosen, declared[chosen]
