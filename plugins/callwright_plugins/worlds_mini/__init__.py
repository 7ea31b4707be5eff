"""The corpus ``worlds-mini-v1``: fifty conversations in living worlds, each with a user, a goal and a reference.

They are oracles for whatever is built on worlds: users, rewards, synthesis. Each file of ``data`` holds the tasks of
one environment, written by hand.
"""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

NAME = "worlds-mini-v1"
_HERE = "callwright_plugins.worlds_mini"


@hookimpl
def callwright_corpora() -> Iterable[Lazy]:
    """Register the corpus."""
    yield Lazy(
        NAME,
        f"{_HERE}.corpus:WorldsMini",
        summary="Fifty conversations in twenty environments, with users, goals, references and mutants",
        takes=f"{_HERE}.options:WorldsMiniOptions",
    )


@hookimpl
def callwright_reward_recipes() -> Iterable[Lazy]:
    """Register the recipe."""
    yield Lazy(
        "worlds",
        f"{_HERE}.recipes:worlds",
        "format 1, parse 3, execution 1, and 5 for the goal, over 10",
        takes=f"{_HERE}.options:WorldsOptions",
    )
