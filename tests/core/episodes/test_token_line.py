"""Lines of token ids: what was sampled, what was heard, and branches that share a beginning."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from attrs import frozen
from hypothesis import assume, given
from hypothesis import strategies as st

import callwright as cw
from callwright.episodes import TokenLine


@frozen
class Piece:
    """One thing that is appended: ids, sampled (with log-probabilities or without) or heard."""

    ids: tuple[int, ...]
    sampled: bool
    logprobs: tuple[float, ...] = ()

    def onto(self, line: TokenLine) -> None:
        if self.sampled:
            line.sampled(self.ids, self.logprobs)
        else:
            line.heard(self.ids)


IDS = st.lists(st.integers(0, 999), max_size=6).map(tuple)


@st.composite
def pieces(draw: st.DrawFn) -> Piece:
    ids, sampled, logged = draw(IDS), draw(st.booleans()), draw(st.booleans())
    return Piece(ids, sampled, tuple(-0.5 - at for at in range(len(ids))) if sampled and logged else ())


PIECES = st.lists(pieces(), max_size=8)


def build(prompt: Sequence[int], made: Sequence[Piece]) -> TokenLine:
    line = TokenLine(prompt)
    for piece in made:
        piece.onto(line)
    return line


def test_a_line_begins_with_its_prompt() -> None:
    line = TokenLine([7, 8])
    assert (line.prompt_ids, line.context, line.response_ids) == ((7, 8), (7, 8), ())
    assert (line.mask, line.logprobs, line.ranges, len(line)) == ((), (), (), 0)
    assert (line.parent, line.forked_at) == (None, None)
    assert tuple(line.end) == (7, 8), "the first completion follows the prompt"


def test_what_is_sampled_and_what_is_heard() -> None:
    line = TokenLine((7,))
    line.sampled([1, 2], [-0.5, -0.25])
    line.heard([3, 4, 5])
    line.sampled((6,), (-1.0,))
    assert line.response_ids == (1, 2, 3, 4, 5, 6)
    assert line.context == (7, 1, 2, 3, 4, 5, 6)
    assert line.mask == (1, 1, 0, 0, 0, 1)
    assert line.logprobs == (-0.5, -0.25, 0.0, 0.0, 0.0, -1.0)
    assert line.ranges == ((0, 2), (5, 6))
    assert (len(line), tuple(line.end)) == (6, line.response_ids)


@given(prompt=IDS, made=PIECES)
def test_a_line_is_everything_that_was_appended_in_its_order(prompt: tuple[int, ...], made: list[Piece]) -> None:
    line = build(prompt, made)
    assert line.response_ids == tuple(one for piece in made for one in piece.ids)
    assert line.context == prompt + line.response_ids
    assert line.mask == tuple(int(piece.sampled) for piece in made for _ in piece.ids)
    sampled = [piece for piece in made if piece.sampled]
    assert [line.response_ids[start:end] for start, end in line.ranges] == [piece.ids for piece in sampled]
    assert sum(line.mask) == sum(end - start for start, end in line.ranges)
    if all(piece.logprobs for piece in sampled if piece.ids):
        assert len(line.logprobs) == len(line)
        assert [line.logprobs[start:end] for start, end in line.ranges] == [piece.logprobs for piece in sampled]
        assert not any(logprob for logprob, one in zip(line.logprobs, line.mask, strict=True) if not one)
    else:
        assert line.logprobs == (), "log-probabilities are all or none"


def test_a_completion_without_log_probabilities_takes_those_of_the_whole_line() -> None:
    line = TokenLine(())
    line.sampled([1], [-0.5])
    line.sampled([])
    assert line.logprobs == (-0.5,), "an empty completion has none to give"
    line.sampled([2])
    assert line.logprobs == ()
    line.sampled([3], [-0.5])
    assert line.logprobs == ()


@pytest.mark.parametrize("logprobs", [(-1.0,), (-1.0, -1.0, -1.0)])
def test_another_number_of_log_probabilities_is_refused_and_changes_nothing(logprobs: tuple[float, ...]) -> None:
    line = build((7,), [Piece((1,), True, (-0.5,))])
    with pytest.raises(cw.UsageError, match=f"{len(logprobs)} log-probabilities were given for 2 tokens"):
        line.sampled([1, 2], logprobs)
    assert (line.response_ids, line.mask, line.logprobs, line.ranges) == ((1,), (1,), (-0.5,), ((0, 1),))


# Forks ----------------------------------------------------------------------------------------------------------------


def state(line: TokenLine) -> tuple[object, ...]:
    return line.prompt_ids, line.response_ids, line.mask, line.logprobs, line.ranges


@given(prompt=IDS, made=PIECES, after=PIECES, data=st.data())
def test_a_fork_shares_the_beginning_and_then_goes_its_own_way(
    prompt: tuple[int, ...], made: list[Piece], after: list[Piece], data: st.DataObject
) -> None:
    parent = build(prompt, made)
    at = data.draw(st.integers(0, len(parent)))
    before = state(parent)
    fork = parent.fork(at)
    assert fork.parent is parent
    assert fork.forked_at == len(fork) == at
    assert fork.prompt_ids == parent.prompt_ids
    assert fork.response_ids == parent.response_ids[:at]
    assert fork.mask == parent.mask[:at]
    assert parent.logprobs == () or fork.logprobs == parent.logprobs[:at]
    assert all(0 <= start <= end <= at for start, end in fork.ranges)
    assert [position for start, end in fork.ranges for position in range(start, end)] == [
        position for position, one in enumerate(fork.mask) if one
    ]
    for (start, end), (first, last) in zip(parent.ranges, fork.ranges, strict=False):
        assert (first, last) == (start, min(end, at)), "a completion that is cut keeps its first ids"
    for piece in after:
        piece.onto(fork)
    assert state(parent) == before, "what follows in a fork is none of its parent's"
    kept = state(fork)
    parent.sampled((1, 2, 3))
    parent.heard((4,))
    assert state(fork) == kept, "nor the other way round"


@given(prompt=IDS, made=PIECES)
def test_a_fork_of_everything_is_the_same_line(prompt: tuple[int, ...], made: list[Piece]) -> None:
    parent = build(prompt, made)
    assert state(parent.fork()) == state(parent.fork(len(parent))) == state(parent)


@given(prompt=IDS, made=PIECES, after=PIECES)
def test_a_fork_between_two_pieces_is_the_line_of_those_before(
    prompt: tuple[int, ...], made: list[Piece], after: list[Piece]
) -> None:
    """So branches of a prefix do not depend on what the first of them did later."""
    assume(all(piece.ids for piece in after if piece.sampled))  # an empty one at the fork may belong to either side
    line = build(prompt, made)
    at = len(line)
    for piece in after:
        piece.onto(line)
    assert state(line.fork(at)) == state(build(prompt, made))


def test_a_fork_before_a_completion_without_log_probabilities_has_them() -> None:
    line = build((7,), [Piece((1, 2), True, (-0.5, -0.25)), Piece((3,), False), Piece((4, 5), True)])
    assert line.logprobs == ()
    assert line.fork(3).logprobs == (-0.5, -0.25, 0.0)
    assert line.fork(4).logprobs == ()
    other = line.fork(3)
    other.sampled([9], [-2.0])
    assert other.logprobs == (-0.5, -0.25, 0.0, -2.0)


def test_a_completion_that_is_cut_keeps_its_first_ids() -> None:
    line = build((7,), [Piece((1, 2), True), Piece((3,), False), Piece((4, 5, 6), True)])
    assert line.fork(5).ranges == ((0, 2), (3, 5))
    assert line.fork(3).ranges == ((0, 2),)
    assert line.fork(1).ranges == ((0, 1),)
    assert line.fork(0).ranges == ()
    assert line.fork(1).context == (7, 1)


def test_forks_of_forks_know_where_they_come_from() -> None:
    line = build((7,), [Piece((1, 2), True), Piece((3,), False)])
    first = line.fork(2)
    first.heard([8, 9])
    second = first.fork(3)
    assert (second.parent, second.forked_at, first.parent, first.forked_at) == (first, 3, line, 2)
    assert second.context == (7, 1, 2, 8)


@pytest.mark.parametrize("at", [-1, 4, 99])
def test_a_position_that_the_response_does_not_have_is_named(at: int) -> None:
    line = build((7, 7, 7), [Piece((1, 2, 3), True)])
    with pytest.raises(cw.UsageError, match=f"3 response ids cannot be forked at {at}$"):
        line.fork(at)
