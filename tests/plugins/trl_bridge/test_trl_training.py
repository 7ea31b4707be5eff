"""TRL itself takes real steps on the CPU with rewards and episodes of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from attrs import evolve

import callwright as cw
from callwright.errors import DataError
from callwright_plugins import trl_bridge


class Listening:
    """A reward function that remembers what it was asked."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.heard = inner, []
        self.__name__ = inner.__name__

    def __call__(self, prompts: Any, completions: Any, completion_ids: Any, **columns: Any) -> Any:
        given = self.inner(prompts, completions, completion_ids, **columns)
        self.heard.append((completions, completion_ids, columns, given))
        return given


def test_exact_tier_trains_on_the_cpu(small_corpus: Any, make_trainer: Callable[..., Any]) -> None:
    """Batch-normalised GRPO with the paper's KL weight: TRL's rewards are those of the recipe on the same texts."""
    function = Listening(trl_bridge.reward("tier", corpus=small_corpus))
    data = trl_bridge.dataset(small_corpus, form="text", limit=4)
    trainer = make_trainer(function, data)
    before = {name: tensor.clone() for name, tensor in trainer.model.named_parameters()}
    trainer.train()
    assert len(function.heard) == 3
    recipe = cw.reward("tier")
    seen = set()
    for completions, _, columns, given in function.heard:
        for task_id, text, value in zip(columns["task_id"], completions, given, strict=True):
            assert value == recipe.score(small_corpus.task(task_id), text, ir="json").total
            seen.add(value)
    assert len(seen) > 2, "the policy neither always nor never earns anything"
    logs = [row for row in trainer.state.log_history if "reward" in row]
    for row, (_, _, _, given) in zip(logs, function.heard, strict=True):
        assert row["reward"] == pytest.approx(sum(given) / len(given), abs=1e-6)
        assert row["rewards/tier/mean"] == pytest.approx(row["reward"], abs=1e-6)
        assert 0 <= row["tier/names"] <= 1
        assert row["tier/masked"] == 0
    assert any(not torch.equal(before[name], tensor) for name, tensor in trainer.model.named_parameters())


def test_episodes_of_several_turns_have_exact_ids_masks_and_log_probabilities(
    small_corpus: Any, tokenizer: Any, make_trainer: Callable[..., Any]
) -> None:
    limits = cw.TurnLimits(assistant_turns=3, observation_tokens=120)
    function = Listening(trl_bridge.reward("tier", corpus=small_corpus))
    rollouts = trl_bridge.rollout_func("tier", corpus=small_corpus, limits=limits)
    data = trl_bridge.dataset(small_corpus, form="text", limit=4)
    trainer = make_trainer(function, data, rollout_func=rollouts, options={"max_completion_length": 600})
    prompts = data["prompt"][:]
    torch.manual_seed(1)
    drawn = rollouts(prompts, trainer)
    several = 0
    for row, prompt in enumerate(prompts):
        ids, mask = drawn["completion_ids"][row], drawn["env_mask"][row]
        logprobs, episode = drawn["logprobs"][row], drawn["rollout"][row]
        assert drawn["prompt_ids"][row] == [
            tokenizer.bos_token_id, *tokenizer.encode(prompt, add_special_tokens=False)
        ]  # fmt: skip
        assert len(ids) == len(mask) == len(logprobs) <= 600
        assert mask[-1] == 1
        several += len(episode.ranges) > 1
        sampled = [token for token, own in zip(ids, mask, strict=True) if own]
        assert sampled == [token for turn in episode.attempt.turns for token in turn.completion.token_ids]
        whole = torch.tensor([drawn["prompt_ids"][row] + ids])
        with torch.no_grad():
            wanted = torch.log_softmax(trainer.model.eval()(whole).logits[0].float(), -1)
        first = len(drawn["prompt_ids"][row])
        for at, (token, own) in enumerate(zip(ids, mask, strict=True)):
            expected = float(wanted[first + at - 1, token]) if own else 0.0
            assert logprobs[at] == pytest.approx(expected, abs=1e-4)
    assert several, "no episode had a second turn"
    elsewhere = trl_bridge.rollout_func("tier", corpus=small_corpus, limits=limits, executor="process", workers=2)
    torch.manual_seed(1)
    with elsewhere.pool:
        again = elsewhere(prompts, trainer)
    for name in ("prompt_ids", "completion_ids", "env_mask", "logprobs"):
        assert again[name] == drawn[name]
    assert [one.attempt.turns for one in again["rollout"]] == [one.attempt.turns for one in drawn["rollout"]]
    assert rollouts.described["environment_tokens"] == sum(mask.count(0) for mask in drawn["env_mask"])


