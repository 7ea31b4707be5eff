"""Digests of the files that options name: a rubric, a list of phrases, rows that are played back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

#: How a SQLite database begins. Caches are such files: what is in one hangs on what was asked, and grows.
_DATABASE: Final = b"SQLite format 3\0"
#: Characters of a path, at most; longer strings are texts.
_LONGEST: Final = 4096


def file_digests(options: Mapping[str, Any]) -> dict[str, str]:
    """A digest of each file that an option names, by the option's path: ``{"reward.rubric": "sha256:…"}``.

    An option is a string of JSON-like options, at any depth, and names a file if there is one of this path. ``name`` is
    that of a component. Folders are left out, and so are databases, which are caches: they change as they are used.
    """
    found = {}
    for option, value in _strings("", options):
        if not value or len(value) > _LONGEST or "\0" in value:
            continue
        path = Path(value)
        try:
            if path.is_file():
                with path.open("rb") as file:
                    begins = file.read(len(_DATABASE))
                    file.seek(0)
                    if begins != _DATABASE:
                        found[option] = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
        except OSError:
            continue  # whoever needs it says what is wrong with it
    return found


def _strings(option: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield option, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "name":
                continue
            yield from _strings(f"{option}.{key}" if option else str(key), inner)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _strings(f"{option}.{number}", inner)
