from __future__ import annotations

import contextlib
import io
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import callwright as cw

for package in ("torch", "trl", "datasets"):
    pytest.importorskip(package, reason="needs the extra 'trl'")

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")

CHATML = (
    "{% for m in messages %}<|begin|>{{ m['role'] }}\n{{ m['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|begin|>assistant\n{% endif %}"
)


@pytest.fixture(autouse=True)
def _their_warnings() -> Iterator[None]:
    """TRL, transformers and torch warn of things that are theirs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="session")
def small_corpus() -> Any:
    return cw.corpus("toolworld-mini-v1", train_size=24, evaluation_size=2)


@pytest.fixture(scope="session")
def tokenizer(small_corpus: Any) -> Any:
    from callwright_plugins.local_trainer.models.vocabulary import build_tokenizer

    words = [*small_corpus.vocabulary(), "<|begin|>", "user\n", "assistant\n", "system\n", "tool\n"]
    made = build_tokenizer(words)
    made.chat_template = CHATML
    return made


@pytest.fixture(scope="session")
def taught(small_corpus: Any, tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model that has learnt to write something like the solutions of four tasks, saved to a folder."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
            max_position_embeddings=1024, tie_word_embeddings=True, initializer_range=0.1,
            eos_token_id=tokenizer.eos_token_id, bos_token_id=tokenizer.bos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )  # fmt: skip
    form = cw.parser("json")
    rows = []
    for task in small_corpus["train"][:4]:
        prompt = tokenizer.encode(small_corpus.prompt_text(task), add_special_tokens=False)
        answer = tokenizer.encode(form.render(task.program), add_special_tokens=False)
        rows.append(([tokenizer.bos_token_id, *prompt], [*answer, tokenizer.eos_token_id]))
    width = max(len(prompt) + len(answer) for prompt, answer in rows)
    ids = torch.full((len(rows), width), tokenizer.pad_token_id)
    labels = torch.full((len(rows), width), -100)
    for row, (prompt, answer) in enumerate(rows):
        ids[row, : len(prompt) + len(answer)] = torch.tensor(prompt + answer)
        labels[row, len(prompt) : len(prompt) + len(answer)] = torch.tensor(answer)
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(60):
        loss = model(input_ids=ids, attention_mask=(ids != tokenizer.pad_token_id).long(), labels=labels).loss
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    folder = tmp_path_factory.mktemp("taught")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def make_trainer(taught: Path, tokenizer: Any, tmp_path: Path) -> Callable[..., Any]:
    """A ``GRPOTrainer`` of the tiny model with TIER's settings; keyword arguments go to it or its configuration."""

    def make(reward_funcs: Any, data: Any, *, options: dict[str, Any] | None = None, **given: Any) -> Any:
        from transformers import AutoModelForCausalLM
        from trl import GRPOConfig, GRPOTrainer

        settings: dict[str, Any] = {
            "output_dir": str(tmp_path / "trl"), "loss_type": "bnpo", "beta": 0.04, "num_generations": 4,
            "per_device_train_batch_size": 8, "max_completion_length": 120, "max_steps": 3, "logging_steps": 1,
            "save_strategy": "no", "report_to": [], "use_cpu": True, "learning_rate": 1e-3, "seed": 3,
            "gradient_checkpointing": False, "bf16": False, "disable_tqdm": True,
        }  # fmt: skip
        with contextlib.redirect_stdout(io.StringIO()):
            return GRPOTrainer(
                model=AutoModelForCausalLM.from_pretrained(taught),
                reward_funcs=reward_funcs,
                args=GRPOConfig(**{**settings, **(options or {})}),
                train_dataset=data,
                processing_class=tokenizer,
                **given,
            )

    return make
