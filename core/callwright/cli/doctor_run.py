"""``callwright doctor RUN``: what of a folder is damaged, from where it can go on, and how it is put right."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, Final

import click
from attrs import define, field

from callwright.commands.safe_text import say
from callwright.errors import DataError, near_path
from callwright.machines.model_server.reply_cache import REPLIES, damage_of
from callwright.training.ledger.account import LEDGER, TASKS
from callwright.training.ledger.owner import owned
from callwright.training.ledger.row_digests import DigestedRows, RowDamage
from callwright.training.ledger.seals import SET_ASIDE, Examination, aside_of, examine, set_aside
from callwright.training.run_folder import ROLLOUTS, Run, write_atomically

#: Of an evaluation: one row a task, from which it goes on by itself.
VERDICTS: Final = "verdicts.jsonl"
RESULT: Final = "evaluation.json"
_JSON: Final = ("manifest.json", "settings.json", RESULT, LEDGER, TASKS)


@define
class Findings:
    """What was found in a folder."""

    folder: Path
    checkpoints: Examination
    damage: list[str] = field(factory=list)
    #: Files whose rows are kept up to the given byte, for they can be made again from there.
    cut: dict[str, tuple[int, int]] = field(factory=dict)
    #: What is wrong with files that the next start makes anew where they are not there.
    spare: dict[str, str] = field(factory=dict)
    #: Of each file of rollouts, how many there are and what they take: rows and bytes.
    kept: dict[str, tuple[int, int]] = field(factory=dict)

    @property
    def all(self) -> list[str]:
        """Everything that is wrong."""
        return [*self.damage, *self.spare.values(), *self.checkpoints.damage]

    @property
    def can_repair(self) -> bool:
        """Whether a repair would do anything."""
        return bool(self.checkpoints.bad or self.cut or self.spare)

    def to_json(self) -> dict[str, Any]:
        """The same for a program."""
        made = self.checkpoints
        lost = {**made.lost, **{name: rows for name, (_, rows) in self.cut.items()}}
        return {
            "folder": str(self.folder),
            "ok": not self.all,
            "damage": self.all,
            "checkpoints": made.checkpoints,
            "last_good": made.good or None,
            "rows_lost": {name: rows for name, rows in lost.items() if rows},
            "without_digests": made.unsealed,
            "to_set_aside": [path.name for path in made.bad],
            "kept": {name: {"rows": rows, "bytes": size} for name, (rows, size) in self.kept.items()},
        }


def doctor_run(folder: Path, repair: bool, as_json: bool) -> None:
    """Look over a folder, and repair it if asked to. Status 1 if something is damaged and stays so."""
    if not ((folder / "recipe.toml").is_file() or (folder / "settings.json").is_file()):
        if not folder.exists():
            raise DataError(f"{folder}: there is no such folder{near_path(folder)}")
        raise DataError(f"{folder} holds neither a run (recipe.toml) nor an evaluation (settings.json)")
    if not repair:
        found = look_over(folder)
        _show(found, as_json, {})
        left = found.all
    else:
        with owned(folder) as before:
            if before is not None:
                say(f"taking over from {before}, which is gone")
            found = look_over(folder)
            _show(found, as_json, {"repaired": _repair(found)})
            left = look_over(folder).damage  # of which there may be more than what could be cut off
    if left:
        click.get_current_context().exit(1)


def look_over(folder: Path) -> Findings:
    """Everything that can be told of the files of a folder. Reads, and changes nothing."""
    found = Findings(folder, examine(folder))
    for name in _JSON:
        try:
            Run(folder).read_json(name)
        except DataError as error:
            found.damage.append(str(error))
    try:
        if (folder / "recipe.toml").is_file():
            tomllib.loads((folder / "recipe.toml").read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        found.damage.append(f"{folder / 'recipe.toml'} is not valid TOML: {error}")
    if (reason := damage_of(folder / REPLIES)) is not None:
        found.spare[REPLIES] = f"{REPLIES} is damaged: {reason}"
    known = {name for name in found.checkpoints.lost if found.checkpoints.lost[name]}
    for path in sorted(folder.glob("*.jsonl")):
        if path.name.startswith(SET_ASIDE):  # by an earlier repair, damage and all
            continue
        if path.name in (ROLLOUTS, VERDICTS):
            found.kept[path.name] = _size(path)
        bad = _first_bad_line(path)
        said = "" if bad is None else f"line {bad.line}: not a JSON object, and {bad.rows - 1} rows after it"
        if path.name == VERDICTS:
            edited = DigestedRows(path).damage(finished=(folder / RESULT).exists())
            if edited is not None and (bad is None or edited.line < bad.line):
                bad, said = edited, str(edited)
            if bad is not None:
                found.cut[path.name] = bad.byte, bad.rows
        if bad is not None and path.name not in known:
            found.damage.append(f"{path.name}, {said}")
    return found


def _size(path: Path) -> tuple[int, int]:
    """The rows of a file and their bytes, without a torn tail."""
    rows = size = 0
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                rows, size = rows + 1, size + len(line)
    return rows, size


def _first_bad_line(path: Path) -> RowDamage | None:
    """The first line that is no row."""
    bad: tuple[int, int] | None = None
    byte = number = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if bad is None and line.strip() and line.endswith(b"\n"):  # a torn tail is of a crash, and goes by itself
                try:
                    sound = isinstance(json.loads(line), dict)
                except (ValueError, RecursionError):
                    sound = False
                if not sound:
                    bad = number, byte
            byte += len(line)
    return None if bad is None else RowDamage(*bad, number - bad[0] + 1)


def _repair(found: Findings) -> list[str]:
    done = []
    for path in found.checkpoints.bad:
        done.append(f"{path.name} is now {set_aside(path).name}")
    for name, (byte, _) in found.cut.items():
        path = found.folder / name
        data, aside = path.read_bytes(), aside_of(path)
        write_atomically(aside, data)
        write_atomically(path, data[:byte])
        DigestedRows(path).resume()
        done.append(f"{name} ends before the damaged line; what it was is in {aside.name}")
    for name in found.spare:
        done.append(f"{name} is now {set_aside(found.folder / name).name}; what has no row yet is asked for again")
    return done


def _show(found: Findings, as_json: bool, more: dict[str, Any]) -> None:
    told = found.to_json()
    if as_json:
        click.echo(json.dumps({**told, **more}, indent=2))
        return
    from callwright.commands.terminal import screen, text

    console = screen()
    for reason in found.all:
        console.print(text(f"✗ {reason}", "red"))
    if told["without_digests"]:
        names = ", ".join(told["without_digests"])
        console.print(text(f"written without digests, so not compared, and taken as it is: {names}", "dim"))
    if told["checkpoints"]:
        console.print(text(f"last good checkpoint: {told['last_good'] or 'none; the run would begin again'}"))
    if told["rows_lost"]:
        lost = ", ".join(f"{rows} of {name}" for name, rows in told["rows_lost"].items())
        console.print(text(f"rows that will be made again: {lost}"))
    for name, (rows, size) in found.kept.items():
        if rows:
            console.print(text(f"{name}: {rows:,} rows, {size / 1e6:,.1f} MB, {size / rows:,.0f} bytes each", "dim"))
    for line in more.get("repaired", ()):
        console.print(text(f"✓ {line}", "green"))
    if not found.all:
        console.print(text("✓ nothing is damaged", "green"))
    elif found.can_repair and not more:
        console.print(text(f"what to do: callwright doctor {found.folder} --repair, then go on as usual"))
