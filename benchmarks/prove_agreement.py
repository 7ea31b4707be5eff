"""Compare ``prove`` and its ablations with a literal transcription of the paper's equations on generated episodes.

    python benchmarks/prove_agreement.py --episodes 100000 [--seed 0]

The transcription and the generator are ``tests/plugins/prove_rewards/prove_oracle.py``, which imports nothing of the
implementation. Each episode is written in the json form, parsed, executed turn by turn in one session and scored; every
term and the totals of all seven recipes must agree to 1e-9. The exit status is 1 if one does not.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import callwright as cw

ORACLE = Path(__file__).parents[1] / "tests" / "plugins" / "prove_rewards" / "prove_oracle.py"


def load_oracle() -> Any:
    spec = importlib.util.spec_from_file_location("prove_oracle", ORACLE)
    if spec is None or spec.loader is None or not ORACLE.is_file():
        raise SystemExit(f"error: {ORACLE} is not here; this program runs in a checkout")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class World:
    """The oracle's world as an environment, with code of its own for the doors."""

    name = "doors"
    pure = True

    def __init__(self, oracle: Any) -> None:
        self.tools = {
            name: cw.ToolSpec(
                name,
                parameters={
                    "type": "object",
                    "properties": {key: {"type": kind} for key, (kind, _) in parameters.items()},
                    "required": [key for key, (_, required) in parameters.items() if required],
                },
            )
            for name, parameters in oracle.TOOLS.items()
        }

    def open(self, scenario: str = "", seed: int = 0) -> Doors:
        return Doors()


class Doors:
    def __init__(self) -> None:
        self.opened: tuple[str, ...] = ()

    def call(self, tool: str, arguments: dict[str, Any]) -> cw.Outcome:
        if any(value == "broken" for value in arguments.values()):
            return cw.Outcome("execution_error", None, "broken", "it is broken")
        door = arguments.get("door")
        if tool in ("open_door", "close_door"):
            if type(door) is not str or (door in self.opened) == (tool == "open_door"):
                return cw.Outcome("execution_error", None, "door", "the door is not in the right position")
            others = tuple(other for other in self.opened if other != door)
            self.opened = (*others, door) if tool == "open_door" else others
        return cw.Outcome("ok", {"done": True})

    def digest(self) -> str:
        return ",".join(sorted(self.opened))

    def close(self) -> None:
        pass


RECIPES = {
    "prove": "",
    "prove-no-validity": "validity",
    "prove-no-coverage": "coverage",
    "prove-no-efficiency": "efficiency",
    "prove-no-name": "name",
    "prove-no-argument": "argument",
    "prove-flat-budget": "",
}


def compare(episodes: int, seed: int = 0) -> tuple[Counter[str], list[str]]:
    """Counts of what the episodes held, and a sentence for each disagreement."""
    oracle = load_oracle()
    rng = random.Random(seed)
    world, parser = World(oracle), cw.parser("json")
    recipes = {name: cw.reward(name) for name in RECIPES}
    seen: Counter[str] = Counter()
    wrong: list[str] = []
    for number in range(episodes):
        truth, turns = oracle.an_episode(rng)
        task = cw.Task(
            id=str(number), query="", tools=world.tools, answer=cw.Answer(), environment=world, facts={"steps": truth}
        )
        texts = [
            parser.render(
                cw.Program(tuple(cw.Call(i, call["name"], call["arguments"]) for i, call in enumerate(turn)), "all")
            )
            for turn in turns
        ]
        attempt = cw.Attempt(task, texts, parser)
        values = oracle.parts(truth, turns)
        rewards = {name: recipe.score_attempt(attempt) for name, recipe in recipes.items()}
        ours = {name: weighted.score.value for name, weighted in rewards["prove"].scores.items()}
        for key, value in values.items():
            if abs(ours[key] - float(value)) > 1e-9:
                wrong.append(f"episode {number}: {key} is {ours[key]}, by the equations {float(value)}")
        for name, without in RECIPES.items():
            flat = name == "prove-flat-budget"
            expected = float(oracle.total(oracle.parts(truth, turns, flat=True) if flat else values, without))
            total = rewards[name].total
            if total is None or abs(total - expected) > 1e-9:
                wrong.append(f"episode {number}: {name} is {total}, by the equations {expected}")
        _count(seen, truth, turns, values)
    return seen, wrong


def _count(seen: Counter[str], truth: list[Any], turns: list[list[Any]], values: dict[str, Any]) -> None:
    made = [str(call) for turn in turns for call in turn]
    due = [str(call) for step in truth for call in step["calls"]]
    seen["nothing due"] += not truth
    seen["several turns"] += len(turns) > 1
    seen["parallel calls due in one step"] += any(len(step["calls"]) > 1 for step in truth)
    seen["several calls in one turn"] += any(len(turn) > 1 for turn in turns)
    seen["a call repeated"] += any(made.count(call) > due.count(call) > 0 for call in made)
    seen["a due call missing"] += any(due.count(call) > made.count(call) for call in due)
    seen["an extra call"] += any(call not in due for call in made)
    seen["over the budget"] += values.get("efficiency", 0) < 0
    seen["partly covered"] += 0 < values.get("coverage", 0) < 1
    seen["partly valid"] += 0 < values.get("validity", 0) < 1


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--episodes", type=int, default=100_000)
    arguments.add_argument("--seed", type=int, default=0)
    options = arguments.parse_args()
    start = time.process_time()
    seen, wrong = compare(options.episodes, options.seed)
    for sentence in wrong[:10]:
        print(sentence)
    print(f"{options.episodes:,} episodes under {len(RECIPES)} recipes: {len(wrong):,} disagreements")
    for what, count in seen.items():
        print(f"  {what:32} {count:>9,}")
    print(f"{time.process_time() - start:.0f} s of CPU")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
