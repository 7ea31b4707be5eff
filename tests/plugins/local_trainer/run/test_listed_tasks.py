"""Training on a list of tasks, over an environment of functions, by a reward that is an object: no file, no plugin."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import callwright as cw
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.models.vocabulary import build_tokenizer

SHOP = Path(__file__).resolve().parents[4] / "benchmarks" / "lines_of_code" / "callwright_shop.py"


@pytest.fixture(scope="module")
def shop() -> ModuleType:
    spec = importlib.util.spec_from_file_location("callwright_shop", SHOP)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(5)
    tokenizer = build_tokenizer(["pear", "order", " of"])
    tokenizer.chat_template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<go>"
    config = LlamaConfig(
        vocab_size=300,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=8192,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    folder = tmp_path_factory.mktemp("model")
    Policy(LlamaForCausalLM(config), tokenizer, torch.device("cpu")).save(folder)
    return folder


def test_a_list_of_tasks_is_trained_on(shop: ModuleType, model: Path, tmp_path: Path) -> None:
    """The very program whose lines the documentation counts, with a tiny model and one short step; then it goes on."""
    short = {"steps": 1, "prompts": 2, "group": 2, "max_new_tokens": 6, "evaluation_tasks": 1}
    recipe: dict[str, Any] = {
        **shop.RECIPE,
        "model": {"path": str(model)},
        "trainer": {"name": "local", **short},
        "reward": {"name": "shop", "truncated": "as_is"},
    }
    run = cw.train(recipe, corpus=shop.tasks, reward=shop.reward, output=tmp_path / "run")
    (row,) = run.rows("metrics.jsonl")
    assert (row["rollouts"], row["masked"]) == (4, 0)
    assert run.read_json("evaluation.json")["after"]["n"] == 1
    assert {task.split for task in shop.tasks} == {"train"}  # which is evaluated on, as the only split that there is
    again = cw.train(recipe, corpus=shop.tasks, reward=shop.reward, output=tmp_path / "run")
    assert list(again.rows("metrics.jsonl")) == [row]


def test_without_tasks_it_is_said(shop: ModuleType) -> None:
    with pytest.raises(cw.UsageError, match="has no task"):
        cw.train(shop.RECIPE, corpus=[], reward=shop.reward)
