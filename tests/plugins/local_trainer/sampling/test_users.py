"""Users in training: they differ within a group, are the same again, and what they say carries no loss."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.commands.row_files.episodes import episode_of
from callwright.pipeline import Pipeline
from callwright.training.rollouts.written import Keeping
from callwright.walk.conditions import Conditions, Progress
from callwright.walk.limits import TurnLimits
from callwright_plugins.lab.replay import Replay
from callwright_plugins.local_trainer.forward.generation import Sampled
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.local_trainer.sampling.episodes import sample_groups
from callwright_plugins.local_trainer.sampling.rollouts import Group, rollout_rows

USER = cw.UserSpec(
    "scripted",
    {
        "knows": {"number": "31415926"},
        "mistakes": 0.5,
        "then": ["Then turn it by 1."],
    },
)


@pytest.fixture
def played(
    vault: Any, make_policy: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> Callable[[int], tuple[Any, list[Group]]]:
    """Groups of six of the vault's tasks, whose policy asks for a number and says thanks."""

    def play(step: int) -> tuple[Any, list[Group]]:
        policy = evolve(make_policy("llama"), form="compact", compact=vault.prompt_text)
        limits = TurnLimits(3, 3, 300, context_tokens=5000)
        pipeline = Pipeline(vault, conditions=Conditions(limits=limits), registry=cw.default_registry())
        ask, thanks = (
            policy.completion_ids(pipeline.parser.render(cw.Program((), "one", "hm", text)))
            for text in ("Which number?", "Thanks.")
        )
        first = {policy.codec().prompt_ids((), task) for task in vault["train"]}

        gold = {
            policy.codec().prompt_ids((), task): policy.completion_ids(pipeline.parser.render(task.program))
            for task in vault["train"]
        }

        def answer(said: str, context: tuple[int, ...]) -> Any:
            if context in first:
                return ask
            program = next(ids for prompt, ids in gold.items() if context[: len(prompt)] == prompt)
            return thanks if '"result"' in said else program

        def scripted(policy: Any, contexts: Any, rooms: Any, **_: Any) -> list[Sampled]:
            texts = [answer(policy.text(context), tuple(context)) for context in contexts]
            return [Sampled(ids, (-1.0,) * len(ids), False) for ids in texts]

        monkeypatch.setattr("callwright_plugins.local_trainer.sampling.episodes.continue_contexts", scripted)
        tasks = [evolve(task, user=USER) for task in vault["train"]]
        purpose = (0, "sampling", step)
        groups = sample_groups(
            pipeline, policy, tasks, Options(group=6), limits, purpose, Progress(step, 2), lambda part: None
        )
        assert {one.episode.stop for group in groups for one in group.rollouts} <= {"answered", "assistant_turns"}
        return policy, list(groups)

    return play


def heard(groups: list[Group]) -> list[list[str]]:
    return [[turn.user.said.text for turn in one.attempt.turns[:1] if turn.user] for g in groups for one in g.rollouts]


def test_users_of_a_group_differ_and_are_the_same_again(played: Callable[[int], tuple[Any, list[Group]]]) -> None:
    _, groups = played(0)
    texts = [text for (text,) in heard(groups)]
    assert len(texts) == 12
    assert "number: 31415926." in texts
    assert 3 <= len(set(texts)) <= 12
    assert heard(played(0)[1]) == heard(groups)
    assert heard(played(1)[1]) != heard(groups)


def test_what_a_user_says_is_read_and_carries_no_loss(played: Callable[[int], tuple[Any, list[Group]]]) -> None:
    policy, groups = played(0)
    for group in groups:
        for rollout in group.rollouts:
            episode = rollout.episode
            said = [turn.user.said.text for turn in episode.attempt.turns if turn.user]
            ids = [token for token, ours in zip(episode.response_ids, episode.mask, strict=True) if not ours]
            told, sampled = (
                policy.text(ids),
                [i for i, ours in zip(episode.response_ids, episode.mask, strict=True) if ours],
            )
            assert said[0] in told
            assert len(rollout.attempt.whole_trace.records) == 1
            assert said[0] not in policy.text(sampled)
            assert all(not p for p, ours in zip(episode.logprobs, episode.mask, strict=True) if not ours)
    import torch

    rows = rollout_rows(groups, torch.zeros(2, 6), policy, 1, 0, Keeping(12))
    turns = [row["turns"][0] for row in rows]
    assert {turn["user"]["text"] for turn in turns} == {text for (text,) in heard(groups)}


def test_what_a_run_keeps_of_them_is_confirmed_when_it_is_executed_again(
    played: Callable[[int], tuple[Any, list[Group]]],
) -> None:
    import torch

    policy, groups = played(0)
    tasks = {group.task.id: group.task for group in groups}
    replay = Replay()
    for row in map(_as_kept, rollout_rows(groups, torch.zeros(2, 6), policy, 1, 0, Keeping(12))):
        read = episode_of(row)
        assert read is not None
        pipeline = Pipeline("toolworld-mini-v1", conditions=Conditions())
        attempt = cw.Attempt(tasks[row["task"]], read.completions, pipeline.parser, Conditions(), said=read.said)
        replay.check(1, row, attempt, cw.reward("tier").score_attempt(attempt))
    assert (replay.rows, replay.verdicts, replay.calls, replay.differences) == (12, 12, 12, [])


def _as_kept(row: Any) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(json.dumps(row))
    return kept
