"""Compressed files: what is whole is read as it was written, what is damaged says so in words whoever reads it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import callwright as cw
from callwright.compression.packing import unpacked, unpacked_text
from callwright.errors import DataError
from callwright.walk.task_rows.reading import read_head
from callwright_plugins.nestful.reading import read_json as read_nestful
from callwright_plugins.recorded.environment import read_json as read_recorded

ROWS = "".join(json.dumps({"id": number, "text": f"row {number * 7919}\u2028"}) + "\n" for number in range(4000))


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A gzip file whose head is whole and whose middle is not."""
    data = bytearray(gzip.compress(ROWS.encode(), mtime=0))
    for place in range(len(data) // 2, len(data) // 2 + 40):
        data[place] ^= 0xFF
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(bytes(data))
    return path


def test_lines_and_pieces_are_those_of_gzip(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    half = len(ROWS) // 2
    path.write_bytes(gzip.compress(ROWS[:half].encode()) + gzip.compress(ROWS[half:].encode()))  # two members
    with path.open("rb") as file:
        lines = [line.decode() for line in unpacked(file, "rows")]
    assert lines == [f"{line}\n" for line in ROWS.split("\n")[:-1]]
    draw, found = Random(3), b""
    with path.open("rb") as file:
        opened = unpacked(file, "rows")
        while piece := opened.read(draw.randrange(1, 5000)):
            found += piece
    assert found.decode() == ROWS
    assert unpacked_text(path) == ROWS


@pytest.mark.parametrize(
    "read",
    [
        unpacked_text,
        read_recorded,
        read_nestful,
        cw.read_tasks,
        lambda path: list(cw.read_log(path, "openai")),
        lambda path: cw.corpus("depthbench-v1", file=str(path)),
    ],
)
def test_what_is_damaged_within_is_told_in_words(damaged: Path, read: Callable[[Path], Any]) -> None:
    with pytest.raises(DataError, match=r"rows\.jsonl\.gz"):
        read(damaged)


@pytest.mark.parametrize("cut", [3, 12, -9])
def test_what_ends_too_early_is_told_in_words(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(ROWS.encode())[:cut])
    with pytest.raises(DataError, match=r"rows\.jsonl\.gz cannot be read"):
        unpacked_text(path)


def test_what_is_not_there_has_the_nearest_name(damaged: Path) -> None:
    with pytest.raises(DataError, match=r"Did you mean '.*rows\.jsonl\.gz'"):
        read_head(damaged.with_name("rows.jsonl.g"))
    with pytest.raises(DataError, match=r"Did you mean '.*rows\.jsonl\.gz'"):
        unpacked_text(damaged.with_name("rows.jsonl.g"))
