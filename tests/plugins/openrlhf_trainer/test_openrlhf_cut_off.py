"""What cut-off completions earn where OpenRLHF trains, and its alarm when there are too many of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import structlog
from attrs import evolve

import callwright as cw
from callwright.episodes import PlainCodec
from callwright.errors import RecipeError, RunError
from callwright.training.run_folder import Run
from callwright_plugins.openrlhf_trainer.agent import Agent, reward_function
from callwright_plugins.openrlhf_trainer.configuration import Configuration, load_pipeline, read_configuration
from callwright_plugins.openrlhf_trainer.following.metrics import Finished, metrics_row
from callwright_plugins.openrlhf_trainer.following.start import Following
from callwright_plugins.openrlhf_trainer.prompts import digest_of_ids, load_tokenizer
from callwright_plugins.openrlhf_trainer.trainer import OpenRLHFTrainer
from callwright_plugins.openrlhf_trainer.translation.translating import Files

pytest.importorskip("torch", reason="needs the train extra")

RECIPE = (
    'name = "sums"\nseed = 3\nmodel = "{model}"\ntrainer = "openrlhf"\n'
    '[corpus]\nname = "toolworld-mini-v1"\ntrain_size = 6\nevaluation_size = 1\n{more}'
)


def configuration(folder: Path, model: Path, make_pipeline: Any, more: str = "", **options: Any) -> Path:
    """The file that a trainer writes for the engines' processes."""
    text = RECIPE.format(model=model, more=more)
    Run.create(folder, recipe_text=text, manifest={})
    files = Files(folder)
    files.folder.mkdir(exist_ok=True)
    trainer = OpenRLHFTrainer(**{"steps": 1, "prompts": 1, "group": 1, "max_new_tokens": 6000, **options})
    trainer._configuration(make_pipeline(text), files).write(files.config)
    tokenizer = load_tokenizer(str(model))
    made = {"form": "compact", "ends": [tokenizer.eos_token_id], "end_texts": [tokenizer.eos_token]}
    (files.folder / "prompts.json").write_text(json.dumps(made))
    return files.config


@pytest.mark.parametrize(
    ("more", "total"),
    [
        ("", 0.0),
        ('[reward]\nname = "tier"\ntruncated = "as_is"', 1.0),
        ('[algorithm]\nname = "dapo"', 1.0),
        ('[algorithm]\nname = "dapo"\noverlong_buffer = 0', 0.0),
        ('[reward]\nname = "tier"\ntruncated = "mask"', None),
        ('[reward]\nname = "tier"\nfloor = -0.5', -0.5),
    ],
)
def test_gold_and_endless_garbage(
    more: str, total: float | None, model: Path, tmp_path: Path, make_pipeline: Any
) -> None:
    config = configuration(tmp_path, model, make_pipeline, more)
    agent = Agent(config)
    tokenizer = load_tokenizer(str(model))
    corpus: Any = agent.pipeline.corpus
    task = next(task for task in corpus["train"] if task.program is not None and task.depth > 1)
    ids = tokenizer.encode(agent.pipeline.parser.render(task.program), add_special_tokens=False)
    codec = PlainCodec(tokenizer, corpus.prompt_text, ends=frozenset([tokenizer.eos_token_id]))
    label = {"task": task.id, "split": "train", "row": 0, "copies": 1, "logged": 1, "evaluation": False}
    label["prompt"] = digest_of_ids(codec.prompt_ids((), task))

    class Engine:
        def __init__(self, finish: str) -> None:
            self.finish = finish

        async def generate(self, context: Any, params: Any) -> Any:
            found = [*ids, *([tokenizer.eos_token_id] if self.finish == "stop" else ids[:3] * 50)]
            output = SimpleNamespace(token_ids=found, logprobs=None, finish_reason=self.finish)
            return SimpleNamespace(outputs=[output])

    def made(finish: str) -> dict[str, Any]:
        asked = SimpleNamespace(max_tokens=6000, logprobs=None)
        return asyncio.run(agent.execute("", json.dumps(label), asked, 9000, tokenizer, Engine(finish)))

    cut, whole = made("length"), made("stop")
    assert whole["reward"] == pytest.approx(1.0, abs=1e-3)
    assert cut["extra_logs"].keys() == whole["extra_logs"].keys(), "OpenRLHF merges them by key"
    assert (cut["extra_logs"]["callwright/truncated"], whole["extra_logs"]["callwright/truncated"]) == (1.0, 0.0)
    assert cut["extra_logs"]["callwright/masked_cut"] == float(total is None)
    if total is None:
        assert cut["action_ranges"] == []
    else:
        assert cut["reward"] == pytest.approx(total, abs=1e-3)
        assert 0 <= cut["scores"] <= 1
        assert cut["truncated"] is True
    (spool,) = (config.parent / "spool").iterdir()
    shown = [row for line in spool.read_text().splitlines() for row in json.loads(line)["rows"]]
    assert [one["truncated"] for one in shown] == [True, False]
    # A group of equal rewards is drawn anew with DAPO: it is shown, but is not one of a step's.
    counted = [json.loads(line)["samples"] for line in spool.read_text().splitlines()]
    assert counted == ([0, 0] if "dapo" in more else [1, 1])
    if total is not None:
        score = reward_function(config)
        text = agent.pipeline.parser.render(task.program)
        for end, expected in ((tokenizer.eos_token, 1.0), (" and so on" * 260, total)):
            found = score([f"asked{text}{end}"], ["asked"], [json.dumps(label)])
            assert found["rewards"] == pytest.approx(expected, abs=1e-3)
            assert found["extra_logs"]["callwright/truncated"] == float(end != tokenizer.eos_token)


