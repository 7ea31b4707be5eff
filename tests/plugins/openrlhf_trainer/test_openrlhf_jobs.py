"""Jobs of a cluster over a stand-in for Ray's command, and what is said where nothing is heard."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.machines.interrupts import Interrupted, answered
from callwright.training.run_folder import Run
from callwright_plugins.openrlhf_trainer.following.program import Program
from callwright_plugins.openrlhf_trainer.following.start import Following
from callwright_plugins.openrlhf_trainer.jobs import Job
from callwright_plugins.openrlhf_trainer.trainer import OpenRLHFTrainer

pytest.importorskip("torch", reason="needs the train extra")

ADDRESS = "http://head:8265"
OPTIONS: dict[str, Any] = {
    "steps": 4, "prompts": 2, "group": 3, "max_prompt_tokens": 9000, "max_new_tokens": 6000, "checkpoint_every": 2,
    "evaluate_every": 2, "evaluation_tasks": 1, "rollouts_per_step": 2, "evaluate_before": False,
    "job_address": ADDRESS,
}  # fmt: skip


class Heard:
    """A reporter that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def start(self, stage: str, total: int, done: int = 0) -> None:
        pass

    def advance(self, units: int = 1, **figures: float) -> None:
        pass

    def say(self, text: str) -> None:
        self.said.append(text)

    def finish(self) -> None:
        pass


def recipe_text(model: Path) -> str:
    return (
        f'name = "sums"\nseed = 3\nmodel = "{model}"\ntrainer = "openrlhf"\n[turns]\nassistant_turns = 2\n'
        '[corpus]\nname = "toolworld-mini-v1"\ntrain_size = 6\nevaluation_size = 1\n'
    )


def run_over(
    folder: Path, model: Path, make_pipeline: Any, python: str, mode: str = "", **more: Any
) -> tuple[Run, Heard]:
    text, heard = recipe_text(model), Heard()
    run = Run.create(folder / "run", recipe_text=text, manifest={})
    jobs = folder / "jobs"
    jobs.mkdir(exist_ok=True)
    variables = {"STAND_IN": mode, "STAND_IN_JOBS": str(jobs)}
    trainer = OpenRLHFTrainer(python=python, environment=variables, **{**OPTIONS, **more})
    trainer.train(make_pipeline(text), run, reporter=heard)
    return run, heard


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


def test_a_run_is_a_job_that_is_followed(tmp_path: Path, model: Path, make_pipeline: Any, stand_in: str) -> None:
    run, heard = run_over(tmp_path, model, make_pipeline, stand_in)
    assert [row["step"] for row in run.rows("metrics.jsonl")] == [1, 2, 3, 4]
    assert (run.checkpoints / "final" / "config.json").is_file()
    (job,) = (tmp_path / "jobs").iterdir()
    assert job.name.startswith("callwright-run-")
    assert json.loads(job.read_text())["address"] == ADDRESS
    assert f"submitted to {ADDRESS} as the job {job.name}" in heard.said
    assert not [text for text in heard.said if text.startswith("warning")]


def test_a_stopped_run_stops_its_job_which_would_go_on_by_itself(
    tmp_path: Path, model: Path, make_pipeline: Any, stand_in: str
) -> None:
    def interrupt() -> None:
        log, waiting = tmp_path / "run/openrlhf/log.txt", threading.Event()
        while not (log.exists() and "hanging" in log.read_text()):
            waiting.wait(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    stopper = threading.Thread(target=interrupt, daemon=True)
    stopper.start()
    with pytest.raises(Interrupted), answered():
        run_over(tmp_path, model, make_pipeline, stand_in, "hang 2")
    stopper.join()
    (job,) = (tmp_path / "jobs").iterdir()
    pid = json.loads(job.read_text())["pid"]
    for _ in range(600):
        if not is_there(pid):
            break
        time.sleep(0.1)
    assert not is_there(pid)


def test_words_and_variables_of_a_job() -> None:
    job = Job("/env/bin/python", ADDRESS, "mine")
    made = job.submitted(["/env/bin/python", "-m", "x", "--a", "b c"], {"B": "2", "A": "1"})
    assert made[:5] == ["/env/bin/python", "-m", "ray.scripts.scripts", "job", "submit"]
    assert json.loads(made[made.index("--runtime-env-json") + 1]) == {"env_vars": {"A": "1", "B": "2"}}
    assert made[made.index("--") + 1 :] == ["/env/bin/python", "-m", "x", "--a", "b c"]
    assert job.stopped()[3:] == ["job", "stop", "--address", ADDRESS, "mine"]


# What is said ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def following(tmp_path: Path, model: Path, make_pipeline: Any) -> Following:
    from callwright_plugins.openrlhf_trainer.translation.translating import Files

    trainer = OpenRLHFTrainer(**{**OPTIONS, "silent_after": 0.5})
    run = Run.create(tmp_path / "run", recipe_text=recipe_text(model), manifest={})
    return Following(trainer.options, make_pipeline(recipe_text(model)), run, Files(run.path), Heard())


def test_silence_is_said_once_for_each_time(
    following: Following, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("callwright_plugins.openrlhf_trainer.following.start.time.monotonic", lambda: now[0])
    following._heard = now[0]
    program = Program(["true"], {}, tmp_path / "log.txt")
    program.follow(lambda: False)
    said = following.reporter.said  # type: ignore[attr-defined]
    for seconds, times in ((29, 0), (2, 1), (10, 1), (25, 2)):
        now[0] += seconds
        assert following._look(program) is False
        assert len(said) == times
    assert "no step and no evaluation for 0.5 minutes; it has printed nothing" in said[0]
    assert f"and {following.files.events} has no file of this start" in said[0]


def test_a_job_is_asked_about(openrlhf_registry: cw.Registry) -> None:
    from callwright_plugins.openrlhf_trainer.options import reaches

    (reach,) = reaches({"job_address": ADDRESS})
    assert ADDRESS in reach.what
    assert "job_address" in reach.options
