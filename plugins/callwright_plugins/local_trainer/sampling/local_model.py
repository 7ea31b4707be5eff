"""Samplers over a local model: of a policy in memory, and of a directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from callwright.capability import has
from callwright.episodes.driving import drive
from callwright.episodes.sampling import Start, draw_seed
from callwright.episodes.token_episode import Codec, EngineOutput, TokenEpisode
from callwright.errors import UsageError
from callwright.plugins import Registry
from callwright.walk.completion import Completion
from callwright.walk.corpora.capabilities import WritesPrompts
from callwright.walk.sampling import SamplingRequest
from callwright.walk.tasks import Task
from callwright_plugins.local_trainer.forward.generation import generate
from callwright_plugins.local_trainer.models.policy import (
    NOTE,
    Policy,
    extended,
    load_policy,
    model_folder,
    pick_device,
    read_note,
)
from callwright_plugins.local_trainer.options import TURN_CACHE_GIB, Device, Precision
from callwright_plugins.local_trainer.randomness import seed_of, steady
from callwright_plugins.local_trainer.sampling.episodes import Engine, turn_cache

if TYPE_CHECKING:
    from callwright.episodes.pool import EpisodePool


class PolicySampler:
    """Completions of a policy: what is sampled for a request hangs on the seed and its task alone."""

    name = "local-model"

    def __init__(
        self,
        policy: Policy,
        max_new_tokens: int,
        rows_at_once: int = 256,
        pool: EpisodePool | None = None,
        turn_cache_gib: float = TURN_CACHE_GIB,
    ) -> None:
        """``pool`` executes the turns of episodes; without one this thread does. ``turn_cache_gib``: of keys and values
        that are kept from one turn to the next."""
        self.policy = policy
        self._pool = pool
        self._max_new_tokens = max_new_tokens
        self._rows_at_once = rows_at_once
        self._turn_cache_gib = turn_cache_gib

    def sample(
        self, requests: Sequence[SamplingRequest], *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[list[Completion]]:
        """``[B][n]`` completions; ``temperature`` 0 is greedy decoding."""
        if n < 1 or temperature < 0:
            raise UsageError(f"n must be at least 1 and temperature at least 0, not {n} and {temperature}")
        policy = self.policy
        sampled = generate(
            policy,
            [policy.prompt_ids(request.task, request.messages) for request in requests],
            copies=n,
            max_new_tokens=self._max_new_tokens,
            temperature=temperature,
            seeds=[seed_of(draw_seed(seed, one.task.id, copy), "turn", 0) for one in requests for copy in range(n)],
            rows_at_once=self._rows_at_once,
        )
        return [
            [Completion(policy.text(one.ids), one.ids, one.logprobs, one.truncated) for one in group]
            for group in sampled
        ]

    def converse(
        self,
        requests: Sequence[SamplingRequest],
        start: Start,
        *,
        n: int = 1,
        seed: int = 0,
        temperature: float = 1.0,
        retries: int = 0,
    ) -> list[list[TokenEpisode]]:
        """``[B][n]`` episodes of several turns, as token ids throughout."""
        if n < 1 or temperature < 0:
            raise UsageError(f"n must be at least 1 and temperature at least 0, not {n} and {temperature}")
        policy = self.policy
        codec = policy.codec()
        groups = [[start(request, codec, copy) for copy in range(n)] for request in requests]
        cache = turn_cache(self._turn_cache_gib)
        engine = Engine(policy, temperature, None, self._rows_at_once, self._max_new_tokens, cache)
        drive([one for group in groups for one in group], engine, retries=retries, pool=self._pool)
        return groups


class LocalModelSampler:
    """``local-model``: a Hugging Face directory, or a run folder, whose final checkpoint is then read.

    ``prompt``: ``chat`` (messages, through the chat template if there is one), ``compact`` (the short prompt of
    ``corpus``, which is a name or a corpus) or ``auto`` (as the model was trained). ``rows`` completions are sampled at
    a time, and ``turn_cache_gib`` GiB of keys and values are kept between the turns of episodes. ``yarn`` extends the
    context for this evaluation: a factor, or ``{factor, original}``
    (:func:`callwright.episodes.long_context.extension_of`). Raises :class:`callwright.errors.DataError` if there is no
    model in ``model`` and :class:`callwright.UsageError` where ``yarn`` does not fit it. The model is read when first
    asked.
    """

    name = "local-model"

    def __init__(
        self,
        model: str,
        *,
        max_new_tokens: int = 256,
        device: Device = "auto",
        dtype: Precision = "float32",
        threads: int = 1,
        prompt: Literal["auto", "chat", "compact"] = "auto",
        corpus: Any = None,
        chat_template_options: dict[str, Any] | None = None,
        rows: int = 256,
        turn_cache_gib: float = TURN_CACHE_GIB,
        yarn: Any = None,
        registry: Registry | None = None,
    ) -> None:
        for option, value in (("max_new_tokens", max_new_tokens), ("threads", threads), ("rows", rows)):
            if type(value) is not int or value < 1:
                raise UsageError(f"{option!r} must be a whole number, 1 or more, not {value!r}")
        self._folder = model_folder(Path(model))
        self._threads = threads
        self._options: dict[str, Any] = {"device": device, "dtype": dtype, "form": prompt}
        self._template_options = chat_template_options or {}
        self._corpus = corpus
        self._registry = registry
        if type(turn_cache_gib) not in (int, float) or not turn_cache_gib >= 0:
            raise UsageError(f"'turn_cache_gib' must be a number, 0 or more, not {turn_cache_gib!r}")
        self._max_new_tokens, self._rows, self._turn_cache_gib = max_new_tokens, rows, turn_cache_gib
        self._yarn = yarn
        self._extension = None if yarn is None else extended(self._folder, yarn)[1]
        self._sampler: PolicySampler | None = None

    @property
    def extended_context(self) -> Mapping[str, Any] | None:
        """By what the model's context is extended, for results."""
        return None if self._extension is None else self._extension.to_json()

    def sample(
        self, requests: Sequence[SamplingRequest], *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[list[Completion]]:
        """``[B][n]`` completions; ``temperature`` 0 is greedy decoding."""
        with steady(self._threads, seed):
            return self._loaded().sample(requests, n=n, seed=seed, temperature=temperature)

    def batch_engine(self, temperature: float) -> tuple[Codec, Callable[[Sequence[Any]], Sequence[EngineOutput]]]:
        """The model as what a gateway asks; each context is continued from the seed of its own conditions."""
        policy = self._loaded().policy
        engine = Engine(policy, temperature, None, self._rows, self._max_new_tokens)

        def continued(asked: Sequence[Any]) -> Sequence[EngineOutput]:
            with steady(self._threads, 0):
                return engine(asked)

        return policy.codec(), continued

    def converse(
        self,
        requests: Sequence[SamplingRequest],
        start: Start,
        *,
        n: int = 1,
        seed: int = 0,
        temperature: float = 1.0,
        retries: int = 0,
    ) -> list[list[TokenEpisode]]:
        """``[B][n]`` episodes of several turns, as token ids throughout."""
        with steady(self._threads, seed):
            return self._loaded().converse(requests, start, n=n, seed=seed, temperature=temperature, retries=retries)

    def _loaded(self) -> PolicySampler:
        if self._sampler is None:
            self._sampler = PolicySampler(
                self._load(), self._max_new_tokens, self._rows, turn_cache_gib=self._turn_cache_gib
            )
        return self._sampler

    def _load(self) -> Policy:
        return load_policy(
            self._folder,
            device=pick_device(self._options["device"]),
            dtype=getattr(torch, self._options["dtype"]),
            compact=self._compact(),
            form=self._options["form"],
            template_options=self._template_options,
            yarn=self._yarn,
        )

    def _compact(self) -> Callable[[Task], str] | None:
        corpus = self._corpus or (read_note(self._folder).get("corpus") if (self._folder / NOTE).is_file() else None)
        if isinstance(corpus, str) and corpus and self._registry is not None:
            if not self._registry.knows("corpus", corpus):
                return None
            corpus = self._registry.create("corpus", corpus, **self._stated(corpus))
        return corpus.prompt_text if has(corpus, WritesPrompts) else None

    def _stated(self, corpus: str) -> Mapping[str, Any]:
        """The options that the run of the model stated for its corpus; none for a model that is not a run's."""
        for folder in (self._folder, *self._folder.parents[:2]):  # RUN/checkpoints/final
            if (folder / "recipe.toml").is_file():
                from callwright.recipe_file import load_recipe

                stated = load_recipe(folder / "recipe.toml").recipe.corpus
                return stated.options if stated.name == corpus else {}
        return {}
