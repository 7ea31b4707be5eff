"""Run folders: everything that a run leaves, written so that a crash at any moment loses nothing.

A run folder holds ``recipe.toml``, ``manifest.json``, ``metrics.jsonl``, ``rollouts.jsonl``, ``evaluation.json``,
``checkpoints/`` and ``report.html``.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shlex
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import field, frozen

from callwright.errors import DataError, FolderTaken, RunError, cannot_read, near_path
from callwright.language.long_numbers import json_line, json_value
from callwright.language.strict_json import kind
from callwright.machines.redaction import redacted_value

if TYPE_CHECKING:
    from callwright.plugins import Registry

METRICS: Final = "metrics.jsonl"
ROLLOUTS: Final = "rollouts.jsonl"
#: How the names begin of what may stand in a run folder before its recipe does: locks, ledgers, the manifest.
_BEFORE_A_RUN: Final = (".lock", "ledger", "manifest.json", "recipe.toml.part", "checkpoints")
#: How many keys are named in which two recipes differ.
_NAMED: Final = 5


@frozen
class Run:
    """A run folder. Nothing is kept open between two writes, so that any number of processes may read it."""

    path: Path
    #: The command that made the run, for the report.
    command: str = field(default="", eq=False)
    #: Whether to go on though something is no longer as the ledger says (:mod:`callwright.training.ledger`).
    accept_changes: bool = field(default=False, eq=False)

    @classmethod
    def create(cls, path: Path, *, recipe_text: str, manifest: Mapping[str, Any], command: str = "") -> Run:
        """Make the folder, or open it again if it was made from the same recipe.

        Raises :class:`callwright.errors.FolderTaken` if it holds a run of another recipe, and
        :class:`callwright.errors.RunError` if it cannot be written.
        """
        run = cls(path, command)
        recipe = path / "recipe.toml"
        try:
            path.mkdir(parents=True, exist_ok=True)
            (path / "checkpoints").mkdir(exist_ok=True)
            if recipe.exists():
                if recipe.read_bytes() != recipe_text.encode("utf-8"):
                    that = shlex.join(["callwright", "run", str(path)])
                    raise FolderTaken(
                        f"{path} holds a run of another recipe{_differing(recipe, recipe_text)}. Choose another folder "
                        f"(--output), or go on with that run: {that}"
                    )
            else:
                write_atomically(path / "manifest.json", json.dumps(dict(manifest), indent=2, sort_keys=True) + "\n")
                write_atomically(recipe, recipe_text)  # last: a folder with a recipe is a run
        except OSError as error:
            raise RunError(f"the run folder {path} cannot be written: {error.strerror or error}") from error
        return run

    @classmethod
    def open(cls, path: Path) -> Run:
        """An existing run. Raises :class:`callwright.errors.DataError` if the folder is not one."""
        if not path.exists():
            raise DataError(f"there is no folder {path}{near_path(path)}")
        if not (path / "recipe.toml").is_file():
            raise DataError(f"{path} is not a run folder: it has no recipe.toml")
        return cls(path, str(cls(path).manifest.get("command", "")))

    @property
    def checkpoints(self) -> Path:
        """Where trainers keep their checkpoints."""
        return self.path / "checkpoints"

    @property
    def manifest(self) -> dict[str, Any]:
        """Versions, plugins, seeds and the command."""
        manifest = self.read_json("manifest.json")
        return manifest if isinstance(manifest, dict) else {}

    def append(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows to a JSONL file and force them to the disk. One write, so that a crash leaves whole lines."""
        append_jsonl(self.path / name, rows)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a JSONL file, without a torn last line; empty if there is no such file."""
        path = self.path / name
        return list(read_jsonl(path, torn_tail=True)) if path.exists() else []

    def truncate(self, name: str, count: int) -> int:
        """Keep only the first ``count`` rows: those after the checkpoint from which a run goes on are done again.

        Returns how many there are: fewer than ``count`` if some were lost.
        """
        path = self.path / name
        if not path.exists():
            return 0
        try:
            with path.open("rb+") as file:
                position = kept = 0
                while kept < count:
                    line = file.readline()
                    if not line.endswith(b"\n"):
                        break
                    position += len(line)
                    kept += 1
                file.truncate(position)
                file.flush()
                os.fsync(file.fileno())
                return kept
        except OSError as error:
            raise RunError(f"{path} cannot be written: {error.strerror or error}") from error

    def write_json(self, name: str, value: Any) -> None:
        """Write a JSON file in one atomic step."""
        write_atomically(self.path / name, json.dumps(value, indent=2, sort_keys=False) + "\n")

    def read_json(self, name: str) -> Any:
        """Read a JSON file; ``None`` if it is not there."""
        path = self.path / name
        if not path.exists():
            return None
        try:
            return json.loads(path.read_bytes())
        except OSError as error:
            raise cannot_read(path, error) from error
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path} is not valid JSON: {error}") from error


def refuse_other_files(folder: Path) -> None:
    """Refuse a folder for a new run that holds something else: a run writes and removes files there.

    What a start leaves that was killed before its recipe was written is no hindrance. Raises
    :class:`callwright.errors.FolderTaken`.
    """
    try:
        names = sorted(path.name for path in folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):  # it is made, or what is wrong with it is said then
        return
    except OSError as error:
        raise RunError(f"{folder} cannot be read: {error.strerror or error}") from error
    if "recipe.toml" in names:
        return
    other = [name for name in names if not name.startswith(_BEFORE_A_RUN)]
    if (folder / "checkpoints").is_dir() and any((folder / "checkpoints").iterdir()):
        other.append("checkpoints")
    if other:
        more = f" and {len(other) - _NAMED} more" if len(other) > _NAMED else ""
        raise FolderTaken(
            f"{folder} is not empty and holds no run ({', '.join(other[:_NAMED])}{more}); name a folder that is empty "
            "or not there yet (--output)"
        )


def write_atomically(path: Path, text: str | bytes) -> None:
    """Write a file so that after a crash either the old or the whole new content is there."""
    scratch = path.with_name(path.name + ".part")
    data = text.encode("utf-8") if isinstance(text, str) else text
    try:
        with scratch.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            scratch.unlink()
        raise RunError(f"{path} cannot be written: {error.strerror or error}") from error


def append_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Append rows, all in one write; a torn last line of an earlier crash is removed first.

    Raises :class:`callwright.errors.RunError` if a row is not JSON (NaN is not) or if the disk is full; the file then
    holds the whole lines that were there before.
    """
    append_bytes(path, b"".join(jsonl_lines(path, rows)))


