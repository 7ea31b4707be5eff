"""OpenAI-compatible servers: requests with retries, rate limits and counted costs, and their errors in our words.

Retries and back-off are those of the ``openai`` package (it honours ``Retry-After``), rate limits those of
``aiolimiter``. Samplers and teachers share this; both packages are imported when a server is first asked.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from attrs import define, field, frozen

from callwright.errors import InfrastructureFailure, MissingExtra, UsageError
from callwright.machines.redaction import redacted
from callwright.machines.refused_parameters import RefusedParameters
from callwright.registration import Reach

T = TypeVar("T")
OPENAI: Final = "https://api.openai.com/v1"
#: Characters that are counted as a token where a limit of tokens needs an estimate before the server has counted.
_CHARACTERS: Final = 4


@define
class Usage:
    """What a server was asked and what that cost. ``cost`` is in the currency of the prices; 0 without prices."""

    requests: int = 0
    retries: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0

    def to_json(self) -> dict[str, float]:
        """The figures by name."""
        return {
            "requests": self.requests,
            "retries": self.retries,
            "failed": self.failed,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost": round(self.cost, 6),
        }

    def add(self, figures: dict[str, float]) -> None:
        """Add what another process counted."""
        for name, value in figures.items():
            setattr(self, name, getattr(self, name) + value)


class ContextExceeded(Exception):
    """The server says that the prompt does not fit into the model's context."""


@frozen(kw_only=True, eq=False)
class Server:
    """One model of one server.

    ``base_url`` defaults to ``$OPENAI_BASE_URL``, else OpenAI's; the key is read from the environment variable
    ``api_key_env``, and servers that want none get a placeholder. At most ``concurrency`` requests are under way, and
    begun at most ``requests_per_minute`` and ``tokens_per_minute`` (prompts estimated, completions at their limit).
    A request is repeated up to ``retries`` times after time-outs (``timeout`` seconds), lost connections and the
    statuses 408, 409, 429 and 5xx. ``prices`` are per million prompt and completion tokens.
    """

    model: str
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    concurrency: int = 16
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    retries: int = 5
    timeout: float = 600.0
    prices: tuple[float, float] = (0.0, 0.0)
    usage: Usage = field(factory=Usage, init=False)
    #: What the model was found not to take.
    parameters: RefusedParameters = field(factory=RefusedParameters, init=False)

    def __attrs_post_init__(self) -> None:
        if self.concurrency < 1 or self.retries < 0 or self.timeout <= 0:
            raise UsageError("concurrency must be 1 or more, retries 0 or more, and timeout more than 0")

    @property
    def address(self) -> str:
        """Where the server is."""
        return self.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI

    @property
    def label(self) -> str:
        """The address for people: without user, password and keys."""
        return redacted(self.address)

    def without_secrets(self, text: str) -> str:
        """A text that may hold what the server was sent: without its key, and whatever else looks like one."""
        return redacted(text, filter(None, [os.environ.get(self.api_key_env)]))

    def all(self, requests: Sequence[Callable[[Connection], Awaitable[T]]]) -> list[T | BaseException]:
        """The answers to many requests, in their order; what a request raises stands in place of its answer.

        Works from synchronous code and from within a running event loop.
        """

        async def work() -> list[T | BaseException]:
            async with Connection(self) as connection:
                return await asyncio.gather(*(request(connection) for request in requests), return_exceptions=True)

        return run_to_end(work())


