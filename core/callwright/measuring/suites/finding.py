"""Where suites are: those of the package, those in the folder ``suites`` of a plugin's package, and any file."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from callwright.errors import NameClash, RecipeError, UnknownName
from callwright.measuring.suites.suite import LoadedSuite, parse_suite

if TYPE_CHECKING:
    from callwright.plugins import Registry


def shipped_suites() -> dict[str, Path]:
    """The suites that come with the package, by name."""
    here = Path(__file__).resolve().parents[2]
    for folder in (here / "suites", here.parent.parent / "suites"):  # in a wheel, in a checkout
        if folder.is_dir():
            return _in(folder)
    return {}


def known_suites(registry: Registry) -> dict[str, Path]:
    """The suites of the package and of its plugins, by name.

    A plugin ships suites as files: ``suites/*.toml`` beside the ``__init__.py`` of its module. Nothing of a plugin is
    called for them. Raises :class:`callwright.errors.NameClash` where two files have one name.
    """
    found = dict(shipped_suites())
    for info in registry.plugins:
        if info.blocked or not info.module:
            continue
        for name, path in _in_package(info.module.partition(":")[0]).items():
            if found.get(name, path) != path:
                raise NameClash(
                    f"two suites are named {name!r}: {found[name]} and {path}; -p no:{info.name} leaves one out"
                )
            found[name] = path
    return dict(sorted(found.items()))


def load_suite(text: str, registry: Registry) -> LoadedSuite:
    """The suite of this name, or of this file. Raises :class:`callwright.errors.RecipeError`."""
    path = Path(text)
    if not path.is_file():
        known = known_suites(registry)
        if path.suffix == ".toml" or path.parent != Path() or text not in known:
            missing = f"{text}: there is no such file. " if path.suffix == ".toml" or path.parent != Path() else ""
            raise RecipeError(f"{missing}{UnknownName('suite', path.stem or text, known)}")
        path = known[text]
    try:
        return parse_suite(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise RecipeError(f"{path}: cannot be read: {reason}") from error


def came_with_code(suite: LoadedSuite, registry: Registry) -> bool:
    """Whether the text is that of a suite of the package or of a plugin: of code that runs here anyway."""
    return any(suite.text == path.read_text(encoding="utf-8") for path in known_suites(registry).values())


def _in(folder: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(folder.glob("*.toml"))} if folder.is_dir() else {}


def _in_package(module: str) -> dict[str, Path]:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, AttributeError, ValueError):  # an object that was never imported by a name
        return {}
    places = spec.submodule_search_locations if spec is not None else None
    return {name: path for place in places or () for name, path in _in(Path(place) / "suites").items()}
