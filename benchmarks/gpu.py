"""What training does on a GPU: its numbers against the CPU, tokens a second and memory against TRL, a whole run.

    python benchmarks/gpu.py                                   # about ten minutes on one CUDA GPU
    python benchmarks/gpu.py --page docs/gpu.md                # and write the tables into the page
    python benchmarks/gpu.py --device cpu --small --output o   # the same program without a GPU, in a minute or two

It needs torch, transformers, accelerate, TRL and peft (``pip install 'callwright[train,trl]'``), no vLLM, no network
and no model: those that it trains are made on the spot. In turn:

1. *Numbers*: log-probabilities, and the gradient of one GRPO step, of one model and one batch on the CPU and on the
   device, in float32 (TF32 off) and in bfloat16.
2. *Steps*: a model of 100 million parameters (Qwen3 architecture, random weights), all of them trained, in float32 and
   bfloat16, by the local trainer and by TRL's GRPOTrainer in turn, at equal work; then an adapter alone, by TRL.
3. *Runs*: ``tier-mini`` from its warm start on, in float32 and bfloat16, and with LoRA by the trainer ``trl``.

Seconds are those that pass while the device works (CPU seconds on a CPU); memory is the most that torch had allocated.
Utilisation is what ``nvidia-smi`` says four times a second, where it is there. A part that fails is said to have
failed, and the others go on; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gc
import io
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import trl_tokens
from attrs import evolve

import callwright as cw
from callwright_plugins.local_trainer.forward.generation import generate
from callwright_plugins.local_trainer.learning.update import Batch, descend, prepare
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.options import Options
from callwright_plugins.local_trainer.randomness import torch_generator
from callwright_plugins.policy_gradient.bn_grpo import BatchNormalisedGRPO

BEGIN, END = "<!-- gpu.py writes what follows -->", "<!-- and ends here -->"
RANK = 16
#: How far the device may be from the CPU: the largest difference of a log-probability, and of the gradient as a share.
CLOSE = {"float32": (1e-3, 1e-3), "bfloat16": (0.25, 0.25)}


# Numbers --------------------------------------------------------------------------------------------------------------


def one_step(model: Any, batch: Batch, device: str, dtype: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities of the sampled tokens, and the gradient of a step; both on the CPU, in float32."""
    policy = Policy(model.eval().to(device), trl_tokens.make_tokenizer(), torch.device(device), getattr(torch, dtype))
    reference = evolve(policy, model=copy.deepcopy(model).requires_grad_(False))
    algorithm = BatchNormalisedGRPO(kl_weight=0.04)
    options = Options(max_new_tokens=batch.limit, device=device, dtype=dtype, clip_norm=1e6)
    before = [weight.detach().clone() for weight in model.parameters()]
    prepared = prepare(policy, reference, algorithm, batch, options)
    parts = [part for mini in prepared.minis for part in mini.parts]
    # The reference is the model itself, so these are the policy's own; a first update has no others.
    logprobs = torch.cat([part.reference.reshape(-1).float().cpu() for part in parts if part.reference is not None])
    descend(policy, algorithm, torch.optim.SGD(model.parameters(), lr=1.0), prepared, options, 1.0)
    gradient = [old - new.detach() for old, new in zip(before, model.parameters(), strict=True)]
    return logprobs, torch.cat([one.reshape(-1).float().cpu() for one in gradient])


def numbers(asked: argparse.Namespace) -> list[dict[str, Any]]:
    """How far the device is from the CPU in float32."""
    small = argparse.Namespace(prompt=48, new=24, width=128, layers=3, prompts=4, group=4)
    model, prompts = trl_tokens.make_model(small), trl_tokens.make_prompts(small)
    policy = Policy(copy.deepcopy(model).eval(), trl_tokens.make_tokenizer(), torch.device("cpu"))
    more = {"copies": small.group, "max_new_tokens": small.new, "temperature": 1.0}
    groups = generate(policy, prompts, generator=torch_generator(0, "sampling", 0), **more)
    rewards = torch.tensor([[trl_tokens.variety(one.ids) for one in group] for group in groups])
    valid = torch.ones_like(rewards, dtype=torch.bool)
    batch = Batch(
        prompts,
        [row for row, group in enumerate(groups) for _ in group],
        [one.ids for group in groups for one in group],
        BatchNormalisedGRPO(kl_weight=0.04).advantages(rewards, valid).reshape(-1),
        limit=small.new,
    )
    expected = one_step(copy.deepcopy(model), batch, "cpu", "float32")
    found = []
    for dtype in ("float32", "bfloat16"):
        logprobs, gradient = one_step(copy.deepcopy(model), batch, asked.device, dtype)
        most = float((logprobs - expected[0]).abs().max())
        off = float((gradient - expected[1]).norm() / expected[1].norm())
        near = most <= CLOSE[dtype][0] and off <= CLOSE[dtype][1]
        found.append({"arithmetic": dtype, "log-probability": most, "gradient": off, "close": near})
    return found


