"""A whole run in which an agent does the tasks: evaluated and trained through the gateway, with rows like any run's."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from jsonschema import Draft202012Validator
from transformers import LlamaConfig, LlamaForCausalLM

import callwright as cw
from callwright.commands.file_formats import schema_of
from callwright.pipeline import build_pipeline, create_trainer
from callwright.recipe_file import parse_recipe
from callwright.training.run_folder import Run
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.models.vocabulary import build_tokenizer

pytest.importorskip("uvicorn", reason="needs uvicorn: pip install 'callwright[gateway]'")

AGENT = Path(__file__).parents[2] / "gateway" / "support" / "bare_agent.py"
TEMPLATE = (
    "{% for t in tools or [] %}{{ t.function.name }} {% endfor %}"
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<go>{% endif %}"
)
RECIPE = """
name = "an-agent"
seed = 5
ir = "hermes"
corpus = "toolworld-mini-v1"
algorithm = {{ name = "grpo", kl_weight = 0.0 }}

[reward]
name = "tier"
truncated = "as_is"

[turns]
assistant_turns = 3

[model]
path = "{model}"

[trainer]
name = "local"
agent = {agent}
agents_at_once = 2
steps = 1
prompts = 2
group = 2
max_new_tokens = 6
evaluation_tasks = 1
depths = [1]
rollouts_per_step = 4
rollout_logprobs = true
resampling_rounds = 0
"""


def model_in(folder: Path) -> Path:
    torch.manual_seed(5)
    tokenizer = build_tokenizer(["Paris", "GetWeather", " in", " the"])
    tokenizer.chat_template = TEMPLATE
    config = LlamaConfig(
        vocab_size=300,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=2048,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    Policy(LlamaForCausalLM(config), tokenizer, torch.device("cpu")).save(folder)
    return folder


def test_an_agent_trains_a_model(tmp_path: Path) -> None:
    agent = json.dumps([sys.executable, str(AGENT)])
    text = RECIPE.format(model=model_in(tmp_path / "model"), agent=agent)
    pipeline = build_pipeline(parse_recipe(text, "recipe.toml"), cw.default_registry())
    run = Run.create(tmp_path / "run", recipe_text=text, manifest={})
    create_trainer(pipeline.recipe, pipeline.registry).train(pipeline, run)
    (row,) = run.rows("metrics.jsonl")
    assert (row["groups"], row["rollouts"], row["masked"]) == (2, 4, 0)
    assert row["turns"] >= 1
    Draft202012Validator(schema_of("metrics")).validate(row)
    rollouts: list[Any] = run.rows("rollouts.jsonl")
    assert len(rollouts) == 4
    for one in rollouts:
        Draft202012Validator(schema_of("rollouts")).validate(one)
        assert "GetWeather" in one["prompt"] or "<user>" in one["prompt"]
        assert sum(value is not None for _, value in one["tokens"]) <= 6 * len(one["turns"])
        assert [turn["completion"] for turn in one["turns"]]
    evaluation = run.read_json("evaluation.json")
    assert evaluation["before"]["n"] == evaluation["after"]["n"] == 7
    assert (run.checkpoints / "final").is_dir()
