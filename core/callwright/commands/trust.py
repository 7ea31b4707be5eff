"""What a recipe would reach for outside of this process: shown, and asked about, before anything of it is made.

A recipe that came with the package is trusted, and so is what the user gave with ``--set``. For anything else the user
is asked on a terminal; elsewhere it takes ``--yes`` or an earlier answer *always*. Such answers, and the folders of
runs that were allowed, are kept in ``$XDG_CONFIG_HOME/callwright/trusted`` (``~/.config`` without the variable): a line
of JSON each, with the folder of the recipe and the SHA-256 of its text: one that was changed is asked about again.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from attrs import frozen

from callwright.commands.safe_text import say, visible
from callwright.errors import UnknownName, UsageError
from callwright.recipe_file import LoadedTable, shipped_recipes
from callwright.registration import Reach

if TYPE_CHECKING:
    from callwright.plugins import Registry

#: The components of a recipe that a command makes, by the keys of the recipe, with their kinds.
SCORED: Final[Mapping[str, str]] = {
    "corpus": "corpus",
    "ir": "parser",
    "reward": "reward recipe",
    "environment": "environment",
    "user": "user",
}
TRAINED: Final[Mapping[str, str]] = {**SCORED, "algorithm": "algorithm", "trainer": "trainer", "tracker": "tracker"}
SAMPLED: Final[Mapping[str, str]] = {**SCORED, "sampler": "sampler"}


@frozen
class Wish:
    """Something that a recipe, and not the user, asks for: where, for which component, and what."""

    where: str
    component: str
    reach: Reach

    def __str__(self) -> str:
        return f"{self.where}: {self.component} {self.reach.what}"


def wishes(
    loaded: LoadedTable, registry: Registry, parts: Mapping[str, str], given: Collection[str] = ()
) -> list[Wish]:
    """What the components of ``parts`` would reach for because the recipe says so. Nothing of it is made.

    ``given`` are further keys (``sampler.base_url``) that the user gave, beside those of ``--set``. Raises
    :class:`callwright.errors.PluginError` where a plugin's own declaration fails.
    """
    said = {*loaded.overrides, *given}
    found = []
    for part, kind in parts.items():
        for path, choice in () if part in said else loaded.choices(part):
            try:
                spec = registry.spec(kind, choice.name)
            except UnknownName:  # said when it is to be made
                continue
            stated = {"name": choice.name, **choice.options}
            for reach in spec.reach(choice.options):
                if any(option in stated and ".".join((*path, option)) not in said for option in reach.options):
                    first = next((option for option in reach.options if option in choice.options), "name")
                    found.append(Wish(loaded.where(*path, first), f"{part} {choice.name!r}", reach))
    return found


def allow(
    loaded: LoadedTable,
    registry: Registry,
    parts: Mapping[str, str],
    *,
    yes: bool,
    given: Collection[str] = (),
    dry_run: bool = False,
    run_folder: Path | None = None,
) -> bool:
    """Go on only if what the recipe would reach for may be. Returns whether it would reach for anything.

    With ``dry_run`` only what a dry run does itself is asked about; the rest is shown. ``run_folder`` is where the run
    goes: going on with a run that was allowed asks nothing. Raises :class:`callwright.UsageError` for a refusal.
    """
    found = wishes(loaded, registry, parts, given)
    if not found:
        return False
    keys = [_key(Path(loaded.source).parent, loaded.text or "")]
    if run_folder is not None:
        from callwright.training.recipe_run import kept_text

        keys.append(_key(run_folder, kept_text(loaded)))
    if _came_with_the_package(loaded) or any(key in _trusted() for key in keys):
        pass
    elif dry_run and not any(wish.reach.dry_run for wish in found):
        _show(f"{loaded.source} asks for more than training; callwright run would ask about it:", found)
        return True
    elif yes:
        _show(f"{loaded.source} asks for more than training, which --yes allows:", found)
    else:
        _show(f"{loaded.source} did not come with Callwright, and it asks for more than training:", found)
        if _ask(loaded):
            _remember(keys[:1])
    if not dry_run:
        _remember(keys[1:])
    return True


def not_yet_allowed(
    loaded: LoadedTable, registry: Registry, parts: Mapping[str, str], *, run_folder: Path
) -> list[Wish]:
    """What :func:`allow` would ask about for a run, where nobody can be asked; empty for what was allowed."""
    from callwright.training.recipe_run import kept_text

    found = wishes(loaded, registry, parts)
    keys = {_key(Path(loaded.source).parent, loaded.text or ""), _key(run_folder, kept_text(loaded))}
    return [] if not found or _came_with_the_package(loaded) or keys & _trusted() else found


def agree(loaded: LoadedTable, found: Sequence[Wish], *, yes: bool, more_than: str) -> None:
    """Go on only if ``found``, which a file asks for beside what it is for, may be.

    An answer *always* is kept for this text in this folder. Raises :class:`callwright.UsageError` for a refusal.
    """
    key = _key(Path(loaded.source).parent, loaded.text or "")
    if key in _trusted():
        return
    if yes:
        _show(f"{loaded.source} asks for more than {more_than}, which --yes allows:", found)
        return
    _show(f"{loaded.source} did not come with Callwright, and it asks for more than {more_than}:", found)
    if _ask(loaded):
        _remember([key])


def _show(headline: str, found: Sequence[Wish]) -> None:
    """Print exactly what is asked for: nothing left out or replaced but what a terminal would obey."""
    lines = [headline, *(f"  {wish}" for wish in found)]
    for line in lines:
        one = "".join(character if character.isprintable() else repr(character)[1:-1] for character in line)
        click.echo(visible(one), err=True)


def _ask(loaded: LoadedTable) -> bool:
    """Whether the user said *always*. Raises :class:`callwright.UsageError` unless the user agreed."""
    if not at_terminal():
        raise UsageError(
            f"{loaded.source}: nothing was started. If all of that is meant, give --yes, or run it on a terminal, "
            "which asks (docs/security.md)"
        )
    answers = {"y": "yes", "n": "no", "a": "always"}
    while True:
        said = click.prompt("Go on? yes, no, or always for this recipe in this folder", default="no", err=True)
        answer = answers.get(str(said).strip().lower()[:1])
        if answer == "no":
            raise UsageError(f"{loaded.source}: nothing was started")
        if answer is not None:
            return answer == "always"


def at_terminal() -> bool:
    """Whether somebody can be asked."""
    try:
        return sys.stdin.isatty() and sys.stderr.isatty()
    except (AttributeError, ValueError):  # closed
        return False


def _came_with_the_package(loaded: LoadedTable) -> bool:
    """Whether the text is that of a shipped recipe, wherever it lies: overrides are the user's own."""
    return any(loaded.text == path.read_text(encoding="utf-8") for path in shipped_recipes().values())


# The file of trusted recipes ------------------------------------------------------------------------------------------


def trusted_file() -> Path:
    """Where answers *always* are kept."""
    stated = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(stated) if Path(stated).is_absolute() else Path.home() / ".config"
    return base / "callwright" / "trusted"


def _key(folder: Path, text: str) -> tuple[str, str]:
    return str(folder.resolve()), hashlib.sha256(text.encode("utf-8")).hexdigest()


def _trusted() -> set[tuple[str, str]]:
    """The keys in the file; a line that says nothing allows nothing."""
    try:
        lines = trusted_file().read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError, RuntimeError):
        return set()
    found = set()
    for line in lines:
        try:
            row = json.loads(line)
            found.add((str(row["folder"]), str(row["recipe"])))
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    return found


def _remember(keys: Sequence[tuple[str, str]]) -> None:
    missing = [key for key in keys if key not in _trusted()]
    if not missing:
        return
    try:
        path = trusted_file()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        with path.open("a", encoding="utf-8") as file:
            file.writelines(f"{json.dumps({'folder': folder, 'recipe': recipe})}\n" for folder, recipe in missing)
    except (OSError, RuntimeError) as error:
        say(f"warning: the answer cannot be kept, so it will be asked for again: {error}")
