"""The release's files: samples of the second version (one JSON Lines file) and of the first (data beside specs)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import field, frozen

from callwright.commands.jsonl import BadRow, RowFile
from callwright.compression.packing import unpacked
from callwright.errors import DataError
from callwright.tools.schema_dialects import normalise
from callwright.tools.spec import ToolSpec

#: Where files may lie in the folder that the user names.
_PLACES: Final = ("", "v2", "data_v2", "src", "v1", "data")
#: The parts of the first release: the category, its data, its specs.
_PARTS: Final = (
    ("executable", "executable/executable-data.json", "executable/executable-spec.json"),
    ("glaive", "non-executable/non-executable-glaive-data.json", "non-executable/non-executable-glaive-spec.json"),
    ("sgd", "non-executable/non-executable-sgd-data.json", "non-executable/non-executable-sgd-spec.json"),
)
_PARAMETERS: Final = ("path_parameters", "query_parameters", "parameters", "arguments")
_LABEL: Final = re.compile(r"(\$?var_?)[0-9]+")
#: Types of the release that no dialect of schemas knows.
_TYPES: Final[Mapping[str, Mapping[str, Any]]] = {
    "int or float": {"type": "number"},
    "list of float": {"type": "array", "items": {"type": "number"}},
    "Enum": {},
}
_KNOWN: Final = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
#: What a parameter says that is no JSON Schema.
_NO_SCHEMA: Final = ("required", "optional", "allowed_values", "possible_values", "default_value", "example")


@frozen
class Sample:
    """One sample of a release: the query, the offered tools, the gold calls and the gold answer (``None`` in v1)."""

    id: str
    query: str
    category: str
    tools: tuple[Mapping[str, Any], ...] = field(repr=False)
    calls: tuple[Mapping[str, Any], ...] = field(repr=False)
    gold: Any = field(repr=False)

    @property
    def prefix(self) -> str:
        """What labels of this sample begin with: ``$var_``, ``$var`` or ``var``."""
        found = _LABEL.fullmatch(str(self.calls[0].get("label", "")))
        return found[1] if found else "$var_"


def output_of(tool: Mapping[str, Any]) -> str:
    """The name of a tool's one output; empty where it has none or several."""
    outputs = list(tool.get("output_parameters") or ())
    return str(outputs[0]) if len(outputs) == 1 else ""


def spec_of(tool: Mapping[str, Any]) -> ToolSpec:
    """A tool of a release as models are told of it. A bare reference means its one output."""
    properties: dict[str, Any] = {}
    required = []
    for member in _PARAMETERS:
        for name, stated in (tool.get(member) or {}).items():
            stated = stated if isinstance(stated, Mapping) else {}
            kept = {key: value for key, value in stated.items() if key not in _NO_SCHEMA}
            kind = kept.get("type")
            if isinstance(kind, str) and kind in _TYPES:
                kept = {key: value for key, value in kept.items() if key != "type"} | dict(_TYPES[kind])
            schema = normalise(kept)
            if isinstance(schema.get("type"), str) and schema["type"] not in _KNOWN:  # "Date (yyyy-mm-dd)"
                schema["description"] = f"{schema.get('description', '')} ({schema.pop('type')})".strip()
            allowed = stated.get("allowed_values")
            if allowed and isinstance(allowed, list):  # not in words, such as "1-100"
                schema["enum"] = allowed
            properties[name] = schema
            if stated.get("required", not stated.get("optional", False)):
                required.append(name)
    outputs = {name: normalise(value) for name, value in (tool.get("output_parameters") or {}).items()}
    return ToolSpec(
        name=tool["name"],
        description=str(tool.get("description") or ""),
        parameters={"type": "object", "properties": properties, "required": required},
        result={"type": "object", "properties": {name: {"description": _told(one)} for name, one in outputs.items()}},
        result_field=output_of(tool) or None,
        read_only=True,
    )


