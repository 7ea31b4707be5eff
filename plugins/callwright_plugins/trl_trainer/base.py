"""What a run trains: the model of ``[model]``, warmed up if the recipe says so, and the form of its prompts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from callwright.capability import has
from callwright.episodes.codec import ChatCodec, PlainCodec
from callwright.errors import DataError, UsageError
from callwright.training.reporter import Reporter
from callwright.training.run_folder import Run
from callwright.walk.corpora.capabilities import WritesPrompts
from callwright_plugins.trl_trainer.options import Model, Options

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline
    from callwright.training.trainer import Trainer

#: Among the checkpoints of a run: the model that training ended with.
FINAL: Final = "final"
#: Beside a model: which form of prompt it was trained with, and the corpus that makes it.
NOTE: Final = "callwright_policy.json"
#: The run of the trainer ``local`` in which a model is made or warmed up.
WARM_START: Final = "warm_start"
_A_NAME: Final = "a name such as Qwen/Qwen3-0.6B that transformers resolves"


@frozen
class Base:
    """The model to begin with: a directory or a name that transformers resolves. ``compact``: the corpus's prompt."""

    path: str
    compact: bool
    template_options: Mapping[str, Any]

    def codec(self, tokenizer: Any, pipeline: Pipeline, ends: frozenset[int]) -> ChatCodec | PlainCodec:
        """Prompts and turns as token ids: the same ones that the trainer ``local`` gives this model."""
        if not self.compact:
            return ChatCodec(tokenizer, template_options=self.template_options, ends=ends)
        if not has(pipeline.corpus, WritesPrompts):
            raise UsageError(f"the model wants the compact prompt of a corpus, but {pipeline.corpus.name!r} has none")
        return PlainCodec(tokenizer, pipeline.corpus.prompt_text, ends=ends)


def needs_local(options: Options, model: Model) -> bool:
    """Whether the trainer ``local`` has something to do first: a tiny model to make, or a warm start."""
    return model.tiny is not None or bool(options.warm_start.get("steps"))


def local_trainer(options: Options, pipeline: Pipeline) -> Trainer:
    """The trainer ``local`` with the recipe's warm start and no step after it.

    Raises :class:`callwright.UsageError` for a table ``warm_start`` that it does not take.
    """
    trainer: Trainer = pipeline.registry.create(
        "trainer",
        "local",
        steps=0,
        prompts=1,
        group=options.group,
        warm_start=options.warm_start,
        betas=list(options.betas),
        max_new_tokens=options.max_new_tokens,
        evaluation_tasks=1,
        checkpoint_every=options.checkpoint_every,
        keep_checkpoints=options.keep_checkpoints,
        threads=options.threads,
        device=options.device,
        dtype=options.dtype,
    )
    return trainer


def make_base(options: Options, model: Model, pipeline: Pipeline, run: Run, reporter: Reporter) -> Base:
    """The model to begin with, made and warmed up in ``RUN/warm_start`` where it has to be."""
    if needs_local(options, model):
        inner = Run.create(
            run.path / WARM_START,
            recipe_text=(run.path / "recipe.toml").read_text(encoding="utf-8"),
            manifest={"of": "the warm start of the run that it lies in"},
        )
        if not (inner.checkpoints / FINAL / "config.json").is_file():
            local_trainer(options, pipeline).train(pipeline, inner, reporter=reporter)
        return based_on(str((inner.checkpoints / FINAL).resolve()), model)
    assert model.path is not None
    return based_on(resolved(model.path), model)


def resolved(path: str) -> str:
    """The directory of a model, of a run folder its final checkpoint; a name as it is, for transformers.

    A name is one that transformers has in its cache, or may fetch: of ``OWNER/NAME`` no folder here is called
    ``OWNER``. Raises :class:`callwright.errors.DataError` for anything else, and for a directory that holds no model.
    """
    folder = Path(path)
    if not folder.is_dir():
        if path.startswith((".", "/", "~")) or path.count("/") > 1:
            raise DataError(f"{path} is not a directory, nor {_A_NAME}")
        if not is_cached(path):
            owner, sign, _ = path.partition("/")
            if sign and Path(owner).is_dir():
                raise DataError(f"{path} is not a directory, nor {_A_NAME}")
            if _is_offline():
                raise DataError(
                    f"{path} is not a directory, nor in the cache of transformers, which fetches nothing: "
                    "HF_HUB_OFFLINE is set"
                )
        return path
    if (folder / "checkpoints" / FINAL).is_dir():
        folder = folder / "checkpoints" / FINAL
    if not (folder / "config.json").is_file():
        unfinished = (folder / "recipe.toml").is_file()
        why = "is a run that has not ended" if unfinished else "is not a Hugging Face model directory"
        raise DataError(f"{folder} {why}: it has no {'checkpoints/final' if unfinished else 'config.json'}")
    return str(folder.resolve())


def is_cached(name: str) -> bool:
    """Whether transformers has the model of a name in its cache."""
    try:
        from huggingface_hub import try_to_load_from_cache

        return isinstance(try_to_load_from_cache(name, "config.json"), str)
    except (ImportError, ValueError, OSError):  # it is no name, say
        return False


def _is_offline() -> bool:
    try:
        from huggingface_hub import constants
    except ImportError:
        return False
    return bool(constants.HF_HUB_OFFLINE)


def based_on(path: str, model: Model) -> Base:
    """A base with the form of prompts that ``[model]`` or the note beside the model says."""
    try:
        note = json.loads((Path(path) / NOTE).read_bytes())
    except (OSError, ValueError):
        note = {}
    written = note.get("prompt") if isinstance(note, dict) else None
    compact = model.prompt == "compact" or (model.prompt == "auto" and written == "compact")
    return Base(path, compact, dict(model.chat_template_options))
