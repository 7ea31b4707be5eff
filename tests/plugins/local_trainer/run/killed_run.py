"""Runs recipes in processes of their own, which are killed at a named moment: ``killed_run.py LOG``.

Each line of standard input asks for one, ``["RECIPE", "FOLDER", MOMENT]``, and is answered by a line with the wait
status of its process. ``MOMENT`` is how many writes (rows, checkpoints, evaluations) are let through before it kills
itself with SIGKILL, in the middle of the next one; negative for never. The processes are forked, and what they
have in common is imported once.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from different_tokens import Variety

from callwright.pipeline import Pipeline, build_pipeline, create_trainer
from callwright.plugins import default_registry, load_plugins
from callwright.recipe_file import load_recipe
from callwright.training import run_folder as runs
from callwright_plugins import json_ir, local_trainer, policy_gradient, tier_rewards, toolworld
from callwright_plugins.toolworld.corpus import ToolWorldCorpus


def main(recipe: str, folder: str, moment: int) -> None:
    from callwright_plugins.local_trainer.run import checkpoints  # torch, which workers that import this need not have

    left = moment

    def dying(function: Any, half: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            if left == 0:
                half(*arguments)
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return function(*arguments, **options)

        return call

    def torn_row(path: Path, rows: Any) -> None:
        with path.open("ab") as file:
            file.write(b'{"step": 12')

    def torn_folder(path: Path, fill: Any) -> None:
        scratch = path.with_name(".part-" + path.name)
        scratch.mkdir()
        (scratch / "model.safetensors").write_bytes(b"\x00" * 100)

    runs.append_jsonl = dying(runs.append_jsonl, torn_row)
    checkpoints.write_folder = dying(checkpoints.write_folder, torn_folder)
    Run: Any = runs.Run
    Run.write_json = dying(Run.write_json, lambda *_: None)

    pipeline = make_pipeline(recipe)
    run = runs.Run.create(Path(folder), recipe_text=pipeline.recipe.effective_text(), manifest={})
    create_trainer(pipeline.recipe, pipeline.registry).train(pipeline, run)


def make_pipeline(recipe: str) -> Pipeline:
    modules = (json_ir, tier_rewards, toolworld, policy_gradient, local_trainer)
    registry = load_plugins(entry_points=False, extra={module.__name__: module for module in modules})
    corpus = ToolWorldCorpus(train_size=20, evaluation_size=1)
    # Completions have up to 100 tokens.
    return build_pipeline(load_recipe(recipe), registry, corpus=corpus, extra_rewards=[Variety(128)])


def import_everything(recipe: str) -> None:
    """What every run imports, and the tables that transformers makes when it first saves a model: half of a run."""
    from transformers import LlamaConfig, LlamaForCausalLM

    import callwright_plugins.local_trainer.run.training
    import callwright_plugins.local_trainer.supervised.course  # noqa: F401

    small = LlamaConfig(
        vocab_size=8, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, pad_token_id=0
    )
    with TemporaryDirectory() as folder:
        LlamaForCausalLM(small).save_pretrained(folder)
    with make_pipeline(recipe):
        default_registry()
    gc.collect()
    gc.freeze()  # a process that looked for garbage in all this would first copy it


def serve() -> None:
    ready = False
    for line in sys.stdin:
        if not ready:
            import_everything(json.loads(line)[0])
            ready = True
        child = os.fork()
        if not child:
            status = 1
            try:
                main(*json.loads(line))
                status = 0
            except BaseException:
                Path(sys.argv[1]).write_text(traceback.format_exc(), encoding="utf-8")
            finally:
                os._exit(status)
        print(os.waitpid(child, 0)[1], flush=True)


if __name__ == "__main__":
    serve()
