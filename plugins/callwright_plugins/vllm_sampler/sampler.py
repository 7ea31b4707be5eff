"""The sampler ``vllm``: prompts rendered here, token ids sent, token ids kept, over one turn or several."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Literal

from attrs import frozen

from callwright.episodes.codec import ChatCodec
from callwright.episodes.driving import drive
from callwright.episodes.long_context import Extension, extension_of
from callwright.episodes.sampling import Start, draw_seed
from callwright.episodes.token_episode import EngineOutput, TokenEpisode
from callwright.errors import DataError, InfrastructureFailure, MissingExtra, UsageError
from callwright.machines.model_server import Connection, Server, Usage, key_reaches, usage_of
from callwright.machines.model_server.reply_cache import ReplyCache
from callwright.registration import Reach
from callwright.tools.spec import ToolSpec
from callwright.walk.completion import Completion
from callwright.walk.sampling import SamplingRequest
from callwright_plugins.vllm_sampler.engines import Demand, OfflineEngine, ServerEngine
from callwright_plugins.vllm_sampler.structured import structural_tags

#: Texts among vLLM's options that only pick one of its own ways; others may name code to be imported.
_HARMLESS: Final = frozenset({"dtype", "kv_cache_dtype", "quantization", "tokenizer_mode", "load_format"})


def reaches(options: Mapping[str, Any]) -> Iterator[Reach]:
    """What the sampler would reach for: the key that it sends to a server, the code that engine options name."""
    if options.get("base_url"):
        yield from key_reaches(options, "VLLM_API_KEY", "")
    engine = options.get("engine")
    if isinstance(engine, Mapping):
        code = {
            name: value
            for name, value in engine.items()
            if (name == "trust_remote_code" and value)
            or (isinstance(value, str | Mapping | list) and name not in _HARMLESS)
        }
        if code:
            what = f"lets vLLM run code that its options name or the model {options.get('model')!r} holds: {code}"
            yield Reach("code", what, ("engine", "model"))


class VLLMSampler:
    """Completions of ``model``, a Hugging Face directory (or a name that vLLM resolves), through vLLM.

    Without ``base_url`` the engine runs in this process; ``engine`` are options of ``vllm.LLM``. With it a running
    server is asked (``vllm serve``), whose name for the model is ``served_as`` and whose tokenizer is read here, from
    ``tokenizer`` or ``model``. Either way the chat template is rendered here and ids are sent and kept, so that what is
    trained on is what was sampled; ``tools_in_template`` gives the tools to the template instead of the system message.

    ``structured`` names the form (``json`` or ``hermes``) whose calls are held to the offered tools and their schemas.
    ``seeds`` gives every completion a seed of its own, without which they cannot be sampled again (vLLM's CPU build
    fails on them). ``sampling`` are further parameters (``{"top_p": 0.95}``). ``concurrency``, ``retries``,
    ``timeout`` and ``api_key_env`` are those of the server.

    ``yarn`` extends the context for this evaluation: a factor, or ``{factor, original}``
    (:func:`callwright.episodes.long_context.extension_of`), which the engine is given as ``hf_overrides`` and
    ``max_model_len``. A server is started with them, so there it is refused with what to start it with.
    """

    name = "vllm"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        served_as: str | None = None,
        tokenizer: str | None = None,
        max_new_tokens: int = 1024,
        structured: Literal["json", "hermes"] | None = None,
        seeds: bool = True,
        sampling: Mapping[str, Any] | None = None,
        engine: Mapping[str, Any] | None = None,
        tools_in_template: bool = False,
        chat_template_options: Mapping[str, Any] | None = None,
        concurrency: int = 64,
        retries: int = 5,
        timeout: float = 600.0,
        api_key_env: str = "VLLM_API_KEY",
        yarn: Any = None,
    ) -> None:
        if type(max_new_tokens) is not int or max_new_tokens < 1:
            raise UsageError(f"'max_new_tokens' must be a whole number, 1 or more, not {max_new_tokens!r}")
        if base_url is not None and engine:
            raise UsageError("'engine' is for vLLM in this process; a server has its own options")
        if structured is not None:
            structural_tags(structured, {})  # a form that has none is refused here
        self._model, self._engine_options = model, dict(engine or {})
        self._extension: Extension | None = None
        if yarn is not None:
            self._extension = extension_of(yarn, _text_config(model), model)
            overrides = {"rope_parameters": self._extension.parameters}
            if base_url is not None:
                raise UsageError(
                    "'yarn' is for vLLM in this process; a server is started with --hf-overrides "
                    f"'{json.dumps(overrides)}' --max-model-len {self._extension.positions}"
                )
            if clash := sorted({"hf_overrides", "max_model_len"} & self._engine_options.keys()):
                raise UsageError(f"'yarn' sets the engine's {' and '.join(clash)}, which 'engine' says otherwise")
            self._engine_options |= {"hf_overrides": overrides, "max_model_len": self._extension.positions}
        self._tokenizer_folder = tokenizer or model
        self._template = (tools_in_template, dict(chat_template_options or {}))
        self._max_new_tokens, self._structured = max_new_tokens, structured
        self._sampling = dict(sampling or {})
        self._seeds = seeds
        self._server: Server | None = None
        if base_url is not None:
            self._server = Server(
                model=served_as or model,
                base_url=base_url,
                api_key_env=api_key_env,
                concurrency=concurrency,
                retries=retries,
                timeout=timeout,
            )
        self._made: tuple[ChatCodec, OfflineEngine | ServerEngine] | None = None

    @property
    def extended_context(self) -> Mapping[str, Any] | None:
        """By what the model's context is extended, for results."""
        return None if self._extension is None else self._extension.to_json()

    @property
    def usage(self) -> Usage | None:
        """What a server was asked; ``None`` for an engine in this process."""
        return self._server.usage if self._server is not None else None

    @property
    def codec(self) -> ChatCodec:
        """Between messages and token ids; the tokenizer is read when it is first needed."""
        return self._ready()[0]

    def sample(
        self, requests: Sequence[SamplingRequest], *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[list[Completion]]:
        """``[B][n]`` completions with their ids and log-probabilities; ``temperature`` 0 is greedy decoding."""
        _check(n, temperature)
        codec, engine = self._ready()
        demands = [demand for request in requests for demand in self.beginnings(codec, request, n, seed)]
        made = [completion_of(codec, one) for one in engine.generate(demands, temperature, self._sampling)]
        return [made[start : start + n] for start in range(0, len(made), n)]

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
        """``[B][n]`` rollouts driven to their end, all that go on in one batch each turn."""
        _check(n, temperature)
        codec, engine = self._ready()
        groups = [[start(request, codec, copy) for copy in range(n)] for request in requests]
        rollouts = [one for group in groups for one in group]

        def generate(live: Sequence[TokenEpisode]) -> Sequence[EngineOutput | InfrastructureFailure]:
            return engine.generate([self.demand(one) for one in live], temperature, self._sampling)

        drive(rollouts, generate, retries=retries)
        return groups

    # One by one, of a server ------------------------------------------------------------------------------------------

    @property
    def concurrency(self) -> int:
        """How many requests of a server may be under way; 0 for an engine in this process, which takes batches."""
        return self._server.concurrency if self._server is not None else 0

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Connected]:
        """A connection to the server. Raises :class:`callwright.UsageError` for an engine in this process."""
        codec, engine = self._ready()
        if not isinstance(engine, ServerEngine):
            raise UsageError("vLLM in this process is asked for batches; 'base_url' names a server")
        async with Connection(engine.server) as connection:
            yield Connected(self, codec, engine, connection)

    def keep_replies(self, replies: ReplyCache) -> None:
        """From now on look there before asking the server, and put every answer there."""
        if self._server is not None:
            self._server.keep_replies(replies)

    def paid_for(self, answer: Mapping[str, Any]) -> float:
        """What an answer that is kept has cost: this sampler knows no prices."""
        return usage_of(answer, self._server.prices).cost if self._server is not None else 0.0

    # What is asked ----------------------------------------------------------------------------------------------------

    def beginnings(self, codec: ChatCodec, request: SamplingRequest, n: int, seed: int) -> list[Demand]:
        """What is asked for ``n`` completions of a prompt."""
        context, tags = codec.prompt_ids(request.messages, request.task), self._tags(request.offered)
        seeds = [self._seed(draw_seed(seed, request.task.id, copy), 0) for copy in range(n)]
        return [Demand(context, self._max_new_tokens, one, tags) for one in seeds]

    def demand(self, episode: TokenEpisode) -> Demand:
        """What is asked to go on with an episode."""
        room = self._max_new_tokens if episode.room is None else min(episode.room, self._max_new_tokens)
        seed = self._seed(episode.conditions.seed, len(episode.history))
        return Demand(episode.context, room, seed, self._tags(episode.offered))

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Further parameters of sampling, for every request."""
        return self._sampling

    def _seed(self, *parts: int) -> int | None:
        """31 bits for one completion."""
        if not self._seeds:
            return None
        return int.from_bytes(blake2b("/".join(map(str, parts)).encode(), digest_size=4).digest()) >> 1

    def _tags(self, offered: Mapping[str, ToolSpec]) -> Mapping[str, Any] | None:
        return structural_tags(self._structured, offered) if self._structured is not None else None

    def _ready(self) -> tuple[ChatCodec, OfflineEngine | ServerEngine]:
        if self._made is None:
            in_template, options = self._template
            codec = ChatCodec(
                read_tokenizer(self._tokenizer_folder),
                tools_in_template=in_template,
                template_options=options,
                ends=end_ids(Path(self._tokenizer_folder)),
            )
            if self._server is not None:
                self._made = codec, ServerEngine(self._server, codec.ends)
            else:
                self._made = codec, OfflineEngine(self._model, codec.ends, self._engine_options)
        return self._made


@frozen(eq=False)
class Connected:
    """The sampler while it is connected to a server."""

    sampler: VLLMSampler
    codec: ChatCodec
    _engine: ServerEngine
    _connection: Connection

    async def sample_one(
        self, request: SamplingRequest, *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[Completion]:
        """``n`` completions of one request; those that failed are masked."""
        _check(n, temperature)
        demands = self.sampler.beginnings(self.codec, request, n, seed)
        made = await asyncio.gather(*(self._ask(demand, temperature) for demand in demands))
        return [completion_of(self.codec, one) for one in made]

    async def continue_one(self, episode: TokenEpisode, *, temperature: float = 1.0) -> EngineOutput:
        """What follows the ids of an episode. Raises :class:`callwright.InfrastructureFailure`."""
        made = await self._ask(self.sampler.demand(episode), temperature)
        if isinstance(made, InfrastructureFailure):
            raise made
        return made

    async def _ask(self, demand: Demand, temperature: float) -> EngineOutput | InfrastructureFailure:
        return await self._engine.one(self._connection, demand, temperature, self.sampler.parameters)


def completion_of(codec: ChatCodec, made: EngineOutput | InfrastructureFailure) -> Completion:
    """What an engine made of a prompt, as a completion."""
    if isinstance(made, InfrastructureFailure):
        return Completion("", masked=str(made))
    text = codec.prefix_text + codec.text(made.token_ids)
    return Completion(text, made.token_ids, made.logprobs, not made.finished, usage=made.usage)


def read_tokenizer(folder: str) -> Any:
    """The tokenizer of a directory, or of a name in the local cache. Raises :class:`callwright.errors.DataError`."""
    try:
        from transformers import AutoTokenizer
    except ModuleNotFoundError as error:
        raise MissingExtra("the sampler 'vllm'", "train", error.name or "transformers") from error
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=Path(folder).is_dir())
    except (OSError, ValueError) as error:
        raise DataError(f"{folder} has no tokenizer that can be read here: {error}") from error


def _text_config(model: str) -> Mapping[str, Any]:
    """What a model's configuration says of its text part. Raises :class:`callwright.errors.DataError`."""
    try:
        from transformers import AutoConfig
    except ModuleNotFoundError as error:
        raise MissingExtra("the sampler 'vllm'", "train", error.name or "transformers") from error
    try:
        found = AutoConfig.from_pretrained(model, local_files_only=Path(model).is_dir())
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{model} has no configuration that can be read here: {error}") from error
    stated: Mapping[str, Any] = found.get_text_config().to_dict()
    return stated


def end_ids(folder: Path) -> frozenset[int]:
    """The end ids of a directory's generation config, which may be more than the tokenizer's one."""
    path = folder / "generation_config.json"
    if not path.is_file():
        return frozenset()
    try:
        given = json.loads(path.read_text(encoding="utf-8")).get("eos_token_id")
    except (OSError, ValueError, AttributeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    listed = given if isinstance(given, list) else [given]
    return frozenset(one for one in listed if type(one) is int)


def _check(n: int, temperature: float) -> None:
    if n < 1 or temperature < 0:
        raise UsageError(f"n must be at least 1 and temperature at least 0, not {n} and {temperature}")
