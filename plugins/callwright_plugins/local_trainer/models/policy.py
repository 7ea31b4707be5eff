"""A policy: a causal language model, its tokenizer and the form of its prompts, in a Hugging Face directory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final, Literal

import torch
from attrs import field, frozen
from safetensors import SafetensorError
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as transformers_logging

from callwright.episodes.codec import ChatCodec, PlainCodec
from callwright.episodes.long_context import Extension, extension_of
from callwright.episodes.token_episode import Codec
from callwright.errors import DataError, UsageError
from callwright.language.messages import Message
from callwright.training.run_folder import write_atomically
from callwright.walk.tasks import Task
from callwright_plugins.local_trainer.models.folder import FINAL as FINAL
from callwright_plugins.local_trainer.models.folder import check_folder
from callwright_plugins.local_trainer.models.folder import model_folder as model_folder
from callwright_plugins.local_trainer.models.masters import publish, stepped

#: Beside the model: which form of prompt it was trained with, and the corpus that makes it.
NOTE: Final = "callwright_policy.json"

PromptForm = Literal["chat", "compact"]


@frozen(eq=False)
class Policy:
    """A model on a device. ``compact`` is the corpus's short prompt, where the model was trained with it.

    ``recompute``: no activations are kept for the way back (gradient checkpointing).
    """

    model: Any
    tokenizer: Any
    device: torch.device
    dtype: torch.dtype = torch.float32
    form: PromptForm = "chat"
    compact: Callable[[Task], str] | None = None
    corpus: str = ""
    template_options: Mapping[str, Any] = field(factory=dict)
    recompute: bool = False

    @property
    def ends(self) -> frozenset[int]:
        """The token ids that end a completion."""
        generation = getattr(self.model, "generation_config", None)
        given = getattr(generation, "eos_token_id", None)
        ends = set(given if isinstance(given, list) else [given])
        return frozenset((ends | {self.tokenizer.eos_token_id}) - {None})

    @property
    def pad(self) -> int:
        """What padded positions hold; they are masked, so any id does."""
        pad = self.tokenizer.pad_token_id
        return int(pad) if pad is not None else min(self.ends, default=0)

    def arithmetic(self) -> AbstractContextManager[Any]:
        """The context in which the model is called: mixed precision for ``bfloat16``, else nothing."""
        if self.dtype == torch.float32:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.dtype)

    def prompt_ids(self, task: Task, messages: Sequence[Message]) -> tuple[int, ...]:
        """The prompt of a task as token ids: the compact text, the chat template, or the messages as plain text."""
        tokenizer = self.tokenizer
        if self.form == "compact":
            assert self.compact is not None
            ids = tokenizer.encode(self.compact(task), add_special_tokens=False)
            begin = tokenizer.bos_token_id
            return (begin, *ids) if begin is not None else tuple(ids)
        if tokenizer.chat_template:
            text = tokenizer.apply_chat_template(
                [message.to_openai() for message in messages],
                tokenize=False,
                add_generation_prompt=True,
                **self.template_options,
            )
            return tuple(tokenizer.encode(text, add_special_tokens=False))
        plain = "\n\n".join(message.text.strip() for message in messages) + "\n\n"
        return tuple(tokenizer.encode(plain))

    @property
    def positions(self) -> int | None:
        """How many tokens the model can hold, prompt and completion together; ``None`` if it does not say."""
        room: int | None = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        return room

    def codec(self) -> Codec:
        """The form of the prompt as what episodes of several turns are made with; prompts come out the same."""
        if self.form == "compact":
            assert self.compact is not None
            return PlainCodec(self.tokenizer, self.compact, ends=self.ends)
        return ChatCodec(self.tokenizer, template_options=self.template_options, ends=self.ends)

    def completion_ids(self, text: str) -> tuple[int, ...]:
        """A completion as token ids, with the end token. Tokenised by itself, as the policy would have to write it."""
        end = self.tokenizer.eos_token_id
        ids = self.tokenizer.encode(text, add_special_tokens=False)
        return (*ids, end) if end is not None else tuple(ids)

    def text(self, ids: Sequence[int]) -> str:
        """The text of sampled ids, without the final end token. Special tokens inside stay visible: they are output."""
        return self.written(ids[:-1] if ids and ids[-1] in self.ends else ids)

    def written(self, ids: Sequence[int]) -> str:
        """The text of any ids, special tokens included."""
        decoded: str = self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return decoded

    def save(self, folder: Path) -> None:
        """Write a Hugging Face directory: weights, config, tokenizer, and the note about prompts."""
        with _without_bars():
            self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        write_atomically(folder / NOTE, json.dumps({"prompt": self.form, "corpus": self.corpus}) + "\n")


def weights(model: Any) -> dict[str, Tensor]:
    """The trained tensors by name, in float32 where there are masters; tied ones once."""
    return {name: parameter.detach() for name, parameter in stepped(model).items()}


@torch.no_grad()
def set_weights(model: Any, tensors: Mapping[str, Tensor]) -> None:
    """Copy tensors into a model. Raises :class:`callwright.errors.DataError` if they are not those of this model."""
    parameters = stepped(model)
    if parameters.keys() != tensors.keys():
        odd = sorted(parameters.keys() ^ tensors.keys())
        raise DataError(f"the checkpoint is of another model: {odd[0]!r} is only in one of them")
    for name, parameter in parameters.items():
        if parameter.shape != tensors[name].shape:
            raise DataError(f"the checkpoint is of another model: the shapes of {name!r} differ")
        parameter.copy_(tensors[name])
    publish(model)


def pick_device(wanted: str) -> torch.device:
    """``auto`` is CUDA where there is one. Raises :class:`callwright.UsageError` for CUDA where there is none."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise UsageError("device = 'cuda', but torch sees no CUDA device here; use device = 'auto' or 'cpu'")
    return torch.device("cuda" if wanted == "cuda" or (wanted == "auto" and torch.cuda.is_available()) else "cpu")


