"""An agent that nobody changed trains the policy: the ids that the gateway records give the update of the same episodes
driven directly."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from scripted_engine import TASK, ByteTokenizer, block
from transformers import LlamaConfig, LlamaForCausalLM

import callwright as cw
from callwright.episodes import ChatCodec, EngineOutput
from callwright.episodes.sampling import draw_seed
from callwright.episodes.token_line import TokenLine
from callwright.errors import UsageError
from callwright.registration import Reach
from callwright.training.evaluation import judge
from callwright.walk.conditions import Progress
from callwright.walk.limits import TurnLimits
from callwright_plugins.local_trainer.forward.generation import Sampled
from callwright_plugins.local_trainer.learning.steps import adamw
from callwright_plugins.local_trainer.learning.update import descend, make_batch, prepare
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.local_trainer.randomness import seed_of
from callwright_plugins.local_trainer.reaching import reaches
from callwright_plugins.local_trainer.sampling import agents
from callwright_plugins.local_trainer.sampling.agents import agent_groups, agents_of
from callwright_plugins.local_trainer.sampling.rollouts import Group, ScoredSample, rewards_of

ROOT = Path(__file__).parents[4]
pytest.importorskip("uvicorn", reason="needs uvicorn: pip install 'callwright[gateway]'")

AGENT = [sys.executable, str(ROOT / "tests" / "plugins" / "gateway" / "support" / "bare_agent.py")]
LIMITS = TurnLimits(assistant_turns=6, turn_tokens=400, context_tokens=4000)
#: Right in two turns, right at once, wrong, and no call at all.
SCRIPTS = (
    (block("a"), block("b"), "Both are in."),
    (block("a", "b"), "Done."),
    (block("bad"), block("a"), "One is in."),
    ("I would rather not.",),
)


class Corpus:
    """One task."""

    name = "one-v1"
    environment = TASK.environment
    splits = {"train": 1}  # noqa: RUF012

    def __getitem__(self, split: str) -> list[cw.Task]:
        return [TASK]

    def task(self, task_id: str) -> cw.Task:
        return TASK


class Scripted:
    """Stands for the policy's sampling: what is written hangs on the seed of the episode alone."""

    def __init__(self, *given: Any) -> None:
        self.codec = ChatCodec(ByteTokenizer(), tools_in_template=True)

    def __call__(self, live: Any) -> list[EngineOutput]:
        made = []
        for one in live:
            script = SCRIPTS[one.conditions.seed % len(SCRIPTS)]
            ids = (*self.codec.tokenizer.encode(script[len(one.history)]), 257)
            made.append(EngineOutput(ids, (-0.5,) * len(ids)))
        return made


class Tokenizer(ByteTokenizer):
    pad_token_id = 257
    padding_side = "right"


def policy() -> Policy:
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=258,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=4096,
        eos_token_id=257,
        pad_token_id=257,
    )
    return Policy(LlamaForCausalLM(config).eval(), Tokenizer(), torch.device("cpu"))


def pipeline() -> cw.Pipeline:
    conditions = cw.Conditions(limits=LIMITS, seed=11)
    return cw.Pipeline(
        Corpus(),
        "tier",
        "hermes",
        algorithm=cw.default_registry().create("algorithm", "grpo", kl_weight=0.0),
        conditions=conditions,
    )


def directly(made: cw.Pipeline, options: Options, purpose: tuple[int | str, ...]) -> list[Group]:
    """The same conversations, led here: no agent, no server, and every call executed again."""
    codec, engine, form = ChatCodec(ByteTokenizer(), tools_in_template=True), Scripted(), cw.parser("hermes")
    samples = []
    for copy in range(options.group):
        conditions = cw.Conditions(limits=LIMITS, seed=draw_seed(seed_of(*purpose), TASK.id, copy))
        line = TokenLine(codec.conversation_ids([cw.Message.user(TASK.query)], TASK.offered.values()))
        session, history = TASK.environment.open(), list[cw.Completion]()
        while True:
            (output,) = engine([SimpleNamespace(conditions=conditions, history=history)])
            line.sampled(output.token_ids, output.logprobs)
            history.append(cw.Completion(codec.text(output.token_ids), output.token_ids, output.logprobs))
            program = form.parse(history[-1].text)
            if not isinstance(program, cw.Program) or not program.calls:
                break
            told = [cw.environments.tell(session.call(call.tool, dict(call.arguments))) for call in program.calls]
            line.heard(codec.observation_ids((), output.token_ids, [cw.Message.tool(text) for text in told]))
        ((attempt, reward),) = made.scoring([made.attempt(TASK, history)])
        sampled = Sampled(line.response_ids, line.logprobs, False, line.mask)
        samples.append(ScoredSample(sampled, line, attempt, reward, judge(attempt)))  # type: ignore[arg-type]
    return [Group(TASK, line.prompt_ids, tuple(samples))]


