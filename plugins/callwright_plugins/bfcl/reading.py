"""BFCL's files: which folder holds a version, and the entries of a category."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from callwright.compression.packing import unpacked_text
from callwright.errors import DataError, UsageError
from callwright_plugins.bfcl.versions import VERSIONS, Version, category_of_id

#: Where data lie below a folder that somebody names: the unpacked wheel, a checkout of its repository.
_BELOW: Final = ("", "data", "bfcl_eval/data", "v3_git", "v4_package")


@frozen(eq=False)
class Entry:
    """An entry: its messages (the last is the query), the functions as documented, and what each gold call allows."""

    id: str
    category: str
    messages: tuple[Mapping[str, Any], ...]
    functions: tuple[Mapping[str, Any], ...]
    gold: tuple[Mapping[str, Mapping[str, Any]], ...]


def folder_of(data: str | Path, version: Version) -> Path:
    """The folder with the files of a version: ``data`` or a usual place below it.

    Raises :class:`callwright.UsageError` where there is none, and says so where the files are of another version.
    """
    place = Path(data)
    others = set()
    for below in _BELOW:
        folder = place / below
        for one in VERSIONS.values():
            if next(folder.glob(f"BFCL_{one.name}_*.json*"), None) is not None:
                if one is version:
                    return folder
                others.add(one.name)
    if others:
        held = " and ".join(sorted(others))
        raise UsageError(
            f"{place} holds BFCL {held}, and this is {version.name}: they are never mixed, since the same id may mean "
            f"another task. Take bfcl-{held}, or fetch {version.name}: callwright benchmark get bfcl-{version.name} "
            "--data DIR"
        )
    raise UsageError(
        f"{place} holds no files of BFCL {version.name} (BFCL_{version.name}_*.json): callwright benchmark get "
        f"bfcl-{version.name} --data DIR fetches them"
    )


def read_entries(folder: Path, version: Version, category: str) -> list[Entry]:
    """The entries of a single-turn category in the order of its file; none where the folder lacks it.

    Raises :class:`callwright.errors.DataError` for rows that are none, of another version, or without gold calls.
    """
    name = f"BFCL_{version.name}_{category}.json"
    file = _existing(folder / name)
    if file is None:
        return []
    answers = _existing(folder / "possible_answer" / name)
    gold = {row["id"]: row["ground_truth"] for _, row in _rows(answers, "id", "ground_truth")} if answers else {}
    entries = []
    for where, row in _rows(file, "id", "question", "function"):
        key = str(row["id"])
        if category_of_id(key) != category:
            raise DataError(f"{where}: {key!r} is no id of {category} in BFCL {version.name}: versions are never mixed")
        if "relevance" not in category and key not in gold:
            raise DataError(f"{where}: {key} has no gold calls in possible_answer/{name}: fetch both files")
        try:
            messages = tuple(message for turn in row["question"] for message in turn)
            functions = tuple(row["function"])
            for function in functions:
                (
                    str(function["name"]),
                    dict(function["parameters"]["properties"]),
                    list(function["parameters"]["required"]),
                )
            found = tuple(gold.get(key, ()))
            if any(not isinstance(next(iter(call.values())), Mapping) for call in found) or not messages:
                raise ValueError("no calls, or no messages")
        except (TypeError, KeyError, ValueError, AttributeError, StopIteration) as error:
            raise DataError(f"{where}: {key} is no entry of BFCL: {error!r}") from error
        entries.append(Entry(key, category, messages, functions, found))
    return entries


def _existing(file: Path) -> Path | None:
    return next((one for one in (file, file.with_name(file.name + ".gz")) if one.is_file()), None)


def _rows(file: Path, *keys: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(unpacked_text(file).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{file}:{number}: no JSON: {error}") from error
        if not isinstance(row, dict) or any(key not in row for key in keys):
            raise DataError(f"{file}:{number}: an object with {', '.join(keys)} is needed")
        yield f"{file}:{number}", row
