"""The stand-in wheel, with a suite over it; the official wheels, where they are."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

import stand_in_wheel

from callwright_plugins.bfcl.multi_turn import package
from callwright_plugins.bfcl.multi_turn.suite import MultiTurn


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """Data and wheel of the stand-in, which is the pinned release here."""
    folder = tmp_path_factory.mktemp("bfcl")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(package, "RELEASES", stand_in_wheel.pinned())
        yield stand_in_wheel.write_data(folder / "data"), stand_in_wheel.write_wheel(folder / "wheel")


@pytest.fixture(scope="module")
def suite(places: tuple[Path, Path]) -> Iterator[MultiTurn]:
    """The suite over the stand-in."""
    made = MultiTurn("v3", *places)
    yield made
    made.close()


@pytest.fixture(scope="session")
def official_wheels() -> Path:
    """The folder with the wheels of bfcl-eval (``CALLWRIGHT_BFCL``); the test is skipped where there is none."""
    stated = os.environ.get("CALLWRIGHT_BFCL")
    if not stated or not Path(stated).is_dir():
        pytest.skip("the wheels of bfcl-eval are not here (CALLWRIGHT_BFCL, a folder of pip download --no-deps)")
    return Path(stated)
