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
from typing import TYPE_CHECKING, Any, Final, TypeVar

from attrs import define, evolve, field

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
        #: Whether what a request may cost is written down for later starts, which may have a budget.
        self._remembers = server.replies is not None and any(server.prices)
        #: What was said once and holds for all requests: those that still wait here are not sent.
        self._stopped: CallwrightError | None = None

    async def __aenter__(self) -> Connection:
        try:
            import openai
        except ModuleNotFoundError as error:
            raise MissingExtra("OpenAI-compatible servers", "openai", error.name or "openai") from error
        server = self.server
        self._openai: Any = openai
        if not server.address.startswith(("http://", "https://")):
            raise UsageError(f"{server.label} is no address of a server: it begins with http:// or https://")
        # A redirect would be a request that nobody counts.
        http = openai.DefaultAsyncHttpxClient(follow_redirects=False)
        try:
            self._client: Any = openai.AsyncOpenAI(
                base_url=server.address,
                api_key=os.environ.get(server.api_key_env) or "none",
                max_retries=0,
                timeout=server.timeout,
                http_client=http,
            )
        except Exception as error:  # of a class that differs between versions of the package
            await http.aclose()
            raise UsageError(
                f"{server.label} is no address of a server: {server.without_secrets(str(error))}"
            ) from None
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
        async with self._under_way(whole) as paid:
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
        whole, replies = self._whole(body), self.server.replies
        if replies is None:
            return self._unfiltered(await self._paid(path, whole, ""))
        key = replies.key(path, self.server.address, whole)
        if (kept := replies.get(key)) is not None:
            return self._unfiltered(kept)
        try:
            answer = await self._paid(path, whole, key)
        except Exception:  # one that is cancelled may have been answered, and paid for
            replies.gave_up(key)
            raise
        replies.put(key, answer)
        return self._unfiltered(answer)

    async def _paid(self, path: str, whole: dict[str, Any], key: str) -> dict[str, Any]:
        server = self.server
        async with self._under_way(whole) as paid:
            try:
                answer = await self._sent(path, whole, self._answered, paid, key)
            except Exception:
                if paid.began:
                    self._lost(paid)
                raise
            paid.counted = usage_of(answer, server.prices)
            paid.has_usage = isinstance(answer.get("usage"), Mapping)
            if not paid.has_usage:
                self._lost(paid)
            self._counted(paid)
            server.usage.refused += filtered(answer)
        return answer

    def _unfiltered(self, answer: dict[str, Any]) -> dict[str, Any]:
        """The answer, unless a filter took all of it. That one is paid for, too, and kept like others."""
        taken = filtered(answer)
        if taken and taken >= len(answer.get("choices") or [None]):
            raise ContentFiltered(f"{self.server.label} filtered what the model wrote (content_filter)", answer)
        return answer

    def _lost(self, paid: _Paid) -> None:
        """What a try may have cost whose answer is not known."""
        if self.server.replies is not None and paid.worst:
            self.server.replies.lost(paid.worst)

    def _whole(self, body: dict[str, Any]) -> dict[str, Any]:
        more = body.pop("extra_body", None) or {}  # the name that the openai package has for further fields
        return {"model": self.server.model, **body, **more}

    # One request, from before it is sent until it is paid for -----------------------------------------------------

    @asynccontextmanager
    async def _under_way(self, body: Mapping[str, Any]) -> AsyncIterator[_Paid]:
        """A slot and a reservation for a request; what its end means for the row of failures and for the budget."""
        server = self.server
        asks = self._limiter is not None or server.budget is not None or self._remembers
        tokens = expected(body) if asks else Expected(0, 0, None)
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
        """What a request costs at most. Raises :class:`callwright.UsageError` where nothing bounds that, and a budget
        wants to know it; else it is 0.
        """
        if self.server.budget is None and (not self._remembers or tokens.completion is None):
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
        self,
        path: str,
        body: dict[str, Any],
        send: Callable[[str, dict[str, Any]], Awaitable[T]],
        paid: _Paid,
        key: str = "",
    ) -> T:
        """What ``send`` gives, tried as often as the server's retries allow; every try takes from the limiter."""
        server, limiter = self.server, self._limiter
        expects = paid.tokens.tokens
        tries, first = 0, True
        while True:
            if limiter is not None:
                await limiter.taken(expects)
            self._counts(first, key, paid.worst)
            first = False
            tries += 1
            sent = server.parameters.accepted(body)
            paid.began = True  # also for who cancels this
            try:
                found = await self._tried(send, path, sent)
                paid.began, paid.answered = False, True
                return found
            except Passing as failed:
                passing = failed
            except (Refused, RequestRejected) as refused:
                paid.began = False
                if limiter is not None:
                    limiter.correct(-expects)
                if isinstance(refused, RequestRejected) and self._learnt(sent, refused):
                    tries -= 1  # that was no failure
                    continue
                raise
            paid.began = passing.began
            if limiter is not None and not passing.began:
                limiter.correct(-expects)
            if passing.wait is not None and passing.wait > server.timeout:
                raise lost(passing, tries, f"it asks to wait {passing.wait:.0f} s, longer than a request may take")
            if tries > server.retries:
                raise lost(passing, tries, passing.said)
            if passing.began:  # what was set aside for it may be spent, so that the next try needs its own
                self._settle(paid, paid.worst)
                self._lost(paid)
                paid.began = False
                await self._reserve(paid)
            await asyncio.sleep(pause(tries, random.random()) if passing.wait is None else passing.wait)

    def _counts(self, first: bool, key: str, worst: float) -> None:
        """An HTTP request is about to be sent."""
        server = self.server
        if not first:
            server.usage.retries += 1
            return
        server.usage.requests += 1
        if server.replies is not None and key:
            server.replies.begun(key, worst)

    def _learnt(self, sent: Mapping[str, Any], refused: RequestRejected) -> bool:
        """Whether something in the request was not to the model's taste, and is left out from now on."""
        parameters = self.server.parameters
        return parameters.learn(sent, refused.status, refused.said, refused.code, refused.param, self._tell)

    def _tell(self, said: str) -> None:
        import structlog

        structlog.get_logger(__name__).warning(said, server=self.server.label, model=self.server.model)

    async def _tried(self, send: Callable[[str, dict[str, Any]], Awaitable[T]], path: str, body: dict[str, Any]) -> T:
        """One HTTP request, with the errors of the ``openai`` package in our words, without its own as their cause:
        traces of those hold what the server said, and it may have said the key.
        """
        server, openai = self.server, self._openai
        try:
            async with asyncio.timeout(server.timeout):
                return await send(path, body)
        except UnicodeEncodeError:  # half of a pair of surrogates, as a model may write
            if _written(body) == body:
                raise
            return await self._tried(send, path, _written(body))
        except (TypeError, ValueError) as error:
            raise UsageError(f"the request cannot be written as JSON: {error}") from error
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
        self.server.usage.add(evolve(paid.counted, requests=0))  # which was counted when it was sent
        if self._limiter is not None and paid.has_usage:
            used = paid.counted.prompt_tokens + paid.counted.completion_tokens
            self._limiter.correct(used - paid.tokens.tokens)


def _written(value: Any) -> Any:
    """JSON data as it can be sent: halves of surrogate pairs, which no encoding has, become U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {_written(key): _written(inner) for key, inner in value.items()}
    return [_written(inner) for inner in value] if isinstance(value, list | tuple) else value


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
