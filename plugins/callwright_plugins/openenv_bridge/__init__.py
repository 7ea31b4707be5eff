"""OpenEnv in both directions: its environments are ours, and ours are served by its protocol.

callwright.environment("openenv", url="http://127.0.0.1:8000")
callwright openenv serve banking --port 8000
"""

from __future__ import annotations

from collections.abc import Iterator

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE = "callwright_plugins.openenv_bridge"


@hookimpl
def callwright_environments() -> Iterator[Lazy]:
    """The environment that is somebody's OpenEnv environment."""
    yield Lazy(
        "openenv",
        f"{_HERE}.environment:open_env",
        "any OpenEnv environment (url=…, or environment='package.module:Class')",
        extra="openenv",
        reaches=f"{_HERE}.options:reaches",
        takes=f"{_HERE}.options:OpenEnvOptions",
    )


@hookimpl
def callwright_corpora() -> Iterator[Lazy]:
    """Its episodes as tasks."""
    yield Lazy(
        "openenv",
        f"{_HERE}.corpus:Episodes",
        "episodes of an OpenEnv environment, by seed (url=…, train_size=…, scenarios=…)",
        extra="openenv",
        reaches=f"{_HERE}.options:reaches",
        takes=f"{_HERE}.corpus:EpisodeOptions",
    )


@hookimpl
def callwright_reward_components() -> Iterator[Lazy]:
    """What it gives for its steps."""
    yield Lazy(
        "openenv",
        f"{_HERE}.rewards:OwnReward",
        "the OpenEnv environment's own reward (low=…, high=…, of=…)",
        takes=f"{_HERE}.options:OwnRewardOptions",
    )


@hookimpl
def callwright_reward_recipes() -> Iterator[Lazy]:
    """That alone."""
    yield Lazy(
        "openenv",
        f"{_HERE}.rewards:own_reward",
        "the OpenEnv environment's own reward, on its own scale",
        takes=f"{_HERE}.options:OwnRewardOptions",
    )


@hookimpl
def callwright_commands() -> Iterator[Lazy]:
    """``callwright openenv serve``."""
    yield Lazy("openenv serve", f"{_HERE}.command:serve", "serve an environment by OpenEnv's protocol", extra="openenv")
