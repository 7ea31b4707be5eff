"""Rows with digests: whatever becomes of the file, the first row that is not as it was written is found."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.errors import RunError
from callwright.training.ledger import row_digests
from callwright.training.ledger.row_digests import DigestedRows
from callwright.training.run_folder import append_jsonl

ROWS = [{"id": f"row-{index}", "text": "x" * index, "ok": index % 2 == 0} for index in range(9)]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    path = tmp_path_factory.mktemp("rows") / "verdicts.jsonl"
    rows = DigestedRows(path)
    rows.resume()
    rows.append(ROWS[:4])
    rows.append(ROWS[4:])
    return path.read_bytes(), rows.digests.read_bytes()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch") / "verdicts.jsonl"


def put(path: Path, data: bytes, digests: bytes | None) -> DigestedRows:
    rows = DigestedRows(path)
    path.write_bytes(data)
    rows.digests.unlink(missing_ok=True)
    if digests is not None:
        rows.digests.write_bytes(digests)
    return rows


def test_the_nth_digest_is_that_of_the_first_n_rows(written: tuple[bytes, bytes]) -> None:
    lines = written[0].splitlines(keepends=True)
    expected = [hashlib.sha256(b"".join(lines[: number + 1])).hexdigest() for number in range(len(ROWS))]
    assert written[1].decode().splitlines() == expected


@given(at=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_any_flipped_bit_is_found_in_its_line(written: tuple[bytes, bytes], scratch: Path, at: int, bit: int) -> None:
    data = bytearray(written[0])
    at %= len(data) - 1  # the very last line end makes a torn tail of its line
    data[at] ^= 1 << bit
    damage = put(scratch, bytes(data), written[1]).damage()
    assert damage is not None
    line = written[0][:at].count(b"\n") + 1
    assert (damage.line, damage.missing) == (line, False)
    assert damage.byte == written[0][:at].rfind(b"\n") + 1


@given(gone=st.sets(st.integers(0, 8), min_size=1))
def test_rows_that_went_are_found(written: tuple[bytes, bytes], scratch: Path, gone: set[int]) -> None:
    lines = written[0].splitlines(keepends=True)
    left = [line for index, line in enumerate(lines) if index not in gone]
    rows = put(scratch, b"".join(left), written[1])
    damage = rows.damage()
    assert damage is not None
    assert damage.line == min(gone) + 1
    assert damage.missing == (len(left) == min(gone))


@given(rows=st.integers(0, 9), torn=st.integers(0, 30), digests=st.integers(0, 10**6))
def test_a_kill_at_any_moment_leaves_what_can_be_gone_on_with(
    written: tuple[bytes, bytes], scratch: Path, rows: int, torn: int, digests: int
) -> None:
    """Digests come first, so there are at least as many as rows; either file may end anywhere."""
    lines = written[0].splitlines(keepends=True)
    tail = b"" if rows == len(lines) else lines[rows][: min(torn, len(lines[rows]) - 1)]
    known = max(len(written[1]) * digests // 10**6, (rows + bool(tail)) * 65)
    found = put(scratch, b"".join(lines[:rows]) + tail, written[1][:known])
    assert found.resume() == rows
    found.append(ROWS[rows:])
    assert (scratch.read_bytes(), found.digests.read_bytes()) == written


def test_what_comes_after_the_rows_that_are_kept_is_cut_off(written: tuple[bytes, bytes], scratch: Path) -> None:
    rows = put(scratch, *written)
    assert rows.resume(lambda count: count - count % 4) == 8
    rows.append(ROWS[8:])
    assert (scratch.read_bytes(), rows.digests.read_bytes()) == written


def test_a_row_that_nothing_vouches_for_is_refused_but_a_file_without_digests_goes_on(
    written: tuple[bytes, bytes], scratch: Path
) -> None:
    with pytest.raises(RunError, match=r"verdicts\.jsonl, line 6: not as it was written, and 3 rows after it"):
        put(scratch, written[0], written[1][: 5 * 65]).resume()
    assert scratch.read_bytes() == written[0]  # nothing was cut off
    said: list[str] = []
    old = put(scratch, written[0], None)
    assert old.damage() is None
    assert old.resume(say=said.append) == 9
    assert "from before there were digests" in said[0]
    assert old.digests.read_bytes() == written[1]


def test_a_row_that_cannot_be_written_leaves_digests_of_what_is_there(
    written: tuple[bytes, bytes], scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = put(scratch, b"", None)
    rows.resume()
    rows.append(ROWS[:4])
    real = row_digests.append_bytes

    def full(path: Path, data: bytes) -> None:
        if path == scratch:
            raise RunError("no room")
        real(path, data)

    monkeypatch.setattr(row_digests, "append_bytes", full)
    with pytest.raises(RunError, match="no room"):
        rows.append(ROWS[4:])
    monkeypatch.undo()
    rows.append(ROWS[4:6])  # others than those that failed
    rows.append(ROWS[6:])
    assert (scratch.read_bytes(), rows.digests.read_bytes()) == written
    with pytest.raises(RunError, match="not JSON"):
        rows.append([{"x": float("nan")}])
    assert (scratch.read_bytes(), rows.digests.read_bytes()) == written


def test_the_rows_are_those_of_append_jsonl(written: tuple[bytes, bytes], tmp_path: Path) -> None:
    append_jsonl(tmp_path / "rows.jsonl", ROWS)
    assert (tmp_path / "rows.jsonl").read_bytes() == written[0]
