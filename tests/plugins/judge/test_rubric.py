"""Rubrics: read from TOML, every mistake with its file and line."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright.errors import DataError, RecipeError, UnknownName
from callwright_plugins.judge.rubric import load_rubric, parse_rubric, shipped_rubrics

GOOD = """\
about = "Tables are booked."
scale = [0, 10]
sees = ["answer", "task"]

[criteria.polite]
weight = 3
asks = "Is it polite?"
low = "Rude."

[criteria.right]
asks = "Is it right?"
"""


def test_a_rubric_is_what_its_file_says(tmp_path: Path) -> None:
    file = tmp_path / "tables.toml"
    file.write_text(GOOD)
    rubric = load_rubric(str(file))
    assert (rubric.name, rubric.scale, rubric.sees) == ("tables", (0, 10), ("task", "answer"))
    assert [(one.name, one.weight, one.low) for one in rubric.criteria] == [
        ("polite", 3.0, "Rude."),
        ("right", 1.0, ""),
    ]
    assert rubric.value({"polite": 10, "right": 0}) == 0.75
    assert rubric.value({"polite": 0, "right": 0}) == 0.0
    assert rubric.value({"polite": 10, "right": 10}) == 1.0


@given(st.lists(st.tuples(st.floats(0.01, 1e6), st.integers(-3, 7)), min_size=1, max_size=6))
def test_the_value_is_the_weighted_mean_on_a_scale_of_0_to_1(rows: list[tuple[float, int]]) -> None:
    tables = "".join(f"[criteria.c{n}]\nasks = 'x'\nweight = {weight!r}\n" for n, (weight, _) in enumerate(rows))
    rubric = parse_rubric(f"about = 'x'\nscale = [-3, 7]\n{tables}")
    expected = sum(w * (p + 3) / 10 for w, p in rows) / sum(w for w, _ in rows)
    value = rubric.value({f"c{n}": points for n, (_, points) in enumerate(rows)})
    assert value == pytest.approx(expected, abs=1e-12)
    assert 0 <= value <= 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('about = "Tables are booked."', "", r"^r\.toml(:\d+)?: 'about' is missing"),
        ('about = "', 'abuot = "', r"r\.toml:1: There is no key of a rubric named 'abuot'. Did you mean 'about'"),
        ("[0, 10]", "[10, 0]", r"r\.toml:2: 'scale' is two whole numbers"),
        ("[0, 10]", "[0, 10.0]", r"r\.toml:2: 'scale'"),
        ("[0, 10]", "[false, true]", r"r\.toml:2: 'scale'"),
        ("[0, 10]", "[0, 1000]", r"r\.toml:2: 'scale'"),
        ('"task"]', '"tasks"]', r"r\.toml:3: There is no thing to see named 'tasks'. Did you mean 'task'"),
        ('["answer", "task"]', '"answer"', r"r\.toml:3: 'sees' is a list of"),
        ("weight = 3", "weight = 0", r"r\.toml:6: 'weight' is a number above 0, not 0"),
        ("weight = 3", "weight = nan", r"r\.toml:6: 'weight'"),
        ("weight = 3", 'weight = "3"', r"r\.toml:6: 'weight'"),
        (
            "weight = 3",
            "wieght = 3",
            r"r\.toml:6: There is no key of a criterion named 'wieght'. Did you mean 'weight'",
        ),
        ('asks = "Is it polite?"', "", r"r\.toml:5: 'asks' is missing"),
        ('asks = "Is it polite?"', 'asks = " "', r"r\.toml:7: 'asks' is empty"),
        ('low = "Rude."', "low = 1", r"r\.toml:8: 'low' is a text, not 1"),
        ("[criteria.right]", '[criteria."right wing"]', r"r\.toml:10: a criterion is named with letters"),
        ("weight = 3", "weight = = 3", r"r\.toml:6: Invalid value"),
        ("weight = 3", "asks = 3", r"r\.toml:7: Cannot overwrite"),
    ],
)
def test_a_mistake_is_told_with_its_file_and_line(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(RecipeError, match=message):
        parse_rubric(GOOD.replace(old, new), "r.toml")


def test_all_mistakes_are_told_at_once() -> None:
    text = GOOD.replace("[0, 10]", "[3]").replace("weight = 3", "weight = -1").replace("low =", "lo =")
    with pytest.raises(RecipeError) as found:
        parse_rubric(text, "r.toml")
    assert [re.match(r"r\.toml:(\d+)", line)[1] for line in str(found.value).splitlines()] == ["2", "8", "6"]  # type: ignore[index]


@pytest.mark.parametrize("text", ["", "about = 'x'", "about = 'x'\ncriteria = 3", "about = 'x'\n[criteria]"])
def test_a_rubric_without_criteria_is_none(text: str) -> None:
    with pytest.raises(RecipeError, match="needs criteria"):
        parse_rubric(text)


@given(st.text(max_size=200) | st.text("[]{}=\"'.,criteaskbou \n0123456789-", max_size=200))
def test_no_text_gives_anything_but_a_rubric_or_an_error_in_words(text: str) -> None:
    with suppress(RecipeError):
        parse_rubric(text)


def test_a_file_that_is_not_there_and_a_name_that_nobody_ships_are_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        load_rubric(str(tmp_path / "none.toml"))
    with pytest.raises(UnknownName, match="Did you mean 'answer'"):
        load_rubric("anwser")
    (tmp_path / "latin.toml").write_bytes(b"about = '\xe4'")
    with pytest.raises(DataError, match="is not UTF-8 text"):
        load_rubric(str(tmp_path / "latin.toml"))


@pytest.mark.parametrize("name", shipped_rubrics())
def test_what_is_shipped_is_a_rubric(name: str) -> None:
    assert load_rubric(name).name == name
    rubrics: Any = shipped_rubrics()
    assert "answer" in rubrics
