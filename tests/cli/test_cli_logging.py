"""Logging is set up by the command line: to stderr, in the form that was asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
import structlog

from callwright.cli.logging import configure


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def log() -> None:
    logger = structlog.get_logger("test")
    logger.debug("details", step=1)
    logger.info("news", step=2)
    logger.warning("beware", step=3)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["beware"]),
        ({"verbosity": 1}, ["news", "beware"]),
        ({"verbosity": 2}, ["details", "news", "beware"]),
        ({"verbosity": 9}, ["details", "news", "beware"]),
        ({"level": "error"}, []),
        ({"level": "debug", "verbosity": 0}, ["details", "news", "beware"]),
    ],
)
def test_levels(options: dict[str, object], expected: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    configure(json_lines=True, **options)  # type: ignore[arg-type]
    log()
    output, errors = capsys.readouterr()
    assert output == ""
    assert [json.loads(line)["event"] for line in errors.splitlines()] == expected


def test_lines_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    configure()
    log()
    errors = capsys.readouterr().err
    assert "beware" in errors
    assert "step=3" in errors
    assert "\x1b" not in errors  # no colours where nobody looks


def test_an_exception_in_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    configure(json_lines=True)
    try:
        raise ValueError("wrong")
    except ValueError:
        structlog.get_logger().exception("failed")
    row = json.loads(capsys.readouterr().err)
    assert row["level"] == "error"
    assert "ValueError: wrong" in row["exception"]


def test_whoever_logs_first_finds_it_set_up() -> None:
    code = (
        "import sys\n"
        "from callwright.cli.logging import configure\n"
        "configure(level='error')\n"
        "configure(json_lines=True)\n"
        "assert not {'structlog', 'rich'} & {*sys.modules}, 'nobody has logged yet'\n"
        "before = len(sys.meta_path)\n"
        "import structlog\n"
        "assert len(sys.meta_path) == before - 2 and structlog.__spec__.loader is structlog.__loader__\n"
        "assert 'structlog' in structlog.__loader__.get_filename('structlog')\n"
        "structlog.get_logger().info('news')\n"
        "structlog.get_logger().warning('beware', step=3)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    told = json.loads(line)
    assert (told["event"], told["level"], told["step"]) == ("beware", "warning", 3)
