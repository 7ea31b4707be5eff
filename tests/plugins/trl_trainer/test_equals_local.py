"""On the same tokens the trainer ``trl`` ends in the weights of the trainer ``local``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from attrs import evolve
from safetensors.torch import load_file

import callwright as cw
from callwright.language.program import Call, Program
from callwright.training.run_folder import Run
from callwright_plugins.local_trainer.learning.steps import adamw, learning_rate
from callwright_plugins.local_trainer.learning.update import Batch, update
from callwright_plugins.local_trainer.models.policy import Policy, load_policy, weights
from callwright_plugins.local_trainer.options import Options as LocalOptions
from callwright_plugins.local_trainer.sampling import episodes as local_episodes
from callwright_plugins.trl_trainer import course
from callwright_plugins.trl_trainer.generating import TrainerEngine
from callwright_plugins.trl_trainer.rollouts import Collected, Rollouts

Train = Callable[..., Run]

ALGORITHMS = {
    "grpo": ["algorithm.name=grpo", "algorithm.kl_weight=0.1", "algorithm.epsilon_high=0.3"],
    "bn-grpo": ["algorithm.name=bn-grpo", "algorithm.kl_weight=0.1", "algorithm.unbiased_kl=true"],
    "dapo": ["algorithm.name=dapo", "algorithm.kl_weight=0.0"],
    "dr-grpo": ["algorithm.name=dr-grpo", "algorithm.kl_weight=0.05"],
    "off-policy": [
        "algorithm.name=grpo", "algorithm.kl_weight=0.1", "algorithm.epsilon=0.02", "trainer.mini_batches=2",
        "trainer.iterations=2", "trainer.schedule=cosine", "trainer.weight_decay=0.1",
    ],
    "masked": ["algorithm.name=grpo", "reward=patchy", "trainer.group=8"],
    "masked-bn": ["algorithm.name=bn-grpo", "reward=patchy", "trainer.group=8", "trainer.micro_batches=4"],
    "turns": [
        "algorithm.name=dr-grpo", "turns.assistant_turns=3", "turns.user_turns=2", "turns.turn_tokens=40",
        "turns.total_tokens=300", "trainer.micro_batches=1", "trainer.warm_start.steps=0",
    ],
}  # fmt: skip


@pytest.fixture
def same_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the trainer ``local`` samples, ``trl`` samples after it, prompt by prompt.

    Where episodes have several turns, every second one begins with a call that executes: untrained models write none.
    """
    call = cw.parser("json").render(Program((Call(0, "GetTime", {}),)))
    said: dict[tuple[int, ...], list[Any]] = defaultdict(list)
    sample, generate = local_episodes.continue_contexts, TrainerEngine._generate

    def recorded(policy: Any, contexts: Any, *arguments: Any, **options: Any) -> Any:
        found = list(sample(policy, contexts, *arguments, **options))
        if arguments[0][0] == 40:
            ids = policy.completion_ids(call)
            found = [evolve(one, ids=ids, logprobs=(-1.0,) * len(ids), truncated=False) if row % 2 else one
                     for row, one in enumerate(found)]  # fmt: skip
        if options["temperature"]:
            for context, one in zip(contexts, found, strict=True):
                said[tuple(context)].append((list(one.ids), list(one.logprobs)))
        return found

    def replayed(engine: TrainerEngine, contexts: Any, longest: int, seeds: Any) -> Any:
        if not engine.temperature:
            return generate(engine, contexts, longest, seeds)
        return [said[tuple(context)].pop(0) for context in contexts]

    monkeypatch.setattr(local_episodes, "continue_contexts", recorded)
    monkeypatch.setattr(TrainerEngine, "_generate", replayed)


