"""The options of the environment ``openenv``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from callwright.errors import UsageError
from callwright.options import OptionTable
from callwright.registration import Reach


class OpenEnvOptions(OptionTable):
    """How an OpenEnv environment is reached, reset and read. Bad ones raise :class:`callwright.UsageError`."""

    url: str | None = Field(default=None, description="The base URL of a running server.")
    environment: str | None = Field(default=None, description="Instead: its class, as 'package.module:Class'.")
    action: str | None = Field(default=None, description="With 'environment': the class of its actions.")
    headers: Mapping[str, str] = Field(default_factory=dict, description="Of requests to a URL.")
    reset: Mapping[str, Any] = Field(default_factory=dict, description="What every reset is given beside the seed.")
    scenarios: Mapping[str, Mapping[str, Any]] = Field(
        default_factory=dict, description="By the name of a scenario, what its reset is given."
    )
    seeded: bool = Field(default=True, description="Whether a reset is given the seed.")
    hide: tuple[str, ...] = Field(default=(), description="Tools that are not offered.")
    tool: str = Field(default="step", description="What the tool is called where the action is one object.")
    digest: Literal["auto", "state", "history"] = Field(
        default="auto", description="What a session's digest is made of."
    )
    digest_ignore: tuple[str, ...] = Field(default=(), description="Members of the state that do not count.")
    disposable: bool = Field(default=True, description="Whether what a session does is gone with it.")
    time_limit: float = Field(default=60.0, gt=0, description="Seconds for an answer.")
    start_limit: float = Field(default=60.0, gt=0, description="Seconds for a connection, and for a reset.")
    wait_limit: float = Field(default=120.0, ge=0, description="Seconds to wait for a free place at a server.")
    reply_limit: int = Field(default=16_000_000, ge=1, description="The most bytes of an answer.")
    name: str = Field(default="openenv", description="The environment's name.")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.url is None) == (self.environment is None):
            raise UsageError(
                "the environment 'openenv' needs either url=…, where a server runs, or "
                "environment='package.module:Class', a class that runs here"
            )
        if self.action is not None and self.environment is None:
            raise UsageError("the option action names a class for environment=…; a server at a URL tells its own")
        return self


class OwnRewardOptions(OptionTable):
    """Options of the reward ``openenv``: its range, and what of the episode's rewards it is."""

    low: float = Field(default=0.0, description="The least that the environment gives for an episode.")
    high: float = Field(default=1.0, description="The most.")
    of: Literal["sum", "last", "best"] = Field(default="sum", description="Of the rewards of an episode's steps.")


def reaches(options: Mapping[str, Any]) -> Iterator[Reach]:
    """What the environment would run: the code of a class that is named."""
    named = options.get("environment")
    if named:
        yield Reach("code", f"imports and runs {named}", ("environment", "action"))
