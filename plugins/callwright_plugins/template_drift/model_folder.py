"""The check as a component: the tokenizer and the configs of a Hugging Face directory. The weights are not read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from callwright.errors import DataError, MissingExtra
from callwright.training.model_check import ModelReport
from callwright_plugins.template_drift.examination import examine_tokenizer


class TemplateDrift:
    """Whether the tokenizer and the chat template of a model are fit for training."""

    name = "template-drift"

    def examine(self, folder: Path) -> ModelReport:
        """The report on a model directory, or on the last checkpoint of a run folder; see :func:`examine_model`."""
        return examine_model(folder)


def examine_model(folder: Path) -> ModelReport:
    """The report on a Hugging Face directory; nothing is downloaded, no code of it is run, the weights are not read.

    Raises :class:`callwright.errors.DataError` if there is no tokenizer, and :class:`callwright.errors.MissingExtra`
    without transformers.
    """
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise MissingExtra("callwright doctor --model", "train", error.name or "transformers") from error
    final = folder / "checkpoints" / "final"
    folder = final if final.is_dir() else folder
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; --model takes a Hugging Face model directory")
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # whatever the files of somebody else make the library raise
        reason = (str(error).strip().splitlines() or ["no reason given"])[0]
        raise DataError(f"{folder} holds no tokenizer that can be loaded: {type(error).__name__}: {reason}") from error
    config, generation = _read(folder / "config.json"), _read(folder / "generation_config.json")
    return examine_tokenizer(
        tokenizer,
        generation_ends=_ids(generation.get("eos_token_id", config.get("eos_token_id"))),
        vocabulary=_vocabulary(config),
        compact=_read(folder / "callwright_policy.json").get("prompt") == "compact",
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    return value if isinstance(value, dict) else {}


def _ids(value: Any) -> tuple[int, ...]:
    return tuple(one for one in (value if isinstance(value, list) else [value]) if type(one) is int)


def _vocabulary(config: dict[str, Any]) -> int | None:
    inner = config.get("text_config")
    for part in (config, inner if isinstance(inner, dict) else {}):
        if type(part.get("vocab_size")) is int:
            return int(part["vocab_size"])
    return None
