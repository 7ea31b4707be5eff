"""Verdicts: read strictly, whatever a judge writes, and pooled."""

from __future__ import annotations

import json
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callwright_plugins.judge.rubric import parse_rubric
from callwright_plugins.judge.verdict import NoVerdict, Pooling, Verdict, pool, read_verdict

RUBRIC = parse_rubric("about = 'x'\n[criteria.a]\nasks = 'a?'\n[criteria.b]\nasks = 'b?'\n")
WORD = "012345689abc"


def written(a: Any = 3, b: Any = 5, word: str = WORD, **more: Any) -> str:
    criteria = {"a": {"reason": "so {so}", "score": a}, "b": {"reason": 'a "b"', "score": b}, **more}
    return json.dumps({"word": word, "criteria": criteria})


GOOD = Verdict({"a": 3, "b": 5}, {"a": "so {so}", "b": 'a "b"'})


@pytest.mark.parametrize(
    "text",
    [
        written(),
        f"\n {written()}\n",
        f"```json\n{written()}\n```",
        f"```\n{written()}\n```\n",
        f"Let me see. The verdict:\n{written()}\nThat is all.",
        f'I was shown {{"word": "ffffffffffff", "criteria": {{}}}} and {{braces}}: {written()}',
        written(word="ffffffffffff") + written(),
    ],
)
def test_one_verdict_with_the_word_is_read(text: str) -> None:
    assert read_verdict(text, RUBRIC, WORD) == GOOD


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no JSON object"),
        ("I would say 5 out of 5.", "no JSON object"),
        ("{", "no JSON"),
        (written()[:-1], "no JSON"),
        (written(word="ffffffffffff"), "another word"),
        (written(a=6), "off the scale"),
        (written(a=0), "off the scale"),
        (written(a=10**400), "off the scale"),
        (written(a=7).replace("7", "9" * 5000), "no JSON"),
        (written(a=10**30), "off the scale"),
        (written(a=3.0), "no object of 'reason' and 'score'"),
        (written(a="3"), "no object of 'reason' and 'score'"),
        (written(a=True), "no object of 'reason' and 'score'"),
        (written(a=None), "no object of 'reason' and 'score'"),
        (written(c={"reason": "", "score": 1}), "that the rubric has not"),
        (written().replace('"b"', '"a"', 1), "'a' twice"),
        (json.dumps({"word": WORD, "criteria": {"a": {"reason": "", "score": 1}}}), "lacks the criterion 'b'"),
        (json.dumps({"word": WORD, "criteria": {"a": 3, "b": 3}}), "no object of 'reason'"),
        (json.dumps({"word": WORD, "criteria": []}), "no object of 'word' and 'criteria'"),
        (json.dumps({"word": WORD, "criteria": {}, "score": 5}), "no object of 'word' and 'criteria'"),
        (f"{written()} or rather {written(a=5)}", "2 verdicts"),
        (written() * 20, "20 verdicts"),
        (" " * 300_000, "300,000 characters"),
    ],
)
def test_anything_else_is_none_and_says_why(text: str, reason: str) -> None:
    found = read_verdict(text, RUBRIC, WORD)
    assert isinstance(found, NoVerdict)
    assert reason in found.reason


@given(st.text(max_size=300) | st.text('{}[]":,wordcriteasn0123456789ab \\', max_size=300))
def test_no_reply_raises(text: str) -> None:
    for reply in (text, written() + text, text + written(), written().replace("so", text)):
        found = read_verdict(reply, RUBRIC, WORD)
        assert isinstance(found, Verdict | NoVerdict)


@pytest.mark.parametrize(
    "part", ["{", '{"word": "012345689abc", ', '"\\', "```json\n", '{"word":"012345689abc"' + " " * 50]
)
def test_reading_takes_time_linear_in_the_text(part: str, minute_of_work: Any) -> None:
    with minute_of_work():
        read_verdict((part * 500_000)[:500_000], RUBRIC, WORD)


verdicts = st.lists(
    st.tuples(st.integers(1, 5), st.integers(1, 5)).map(
        lambda p: Verdict({"a": p[0], "b": p[1]}, {"a": f"{p}", "b": ""})
    ),
    min_size=1,
    max_size=7,
)


@given(verdicts, st.randoms(use_true_random=False))
def test_votes_are_pooled_one_criterion_at_a_time_in_any_order(votes: list[Verdict], rng: Any) -> None:
    found = pool(votes)
    assert found.points["a"] == statistics.median(vote.points["a"] for vote in votes)
    assert found.spread.get("b", 0) == max(v.points["b"] for v in votes) - min(v.points["b"] for v in votes)
    other = list(votes)
    rng.shuffle(other)
    poolings: tuple[Pooling, ...] = ("median", "majority", "mean")
    for pooling in poolings:
        assert pool(other, pooling).points == pool(votes, pooling).points


def test_a_majority_in_doubt_gives_no_more_than_the_smallest() -> None:
    def of(*points: int) -> float:
        return pool([Verdict({"a": n}, {"a": ""}) for n in points], "majority").points["a"]

    assert (of(5, 5, 1), of(1, 5), of(2, 2, 4, 4, 5)) == (5, 1, 2)


def test_the_reason_is_that_of_the_vote_nearest_to_the_result() -> None:
    votes = [Verdict({"a": n}, {"a": f"because {n}"}) for n in (1, 4, 5)]
    assert pool(votes).reasons["a"] == "because 4"
