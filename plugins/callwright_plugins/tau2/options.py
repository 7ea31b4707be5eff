"""The options of tau2-bench's benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from callwright.options import OptionTable


class _Played(OptionTable):
    user: str | None = Field(
        default=None, description="The sampler that plays the user; the release's own if left out."
    )
    user_model: str | None = Field(default=None, description="Its model.")
    user_url: str | None = Field(default=None, description="The address of its server.")
    user_temperature: float = Field(default=0.0, ge=0, description="Its temperature.")
    user_options: Mapping[str, Any] | None = Field(default=None, description="Further options of that sampler.")
    judge: Any = Field(
        default=None, description="What judges assertions in words: the name of a teacher, or an object."
    )
    judge_model: str | None = Field(default=None, description="The model of that teacher.")
    judge_url: str | None = Field(default=None, description="The address of its server.")


class _Release(OptionTable):
    version: str | None = Field(default=None, description="The release; the newest known if left out.")


class _Source(_Release):
    data: str | Path | None = Field(default=None, description="The folder of the release's data.")
    package: str | Path | None = Field(default=None, description="The folder of its source.")
    python: str | Path | None = Field(default=None, description="A Python that can import it, where this one cannot.")
    split: str = Field(default="base", description="The split of the release.")


class Tau2Options(_Played, _Source):
    """Options of ``benchmark = "tau2-airline"``, ``"tau2-retail"`` and ``"tau2-telecom"``."""


class Tau2MockOptions(_Played, _Release):
    """Options of ``benchmark = "tau2-mock"``."""
