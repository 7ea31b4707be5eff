from __future__ import annotations

from pathlib import Path

import pytest

from callwright_plugins.synthesis.exploration.tape import Tape


@pytest.mark.parametrize(("at", "byte"), [(0, 0x00), (10, 0xFF), (-8, 0x00)])
def test_a_damaged_tape_is_none(tmp_path: Path, at: int, byte: int) -> None:
    path = tmp_path / "tape.gz"
    assert Tape([["a"]], told=True).write(path)
    assert Tape.read(path) is not None
    data = bytearray(path.read_bytes())
    data[at] = byte if data[at] != byte else byte ^ 1
    path.write_bytes(data)
    assert Tape.read(path) is None