class Connection:
    """An open connection to a server; belongs to one event loop."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._slots = asyncio.Semaphore(server.concurrency)
        self._limits: list[tuple[Any, bool]] = []

    async def __aenter__(self) -> Connection:
        try:
            import openai
            from aiolimiter import AsyncLimiter
        except ModuleNotFoundError as error:
            raise MissingExtra("OpenAI-compatible servers", "openai", error.name or "openai") from error
        server = self.server
        self._openai: Any = openai
        self._client: Any = openai.AsyncOpenAI(
            base_url=server.address,
            api_key=os.environ.get(server.api_key_env) or "none",
            max_retries=server.retries,
            timeout=server.timeout,
        )
        for rate, tokens in ((server.requests_per_minute, False), (server.tokens_per_minute, True)):
            if rate is not None:
                self._limits.append((AsyncLimiter(rate, 60), tokens))
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._client.close()

    async def chat(self, messages: Sequence[dict[str, Any]], **body: Any) -> dict[str, Any]:
        """The answer of ``/chat/completions``, as JSON.

        Raises :class:`callwright.UsageError` for what repeating cannot mend (key, model, a parameter),
        :class:`ContextExceeded`, and :class:`callwright.InfrastructureFailure` when the retries are used up.
        """
        length = sum(len(str(message.get("content") or "")) for message in messages) // _CHARACTERS
        return await self._ask(self._client.chat.completions, length, messages=list(messages), **body)

    async def complete(self, prompt: Sequence[int], **body: Any) -> dict[str, Any]:
        """The answer of ``/completions`` to token ids, as JSON; raises as :meth:`chat` does."""
        return await self._ask(self._client.completions, len(prompt), prompt=list(prompt), **body)

    async def respond(self, items: Sequence[dict[str, Any]], **body: Any) -> dict[str, Any]:
        """The answer of ``/responses``, as JSON; raises as :meth:`chat` does."""
        length = sum(len(str(item)) for item in items) // _CHARACTERS
        return await self._ask(self._client.responses, length, input=list(items), **body)

    async def _ask(self, endpoint: Any, length: int, **body: Any) -> dict[str, Any]:
        server, usage, openai = self.server, self.server.usage, self._openai
        limits = (body.get(name) for name in ("max_tokens", "max_completion_tokens", "max_output_tokens"))
        expected = length + int(next(filter(None, limits), 0))
        async with self._slots:
            for limiter, counts_tokens in self._limits:
                await limiter.acquire(min(expected, limiter.max_rate) if counts_tokens else 1)
            usage.requests += 1
            try:
                response = await self._send(endpoint, body)
            except (openai.APITimeoutError, openai.APIConnectionError) as error:
                usage.failed += 1
                usage.retries += server.retries
                raise InfrastructureFailure(
                    f"{server.label} does not answer: {server.without_secrets(str(error))}"
                ) from error
            except openai.APIStatusError as error:
                raise self._translated(error) from error
        usage.retries += response.retries_taken
        try:
            answer: dict[str, Any] = json.loads(response.http_response.content)
            counted = answer.get("usage") or {}
            usage.prompt_tokens += int(counted.get("prompt_tokens") or counted.get("input_tokens") or 0)
            usage.completion_tokens += int(counted.get("completion_tokens") or counted.get("output_tokens") or 0)
        except (ValueError, AttributeError, TypeError) as error:
            usage.failed += 1
            raise InfrastructureFailure(f"{server.label} answered something that is no completion") from error
        usage.cost = (usage.prompt_tokens * server.prices[0] + usage.completion_tokens * server.prices[1]) / 1_000_000
        return answer

    async def _send(self, endpoint: Any, body: dict[str, Any]) -> Any:
        """Ask; and again without a parameter that the model turns out to refuse."""
        server = self.server
        while True:
            sent = server.parameters.accepted(body)
            try:
                return await endpoint.with_raw_response.create(model=server.model, **sent)
            except self._openai.APIStatusError as error:
                said = server.without_secrets(_said(error))[:400]
                if not server.parameters.learn(sent, error.status_code, said, error.code, error.param, self._tell):
                    raise
            server.usage.retries += 1

    def _tell(self, said: str) -> None:
        import structlog

        structlog.get_logger(__name__).warning(said, server=self.server.label, model=self.server.model)

    def _translated(self, error: Any) -> Exception:
        server, usage = self.server, self.server.usage
        usage.failed += 1
        said = server.without_secrets(_said(error))[:400]
        status = error.status_code
        if status in (408, 409, 429) or status >= 500:
            usage.retries += server.retries
            return InfrastructureFailure(f"{server.label} answered {status} {server.retries + 1} times: {said}")
        if "context_length" in str(getattr(error, "code", "")) or "maximum context length" in said:
            return ContextExceeded(said)
        if status in (401, 403):
            return UsageError(f"{server.label} refuses the key in ${server.api_key_env} ({status}): {said}")
        if status == 404:
            return UsageError(f"{server.label} has no model {server.model!r}, or is no such server (404): {said}")
        return UsageError(f"{server.label} refuses the request ({status}): {said}")


def _said(error: Any) -> str:
    body = error.body if isinstance(error.body, dict) else {}
    message = body.get("message") or getattr(error, "message", "") or str(error)
    return " ".join(str(message).split())[:4000]


def key_reaches(options: Mapping[str, Any], variable: str, usual: str) -> Iterator[Reach]:
    """What options ``base_url`` and ``api_key_env`` of a sampler or teacher reach for: a key that goes to a host.

    ``variable`` is the default of ``api_key_env``, ``usual`` the host without ``base_url``. With neither option the
    usual key goes to the usual host, which is no choice of a recipe; a variable that is not set cannot be sent.
    """
    named = str(options.get("api_key_env", variable))
    if ("base_url" in options or "api_key_env" in options) and os.environ.get(named):
        host = options.get("base_url") or os.environ.get("OPENAI_BASE_URL") or usual
        yield Reach("secret", f"sends the environment variable {named} to {host}", ("base_url", "api_key_env"))


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine from synchronous code, in a thread of its own where this one has a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    found: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            found.append(asyncio.run(work))
        except BaseException as error:  # belongs to the thread that waits
            raised.append(error)

    thread = threading.Thread(target=run, name="callwright-server")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return found[0]
