"""What cut-off completions earn in training, and the alarm when there are too many of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from callwright.episodes import TokenEpisode
from callwright.language.program import Program
from callwright.pipeline import Pipeline, create_trainer
from callwright.training.run_folder import Run
from callwright.walk.attempt import Attempt
from callwright.walk.conditions import Progress
from callwright.walk.limits import TruncationPolicy, TurnLimits
from callwright.walk.reward import Reward, RewardComponent
from callwright_plugins.local_trainer.forward.generation import Sampled
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.local_trainer.run.training import make_policy
from callwright_plugins.local_trainer.sampling import episodes
from callwright_plugins.local_trainer.sampling.rollouts import describe, rewards_of

Pipelines = Callable[..., Pipeline]


def train(pipeline: Pipeline, folder: Path) -> Run:
    run = Run.create(folder, recipe_text=pipeline.recipe.effective_text(), manifest={})
    create_trainer(pipeline.recipe, pipeline.registry).train(pipeline, run)
    return run


@pytest.mark.parametrize("turns", [1, 3])
@pytest.mark.parametrize(("policy", "total"), [("floor", 0.0), ("as_is", 1.0), ("overlong", 1.0), ("mask", None)])
def test_gold_and_endless_garbage_in_a_step(
    policy: TruncationPolicy, total: float | None, turns: int, make_pipeline: Pipelines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine writes the right program and goes on until the limit; in one sample it ends instead."""
    algorithm = "dapo" if policy == "overlong" else "bn-grpo"
    pipeline = make_pipeline(f"reward.truncated={policy}", f"algorithm={algorithm}")
    options = Options(group=3, max_new_tokens=400)
    made = make_policy(pipeline, options)
    task = next(task for task in pipeline.tasks("train") if task.depth == 2)
    assert task.program is not None
    gold = made.completion_ids(pipeline.parser.render(task.program))
    done = made.completion_ids(pipeline.parser.render(Program()))
    endless = episodes.EngineOutput((*gold[:-1], *[gold[0]] * (400 - len(gold))), (), False)

    def engine(self: Any, live: list[TokenEpisode]) -> list[episodes.EngineOutput]:
        if len(live) == 1:  # only the one that ended goes on to a second turn
            return [episodes.EngineOutput(done)]
        return [endless, episodes.EngineOutput(gold), endless]

    monkeypatch.setattr(episodes.Engine, "__call__", engine)
    limits = TurnLimits(assistant_turns=turns, user_turns=1, turn_tokens=400)
    (group,) = episodes.sample_groups(pipeline, made, [task], options, limits, (0,), Progress(0, 1), lambda _: None)
    assert [len(one.episode.ranges) for one in group.rollouts] == [1, min(turns, 2), 1]
    assert [one.sampled.truncated for one in group.rollouts] == [True, False, True]
    assert [one.reward.total for one in group.rollouts] == [total, 1.0, total]
    _, valid, _ = rewards_of([group])
    assert valid.tolist() == [[total is not None, True, total is not None]]
    row = describe([group])
    assert row["truncated"] == pytest.approx(2 / 3)
    assert (row["masked"], row.get("masked_cut", 0)) == ((2, 2) if total is None else (0, 0))
    assert row["scores"].get("truncated") == (pytest.approx(-2 / 3) if policy == "floor" else None)
    assert [one.verdict.answer for one in group.rollouts] == [True, True, True], "accuracy does not ask how it ended"


def test_a_masked_cut_is_not_scored_again(make_pipeline: Pipelines, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = make_pipeline("reward.truncated=mask")
    options = Options(group=2, max_new_tokens=4, retries=5)
    made = make_policy(pipeline, options)
    asked: list[Attempt] = []
    scoring = Pipeline.scoring

    def counted(self: Pipeline, attempts: Iterable[Attempt]) -> Iterator[tuple[Attempt, Reward]]:
        together = list(attempts)
        asked.extend(together)
        return scoring(self, together)

    def endless(self: Any, live: list[TokenEpisode]) -> list[episodes.EngineOutput]:
        return [episodes.EngineOutput((5, 6, 7, 8), (), False) for _ in live]

    monkeypatch.setattr(episodes.Engine, "__call__", endless)
    monkeypatch.setattr(Pipeline, "scoring", counted)
    limits = TurnLimits(turn_tokens=4)
    task = pipeline.tasks("train")[0]
    (group,) = episodes.sample_groups(pipeline, made, [task], options, limits, (0,), Progress(0, 1), lambda _: None)
    assert [(one.reward.total, one.reward.masked_cut) for one in group.rollouts] == [(None, True)] * 2
    assert len(asked) == 2


def test_a_run_whose_completions_never_end_says_so_once(
    make_pipeline: Pipelines, variety: RewardComponent, tmp_path: Path
) -> None:
    settings = ("trainer.warm_start=0", "trainer.steps=7", "trainer.max_new_tokens=4", "trainer.alarm_window=2")
    with structlog.testing.capture_logs() as logs:
        run = train(make_pipeline(*settings, extra_rewards=[variety]), tmp_path)
    rows = run.rows("metrics.jsonl")
    assert all(row["truncated"] > 0.5 for row in rows)
    assert [row["alarm"] is not None for row in rows] == [False] * 4 + [True] * 3
    assert "cut off by a limit of tokens" in rows[-1]["alarm"]
    assert [one["step"] for one in logs if one["event"] == "alarm"] == [5]


def test_a_run_whose_completions_end_says_nothing(
    make_pipeline: Pipelines, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def ended(policy: Any, contexts: Any, bounds: Any, **_: Any) -> list[Sampled]:
        ids = tuple(policy.completion_ids("x"))
        return [Sampled(ids, (-1.0,) * len(ids), False) for _ in contexts]

    monkeypatch.setattr(episodes, "continue_contexts", ended)
    settings = ("trainer.warm_start=0", "trainer.steps=7", "trainer.evaluate_every=0", "trainer.max_new_tokens=40")
    rows = train(make_pipeline(*settings), tmp_path).rows("metrics.jsonl")
    assert [row["truncated"] for row in rows] == [0.0] * 7
    assert [row["alarm"] for row in rows] == [None] * 7
