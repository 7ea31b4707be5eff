"""Errors, and what importing the package costs and offers."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import callwright
import callwright as cw
from callwright import errors
from callwright.errors import (
    ComponentError,
    DataError,
    MissingExtra,
    NameClash,
    PluginError,
    RecipeError,
    RunError,
    UnknownName,
)


def every_error(base: type[Exception] = cw.CallwrightError) -> Iterator[type[Exception]]:
    yield base
    for inner in base.__subclasses__():
        yield from every_error(inner)


def test_every_error_of_the_tree_is_public_and_documented() -> None:
    for error in every_error():
        if error.__module__ == "callwright.errors":
            assert error.__doc__
    named = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert named == {error.__name__ for error in every_error() if error.__module__ == "callwright.errors"}


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (cw.CallwrightError, 1),
        (RunError, 1),
        (cw.UsageError, 2),
        (RecipeError, 2),
        (DataError, 2),
        (UnknownName, 2),
        (MissingExtra, 3),
        (PluginError, 4),
        (NameClash, 4),
        (ComponentError, 5),
    ],
)
def test_exit_statuses(error: type[cw.CallwrightError], status: int) -> None:
    assert error.exit_status == status


def test_an_unknown_name_says_what_is_near_and_what_there_is() -> None:
    error = UnknownName("reward recipe", "teir", ["tier", "simple"], hint="Ask for help.")
    assert str(error) == (
        "There is no reward recipe named 'teir'. Did you mean 'tier'? Known: simple, tier. Ask for help."
    )
    assert (error.kind, error.name, error.known) == ("reward recipe", "teir", ("simple", "tier"))
    assert str(UnknownName("corpus", "x", [])) == "There is no corpus named 'x'. Known: none is registered."
    assert "Did you mean" not in str(UnknownName("corpus", "zzz", ["toolworld-mini-v1"]))


def test_a_missing_extra_holds_the_command() -> None:
    error = MissingExtra("'local'", "train", "torch")
    assert str(error) == (
        "'local' needs the package 'torch', which is not installed. Install it with: pip install 'callwright[train]'"
    )
    assert (error.component, error.extra, error.missing) == ("'local'", "train", "torch")


# The package ----------------------------------------------------------------------------------------------------------


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, json, callwright; print(json.dumps(sorted(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(json.loads(found.stdout))
    heavy = (
        "torch transformers numpy pydantic jsonschema_rs rich click structlog hypothesis pytest scipy tokenizers attrs"
    )
    assert modules.isdisjoint(heavy.split())
    assert {name for name in modules if name.startswith("callwright")} == {"callwright", "callwright._lazy"}


ROOMS = ("commands", "environments", "episodes", "language", "machines", "tools", "training", "walk")


@pytest.mark.parametrize("package", ["callwright", *(f"callwright.{room}" for room in ROOMS)])
def test_every_public_name_is_there_and_in_the_stub(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__all__ == sorted(set(module.__all__))
    assert dir(module) == module.__all__
    assert module.__file__ is not None
    tree = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    stated = [
        alias.asname
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module != package
        for alias in node.names
    ]
    assert {*stated, *(["__version__"] if package == "callwright" else [])} == set(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = module.nothing


def test_what_is_typed_first_stays_a_short_list() -> None:
    assert len(cw.__all__) <= 75


def test_no_public_name_is_that_of_a_module() -> None:
    """``import callwright.walk.tasks as m`` gives a module, whatever was imported before."""
    for found in pkgutil.walk_packages(callwright.__path__, "callwright."):
        if found.name.endswith("__main__"):
            continue
        parent, _, name = found.name.rpartition(".")
        importlib.import_module(found.name)
        assert isinstance(getattr(sys.modules[parent], name), ModuleType), found.name
        assert name not in getattr(sys.modules[parent], "__all__", ()), found.name
