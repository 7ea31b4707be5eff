"""Compact prompts and the vocabulary, read by a tokenizer written here from their description."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from callwright.language.parser import Parser
from callwright.language.program import Program
from callwright.plugins import load_plugins
from callwright.walk.tasks import Task
from callwright_plugins import json_ir, toolworld
from callwright_plugins.toolworld.annotator import SYNONYMS
from callwright_plugins.toolworld.corpus import ToolWorldCorpus
from callwright_plugins.toolworld.families import FAMILIES
from callwright_plugins.toolworld.family import SLOTS

Encode = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def parser() -> Parser:
    registry = load_plugins(entry_points=False, extra={"toolworld": toolworld, "json-ir": json_ir})
    made: Parser = registry.create("parser", "json")
    return made


@pytest.fixture(scope="module")
def encode(corpus: ToolWorldCorpus) -> Encode:
    """The longest piece that fits, from left to right; a character where none does."""
    pieces = sorted(corpus.vocabulary(), key=len, reverse=True)
    pattern = re.compile("|".join([*map(re.escape, pieces), "."]), re.DOTALL)
    return pattern.findall


def test_the_form_of_a_prompt(corpus: ToolWorldCorpus, evaluation: list[Task]) -> None:
    task = evaluation[2]
    assert corpus.prompt_text(task) == (
        " ".join(f"{name}{signature}" for name, signature in ((name, SIGNATURES[name]) for name in task.tools))
        + f" Q {task.query} A"
    )


SIGNATURES = {
    **dict.fromkeys(["GetLocation", "GetHomeCity", "GetTime", "GetSunset", "GetCurrency", "GetLocalCurrency"], "()"),
    **dict.fromkeys(["FindRestaurants", "FindHotels", "FindDealers"], "(location:str)"),
    **dict.fromkeys(["FilterByCuisine", "ExcludeCuisine"], "(restaurants,cuisine:str)"),
    **dict.fromkeys(["FilterByOpen", "FilterByClosed"], "(restaurants,hour:int)"),
    **dict.fromkeys(["GetTemperature", "GetHumidity"], "(location:str,hour:int)"),
    **dict.fromkeys(["GetSum", "GetDifference"], "(first:num,second:num)"),
    **dict.fromkeys(["ListCars", "ListTrucks"], "(dealers)"),
    **dict.fromkeys(["GetPrice", "GetStock"], "(item:str)"),
    "FilterByRating": "(restaurants,rating:num)",
    "FilterByStars": "(restaurants,stars:num)",
    "FilterByPrice": "(restaurants,price:num)",
    "FilterByMake": "(cars,make:str)",
    "FilterByColour": "(cars,colour:str)",
    "FilterByYear": "(cars,year:int)",
    "GetDish": "(cuisine:str)",
    "GetCountry": "(make:str)",
    "ConvertPrice": "(amount:num,currency:str)",
}


def test_the_vocabulary_is_small_and_without_repetition(corpus: ToolWorldCorpus) -> None:
    pieces = corpus.vocabulary()
    assert len(pieces) == len(set(pieces)) <= 260
    assert all(pieces)
    pieces.clear()
    assert corpus.vocabulary()  # a fresh list every time


def test_every_text_is_made_of_pieces(
    corpus: ToolWorldCorpus, evaluation: list[Task], train: list[Task], parser: Parser, encode: Encode
) -> None:
    pieces = set(corpus.vocabulary())
    pairs: list[tuple[Task, Program]] = [(task, task.program) for task in [*evaluation, *train] if task.program]
    pairs += [(task, task.program) for task in [*evaluation, *train] if task.program == Program()]
    pairs += corpus.demonstrations(2, 600)
    pairs += corpus.demonstrations(3, 300, {"hallucination": 0.5, "tool": 0.5, "reorder": 1.0, "reference": 0.5})
    for task, program in pairs:
        for text in (corpus.prompt_text(task), parser.render(program)):
            assert text is not None
            tokens = encode(text)
            assert "".join(tokens) == text
            assert pieces.issuperset(tokens), [token for token in tokens if token not in pieces]


def test_every_query_that_can_be_asked_is_made_of_pieces(corpus: ToolWorldCorpus, encode: Encode) -> None:
    pieces = set(corpus.vocabulary())
    for family in FAMILIES:
        for values in (family.compositions()[0], family.compositions()[-1]):
            fields = {}
            for slot, count in family.slots:
                chosen = values[slot] if count > 1 else (values[slot],)
                fields |= {f"{slot}{number}": value for number, value in zip(("", "2", "3"), chosen, strict=False)}
            for template in family.templates:
                tokens = encode(f"Q {template.format(**fields)} A")
                assert pieces.issuperset(tokens), (template, tokens)


def test_texts_are_short(
    corpus: ToolWorldCorpus, evaluation: list[Task], train: list[Task], parser: Parser, encode: Encode
) -> None:
    longest = {0: 1, 1: 12, 2: 24, 3: 34, 4: 45, 5: 50, 6: 55}
    for task in [*evaluation, *train]:
        assert task.program is not None
        assert len(encode(corpus.prompt_text(task) or "")) <= 40
        assert len(encode(parser.render(task.program))) <= longest[task.depth]


def test_what_is_copied_is_one_piece_in_prompt_and_program(
    corpus: ToolWorldCorpus, evaluation: list[Task], parser: Parser, encode: Encode
) -> None:
    for task in evaluation:
        assert task.program is not None
        prompt, completion = encode(corpus.prompt_text(task) or ""), encode(parser.render(task.program))
        for call in task.program.calls:
            assert call.tool in prompt
            assert call.tool in completion
            for value in call.arguments.values():
                if isinstance(value, str | int):
                    assert str(value) in prompt
                    assert str(value) in completion


def test_names_and_values_are_pieces(corpus: ToolWorldCorpus) -> None:
    pieces = set(corpus.vocabulary())
    assert pieces >= SIGNATURES.keys()
    assert pieces >= {str(value) for domain in SLOTS.values() for value in domain}
    assert pieces >= set(SYNONYMS) | set(SYNONYMS.values())


def test_a_foreign_text_falls_back_to_characters(encode: Encode) -> None:
    text = "Größe ☕ {}\n\t\\ API_RESPONSE_0"
    assert "".join(encode(text)) == text
