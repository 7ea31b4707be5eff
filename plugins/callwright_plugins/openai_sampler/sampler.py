"""The sampler ``openai``: chat messages out, completions in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from callwright.episodes.sampling import draw_seed
from callwright.errors import DataError, InfrastructureFailure, UsageError
from callwright.language.messages import Message
from callwright.language.native import NATIVE_FORM, native_messages, turn_text
from callwright.language.parser import Parser
from callwright.machines.model_server import (
    OPENAI,
    Connection,
    ContentFiltered,
    ContextExceeded,
    Server,
    Usage,
    is_filtered,
    key_reaches,
)
from callwright.plugins import default_registry
from callwright.registration import Reach
from callwright.walk.completion import Completion
from callwright.walk.sampling import SamplingRequest


def reaches(options: Mapping[str, Any]) -> Iterator[Reach]:
    """What the sampler would reach for with these options: the key that it sends."""
    return key_reaches(options, "OPENAI_API_KEY", OPENAI)


class OpenAISampler:
    """Completions of ``model`` on an OpenAI-compatible server.

    ``max_new_tokens`` bounds a completion (sent as ``token_limit``: newer models of OpenAI want
    ``max_completion_tokens``). ``tools="prompt"`` leaves the tools to the system message, as every other sampler does;
    ``"native"`` sends them as function definitions, and what the server returns as tool calls is written in the form
    ``hermes``, which the recipe must then use. ``logprobs`` asks for those of the sampled tokens. ``body`` is added to
    every request (``{"top_p": 0.9}``). The other options are those of :class:`callwright.machines.model_server.Server`.

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
        tools: Literal["prompt", "native"] = "prompt",
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
        if tools not in ("prompt", "native"):
            raise UsageError(f"'tools' must be 'prompt' or 'native', not {tools!r}")
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
        self._native: Parser | None = default_registry().create("parser", NATIVE_FORM) if tools == "native" else None
        self._logprobs = logprobs
        self._send_seed = send_seed
        self._body = {token_limit: max_new_tokens, **(body or {})}
        #: In which role results of calls are sent: the server's template knows tools only where it was told of them.
        self.observation_role: Literal["tool", "user"] = "user" if self._native is None else "tool"

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
        if n < 1 or temperature < 0:
            raise UsageError(f"n must be at least 1 and temperature at least 0, not {n} and {temperature}")

        def asking(request: SamplingRequest) -> Any:
            async def ask(connection: Connection) -> list[Completion]:
                return await self._group(connection, request, n, draw_seed(seed, request.task.id), temperature)

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

    async def _group(
        self, connection: Connection, request: SamplingRequest, n: int, seed: int, temperature: float
    ) -> list[Completion]:
        """As many completions as were asked for, from servers too that give fewer at a time."""
        said = request.messages
        body: dict[str, Any] = {**self._body, "temperature": temperature}
        if self._native is not None:
            said = native_messages(said, self._native)
            functions = [spec.to_openai() for spec in request.task.tools.values() if not spec.hidden]
            body |= {"tools": functions} if functions else {}
        if self._logprobs:
            body["logprobs"] = True
        messages = [message.to_openai() for message in said]
        completions: list[Completion] = []
        while len(completions) < n:
            wanted = n - len(completions)
            more: dict[str, Any] = {"n": wanted} if wanted > 1 else {}
            if self._send_seed:
                more["seed"] = (seed + len(completions)) % 2**31
            try:
                answer = await connection.chat(messages, **body, **more)
            except ContextExceeded:
                return [Completion("", truncated=True)] * n
            except ContentFiltered as refused:
                return [Completion("", masked=f"refused by a content filter: {refused}")] * n
            choices = answer.get("choices") or []
            if not choices:
                raise InfrastructureFailure(f"{self.server.label} answered without a choice")
            completions += [self._completion(choice) for choice in choices[:wanted]]
        return completions

    def _completion(self, choice: Mapping[str, Any]) -> Completion:
        if is_filtered(choice):
            return Completion("", masked=f"refused by a content filter: {self.server.label} cut what the model wrote")
        try:
            message = Message.from_openai({"role": "assistant", **(choice.get("message") or {})})
        except DataError as error:
            raise InfrastructureFailure(f"{self.server.label} answered with what is no message: {error}") from error
        tokens = (choice.get("logprobs") or {}).get("content") or ()
        return Completion(
            message.text if self._native is None else turn_text(message, self._native),
            logprobs=tuple(float(token["logprob"]) for token in tokens),
            truncated=choice.get("finish_reason") == "length",
        )
