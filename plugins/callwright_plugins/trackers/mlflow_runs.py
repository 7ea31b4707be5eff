"""MLflow: a run each, with the recipe as parameters, figures over steps, and a table of rollouts for each step."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from attrs import field, frozen
from mlflow import MlflowClient
from mlflow.entities import Metric, Param

from callwright.language.shortening import shortened
from callwright.training import Run, Step
from callwright.training.tracking.tracker import flat, recipe_of
from callwright_plugins.trackers.options import maybe_text, text

#: What MLflow takes in one request, and in the value of a parameter.
_METRICS, _PARAMETERS, _LONGEST = 1000, 100, 6000
_NO_NAME: Final = re.compile(r"[^\w\-./ ]")


@frozen
class MLflow:
    """Shows runs in MLflow. ``uri``: a server, or a database such as ``sqlite:///mlflow.db``.

    Left out, it is what ``MLFLOW_TRACKING_URI`` says, or MLflow's own choice. Credentials come from its variables.
    """

    experiment: str = field(default="callwright", validator=text)
    uri: str | None = field(default=None, validator=maybe_text)

    @property
    def name(self) -> str:
        """The registered name."""
        return "mlflow"

    @property
    def network_checks(self) -> tuple[str, ...]:
        """Whatever is no database of this machine."""
        return () if (self.uri or "").startswith("sqlite:") else ("*",)

    def stand_in(self) -> None:
        """Not without somewhere to put a database."""

    def follow(self, run: Run, known: str | None) -> MLflowRun:
        """A new run of the experiment, which is made where there is none; or the run of this id."""
        client = MlflowClient(tracking_uri=self.uri)
        if known is not None:
            client.update_run(known, status="RUNNING")
            return MLflowRun(client, known)
        experiment = client.get_experiment_by_name(self.experiment)
        place = experiment.experiment_id if experiment is not None else client.create_experiment(self.experiment)
        made = MLflowRun(client, client.create_run(place, run_name=run.path.name).info.run_id)
        stated = [
            Param(_NO_NAME.sub("_", name), shortened(str(value), _LONGEST))
            for name, value in flat(recipe_of(run)).items()
        ]
        for some in _batched(stated, _PARAMETERS):
            client.log_batch(made.id, params=some)
        return made


@frozen
class MLflowRun:
    """A run in MLflow."""

    client: MlflowClient
    id: str

    def send(self, step: Step) -> None:
        """Its figures, and ``rollouts/step-NNNNNN.json`` among the artifacts."""
        now = round(time.time() * 1000)
        figures = [Metric(_NO_NAME.sub("_", name), value, now, step.number) for name, value in step.figures.items()]
        for some in _batched(figures, _METRICS):
            self.client.log_batch(self.id, metrics=some)
        if step.rollouts:
            columns = {name: [rollout[name] for rollout in step.rollouts] for name in step.rollouts[0]}
            self.client.log_table(self.id, columns, f"rollouts/step-{step.number:06d}.json")

    def close(self, completed: bool) -> None:
        """Say how it ended."""
        self.client.set_terminated(self.id, "FINISHED" if completed else "KILLED")


def _batched(things: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(things), size):
        yield things[start : start + size]
