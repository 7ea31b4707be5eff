"""The options of the environment and the corpus ``awm``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from callwright.options import OptionTable
from callwright.registration import Reach


class WorldOptions(OptionTable):
    """Which world of which folder. Bad ones raise :class:`callwright.UsageError`."""

    data: str | Path = Field(description="The folder with gen_envs.jsonl, gen_db.jsonl and gen_sample.jsonl.")
    world: str = Field(min_length=1, description="The scenario's name in these files, such as e_commerce_33.")


class TaskOptions(OptionTable):
    """Which tasks of which folder. Bad ones raise :class:`callwright.UsageError`."""

    data: str | Path = Field(
        description="The folder with gen_tasks.jsonl, gen_verifier.pure_code.jsonl and the files of the worlds."
    )
    worlds: tuple[str, ...] = Field(default=(), description="Only tasks of these scenarios; of all if empty.")
    turns: int = Field(default=30, ge=1, description="The most turns of an attempt, where nothing else says.")


def reaches(options: Mapping[str, Any]) -> Iterator[Reach]:
    """What the environment would run: the code of the world."""
    if options.get("data"):
        what = f"runs the code of the world {options.get('world', '')!r} in {options['data']}"
        yield Reach("code", what, ("data", "world"))


def reached_by_tasks(options: Mapping[str, Any]) -> Iterator[Reach]:
    """What the corpus would run: the code of its worlds, and of their verifiers."""
    if options.get("data"):
        yield Reach("code", f"runs the code of worlds and verifiers in {options['data']}", ("data",))
