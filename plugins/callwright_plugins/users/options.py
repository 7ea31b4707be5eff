"""The options of the kinds of users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from callwright.options import OptionTable


class ModelUserOptions(OptionTable):
    """Options of ``user = "model"``."""

    sampler: Any = Field(description="The sampler that plays it: a name or, in Python, a sampler.")
    options: Mapping[str, Any] | None = Field(default=None, description="Options of that sampler.")
    goal: str = Field(default="", description="What it wants; the task's query if left out.")
    persona: str = Field(default="", description="Who it is.")
    knows: Mapping[str, Any] | None = Field(default=None, description="What it knows, by name.")
    entities: Sequence[str] = Field(default=("me",), description="What the world says that these know, it knows too.")
    stop: str | Sequence[str] = Field(
        default="###STOP###", description="What it writes when it is done; of several the first is for the end."
    )
    temperature: float = Field(default=0.7, ge=0, description="Of sampling; 0 is greedy.")


class ReplayedOptions(OptionTable):
    """Options of ``user = "replayed"``."""

    says: Any = Field(
        default=(), description="A line for each turn of the agent: a text, or { say, calls } with calls of its own."
    )
    stop: str | Sequence[str] = Field(default=(), description="A line with one of these signs is the last.")


class ScriptedOptions(OptionTable):
    """Options of ``user = "scripted"``."""

    knows: Any = Field(default=None, description="What it knows, by name; { knowledge, of } is looked up in the world.")
    opening: Any = Field(default=(), description="Names of what the query tells already.")
    asked: Any = Field(default=None, description="For a name, the words by which a question for it is recognised.")
    tells: Any = Field(default=None, description="For a name, the sentence that tells it.")
    then: Any = Field(default=(), description="Later requests, in order: texts, or { say, when, calls, knows, tells }.")
    satisfied: Any = Field(default=None, description="The goal at which it is done; when all is said if left out.")
    patience: Any = Field(default=3, description="How often it insists before it gives up.")
    confirms: Any = Field(default=None, description="The words of a request for confirmation, and what to say.")
    does: Any = Field(default=(), description="The words of a request to do something, and the calls that do it.")
    mistakes: Any = Field(default=0.0, description="The probability that a value is told wrong at first.")
    changes: Any = Field(default=(), description="Changes of mind: { p, say, knows, satisfied } each.")
    insists: Any = Field(default="That is not done yet.", description="What it says when something is not done.")
    thanks: Any = Field(default="Thank you, that is all.", description="What it says at the end.")
    gives_up: Any = Field(default="Never mind, I give up.", description="What it says when it gives up.")