def test_the_trainer_trains_on_episodes(small_corpus: Any, make_trainer: Callable[..., Any]) -> None:
    """What is rewarded is the episode, and what TRL counts as completion tokens is what was sampled."""
    limits = cw.TurnLimits(assistant_turns=2, observation_tokens=120)
    function = Listening(trl_bridge.reward("tier", corpus=small_corpus))
    rollouts = trl_bridge.rollout_func("tier", corpus=small_corpus, limits=limits)
    data = trl_bridge.dataset(small_corpus, form="text", limit=4)
    trainer = make_trainer(
        function, data, rollout_func=rollouts, options={"max_completion_length": 600, "max_steps": 2}
    )
    trainer.train()
    logs = [row for row in trainer.state.log_history if "reward" in row]
    recipe = cw.reward("tier")
    for row, (_, ids, columns, given) in zip(logs, function.heard, strict=True):
        episodes = columns["rollout"]
        assert [one.task.id for one in episodes] == columns["task_id"]
        assert given == [recipe.score_attempt(one.attempt).total for one in episodes]
        assert ids == [list(one.response_ids) for one in episodes]
        counts = [sum(one.mask) for one in episodes]
        assert row["completions/mean_length"] == pytest.approx(sum(counts) / len(counts))


def test_conversational_prompts_go_through_the_chat_template(
    small_corpus: Any, tokenizer: Any, make_trainer: Callable[..., Any]
) -> None:
    rollouts = trl_bridge.rollout_func("tier", corpus=small_corpus)
    data = trl_bridge.dataset(small_corpus, limit=1)
    function = trl_bridge.reward("tier", corpus=small_corpus)
    from transformers import AutoModelForCausalLM

    trainer = make_trainer(function, data, rollout_func=rollouts, options={"max_completion_length": 3})
    trainer.model = AutoModelForCausalLM.from_config(
        type(trainer.model.config)(**{**trainer.model.config.to_dict(), "max_position_embeddings": 8192})
    )
    trainer.model_wrapped = trainer.model
    drawn = rollouts(data["prompt"][:], trainer)
    for row, task in enumerate(small_corpus["train"][:1]):
        prompt = data["prompt"][row]
        assert prompt[-1]["content"] == task.query
        expected = tokenizer.apply_chat_template(
            [{"role": one["role"], "content": one["content"]} for one in prompt],
            tokenize=False,
            add_generation_prompt=True,
        )
        assert drawn["prompt_ids"][row] == tokenizer.encode(expected, add_special_tokens=False)
        assert drawn["rollout"][row].task.id == task.id


def test_a_masked_episode_moves_nothing(small_corpus: Any, make_trainer: Callable[..., Any]) -> None:
    """TRL leaves samples without a reward out of the baseline; a whole batch of them leaves the weights (KL aside)."""

    class Broken:
        """An environment whose server is down."""

        name, pure = "broken", True
        tools = small_corpus.environment.tools

        def open(self, scenario: str = "", seed: int = 0) -> Any:
            raise cw.InfrastructureFailure("the server is down")

    from attrs import evolve

    from callwright.pipeline import open_pipeline

    pipeline = evolve(open_pipeline("tier", small_corpus), environment=Broken())
    function = Listening(trl_bridge.reward(pipeline))
    rollouts = trl_bridge.rollout_func(pipeline, limits=cw.TurnLimits(assistant_turns=2), retries=2)
    data = trl_bridge.dataset(small_corpus, form="text", limit=4)
    options = {"beta": 0.0, "max_steps": 1, "max_completion_length": 600}
    trainer = make_trainer(function, data, rollout_func=rollouts, options=options)
    trainer.train()
    _, _, columns, given = function.heard[0]
    lost = [one.masked is not None for one in columns["rollout"]]
    assert any(lost)
    assert [value is None for value in given] == lost
    assert {one.retried for one in columns["rollout"] if one.masked} == {2}
    row = next(row for row in trainer.state.log_history if "reward" in row)
    kept = [value for value in given if value is not None]
    assert row["tier/masked"] == pytest.approx(sum(lost) / len(lost))
    if kept:
        assert row["reward"] == pytest.approx(sum(kept) / len(kept), abs=1e-6)