# Steps ----------------------------------------------------------------------------------------------------------------


class Watching:
    """The most memory, and the mean utilisation of the first GPU, while a block runs."""

    def __init__(self, device: str) -> None:
        self.cuda, self.found, self._over = device == "cuda", [], threading.Event()  # type: ignore[var-annotated]

    def __enter__(self) -> Watching:
        if self.cuda:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            if shutil.which("nvidia-smi"):
                threading.Thread(target=self._ask, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _ask(self) -> None:
        words = ["nvidia-smi", "-i", "0", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        while not self._over.wait(0.25):
            with contextlib.suppress(ValueError, OSError, subprocess.SubprocessError):
                said = subprocess.run(words, capture_output=True, text=True, timeout=5, check=True)
                self.found.append(float(said.stdout.strip()))

    def figures(self) -> dict[str, float | None]:
        """GiB, and percent; ``None`` where nobody knows."""
        peak = torch.cuda.max_memory_allocated() / 2**30 if self.cuda else None
        return {"GiB": peak, "busy": sum(self.found) / len(self.found) if self.found else None}


def steps(asked: argparse.Namespace) -> list[dict[str, Any]]:
    """Tokens a second of both sides, in turn; all weights, then adapters."""
    model, prompts = trl_tokens.make_model(asked), trl_tokens.make_prompts(asked)
    found = []
    for dtype in ("float32", "bfloat16"):
        given = argparse.Namespace(**vars(asked) | {"dtype": dtype})
        for side, make in (("callwright", trl_tokens.local_steps), ("TRL", trl_tokens.trl_steps)):
            found.append({"trained": "all", "arithmetic": dtype, "by": side, **taken(make, model, prompts, given)})
    given = argparse.Namespace(**vars(asked) | {"dtype": "bfloat16"})
    found.append(
        {"trained": f"LoRA {RANK}", "arithmetic": "bfloat16", "by": "TRL", **taken(lora, model, prompts, given)}
    )
    return found


def lora(model: Any, prompts: list[tuple[int, ...]], given: argparse.Namespace) -> Iterator[trl_tokens.Meter]:
    """TRL with an adapter."""
    from peft import LoraConfig

    adapter = LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear", task_type="CAUSAL_LM")
    return trl_tokens.trl_steps(model, prompts, given, adapter)


def taken(make: Callable[..., Iterator[trl_tokens.Meter]], model: Any, prompts: Any, given: argparse.Namespace) -> Any:
    """Rates, memory and utilisation of some steps after the first one. Nothing of them stays in memory."""
    with Watching(given.device) as watching:
        side = make(copy.deepcopy(model), prompts, given)
        for _ in range(given.rounds + 1):
            meter = next(side)
        figures = meter.rates() | watching.figures()
        side.close()  # type: ignore[attr-defined]
    gc.collect()
    return figures


# Runs -----------------------------------------------------------------------------------------------------------------


#: By the name of a run, what its table ``[trainer]`` has beside the sizes.
TRAINERS: dict[str, dict[str, Any]] = {
    "local, float32": {"dtype": "float32"},
    "local, bfloat16": {"dtype": "bfloat16"},
    f"trl, LoRA {RANK}, bfloat16": {
        "name": "trl",
        "lora": {"rank": RANK, "alpha": 2.0 * RANK},
        "dtype": "bfloat16",
        "learning_rate": 3e-3,
    },
}


def runs(asked: argparse.Namespace) -> list[dict[str, Any]]:
    """``tier-mini`` on the device: what it gains, how long a step takes, and what it holds."""
    return [run(name, asked, trainer) for name, trainer in TRAINERS.items()]


def run(name: str, asked: argparse.Namespace, trainer: dict[str, Any]) -> dict[str, Any]:
    """One run in a folder that is thrown away."""
    with tempfile.TemporaryDirectory() as folder, Watching(asked.device) as watching:
        began = time.perf_counter()
        loaded = cw.load_recipe("tier-mini", changes(asked, trainer))
        done = cw.train(loaded, output=str(Path(folder) / "run"))
        whole = time.perf_counter() - began
        evaluation = json.loads((done.path / "evaluation.json").read_text())
        rows = [json.loads(line) for line in (done.path / "metrics.jsonl").read_text().splitlines()]
        times = [json.loads(line) for line in (done.path / "timings.jsonl").read_text().splitlines()]
    return {
        "run": name,
        "steps": len(rows),
        "reward": [rows[0]["reward"], rows[-1]["reward"]],
        "right": [evaluation["before"]["overall"], evaluation["after"]["overall"]],
        "seconds a step": sum(one["seconds"] for one in times[1:]) / max(1, len(times) - 1),
        "seconds": whole,
        **watching.figures(),
    }


def changes(asked: argparse.Namespace, trainer: dict[str, Any]) -> list[str]:
    """What is said of ``tier-mini`` in other words than its file has."""
    table = trainer | {"steps": asked.steps, "device": asked.device}
    found = [f"trainer={trainer['name']}"] if "name" in trainer else []
    found += [f"trainer.{key}={toml(value)}" for key, value in table.items() if key != "name"]
    return found + [f"trainer.warm_start.{key}={value}" for key, value in asked.warm_start.items()]


def toml(value: Any) -> str:
    """A value as an override has it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value)


# The page -------------------------------------------------------------------------------------------------------------


def where(asked: argparse.Namespace) -> dict[str, str]:
    """On what, with what and when."""
    name = "a CPU"
    if asked.device == "cuda":
        about = torch.cuda.get_device_properties(0)
        name = f"{about.name}, {about.total_memory / 2**30:.0f} GiB, CUDA {torch.version.cuda}"
    packages = ("callwright", "torch", "transformers", "trl", "peft", "accelerate")
    return {
        "device": name,
        "versions": ", ".join(f"{one} {version(one)}" for one in packages),
        "day": datetime.now(UTC).date().isoformat(),
    }


def shown(value: Any) -> str:
    """A cell."""
    if isinstance(value, list):
        return " → ".join(map(shown, value))
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "**no**", None: "–"}[value]
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return str(value)


def markdown(result: dict[str, Any]) -> str:
    """The tables of the page."""
    lines = [f"Measured on {result['where']['day']}: {result['where']['device']}; {result['where']['versions']}.", ""]
    for part, rows in result["parts"].items():
        lines += [f"### {part.capitalize()}", ""]
        if isinstance(rows, str):
            lines += [f"This part failed: `{rows}`", ""]
            continue
        heads = list(rows[0])
        lines += [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
        lines += [f"| {' | '.join(shown(row[head]) for head in heads)} |" for row in rows]
        lines.append("")
    return "\n".join(lines)


def write_page(page: Path, tables: str) -> None:
    """Put the tables between the marks of a page. Raises :class:`ValueError` for a page without them."""
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page} lacks the lines {BEGIN!r} and {END!r}, between which the tables stand")
    page.write_text(f"{before}{BEGIN}\n\n{tables}\n{END}{after}", encoding="utf-8")


def main() -> int:
    """Everything in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--small", action="store_true", help="sizes for a CPU, to see that the program works")
    parser.add_argument(
        "--parts", nargs="+", choices=("numbers", "steps", "runs"), default=["numbers", "steps", "runs"]
    )
    parser.add_argument("--output", type=Path, default=Path("gpu"), help="a folder for gpu.json and gpu.md")
    parser.add_argument("--page", type=Path, help="a page whose tables are replaced")
    asked = parser.parse_args()
    if asked.device == "cuda" and not torch.cuda.is_available():
        sys.stderr.write(
            "error: torch sees no CUDA device here; --device cpu --small only shows that the program works\n"
        )
        return 2
    if asked.page is not None and BEGIN not in asked.page.read_text(encoding="utf-8"):
        sys.stderr.write(f"error: {asked.page} lacks the line {BEGIN!r}, after which the tables stand\n")
        return 2
    torch.set_num_threads(1 if asked.device == "cpu" else torch.get_num_threads())
    large = {"prompts": 8, "group": 8, "prompt": 512, "new": 256, "width": 768, "layers": 18, "rounds": 3, "steps": 60}
    small = {"prompts": 2, "group": 4, "prompt": 32, "new": 8, "width": 64, "layers": 2, "rounds": 1, "steps": 2}
    vars(asked).update(small if asked.small else large)
    asked.warm_start = {"steps": 20, "count": 200, "batch": 8} if asked.small else {"steps": 900}
    parts: dict[str, Any] = {}
    for name, work in (("numbers", numbers), ("steps", steps), ("runs", runs)):
        if name not in asked.parts:
            continue
        sys.stderr.write(f"{name} …\n")
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                parts[name] = work(asked)
        except Exception as error:  # the other parts are worth having
            traceback.print_exc()
            parts[name] = f"{type(error).__name__}: {error}"[:300]
    result = {"where": where(asked), "parts": parts}
    asked.output.mkdir(parents=True, exist_ok=True)
    (asked.output / "gpu.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    tables = markdown(result)
    (asked.output / "gpu.md").write_text(tables + "\n", encoding="utf-8")
    if asked.page is not None:
        write_page(asked.page, tables)
    sys.stdout.write(tables + "\n")
    sound = all(row["close"] for row in parts.get("numbers", ()) if isinstance(row, dict))
    return int(not sound or any(isinstance(rows, str) for rows in parts.values()))


if __name__ == "__main__":
    sys.exit(main())
