"""Fixtures that every folder of tests may use."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import settings

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported; more threads only get in each other's way
# Ray's workers are nice to everybody else (15): beside another process of these tests they would wait for a minute.
os.environ.setdefault("RAY_worker_niceness", "0")
# For pytest in processes that tests start, as in pyproject.toml for this one: a second less each.
os.environ.setdefault("PYTEST_ADDOPTS", "-p no:langsmith_plugin")

# A shell has what it starts in the background ignore Ctrl-C, and `nohup` a hang-up; tests send both, and wait for what
# becomes of them.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

settings.register_profile("callwright", derandomize=True, deadline=None, database=None)
settings.load_profile("callwright")

# Hypothesis also draws the constants that stand in the sources of whatever is imported. Then the examples of a test
# would hang on which other tests were collected, and there is no setting against it.
with suppress(ImportError):  # older ones have no such module, and draw no such constants
    from hypothesis.internal.conjecture import providers

    if hasattr(providers, "_get_local_constants"):
        _no_constants = providers.Constants()
        providers._get_local_constants = lambda: _no_constants

# Modules and collected tests are never garbage, and there are millions of such objects: that they are looked through
# again and again while they are made was a third of the time of collecting, and a sixth of that of the tests.
gc.disable()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Garbage is looked for from here on, and only in what the tests make; in the whole of that a fifth as often."""
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000, 10, 50)
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """What a module of tests leaves is mostly data that others use, and is not looked through: a tenth of the time."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


ROOT = Path(__file__).resolve().parents[1]
OFFICIAL_DATA = Path(os.environ.get("CALLWRIGHT_DATA") or ROOT.parent / "shared" / "data")


@pytest.fixture(scope="session", autouse=True)
def own_configuration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes what the user trusts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("configuration")))
        yield


@contextmanager
def _minute_of_work() -> Iterator[None]:
    began = time.process_time()
    yield
    assert time.process_time() - began < 60, "quadratic work, or worse"


@pytest.fixture(scope="session")
def minute_of_work() -> Callable[[], AbstractContextManager[None]]:
    """Around work that takes well under a second where it is linear in its input, and many minutes where it is not.

    The one limit on time of these tests: a minute of this process alone, so that no busy machine comes near it.
    """
    return _minute_of_work


@pytest.fixture
def runner() -> CliRunner:
    """Runs commands in this process, with the two streams apart: click before 8.2 has them so only where it is told."""
    apart: Any = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}
    return CliRunner(**apart)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def official_data() -> Path:
    """The official data folder (``CALLWRIGHT_DATA``); the test is skipped where it is absent."""
    if not OFFICIAL_DATA.is_dir():
        pytest.skip("the official data folder is not here (set CALLWRIGHT_DATA to use one)")
    return OFFICIAL_DATA


@pytest.fixture(scope="session")
def official_depthbench(official_data: Path) -> Path:
    """The folder with the official DepthBench files; the test is skipped where it is absent."""
    folder = official_data / "depthbench_official"
    if not (folder / "queries.json").is_file() and not (folder / "queries.json.gz").is_file():
        pytest.skip("the official DepthBench files are not here (CALLWRIGHT_DATA)")
    return folder
