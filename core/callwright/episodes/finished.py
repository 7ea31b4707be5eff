"""Episodes that are over, as rows and metrics take them, whoever drove them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from callwright.walk.attempt import Attempt
from callwright.walk.conditions import Conditions


class FinishedEpisode(Protocol):
    """What is read of a :class:`callwright.episodes.TokenEpisode` when it is over; agents' episodes have the same."""

    @property
    def conditions(self) -> Conditions:
        """What it was made under."""

    @property
    def attempt(self) -> Attempt:
        """What every reward scores."""

    @property
    def response_ids(self) -> Sequence[int]:
        """``[L]``: everything after the prompt."""

    @property
    def mask(self) -> Sequence[int]:
        """``[L]``: 1 for what was sampled, 0 for what the environment said."""

    @property
    def logprobs(self) -> Sequence[float]:
        """``[L]`` in nats, 0.0 for the environment's; empty if engines gave none."""

    @property
    def ranges(self) -> Sequence[tuple[int, int]]:
        """Where each completion stands in the response, as half-open ranges."""

    @property
    def stop(self) -> str | None:
        """Why it is over."""

    @property
    def observations_cut(self) -> int:
        """How many observations were cut."""

    @property
    def retried(self) -> int:
        """How often it was begun again after a failure of the machinery."""

    @property
    def masked(self) -> str | None:
        """Why this sample must not become a number; ``None`` if nothing failed but the model."""
