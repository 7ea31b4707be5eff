"""A start does not look for garbage, a command does, and whoever embeds the command line decides for themselves."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest
from click.testing import Result

from callwright.cli.starting import begin_start, end_start


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    yield
    end_start()
    gc.enable()


def test_garbage_is_looked_for_once_the_command_is_there(invoke: Callable[..., Result]) -> None:
    before = gc.get_freeze_count()
    begin_start()
    assert not gc.isenabled()
    assert invoke("--version").exit_code == 0
    assert not gc.isenabled(), "nothing was loaded"
    assert invoke("score", "--help").exit_code == 0
    assert gc.isenabled()
    assert gc.get_freeze_count() > before, "what was imported is not looked through"


def test_without_a_start_nothing_is_changed(invoke: Callable[..., Result]) -> None:
    before = gc.get_freeze_count()
    gc.disable()
    begin_start()
    assert invoke("score", "--help").exit_code == 0
    assert not gc.isenabled(), "somebody else has switched it off"
    assert gc.get_freeze_count() == before
