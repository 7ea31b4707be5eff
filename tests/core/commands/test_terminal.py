"""Tables on narrow terminals: codes and names are not parted within their words."""

from __future__ import annotations

import pytest
from rich.text import Text

from callwright.commands.terminal import fits, parts, screen, table, text

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


def test_tables_of_many_figures_are_parted_between_columns_and_never_within_a_figure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    heads = ["", *(f"{depth}-Step Acc" for depth in range(9))]
    rows = [["gold, zero-shot", *["100.0/0"] * 9], None, ["Qwen3-8B 3-shot ICL", *[f"{at}9.24/3" for at in range(9)]]]
    console = screen()
    made = parts(heads, rows, "by depth", console)
    for one in made:
        console.print(one)
    found = capsys.readouterr().out
    assert max(map(len, found.splitlines())) <= 80
    assert found.count("100.0/0") == 9
    assert all(f"{at}9.24/3" in found for at in range(9))
    assert all(f"{at}-Step" in found for at in range(9))
    assert len(made) == found.count("gold, zero-shot") == found.count("Qwen3-8B 3-shot ICL") == 2
    (whole,) = parts(heads[:4], [row and row[:4] for row in rows], "by depth", console)
    console.print(whole)
    assert "0-Step Acc   1-Step Acc   2-Step Acc" in capsys.readouterr().out


def test_no_figure_is_cut_off_on_any_width(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    heads = ["", "tasks", "before", "after", "points", "flips", "p"]
    figures = [
        ["conjunctive", "6", "50.0%", "100.0%", "+50.0 [+0.0, +100.0]", "+3 -0", "0.251"],
        ["mixed", "18", "0.0%", "99.9%", "+100.0 [+47.1, +100.0]", "+18 -0", "<0.001"],
    ]
    for width in range(40, 101):
        monkeypatch.setenv("COLUMNS", str(width))
        console = screen()
        shown = parts(heads, [figures[0], None, figures[1]], "a title", console)
        for one in shown:
            console.print(one)
        said = capsys.readouterr().out
        assert all(len(line) <= width for line in said.splitlines())
        assert all(cell in said for row in figures for cell in row), width
        assert len(shown) == 1 or width < 80
