"""Calls of Java and JavaScript as text, beside what the official parsers (grammars of tree-sitter) made of them.

Of 95 texts of ours the 83 stand in ``source_cases.json`` on which both agree: these cases guard what is so. How often
both differ is measured by ``benchmarks/bfcl_decoding.py``.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from callwright_plugins.bfcl.multi_turn.decoding import NotDecoded
from callwright_plugins.bfcl.single_turn.answers import decoded_text

#: ``benchmarks/bfcl_decoding.py`` asks the official parsers; these are its answers to texts of our own.
CASES = json.loads((Path(__file__).parent / "source_cases.json").read_text(encoding="utf-8"))


def decoded(text: str, language: Any) -> Any:
    try:
        return decoded_text(text, "v3", language)
    except NotDecoded:
        return None


@pytest.mark.parametrize("case", CASES, ids=[f"{one['language']}-{place}" for place, one in enumerate(CASES)])
def test_a_text_is_the_calls_that_the_official_parser_reads(case: dict[str, Any]) -> None:
    assert decoded(case["text"], case["language"]) == case["calls"]


def test_all_that_matters_is_among_the_cases() -> None:
    assert {one["language"] for one in CASES} == {"Java", "JavaScript"}
    assert sum(one["calls"] is None for one in CASES) > 10
    assert any("new HashMap<String,Integer>()" in str(one["calls"]) for one in CASES)  # its body is lost


@pytest.mark.parametrize("language", ["Java", "JavaScript"])
def test_any_text_is_read_or_refused(language: str) -> None:
    draw = random.Random(4)
    words = [
        "f",
        "(",
        ")",
        "a",
        "=",
        ",",
        '"x"',
        "new",
        "int",
        "[",
        "]",
        "{",
        "}",
        "<",
        ">",
        "->",
        "?",
        ":",
        "ä",
        "'",
        ".",
    ]
    for _ in range(4000):
        text = draw.choice(["", " "]).join(draw.choices(words, k=draw.randrange(1, 14)))
        found = decoded(text, language)
        assert found is None or isinstance(found, list)


@pytest.mark.parametrize(
    "text",
    [
        "f(a = " + "(" * 50_000,
        "f(a = " + "/*" * 50_000,
        "f(a = " + "new A<" * 50_000,
        "f(a = " + '"' * 50_001,
        "f(a = ä" + " + b" * 50_000 + ")",
        "f(" + "a = 1, " * 50_000,
        "f(a = " + "b." * 49_990 + "c)",
        "f(a = new int[]" + "{" * 50_000,
    ],
)
def test_long_texts_are_read_in_linear_time(
    text: str, minute_of_work: Callable[[], AbstractContextManager[None]]
) -> None:
    with minute_of_work():
        for language in ("Java", "JavaScript"):
            decoded(text, language)
