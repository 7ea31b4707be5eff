"""While torch is imported nothing is collected, in a run it is not looked through, and then all is as before."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from callwright_plugins.local_trainer.garbage import imports_set_apart


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    gc.unfreeze()
    yield
    gc.freeze()  # all the other tests, too, which would be looked through when this module ends
    gc.enable()


def test_what_was_imported_is_not_looked_through_while_it_is_used() -> None:
    with imports_set_apart() as imported:
        assert not gc.isenabled()
        kept: list[object] = [[]]
        imported()
        assert gc.isenabled()
        assert not any(one is kept for one in gc.get_objects()), "it is set apart"
    assert gc.get_freeze_count() == 0
    assert any(one is kept for one in gc.get_objects())


def test_an_import_that_fails_leaves_the_collector_on() -> None:
    with pytest.raises(ModuleNotFoundError), imports_set_apart():
        raise ModuleNotFoundError("torch")
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_who_switched_it_off_finds_it_off() -> None:
    gc.disable()
    with imports_set_apart() as imported:
        imported()
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_what_was_set_apart_before_stays_so() -> None:
    gc.freeze()
    before = gc.get_freeze_count()
    with imports_set_apart() as imported:
        imported()
    assert gc.get_freeze_count() >= before > 0
