"""The sampler ``openai``: chat messages out, completions in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

from attrs import frozen

from callwright.episodes.sampling import draw_seed
from callwright.errors import InfrastructureFailure, UsageError
from callwright.language.native import NATIVE_FORM
from callwright.machines.model_server import OPENAI, Connection, Server, Usage, key_reaches, usage_of
from callwright.machines.model_server.reply_cache import ReplyCache
from callwright.plugins import default_registry
from callwright.registration import Reach
from callwright.walk.completion import Completion
from callwright.walk.sampling import AskedOneByOne, SamplingRequest
from callwright_plugins.openai_sampler.exchange import APIS, EARLIER_THOUGHTS, Api, EarlierThoughts, Exchange
from callwright_plugins.openai_sampler.functions import Functions


def reaches(options: Mapping[str, Any]) -> Iterator[Reach]:
    """What the sampler would reach for with these options: the key that it sends."""
    return key_reaches(options, "OPENAI_API_KEY", OPENAI)


class OpenAISampler:
    """Completions of ``model`` on an OpenAI-compatible server.

    ``max_new_tokens`` bounds a completion (sent as ``token_limit``). ``api`` is ``chat`` (chat completions) or
    ``responses``. ``reasoning_effort`` is sent as it is. A parameter that is sent of its own accord and that the model
    refuses is left out or renamed from then on (:mod:`callwright.machines.model_server.refused_parameters`).

    ``tools="prompt"`` leaves the tools to the system message, as every other sampler does; ``"native"`` sends them as
    function definitions, the prompt then holds neither a list of them nor a form
    (:func:`callwright.walk.prompt.build_messages`), and the recipe's form is only how calls are read. For these
    ``parallel_tool_calls``, ``tool_choice`` (``auto``, ``required``, ``none`` or a name) and ``strict``.

    A thought that the server hands over apart becomes the completion's own. ``earlier_thoughts`` is what later turns
    are sent of it: ``keep`` sends it back as it came, ``template`` writes it into the text in ``<think>`` for the
    server's template to decide, ``drop`` leaves it out.

    ``logprobs`` asks for those of the sampled tokens. ``body`` is added to every request (``{"top_p": 0.9}``). The
    other options are those of :class:`callwright.machines.model_server.Server`.

    A prompt that does not fit into the model's context is a truncated, empty completion. What a filter of the server
    refuses is masked, and so is a request that fails after all retries: it loses its sample and no other one, and its
    completions say so in ``masked``. ``usage`` counts requests, retries, tokens and cost.
    """

    name = "openai"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key_env: str = "OPENAI_API_KEY",
        max_new_tokens: int = 1024,
        token_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens",
        api: Api = "chat",
        tools: Literal["prompt", "native"] = "prompt",
        parallel_tool_calls: bool | None = None,
        tool_choice: str | None = None,
        strict: bool = False,
        earlier_thoughts: EarlierThoughts = "keep",
        reasoning_effort: str | None = None,
        logprobs: bool = False,
        body: Mapping[str, Any] | None = None,
        send_seed: bool = True,
        concurrency: int = 16,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        retries: int = 5,
        timeout: float = 600.0,
        price_prompt: float = 0.0,
        price_completion: float = 0.0,
        price_cached: float | None = None,
        max_cost: float | None = None,
        most_failures: int = 20,
    ) -> None:
        for option, value, known in (
            ("tools", tools, ("prompt", "native")),
            ("api", api, APIS),
            ("earlier_thoughts", earlier_thoughts, EARLIER_THOUGHTS),
        ):
            if value not in known:
                raise UsageError(f"{option!r} must be {' or '.join(map(repr, known))}, not {value!r}")
        native = tools == "native"
        asked = {"parallel_tool_calls": parallel_tool_calls, "tool_choice": tool_choice, "strict": strict or None}
        for option, stated in asked.items():
            if stated is not None and not native:
                raise UsageError(f'{option!r} is about tools that the server is given: it goes with tools = "native"')
            if option != "tool_choice" and type(stated) not in (bool, type(None)):
                raise UsageError(f"{option!r} must be true or false, not {stated!r}")
        if type(max_new_tokens) is not int or max_new_tokens < 1:
            raise UsageError(f"'max_new_tokens' must be a whole number, 1 or more, not {max_new_tokens!r}")
        self.server = Server(
            model=model,
            base_url=base_url,
            api_key_env=api_key_env,
            concurrency=concurrency,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            retries=retries,
            timeout=timeout,
            prices=(price_prompt, price_completion, price_prompt if price_cached is None else price_cached),
            max_cost=max_cost,
            most_failures=most_failures,
        )
        #: Whether the tools go to the server: prompts are then written without them.
        self.offers_tools = native
        #: In which role results of calls are sent: the server's template knows tools only where it was told of them.
        self.observation_role: Literal["tool", "user"] = "tool" if native else "user"
        self._exchange = Exchange(
            self.server,
            {
                token_limit: max_new_tokens,
                **({"reasoning_effort": reasoning_effort} if reasoning_effort is not None else {}),
                **({"logprobs": True} if logprobs else {}),
                **(body or {}),
            },
            api=api,
            functions=Functions(parallel_tool_calls, tool_choice, bool(strict)) if native else None,
            native_form=default_registry().create("parser", NATIVE_FORM) if native else None,
            earlier_thoughts=earlier_thoughts,
            send_seed=send_seed,
        )

    @property
    def usage(self) -> Usage:
        """What was asked so far, and what it cost."""
        return self.server.usage

    def sample(
        self, requests: Sequence[SamplingRequest], *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[list[Completion]]:
        """``[B][n]`` completions. Raises :class:`callwright.UsageError` for what repeating cannot mend, and
        :class:`callwright.InfrastructureFailure` if every request failed.
        """
        _check(n, temperature)

        def asking(request: SamplingRequest) -> Any:
            async def ask(connection: Connection) -> list[Completion]:
                return await _Connected(self._exchange, connection).sample_one(
                    request, n=n, seed=seed, temperature=temperature
                )

            return ask

        found = self.server.all([asking(request) for request in requests])
        failures = [answer for answer in found if isinstance(answer, InfrastructureFailure)]
        if failures and len(failures) == len(found):
            raise failures[0]
        groups: list[list[Completion]] = []
        for answer in found:
            if isinstance(answer, InfrastructureFailure):
                groups.append([Completion("", masked=str(answer))] * n)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                groups.append(answer)
        return groups

    @property
    def concurrency(self) -> int:
        """How many requests may be under way."""
        return self.server.concurrency

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[AskedOneByOne]:
        """A connection over which requests are made one by one."""
        async with Connection(self.server) as connection:
            yield _Connected(self._exchange, connection)

    def keep_replies(self, replies: ReplyCache) -> None:
        """From now on look there before asking, and put every answer there."""
        self.server.keep_replies(replies)

    def paid_for(self, answer: Mapping[str, Any]) -> float:
        """What an answer that is kept has cost, in the currency of the prices."""
        return usage_of(answer, self.server.prices).cost


@frozen(eq=False)
class _Connected:
    """The sampler while it is connected."""

    _exchange: Exchange
    _connection: Connection

    async def sample_one(
        self, request: SamplingRequest, *, n: int = 1, seed: int = 0, temperature: float = 1.0
    ) -> list[Completion]:
        """``n`` completions. Raises :class:`callwright.UsageError` for what repeating cannot mend, and
        :class:`callwright.InfrastructureFailure` for a request that failed after all retries.
        """
        _check(n, temperature)
        seed = draw_seed(seed, request.task.id)
        return await self._exchange.group(self._connection, request, n, seed, temperature)


def _check(n: int, temperature: float) -> None:
    if n < 1 or temperature < 0:
        raise UsageError(f"n must be at least 1 and temperature at least 0, not {n} and {temperature}")
