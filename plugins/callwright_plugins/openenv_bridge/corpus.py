"""Episodes of an OpenEnv environment as tasks: one for each seed, or for each scenario and seed."""

from __future__ import annotations

import inspect
from typing import Any, Final

from pydantic import Field

from callwright.options import read_options
from callwright.walk.corpora.on_demand import CorpusOnDemand, Split
from callwright.walk.limits import TurnLimits
from callwright.walk.tasks import Answer, Task
from callwright_plugins.openenv_bridge.environment import open_env
from callwright_plugins.openenv_bridge.options import OpenEnvOptions

NAME: Final = "openenv"
_QUERY: Final = "Do what the environment asks of you, by calling its tools."


class EpisodeOptions(OpenEnvOptions):
    """The options of the environment, and how many episodes there are."""

    query: str = Field(default=_QUERY, min_length=1, description="What every task asks for.")
    train_size: int = Field(default=1000, ge=1, description="How many episodes there are to train on.")
    evaluation_size: int = Field(default=50, ge=1, description="How many episodes there are to evaluate on.")
    first_seed: int = Field(default=0, ge=0, description="The seed of the first training episode; all others follow.")
    turns: int = Field(default=16, ge=1, description="The most turns of an episode, where nothing else says.")


class Episodes(CorpusOnDemand):
    """The corpus ``openenv``: tasks without an answer of their own, for the reward ``openenv``.

    What the environment tells at a reset stands in the prompt, under ``# World``. With ``scenarios`` the tasks take
    turns through them; the seeds of evaluation follow those of training, so that the splits share no episode.
    """

    def __init__(self, url: str | None = None, **options: Any) -> None:
        given = {"url": url, **options}
        self._episodes = read_options(EpisodeOptions, given, f"the corpus {NAME!r}")
        own = set(EpisodeOptions.model_fields) - set(OpenEnvOptions.model_fields)
        environment = open_env(**{name: value for name, value in given.items() if name not in own})
        fixed = {"first_seed": self._episodes.first_seed, "query": self._episodes.query}
        splits = {name: Split(getattr(self._episodes, f"{name}_size"), fixed=fixed) for name in ("train", "evaluation")}
        super().__init__(NAME, environment, splits)
        self._given = given

    def __reduce__(self) -> Any:
        return _made, (self._given,)

    @property
    def limits(self) -> TurnLimits:
        """As many turns as the option says."""
        return TurnLimits(assistant_turns=self._episodes.turns)

    def make(self, split: str, number: int) -> Task:
        """An episode."""
        place = number + (self._episodes.train_size if split == "evaluation" else 0)
        scenarios = list(self._episodes.scenarios) or [""]
        return Task(
            f"{split}-{number}",
            self._episodes.query,
            self.environment.tools,
            Answer(),
            self.environment,
            scenario=scenarios[place % len(scenarios)],
            seed=self._episodes.first_seed + place // len(scenarios),
            split=split,
        )


def _made(given: dict[str, Any]) -> Episodes:
    return Episodes(**given)


Episodes.__signature__ = inspect.signature(EpisodeOptions)  # type: ignore[attr-defined]
