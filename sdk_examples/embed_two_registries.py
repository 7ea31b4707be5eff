"""Two sets of plugins in one process, neither knowing of the other. Run: python sdk_examples/embed_two_registries.py"""

from __future__ import annotations

from collections.abc import Iterable

import callwright as cw
from callwright.errors import UnknownName
from callwright.pipeline import build_pipeline
from callwright.plugins import load_plugins
from callwright.recipe_file import parse_recipe


class HouseStyle:
    """A plugin as an object: an application that embeds Callwright needs no entry point."""

    def __init__(self) -> None:
        self.seen: list[float | None] = []

    @cw.hookimpl
    def callwright_reward_recipes(self) -> Iterable[cw.Lazy]:
        """Registers TIER under other weights."""
        yield cw.Lazy("house", house_recipe, summary="the answer, and little else")

    @cw.hookimpl
    def callwright_attempt_scored(self, attempt: cw.Attempt, reward: cw.Reward) -> None:
        """Hears of every reward of pipelines with this registry, and of no other."""
        self.seen.append(reward.total)


def house_recipe(registry: cw.Registry) -> cw.RewardRecipe:
    """Made of components that other plugins registered; the registry that asks is handed in."""
    return cw.RewardRecipe(
        "house",
        (
            cw.Term(registry.create("reward component", "format")),
            cw.Term(registry.create("reward component", "answer"), weight=9, requires=("format",)),
        ),
    )


style = HouseStyle()
ours = load_plugins(extra={"house-style": style})
theirs = load_plugins(blocked=["report"])  # a blocked plugin is not even imported

# A pipeline from a text instead of a file. It fires the events of its registry; `recipe.score(…)` alone fires none.
pipeline = build_pipeline(parse_recipe('corpus = "toolworld-mini-v1"\nreward = "house"'), ours, with_algorithm=False)

if __name__ == "__main__":
    task = pipeline.tasks("evaluation")[16]
    assert task.program is not None
    for text in ("no calls here", pipeline.parser.render(task.program)):
        print("house:", pipeline.score(pipeline.attempt(task, text)).explain())
    print("heard of:", style.seen)
    try:
        cw.reward("house", registry=theirs)
    except UnknownName as error:
        print("the other registry:", error)
