"""The sampler ``zebra``: calls the first offered tool that needs no argument, else none. A model would stand here.

A sampler gets prompts and returns completions. What it draws for a prompt hangs on the seed and the task, never on what
it is asked together with.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import callwright as cw
from callwright.walk.completion import Completion
from callwright.walk.sampling import SamplingRequest


class Zebra:
    """``ir`` is the form that it writes; ``eager`` the probability with which it calls anything."""

    name = "zebra"

    def __init__(self, registry: cw.Registry, ir: str = "json", eager: float = 0.9) -> None:
        if not 0 <= eager <= 1:
            raise cw.UsageError(f"the option 'eager' of the sampler 'zebra' is a probability, not {eager!r}")
        self.parser: cw.Parser = registry.create("parser", ir)
        self.eager = eager

    def sample(
        self, requests: Sequence[SamplingRequest], *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[list[Completion]]:
        """``[B][n]`` completions, in the order of the requests."""
        return [
            [self._completion(one, random.Random(f"{seed}/{one.task.id}/{draw}")) for draw in range(n)]
            for one in requests
        ]

    def _completion(self, request: SamplingRequest, rng: random.Random) -> Completion:
        fitting = [name for name, spec in request.offered.items() if not spec.parameters.get("required")]
        calls = (cw.Call(0, fitting[0], {}),) if fitting and not request.turns and rng.random() < self.eager else ()
        return Completion(self.parser.render(cw.Program(calls, "one", "The first one will do.")))
