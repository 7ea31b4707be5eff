"""Snapshots: the state of a session in a file, and what is different in another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from callwright.environments.backends.session import BackedSession
from callwright.errors import DataError, RunError, UsageError
from callwright.language.long_numbers import json_text, json_value


def compare(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The difference of two dumps in the form of :func:`callwright.environments.world.difference`.

    Rows go by their first field, or by as many of the first fields as it takes to tell those of each dump apart.
    """
    found: dict[str, Any] = {}
    first, second = _all_tables(before), _all_tables(after)
    for table in sorted({*first, *second}):
        old, new = _keyed(first.get(table, []), second.get(table, []))
        parts: dict[str, Any] = {
            "added": {key: new[key] for key in new if key not in old},
            "removed": {key: old[key] for key in old if key not in new},
            "changed": {key: _changed(old[key], new[key]) for key in new if key in old and old[key] != new[key]},
        }
        if any(parts.values()):
            found[table] = {name: part for name, part in parts.items() if part}
    if before["now"] != after["now"]:
        found["clock"] = [before["now"], after["now"]]
    return found


def _all_tables(state: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The tables of a snapshot; of one of several environments named ``email.drafts``."""
    if "parts" not in state:
        tables: dict[str, list[dict[str, Any]]] = state["tables"]
        return tables
    return {
        f"{part}.{table}": rows for part, inner in state["parts"].items() for table, rows in inner["tables"].items()
    }


def _changed(old: dict[str, Any], new: dict[str, Any]) -> dict[str, list[Any]]:
    """What the fields were and are, of those that differ or that only one of the rows has."""
    return {
        name: [old.get(name), new.get(name)]
        for name in {**old, **new}
        if name not in old or name not in new or old[name] != new[name]
    }


def _keyed(*tables: list[dict[str, Any]]) -> list[dict[str, dict[str, Any]]]:
    """The rows of each table by the same fields: else a row would have one key before and another one after."""
    fields = next((list(rows[0]) for rows in tables if rows), [])
    for count in range(1, len(fields) + 1):
        keyed = [{"/".join(str(row.get(name)) for name in fields[:count]): row for row in rows} for rows in tables]
        if all(len(found) == len(rows) for found, rows in zip(keyed, tables, strict=True)):
            return keyed
    return [{str(number): row for number, row in enumerate(rows)} for rows in tables]


def load_state(session: Any, path: Path) -> None:
    """Put a session into the state of a file, if the file exists."""
    must_have_tables(session)
    if not path.exists():
        return
    state, several = read_state(path), _is_of_several(session)
    if ("parts" in state) != several:
        whose = "several environments" if "parts" in state else "one environment"
        raise DataError(f"{path} is a snapshot of {whose}, which {session.environment.name!r} is not")
    if several:
        try:
            session.load(state)
        except DataError as error:
            raise DataError(f"{path}: {error}") from error
        return
    if isinstance(session, BackedSession):
        session.load(state)
        return
    outcome = session.helper("_load_scenario", {"state": state})
    if not outcome.executed:
        raise DataError(f"{path}: {outcome.message}")


def dumped(session: Any) -> dict[str, Any]:
    """The whole state of a session as JSON."""
    whole = _is_of_several(session) or isinstance(session, BackedSession)
    state: dict[str, Any] = session.dump() if whole else session.world.dump()
    return state


def _is_of_several(session: Any) -> bool:
    from callwright.environments.composed.session import ComposedSession

    return isinstance(session, ComposedSession)


def write_state(session: Any, path: Path) -> None:
    """As :func:`write_dump`, of a session."""
    write_dump(dumped(session), path)


def write_dump(state: dict[str, Any], path: Path) -> None:
    """Write what :func:`dumped` gave into a file, whole or not at all. Pipes and devices are written to as they are."""
    from callwright.training.run_folder import write_atomically

    text = json_text(state, indent=1, ensure_ascii=False) + "\n"
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

    if not isinstance(session, StatefulSession | BackedSession) and not _is_of_several(session):
        raise UsageError(
            "only stateful environments (callwright env list shows their scenarios) and those over a backend have a "
            "state in tables"
        )


def read_state(path: Path) -> dict[str, Any]:
    """A snapshot. Raises :class:`callwright.errors.DataError` for a file that is none."""
    try:
        state = json_value(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}") from error
    parts = state.get("parts") if isinstance(state, dict) else None
    several = isinstance(parts, dict) and type(state.get("now")) is int and all(map(_has_tables, parts.values()))
    if not several and not _has_tables(state):
        raise DataError(
            f'{path} is not a snapshot: it must be {{"now": seconds, "tables": {{name: [row, …]}}}}, or of several '
            'environments {"now": seconds, "parts": {name: …}}'
        )
    return dict(state)


def _has_tables(state: Any) -> bool:
    tables = state.get("tables") if isinstance(state, dict) else None
    return (
        isinstance(tables, dict)
        and all(isinstance(rows, list) and all(isinstance(row, dict) for row in rows) for rows in tables.values())
        and type(state.get("now")) is int
    )
