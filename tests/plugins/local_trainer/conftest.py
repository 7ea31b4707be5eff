from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from callwright.pipeline import Pipeline, build_pipeline
from callwright.plugins import Registry, load_plugins
from callwright.recipe_file import parse_recipe
from callwright.walk.reward import RewardComponent
from callwright_plugins import json_ir, local_trainer, policy_gradient, tier_rewards, toolworld
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.models.vocabulary import build_tokenizer
from callwright_plugins.toolworld.corpus import ToolWorldCorpus

#: What worker processes import, too: they find it by the path that they inherit, or that their environment names.
SUPPORT = str(Path(__file__).parent / "support")
if SUPPORT not in sys.path:
    sys.path.insert(0, SUPPORT)
if SUPPORT not in os.environ.get("PYTHONPATH", "").split(os.pathsep):
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [SUPPORT, os.environ.get("PYTHONPATH", "")]))

WORDS = ["Paris", "Rome", ' {"', '"}', "GetWeather", " in", " the", "0", "1"]

SMALL = {
    "vocab_size": 300,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 128,
    "initializer_range": 0.4,
}

RECIPE = """
name = "small"
seed = 7
corpus = "toolworld-mini-v1"

# No completion of 12 tokens ends, and under a floor all of them would be worth the same.
[reward]
name = "tier"
truncated = "as_is"

[algorithm]
name = "bn-grpo"
kl_weight = 0.1

[model.tiny]
width = 16
layers = 1
heads = 2
ffn = 16

[trainer]
name = "local"
steps = 4
prompts = 2
group = 3
max_new_tokens = 12
checkpoint_every = 2
evaluate_every = 2
evaluation_batch = 8
rollouts_per_step = 2

[trainer.warm_start]
steps = 12
batch = 4
warm_up = 2
count = 20
"""


@pytest.fixture(scope="session")
def variety() -> RewardComponent:
    from different_tokens import Variety

    return Variety(12)


def _model(kind: str) -> Any:
    torch.manual_seed(5)
    if kind == "gpt2":
        config = GPT2Config(vocab_size=300, n_embd=32, n_layer=2, n_head=4, n_positions=128, initializer_range=0.4)
        return GPT2LMHeadModel(config).eval()
    if kind == "mistral":
        return MistralForCausalLM(MistralConfig(**SMALL, sliding_window=6)).eval()
    config_class, model_class = {
        "llama": (LlamaConfig, LlamaForCausalLM),
        "qwen2": (Qwen2Config, Qwen2ForCausalLM),
        "qwen3": (Qwen3Config, Qwen3ForCausalLM),
    }[kind]
    return model_class(config_class(**SMALL)).eval()


@pytest.fixture(scope="session")
def make_policy() -> Callable[[str], Policy]:
    """A policy of random weights with one of the architectures, and the small tokenizer."""

    def make(kind: str) -> Policy:
        tokenizer = build_tokenizer(WORDS)
        model = _model(kind)
        for config in (model.config, model.generation_config):
            config.eos_token_id, config.pad_token_id = tokenizer.eos_token_id, tokenizer.pad_token_id
        return Policy(model, tokenizer, torch.device("cpu"))

    return make


@pytest.fixture(scope="session")
def registry() -> Registry:
    return make_registry()


@pytest.fixture
def fresh_registry() -> Callable[[], Registry]:
    return make_registry


def make_registry() -> Registry:
    modules = (json_ir, tier_rewards, toolworld, policy_gradient, local_trainer)
    return load_plugins(entry_points=False, extra={module.__name__: module for module in modules})


@pytest.fixture(scope="session")
def small_recipe() -> str:
    return RECIPE


@pytest.fixture(scope="session")
def small_corpus() -> ToolWorldCorpus:
    return ToolWorldCorpus(train_size=20, evaluation_size=1)


@pytest.fixture(scope="session")
def make_pipeline(registry: Registry, small_corpus: ToolWorldCorpus) -> Callable[..., Pipeline]:
    """A pipeline of the small recipe with ``--set`` overrides."""

    def make(*overrides: str, corpus: Any = None, **more: Any) -> Pipeline:
        loaded = parse_recipe(RECIPE, "small.toml", overrides)
        return build_pipeline(loaded, more.pop("registry", registry), corpus=corpus or small_corpus, **more)

    return make