@pytest.mark.usefixtures("same_tokens")
@pytest.mark.parametrize("name", ALGORITHMS)
def test_two_steps_give_the_weights_of_the_local_trainer(name: str, train: Train, tmp_path: Path) -> None:
    settings = ALGORITHMS[name]
    local = train(tmp_path / "local", "trainer.name=local", *settings)
    other = train(tmp_path / "trl", "trainer.name=trl", *settings)
    before = load_file(tmp_path / "trl" / "warm_start" / "checkpoints" / "final" / "model.safetensors")
    expected, found = (load_file(run.checkpoints / "final" / "model.safetensors") for run in (local, other))
    moved = max(float((before[key] - expected[key]).abs().max()) for key in expected)
    assert moved > 1e-3
    assert max(float((found[key] - expected[key]).abs().max()) for key in expected) < 1e-5

    rows = [run.rows("metrics.jsonl") for run in (local, other)]
    if name == "turns":
        assert max(row["turns"] for row in rows[1]) > 1
        assert sum(row["environment_tokens"] for row in rows[1]) > 0
    for one, two in zip(*rows, strict=True):
        assert (one["masked"] > 0) == name.startswith("masked")
        for key in ("turns", "stops", "environment_tokens", "observations_cut", "retried"):
            assert one.get(key) == two.get(key)
        for key in (
            "reward",
            "masked",
            "reward_std",
            "tokens",
            "groups",
            "zero_variance",
            "resampling_rounds",
            "scores",
        ):
            assert one[key] == two[key]
        for key in ("loss", "gradient_norm", "learning_rate", "entropy", "clip_fraction"):
            assert two[key] == pytest.approx(one[key], abs=2e-6, rel=1e-4)
        assert ("kl" in one) == ("kl" in two)
        assert two.get("kl", 0.0) == pytest.approx(one.get("kl", 0.0), abs=1e-6)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of transformers, by peft
def test_two_steps_of_an_adapter_give_what_the_local_update_gives(
    train: Train, make_pipeline: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from peft import PeftModel, get_peft_model

    steps: list[Collected] = []
    collect = Rollouts.collect

    def kept(self: Rollouts, engine: Any, step: int) -> Collected:
        steps.append(collect(self, engine, step))
        return steps[-1]

    begun: dict[str, torch.Tensor] = {}
    begin = course.Callback.on_train_begin

    def looked_at(self: Any, args: Any, state: Any, control: Any, **more: Any) -> None:
        begun.update({name: value.clone() for name, value in weights(self.course.trainer.model).items()})
        begin(self, args, state, control, **more)

    monkeypatch.setattr(Rollouts, "collect", kept)
    monkeypatch.setattr(course.Callback, "on_train_begin", looked_at)
    run = train(tmp_path / "trl", "trainer.lora.rank=4", "trainer.lora.alpha=64.0", "trainer.learning_rate=0.01")

    pipeline = make_pipeline("trainer.lora.rank=4", "trainer.lora.alpha=64.0")
    algorithm = pipeline.algorithm
    base = run.path / "warm_start" / "checkpoints" / "final"
    reference = load_policy(base, device=torch.device("cpu"), form="chat")
    again = load_policy(base, device=torch.device("cpu"), form="chat")
    options = course.Options(steps=2, lora={"rank": 4, "alpha": 64.0})  # type: ignore[arg-type]
    model = get_peft_model(again.model, course.adapter(options))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(begun[name])
    policy = Policy(model, again.tokenizer, torch.device("cpu"))
    told = LocalOptions(steps=2, shared_prefix=False)
    optimiser = adamw(model, 0.0, (0.9, 0.95))
    for step, collected in enumerate(steps):
        places = collected.valid.nonzero().tolist()
        rollouts = [collected.groups[row].rollouts[column] for row, column in places]
        batch = Batch(
            [group.prompt for group in collected.groups],
            [row for row, _ in places],
            [one.ids for one in rollouts],
            torch.tensor([float(collected.advantages[row, column]) for row, column in places]),
            [one.mask for one in rollouts],
            12,
        )
        update(policy, reference, algorithm, optimiser, batch, told, learning_rate(step, 2, 0.01, 1, "constant"))

    expected = {name: value for name, value in weights(model).items() if "lora" in name}
    assert max(float((begun[name] - value).abs().max()) for name, value in expected.items()) > 1e-2
    saved = load_policy(base, device=torch.device("cpu"), form="chat").model
    found = weights(PeftModel.from_pretrained(saved, run.checkpoints / "adapter"))
    assert expected
    assert max(float((found[name] - value).abs().max()) for name, value in expected.items()) < 1e-5
