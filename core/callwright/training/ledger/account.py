"""The account of a folder: what its rows were made of, held against what takes part now.

``ledger.json`` holds the digests, and the changes that were accepted; ``ledger-tasks.json`` a digest of each task, so
that a changed corpus can be named task by task. Neither holds a time unless changes were accepted: folders that were
resumed have the same bytes as those that were not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from attrs import asdict, frozen

from callwright.errors import DataError, RunError
from callwright.training.ledger.ingredients import Ingredients
from callwright.training.run_folder import Run, write_atomically

LEDGER: Final = "ledger.json"
TASKS: Final = "ledger-tasks.json"
#: Names that a message lists before it stops.
_NAMED: Final = 5


@frozen
class Change:
    """Something that is no longer as it was: what, and its digest, version or count before and after."""

    what: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.what} ({self.before or 'none'} -> {self.after or 'none'})"


def settle(
    folder: Path,
    now: Ingredients,
    *,
    begun: bool,
    accept: bool = False,
    say: Callable[[str], object],
    option: str = "--accept-changes",
) -> list[Change]:
    """Write down what a new folder is made of, or compare it with what is written.

    ``begun`` says that the folder holds rows or a recipe already. Returns the changes that were accepted, which are
    written down with the time. Raises :class:`callwright.errors.RunError` naming each change if there are any and they
    are not, :class:`callwright.errors.DataError` for a ledger that cannot be read.
    """
    written = read_ledger(folder)
    if written is None or not begun:  # nothing hangs on a start that was killed before its first row
        if begun:
            say(f"{folder} was begun before there were ledgers: what takes part now is written down, not compared")
        _write(folder, now, [])
        return []
    tasks = Run(folder).read_json(TASKS)
    changes = compare(Ingredients(written["made_of"], tasks if isinstance(tasks, dict) else {}), now)
    if not changes:
        unknown = [key for key in ("weights", "files") if now.stated.get(key) and key not in written["made_of"]]
        if unknown:
            said = " and ".join(unknown)
            say(f"{folder} was begun before its ledger held digests of {said}: they are written down, not compared")
        if unknown or not isinstance(tasks, dict):
            _write(folder, now, written["continued"])
        return []
    named = "; ".join(map(str, changes))
    if not accept:
        raise RunError(
            f"{folder} was made of other things than take part now, and its rows would be of two worlds: {named}. Put "
            f"back what was changed, choose another folder, or go on with {option}, which {LEDGER} will say"
        )
    say(f"going on in {folder} though it was made of other things: {named}; written down in {LEDGER}")
    _note(folder, now, written["continued"], changes)
    return changes


def changes_since(folder: Path, now: Ingredients) -> list[Change]:
    """What is no longer as the ledger of a folder says; nothing where there is none.

    Raises :class:`callwright.errors.DataError` for a ledger that cannot be read.
    """
    written = read_ledger(folder)
    if written is None:
        return []
    tasks = Run(folder).read_json(TASKS)
    return compare(Ingredients(written["made_of"], tasks if isinstance(tasks, dict) else {}), now)


def _note(folder: Path, now: Ingredients, before: list[Any], changes: Sequence[Change]) -> None:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    _write(folder, now, [*before, {"at": at, "changes": [asdict(change) for change in changes]}])


def note_changes(folder: Path, changes: Sequence[Change]) -> None:
    """Write down further changes that were accepted, such as rows that are not those of a checkpoint."""
    written = read_ledger(folder)
    if written is None:
        return
    tasks = Run(folder).read_json(TASKS)
    now = Ingredients(written["made_of"], tasks if isinstance(tasks, dict) else {})
    _note(folder, now, written["continued"], changes)


def read_ledger(folder: Path) -> dict[str, Any] | None:
    """What ``ledger.json`` holds; ``None`` if there is none. Raises :class:`callwright.errors.DataError`."""
    found = Run(folder).read_json(LEDGER)
    if found is None:
        return None
    sound = isinstance(found, dict) and isinstance(found.get("made_of"), dict)
    if not sound or not isinstance(found.get("continued"), list):
        raise DataError(f"{folder / LEDGER} is no ledger; without it the folder goes on uncompared: remove the file")
    return dict(found)


def _write(folder: Path, now: Ingredients, continued: list[Any]) -> None:
    write_atomically(folder / TASKS, json.dumps(now.tasks, indent=0, sort_keys=True) + "\n")
    held = {"made_of": now.stated, "continued": continued}
    write_atomically(folder / LEDGER, json.dumps(held, indent=2, sort_keys=True) + "\n")


# Comparing ------------------------------------------------------------------------------------------------------------


def compare(before: Ingredients, now: Ingredients) -> list[Change]:
    """What differs, most telling first: the recipe, tasks, environments, files, weights, plugins, versions."""
    old, new = before.stated, now.stated
    return [
        *_value("the recipe", old.get("recipe"), new.get("recipe")),
        *_corpus(before, now),
        *_environments(_table(old, "environments"), _table(new, "environments")),
        *_files(_table(old, "files"), _table(new, "files")) * ("files" in old),
        *_weights(_table(old, "weights"), _table(new, "weights")),
        *_plugins(_table(old, "plugins"), _table(new, "plugins")),
        *(
            change
            for name in sorted({*_table(old, "versions"), *_table(new, "versions")})
            for change in _value(name, _table(old, "versions").get(name), _table(new, "versions").get(name))
        ),
    ]


def _table(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _value(what: str, before: Any, after: Any) -> list[Change]:
    return [] if before == after else [Change(what, str(before or ""), str(after or ""))]


def _corpus(before: Ingredients, now: Ingredients) -> list[Change]:
    old, new = _table(before.stated, "corpus"), _table(now.stated, "corpus")
    changes = _value("the corpus", old.get("name"), new.get("name"))
    splits = _table(old, "splits"), _table(new, "splits")
    for split in sorted({*splits[0], *splits[1]}):
        was, is_ = (_table(side, split) for side in splits)
        if was.get("digest") == is_.get("digest"):
            continue
        known, found = before.tasks.get(split, {}), now.tasks.get(split, {})
        kinds = {
            "changed": [task for task, digest in found.items() if known.get(task, digest) != digest],
            "gone": [task for task in known if task not in found],
            "new": [task for task in found if task not in known],
        }
        said = ", ".join(f"{len(ids)} {kind}: {_some(ids)}" for kind, ids in kinds.items() if ids)
        what = f"tasks of the split {split!r}" + (f" ({said})" if said else "")
        changes.append(Change(what, str(was.get("digest", "")), str(is_.get("digest", ""))))
    return changes


def _environments(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Change]:
    """Of those in which tasks were made: version and tools."""
    return [
        change
        for name in sorted({*before, *now})
        for change in _value(f"the environment {name}", before.get(name), now.get(name))
    ]


def _files(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Change]:
    """Of the files that options name; the recipe says whether an option names another one."""
    return [
        change
        for option in sorted({*before, *now})
        for change in _value(f"the file of {option}", before.get(option), now.get(option))
    ]


def _weights(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Change]:
    """Of the models that are named on both sides: the recipe, or the settings, say which is named."""
    return [
        change
        for model in sorted({*before} & {*now})
        for file in sorted({*before[model], *now[model]})
        for change in _value(f"the weights {model}/{file}", before[model].get(file), now[model].get(file))
    ]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")


def _plugins(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Change]:
    changes = []
    for name in sorted({*before, *now}):
        old, new = _table(before, name), _table(now, name)
        if old == new:
            continue
        # One that came or went changes nothing by being there, unless it listens to prompts or calls.
        if (not old or not new) and not (old or new).get("meddles"):
            continue
        which = old or new
        what = "version" if which.get("distribution") else f"source of the module {which.get('module', '')}"
        if old and new and which.get("distribution") and old.get("version") == new.get("version"):
            what = "source"
        changes.append(Change(f"the plugin {name!r}, {what}", _identity(old), _identity(new)))
    return changes


def _identity(plugin: Mapping[str, Any]) -> str:
    if not plugin:
        return ""
    if plugin.get("distribution"):
        edited = f", {plugin['source']}" if plugin.get("source") else ""
        return f"{plugin['distribution']} {plugin.get('version', '')}".strip() + edited
    return str(plugin.get("source") or plugin.get("module") or "an object")
