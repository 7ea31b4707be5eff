"""Compressed rows by what their bytes are, and remarks on rows that can be used."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import callwright as cw
from callwright.commands.jsonl import BadRow, RowFile, RowSink
from callwright.commands.row_files.remarks import RowRemarks, key_twice
from callwright.compression import packing as compressed

LINES = b"".join(b'{"id": %d}\n' % number for number in range(5000))


def zstd(data: bytes) -> bytes:
    packed: bytes = pytest.importorskip("zstandard").ZstdCompressor().compress(data)
    return packed


def read(path: Path) -> list[Any]:
    with RowFile(str(path)) as rows:
        return list(rows)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz", "rows.jsonl.zst", "rows"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd], ids=["plain", "gzip", "zstd"])
def test_compression_is_recognised_whatever_the_name(tmp_path: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / name
    path.write_bytes(pack(LINES))
    assert [row["id"] for row in read(path)] == list(range(5000))


@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gzip", "zstd"])
def test_parts_that_were_packed_one_by_one_are_one_file(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "rows"
    path.write_bytes(pack(LINES[:1003]) + pack(b"") + pack(LINES[1003:]))
    assert [row["id"] for row in read(path)] == list(range(5000))


@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gzip", "zstd"])
@pytest.mark.parametrize("share", [0.3, 0.999])
def test_a_file_that_ends_too_early_is_never_taken_for_a_whole_one(
    tmp_path: Path, pack: Callable[[bytes], bytes], share: float
) -> None:
    path, packed = tmp_path / "rows", pack(LINES)
    path.write_bytes(packed[: int(len(packed) * share)])
    with pytest.raises(cw.errors.DataError, match="cannot be read after line"):
        read(path)


def test_damaged_zstandard_is_named(tmp_path: Path) -> None:
    path, packed = tmp_path / "rows", bytearray(zstd(LINES))
    packed[20:60] = bytes(40)
    path.write_bytes(packed)
    with pytest.raises(cw.errors.DataError, match="cannot be read after line"):
        read(path)


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"BZh91AY", "bzip2"),
        (b"\xfd7zXZ\0", "xz"),
        (b"PK\x03\x04", "zip"),
        (b"PAR1", "Parquet"),
        (b"\xff\xfe{\0", "UTF-16"),
    ],
)
def test_what_holds_no_rows_is_said_in_one_line(tmp_path: Path, head: bytes, what: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(head + bytes(100))
    with pytest.raises(cw.errors.DataError, match=what):
        read(path)


def test_zstandard_without_its_package_names_the_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    path = tmp_path / "rows"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(10))
    with pytest.raises(cw.errors.MissingExtra, match=r"pip install 'callwright\[zstd\]'"):
        read(path)
    with pytest.raises(cw.errors.MissingExtra, match="zstd"), RowSink(str(tmp_path / "out.zst")):
        pass


def test_what_is_written_as_zst_is_read_again(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "out.zst"
    with RowSink(str(path)) as sink:
        sink.write('{"id": 1}\n')
    assert read(path) == [{"id": 1}]
    assert zstandard.ZstdDecompressor().decompress(path.read_bytes()) == b'{"id": 1}\n'


def test_the_head_of_a_stream_that_cannot_be_peeked_at_is_not_lost() -> None:
    assert compressed.unpacked(io.BytesIO(gzip.compress(LINES)), "x").read() == LINES
    assert compressed.unpacked(io.BytesIO(LINES), "x").read() == LINES


# Rows -----------------------------------------------------------------------------------------------------------------

TELLING = ("id", "task", "completion", "ground_truth")
KEYS = st.sampled_from([*TELLING, "step", 'a "id" b', "\\"])
VALUES = st.recursive(
    st.one_of(st.sampled_from(['"id"', '\\"task\\"', "id", 'x "completion": y']), st.integers(), st.text(max_size=5)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=5,
)


@given(st.lists(st.tuples(KEYS, VALUES), max_size=6))
def test_a_key_is_found_twice_exactly_where_it_stands_twice(pairs: list[tuple[str, Any]]) -> None:
    line = "{" + ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in pairs) + "}"
    keys = [key for key, _ in pairs]
    twice = {key for key in TELLING if keys.count(key) > 1}
    found = key_twice(line.encode(), json.loads(line))
    assert (found in twice) if twice else (found is None)


def test_a_long_number_does_not_hide_a_key_that_stands_twice() -> None:
    line = b'{"id": 1, "x": {"id": ' + b"7" * 5000 + b'}, "id": 2}'
    assert key_twice(line, {"id": 2, "x": {}}) == "id"


def test_a_row_with_a_key_twice_is_a_bad_row(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_text('{"id": 1, "completion": "a", "completion": "b"}\n{"id": 2, "completion": "\\"completion\\""}\n')
    first, second = read(path)
    assert isinstance(first, BadRow)
    assert str(first) == "the key 'completion' stands twice"
    assert second["id"] == 2


@given(st.lists(st.one_of(st.integers(-3, 20), st.integers(-3, 20).map(str), st.none()), max_size=60))
@example([-1, -2, "-1"])
def test_ids_that_come_again_are_counted(ids: list[int | str | None]) -> None:
    remarks = RowRemarks({"id"})
    for number, one in enumerate(ids, 1):
        remarks.see(number, {"id": one})
    known = [one for one in ids if one is not None]
    assert remarks.again == len(known) - len({(type(one), one) for one in known})


def test_keys_that_nothing_reads_are_named_with_what_was_meant() -> None:
    remarks = RowRemarks({"id", "truncated", "completion"})
    remarks.see(1, {"id": 1, "completion": "x"})
    remarks.see(7, {"id": 2, "truncate": True, "mood": "good"})
    remarks.see(8, {"id": 3, "truncate": True})
    assert remarks.sentences() == [
        "warning: keys that nothing reads: 'truncate' (line 7; did you mean 'truncated'?), 'mood' (line 7)"
    ]


def test_ids_are_compared_up_to_a_limit_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from callwright.commands.row_files import remarks as module

    monkeypatch.setattr(module, "_SLOTS", 64)
    monkeypatch.setattr(module, "MOST_IDS", 48)
    remarks = RowRemarks({"id"})
    for number in range(200):
        remarks.see(number, {"id": number % 100})
    assert remarks.again == 48
    assert "only the first 48 ids" in remarks.sentences()[1]
