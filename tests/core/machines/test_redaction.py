"""Secrets are taken out of texts, settings and command lines, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from callwright.machines.redaction import REDACTED, holds_marks, is_secret, redacted, redacted_value, redacted_words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://user:pw@host/v1 is down", "http://REDACTED@host/v1 is down"),
        ("https://token@host", "https://REDACTED@host"),
        ("GET https://h/v1?model=m&key=abc123&x=1", "GET https://h/v1?model=m&key=REDACTED&x=1"),
        ("https://h/?API_KEY=abc", "https://h/?API_KEY=REDACTED"),
        ("https://h/?access_token=abc#frag", "https://h/?access_token=REDACTED#frag"),
        ("bad key Bearer sk-SECRET-abc123", "bad key Bearer REDACTED"),
        ("Incorrect API key provided: sk-proj-abcdefgh1234.", "Incorrect API key provided: REDACTED."),
        ("Authorization: Basic dXNlcjpwdw==", "Authorization: Basic REDACTED"),
        ("hf_abcdefghijklmnopqrstuv", "REDACTED"),
    ],
)
def test_secrets_are_taken_out_of_a_text(text: str, expected: str) -> None:
    assert redacted(text) == expected
    assert redacted(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "runs/tier-mini/recipe.toml:3: There is no algorithm named 'x'",
        "http://localhost:8000/v1 answered 401",
        "ask someone@example.com",
        "key = 3; token_limit=max_tokens",
        "task-sk-1 and risk-averse behaviour",
        "the bearer of news",
        "https://h/v1?keyboard=us&monkey=1",
    ],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert redacted(text) == text


def test_a_known_secret_is_found_whatever_its_form() -> None:
    assert redacted("you sent 'hunter2-hunter2'", ["hunter2-hunter2"]) == "you sent 'REDACTED'"
    assert redacted("none of the many", ["none"]) == "none of the many"


def test_settings_lose_what_their_names_speak_of() -> None:
    given = {
        "base_url": "http://u:p@h/v1",
        "api_key_env": "OPENAI_API_KEY",
        "token_limit": "max_tokens",
        "eos_token": "</s>",
        "max_new_tokens": 5,
        "headers": {"Authorization": "Bearer abcdefgh", "Accept": "x"},
        "env": {"HF_TOKEN": "abc", "PATH": "/bin"},
        "list": [{"password": "x"}, 1, None, True],
    }
    assert redacted_value(given) == {
        **given,
        "base_url": "http://REDACTED@h/v1",
        "headers": {"Authorization": REDACTED, "Accept": "x"},
        "env": {"HF_TOKEN": REDACTED, "PATH": "/bin"},
        "list": [{"password": REDACTED}, 1, None, True],
    }
    assert holds_marks(redacted_value(given))
    assert not holds_marks(given)
    assert not is_secret("api_key_env")


def test_command_lines_lose_values_of_secret_names() -> None:
    words = ["run", "r.toml", "--set", "environment.env.API_KEY=abc", "--set", "sampler.base_url=http://u:p@h", "--x=1"]
    assert redacted_words(words) == [
        *("run", "r.toml", "--set", "environment.env.API_KEY=REDACTED"),
        *("--set", "sampler.base_url=http://REDACTED@h", "--x=1"),
    ]


LETTERS = st.text(st.sampled_from(":/@?&=;keytokn BearsBic-_1 \"'"), max_size=200)
PARTS = (
    "://",
    "@",
    "Bearer ",
    "Basic  ",
    "sk-",
    "?key=",
    ";key=",
    "token=",
    "kkkkkkkk",
    " ",
    "/",
    "-",
    "_",
    '"',
    ":",
    "&",
)


@given(st.one_of(LETTERS, st.lists(st.sampled_from(PARTS), max_size=9).map("".join)))
@example("://-&key=key=/&@_")
def test_a_redacted_text_stays_as_it_is(text: str) -> None:
    assert redacted(redacted(text)) == redacted(text)


@pytest.mark.parametrize(
    "part", ["://", "://a:", "?key=", "Bearer ", "sk-", "a_token=", "hf_", "Basic  ", "x" * 50 + "_"]
)
def test_it_takes_linear_time(part: str, minute_of_work: Any) -> None:
    text = part * (400_000 // len(part))
    with minute_of_work():
        redacted(text)
