"""The way through vLLM, with a stand-in for TRL's engine: vLLM itself needs a GPU or a build of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from callwright.training.run_folder import Run
from callwright_plugins.trl_trainer.generating import TrainerEngine
from callwright_plugins.trl_trainer.grpo import RecipeGRPOTrainer

Train = Callable[..., Run]


class StandIn:
    """Answers as TRL's engine does, with the tokens that the trainer itself would draw, ``off`` nats beside its own."""

    def __init__(self, engine: Callable[[], TrainerEngine], seeds: list[list[int]], off: float) -> None:
        self.engine, self.seeds, self.off = engine, seeds, off
        self.synchronised = 0

    def sync_weights(self) -> None:
        self.synchronised += 1

    def generate(self, prompts: Any, images: Any, num_generations: int, profiler: Any) -> Any:
        assert num_generations == 1
        made = self.engine()._transformers([tuple(one) for one in prompts], 12, self.seeds[-1])
        logprobs = [[[value + self.off] for value in row] for _, row in made]
        return prompts, [ids for ids, _ in made], logprobs, None


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], list[StandIn]]:
    begin, generate = RecipeGRPOTrainer.__init__, TrainerEngine._generate

    def install(off: float) -> list[StandIn]:
        made: list[StandIn] = []
        seeds: list[list[int]] = []
        engines: list[TrainerEngine] = []

        def begun(self: Any, **arguments: Any) -> None:
            begin(self, **arguments)
            self.use_vllm, self._last_loaded_step = True, -1
            self.vllm_importance_sampling_correction = True
            self.vllm_importance_sampling_mode = "token_truncate"
            self.vllm_importance_sampling_clip_max = 3.0
            self.vllm_generation = StandIn(lambda: engines[-1], seeds, off)
            made.append(self.vllm_generation)

        def seen(engine: TrainerEngine, contexts: Any, longest: int, own: Any) -> Any:
            engines.append(engine)
            seeds.append(list(own))
            return generate(engine, contexts, longest, own)

        monkeypatch.setattr(RecipeGRPOTrainer, "__init__", begun)
        monkeypatch.setattr(TrainerEngine, "_generate", seen)
        return made

    return install


def test_an_engine_that_agrees_changes_nothing(
    train: Train, stand_in: Callable[[float], list[StandIn]], tmp_path: Path
) -> None:
    plain = train(tmp_path / "plain")
    made = stand_in(0.0)
    served = train(tmp_path / "served")
    assert [one.synchronised for one in made] == [2]
    expected, found = (load_file(run.checkpoints / "final" / "model.safetensors") for run in (plain, served))
    assert max(float((found[name] - expected[name]).abs().max()) for name in expected) < 1e-5
    assert plain.rows("rollouts.jsonl") == served.rows("rollouts.jsonl")


def test_an_engine_that_disagrees_is_corrected(
    train: Train, stand_in: Callable[[float], list[StandIn]], tmp_path: Path
) -> None:
    plain = train(tmp_path / "plain", "algorithm.kl_weight=0.0")
    stand_in(-0.5)
    served = train(tmp_path / "served", "algorithm.kl_weight=0.0")
    first, second = (run.rows("metrics.jsonl")[0] for run in (plain, served))
    # Every token was less likely under the engine by the factor exp(-0.5), and weighs exp(0.5) for it.
    assert second["gradient_norm"] / first["gradient_norm"] == pytest.approx(2.718281828**0.5, rel=1e-4)
