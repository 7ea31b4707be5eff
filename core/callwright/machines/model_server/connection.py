"""An open connection to a model server: one request, its retries, its limits, its costs and its errors in our words.

HTTP is that of the ``openai`` package, which is imported when a server is first asked. Bodies go out as they are given
and answers come back as they are, so that keys unknown to that package pass both ways. Its own retries are switched
off: each HTTP request is one of ours, takes from the limiter and is counted.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeVar

from attrs import define, field

from callwright.errors import CallwrightError, InfrastructureFailure, MissingExtra, UsageError
from callwright.machines.model_server.refusals import ContentFiltered, Refused, Said, filtered, said
from callwright.machines.model_server.statuses import (
    Passing,
    RequestRejected,
    ServerFailing,
    judged,
    lost,
    pause,
    status_in,
)
from callwright.machines.model_server.usage import Expected, Usage, cost_of, expected, usage_of

if TYPE_CHECKING:
    from callwright.machines.model_server.server import Server

T = TypeVar("T")
#: Statuses of the key, its account (429 that waiting does not mend) or the model: all requests would be answered so.
_ALL_ALIKE: Final = frozenset({401, 402, 403, 404, 429})


class Connection:
    """An open connection to a server; belongs to one event loop. Use as ``async with Connection(server)``."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._slots = asyncio.Semaphore(server.concurrency)
        self._limiter = server.limiter()
        #: What was said once and holds for all requests: those that still wait here are not sent.
        self._stopped: CallwrightError | None = None

    async def __aenter__(self) -> Connection:
        try:
            import openai
        except ModuleNotFoundError as error:
            raise MissingExtra("OpenAI-compatible servers", "openai", error.name or "openai") from error
        server = self.server
        self._openai: Any = openai
        self._client: Any = openai.AsyncOpenAI(
            base_url=server.address,
            api_key=os.environ.get(server.api_key_env) or "none",
            max_retries=0,
            timeout=server.timeout,
            # A redirect would be a request that nobody counts.
            http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
        )
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._client.close()

    async def chat(self, messages: Sequence[Mapping[str, Any]], **body: Any) -> dict[str, Any]:
        """The answer of ``/chat/completions``, as JSON; ``body`` holds all other fields of the request.

        Raises :class:`callwright.UsageError` for what repeating cannot mend (key, model, a parameter: see
        :class:`.statuses.RequestRejected`), :class:`.refusals.Refused` if this one sample is refused,
        :class:`callwright.InfrastructureFailure` when the retries are used up, :class:`.statuses.ServerFailing` when
        too many requests failed in a row, and :class:`.budget.BudgetSpent` instead of passing the budget.
        """
        return await self._ask("/chat/completions", {"messages": list(messages), **body})

    async def complete(self, prompt: Sequence[int] | str, **body: Any) -> dict[str, Any]:
        """The answer of ``/completions`` to a text or token ids, as JSON; raises as :meth:`chat` does."""
        given = prompt if isinstance(prompt, str) else list(prompt)
        return await self._ask("/completions", {"prompt": given, **body})

    async def respond(self, input: str | Sequence[Mapping[str, Any]], **body: Any) -> dict[str, Any]:
        """The answer of ``/responses`` to a text or input items, as JSON; raises as :meth:`chat` does."""
        given = input if isinstance(input, str) else list(input)
        return await self._ask("/responses", {"input": given, **body})

    async def stream_chat(self, messages: Sequence[Mapping[str, Any]], **body: Any) -> AsyncIterator[dict[str, Any]]:
        """The chunks of a streamed answer of ``/chat/completions``, as JSON, the last one with its usage.

        A request is repeated as long as no chunk has come. Raises as :meth:`chat` does, and
        :class:`callwright.InfrastructureFailure` for a stream that ends before its choices are finished. Close the
        iterator (``aclose``) where you leave it before its end.
        """
        whole = self._whole(
            {"messages": list(messages), "stream_options": {"include_usage": True}, **body, "stream": True}
        )
        async with self._under_way(expected(whole)) as paid:
            stream, first = await self._sent("/chat/completions", whole, self._opened, paid)
            finished: dict[int, bool] = {}
            chunk: dict[str, Any] | None = first
            try:
                while chunk is not None:
                    self._follow(chunk, finished, paid)
                    yield chunk
                    chunk = await self._next(stream, paid)
            finally:
                await stream.close()
            if not finished or not all(finished.values()):
                paid.began = True
                raise InfrastructureFailure(f"{self.server.label} ended its stream before the answer was finished")
            self._counted(paid)

    async def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        server = self.server
        whole = self._whole(body)
        key = "" if server.replies is None else self._digest(path, whole)
        if server.replies is not None and (kept := server.replies.get(key)) is not None:
            return kept
        async with self._under_way(expected(whole)) as paid:
            answer = await self._sent(path, whole, self._answered, paid)
            paid.counted = usage_of(answer, server.prices)
            paid.has_usage = isinstance(answer.get("usage"), Mapping)
            self._counted(paid)
            taken = filtered(answer)
            server.usage.refused += taken
            if taken and taken >= len(answer.get("choices") or [None]):
                raise ContentFiltered(f"{server.label} filtered what the model wrote (content_filter)")
        if server.replies is not None:
            server.replies.put(key, answer)
        return answer

    def _whole(self, body: dict[str, Any]) -> dict[str, Any]:
        more = body.pop("extra_body", None) or {}  # the name that the openai package has for further fields
        return {"model": self.server.model, **body, **more}

    def _digest(self, path: str, body: Mapping[str, Any]) -> str:
        said = json.dumps([path, self.server.label, self.server.model, body], sort_keys=True, default=str)
        return sha256(said.encode("utf-8", "surrogatepass")).hexdigest()

    # One request, from before it is sent until it is paid for -----------------------------------------------------

    @asynccontextmanager
    async def _under_way(self, tokens: Expected) -> AsyncIterator[_Paid]:
        """A slot and a reservation for a request; what its end means for the row of failures and for the budget."""
        server = self.server
        paid = _Paid(tokens, self._worst(tokens))
        async with self._slots:
            if self._stopped is not None:
                raise copy(self._stopped)
            try:
                await self._reserve(paid)
                yield paid
                server.answered()
            except Refused:
                server.answered()
                server.usage.refused += not paid.answered  # what a filter took of an answer was counted there
                raise
            except RequestRejected as rejected:
                server.usage.failed += 1
                if rejected.status in _ALL_ALIKE:
                    self._stopped = rejected
                raise
            except InfrastructureFailure as failure:
                try:
                    server.failed(failure)
                except ServerFailing as failing:
                    self._stopped = self._stopped or failing
                    raise
                raise
            finally:
                unknown = paid.began or (paid.answered and not paid.has_usage)
                self._settle(paid, paid.worst if unknown else paid.counted.cost)

    def _worst(self, tokens: Expected) -> float:
        """What a request costs at most. Raises :class:`callwright.UsageError` where nothing bounds that."""
        if self.server.budget is None:
            return 0.0
        if tokens.completion is None:
            raise UsageError("with max_cost, each request needs a limit of tokens, or nothing bounds what it may cost")
        return cost_of(tokens.most_prompt, tokens.completion, 0, self.server.prices)

    async def _reserve(self, paid: _Paid) -> None:
        if self.server.budget is not None:
            await self.server.budget.reserve(paid.worst)
            paid.reserved = True

    def _settle(self, paid: _Paid, cost: float) -> None:
        if self.server.budget is not None and paid.reserved:
            paid.reserved = False
            self.server.budget.settle(paid.worst, cost)

    async def _sent(
        self, path: str, body: dict[str, Any], send: Callable[[str, dict[str, Any]], Awaitable[T]], paid: _Paid
    ) -> T:
        """What ``send`` gives, tried as often as the server's retries allow; every try takes from the limiter.

        A parameter that the model turns out to refuse is left out from then on, and the request made again.
        """
        server, limiter, usage = self.server, self._limiter, self.server.usage
        expects = paid.tokens.tokens
        tries = mended = 0
        while True:
            if limiter is not None:
                await limiter.taken(expects)
            tries += 1
            if tries == 1:
                usage.requests += 1
            else:
                usage.retries += 1
            paid.began = True  # also for who cancels this
            try:
                accepted = server.parameters.accepted(body)
                found = await self._tried(send, path, accepted)
                paid.began, paid.answered = False, True
                return found
            except Passing as failed:
                passing = failed
            except (Refused, RequestRejected) as error:
                paid.began = False
                if limiter is not None:
                    limiter.correct(-expects)
                if isinstance(error, RequestRejected) and self._mended(accepted, error):
                    mended += 1
                    continue
                raise
            paid.began = passing.began
            if limiter is not None and not passing.began:
                limiter.correct(-expects)
            if passing.wait is not None and passing.wait > server.timeout:
                raise lost(passing, tries, f"it asks to wait {passing.wait:.0f} s, longer than a request may take")
            if tries - mended > server.retries:
                raise lost(passing, tries, passing.said)
            if passing.began:  # what was set aside for it may be spent, so that the next try needs its own
                self._settle(paid, paid.worst)
                paid.began = False
                await self._reserve(paid)
            await asyncio.sleep(pause(tries - mended, random.random()) if passing.wait is None else passing.wait)

    def _mended(self, body: Mapping[str, Any], error: RequestRejected) -> bool:
        """Whether the request is to be made again without a parameter that was refused, which is said once."""
        server = self.server

        def say(what: str) -> None:
            import structlog

            structlog.get_logger(__name__).warning(what, server=server.label, model=server.model)

        return server.parameters.learn(body, error.status, error.said, error.code, error.param, say)

    async def _tried(self, send: Callable[[str, dict[str, Any]], Awaitable[T]], path: str, body: dict[str, Any]) -> T:
        """One HTTP request, with the errors of the ``openai`` package in our words, without its own as their cause:
        traces of those hold what the server said, and it may have said the key.
        """
        server, openai = self.server, self._openai
        try:
            async with asyncio.timeout(server.timeout):
                return await send(path, body)
        except openai.APIStatusError as error:
            status, headers, text = error.status_code, error.response.headers, error.response.text
        except (TimeoutError, openai.APITimeoutError) as error:
            words, made = f"no answer in {server.timeout:g} s", "Connect" not in type(error.__cause__).__name__
            raise Passing(f"{server.label} does not answer", words, began=made) from None
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            words = " ".join(str(cause).split()) or type(cause).__name__
            made = "Connect" not in type(cause).__name__  # a connection that was never made carried nothing
            raise Passing(f"{server.label} does not answer", server.without_secrets(words)[:400], began=made) from None
        raise self._judged(status, headers, text)

    def _judged(self, status: int, headers: Mapping[str, str], body: Any) -> Exception:
        server = self.server
        if isinstance(body, str):
            try:
                body = json.loads(body)
            except (ValueError, RecursionError):
                body = body[:2000]
        error = said(body)
        error = Said(server.without_secrets(error.message), error.code, error.param, error.marks)
        return judged(status, headers, error, server.label, server.api_key_env, server.model)

    async def _answered(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        text = await self._client.post(path, cast_to=str, body=body)
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise Passing(f"{self.server.label} answered something that is no completion", began=True)
        if (status := status_in(answer)) is not None:
            raise self._judged(status, {}, answer)
        return answer

    # Streams ------------------------------------------------------------------------------------------------------

    async def _opened(self, path: str, body: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """A stream and its first chunk: before that, the request can be made again."""
        stream = await self._client.post(
            path, cast_to=object, body=body, stream=True, stream_cls=self._openai.AsyncStream[object]
        )
        try:
            first = await anext(stream, None)
        except self._openai.APIStatusError:
            raise
        except self._openai.APIConnectionError:
            await stream.close()
            raise
        except (self._openai.APIError, ValueError) as error:
            await stream.close()
            raise self._in_stream(error) from None
        if not isinstance(first, dict):
            await stream.close()
            raise Passing(f"{self.server.label} answered with an empty stream", began=True)
        return stream, first

    async def _next(self, stream: Any, paid: _Paid) -> dict[str, Any] | None:
        server, openai = self.server, self._openai
        try:
            async with asyncio.timeout(server.timeout):
                chunk = await anext(stream, None)
        except (TimeoutError, openai.APIConnectionError) as error:
            words = server.without_secrets(str(error.__cause__ or error))[:400] or f"nothing in {server.timeout:g} s"
        except (openai.APIError, ValueError) as error:
            found = self._in_stream(error)
            if not isinstance(found, Passing):
                server.usage.refused += isinstance(found, Refused)
                raise found from None
            words = found.said or str(found)
        else:
            if chunk is None or isinstance(chunk, dict):
                return chunk
            words = "a chunk of it is no object"
        paid.began = True
        raise InfrastructureFailure(f"{server.label} broke its stream off: {words}")

    def _in_stream(self, error: Any) -> Exception:
        """An error that comes as a chunk has no status: its code may be one."""
        body = getattr(error, "body", None)
        code = body.get("code") if isinstance(body, Mapping) else None
        return self._judged(code if type(code) is int and 400 <= code < 600 else 502, {}, body or str(error))

    def _follow(self, chunk: Mapping[str, Any], finished: dict[int, bool], paid: _Paid) -> None:
        for choice in chunk.get("choices") or ():
            if isinstance(choice, Mapping):
                place = choice.get("index")
                place = place if isinstance(place, int) else 0
                finished[place] = finished.get(place, False) or bool(choice.get("finish_reason"))
                self.server.usage.refused += int(choice.get("finish_reason") == "content_filter")
        if isinstance(chunk.get("usage"), Mapping):
            paid.counted, paid.has_usage = usage_of(chunk, self.server.prices), True

    def _counted(self, paid: _Paid) -> None:
        """Add what an answer counts, and correct what the limiter expected."""
        self.server.usage.add(paid.counted)
        if self._limiter is not None and paid.has_usage:
            used = paid.counted.prompt_tokens + paid.counted.completion_tokens
            self._limiter.correct(used - paid.tokens.tokens)


@define
class _Paid:
    """What is known of the cost of a request that is under way; ``worst`` is what it may cost at most."""

    tokens: Expected
    worst: float
    counted: Usage = field(factory=Usage)
    has_usage: bool = False
    answered: bool = False
    #: Whether ``worst`` is set aside.
    reserved: bool = False
    #: Whether the server may have worked on a try whose answer was lost.
    began: bool = False
