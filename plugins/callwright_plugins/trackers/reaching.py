"""Where trackers would send a run because a recipe says so. Without the packages of any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from callwright.registration import Reach


def wandb(options: Mapping[str, Any]) -> Iterable[Reach]:
    """Somebody's account that the recipe names; without one, runs go to the account of whoever trains."""
    if "entity" in options and not options.get("offline"):
        yield Reach("data", f"sends metrics and rollouts to the W&B account {options['entity']!r}", ("entity",))


def mlflow(options: Mapping[str, Any]) -> Iterable[Reach]:
    """The server that the recipe names, which is also sent the credentials of ``MLFLOW_TRACKING_*``."""
    uri = str(options.get("uri") or "")
    if urlsplit(uri).scheme not in ("", "file", "sqlite"):
        yield Reach("data", f"sends metrics and rollouts to {uri}, with the credentials MLFLOW_TRACKING_*", ("uri",))


def otel(options: Mapping[str, Any]) -> Iterable[Reach]:
    """The collector that the recipe names, which is also sent the headers of the environment."""
    if options.get("endpoint") and not options.get("offline"):
        what = f"sends metrics and rollouts to {options['endpoint']}, with the headers OTEL_EXPORTER_OTLP_*HEADERS"
        yield Reach("data", what, ("endpoint",))