class Busy(cw.RewardComponent):
    """A judge that answers every so many questions."""

    name = "busy"

    def __init__(self, answers: int) -> None:
        self.answers, self.asked = answers, 0

    def score(self, attempt: cw.Attempt) -> cw.Score:
        self.asked += 1
        if self.answers == 0 or self.asked % self.answers:
            raise cw.InfrastructureFailure("the judge is gone")
        return cw.Score(1.0)


def executed(config: Path, model: Path, judge: Busy, count: int) -> list[dict[str, Any]]:
    """As many samples of a task, each of which says nothing, with the rewards of a judge."""
    agent = Agent(config)
    agent.pipeline = evolve(agent.pipeline, reward=cw.RewardRecipe("judged", (cw.Term(judge),)))
    tokenizer = load_tokenizer(str(model))
    corpus: Any = agent.pipeline.corpus
    task = corpus["train"][0]
    codec = PlainCodec(tokenizer, corpus.prompt_text, ends=frozenset([tokenizer.eos_token_id]))
    label = {"task": task.id, "split": "train", "row": 0, "copies": 1, "logged": 1, "evaluation": False}
    label["prompt"] = digest_of_ids(codec.prompt_ids((), task))

    class Engine:
        async def generate(self, context: Any, params: Any) -> Any:
            output = SimpleNamespace(token_ids=[tokenizer.eos_token_id], logprobs=None, finish_reason="stop")
            return SimpleNamespace(outputs=[output])

    async def many() -> list[dict[str, Any]]:
        asked = SimpleNamespace(max_tokens=6000, logprobs=None)
        return [await agent.execute("", json.dumps(label), asked, 9000, tokenizer, Engine()) for _ in range(count)]

    return asyncio.run(many())


def test_a_run_of_which_no_sample_has_a_reward_ends(tmp_path: Path, model: Path, make_pipeline: Any) -> None:
    """Nothing failed but what scores: an update would be of masked samples alone."""
    config = configuration(tmp_path, model, make_pipeline)
    with pytest.raises(RuntimeError, match=r"16 episodes one after the other were masked, .*the judge is gone"):
        executed(config, model, Busy(answers=0), 20)


def test_a_reward_that_could_not_find_out_is_asked_for_again(tmp_path: Path, model: Path, make_pipeline: Any) -> None:
    config = configuration(tmp_path, model, make_pipeline, retries=2)
    judge = Busy(answers=3)
    found = executed(config, model, judge, 2)
    assert [one["reward"] for one in found] == [1.0, 1.0]
    assert judge.asked == 6


def test_an_engine_that_outlives_its_start_is_not_counted_in(tmp_path: Path, model: Path, make_pipeline: Any) -> None:
    config = configuration(tmp_path / "run", model, make_pipeline)
    files, run, trainer = Files(tmp_path / "run"), Run(tmp_path / "run"), OpenRLHFTrainer(steps=9, prompts=1, group=1)
    pipeline = make_pipeline(RECIPE.format(model=model, more=""))
    engines = []
    for _ in range(2):  # the second start while the engine of the first is still there
        following = Following(trainer.options, pipeline, run, files, cw.training.reporter.SILENT)
        assert following._take_up() == 0
        engines.append(Agent(config))
    for number, engine in enumerate(engines):
        engine.spool.write("rollouts", [{"of": number}], 1, 0)
    following._stepped(Finished(1, {}))
    assert run.rows("rollouts.jsonl") == [{"step": 1, "of": 1}]


