"""Logging is set up by the command line: to stderr, in the form that was asked for."""

from __future__ import annotations

import json
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
