"""Snapshots: the state of a session in a file, and what is different in another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from callwright.errors import DataError, RunError, UsageError


def compare(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The difference of two dumps in the form of :func:`callwright.environments.world.difference`; rows go by their
    first field.
    """
    found: dict[str, Any] = {}
    for table in sorted({*before["tables"], *after["tables"]}):
        old, new = _keyed(before["tables"].get(table, [])), _keyed(after["tables"].get(table, []))
        parts: dict[str, Any] = {
            "added": {key: new[key] for key in new if key not in old},
            "removed": {key: old[key] for key in old if key not in new},
            "changed": {
                key: {
                    name: [old[key].get(name), value] for name, value in new[key].items() if old[key].get(name) != value
                }
                for key in new
                if key in old and old[key] != new[key]
            },
        }
        if any(parts.values()):
            found[table] = {name: part for name, part in parts.items() if part}
    if before["now"] != after["now"]:
        found["clock"] = [before["now"], after["now"]]
    return found


def _keyed(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Rows by their first field, or by as many of the first fields as it takes to tell them apart."""
    fields = list(rows[0]) if rows else []
    for count in range(1, len(fields) + 1):
        keyed = {"/".join(str(row[name]) for name in fields[:count]): row for row in rows}
        if len(keyed) == len(rows):
            return keyed
    return {str(number): row for number, row in enumerate(rows)}


def load_state(session: Any, path: Path) -> None:
    """Put a session into the state of a file, if the file exists."""
    must_have_tables(session)
    if not path.exists():
        return
    outcome = session.helper("_load_scenario", {"state": read_state(path)})
    if not outcome.executed:
        raise DataError(f"{path}: {outcome.message}")


def write_state(session: Any, path: Path) -> None:
    """Write the state of a session into a file, whole or not at all. Pipes and devices are written to as they are."""
    from callwright.training.run_folder import write_atomically

    text = json.dumps(session.world.dump(), indent=1, ensure_ascii=False) + "\n"
    if not path.exists() or path.is_file() or path.is_dir():
        write_atomically(path, text)
        return
    try:  # a pipe or a device must be written to, not replaced by a file of its name
        path.write_text(text, encoding="utf-8")
    except BrokenPipeError:
        raise
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror or error}") from error


def must_have_tables(session: Any) -> None:
    """Raise :class:`callwright.UsageError` for a session whose state is not in tables."""
    from callwright.environments.stateful.session import StatefulSession

    if not isinstance(session, StatefulSession):
        raise UsageError(
            "only stateful environments (callwright env list shows their scenarios) have a state in tables"
        )


def read_state(path: Path) -> dict[str, Any]:
    """A snapshot. Raises :class:`callwright.errors.DataError` for a file that is none."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}") from error
    tables = state.get("tables") if isinstance(state, dict) else None
    if (
        not isinstance(tables, dict)
        or not all(isinstance(rows, list) and all(isinstance(row, dict) for row in rows) for rows in tables.values())
        or type(state.get("now")) is not int
    ):
        raise DataError(f'{path} is not a snapshot: it must be {{"now": seconds, "tables": {{name: [row, …]}}}}')
    return dict(state)
