"""The release's files: which there are, what an entry holds, and where answers to it stand.

An entry is ``{"meta_data" | "meta", "template", "ground_truth", "origin_prompt"}`` under a key such as ``query_0_1``;
an answer to it is the same entry with a ``prediction``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from attrs import field, frozen

from callwright.compression.packing import unpacked
from callwright.errors import DataError
from callwright.language.messages import Message
from callwright_plugins.teval.instruct import NEEDED

Format = Literal["json", "str"]


@frozen
class File:
    """One of the release's files: the abilities that it measures, and its format unless an entry says another."""

    stem: str
    dimensions: tuple[str, ...]
    format: Format


FILES: Final[Mapping[str, File]] = {
    file.stem: file
    for file in (
        File("instruct", ("instruct",), "json"),
        File("plan_json", ("plan",), "json"),
        File("plan_str", ("plan",), "str"),
        File("reason_str", ("reason",), "str"),
        File("retrieve_str", ("retrieve",), "str"),
        File("understand_str", ("understand",), "str"),
        File("reason_retrieve_understand_json", ("reason", "retrieve", "understand"), "json"),
        File("review_str", ("review",), "str"),
    )
}
#: How the names of the files of a version end.
SUFFIXES: Final[Mapping[str, str]] = {"v2": "_v2", "v2-subset": "_v2_subset", "v1": "_v1"}
#: Entries of the whole files, where that is known.
WHOLE: Final[Mapping[str, Mapping[str, int]]] = {"v1": {"plan_json": 553, "plan_str": 553, "review_str": 487}}


@frozen
class Entry:
    """An entry, with its place: ``id`` is ``STEM/KEY``. ``prompt`` is what the official program asks, as it stands."""

    id: str
    file: File
    prompt: tuple[Message, ...] = field(repr=False)
    gold: Any = field(repr=False)
    meta: Mapping[str, Any] = field(repr=False)
    template: Any = field(repr=False)

    @property
    def format(self) -> Format:
        """In what the answer is to be written."""
        key = "prompt_type" if self.file.dimensions == ("plan",) else "response_format"
        stated = self.meta.get(key, self.file.format)
        return "json" if stated == "json" else "str"

    @property
    def category(self) -> str:
        """The file; that of ``instruct`` is two, by the format."""
        return f"instruct_{self.format}" if self.file.stem == "instruct" else self.file.stem

    @property
    def query(self) -> str:
        """What the user said last."""
        return next((message.text for message in reversed(self.prompt) if message.role == "user"), "")


def file_of(folder: Path, stem: str, version: str) -> Path | None:
    """The file of a version: in the folder, in its ``data``, or in a folder that is called like the version."""
    name = f"{stem}{SUFFIXES[version]}.json"
    for place in (folder, folder / "data", folder / version):
        for candidate in (place / name, place / f"{name}.gz", place / f"{name}.zst"):
            if candidate.is_file():
                return candidate
    return None


def versions_in(folder: Path) -> list[str]:
    """The versions that a folder holds files of."""
    return [version for version in SUFFIXES if any(file_of(folder, stem, version) for stem in FILES)]


def read_entries(folder: Path, version: str) -> dict[str, Entry]:
    """The entries of all files of a version that are there, by id.

    Raises :class:`callwright.errors.DataError` where there is none, and for a file that is no such file.
    """
    found: dict[str, Entry] = {}
    for file in FILES.values():
        path = file_of(folder, file.stem, version)
        if path is None:
            continue
        for key, stated in read_object(path).items():
            entry = _entry(f"{file.stem}/{key}", file, stated, f"{path}: {key}")
            found[entry.id] = entry
    if not found:
        others = versions_in(folder)
        there = f"; it has files of {' and '.join(others)}" if others else ""
        names = ", ".join(f"{stem}{SUFFIXES[version]}.json" for stem in FILES)
        raise DataError(
            f"{folder} has none of T-Eval's files of {version} ({names}){there}. "
            "They are in the data set lovesnowbest/T-Eval: name their folder with --data DIR"
        )
    return found


