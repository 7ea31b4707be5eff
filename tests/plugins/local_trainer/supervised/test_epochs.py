"""Which demonstrations a step shows: each pass all of them, in an order of its own, and any step at any time."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from callwright_plugins.local_trainer.options import SupervisedOptions
from callwright_plugins.local_trainer.supervised.epochs import Epochs


def epochs(count: int, seed: int = 3, **options: Any) -> Epochs:
    return Epochs(count, SupervisedOptions(**options), seed)


@pytest.mark.parametrize(
    ("count", "batch", "passes"), [(10, 4, 3.0), (7, 7, 2.0), (5, 8, 1.0), (9, 2, 1.5), (3, 16, 5)]
)
def test_every_pass_shows_each_once(count: int, batch: int, passes: float) -> None:
    stream = epochs(count, batch=batch, epochs=passes)
    rows = [row for step in range(stream.steps) for row in stream.rows(step)]
    assert len(rows) == stream.shown == round(passes * count)
    for start in range(0, len(rows), count):
        part = rows[start : start + count]
        assert len(set(part)) == len(part)
    assert [len(stream.rows(step)) for step in range(stream.steps - 1)] == [batch] * (stream.steps - 1)
    assert stream.done(stream.steps - 1) == pytest.approx(len(rows) / count)
    assert stream.rows(stream.steps) == []


def test_passes_differ_in_their_order_and_hang_on_the_seed() -> None:
    stream = epochs(40, batch=40, epochs=3)
    orders = [tuple(stream.rows(step)) for step in range(3)]
    assert len({*orders, tuple(epochs(40, seed=4, batch=40, epochs=3).rows(0))}) == 4


def test_any_step_can_be_asked_for_at_any_time() -> None:
    whole, again = (epochs(11, batch=4, epochs=4) for _ in range(2))
    forward = [whole.rows(step) for step in range(whole.steps)]
    assert [again.rows(step) for step in reversed(range(again.steps))] == forward[::-1]


def test_steps_in_place_of_epochs_are_all_full() -> None:
    stream = epochs(5, batch=4, steps=6)
    assert (stream.steps, stream.shown) == (6, 24)
    shown = Counter(row for step in range(6) for row in stream.rows(step))
    assert set(shown.values()) <= {4, 5}
    assert epochs(5, steps=0).steps == 0


@pytest.mark.parametrize(("warm_up", "expected"), [(0, 0), (7, 7), (0.1, 10), (0.0, 0), (1, 1)])
def test_the_warm_up_is_a_number_or_a_share(warm_up: float, expected: int) -> None:
    assert epochs(100, batch=1, epochs=1, warm_up=warm_up).warm_up == expected