def updated(trained: Policy, made: cw.Pipeline, groups: list[Group], options: Options, optimiser: Any) -> None:
    rewards, valid, _ = rewards_of(groups)
    assert bool(valid.all())
    assert len(set(rewards.flatten().tolist())) > 1
    advantages = made.algorithm.advantages(rewards, valid)
    batch = make_batch(groups, advantages, valid, 2000)
    prepared = prepare(trained, None, made.algorithm, batch, options, None, None)
    descend(trained, made.algorithm, optimiser, prepared, options, 1e-2)


def test_two_steps_through_an_agent_leave_the_weights_of_two_steps_driven_directly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agents, "Engine", Scripted)
    options = Options(agent=AGENT, group=6, max_new_tokens=400, agents_at_once=3)
    one, other, start = policy(), policy(), policy()
    first, second = (adamw(each.model, options.weight_decay, options.betas) for each in (one, other))
    made = pipeline()
    for step in range(2):
        purpose = (11, "sampling", step, 0)
        asked = made, one, [TASK], options, LIMITS, purpose, Progress(step, 2), lambda part: None
        through = agent_groups(*asked)
        driven = directly(made, options, purpose)
        assert through[0].prompt == driven[0].prompt
        for left, right in zip(through[0].rollouts, driven[0].rollouts, strict=True):
            assert (left.sampled.ids, left.sampled.mask) == (right.sampled.ids, right.sampled.mask)
            assert left.reward.total == right.reward.total
            assert left.verdict.answer == right.verdict.answer
            assert len(left.episode.ranges) == len(left.attempt.turns)
        updated(one, made, through, options, first)
        updated(other, made, driven, options, second)
    pairs = list(zip(one.model.parameters(), other.model.parameters(), start.model.parameters(), strict=True))
    assert all(torch.equal(left, right) for left, right, _ in pairs)
    assert any(not torch.equal(left, begun) for left, _, begun in pairs)


def test_every_branch_is_trained_on_with_the_advantage_of_its_rollout() -> None:
    def sampled(*ids: int) -> Sampled:
        return Sampled(ids, (-0.5,) * len(ids), False, (1,) * len(ids))

    silent = Sampled((9, 9), (0.0, 0.0), False, (0, 0))
    rollouts: list[Any] = [
        ScoredSample(sampled(1, 2), None, None, None, None, (((5,), sampled(1)), ((6,), sampled(2)), ((7,), silent))),  # type: ignore[arg-type]
        ScoredSample(sampled(3), None, None, None, None, (((5,), sampled(3)),)),  # type: ignore[arg-type]
        ScoredSample(sampled(4), None, None, None, None, (((5,), sampled(4)),)),  # type: ignore[arg-type]
    ]
    group = Group(TASK, (5,), tuple(rollouts))
    batch = make_batch([group], torch.tensor([[1.0, -2.0, 3.0]]), torch.tensor([[True, True, False]]))
    assert batch.prompts == [(5,), (6,)]
    assert (batch.owners, batch.completions) == ([0, 1, 0], [(1,), (2,), (3,)])
    assert batch.advantages.tolist() == [1.0, 1.0, -2.0]


def test_an_agent_that_dies_masks_its_sample() -> None:
    options = Options(agent=[*AGENT, "dies"], group=2, retries=0, max_new_tokens=40)
    asked = pipeline(), policy(), [TASK], options, LIMITS, (1,), Progress(0, 1), lambda part: None
    (group,) = agent_groups(*asked)
    assert [one.reward.total for one in group.rollouts] == [None, None]
    assert "no such luck" in str(group.rollouts[0].episode.masked)


def test_a_model_without_a_template_is_refused() -> None:
    made = policy()
    made.tokenizer.chat_template = None
    with pytest.raises(UsageError, match="needs a model with a chat template"):
        agents_of(pipeline(), made, Options(agent=AGENT), LIMITS)


def test_what_a_recipe_would_start_is_told() -> None:
    assert list(reaches({"steps": 3})) == []
    wanted = Reach("process", "starts for each rollout: python 'my agent.py'", ("agent",))
    assert list(reaches({"agent": ["python", "my agent.py"]})) == [wanted]
