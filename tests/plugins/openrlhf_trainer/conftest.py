"""A model directory, a registry, and a stand-in for OpenRLHF that any interpreter can run."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
import callwright_plugins.openrlhf_trainer
from callwright.pipeline import Pipeline, build_pipeline
from callwright.plugins import load_plugins
from callwright.recipe_file import parse_recipe

#: Where ``callwright`` and ``callwright_plugins`` are imported from.
SOURCES = (Path(cw.__file__).parents[1], Path(callwright_plugins.openrlhf_trainer.__file__).parents[2])

#: Takes the place of ``openrlhf.cli.train_ppo_ray``: prompts, executor, log, checkpoints as OpenRLHF's, no training.
STAND_IN = """
import argparse
import asyncio
import importlib.util
import json
import os
import struct
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import jinja2
import tokenizers


class Engine:
    def __init__(self, tokenizer, text):
        self.ids = [*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id]

    async def generate(self, ids, params, multi_modal_data=None):
        await asyncio.sleep(0)
        new = self.ids[: params.max_tokens]
        output = SimpleNamespace(token_ids=new, text="", logprobs=None,
                                 finish_reason="stop" if new == self.ids else "length")
        return SimpleNamespace(outputs=[output])


class Logger:  # an event file as TensorBoard's writer makes it: frames of a step, a tag and a number each
    def __init__(self, folder):
        self.folder = Path(folder) / "ppo_1121T10:00"

    def log(self, kind, step, figures):
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"events.out.tfevents.1.here.{os.getpid()}.0").open("ab") as file:
            for name, value in figures.items():
                tag = f"{kind}/{name}".encode()
                scalar = bytes([10, len(tag)]) + tag + bytes([21]) + struct.pack("<f", value)
                summary = bytes([10, len(scalar)]) + scalar
                event = bytes([9]) + struct.pack("<d", 1.5) + bytes([16, step, 42, len(summary)]) + summary
                length = struct.pack("<Q", len(event))
                file.write(length + checksum(length) + event + checksum(event))


def checksum(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32)


class Tokenizer:  # what an episode asks of Hugging Face's class, whose import takes longer than the whole run
    def __init__(self, tokens, template, begin, end, pad):
        self.tokens, self.template = tokens, jinja2.Environment().from_string(template)
        self.chat_template = template
        self.bos_token_id, self.eos_token_id = map(tokens.token_to_id, (begin, end))
        self.all_special_tokens = [begin, end, pad]
        self.added_tokens_decoder = tokens.get_added_tokens_decoder()

    @classmethod
    def from_pretrained(cls, folder):
        said = json.loads(Path(folder, "tokenizer_config.json").read_text())
        specials = [said[f"{name}_token"] for name in ("bos", "eos", "pad")]
        template = Path(folder, "chat_template.jinja").read_text()
        return cls(tokenizers.Tokenizer.from_file(str(Path(folder, "tokenizer.json"))), template, *specials)

    def encode(self, text, add_special_tokens=True, split_special_tokens=False):
        self.tokens.encode_special_tokens = split_special_tokens
        return self.tokens.encode(text, add_special_tokens=add_special_tokens).ids

    def decode(self, ids, skip_special_tokens=False, clean_up_tokenization_spaces=False):
        return self.tokens.decode(ids, skip_special_tokens=skip_special_tokens)

    def apply_chat_template(self, messages, tokenize, add_generation_prompt, **options):
        return self.template.render(messages=messages, add_generation_prompt=add_generation_prompt, **options)


