"""The pinned wheel, unpacked: a folder, or the ``.whl`` itself, of which the classes are unpacked for a while."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import weakref
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from callwright.errors import UsageError

#: Where the classes lie in the wheel.
FOLDER: Final = "bfcl_eval/eval_checker/multi_turn_eval/func_source_code"
#: Version -> the release of bfcl-eval that it is held against, and the sha256 of the classes' files, one after another.
RELEASES: Final[Mapping[str, tuple[str, str]]] = {
    "v3": ("2025.8.6.2", "3668a81f2f5ecbdfa72b33b02264cfde50aa0c09c8a89227d0298370a34a333e"),
    "v4": ("2026.3.23", "2756246262ffa105b972053280856c68eeda221c34182e267dc7ced7ae8aa195"),
}
#: Bytes of a file of classes.
_LARGEST: Final = 2**24
_FILES: Final = tuple(
    f"{FOLDER}/{name}.py"
    for name in (
        "gorilla_file_system",
        "long_context",
        "math_api",
        "message_api",
        "posting_api",
        "ticket_api",
        "trading_bot",
        "travel_booking",
        "vehicle_control",
    )
)


class Package:
    """The classes of a version as files of ``folder``, which may be a path for as long as this object lives.

    ``place`` is a folder with ``bfcl_eval``, or the wheel. The files are copied, and only those that were compared with
    the pinned digest, so that nothing else of the wheel is ever imported.

    Raises :class:`callwright.UsageError` for what is not the pinned release.
    """

    def __init__(self, place: Path, version: str) -> None:
        release, pinned = RELEASES[version]
        wanted = f"bfcl-eval {release} (pip download --no-deps bfcl-eval=={release})"
        try:
            files = _in_wheel(place) if place.is_file() else {name: (place / name).read_bytes() for name in _FILES}
        except (OSError, KeyError, zipfile.BadZipFile) as error:
            raise UsageError(f"{place} is neither the wheel nor the unpacked wheel of {wanted}: {error}") from error
        found = hashlib.sha256(b"".join(files[name] for name in _FILES)).hexdigest()
        if found != pinned:
            raise UsageError(f"{place} holds the classes of another release: verdicts of {version} need {wanted}")
        self.folder = Path(tempfile.mkdtemp(prefix="callwright-bfcl-"))
        self._end = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        for name, content in files.items():
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        for part in [Path(FOLDER), *Path(FOLDER).parents][:-1]:  # or an installed release would be found before it
            (self.folder / part / "__init__.py").touch()

    def close(self) -> None:
        """Remove the copies. Closing twice is allowed."""
        self._end()


def _in_wheel(place: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(place) as wheel:
        large = [name for name in _FILES if wheel.getinfo(name).file_size > _LARGEST]
        if large:
            raise zipfile.BadZipFile(f"{large[0]} is too large")
        return {name: wheel.read(name) for name in _FILES}
