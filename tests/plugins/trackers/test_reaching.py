"""What a recipe of somebody else would send where, and that a run is the same with and without trackers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import callwright as cw
import callwright_plugins.trackers
from callwright.commands.trust import TRAINED, wishes
from callwright.plugins import load_plugins
from callwright.recipe_file import parse_recipe


def asked(tracker: str, *overrides: str) -> list[str]:
    registry = load_plugins(entry_points=False, extra={"trackers": callwright_plugins.trackers})
    loaded = parse_recipe(f'corpus = "c"\n{tracker}\n', "r.toml", overrides)
    return [str(wish) for wish in wishes(loaded, registry, TRAINED)]


@pytest.mark.parametrize(
    "tracker",
    [
        'tracker = ["wandb", "mlflow", "tensorboard", "otel"]',
        'tracker = { name = "wandb", entity = "evil", offline = true }',
        'tracker = { name = "mlflow", uri = "sqlite:///mine.db" }',
        'tracker = { name = "otel", endpoint = "http://evil", offline = true }',
        'tracker = { name = "no such tracker", endpoint = "http://evil" }',
    ],
)
def test_what_goes_to_the_users_own_places_is_not_asked_about(tracker: str) -> None:
    assert asked(tracker) == []


@pytest.mark.parametrize(
    ("tracker", "wish"),
    [
        ('tracker = { name = "wandb", entity = "evil" }', "sends metrics and rollouts to the W&B account 'evil'"),
        ('tracker = { name = "mlflow", uri = "https://evil" }', "https://evil, with the credentials MLFLOW_TRACKING_*"),
        ('tracker = { name = "otel", endpoint = "http://evil" }', "http://evil, with the headers OTEL_EXPORTER"),
    ],
)
def test_what_goes_to_others_is_shown(tracker: str, wish: str) -> None:
    (found,) = asked(tracker)
    assert found.startswith("r.toml:2: tracker '")
    assert wish in found


def test_each_of_a_list_is_shown_with_its_line() -> None:
    text = '[[tracker]]\nname = "tensorboard"\n\n[[tracker]]\nname = "otel"\nendpoint = "http://evil"'
    (found,) = asked(text)
    assert found.startswith("r.toml:7: tracker 'otel' sends")


def test_what_the_user_sets_is_the_users() -> None:
    assert asked('tracker = "otel"', "tracker.endpoint=http://mine") == []
    assert asked('tracker = { name = "otel", endpoint = "http://evil" }', "tracker=tensorboard") == []


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("wandb", {"project": 3}, "'project' is a text, not 3"),
        ("wandb", {"tags": "a"}, "'tags' is a list of texts, not 'a'"),
        ("otel", {"offline": "yes"}, "'offline' is true or false, not 'yes'"),
        ("mlflow", {"experiment": ""}, "'experiment' is a text, not ''"),
    ],
)
def test_options_of_another_type_are_refused(name: str, options: dict[str, Any], message: str) -> None:
    pytest.importorskip(
        {"otel": "opentelemetry.exporter.otlp.proto.http"}.get(name, name),
        reason=f"needs the package: pip install 'callwright[{name}]'",
    )
    registry = load_plugins(entry_points=False, extra={"trackers": callwright_plugins.trackers})
    with pytest.raises(cw.UsageError, match=message):
        registry.create("tracker", name, **options)


def test_a_run_is_the_same_with_and_without_a_tracker(train: Any) -> None:
    pytest.importorskip("tensorboard", reason="needs TensorBoard: pip install 'callwright[tensorboard]'")
    tracked, plain = train(["tensorboard"], "tracked"), train([], "plain")

    def written(folder: Path) -> dict[str, bytes]:
        names = ("metrics.jsonl", "rollouts.jsonl", "evaluation.json", "checkpoints/final/model.safetensors")
        return {name: (folder / name).read_bytes() for name in names}

    assert written(tracked.path) == written(plain.path)
    assert not (plain.path / "trackers").exists()
