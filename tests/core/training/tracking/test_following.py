"""Trackers at work beside a run: threads, failures, ends and resumes."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from callwright.errors import RecipeError
from callwright.plugins import Lazy, Registry, load_plugins
from callwright.recipe_file import parse_recipe
from callwright.training import Run, Step
from callwright.training.tracking import following
from callwright.training.tracking.following import create_trackers, followed


class Recorder:
    """Keeps what it was sent, by the id of its runs. ``at`` is called before a step is taken."""

    def __init__(self, name: str = "recorder", at: Callable[[Step], object] = lambda step: None) -> None:
        self.name, self.at = name, at
        self.sent: dict[str, list[Step]] = {}
        self.closed: list[tuple[str, bool]] = []
        self.followed: list[str | None] = []

    def follow(self, run: Run, known: str | None) -> Any:
        self.followed.append(known)
        return RecordedRun(self, known or f"{self.name}-{len(self.sent) + 1}")


class RecordedRun:
    def __init__(self, recorder: Recorder, id: str) -> None:
        self.recorder, self.id = recorder, id

    def send(self, step: Step) -> None:
        self.recorder.at(step)
        self.recorder.sent.setdefault(self.id, []).append(step)

    def close(self, completed: bool) -> None:
        self.recorder.closed.append((self.id, completed))


@pytest.fixture
def registry() -> Registry:
    return load_plugins(entry_points=False)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.create(tmp_path / "run", recipe_text='name = "r"\n', manifest={})


def trained(run: Run, registry: Registry, *steps: int) -> None:
    for step in steps:
        row = {"step": step, "reward": step / 10}
        run.append("metrics.jsonl", [row])
        if registry.listens("callwright_training_step"):
            registry.hook.callwright_training_step(metrics=row)


def numbers(steps: list[Step]) -> list[int]:
    return [step.number for step in steps]


def test_steps_reach_every_tracker_and_the_end_is_told(run: Run, registry: Registry) -> None:
    one, two = Recorder("one"), Recorder("two")
    with followed(run, [one, two], registry):
        trained(run, registry, 1, 2, 3)
        registry.hook.callwright_run_finished(run=run)
    for recorder in (one, two):
        ((known, steps),) = recorder.sent.items()
        assert numbers(steps) == [1, 2, 3]
        assert recorder.closed == [(known, True)]
    assert not registry.listens("callwright_training_step")


def test_nobody_listens_where_nothing_is_tracked(run: Run, registry: Registry) -> None:
    with followed(run, [], registry):
        assert not registry.listens("callwright_training_step")


def test_a_run_that_is_stopped_is_closed_as_such_and_goes_on_in_the_same_place(run: Run, registry: Registry) -> None:
    recorder = Recorder()

    def stopped() -> None:
        with followed(run, [recorder], registry):
            trained(run, registry, 1, 2)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert recorder.closed == [("recorder-1", False)]
    run.truncate("metrics.jsonl", 1)
    with followed(run, [recorder], registry):
        trained(run, registry, 2, 3)
        registry.hook.callwright_run_finished(run=run)
    assert recorder.followed == [None, "recorder-1"]
    assert {known: numbers(steps) for known, steps in recorder.sent.items()} == {"recorder-1": [1, 2, 3]}


def test_where_nothing_is_new_nobody_is_asked(run: Run, registry: Registry) -> None:
    recorder = Recorder()
    with followed(run, [recorder], registry):
        registry.hook.callwright_run_finished(run=run)
    assert (recorder.followed, recorder.closed) == ([], [])


def test_a_trainer_that_fires_no_event_is_shown_when_it_is_over(run: Run, registry: Registry) -> None:
    recorder = Recorder()
    with followed(run, [recorder], registry):
        run.append("metrics.jsonl", [{"step": 1, "reward": 0.5}])
    assert numbers(recorder.sent["recorder-1"]) == [1]


def _raise(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("error", [OSError("no route to http://x/?token=abcdef123"), SystemExit(3), ValueError("bad")])
def test_a_tracker_that_fails_is_named_once_and_left_out(run: Run, registry: Registry, error: BaseException) -> None:
    bad, good = Recorder("bad", at=lambda step: _raise(error)), Recorder("good")
    with capture_logs() as logs, followed(run, [bad, good], registry):
        trained(run, registry, 1, 2, 3)
        registry.hook.callwright_run_finished(run=run)
    (said,) = logs
    assert (said["event"], said["tracker"], said["log_level"]) == ("tracker left out", "bad", "warning")
    assert type(error).__name__ in said["reason"]
    assert "abcdef123" not in said["reason"]
    assert numbers(good.sent["good-1"]) == [1, 2, 3]
    kept = json.loads((run.path / "trackers" / "bad.json").read_text(encoding="utf-8"))
    assert kept == {"id": "bad-1", "steps": {}, "evaluations": []}


def test_the_next_start_tries_again_from_where_it_was(run: Run, registry: Registry) -> None:
    recorder = Recorder()
    with followed(run, [recorder], registry):
        trained(run, registry, 1)
    recorder.at = lambda step: _raise(OSError("away"))
    with capture_logs(), followed(run, [recorder], registry):
        trained(run, registry, 2)
    recorder.at = lambda step: None
    with followed(run, [recorder], registry):
        trained(run, registry, 3)
    assert {known: numbers(steps) for known, steps in recorder.sent.items()} == {"recorder-1": [1, 2, 3]}


def test_training_waits_for_no_tracker(run: Run, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "PATIENCE", 0.05)
    let_go, stuck = threading.Event(), threading.Event()
    slow = Recorder("slow", at=lambda step: (stuck.set(), let_go.wait()))
    try:
        with capture_logs() as logs, followed(run, [slow], registry):
            trained(run, registry, 1)
            assert stuck.wait(30)
            trained(run, registry, 2, 3)  # while the first is still being sent
            assert slow.sent == {}
        (said,) = logs
        assert "it was not done" in said["reason"]
    finally:
        let_go.set()
    for thread in threading.enumerate():
        if thread.name == "tracker slow":
            thread.join(30)
    kept = json.loads((run.path / "trackers" / "slow.json").read_text(encoding="utf-8"))
    assert kept["steps"] == {}  # it writes nothing any more


def test_a_broken_note_names_its_file(run: Run, registry: Registry) -> None:
    (run.path / "trackers").mkdir()
    (run.path / "trackers" / "recorder.json").write_text('{"id": "x"}', encoding="utf-8")
    recorder = Recorder()
    with capture_logs() as logs, followed(run, [recorder], registry):
        trained(run, registry, 1)
    assert "recorder.json" in logs[0]["reason"]
    assert "remove it" in logs[0]["reason"]


def test_another_run_of_the_same_registry_is_not_mistaken(run: Run, registry: Registry, tmp_path: Path) -> None:
    other = Run.create(tmp_path / "other", recipe_text='name = "o"\n', manifest={})
    recorder = Recorder()
    with followed(run, [recorder], registry):
        trained(other, registry, 7)
        registry.hook.callwright_run_finished(run=other)
        trained(run, registry, 1)
    assert numbers(recorder.sent["recorder-1"]) == [1]
    assert recorder.closed == [("recorder-1", False)]


def test_a_registry_that_is_heard_still_reaches_other_processes(run: Run, registry: Registry) -> None:
    before = registry.description()
    with followed(run, [Recorder()], registry):
        assert registry.description() == before
        assert pickle.loads(pickle.dumps(registry)).plugins == registry.plugins == []


# In recipes -----------------------------------------------------------------------------------------------------------


def registered() -> Registry:
    def options(project: str = "p") -> Recorder:
        if not isinstance(project, str):
            raise TypeError("'project' is a text")
        return Recorder("one")

    class Plugin:
        from callwright.hookspecs import hookimpl

        @hookimpl
        def callwright_trackers(self) -> list[Lazy]:
            return [Lazy("one", options), Lazy("two", lambda: Recorder("two"))]

    return load_plugins(entry_points=False, extra={"recorders": Plugin()})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ('tracker = "one"', ["one"]),
        ('tracker = ["one", "two"]', ["one", "two"]),
        ('tracker = [{ name = "one", project = "x" }, "two"]', ["one", "two"]),
        ('[tracker]\nname = "one"\nproject = "x"', ["one"]),
        ('[[tracker]]\nname = "one"\n[[tracker]]\nname = "two"', ["one", "two"]),
    ],
)
def test_a_recipe_names_one_or_several(text: str, names: list[str]) -> None:
    loaded = parse_recipe(f'corpus = "c"\n{text}', "r.toml")
    assert [tracker.name for tracker in create_trackers(loaded, registered())] == names


def test_set_names_one() -> None:
    loaded = parse_recipe('corpus = "c"\ntracker = ["two"]', "r.toml", ["tracker=one", "tracker.project=x"])
    assert [tracker.name for tracker in create_trackers(loaded, registered())] == ["one"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('tracker = ["one", "thwo"]', "r.toml:2: There is no tracker named 'thwo'. Did you mean 'two'?"),
        (
            '[[tracker]]\nname = "two"\n[[tracker]]\nname = "one"\nprojekt = 1',
            "r.toml:6: There is no option of the tracker",
        ),
        ('[tracker]\nname = "one"\nproject = 3', "r.toml:4: tracker 'one' with project: 'project' is a text"),
        ('tracker = ["one", "one"]', "r.toml:2: the tracker 'one' is named twice; leave one out"),
    ],
)
def test_mistakes_are_said_with_their_line(text: str, message: str) -> None:
    loaded = parse_recipe(f'corpus = "c"\n{text}', "r.toml")
    with pytest.raises(RecipeError) as caught:
        create_trackers(loaded, registered())
    assert str(caught.value).startswith(message)


def test_what_is_no_tracker_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"r.toml:2: tracker"):
        parse_recipe('corpus = "c"\ntracker = 3', "r.toml")