def test_engines_go_by_the_policy_that_was_in_force(tmp_path: Path, model: Path, make_pipeline: Any) -> None:
    config = configuration(tmp_path, model, make_pipeline, '[algorithm]\nname = "dapo"')
    read = read_configuration(config)
    assert isinstance(read, Configuration)
    assert load_pipeline(read).reward.truncation == "overlong"


def test_a_reward_function_cannot_mask(model: Path, make_pipeline: Any) -> None:
    pipeline = make_pipeline(RECIPE.format(model=model, more='[reward]\nname = "tier"\ntruncated = "mask"'))
    OpenRLHFTrainer(rewards="agent")._translate(pipeline, Files(Path("RUN")))
    with pytest.raises(RecipeError, match=r":11: a reward function of OpenRLHF cannot mask"):
        OpenRLHFTrainer(rewards="function")._translate(pipeline, Files(Path("RUN")))


def figures(cut: float, masked: float = 0.0) -> dict[str, float | None]:
    return {
        "rollout/num_samples": 10.0, "rollout/truncated_rate": 0.0, "callwright/truncated": cut,
        "callwright/masked": masked, "callwright/masked_cut": masked, "callwright/scores/truncated": -cut,
    }  # fmt: skip


def test_masked_ones_are_counted_as_cut_off_all_the_same() -> None:
    row = metrics_row(Finished(1, figures(0.4, 0.4)))
    assert (row["truncated"], row["masked"], row["masked_cut"]) == (0.4, 4, 4)
    assert "truncated" not in metrics_row(Finished(1, figures(0.0)))["scores"]
    assert metrics_row(Finished(1, figures(0.4)))["scores"]["truncated"] == -0.4


def test_the_alarm_follows_the_log_and_survives_a_new_start(tmp_path: Path, model: Path, make_pipeline: Any) -> None:
    text = RECIPE.format(model=model, more="")
    pipeline = make_pipeline(text)
    run = Run.create(tmp_path / "run", recipe_text=text, manifest={})
    files = Files(run.path)
    files.folder.mkdir(exist_ok=True)
    trainer = OpenRLHFTrainer(steps=9)

    def following() -> Any:
        return Following(trainer.options, pipeline, run, files, cw.training.reporter.SILENT)

    with structlog.testing.capture_logs() as logs:
        first = following()
        for step in range(1, 6):
            first._stepped(Finished(step, figures(0.05)))
        assert [row["alarm"] for row in run.rows("metrics.jsonl")] == [None] * 5
        for step in range(6, 9):
            first._stepped(Finished(step, figures(0.3)))
        again = following()
        (files.checkpoints / "_actor" / "global_step8").mkdir(parents=True)
        (files.checkpoints / "_actor" / "latest").write_text("global_step8")
        assert again._take_up() == 8
        again._stepped(Finished(9, figures(0.3)))
    rows = run.rows("metrics.jsonl")
    assert [row["alarm"] is not None for row in rows] == [False] * 6 + [True] * 3
    assert [one["step"] for one in logs if one["event"] == "alarm"] == [7]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"callwright/masked": 0.9}, "27 of the 30 samples of the last 3 steps are masked"),
        ({"policy_loss": None}, "3 steps in a row were not finite, .*step 4: loss nan, prompts unknown; step 5: "),
        ({"actor_grad_norm": None}, "step 6: gradient norm nan"),
    ],
)
def test_what_must_not_go_on_ends_the_program(
    bad: dict[str, float | None], words: str, tmp_path: Path, model: Path, make_pipeline: Any
) -> None:
    text = RECIPE.format(model=model, more="")
    run = Run.create(tmp_path / "run", recipe_text=text, manifest={})
    files = Files(run.path)
    files.folder.mkdir(exist_ok=True)
    trainer = OpenRLHFTrainer(steps=9)
    following = Following(trainer.options, make_pipeline(text), run, files, cw.training.reporter.SILENT)
    healthy: dict[str, float | None] = {"rollout/num_samples": 10.0, "policy_loss": 0.1, "actor_grad_norm": 1.0}
    for step in (1, 2, 3):
        following._stepped(Finished(step, {**healthy, "callwright/masked": 0.3}))
    for step in (4, 5):
        following._stepped(Finished(step, {**healthy, **bad}))
    with pytest.raises(RunError, match=f"stopped after step 6: .*{words}"):
        following._stepped(Finished(6, {**healthy, **bad}))
    rows = run.rows("metrics.jsonl")
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5, 6]
    for name, our_name in (("policy_loss", "loss"), ("actor_grad_norm", "gradient_norm")):
        assert (rows[5][our_name] is None) == (name in bad)
