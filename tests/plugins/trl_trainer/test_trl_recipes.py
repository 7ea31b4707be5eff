"""What a recipe may say to the trainer ``trl``: options, what is refused by name, what differs, and plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from structlog.testing import capture_logs

from callwright.errors import CallwrightError, RecipeError, UsageError
from callwright.pipeline import Pipeline
from callwright.plugins import Registry, default_registry
from callwright.recipe_file import load_recipe, parse_recipe, shipped_recipes
from callwright.training.dry_runs.memory_plan import too_much
from callwright.training.recipe_run import prepare
from callwright.walk.limits import SINGLE_TURN
from callwright_plugins.trl_trainer.generating import SeededDraws
from callwright_plugins.trl_trainer.memory import plan
from callwright_plugins.trl_trainer.options import Model, Options
from callwright_plugins.trl_trainer.trainer import TRLTrainer

REFUSED = {
    "trainer.critic.learning_rate=0.1": "the trainer 'trl' has no 'critic'",
    "trainer.zero_stage=3": "no option of the trainer 'trl' named 'zero_stage'",
    "trainer.prompts=3": "which 1 processes cannot share in 2 mini-batches",
    "trainer.micro_batches=3": "which 3 equal 'micro_batches' cannot hold",
    "trainer.quantization=4bit": "add the table 'lora'",
    "trainer.lora.dropout=0.1": "no option of the trainer 'trl' in 'lora' named 'dropout'",
    "trainer.vllm.mode=colocate": "device = 'cpu' has neither vLLM",
    "trainer.warm_start.foo=1": "in 'warm_start' named 'foo'",
    "trainer.curriculum=[{until=9, depths=[1]}, {until=4, depths=[2]}]": "each must end after the one before",
    "algorithm=ppo": "no counterpart of the algorithm 'ppo'",
    "algorithm=rloo": "no counterpart of the algorithm 'rloo'",
    "algorithm=reinforce++": "no counterpart of the algorithm 'reinforce\\+\\+'",
    "algorithm.kl_in=reward": "TRL's KL term stands in the loss",
    "algorithm.kl_estimator=k2": "TRL estimates the divergence by k3",
    "algorithm.entropy_weight=0.01": "TRL divides its entropy term by the tokens of a micro-batch",
    "model=nowhere/at/all": "nowhere/at/all is not a directory",
}


@pytest.mark.parametrize("setting", REFUSED)
def test_what_cannot_be_followed_is_refused_by_name(setting: str, recipe: str, registry: Registry) -> None:
    loaded = parse_recipe(recipe, "small.toml", ["trainer.mini_batches=2", setting])
    with pytest.raises(CallwrightError, match=REFUSED[setting]):
        prepare(loaded, registry)


@pytest.mark.parametrize(
    ("model", "offline", "said"),
    [
        ("nowhere", True, "HF_HUB_OFFLINE is set"),
        ("nowhere", False, ""),
        ("models/YOURS", False, "models/YOURS is not a directory, nor a name such as"),
        ("models-of-nobody/small", True, "HF_HUB_OFFLINE is set"),
        ("models-of-nobody/small", False, ""),
    ],
)
def test_a_model_that_is_not_there_is_said_before_anything_is_started(
    model: str,
    offline: bool,
    said: str,
    recipe: str,
    registry: Registry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", offline)
    loaded = parse_recipe(recipe, "small.toml", [f"model={model}"])
    with capture_logs() as logged:
        if said:
            with pytest.raises(RecipeError, match=said):
                prepare(loaded, registry)
        prepare(loaded, registry, planning=True)
    told = "planned without the model, which a run needs" if said else "the model is fetched before training begins"
    assert [one["event"] for one in logged] == [told]


def test_a_curriculum_that_outlasts_the_run_is_warned_of(recipe: str, registry: Registry) -> None:
    loaded = parse_recipe(recipe, "small.toml", ["trainer.curriculum=[{until=4000, depths=[1]}]"])
    with capture_logs() as logged:
        prepare(loaded, registry, planning=True)
    assert "the curriculum outlasts the run" in [one["event"] for one in logged]


def test_every_refusal_is_told_at_once(recipe: str, registry: Registry) -> None:
    settings = ["algorithm.entropy_weight=0.01", "algorithm.kl_estimator=k2"]
    with pytest.raises(RecipeError) as told:
        prepare(parse_recipe(recipe, "small.toml", settings), registry)
    assert "entropy_weight" in str(told.value)
    assert "kl_estimator" in str(told.value)


def test_the_ratio_of_responses_is_refused(recipe: str, registry: Registry) -> None:
    loaded = parse_recipe(recipe, "small.toml", ["algorithm=grpo", "algorithm.ratio=response"])
    with pytest.raises(CallwrightError, match=r"algorithm\.ratio = 'response'"):
        prepare(loaded, registry)


@pytest.mark.parametrize("name", [one for one in shipped_recipes() if load_recipe(one).recipe.trainer.name == "trl"])
def test_shipped_recipes_pass_a_dry_run_to_the_letter(name: str) -> None:
    # ToolRL's rows are not ours to ship, and Prove's are to be synthesised first; nothing of the plan but the length of
    # prompts depends on them.
    small = ["corpus=toolworld-mini-v1", "ir=json"] if name.startswith(("toolrl", "prove")) else []
    pipeline, trainer = prepare(load_recipe(name, small), default_registry())
    assert isinstance(trainer, TRLTrainer)
    told = trainer.dry_run(pipeline, strict=True)
    assert told["differences"] == []
    assert told["arguments"]["bf16"]
    parts = {row["key"]: row["GiB"] for row in told["memory"]}
    assert 2 < parts["peak"] < 20
    assert parts["peak"] == pytest.approx(
        sum(parts[key] for key in ("weights", "adapter", "reference", "gradients", "optimizer"))
        + max(parts["activations"] + parts["logits"], parts["keys and values"]), abs=0.05,
    )  # fmt: skip


def test_what_differs_is_listed_and_strict_fails_on_it(make_pipeline: Callable[..., Pipeline]) -> None:
    settings = ["trainer.device=cuda", "trainer.lora.rank=4", "trainer.quantization=4bit", "trainer.vllm.sleep=true"]
    pipeline = make_pipeline(*settings)
    trainer = pipeline.registry.create("trainer", "trl", **pipeline.recipe.recipe.trainer.options)
    told = trainer.dry_run(pipeline)
    assert [one["key"] for one in told["differences"]] == ["trainer.vllm", "trainer.quantization"]
    assert told["arguments"]["vllm_enable_sleep_mode"] is True
    with pytest.raises(UsageError, match=r"--strict-except trainer\.vllm,trainer\.quantization lets it pass"):
        trainer.dry_run(pipeline, strict=True)
    with pytest.raises(UsageError, match=r"--strict-except trainer\.vllm lets it pass"):
        trainer.dry_run(pipeline, strict=True, strict_except=["trainer.quantization"])
    trainer.dry_run(pipeline, strict=True, strict_except=["trainer.quantization", "trainer.vllm"])


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of transformers, about names that 5.0 has no others for
def test_the_arguments_are_those_that_trl_takes(make_pipeline: Callable[..., Pipeline], tmp_path: Path) -> None:
    from trl import GRPOConfig

    pipeline = make_pipeline("trainer.mini_batches=2", "trainer.iterations=3", "trainer.gradient_checkpointing=true")
    trainer = pipeline.registry.create("trainer", "trl", **pipeline.recipe.recipe.trainer.options)
    arguments = {**trainer.dry_run(pipeline)["arguments"], "output_dir": str(tmp_path)}
    config = GRPOConfig(**arguments)
    assert config.generation_batch_size == 8
    assert config.max_steps == 2 * 2 * 3
    assert config.gradient_accumulation_steps == 2
    assert config.steps_per_generation == 4


def test_a_plan_of_memory_for_all_weights() -> None:
    whole = {
        row["key"]: row["GiB"]
        for row in plan(Options(), Model(path="Qwen/Qwen3-0.6B"), SINGLE_TURN, prompt=100, kl=True)
    }
    assert whole["weights"] == whole["reference"] == whole["gradients"] == pytest.approx(2.22)
    assert whole["optimizer"] == pytest.approx(4.44)
    rows = [{"key": key, "GiB": size} for key, size in whole.items()]
    assert too_much(rows, 80 * 2**30) is None
    said = too_much(rows, 8 * 2**30)
    assert said is not None
    assert "a device has 8.0; the largest part is" in said
    unknown = plan(Options(), Model(path="some/model"), SINGLE_TURN, prompt=100, kl=True)
    assert [row["key"] for row in unknown] == ["unknown"]
    assert too_much(unknown, 1) is None


def test_a_row_draws_from_its_own_seed_and_from_the_distribution() -> None:
    torch.manual_seed(0)
    logits = torch.randn(1, 6) * 2
    seeds = list(range(4000))
    drawn = SeededDraws(seeds, 1.5, 1)
    tokens = drawn(torch.zeros(len(seeds), 1), logits.repeat(len(seeds), 1)).argmax(-1)
    expected = torch.softmax(logits[0] / 1.5, -1)
    counts = Counter(tokens.tolist())
    for token, share in enumerate(expected.tolist()):
        assert counts[token] / len(seeds) == pytest.approx(share, abs=0.025)
    assert drawn.logprobs()[:, 0].tolist() == pytest.approx(expected.log()[tokens].tolist(), abs=1e-5)
    alone = SeededDraws([seeds[17]], 1.5, 1)
    assert int(alone(torch.zeros(1, 1), logits).argmax(-1)) == int(tokens[17])


def test_the_local_trainer_is_asked_for_what_comes_first(make_pipeline: Callable[..., Pipeline]) -> None:
    assert make_pipeline().registry.spec("trainer", "local")
    without: Any = Options(warm_start=3)  # type: ignore[arg-type]  # the shorthand
    assert without.warm_start == {"steps": 3}
