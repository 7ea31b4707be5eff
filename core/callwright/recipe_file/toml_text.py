"""Recipes as text: where a key stands in a file, and data as TOML."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from typing import Any

from callwright.recipe_file.overriding import Applied

_KEY = r'(?:"[^"]*"|\'[^\']*\'|[A-Za-z0-9_-]+)'
_TABLE_LINE = re.compile(rf"\s*\[\[?\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*\]")
_KEY_LINE = re.compile(rf"\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*=")


def locate(source: str, text: str, overrides: Applied, path: Sequence[str]) -> str:
    """Where a key was set: ``--set key`` or ``file:line``, of the key itself or the nearest table around it; ``--unset
    key`` where it was left out.

    Of a table that the file and overrides have both, both.
    """
    for length in range(len(path), 0, -1):
        dotted = ".".join(path[:length])
        if dotted in overrides:  # also of a table around the key, which then was replaced as a whole
            return _option(dotted, overrides[dotted])
    for length in range(len(path), 0, -1):
        line = find_line(text, path[:length])
        if line is not None:
            within = ".".join(path) + "."
            set_there = [_option(key, value) for key, value in overrides.items() if key.startswith(within)]
            return f"{source}:{line}" + (f" with {' '.join(set_there)}" if set_there else "")
    inside = [key for key in overrides if path and key.startswith(f"{path[0]}.")]  # a table that was set key by key
    return _option(inside[0], overrides[inside[0]]) if inside else source


def _option(key: str, value: str | None) -> str:
    return f"--unset {key}" if value is None else f"--set {key}={value}"


def write_toml(data: Mapping[str, Any], prefix: tuple[str, ...] = ()) -> str:
    """A recipe's data as TOML: plain values first, then a table for each mapping."""
    plain = {key: value for key, value in data.items() if not isinstance(value, Mapping)}
    lines = [f"[{'.'.join(map(_toml_key, prefix))}]\n"] if prefix and (plain or not data) else []
    lines += [f"{_toml_key(key)} = {toml_value(value)}\n" for key, value in plain.items()]
    for key, value in data.items():
        if isinstance(value, Mapping):
            lines.append(("\n" if lines else "") + write_toml(value, (*prefix, key)))
    return "".join(lines)


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml_string(key)


def _toml_string(text: str) -> str:
    # JSON's escapes are all escapes of TOML's basic strings, which cannot hold DEL in addition.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_value(value: Any) -> str:
    """One value as TOML, in one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml_key(key)} = {toml_value(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml_value(inner) for inner in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _toml_string(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return repr(value)


def find_line(text: str, path: Sequence[str]) -> int | None:
    """The line (from 1) on which a key or table of a TOML text is set; ``None`` if it is nowhere."""
    table: tuple[str, ...] = ()
    wanted = tuple(path)
    best: int | None = None
    listed: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        header = _TABLE_LINE.match(line)
        if header:
            table = _split_key(header[1])
            if line.lstrip().startswith("[["):  # the next entry of a list of tables
                listed[table] = listed.get(table, -1) + 1
            for length in range(len(table), 0, -1):
                if table[:length] in listed:
                    table = (*table[:length], str(listed[table[:length]]), *table[length:])
                    break
            if table == wanted:
                return number
            if best is None and table[: len(wanted)] == wanted:
                best = number
            continue
        key = _KEY_LINE.match(line)
        if key:
            full = table + _split_key(key[1])
            if full == wanted:
                return number
            if best is None and full[: len(wanted)] == wanted:
                best = number
    return best


def _split_key(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in re.findall(_KEY, dotted))
