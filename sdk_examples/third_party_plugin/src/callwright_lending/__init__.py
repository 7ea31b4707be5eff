"""A plugin: the names of its components, and where they are. Imported by every program that loads plugins, so light."""

from __future__ import annotations

from collections.abc import Iterable

from callwright import Lazy, hookimpl


@hookimpl
def callwright_environments() -> Iterable[Lazy]:
    """Register the library, and a world of somebody else that is extended."""
    yield Lazy("lending-v1", "callwright_lending.library:lending", summary="a lending library with members and loans")
    yield Lazy(
        "banking-with-pledges",
        "callwright_lending.pledges:banking_with_pledges",
        summary="the environment banking, and pledges in every scenario of it",
    )


@hookimpl
def callwright_toolsets() -> Iterable[Lazy]:
    """Register tools for an environment that is not ours."""
    yield Lazy("banking-goals", "callwright_lending.goals:GOALS", summary="savings goals for the environment banking")


@hookimpl
def callwright_corpora() -> Iterable[Lazy]:
    """Register its tasks."""
    yield Lazy("lending-mini-v1", "callwright_lending.tasks:LendingCorpus", summary="a few tasks in the library")


@hookimpl
def callwright_reward_components() -> Iterable[Lazy]:
    """Register the property that matters here."""
    yield Lazy("look-first", "callwright_lending.rewards:LookFirst", summary="nothing is changed before a look at it")


@hookimpl
def callwright_reward_recipes() -> Iterable[Lazy]:
    """Register TIER with it."""
    yield Lazy("tier-look-first", "callwright_lending.rewards:tier_look_first", summary="tier, and look-first")


@hookimpl
def callwright_commands() -> Iterable[Lazy]:
    """Register a command; its name has two words, so it stands in a group."""
    yield Lazy("lending hasty", "callwright_lending.command:hasty", summary="completions that change before they look")