def test_vllm_of_the_trainer_is_sampled_from_by_ids(
    small_corpus: Any, tokenizer: Any, make_trainer: Callable[..., Any]
) -> None:
    """A stand-in for TRL's own vLLM: what it gives beyond an end token or the room is cut."""
    from types import SimpleNamespace

    task = small_corpus["train"][3]
    gold = [*tokenizer.encode(cw.parser("json").render(task.program), add_special_tokens=False), tokenizer.eos_token_id]
    asked: list[Any] = []

    def generate(prompts: Any, images: Any, num_generations: int) -> Any:
        asked.append((prompts, images, num_generations))
        ids = [[*gold, 7, 7] for _ in prompts]
        return prompts, ids, [[[-0.25 * at] for at in range(len(row))] for row in ids], None

    rollouts = trl_bridge.rollout_func(
        "tier",
        corpus=small_corpus,
        limits=cw.TurnLimits(assistant_turns=2, turn_tokens=len(gold) + 1, observation_tokens=120),
    )
    data = trl_bridge.dataset(small_corpus, form="text", limit=4)
    trainer = make_trainer(trl_bridge.reward("tier", corpus=small_corpus), data, options={"max_completion_length": 600})
    trainer.use_vllm, trainer.vllm_generation = True, SimpleNamespace(generate=generate)
    drawn = rollouts([data["prompt"][3]], trainer)
    (episode,) = drawn["rollout"]
    assert [turn.completion.token_ids for turn in episode.attempt.turns] == [tuple(gold)] * 2
    assert asked[0] == ([drawn["prompt_ids"][0]], None, 1)
    assert asked[1][0] == [[*drawn["prompt_ids"][0], *drawn["completion_ids"][0][: -len(gold)]]]
    assert drawn["logprobs"][0][: len(gold)] == [-0.25 * at for at in range(len(gold))]
    assert cw.reward("tier").score_attempt(episode.attempt).total == 1.0
    short = trl_bridge.rollout_func("tier", corpus=small_corpus, limits=cw.TurnLimits(assistant_turns=1, turn_tokens=5))
    drawn = short([data["prompt"][3]], trainer)
    assert drawn["completion_ids"] == [gold[:5]]
    assert drawn["rollout"][0].stop == "tokens"


@pytest.mark.parametrize("seed", [0, 1])
def test_a_task_fixes_its_world(seed: int, vault: Any, tokenizer: Any, make_trainer: Callable[..., Any]) -> None:
    from types import SimpleNamespace

    gold = cw.parser("json").render(vault["train"][0].program)
    ids = [*tokenizer.encode(gold, add_special_tokens=False), tokenizer.eos_token_id]

    def generate(prompts: Any, images: Any, num_generations: int) -> Any:
        return prompts, [ids] * len(prompts), [[[-0.5]] * len(ids)] * len(prompts), None

    rollouts = trl_bridge.rollout_func("tier", corpus=vault, seed=seed)
    function = trl_bridge.reward("tier", corpus=vault, seed=seed)
    data = trl_bridge.dataset(vault, form="text")
    trainer = make_trainer(function, data, options={"max_completion_length": 600})
    trainer.use_vllm, trainer.vllm_generation = True, SimpleNamespace(generate=generate)
    drawn = rollouts(data["prompt"][:], trainer)
    assert function([""] * 2, [""] * 2, None, rollout=drawn["rollout"]) == [1.0, 1.0]
    assert vault.opened == [5, 9], "the reward reads the episodes and opens nothing"


