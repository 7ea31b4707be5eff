"""Which tokens evidence is about: calls and arguments in every form, several turns, tokens that share a character."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import callwright as cw
from callwright.training.rollouts.credit import blamed, token_spans
from callwright.walk.calls.placing import argument_span, call_spans
from callwright.walk.components.scores import Evidence, Score, WeightedScore

TEXT = """<think>FindRestaurants, then FilterByOpen.</think>
<tool_call return="one">
{"0": {"FindRestaurants": {"location": "Lima"}}, "1": {"FilterByOpen": {"restaurants": "API_RESPONSE_0", "hours": 15}}}
</tool_call>"""


class Episode:
    """A finished episode whose tokens are pieces of three characters."""

    def __init__(self, attempt: cw.Attempt, texts: Sequence[str]) -> None:
        self.attempt = attempt
        self.pieces: list[str] = []
        self.ranges: list[tuple[int, int]] = []
        for text in texts:
            start = len(self.pieces)
            self.pieces += [text[at : at + 3] for at in range(0, len(text), 3)]
            self.ranges.append((start, len(self.pieces)))
            self.pieces.append("[heard]")
        self.response_ids = tuple(range(len(self.pieces)))

    def text(self, ids: Sequence[int]) -> str:
        return "".join(self.pieces[one] for one in ids)

    def marked(self, reward: Any) -> str:
        marks = blamed(self, reward, self.text)  # type: ignore[arg-type]
        assert len(marks) == len(self.pieces)
        return "".join(piece if mark else "·" for piece, mark in zip(self.pieces, marks, strict=True)).strip("·")


def task() -> cw.Task:
    return cw.corpus("toolworld-mini-v1")["evaluation"][16]


def scored(*evidence: Evidence, weight: float = 1.0, closed: bool = False) -> Any:
    class Reward:
        scores = {"parts": WeightedScore(Score(0.0, evidence=evidence), weight, closed)}  # noqa: RUF012

    return Reward()


def test_the_evidence_of_a_reward_is_found_in_the_tokens() -> None:
    """The argument that the tool does not know, and the call that did not execute, and nothing of the first call."""
    attempt = cw.Attempt(task(), TEXT, cw.parser("json"))
    reward = cw.reward("tier").score_attempt(attempt)
    assert reward.total == pytest.approx(0.35)
    found = Episode(attempt, [TEXT]).marked(reward)
    assert "FilterByOpen" in found
    assert "hours" in found
    assert "FindRestaurants" not in found
    assert "think" not in found
    assert TEXT.endswith(found)


def test_an_argument_is_all_that_is_blamed_where_the_evidence_names_it() -> None:
    episode = Episode(cw.Attempt(task(), TEXT, cw.parser("json")), [TEXT])
    named = Evidence("unexpected", "…", call=1, path="hours", found="15")
    assert "hours" in episode.marked(scored(named))
    assert "restaurants" not in episode.marked(scored(named))
    assert "Lima" in episode.marked(scored(Evidence("failed", "…", call=0)))
    missing = Evidence("missing", "…", call=1, path="hour")  # which the call does not write
    assert "restaurants" in episode.marked(scored(missing))


@pytest.mark.parametrize(
    "nothing",
    [
        scored(Evidence("answer", "wrong")),
        scored(Evidence("failed", "…", call=7)),
        scored(Evidence("failed", "…", call=0), weight=0.0),
        scored(Evidence("failed", "…", call=0), closed=True),
    ],
    ids=["no call", "another call", "weighs nothing", "shut off"],
)
def test_what_blames_no_token(nothing: Any) -> None:
    episode = Episode(cw.Attempt(task(), TEXT, cw.parser("json")), [TEXT])
    assert not any(blamed(episode, nothing, episode.text))  # type: ignore[arg-type]


def test_a_text_that_is_no_program_blames_nothing() -> None:
    attempt = cw.Attempt(task(), "no call", cw.parser("json"))
    episode = Episode(attempt, ["no call"])
    assert not any(blamed(episode, cw.reward("tier").score_attempt(attempt), episode.text))  # type: ignore[arg-type]


def test_calls_are_numbered_over_all_turns() -> None:
    parser = cw.parser("json")
    texts = [
        parser.render(cw.Program((cw.Call(0, "FindRestaurants", {"location": city}),))) for city in ("Lima", "Bonn")
    ]
    attempt = cw.Attempt(task(), texts, parser)
    assert [call.id for call in attempt.program.calls] == [0, 1]
    episode = Episode(attempt, texts)
    assert "Bonn" in episode.marked(scored(Evidence("failed", "…", call=1)))
    assert "Lima" not in episode.marked(scored(Evidence("failed", "…", call=1)))
    assert "Bonn" not in episode.marked(scored(Evidence("failed", "…", call=0)))


@pytest.mark.parametrize("form", ["json", "xml", "direct"])
def test_calls_have_places_in_every_form(form: str) -> None:
    program = task().program
    text = cw.parser(form).render(program)
    spans = call_spans(text, [call.tool for call in program.calls])
    assert all(span is not None for span in spans)
    for call, span in zip(program.calls, spans, strict=True):
        assert span is not None
        assert text[span[0] : span[1]].startswith(call.tool)
        for name in call.arguments:
            place = argument_span(text, name, "", span)
            assert place is not None
            assert text[place[0] : place[1]] == name


def test_tokens_that_write_one_character_between_them() -> None:
    whole = "né!".encode()

    def text(ids: Sequence[int]) -> str:
        return bytes(whole[one] for one in ids).decode(errors="replace")

    assert token_spans((0, 1, 2, 3), text) == [(0, 1), (1, 1), (1, 2), (2, 3)]
    assert token_spans((0, 3), text) == [(0, 1), (1, 2)]
    assert token_spans((), text) == []