def _told(output: Mapping[str, Any]) -> str:
    return str(output.get("description", ""))


# Files ----------------------------------------------------------------------------------------------------------------


def found(root: Path, *names: str) -> Path | None:
    """The first file of these names, plain or ``.gz``, where the release or a copy of it may have it."""
    for place in _PLACES:
        for name in names:
            for path in (root / place / name, root / place / f"{name}.gz"):
                if path.is_file():
                    return path
    return None


def read_json(path: Path) -> Any:
    """A JSON file, plain or compressed. Raises :class:`callwright.errors.DataError`."""
    try:
        with path.open("rb") as raw, unpacked(raw, str(path)) as file:
            return json.loads(file.read())
    except (OSError, EOFError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read as JSON: {error}") from error


def rows_of(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows of a JSON Lines file with their places. Raises :class:`callwright.errors.DataError` for a bad one."""
    with RowFile(str(path)) as rows:
        for row in rows:
            where = f"{path}:{rows.number}"
            if isinstance(row, BadRow):
                raise DataError(f"{where}: {row}")
            yield where, row


def samples_of(root: Path, version: str) -> list[Sample]:
    """The samples of a release. Raises :class:`callwright.errors.DataError` where there are none."""
    if not root.exists():
        raise DataError(f"{root} is not there; name the folder of the release (--data DIR)")
    return _second(root) if version == "2" else _first(root)


def _second(root: Path) -> list[Sample]:
    path = root if root.is_file() else found(root, "nestful_data.jsonl") or _part(root)
    if path is None:
        raise DataError(
            f"{root} holds no nestful_data.jsonl (nor a part of it, nestful_*.jsonl): name the folder data_v2 of the "
            "release, or the file itself"
        )
    made = [sample_of(row, where) for where, row in rows_of(path)]
    if not made:
        raise DataError(f"{path} holds no samples")
    return made


def _part(root: Path) -> Path | None:
    listed = (sorted((root / place).glob("nestful_*.jsonl*")) for place in _PLACES)
    return next((paths[0] for paths in listed if paths), None)


def sample_of(row: Mapping[str, Any], where: str) -> Sample:
    """A row of the second release, whose members may be JSON texts. Raises :class:`callwright.errors.DataError`."""
    try:
        calls, tools = (_opened(row[name]) for name in ("output", "tools"))
        gold = row["gold_answer"]
        gold = json.loads(gold) if isinstance(row["tools"], str) else gold
        outputs = {tool["name"]: output_of(tool) for tool in tools}
        category = "mathematical" if outputs[calls[0]["name"]] == "result" else "coding"
        for call in calls:
            call["arguments"].items()
            call["label"].strip()
        return Sample(str(row["sample_id"]), str(row["input"]), category, tuple(tools), tuple(calls), gold)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise DataError(f"{where}: no sample of NESTFUL: {type(error).__name__}: {error}") from error


def _opened(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _first(root: Path) -> list[Sample]:
    made = []
    for category, data, specs in _PARTS:
        paths = found(root, data), found(root, specs)
        if paths[0] is None or paths[1] is None:
            raise DataError(f"{root} holds no {data} with {specs}: name the folder 'data' of the first release")
        tools = tuple({tool["name"]: tool for tool in reversed(read_json(paths[1]))}.values())[::-1]
        for number, row in enumerate(read_json(paths[0])):
            try:
                calls = tuple(call for call in row["output"] if call["name"] != "var_result")
                made.append(Sample(f"{category}-{number}", row["input"], category, tools, calls, None))
            except (KeyError, TypeError) as error:
                raise DataError(f"{paths[0]}: sample {number} cannot be read: {error!r}") from error
    return made


def examples_of(root: Path) -> list[Sample]:
    """The release's worked examples, in its order; none where the file is not there."""
    path = None if root.is_file() else found(root, "icl_examples.json")
    return [] if path is None else [sample_of(row, str(path)) for row in read_json(path)]
