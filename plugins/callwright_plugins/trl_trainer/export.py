"""The end of a run as a directory that transformers and vLLM load: a whole model, or an adapter."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final

import torch

from callwright.errors import RunError
from callwright.training.ledger.seals import seal
from callwright_plugins.trl_trainer.base import FINAL, NOTE, Base
from callwright_plugins.trl_trainer.options import Options

#: Where the adapter of a run with LoRA lies, beside the merged model.
ADAPTER: Final = "adapter"
_SCRATCH: Final = ".part-"


def export(trainer: Any, base: Base, corpus: str, options: Options, checkpoints: Path) -> None:
    """Write ``checkpoints/final``; every process calls it, the first one writes.

    Raises :class:`callwright.errors.RunError` if the disk is full or not writable.
    """
    scratch = checkpoints / (_SCRATCH + "saved")
    if trainer.accelerator.is_main_process:
        shutil.rmtree(scratch, ignore_errors=True)
    trainer.accelerator.wait_for_everyone()
    trainer.save_model(str(scratch))  # gathers what is spread over processes
    if trainer.accelerator.is_main_process:
        note = json.dumps({"prompt": "compact" if base.compact else "chat", "corpus": corpus}) + "\n"
        try:
            for path in scratch.glob("training_args.bin"):
                path.unlink()  # a pickle, and of this machine
            if options.lora is None:
                _named(scratch, checkpoints / FINAL, note)
            else:
                if options.export == "merged":
                    merged = checkpoints / (_SCRATCH + FINAL)
                    shutil.rmtree(merged, ignore_errors=True)
                    merge(base.path, scratch, merged, options.weights)
                    trainer._tokenizer.save_pretrained(merged)
                    _named(scratch, checkpoints / ADAPTER, note)
                    _named(merged, checkpoints / FINAL, note)
                else:
                    _named(scratch, checkpoints / FINAL, note)
        except OSError as error:
            raise RunError(f"the final model cannot be written: {error.strerror or error}") from error
    trainer.accelerator.wait_for_everyone()


def merge(base: str, adapter: Path, target: Path, weights: str) -> None:
    """Write the unquantised model ``base`` with an adapter worked into its weights, on the CPU."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(base, dtype=getattr(torch, weights))
    whole: Any = PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()
    whole.save_pretrained(target)


def _named(scratch: Path, target: Path, note: str) -> None:
    """Give a scratch folder its name, sealed, in one step."""
    (scratch / NOTE).write_text(note, encoding="utf-8")
    seal(scratch)
    shutil.rmtree(target, ignore_errors=True)
    scratch.rename(target)
