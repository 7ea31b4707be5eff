"""The corpus ``zebra-v1``: tasks that are made on demand, over an environment of two functions.

A task hangs on its split and its number alone, so that every process makes the same ones. The answer is computed by
the tools themselves, and cannot be wrong about the world.
"""

from __future__ import annotations

import random
from typing import Any

import callwright as cw
from callwright.pickling import made_by
from callwright.walk import CorpusOnDemand, Split, execute
from callwright.walk.corpora.on_demand import check_seed, check_sizes


@cw.tool(read_only=True)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@cw.tool(read_only=True)
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


ARITHMETIC = cw.environment("zebra-arithmetic", tools=[add, multiply])


class Zebra(CorpusOnDemand):
    """Sums, products, and products of sums; training and evaluation draw from numbers that differ."""

    def __init__(self, train_size: int = 1000, seed: int = 0) -> None:
        check_sizes("zebra-v1", train_size=train_size)
        check_seed("zebra-v1", seed)
        self.options = train_size, seed
        fixed = {"seed": seed}
        splits = {"train": Split(train_size, fixed=fixed), "evaluation": Split(60, fixed=fixed)}
        super().__init__("zebra-v1", ARITHMETIC, splits)

    def __reduce__(self) -> Any:
        return made_by(self, Zebra, *self.options)

    def make(self, split: str, number: int) -> cw.Task:
        """The task with this number."""
        rng = random.Random(f"zebra-v1/{self.options[1]}/{split}/{number}")
        numbers = range(2, 50) if split == "train" else range(50, 100)
        a, b, c = (rng.choice(numbers) for _ in range(3))
        query, calls = [
            (f"What is {a} + {b}?", [cw.Call(0, "add", {"a": a, "b": b})]),
            (f"What is {a} times {b}?", [cw.Call(0, "multiply", {"a": a, "b": b})]),
            (
                f"What is ({a} + {b}) times {c}?",
                [
                    cw.Call(0, "add", {"a": a, "b": b}),
                    cw.Call(1, "multiply", {"a": cw.Reference(0), "b": c}),
                ],
            ),
        ][number % 3]
        program = cw.Program(tuple(calls))
        answer = execute(program, ARITHMETIC, ARITHMETIC.tools).returned
        return cw.Task(
            id=f"{split}-{number}",
            query=query,
            tools=ARITHMETIC.tools,
            answer=cw.Answer(answer),
            environment=ARITHMETIC,
            split=split,
            depth=program.depth,
            chain=program.chain,
            structure=program.structure,
            program=program,
        )
