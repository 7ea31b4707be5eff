"""Files of rows: constant memory, whole lines whatever happens."""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from callwright.commands import BadRow, RowFile, RowSink, chunks_of
from callwright.commands import jsonl as row_files
from callwright.errors import DataError, RunError


def _write(target: Path, lines: list[str]) -> None:
    with RowSink(str(target)) as sink:
        for line in lines:
            sink.write(line)


@pytest.mark.parametrize("name", ["out.jsonl", "out.jsonl.gz"])
def test_a_disk_that_fills_up_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    target, lines, room = tmp_path / name, [f'{{"id": {number}}}\n' for number in range(50_000)], [400_000]
    genuine = row_files.os.write

    def write(descriptor: int, data: bytes) -> int:
        taken = min(len(data), room[0], 100_000)
        room[0] -= taken
        if not taken:
            raise OSError(28, "No space left on device")
        return genuine(descriptor, data[:taken])

    if name.endswith(".gz"):
        room[0] = 100 + len(gzip.compress("".join(lines[:25_000]).encode(), 6))
    monkeypatch.setattr(row_files.os, "write", write)
    with pytest.raises(RunError, match="No space left"):
        _write(target, lines)
    data = target.read_bytes()
    text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
    kept = text.splitlines(keepends=True)
    assert 0 < len(kept) < len(lines)
    assert kept == lines[: len(kept)]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    import tracemalloc

    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text(f'{{"id": 1, "task": "train-1", "completion": "{"x" * 200}"}}\n' * 20_000)

    def copy() -> int:
        tracemalloc.start()
        with RowFile(str(source)) as given_rows, RowSink(str(target)) as sink:
            for one in given_rows:
                sink.write(f"{one}\n")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert copy() < 4_000_000
    assert source.stat().st_size > 1_000_000


def test_a_file_of_rows_that_vanishes(tmp_path: Path) -> None:
    with pytest.raises(DataError), RowFile(str(tmp_path / "nothing")):
        pass


def test_rows_and_their_numbers(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"a": 1}\n\nnonsense\n{"b": 2}\n')
    with RowFile(str(source)) as given_rows:
        found = [(given_rows.number, one) for one in given_rows]
    assert [number for number, _ in found] == [1, 3, 4]
    assert isinstance(found[1][1], BadRow)


def test_rows_are_what_the_standard_library_reads(tmp_path: Path) -> None:
    """Whatever the compiled reader does with a line: the same values, to the type and the last bit, or no row."""
    rng = random.Random(0)
    pieces = [
        *(
            '"a"',
            '"\\ud800"',
            '"\\ud83d\\ude00"',
            '"é\x7f"',
            '"\\u0000"',
            '"\\x"',
            "true",
            "null",
            "NaN",
            "-Infinity",
            "nan",
        ),
        *(
            "1e999",
            "-0",
            "-0.0",
            "01",
            "1.",
            "9" * 25,
            "9" * 5000,
            "1E5",
            "5e-324",
            "[]",
            "{}",
            "[1,]",
            "[" * 300,
            '{"a":1,',
        ),
        *('"a": 1', '"a": 2}', "{", "}", "[", "]", ",", ":", " ", "\x0b", "\xa0", "0.1", '"' + "x" * 100 + '"'),
    ]
    lines = [f'{{"a": {piece}, "b": [{piece}], "a": {piece}}}' for piece in pieces]
    lines += [f'{{"a": {rng.uniform(-1, 1) * 10.0 ** rng.randint(-320, 308)!r}}}' for _ in range(2000)]
    lines += [
        f'{{"a": {rng.getrandbits(rng.randint(1, 200))}.{rng.getrandbits(90)}e{rng.randint(-330, 310)}}}'
        for _ in "x" * 2000
    ]
    lines += ["".join(rng.choices(pieces, k=rng.randint(1, 9))) for _ in range(2000)]
    coded = [line.encode() for line in lines]
    coded += [b'{"a": "\xff"}', b'{"a": "\xed\xa0\x80"}', b"\xef\xbb\xbf{}", '{"a": 1}'.encode("utf-16")[:-1]]
    source = tmp_path / "in.jsonl"
    source.write_bytes(b"{}\n" + b"\n".join(line for line in coded if not line.isspace()) + b"\n")
    with RowFile(str(source)) as given_rows:
        found = list(given_rows)[1:]
    read = 0
    for line, row in zip([line for line in coded if not line.isspace()], found, strict=True):
        try:
            expected = json.loads(line)
        except (ValueError, RecursionError):
            expected = None
        if isinstance(expected, dict):
            assert repr(row) == repr(expected), line[:80]
            read += 1
        else:
            assert isinstance(row, BadRow), line[:80]
    assert read > 4000


def test_ctrl_c_in_the_middle_of_a_flush_loses_no_line_and_doubles_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bytes are in the file already when the interrupt comes, and Python has not yet heard of it."""
    target, write, left = tmp_path / "out.jsonl", os.write, [3]

    def interrupted(descriptor: int, data: Any) -> int:
        count = write(descriptor, data)
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return count

    monkeypatch.setattr(os, "write", interrupted)
    lines = [f"{number:>60}\n" for number in range(20_000)]
    given: list[str] = []

    def write_all() -> None:
        with RowSink(str(target)) as sink:
            for line in lines:
                given.append(line)
                sink.write(line)

    with pytest.raises(KeyboardInterrupt):
        write_all()
    assert 0 < len(given) < len(lines)
    assert target.read_text() == "".join(given)


def test_an_error_of_somebody_else_loses_no_finished_row(tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"

    def write_all() -> None:
        with RowSink(str(target)) as sink:
            for number in range(1000):
                sink.write(f"{number}\n")
            raise RunError("several workers were lost")

    with pytest.raises(RunError, match="workers"):
        write_all()
    assert len(target.read_text().splitlines()) == 1000


def test_a_new_file_without_a_row_does_not_stay_after_an_error(tmp_path: Path) -> None:
    def fail(target: Path) -> None:
        with RowSink(str(target)):
            raise DataError("nothing of it could be read")

    there = tmp_path / "there.jsonl"
    there.write_text("a row of somebody\n")
    for target in (tmp_path / "new.jsonl", there):
        with pytest.raises(DataError):
            fail(target)
    with RowSink(str(tmp_path / "empty.jsonl")):
        pass
    assert sorted(one.name for one in tmp_path.iterdir()) == ["empty.jsonl", "there.jsonl"]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz"])
def test_what_is_replaced_stays_until_there_is_a_row(tmp_path: Path, name: str) -> None:
    target = tmp_path / name

    def replace(*lines: str) -> None:
        with RowSink(str(target)) as sink:
            for line in lines:
                sink.write(line)
            raise DataError("the next row is none")

    _write(target, ["old, and longer than what comes\n"])
    before = target.read_bytes()
    with pytest.raises(DataError):
        replace()
    assert target.read_bytes() == before
    with pytest.raises(DataError):
        replace("new\n")
    opened = gzip.decompress if name.endswith(".gz") else bytes
    assert opened(target.read_bytes()) == b"new\n"
    _write(target, [])
    assert target.read_bytes() == b""


def test_rows_in_parts(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"a": 1}\n\nnonsense\n{"b": 2}\n')
    with RowFile(str(source)) as given_rows:
        parts = list(chunks_of(given_rows, 2))
    assert [[number for number, _ in part] for part in parts] == [[1, 3], [4]]
    assert isinstance(parts[0][1][1], str)
