"""Tools in rows: by name where they are the environment's own, and written out where a task changed or added them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import fields

from callwright.errors import DataError, UnknownName, UsageError
from callwright.tools.spec import ToolSpec

#: The key under which a task has a tool whose specification has another name.
_KEY: Final = "as"
_FIELDS: Final = {attribute.name: attribute for attribute in fields(ToolSpec)}
_FLAGS: Final = ("read_only", "destructive", "idempotent", "discovery", "sensitive", "hidden", "irreversible")
#: What is a key of a row whatever the specification says: an empty list of parameters is something else than none.
_ALWAYS: Final = ("name", "parameters")


def spec_row(spec: ToolSpec) -> dict[str, Any]:
    """A specification as an object of JSON: its fields, without those that are as they are by default."""
    found: dict[str, Any] = {}
    for name, attribute in _FIELDS.items():
        value = getattr(spec, name)
        if name in _ALWAYS or value != attribute.default:
            found[name] = dict(value) if isinstance(value, Mapping) else value
    return found


def read_spec(row: Any) -> ToolSpec:
    """What :func:`spec_row` wrote. Raises :class:`callwright.errors.DataError`, which says what is wrong with it."""
    if not isinstance(row, Mapping) or not isinstance(row.get("name"), str) or not row["name"]:
        raise DataError(f"a tool is a name, or an object with a 'name'; not {row!r:.80}")
    name = row["name"]
    for key, value in row.items():
        if key not in _FIELDS:
            raise DataError(f"tool {name!r}: {UnknownName('field of a tool', str(key), _FIELDS)}")
        if not _fits(key, value):
            raise DataError(f"tool {name!r}: {key!r} cannot be {value!r:.80}")
    try:
        return ToolSpec(**row)
    except UsageError as error:
        raise DataError(f"tool {name!r}: {error}") from error


def _fits(key: str, value: Any) -> bool:
    if key in _FLAGS:
        return isinstance(value, bool)
    if key in ("parameters", "result"):
        return isinstance(value, Mapping)
    if key == "latency":
        return type(value) is int
    return isinstance(value, str) or (key == "cost" and type(value) is int)


def tool_rows(tools: Mapping[str, ToolSpec], own: Mapping[str, ToolSpec]) -> list[Any]:
    """The tools of a task, in their order: names of those that are of the environment (``own``), objects of others."""
    found: list[Any] = []
    for key, spec in tools.items():
        known = own.get(key)
        if known is spec or known == spec:
            found.append(key)
        else:
            found.append(spec_row(spec) if spec.name == key else {**spec_row(spec), _KEY: key})
    return found


class ToolReader:
    """Reads the tools of rows. Equal tools of a file are one object, so that each is compiled once."""

    def __init__(self) -> None:
        self._known: dict[str, ToolSpec] = {}

    def tools(self, rows: Any, own: Mapping[str, ToolSpec]) -> dict[str, ToolSpec]:
        """What :func:`tool_rows` wrote. Raises :class:`callwright.errors.DataError`."""
        if not isinstance(rows, Sequence) or isinstance(rows, str):
            raise DataError(f"'tools' is a list of names and tools, not {rows!r:.80}")
        found: dict[str, ToolSpec] = {}
        for row in rows:
            if isinstance(row, str):
                key, spec = row, own.get(row)
                if spec is None:
                    raise DataError(f"{UnknownName('tool of the environment', row, own)}")
            else:
                key, spec = self._spec(row)
            if key in found:
                raise DataError(f"the tool {key!r} stands twice in 'tools'")
            found[key] = spec
        return found

    def _spec(self, row: Any) -> tuple[str, ToolSpec]:
        written = dict(row) if isinstance(row, Mapping) else row
        key = written.pop(_KEY, None) if isinstance(written, dict) else None
        text = repr(written)
        spec = self._known.get(text)
        if spec is None:
            spec = self._known[text] = read_spec(written)
        if key is not None and not isinstance(key, str):
            raise DataError(f"tool {spec.name!r}: {_KEY!r} is a name, not {key!r:.80}")
        return key or spec.name, spec
