"""Errors, and what importing the package costs and offers."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

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
            assert getattr(cw, error.__name__) is error
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
    heavy = "torch transformers numpy pydantic jsonschema_rs rich click structlog hypothesis pytest scipy tokenizers"
    assert modules.isdisjoint(heavy.split())
    assert not {name for name in modules if name.startswith("callwright_plugins")}
    assert "callwright.tools.spec" in modules


def test_every_public_name_is_there_and_typed() -> None:
    assert cw.__all__ == sorted(cw.__all__)
    assert len(set(cw.__all__)) == len(cw.__all__)
    for name in cw.__all__:
        assert getattr(cw, name) is not None
    assert dir(cw) == cw.__all__
    assert cw.__file__ is not None
    tree = ast.parse(Path(cw.__file__).read_text(encoding="utf-8"))
    typed = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for line in node.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }
    eager = {
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("callwright")
        for alias in node.names
    }
    assert typed | eager | {"__version__"} == set(cw.__all__)
    with pytest.raises(AttributeError, match="module 'callwright' has no attribute 'nothing'"):
        _ = cw.nothing


def test_the_short_functions_are_not_hidden_by_the_modules_of_their_names() -> None:
    """``import callwright.walk.tasks`` would bind the module over the function, had it not been imported before."""
    code = (
        "import callwright, importlib\n"
        "for name in ('corpus', 'environment', 'parser', 'sampler', 'tool'):\n"
        "    importlib.import_module(f'callwright.{name}')\n"
        "    assert callable(getattr(callwright, name)), name\n"
        "from callwright.language.parser import ParseFailure\n"
        "assert callable(callwright.parser)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