def read_object(path: Path) -> dict[str, Any]:
    """The one object of a file, plain or compressed. Raises :class:`callwright.errors.DataError`."""
    try:
        with path.open("rb") as raw:
            found = json.loads(unpacked(raw, str(path)).read())
    except (OSError, EOFError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise DataError(f"{path} is not one object of entries by their keys")
    return found


def _entry(entry_id: str, file: File, stated: Any, where: str) -> Entry:
    if not isinstance(stated, Mapping) or not {"ground_truth", "origin_prompt"} <= stated.keys():
        raise DataError(f"{where}: an entry is an object with 'ground_truth' and 'origin_prompt'")
    plan = file.dimensions == ("plan",)
    meta = stated.get("meta" if plan else "meta_data") or {}
    entry = Entry(
        entry_id, file, _prompt(stated["origin_prompt"], where), stated["ground_truth"], meta, stated.get("template")
    )
    if plan and meta.get("prompt_type", file.format) not in ("json", "str"):
        raise DataError(f"{where}: plans of the type {meta['prompt_type']!r:.40} are neither json nor str")
    if plan and entry.format == "str" and not _texts(meta.get("API_list")):
        raise DataError(f"{where}: 'meta' has no 'API_list', by which actions are found in words")
    if file.stem == "instruct":
        needed = _FIELDS if entry.format == "json" else NEEDED["words"]
        gold = entry.gold
        if not isinstance(entry.template, Mapping) or not all(
            isinstance(entry.template.get(one), str) for one in needed
        ):
            raise DataError(f"{where}: 'template' has not all of {', '.join(needed)}")
        if not isinstance(gold, Mapping) or "action" not in gold or not isinstance(gold.get("args"), Mapping):
            raise DataError(f"{where}: 'ground_truth' has no 'action' with an object 'args'")
    if file.stem == "review_str" and (not isinstance(entry.gold, Mapping) or "answer" not in entry.gold):
        raise DataError(f"{where}: 'ground_truth' has no 'answer'")
    return entry


_FIELDS: Final = NEEDED["json"]


def _texts(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(one, str) for one in given)


def _prompt(stated: Any, where: str) -> tuple[Message, ...]:
    given: Sequence[Any] = [{"role": "user", "content": stated}] if isinstance(stated, str) else stated
    if not isinstance(given, list) or not given:
        raise DataError(f"{where}: 'origin_prompt' is no list of messages")
    try:
        return tuple(Message.from_openai({**one, "role": "user"} if _is_of_a_function(one) else one) for one in given)
    except DataError as error:
        raise DataError(f"{where}: 'origin_prompt': {error}") from error


def _is_of_a_function(message: Any) -> bool:
    """Whether it is what a function returned, which the official templates give to a model as a message of the user."""
    return isinstance(message, Mapping) and message.get("role") == "function"


# Answers --------------------------------------------------------------------------------------------------------------


def answer_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]] | None:
    """The rows of a file that the official program left, or of all in a folder, each with its place.

    A file is known by the beginning of its name (``plan_json_NAME.json``), a single entry in a folder of that name
    (``plan_json_NAME/query_0_1.json``) by both. ``None`` for a file that is none of these.

    Raises :class:`callwright.errors.DataError` for a folder without any, and for a damaged file.
    """
    if not path.is_dir():
        stem = _stem_of(path.name)
        if stem is None or ".json" not in path.suffixes:
            return None
        return _rows_of(path, stem)
    found = [(one, stem) for one in sorted(path.iterdir()) if (stem := _stem_of(one.name)) is not None]
    files = [(one, stem) for one, stem in found if one.is_file() and ".json" in one.suffixes]
    written = {stem for _, stem in files}
    folders = [(one, stem) for one, stem in found if one.is_dir() and stem not in written]
    if not files and not folders and (stem := _stem_of(path.name)) is not None:
        folders = [(path, stem)]
    if not files and not folders:
        raise DataError(f"{path} has no answers of the official program, such as plan_json_NAME.json")
    return _rows_of_all(files, folders)


def _rows_of_all(
    files: Sequence[tuple[Path, str]], folders: Sequence[tuple[Path, str]]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for path, stem in files:
        yield from _rows_of(path, stem)
    for folder, stem in folders:
        for path in sorted(folder.glob("*.json")):
            yield f"{path}", _row(f"{stem}/{path.stem}", read_object(path), str(path))


def _rows_of(path: Path, stem: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for key, stated in read_object(path).items():
        where = f"{path}: {key}"
        yield where, _row(f"{stem}/{key}", stated, where)


def _row(entry_id: str, stated: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(stated, Mapping) or "prediction" not in stated:
        raise DataError(f"{where} has no 'prediction': the file holds tasks, not answers")
    return {"id": entry_id, "prediction": stated["prediction"]}


def _stem_of(name: str) -> str | None:
    return max((stem for stem in FILES if name.startswith((f"{stem}_", f"{stem}."))), key=len, default=None)
