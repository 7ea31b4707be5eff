"""A user ``model`` whose sampler is a script: no server is asked."""

from __future__ import annotations

from collections.abc import Sequence

from callwright.plugins import default_registry
from callwright.walk.completion import Completion
from callwright.walk.sampling import SamplingRequest
from callwright_plugins.users.model import STOP, ModelUser


class Impatient:
    """Repeats what it was told, and stops after its fifth message."""

    name = "impatient"

    def sample(
        self, requests: Sequence[SamplingRequest], *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[list[Completion]]:
        """``[B][n]`` completions that hang on the messages and the seed."""
        return [[Completion(_answer(request, seed + copy)) for copy in range(n)] for request in requests]


def _answer(request: SamplingRequest, seed: int) -> str:
    spoken = sum(message.role == "assistant" for message in request.messages)
    return STOP if spoken > 5 else f"{seed}: you said {len(request.messages[-1].text)} letters. Go on, please."


def stand_in() -> ModelUser:
    """The user with that sampler."""
    return ModelUser(default_registry(), Impatient())
