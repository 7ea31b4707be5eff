"""The word-level tokenizer: exact on every text, longest word first, and an ordinary Hugging Face tokenizer."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from callwright_plugins.local_trainer.models.vocabulary import BEGIN, END, PAD, build_tokenizer

WORDS = ["Paris", "Par", " in", " ", "\n", '"}}, "2": {"', '": ', "é", "ée", "日本", "a.b", "(x|y)", "0"]
TOKENIZER = build_tokenizer(WORDS)


def encode(text: str) -> list[int]:
    return list(TOKENIZER.encode(text, add_special_tokens=False))


def decode(ids: list[int]) -> str:
    return str(TOKENIZER.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False))


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(st.text(), st.lists(st.sampled_from([*WORDS, PAD, BEGIN, END, " ,", " .", "n't", "\r\n"])).map("".join))
)
def test_every_text_comes_back(text: str) -> None:
    text = text.encode("utf-8", "ignore").decode("utf-8")  # lone surrogates are not text
    assert decode(encode(text)) == text


@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_one_token(word: str) -> None:
    assert len(encode(word)) == (1 if len(word.encode()) == 1 or len(word) > 1 else len(word.encode()))


def test_the_longest_word_wins_from_the_left() -> None:
    assert [decode([token]) for token in encode('Paris in Par0"}}, "2": {"')] == [
        "Paris",
        " in",
        " ",
        "Par",
        "0",
        '"}}, "2": {"',
    ]


def test_text_that_looks_special_is_text() -> None:
    special = {TOKENIZER.pad_token_id, TOKENIZER.bos_token_id, TOKENIZER.eos_token_id}
    assert len(special) == 3
    assert not special & set(encode(f"a{END}{PAD}{BEGIN}b"))


def test_it_survives_saving(tmp_path: Path) -> None:
    TOKENIZER.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    for text in ("Paris in 日本\n", f"x{END}y", 'a.b "}}, "2": {" (x|y)', "naïve ée é"):
        ids = loaded.encode(text, add_special_tokens=False)
        assert list(ids) == encode(text)
        assert loaded.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False) == text
    assert (loaded.pad_token_id, loaded.bos_token_id, loaded.eos_token_id) == (
        TOKENIZER.pad_token_id,
        TOKENIZER.bos_token_id,
        TOKENIZER.eos_token_id,
    )
