"""A context that is extended by YaRN: the same numbers as transformers makes of a configuration that says it."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from transformers import AutoModelForCausalLM

from callwright.capability import has
from callwright.cli.root import root
from callwright.commands.app import App
from callwright.episodes.long_context import ExtendsContext
from callwright.errors import UsageError
from callwright.language.messages import Message
from callwright.pipeline import Pipeline
from callwright.plugins import Registry
from callwright.walk.sampling import SamplingRequest
from callwright_plugins.local_trainer.models.policy import Policy, extended, load_policy

Make = Callable[[str], Policy]
CPU = torch.device("cpu")


@pytest.fixture
def saved(make_policy: Make, tmp_path: Path) -> Callable[[str], Path]:
    def save(kind: str) -> Path:
        folder = tmp_path / kind
        make_policy(kind).save(folder)
        return folder

    return save


def stated(folder: Path, **more: Any) -> Path:
    """A copy of a model directory whose configuration says more."""
    copy = folder.with_name(f"{folder.name}-stated")
    shutil.copytree(folder, copy)
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, **more}))
    return copy


def logits(model: Any, ids: list[int]) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model(torch.tensor([ids])).logits
    return found


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
@pytest.mark.parametrize("yarn", [4.0, 1.5, {"factor": 4, "original": 64}])
def test_logits_are_those_of_a_configuration_that_states_it(saved: Callable[[str], Path], kind: str, yarn: Any) -> None:
    folder = saved(kind)
    plain = json.loads((folder / "config.json").read_text())
    factor, original = (yarn, plain["max_position_embeddings"]) if not isinstance(yarn, dict) else (4, 64)
    parameters = {"rope_type": "yarn", "factor": float(factor), "original_max_position_embeddings": original}
    whole = stated(
        folder,
        rope_parameters={**plain["rope_parameters"], **parameters},
        max_position_embeddings=int(factor * original),
    )
    reference = AutoModelForCausalLM.from_pretrained(whole, dtype=torch.float32).eval()
    made = load_policy(folder, device=CPU, yarn=yarn)
    ids = [(7 * place) % 200 for place in range(original + 20)]
    for length in (8, original, original + 20):
        assert torch.equal(logits(made.model, ids[:length]), logits(reference, ids[:length]))
    assert not torch.allclose(logits(made.model, ids[:8]), logits(load_policy(folder, device=CPU).model, ids[:8]))
    assert made.positions == int(factor * original)


def test_frequencies_are_the_papers(saved: Callable[[str], Path]) -> None:
    """Peng et al. 2023, section 3.2: a ramp between 1 and 32 rotations, and the temperature of eq. 22."""
    folder = saved("llama")
    config, extension = extended(folder, 4.0)
    model = load_policy(folder, device=CPU, yarn=4.0).model
    dim = config.hidden_size // config.num_attention_heads
    base, length = extension.theta, extension.original

    def place(rotations: float) -> float:
        return dim * math.log(length / (rotations * 2 * math.pi)) / (2 * math.log(base))

    low, high = max(math.floor(place(32)), 0), min(math.ceil(place(1)), dim - 1)
    wanted = []
    for at in range(dim // 2):
        frequency = base ** (-2 * at / dim)
        interpolated = min(max((at - low) / max(high - low, 0.001), 0), 1)
        wanted.append(frequency * ((1 - interpolated) + interpolated / 4))
    assert model.model.rotary_emb.inv_freq.tolist() == pytest.approx(wanted, rel=1e-5)
    assert model.model.rotary_emb.attention_scaling == pytest.approx(0.1 * math.log(4) + 1, rel=1e-6)


def test_longer_prompts_are_accepted(saved: Callable[[str], Path], registry: Registry, make_pipeline: Any) -> None:
    folder = saved("llama")
    pipeline: Pipeline = make_pipeline()
    task = pipeline.tasks("evaluation")[0]
    held = json.loads((folder / "config.json").read_text())["max_position_embeddings"]
    plain = registry.create("sampler", "local-model", model=str(folder), max_new_tokens=4)
    longer = registry.create("sampler", "local-model", model=str(folder), max_new_tokens=4, yarn=4.0)
    text = "a " * 10
    policy = load_policy(folder, device=CPU)
    while len(policy.prompt_ids(task, [Message.user(text)])) <= held:
        text += "a " * 10
    asked = [SamplingRequest((Message.user(text),), task)]
    with pytest.raises(UsageError, match="the model has 128 positions"):
        plain.sample(asked, temperature=0)
    ((whole,),) = longer.sample(asked, temperature=0)
    assert len(whole.token_ids) > 0


def test_a_result_says_that_its_context_was_extended(
    saved: Callable[[str], Path], registry: Registry, tmp_path: Path
) -> None:
    folder = saved("qwen2")
    words = ["evaluate", "--corpus", "toolworld-mini-v1", "--split", "evaluation", "--limit", "2", "--sampler"]
    words += ["local-model", "--sampler-option", f"model={folder}", "--sampler-option", "max_new_tokens=4"]
    given = ["--sampler-option", "yarn={factor = 2.0, original = 512}", "-o", str(tmp_path / "out")]
    found = CliRunner().invoke(root, [*words, *given], obj=App(registry=registry))
    assert found.exit_code == 0, found.output
    assert "context extended by YaRN: 2 times 512 tokens, 1,024" in found.stdout
    result = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    assert (result["context"]["method"], result["context"]["positions"]) == ("yarn", 1024)
    settings = json.loads((tmp_path / "out" / "settings.json").read_text())
    assert settings["sampler"]["yarn"] == {"factor": 2.0, "original": 512}
    plain = CliRunner().invoke(root, [*words, "--json"], obj=App(registry=registry))
    assert "context" not in json.loads(plain.stdout)


@pytest.mark.parametrize(
    ("kind", "yarn", "said"),
    [
        ("gpt2", 4.0, "no rotary positions"),
        ("llama", 1, "above 1"),
        ("llama", True, "above 1"),
        ("llama", float("nan"), "above 1"),
        ("llama", "4", "above 1"),
        ("llama", {"original": 64}, "a factor, such as 4.0"),
        ("llama", {"factor": 2.0, "original": 0}, "'original' of 'yarn'"),
        ("llama", {"factor": 1.01, "original": 8}, "no whole number"),
        ("llama", {"factor": 2.0, "original": 8}, "is not needed"),
    ],
)
def test_what_cannot_be_extended_is_refused(
    saved: Callable[[str], Path], registry: Registry, kind: str, yarn: Any, said: str
) -> None:
    folder = saved(kind)
    with pytest.raises(UsageError, match=said):
        registry.create("sampler", "local-model", model=str(folder), yarn=yarn)


def test_what_is_extended_already_is_refused(saved: Callable[[str], Path], registry: Registry) -> None:
    folder = saved("llama")
    scaled = {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}
    other = stated(folder, rope_parameters=scaled)
    with pytest.raises(UsageError, match=r"scales its positions already \(linear\)"):
        registry.create("sampler", "local-model", model=str(other), yarn=2.0)
    plain = registry.create("sampler", "local-model", model=str(folder))
    assert not has(plain, ExtendsContext)
    assert has(registry.create("sampler", "local-model", model=str(folder), yarn=2.0), ExtendsContext)