def train(args):
    options = {}
    for word in args.words:
        if word.startswith("--"):
            options[word] = []
            last = options[word]
        else:
            last.append(word)
    one = {flag: values[0] for flag, values in options.items() if values}
    mode = os.environ.get("STAND_IN", "")
    if mode == "transformers":
        from transformers import PreTrainedTokenizerFast as Kind  # that of this model; asking which imports torch
    else:
        Kind = Tokenizer
    tokenizer = Kind.from_pretrained(one["--actor.model_name_or_path"])
    spec = importlib.util.spec_from_file_location("agent_module", one["--train.agent_func_path"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    executor = module.AgentExecutor()
    deepest = max(executor.pipeline.tasks("train"), key=lambda task: task.depth)
    text = executor.pipeline.parser.render(deepest.program)
    engine = Engine(tokenizer, text)
    prompts, group = int(one["--rollout.batch_size"]), int(one["--rollout.n_samples_per_prompt"])
    every, evaluate = int(one["--ckpt.save_steps"]), int(one["--eval.steps"])

    async def sample(rows, copies):
        def ask(row):
            return executor.execute(
                prompt=row["prompt"], label=row["label"],
                sampling_params=SimpleNamespace(max_tokens=6000, logprobs=None),
                max_length=int(one["--data.max_len"]), hf_tokenizer=tokenizer, llm_engine=engine)
        return await asyncio.gather(*(ask(row) for row in rows for _ in range(copies)))

    def rows_of(path):
        return [json.loads(line) for line in Path(path).read_text().splitlines()]

    def mean(values):
        return sum(values) / len(values)

    logger = Logger("nowhere" if mode == "silent" else one["--logger.tensorboard_dir"])
    rows = rows_of(one["--data.prompt_dataset"])
    actor = Path(one["--ckpt.path"]) / "_actor"
    start = 0
    if "--ckpt.load_enable" in options:
        start = int((actor / "latest").read_text().removeprefix("global_step"))
    print("stand-in begins at", start)
    for step in range(start + 1, len(rows) // prompts + 1):
        responses = asyncio.run(sample(rows[(step - 1) * prompts : step * prompts], group))
        figures = {key: mean([one["extra_logs"][key] for one in responses]) for key in responses[0]["extra_logs"]}
        figures |= {"rollout/reward_mean": mean([one["reward"] for one in responses]), "rollout/reward_std": 0.0,
                    "rollout/num_samples": float(len(responses)), "rollout/truncated_rate": 0.0,
                    "policy_loss": 0.25, "kl": float("nan"), "actor_lr": 1e-6, "actor_grad_norm": 0.5,
                    "timing/step_total": 1.0}
        logger.log("train", step, figures)
        print(f"\\x1b[36m(PPOTrainer pid=7)\\x1b[0m INFO 11-21 ppo_trainer.py:1] Global step {step}: {figures}")
        if step % every == 0:
            for folder in (actor, actor.with_name("_critic")):
                (folder / f"global_step{step}").mkdir(parents=True, exist_ok=True)
                (folder / f"global_step{step}" / "model_states.pt").write_bytes(bytes(range(256)) * step)
                (folder / "latest").write_text(f"global_step{step}")
        if step % evaluate == 0:
            judged = asyncio.run(sample(rows_of(one["--eval.dataset"]), 1))
            logger.log("eval", step, {"eval_depth 1_pass1": 0.5, "eval_num_samples": float(len(judged))})
            print(f"Evaluation completed in 0:00:01, global_step {step}, eval_metrics: {{'eval_depth 1_pass1': 0.5}}")
        if mode == f"fail {step}" and not start:
            print("something broke at last")
            sys.exit(7)
        if mode == f"hang {step}" and not start:
            print("hanging", flush=True)
            time.sleep(600)
    output = Path(one["--ckpt.output_dir"])
    output.mkdir(parents=True)
    (output / "config.json").write_text("{}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    args, words = parser.parse_known_args()
    args.words = words
    assert "--actor.never" not in words, "never is no option"
    train(args)
"""

#: Read by the stand-in's interpreter as it starts. Tokenizers need no torch, but transformers imports it where it is
#: found, which takes longer than the rest of an export; the run with the real tokenizer has the real thing.
WITHOUT_TORCH = """
import os
import sys

if os.environ.get("STAND_IN") != "transformers":
    sys.modules["torch"] = None
"""


#: Takes the place of Ray's command: a job runs on when its client ends, and ``stop`` ends it with its processes.
RAY = """
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

jobs = Path(os.environ["STAND_IN_JOBS"])
words = sys.argv[1:]
assert words.pop(0) == "job"
what = words.pop(0)
if what == "stop":
    address, name = words[words.index("--address") + 1], words[-1]
    said = json.loads((jobs / name).read_text())
    assert address == said["address"]
    os.killpg(said["pid"], signal.SIGTERM)
    sys.exit(0)
given, entry = words[: words.index("--")], words[words.index("--") + 1 :]
options = dict(zip(given[::2], given[1::2]))
variables = json.loads(options["--runtime-env-json"])["env_vars"]
job = subprocess.Popen(entry, env={**os.environ, **variables}, start_new_session=True)
(jobs / options["--submission-id"]).write_text(json.dumps({"pid": job.pid, "address": options["--address"]}))
signal.signal(signal.SIGINT, lambda *_: os._exit(130))
sys.exit(job.wait() != 0)
"""


@pytest.fixture(scope="session")
def openrlhf_registry() -> cw.Registry:
    """Every installed plugin, and the trainer of this package if it is not among them."""
    registry = load_plugins()
    if "openrlhf" not in registry.names("trainer"):
        registry.add(callwright_plugins.openrlhf_trainer, name="openrlhf-trainer")
    return registry


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter whose ``openrlhf`` is the stand-in."""
    folder = tmp_path_factory.mktemp("stand-in")
    for name in ("openrlhf", "openrlhf/utils", "openrlhf/cli", "ray", "ray/scripts", "tensorboard"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("")
    (folder / "openrlhf/utils/agent.py").write_text("class AgentExecutorBase:\n    pass\n")
    (folder / "openrlhf/cli/train_ppo_ray.py").write_text(STAND_IN)
    (folder / "sitecustomize.py").write_text(WITHOUT_TORCH)
    (folder / "ray/scripts/scripts.py").write_text(RAY)
    (folder / "openrlhf-0.11.2.dist-info").mkdir()
    metadata = "Metadata-Version: 2.1\nName: openrlhf\nVersion: 0.11.2\n"
    (folder / "openrlhf-0.11.2.dist-info/METADATA").write_text(metadata)
    python = folder / "python"
    path = os.pathsep.join(map(str, [folder, *SOURCES]))
    python.write_text(f'#!/bin/sh\nPYTHONPATH={path} exec {sys.executable} "$@"\n')
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    return str(python)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a byte-level tokenizer and a chat template, and nothing else."""
    pytest.importorskip("transformers", reason="needs the train extra")
    from tokenizers import ByteLevelBPETokenizer
    from transformers import PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("model")
    bpe = ByteLevelBPETokenizer()
    specials = ["<|begin|>", "<|end|>", "<|pad|>"]
    bpe.train_from_iterator(["tool call id name"], vocab_size=300, special_tokens=specials, show_progress=False)
    template = (
        "{% for m in messages %}<|begin|>{{ m['role'] }}\n{{ m['content'] }}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|begin|>assistant\n{% endif %}"
    )
    PreTrainedTokenizerFast(
        tokenizer_object=bpe._tokenizer, bos_token="<|begin|>", eos_token="<|end|>", pad_token="<|pad|>",
        chat_template=template,
    ).save_pretrained(folder)  # fmt: skip
    return folder


@pytest.fixture(scope="session")
def make_pipeline(openrlhf_registry: cw.Registry) -> Any:
    """``make_pipeline(text)``."""

    def make(text: str) -> Pipeline:
        return build_pipeline(parse_recipe(text), openrlhf_registry)

    return make
