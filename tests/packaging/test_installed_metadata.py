"""What is installed says what pyproject.toml says, and the base install stays small."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path
from typing import Any

import callwright
from callwright.plugins import load_plugins

REINSTALL = "the installed metadata is older than pyproject.toml; run: pip install --editable ."


def test_entry_points_are_those_of_pyproject(project: dict[str, Any]) -> None:
    installed = {
        point.name: point.value
        for point in metadata.distribution("callwright").entry_points
        if point.group == "callwright"
    }
    assert installed == project["entry-points"]["callwright"], REINSTALL


def test_the_command_is_installed(project: dict[str, Any]) -> None:
    points = metadata.distribution("callwright").entry_points
    installed = {point.name: point.value for point in points if point.group == "console_scripts"}
    assert installed == project["scripts"], REINSTALL


def test_the_version_is_one(project: dict[str, Any]) -> None:
    assert callwright.__version__ == project["version"]
    assert metadata.version("callwright") == project["version"], REINSTALL


def test_every_plugin_of_pyproject_loads(project: dict[str, Any]) -> None:
    found = {info.name: info for info in load_plugins().plugins if info.distribution == "callwright"}
    assert found.keys() == project["entry-points"]["callwright"].keys(), REINSTALL
    assert [info.error for info in found.values() if info.error] == []


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _closure(name: str, seen: set[str]) -> set[str]:
    """Names of everything that an install of ``name`` without extras brings, by the installed metadata."""
    name = _normalised(name)
    if name in seen:
        return seen
    seen.add(name)
    for requirement in metadata.requires(name) or ():
        needed, _, marker = requirement.partition(";")
        if "extra" in marker or not _holds(marker):
            continue
        match = re.match(r"[A-Za-z0-9._-]+", needed.strip())
        assert match is not None
        _closure(match[0], seen)
    return seen


def _holds(marker: str) -> bool:
    from packaging.markers import Marker

    return not marker.strip() or Marker(marker).evaluate()


def test_the_base_install_has_at_most_fifteen_distributions() -> None:
    closure = _closure("callwright", set())
    assert len(closure) <= 15, sorted(closure)
    assert not closure & {"torch", "transformers", "numpy", "mcp", "ray"}


def test_every_extra_that_a_component_names_exists(project: dict[str, Any]) -> None:
    named = {lazy.extra for _, lazy in load_plugins().components() if lazy.extra}
    assert "train" in named
    assert named <= project["optional-dependencies"].keys()


def test_constraints_pin_what_the_extras_need(root: Path, project: dict[str, Any]) -> None:
    lines = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*", pin) for pin in pins), "one exact version a line"
    pinned = {_normalised(pin.partition("==")[0]) for pin in pins}
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *extras["train"], *extras["docs"], *extras["dev"]]
    names = {_normalised(re.split(r"[\[<>=; ]", requirement, maxsplit=1)[0]) for requirement in asked}
    assert names - {"callwright"} <= pinned
