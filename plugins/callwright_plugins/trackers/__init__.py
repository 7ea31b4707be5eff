"""Trackers: W&B, MLflow, TensorBoard and OpenTelemetry, each of which shows a run elsewhere while it grows.

A module each, over the public interface of its package. What they show is read from the run folder by the core; none of
them sees the training.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE: Final = "callwright_plugins.trackers"


@hookimpl
def callwright_trackers() -> Iterable[Lazy]:
    """The four trackers."""
    yield Lazy(
        "wandb",
        f"{_HERE}.wandb_runs:WandB",
        "Weights & Biases: curves, and a table of rollouts at each step",
        extra="wandb",
        reaches=f"{_HERE}.reaching:wandb",
    )
    yield Lazy(
        "mlflow",
        f"{_HERE}.mlflow_runs:MLflow",
        "MLflow: parameters, curves, and a table of rollouts for each step",
        extra="mlflow",
        reaches=f"{_HERE}.reaching:mlflow",
    )
    yield Lazy(
        "tensorboard",
        f"{_HERE}.tensorboard_events:TensorBoard",
        "TensorBoard: curves, and a table of rollouts at each step, in the run folder",
        extra="tensorboard",
    )
    yield Lazy(
        "otel",
        f"{_HERE}.otel_signals:OpenTelemetry",
        "OpenTelemetry: a gauge for each figure, and a span for each step and each rollout",
        extra="otel",
        reaches=f"{_HERE}.reaching:otel",
    )
