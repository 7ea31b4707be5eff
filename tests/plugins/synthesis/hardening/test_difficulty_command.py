"""``callwright synthesize difficulty``: the column, its filters, and hardening by a solver from the command line."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App
from callwright.errors import DataError, UsageError
from callwright.pipeline import open_pipeline
from callwright.plugins import Lazy
from callwright.testing import check_component
from callwright.training.verdicts import groups_of
from callwright.walk.completion import Completion
from callwright.walk.sampling import SamplingRequest
from callwright.walk.tasks import depths_of

RECIPE = """
name = "talks"

[synthesis]
environments = ["video_meeting"]
count = 14
seed = 1

[synthesis.synthesizer]
name = "grounded"
calls = 1500
cache = "knowledge"
several_servers = 0.0
clarifications = 0.0
abstentions = 0.1
distractors = 0.0
"""


TIRED = "I am tired."


class Tires:
    """Speaks the reference of tasks of at most ``most`` calls, and of longer ones in every other sample."""

    name = "tires"

    def __init__(self, most: int, ir: str = "hermes") -> None:
        self.most, self.ir = most, ir
        self.gold: Any = cw.default_registry().create("sampler", "gold", ir=ir)

    def sample(
        self, requests: Sequence[SamplingRequest], *, n: int = 1, temperature: float = 0.0, seed: int = 0
    ) -> list[list[Completion]]:
        made = self.gold.sample(requests, n=n, temperature=temperature, seed=seed)
        return [
            [Completion(TIRED) if self._tires(request, place) else one for place, one in enumerate(group)]
            for request, group in zip(requests, made, strict=True)
        ]

    def _tires(self, request: SamplingRequest, place: int) -> bool:
        """At the first turn of every other sample; who is tired stays so."""
        said = any(message.text == TIRED for message in request.messages)
        return said or (request.task.depth > self.most and place % 2 == 1)


class Plugin:
    @staticmethod
    @cw.hookimpl
    def callwright_samplers() -> list[Lazy]:
        return [Lazy("tires", Tires, summary="speaks the reference of short tasks")]


def run(*words: Any) -> Result:
    app = App()
    app.registry.add(Plugin(), name="tired")
    return CliRunner().invoke(root, [*map(str, words)], obj=app)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, kept_knowledge: Path) -> Path:
    path = tmp_path_factory.mktemp("difficulty")
    (path / "talks.toml").write_text(RECIPE.replace('"knowledge"', json.dumps(str(kept_knowledge))))
    done = run("synthesize", path / "talks.toml", "-o", path / "talks")
    assert done.exit_code == 0, done.output
    return path


@pytest.fixture(scope="module")
def measured(here: Path) -> Path:
    done = run(
        "synthesize", "difficulty", here / "talks", "-o", here / "measured", "--sampler", "tires",
        "--sampler-option", "most=5", "--ir", "hermes", "--samples", "2", "--reward", "prove",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "14 of 14 tasks were attempted" in done.stdout
    return here / "measured"


def is_hard(task: cw.Task) -> bool:
    """Whether who is tired after five calls misses it: where nothing is to change, whoever does nothing is right."""
    return task.depth > 5 and not (task.facts["kind"] == "failing" and task.facts["changes_nothing"])


def test_each_task_says_how_often_it_is_solved_and_nothing_else_changes(here: Path, measured: Path) -> None:
    before, after = cw.read_tasks(here / "talks" / "tasks.jsonl"), cw.read_tasks(measured / "tasks.jsonl")
    for old, new in zip(before, after, strict=True):
        facts = dict(new.facts)
        found = facts.pop("difficulty")
        assert (facts, new.query, new.depth) == (dict(old.facts), old.query, old.depth)
        solved = 0.5 if is_hard(new) else 1.0
        assert (found["attempts"], found["pass@1"], found["pass@2"]) == (2, solved, 1.0)
        assert (found["reward"]["deviation"] > 0) == (new.depth > 5)
        assert found["solver"] == "tires most=5"
    assert {task.facts["difficulty"]["pass@1"] for task in after} == {0.5, 1.0}


def test_the_corpus_takes_a_band_and_everything_sees_only_that(measured: Path, tmp_path: Path) -> None:
    file = measured / "tasks.jsonl"
    whole, hard = cw.corpus("tasks", file=file), cw.corpus("tasks", file=str(file), pass_from=0.1, pass_to=0.9)
    wanted = [task.id for task in whole["train"] if is_hard(task)]
    assert [task.id for task in hard["train"]] == wanted
    assert hard.splits == {"train": len(wanted)}
    assert list(depths_of(hard["train"])) == [task.depth for task in hard["train"]]
    again = pickle.loads(pickle.dumps(hard))
    assert [task.id for task in again["train"]] == wanted
    assert [task.id for task in pickle.loads(pickle.dumps(hard["train"]))] == wanted
    check_component("corpus", hard, again=cw.corpus("tasks", file=str(file), pass_from=0.1, pass_to=0.9))
    compact = cw.corpus("compact-tasks", file=str(file), pass_to=0.9)
    assert compact.splits == hard.splits
    out = tmp_path / "hard.parquet"
    chosen = ("--corpus-option", f"file={file}", "--corpus-option", "pass_to=0.9")
    assert run("tasks", "export", "tasks", *chosen, "-o", out).exit_code == 0
    assert [task.id for task in cw.read_tasks(out)] == wanted
    recipe = {"corpus": {"name": "tasks", "file": str(file), "pass_to": 0.9, "train": "train", "evaluation": "train"}}
    assert len(open_pipeline(recipe).tasks("train")) == len(wanted)


def test_a_split_that_nobody_measured_stays_whole(measured: Path, tmp_path: Path) -> None:
    tasks = list(cw.read_tasks(measured / "tasks.jsonl"))
    bare = [
        evolve(one, id=f"v{n}", split="validation", facts={k: v for k, v in one.facts.items() if k != "difficulty"})
        for n, one in enumerate(tasks[:4])
    ]
    cw.write_tasks(tmp_path / "both.jsonl", [*tasks, *bare])
    corpus = cw.corpus("tasks", file=str(tmp_path / "both.jsonl"), pass_to=0.9)
    assert corpus.splits == {"train": sum(map(is_hard, tasks)), "validation": 4}


def test_bands_that_hold_nothing_or_are_none_are_refused(here: Path, measured: Path) -> None:
    with pytest.raises(DataError, match=r"no task with pass@1 from 0 to 0.2; callwright synthesize difficulty"):
        cw.corpus("tasks", file=str(measured / "tasks.jsonl"), pass_to=0.2)
    with pytest.raises(DataError, match="measures tasks"):
        cw.corpus("tasks", file=str(here / "talks" / "tasks.jsonl"), pass_from=0.0)
    with pytest.raises(UsageError, match=r"lies in \[0, 1\]"):
        cw.corpus("tasks", file=str(measured / "tasks.jsonl"), pass_from=10)


def test_attempts_that_are_there_are_joined_and_those_at_other_tasks_refused(
    here: Path, measured: Path, tmp_path: Path
) -> None:
    done = run(
        "synthesize", "difficulty", here / "talks", "-o", tmp_path / "a", "--evaluation", measured / "evaluation"
    )
    assert done.exit_code == 0, done.output
    assert (tmp_path / "a" / "tasks.jsonl").read_bytes() == (measured / "tasks.jsonl").read_bytes()
    other = tmp_path / "other.jsonl"
    lines = (here / "talks" / "tasks.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    other.write_text("".join([lines[0], *(line.replace('"query": "', '"query": "Oh. ') for line in lines[1:])]))
    done = run("synthesize", "difficulty", other, "-o", tmp_path / "b", "--evaluation", measured / "evaluation")
    assert done.exit_code != 0
    assert "asks for something else there" in done.output


def test_hardening_goes_on_and_what_it_makes_passes_and_is_no_easier(
    here: Path, tmp_path: Path, kept_knowledge: Path
) -> None:
    words = (
        "synthesize", "difficulty", here / "talks", "--sampler", "tires", "--sampler-option", "most=6",
        "--ir", "hermes", "--samples", "2", "--harden", "2", "--calls", "1500", "--cache", kept_knowledge, "--json",
    )  # fmt: skip
    done = run(*words, "-o", tmp_path / "hard")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["tasks"] == 14
    assert sum(told["hardened"].values()) >= 4
    assert told["before"] == 1.0 > told["after"], told
    tasks = cw.read_tasks(tmp_path / "hard" / "tasks.jsonl")
    changed = [task for task in tasks if "hardened" in task.facts]
    assert len(changed) == sum(told["hardened"].values())
    assert groups_of(changed[0])["hardened"] in told["hardened"]
    checked = run("synthesize", "check", tmp_path / "hard" / "tasks.jsonl", "--against", "none", "--json")
    assert json.loads(checked.stdout)["pass"] == 14
    kept = {
        name: (tmp_path / "hard" / name).read_bytes() for name in ("tasks.jsonl", "rejected.jsonl", "manifest.json")
    }
    again = run(*words, "-o", tmp_path / "hard")
    assert json.loads(again.stdout) == told
    assert {name: (tmp_path / "hard" / name).read_bytes() for name in kept} == kept
    page = run("synthesize", "report", tmp_path / "hard")
    assert page.exit_code == 0, page.output
    assert "14 of 14 were measured" in (tmp_path / "hard" / "report.html").read_text(encoding="utf-8")
    other = run(*words, "-o", tmp_path / "hard", "--too-easy", "0.5")
    assert "other settings (too_easy)" in other.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "either --evaluation DIR or --sampler NAME"),
        (("--sampler", "gold", "--evaluation", "x"), "either --evaluation DIR or --sampler NAME"),
        (("--evaluation", "x", "--harden", "1"), "needs a solver"),
        (("--sampler", "gold", "--split", "trian"), "Did you mean 'train'"),
    ],
)
def test_what_cannot_be_is_said(here: Path, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    done = run("synthesize", "difficulty", here / "talks", "-o", tmp_path / "out", *words)
    assert done.exit_code != 0
    assert said in done.output
