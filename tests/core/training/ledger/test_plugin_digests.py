"""What a plugin is known by: its version, or its source where no version stands for it."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import callwright as cw
from callwright.plugins import PluginInfo, load_plugins
from callwright.training.ledger import ingredients
from callwright.training.ledger.account import compare
from callwright.training.ledger.ingredients import Ingredients, plugin_digests


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A distribution with a plugin, whose ``direct_url.json`` says how it was installed."""
    (tmp_path / "rakes.py").write_text("import callwright as cw\n")
    about = tmp_path / "rakes-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: rakes\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[callwright]\nrakes = rakes\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "rakes", raising=False)
    importlib.invalidate_caches()
    ingredients._is_edited.cache_clear()
    yield about / "direct_url.json"
    ingredients._is_edited.cache_clear()


def told() -> dict[str, object]:
    registry = load_plugins()
    assert PluginInfo("rakes", "rakes", "1.0", "rakes") in registry.plugins
    return plugin_digests(registry, ["rakes"])["rakes"]


def test_a_distribution_is_known_by_its_version(installed: Path) -> None:
    assert told() == {"distribution": "rakes", "version": "1.0"}
    installed.write_text(json.dumps({"url": "file:///tmp/rakes.zip", "archive_info": {}}))
    ingredients._is_edited.cache_clear()
    assert told() == {"distribution": "rakes", "version": "1.0"}


def test_one_that_is_installed_to_be_edited_by_its_source_too(installed: Path) -> None:
    installed.write_text(json.dumps({"url": "file:///src/rakes", "dir_info": {"editable": True}}))
    before = told()
    assert set(before) == {"distribution", "version", "source"}
    (installed.parents[1] / "rakes.py").write_text("import callwright as cw  # another\n")
    after = told()
    (change,) = compare(Ingredients({"plugins": {"rakes": before}}, {}), Ingredients({"plugins": {"rakes": after}}, {}))
    assert change.what == "the plugin 'rakes', source"
    assert change.before == f"rakes 1.0, {before['source']}" != change.after


def test_ours_are_known_by_the_version_of_the_package() -> None:
    assert plugin_digests(cw.default_registry(), ["json-ir"])["json-ir"] == {
        "distribution": "callwright",
        "version": cw.__version__,
    }