def test_a_response_that_never_began_is_one_token_without_loss(
    small_corpus: Any, tokenizer: Any, make_trainer: Callable[..., Any]
) -> None:
    from types import SimpleNamespace

    def generate(prompts: Any, images: Any, num_generations: int) -> Any:
        raise cw.InfrastructureFailure("vLLM is gone")

    rollouts = trl_bridge.rollout_func("tier", corpus=small_corpus)
    data = trl_bridge.dataset(small_corpus, form="text", limit=4)
    function = trl_bridge.reward("tier", corpus=small_corpus)
    trainer = make_trainer(function, data)
    trainer.use_vllm, trainer.vllm_generation = True, SimpleNamespace(generate=generate)
    drawn = rollouts(data["prompt"][:1], trainer)
    assert (drawn["completion_ids"], drawn["env_mask"], drawn["logprobs"]) == (
        [[tokenizer.pad_token_id]],
        [[0]],
        [[0.0]],
    )
    assert function([""], [""], None, rollout=drawn["rollout"]) == [None]


def test_trainers_that_cannot_be_sampled_turn_by_turn_are_refused() -> None:
    from types import SimpleNamespace

    from callwright_plugins.trl_bridge.generating import check_trainer

    def trainer(processes: int, **options: bool) -> Any:
        names = ("use_transformers_continuous_batching", "use_vllm", "is_fsdp_enabled", "is_deepspeed_enabled")
        given = {name: options.get(name, False) for name in names}
        return SimpleNamespace(accelerator=SimpleNamespace(num_processes=processes), **given)

    check_trainer(trainer(1, use_vllm=True))
    check_trainer(trainer(4))
    with pytest.raises(cw.UsageError, match="continuous_batching"):
        check_trainer(trainer(1, use_transformers_continuous_batching=True))
    for name in ("use_vllm", "is_fsdp_enabled", "is_deepspeed_enabled"):
        with pytest.raises(cw.UsageError, match="several processes"):
            check_trainer(trainer(2, **{name: True}))


def test_prompts_of_no_task_are_said(small_corpus: Any, make_trainer: Callable[..., Any]) -> None:
    rollouts = trl_bridge.rollout_func("tier", corpus=small_corpus)
    data = trl_bridge.dataset(small_corpus, form="text", limit=4)
    trainer = make_trainer(trl_bridge.reward("tier", corpus=small_corpus), data)
    with pytest.raises(DataError, match="this prompt is of no task"):
        rollouts(["what?"], trainer)
    with pytest.raises(DataError, match="has no 'task_id'"):
        rollouts([[{"role": "user", "content": "what?"}]], trainer)
    with pytest.raises(DataError, match="not an episode of rollout_func"):
        trl_bridge.reward("tier", corpus=small_corpus)([""], [""], None, rollout=["x"])


def test_users_of_a_prompts_samples_differ_whichever_process_samples_them(
    small_corpus: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a group of four that two processes share: TRL gives each of them two of its prompts."""
    from types import SimpleNamespace

    from callwright_plugins.trl_bridge import rollouts

    task = evolve(small_corpus["train"][0], user=cw.UserSpec("replayed"))
    codec = SimpleNamespace(ends=frozenset(), prompt_ids=lambda messages, task: (1,))
    monkeypatch.setattr(rollouts, "drive_batch", lambda *_, **__: None)

    def seeds(process: int, processes: int) -> list[int]:
        config = SimpleNamespace(get_text_config=lambda: SimpleNamespace())
        trainer: Any = SimpleNamespace(
            accelerator=SimpleNamespace(
                num_processes=processes,
                process_index=process,
                unwrap_model=lambda model: SimpleNamespace(config=config),
            ),
            state=SimpleNamespace(global_step=2, max_steps=4),
            processing_class=tokenizer,
            model=None,
            max_completion_length=9,
            eos_token_ids=[0],
            **dict.fromkeys(
                ("use_transformers_continuous_batching", "use_vllm", "is_fsdp_enabled", "is_deepspeed_enabled"), False
            ),
        )
        function = trl_bridge.rollout_func("tier", corpus=small_corpus, codec=lambda _: codec)  # type: ignore[arg-type,return-value]
        monkeypatch.setattr(function, "_task", lambda prompt: task)
        prompts = [[{"role": "user", "content": "?"}]] * 2
        return [one.conditions.seed for one in function(prompts, trainer)["rollout"]]

    assert len({*seeds(0, 2), *seeds(1, 2)}) == 4
    assert len(set(seeds(0, 1))) == 2
