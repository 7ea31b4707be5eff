"""The wheel holds every module and every recipe, and nothing else."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

PACKAGES = {"core/callwright": "callwright", "plugins/callwright_plugins": "callwright_plugins"}
#: What the app of the viewer is made from: of it the wheel has what was made.
FRONT = Path(__file__).parents[2] / "plugins" / "callwright_plugins" / "viewer" / "front"


def _files(folder: Path) -> list[Path]:
    """Files of a folder, without what Python and tools cache there."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and FRONT not in path.parents)
    return [path for path in found if not any(part.startswith(("__pycache__", ".")) for part in path.parts)]


@pytest.fixture(scope="module")
def held(wheel: Path) -> set[str]:
    """Names in the wheel, without its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if not name.startswith("callwright-")}


def test_the_wheel_holds_the_packages_and_the_recipes_and_nothing_else(root: Path, held: set[str]) -> None:
    wanted = {f"{name}/{path.as_posix()}" for folder, name in PACKAGES.items() for path in _files(root / folder)}
    for folder in ("recipes", "suites"):
        wanted |= {f"callwright/{folder}/{path.as_posix()}" for path in _files(root / folder)}
    assert held == wanted


def test_both_packages_are_typed(held: set[str]) -> None:
    assert {"callwright/py.typed", "callwright_plugins/py.typed"} <= held


def test_the_demo_recipe_is_shipped(held: set[str]) -> None:
    assert "callwright/recipes/tier-mini.toml" in held


def test_the_metadata_carries_licence_and_readme(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode()
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert "License-Expression: Apache-2.0" in text
    assert "# Callwright" in text