def jsonl_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> list[bytes]:
    """The lines that rows are in a file. Raises :class:`callwright.errors.RunError` if one is not JSON (NaN is not)."""
    try:
        return [json_line(row) for row in rows]
    except (ValueError, TypeError, RecursionError) as error:
        raise RunError(f"{path}: a row is not JSON, so none was written: {error}") from error


def append_bytes(path: Path, data: bytes) -> None:
    """Append whole lines in one write and force them to the disk; a torn last line is removed first.

    Raises :class:`callwright.errors.RunError` as :func:`append_jsonl` does.
    """
    try:
        # Without a buffer: one that could not be written would be written by close, after the line was taken back.
        with path.open("ab+", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            if end:
                file.seek(end - 1)
                if file.read(1) != b"\n":
                    end = _last_whole_line(path)
                    file.truncate(end)
            try:
                left = memoryview(data)
                while left:
                    left = left[file.write(left) :]
                os.fsync(file.fileno())
            except OSError:
                with contextlib.suppress(OSError):
                    file.truncate(end)
                raise
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror or error}") from error


def _last_whole_line(path: Path) -> int:
    data = path.read_bytes()
    return data.rfind(b"\n") + 1


def read_jsonl(path: Path, *, torn_tail: bool = False) -> Iterator[dict[str, Any]]:
    """The objects of a JSONL file. With ``torn_tail`` a last line without line end is left out.

    Raises :class:`callwright.errors.DataError` with file and line for anything else that is not an object.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if torn_tail and not line.endswith(b"\n"):
                    return
                if not line.strip():
                    continue
                try:
                    row = json_value(line)
                except (ValueError, RecursionError) as error:
                    raise DataError(f"{path}:{number}: not valid JSON: {error}") from error
                if not isinstance(row, dict):
                    raise DataError(f"{path}:{number}: expected an object, found {kind(row)}")
                yield row
    except OSError as error:
        raise cannot_read(path, error) from error


def describe_process(registry: Registry | None = None, **more: Any) -> dict[str, Any]:
    """A manifest: versions of what took part, the plugins, and what else the caller wants to keep, without secrets."""
    versions = {}
    for name in ("callwright", "torch", "transformers", "tokenizers", "numpy", "pydantic", "attrs", "jsonschema-rs"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    plugins = [
        {"name": info.name, "distribution": info.distribution, "version": info.version}
        for info in (registry.plugins if registry else ())
        if not info.blocked and not info.error
    ]
    return {
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "versions": versions,
        "plugins": plugins,
        **redacted_value(more),
    }


def _differing(recipe: Path, text: str) -> str:
    """The keys in which a recipe is another one than the recipe of a file; empty where they cannot be told."""
    try:
        there = flat(tomllib.loads(recipe.read_text(encoding="utf-8")))
        here = flat(tomllib.loads(text))
    except ValueError:  # edited by somebody, so that it is no TOML or no text
        return ""
    keys = sorted(key for key in {*there, *here} if there.get(key) != here.get(key))
    more = f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else ""
    return f" (it differs in {', '.join(keys[:_NAMED])}{more})" if keys else ""


def flat(data: Mapping[str, Any], within: str = "", mark: str = ".") -> dict[str, Any]:
    """Nested tables as one, with the path of each value as its name: ``algorithm.kl_weight``."""
    found: dict[str, Any] = {}
    for key, value in data.items():
        name = f"{within}{mark}{key}" if within else str(key)
        found |= flat(value, name, mark) if isinstance(value, Mapping) else {name: value}
    return found
