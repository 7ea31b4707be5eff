"""Texts that break parsers: a fixed list of the nasty ones, and seeded mutations of good completions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Final

_DEEP: Final = 3000
#: Pieces that mean something to some parser or interpreter.
PIECES: Final[tuple[str, ...]] = (
    *"<>&\"'\\{}[](),:;=.-+/%$#`|~ \t\n\r\0",
    *(
        "\x1b[31m",
        "\x7f",
        "\x85",
        "\u2028",
        "\ufeff",
        "\u202e",
        "\ufffe",
        "\ufdd0",
        "\ud800",
        "\udc00",
        "é",
        "²",
        "٣",
        "𝄞",
    ),
    *(
        "0",
        "-0",
        "007",
        "1e999",
        "-1e-999",
        "0x1F",
        "1_000",
        "9" * 30,
        "9" * 5000,
        "0." + "1" * 5000,
        "NaN",
        "Infinity",
    ),
    *("null", "None", "true", "True", "{}", "[]", '""', "''", '"""', "{{}}", "[[]]", '{"0": {}}', '{"a": 1, "a": 2}'),
    *("API_RESPONSE_0", '"API_RESPONSE_0"', "API_RESPONSE_", "API_RESPONSE_99.a[0]", "API_RESPONSE_0" + ".a" * 50),
    *("<think>", "</think>", "<tool_call>", "</tool_call>", '<tool_call return="one">', '<tool_call return="many">'),
    *("<none/>", "<api>", "</api>", "<param>", "<response/>", "<a/>", "<!---->", "<![CDATA[", "]]>", "<?xml?>"),
    *('<!DOCTYPE a [<!ENTITY b "c">]>', "&b;", "&amp;", "&#0;", "&#x110000;", 'type="os.system"', 'xmlns:a="b"'),
    *("__import__('os').system('false')", "lambda: 0", "f'{1}'", "${7*7}", "{{7*7}}", "%s%n", "../../etc/passwd"),
    *("\\u0000", "\\ud800", "\\ud83d\\ude00", "\\x", "\\N{DIGIT ONE}", "\\"),
)
NASTY: Final[tuple[str, ...]] = (
    "",
    *PIECES,
    *(
        "[" * _DEEP,
        "{" * _DEEP,
        "(" * _DEEP,
        '{"a":' * _DEEP,
        "[" * _DEEP + "]" * _DEEP,
        "<a>" * _DEEP,
        "<think>" * _DEEP,
    ),
    *(
        "a" * 100_000,
        " " * 100_000,
        "\n" * 20_000,
        '"' * 20_000,
        "\\" * 20_000,
        "</think>" * _DEEP,
        "\U0010ffff" * 5000,
    ),
)


def mutated(texts: Sequence[str], count: int, seed: int) -> Iterator[str]:
    """``count`` texts made of good ones by a few cuts, repetitions, swaps and insertions of :data:`PIECES`."""
    rng = Random(seed)
    for _ in range(count):
        text = rng.choice(texts)
        for _ in range(rng.randint(1, 3)):
            first = rng.randint(0, len(text))
            last = min(len(text), first + rng.choice((0, 0, 1, 4, 20, 20_000)))
            middle = text[first:last]
            match rng.randint(0, 5):
                case 0:
                    middle = ""
                case 1:
                    middle = middle * rng.randint(2, 3)
                case 2:
                    middle = rng.choice(PIECES)
                case 3:
                    middle = middle + rng.choice(PIECES)
                case 4:
                    middle = middle[::-1]
                case 5:
                    other = rng.choice(texts)
                    middle = other[rng.randint(0, len(other)) :]
            text = (text[:first] + middle + text[last:])[:20_000]
        yield text


def for_texts_of_hypothesis(examine: Callable[[str], None], examples: int) -> None:
    """Give ``examine`` texts of hypothesis where it is installed, the same ones every time; it shrinks what fails."""
    try:
        import hypothesis
        from hypothesis import strategies
    except ImportError:
        return
    settings = hypothesis.settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    text = strategies.text() | strategies.lists(strategies.sampled_from(PIECES)).map("".join)
    settings(hypothesis.given(text)(examine))()
