"""Plans of memory: sizes of models, the sum of the parts, and what they are held against."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from callwright.recipe_file import load_recipe, shipped_recipes
from callwright.training.dry_runs import memory_plan
from callwright.training.dry_runs.memory_plan import (
    ASSUMED,
    GIB,
    KNOWN,
    MemoryPlan,
    Room,
    room_here,
    shape_of,
    too_much,
)

#: Parameters as the models' cards or their files of weights count them.
PUBLISHED = {
    "Qwen3-0.6B": 596_049_920,
    "Qwen3-1.7B": 1_720_574_976,
    "Qwen3-4B-Instruct-2507": 4_022_468_096,
    "Qwen3-8B": 8_190_735_360,
    "Qwen2.5-0.5B-Instruct": 494_032_768,
    "Qwen2.5-1.5B-Instruct": 1_543_714_304,
    "Qwen2.5-3B-Instruct": 3_085_938_688,
    "Qwen2.5-7B-Instruct": 7_615_616_512,
    "Llama-3.2-3B-Instruct": 3_212_749_824,
}


def test_sizes_of_models_come_to_the_published_counts() -> None:
    for name, count in PUBLISHED.items():  # less biases and the norms of heads, which a plan leaves out
        assert KNOWN[name].parameters == pytest.approx(count, rel=2e-4), name


def test_every_model_of_a_shipped_recipe_is_known() -> None:
    paths = {load_recipe(name).recipe.model.get("path") for name in shipped_recipes()} - {None}
    assert {path for path in paths if shape_of(path) is None} == set()


def test_a_folder_says_its_own_sizes(tmp_path: Path) -> None:
    config = {
        "num_hidden_layers": 2, "hidden_size": 8, "intermediate_size": 16, "num_attention_heads": 4, "vocab_size": 30,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    shape = shape_of(tmp_path)
    assert shape is not None
    assert (shape.kv_heads, shape.head_width, shape.tied) == (4, 2, False)
    assert shape.parameters == 2 * (4 * 64 + 3 * 128 + 16) + 2 * 30 * 8 + 8
    assert shape.adapter(3) == 2 * 3 * (4 * 16 + 3 * 24)
    assert shape.cached == 2 * 2 * 8
    assert shape.activations(True) < shape.activations(False) < 2 * shape.activations(True)
    assert not shape.scaled
    (tmp_path / "config.json").write_text(json.dumps({**config, "logits_scaling": 16.0}))
    scaled = shape_of(tmp_path)
    assert scaled is not None
    assert scaled.scaled
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 8}))
    assert shape_of(tmp_path) is None


def test_the_peak_is_what_is_held_and_the_larger_of_the_rest() -> None:
    made = MemoryPlan({"weights": (3.0 * GIB, "a")}, {"logits": (2.0 * GIB, "b")}, {"keys": (5.0 * GIB, "c")}, "here")
    rows = {row["key"]: row for row in made.rows(Room(7.5, "a GPU"))}
    assert list(rows) == ["weights", "logits", "keys", "peak", "layout"]
    assert rows["peak"]["GiB"] == 8.0
    assert "an estimate; nothing was run" in rows["peak"]["formula"]
    assert rows["layout"] == {"key": "layout", "GiB": 7.5, "formula": "a GPU", "fits": False}
    said = too_much(list(rows.values()))
    assert said is not None
    assert "8.0 GiB at its peak" in said
    assert "the largest part is keys (5.0 GiB)" in said
    assert too_much(made.rows(Room(8.0, "a GPU"))) is None
    assert too_much([]) is None


def test_what_this_machine_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert room_here("cpu").size > 0.1
    memory_plan._smallest_gpu.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert room_here("auto").size == ASSUMED
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nprintf '81559\\n24564\\n'\n")
    program.chmod(0o755)
    memory_plan._smallest_gpu.cache_clear()
    assert room_here("cuda").size == pytest.approx(24564 / 1024)
    program.write_text("#!/bin/sh\nexit 9\n")
    memory_plan._smallest_gpu.cache_clear()
    assert room_here("cuda").size == ASSUMED
    memory_plan._smallest_gpu.cache_clear()