def load_policy(
    folder: Path,
    *,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    compact: Callable[[Task], str] | None = None,
    form: Literal["auto", "chat", "compact"] = "auto",
    template_options: Mapping[str, Any] | None = None,
    yarn: Any = None,
) -> Policy:
    """Read a Hugging Face directory; nothing is downloaded and no code of it is run. ``yarn``: see :func:`extended`.

    Raises :class:`callwright.errors.DataError` if it is not there or does not hold a causal language model, and
    :class:`callwright.UsageError` where its context cannot be extended.
    """
    check_folder(folder)
    try:
        with _without_bars():
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            more = {} if yarn is None else {"config": extended(folder, yarn)[0]}
            model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, dtype=torch.float32, **more)
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{folder} cannot be loaded as a causal language model: {error}") from error
    except SafetensorError as error:
        whose = "; callwright doctor says what else of a run is damaged, and --repair goes back to what is not"
        raise DataError(f"the weights in {folder} are damaged: {error}{whose}") from error
    note = read_note(folder)
    if form == "auto":
        form = "compact" if note.get("prompt") == "compact" else "chat"
    if form == "compact" and compact is None:
        raise UsageError(f"{folder} wants the compact prompt of a corpus, but the corpus has no prompt_text")
    model.to(device).eval()
    return Policy(
        model, tokenizer, device, dtype, form, compact, str(note.get("corpus", "")), dict(template_options or {})
    )


def extended(folder: Path, yarn: Any) -> tuple[Any, Extension]:
    """The configuration of a model directory with its context extended by YaRN, and what that is.

    Raises :class:`callwright.errors.DataError` for a directory without one and :class:`callwright.UsageError` where it
    cannot be extended (:func:`callwright.episodes.long_context.extension_of`).
    """
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{folder} has no configuration that can be read: {error}") from error
    text = config.get_text_config()
    found = extension_of(yarn, text.to_dict(), str(folder))
    if hasattr(text, "rope_parameters"):
        text.rope_parameters = {**text.rope_parameters, **found.parameters}
    else:  # transformers before 5 has the base apart
        text.rope_scaling = {name: value for name, value in found.parameters.items() if name != "rope_theta"}
    text.max_position_embeddings = found.positions
    return config, found


@contextmanager
def _without_bars() -> Iterator[None]:
    """Reading and writing a model draws progress bars on stderr unless it is told not to."""
    shown = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            transformers_logging.enable_progress_bar()


def read_note(folder: Path) -> dict[str, Any]:
    """The note beside a model; empty for models that others made."""
    path = folder / NOTE
    try:
        note = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    return note if isinstance(note, dict) else {}
