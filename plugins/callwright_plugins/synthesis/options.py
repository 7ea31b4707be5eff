"""The options of the synthesizer ``grounded``: what is explored, and the knobs of what conversations are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import Field

from callwright.options import OptionTable

_OF_ALL: Final = "Of all examples, the share"
_OF_TALKS: Final = "Of the conversations, the share"


class GroundedOptions(OptionTable):
    """Options of ``synthesizer = "grounded"``. Shares are from 0 to 1, counts from 1."""

    cache: str | None = Field(default=None, description="A folder for what exploring came to.")
    gates: Any = Field(default=True, description="Every conversation has to pass the gates.")
    scenario: str = Field(default="", description="The scenario that is explored; the environment's first if left out.")
    seeds: Any = Field(default=(0, 1), description="The worlds that are explored, two or more.")
    calls: Any = Field(default=None, description="Calls of exploring in each of them.")
    allow_destructive: Any = Field(default=False, description="Call a server's tools that destroy something, too.")
    split: Mapping[str, Any] | None = Field(
        default=None, description="What to hold out; all tasks are to learn from if left out."
    )
    words: str = Field(default="", description='"scripted": the grammar has the words, though there is a teacher.')
    back_translated: Any = Field(
        default=False,
        description="The teacher reads what users say without the plan; what it reads otherwise is rejected.",
    )
    spares: Any = Field(default=0.05, description="Planned beside, as a share, for those that do not pass the gates.")
    missing: float = Field(default=0.2, description="Of the turns, the share that leaves out something needed.")
    minimal: float = Field(default=0.2, description="Of the turns, the share that says as little as is enough.")
    distractors: float = Field(default=0.4, description=f"{_OF_ALL} that is offered unrelated tools.")
    least_distractors: int = Field(default=3, description="So many of these at least.")
    most_distractors: int = Field(default=8, description="And at most.")
    confusable: float = Field(default=0.0, description="Of these examples, the share whose tools are alike.")
    stripped: float = Field(default=0.3, description=f"{_OF_ALL} whose schemas lose their enumerated values.")
    irrelevance: float = Field(default=0.05, description=f"{_OF_TALKS} that ends in what no tool can do.")
    clarifications: float = Field(
        default=1500 / 13_517, description=f"{_OF_ALL} that asks for a tool which is missing at first."
    )
    abstentions: float = Field(default=1122 / 13_517, description=f"{_OF_ALL} that asks for one which never comes.")
    never: float = Field(default=0.5, description="Of abstentions, the share that hides a tool of the environment.")
    several_servers: float = Field(default=0.1, description=f"{_OF_TALKS} that needs two environments.")
    failing: float = Field(default=0.08, description=f"{_OF_TALKS} that ends in what fails by a rule.")
    recoveries: float = Field(default=0.12, description=f"{_OF_TALKS} that makes up for a failure.")
    chains: float = Field(default=0.5, description="Of requests, the share of two calls or more that need one another.")
    parallel: float = Field(default=0.12, description="Of requests, the share of calls that do not.")
    two_goals: float = Field(default=0.12, description="Of requests, the share with two goals.")
    longest: int = Field(default=5, description="Calls of a chain at most.")
    least_turns: int = Field(default=2, description="Turns of the user at least.")
    most_turns: int = Field(default=3, description="And at most.")
    decay: float = Field(default=0.5, description="The chance of another turn.")
    assistant_turns: int = Field(default=10, description="Turns of the assistant that a reference takes at most.")
    user_turns: int = Field(default=5, description="Turns of the user at most, answers to questions included.")
    refreshed: int = Field(default=25, description="After so many conversations another world is sampled.")
    most_of_one: float = Field(default=1.0, description="The share of all calls above which a tool is avoided.")
    others: Sequence[str] = Field(
        default=(), description="Environments to take foreign tools from; those of the same plugin if left out."
    )
