"""Random sequences of tags: scanning finds what the released patterns and splits find, and nothing raises."""

from __future__ import annotations

import json
import random
import re

import pytest

import callwright as cw
from callwright_plugins.toolrl_rewards.reading import read_text
from callwright_plugins.toolrl_rewards.released_text import body_of, well_formed

PIECES = (
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<response>",
    "</response>",
    "\n",
    "\n",
    " ",
    "x",
    '{"name": "f", "parameters": {}}',
    "</think>\n<tool_call>\n",
    "\n</tool_call>",
    "</think>\n<response>",
    "\n</tool_call>\n<response>",
)
#: What each kind of ground truth asks for (see docs/toolrl-and-prove.md), and which tags have to stand once.
SHAPES = {
    "calls": (r"<think>.*?</think>\n<tool_call>\n.*?\n</tool_call>", ("<tool_call>", "</tool_call>")),
    "response": (r"<think>.*?</think>\n<response>.*?</response>", ("<response>", "</response>")),
    "both": (
        r"<think>.*?</think>\n<tool_call>\n.*?\n</tool_call>\n<response>.*?</response>",
        ("<tool_call>", "</tool_call>", "<response>", "</response>"),
    ),
    "thought": (r"<think>.*?</think>", ()),
}


def soups(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        text = "".join(rng.choice(PIECES) for _ in range(rng.randint(0, 9)))
        found.append("<think>" + text + rng.choice(("", "\n</tool_call>", "</response>", "</think>")))
    return found


@pytest.mark.parametrize("kind", SHAPES)
def test_scanning_equals_the_patterns(kind: str) -> None:
    pattern, once = SHAPES[kind]
    positive = 0
    for soup in soups(20_000, seed=len(kind)):
        text = soup.strip()
        expected = re.fullmatch(pattern, text, re.DOTALL) is not None and all(text.count(tag) == 1 for tag in once)
        assert well_formed(kind, text) == expected, text
        positive += expected
    assert positive > 10


def test_the_body_is_what_splitting_leaves() -> None:
    for soup in soups(5000, seed=9):
        if "<tool_call>" in soup:
            assert body_of(soup) == soup.split("<tool_call>")[1].split("</tool_call>")[0].strip()


@pytest.mark.parametrize("recipe", ["toolrl", "toolrl-released-default", "toolrl-released-intermediate_refined"])
def test_any_soup_is_scored_and_explained(recipe: str) -> None:
    scorer = cw.reward(recipe)
    truth = '<think>t</think>\n<tool_call>\n{"name": "f", "parameters": {}}\n</tool_call>'
    totals = set()
    for soup in soups(1500, seed=10):
        reward = scorer.score_pair(soup, truth)
        for weighted in reward.scores.values():
            assert weighted.score.full == (not weighted.score.evidence), soup
        totals.add(reward.total)
        json.dumps(reward.to_json(), allow_nan=False)
    assert {-3.0, 4.0} <= totals


def test_what_is_read_stands_in_the_text() -> None:
    for soup in soups(3000, seed=11):
        reading = read_text(soup)
        assert len(reading.calls) <= soup.count('{"name": "f"')
        assert reading.blocks.count("C") <= soup.count("<tool_call>")
        assert reading.blocks.startswith("T")
        assert reading.thought is not None
        assert reading.thought in soup
