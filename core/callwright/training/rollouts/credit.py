"""Which tokens of a rollout the evidence of its reward is about: where a penalty may land.

A reward says why points are lost, and of which call: this call has an argument that its tool does not know, that one
did not execute. The call stands somewhere in what the policy wrote, and so in the tokens that it sampled, which are
laid over their text one by one and never made anew from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from callwright.walk.calls.placing import Span, argument_span, call_spans

if TYPE_CHECKING:
    from callwright.episodes.finished import FinishedEpisode
    from callwright.walk.components.scores import Evidence
    from callwright.walk.reward import Reward

#: The text of token ids, as the model reads them.
Text = Callable[[Sequence[int]], str]


def blamed(episode: FinishedEpisode, reward: Reward, text: Text) -> tuple[int, ...]:
    """``[L]``: 1 for each token of the response that some evidence of the reward is about, else 0.

    Evidence with a path is about that argument of its call where the call writes it, else about the whole call.
    Evidence without a call, and what is not found in the text, is about no token.
    """
    marks = [0] * len(episode.response_ids)
    turns = episode.attempt.turns
    written = [(turn, place) for turn, one in enumerate(turns) for place in range(len(one.calls))]
    program = episode.attempt.program
    if program is None or len(written) != len(program.calls) or len(episode.ranges) != len(turns):
        return tuple(marks)
    turn_of = dict(zip((call.id for call in program.calls), written, strict=True))
    spans: dict[int, list[Span]] = {}
    for evidence in _evidence(reward):
        if evidence.call not in turn_of:
            continue
        turn, place = turn_of[evidence.call]
        said = turns[turn].completion.text
        call = call_spans(said, [one.tool for one in turns[turn].calls])[place]
        if call is not None:
            argument = argument_span(said, evidence.path, evidence.found, call) if evidence.path else None
            spans.setdefault(turn, []).append(argument or call)
    for turn, found in spans.items():
        start, end = episode.ranges[turn]
        for place, token in enumerate(token_spans(episode.response_ids[start:end], text), start):
            if any(token[0] < last and first < token[1] for first, last in found):
                marks[place] = 1
    return tuple(marks)


def token_spans(ids: Sequence[int], text: Text) -> list[Span]:
    """The characters of ``text(ids)`` that each token wrote, as half-open ranges.

    Where several tokens write one character between them it is of the last of these.
    """
    pieces = [text((one,)) for one in ids]
    if "".join(pieces) == text(ids):
        ends = _sums(len(piece) for piece in pieces)
    else:
        prefixes = (text(ids[: count + 1]) for count in range(len(ids)))
        ends = [len(prefix.rstrip("\ufffd")) for prefix in prefixes]
        ends = [max(ends[: count + 1]) for count in range(len(ids))]
    return list(zip([0, *ends[:-1]], ends, strict=True)) if ends else []


def _sums(lengths: Iterator[int]) -> list[int]:
    total, sums = 0, []
    for length in lengths:
        total += length
        sums.append(total)
    return sums


def _evidence(reward: Reward) -> Iterator[Evidence]:
    """Why points are lost that count: not what a gate shut off."""
    for weighted in reward.scores.values():
        if weighted.weight and not weighted.closed:
            yield from weighted.score.evidence
