"""docs/algorithms.md: its programs run, and its tables name every algorithm, option, default and diagnostic."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs
import pytest
import torch

from callwright.plugins import load_plugins
from callwright.training import TokenBatch

# MOVED
from callwright.training.algorithm import ValueBatch
from callwright_plugins import policy_gradient
from callwright_plugins.policy_gradient.dapo import DAPO
from callwright_plugins.policy_gradient.ppo import PPO

PAGE = (Path(__file__).parents[3] / "docs" / "algorithms.md").read_text(encoding="utf-8")
registry = load_plugins(extra={"policy-gradient": policy_gradient}, entry_points=False)


def options_table(heading: str) -> dict[str, Any]:
    """Option and default of the table that follows a heading."""
    table = PAGE.split(heading, 1)[1].split("\n\n", 2)[1]
    values = {"none": None, "true": True, "false": False}
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \|", table, flags=re.MULTILINE)
    return {
        name: values[default] if default in values else default.strip('"') if '"' in default else float(default)
        for name, default in rows
    }


@pytest.mark.parametrize(
    ("heading", "name"),
    [
        ("Of `grpo` (`bn-grpo` has them but `ratio`):", "grpo"),
        ("Of `grpo` (`bn-grpo` has them but `ratio`):", "bn-grpo"),
        *((f"Of `{name}`:", name) for name in ("dapo", "dr-grpo", "gspo", "cispo", "rloo", "ppo")),
        ('Of `reinforce++` (`reinforce++-baseline` has `kl_estimator = "k2"` and `kl_in = "loss"`):', "reinforce++"),
    ],
)
def test_options_and_defaults(heading: str, name: str) -> None:
    factory = registry.spec("algorithm", name).load()
    listed = options_table(heading)
    if name == "bn-grpo":
        assert listed.pop("ratio") == "token"
    assert listed == {field.name: field.default for field in attrs.fields(factory) if field.init}


def test_the_baseline_variant_differs_as_is_said() -> None:
    one, other = (registry.create("algorithm", name) for name in ("reinforce++", "reinforce++-baseline"))
    known, varied = attrs.asdict(one), attrs.asdict(other)
    changed = {name: varied[name] for name in known if varied[name] != known[name] and name != "name"}
    assert changed == {"kl_estimator": "k2", "kl_in": "loss"}


def test_every_algorithm_is_listed() -> None:
    listed = re.findall(r"^\| \[`([\w+-]+)`\]", PAGE, flags=re.MULTILINE)
    assert listed[:3] == ["grpo", "bn-grpo", "dapo"]
    assert registry.names("algorithm") == sorted(listed)


def test_every_diagnostic_is_listed() -> None:
    values = torch.zeros(1, 1, requires_grad=True)
    batch = TokenBatch(values, values, values, torch.zeros(1), ref_logprobs=values, entropy=values)
    table = PAGE.split("## Diagnostics", 1)[1].split("##", 1)[0]
    first_cells = " ".join(re.findall(r"^\| (`.*?`) \|", table, flags=re.MULTILINE))
    learnt = PPO().value_loss(ValueBatch(values, values.detach(), values.detach(), values.detach())).diagnostics
    assert set(re.findall(r"`(\w+)`", first_cells)) == set(DAPO().loss(batch).diagnostics) | set(learnt)


def test_programs_run(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for program in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(compile(program, "algorithms.md", "exec"), names)
    assert capsys.readouterr().out.startswith("0.0187")
