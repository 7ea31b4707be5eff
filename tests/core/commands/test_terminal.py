"""Tables on narrow terminals: codes and names are not parted within their words."""

from __future__ import annotations

import pytest
from rich.text import Text

from callwright.commands.terminal import fits, screen, table, text

PROSE = "what it does, in words that can be parted anywhere, so that they give way to what cannot"


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def drawn(capsys: pytest.CaptureFixture[str], *rows: tuple[str, ...], codes: tuple[int, ...] = (0,)) -> str:
    made = table(*(f"column {place}" for place in range(len(rows[0]))), codes=codes)
    for row in rows:
        made.add_row(*map(text, row))
    screen().print(made)
    return capsys.readouterr().out


def first_column(found: str) -> list[str]:
    """What the lines of the first column hold, which has no spaces."""
    return [line.split()[0] for line in found.splitlines()[3:] if line[1:2].strip()]


def test_a_column_of_codes_stays_whole(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["get_preferred_currency", "a", "set_the_alarm_clock_of_the_user"]
    found = drawn(capsys, *((name, "reads, discovery, destructive", PROSE) for name in names))
    assert all(f" {name} " in found for name in names)
    assert max(map(len, found.splitlines())) <= 80


def test_what_is_too_long_is_parted_behind_punctuation_and_nothing_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    name = "_".join(["server.tools:part"] * 9)
    found = drawn(capsys, (name, PROSE))
    parts = first_column(found)
    assert "".join(parts) == name
    assert all(part[-1] in "_.:" for part in parts[:-1])
    assert "".join(first_column(drawn(capsys, ("x" * 90, PROSE)))) == "x" * 90


def test_two_columns_of_codes_share_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    found = drawn(capsys, ("open_the_first_account", "close_the_first_account", PROSE), codes=(0, 1))
    lines = [line.split()[:2] for line in found.splitlines()[3:5]]
    assert lines == [["open_the_first_", "close_the_first_"], ["account", "account"]]
    assert max(map(len, found.splitlines())) <= 80


def test_very_narrow_terminals_fold_all_columns_alike(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    found = drawn(capsys, ("get_preferred_currency_of_the_user", PROSE))
    assert "".join(line[:11].strip() for line in found.splitlines()[3:]).startswith("get_prefer")
    assert max(map(len, found.splitlines())) <= 30


def test_the_style_of_a_code_is_kept() -> None:
    made = table("tool", codes=(0,))
    made.add_row(text("x_" * 60, "red"))
    (cell,) = made.columns[0].cells
    assert isinstance(cell, Text)
    assert (cell.plain.replace("\n", ""), cell.style) == ("x_" * 60, "red")


def test_whether_a_table_fits() -> None:
    made = table("tool")
    made.add_row("x" * 70)
    assert fits(made, screen())
    made.add_row("x" * 90)
    assert not fits(made, screen())
