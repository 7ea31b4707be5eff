"""What is sent to a server for a request, and what its answer is as a completion: prompts, tools, thoughts, calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, get_args

from attrs import asdict, evolve, field, frozen

from callwright.errors import DataError, InfrastructureFailure, UsageError
from callwright.language.envelope import split_thought
from callwright.language.messages import PIECES, Message
from callwright.language.native import native_messages, turn_text
from callwright.language.parser import Parser
from callwright.language.thoughts import THINK, begun, cut_thought, with_thought
from callwright.machines.model_server import (
    Connection,
    ContentFiltered,
    ContextExceeded,
    RequestRejected,
    Server,
    is_filtered,
    usage_of,
)
from callwright.machines.model_server.responses import ITEMS, as_chat, request_of
from callwright.walk.completion import Completion
from callwright.walk.sampling import SamplingRequest
from callwright_plugins.openai_sampler.functions import Functions

Api = Literal["chat", "responses"]
#: What later turns are sent of the thoughts of earlier ones.
EarlierThoughts = Literal["keep", "template", "drop"]
APIS: Final[tuple[str, ...]] = get_args(Api)
EARLIER_THOUGHTS: Final[tuple[str, ...]] = get_args(EarlierThoughts)

#: The names under which servers hand over a thought; the one that a server uses is the one that it is sent.
_FIELDS: Final = ("reasoning_content", "reasoning", "thinking")
#: What a provider wants back as it came: signatures, encrypted reasoning.
_OPAQUE: Final = frozenset({*PIECES, "extra_content", ITEMS})
#: Marks an answer whose thought is there and empty: DeepSeek refuses a turn of calls that comes back without the field.
_EMPTY: Final = "empty_thought"


@frozen(eq=False)
class Exchange:
    """Between requests for samples and the requests of a server.

    ``functions`` are how tools are offered natively; without, they are in the prompt. ``body`` are the fields of every
    request. ``native_form`` reads calls where a request does not say its form.
    """

    server: Server
    body: Mapping[str, Any]
    api: Api = "chat"
    functions: Functions | None = None
    native_form: Parser | None = None
    earlier_thoughts: EarlierThoughts = "keep"
    send_seed: bool = True
    #: How this server names a thought; learned from its answers.
    _field: list[str] = field(factory=lambda: ["reasoning_content"], init=False)

    async def group(
        self, connection: Connection, request: SamplingRequest, n: int, seed: int, temperature: float
    ) -> list[Completion]:
        """As many completions as were asked for, from servers too that give fewer at a time."""
        messages = [self._sent(message) for message in self._said(request)]
        body: dict[str, Any] = {**self.body, "temperature": temperature}
        if self.functions is not None:
            body |= self.functions.fields(request)
        completions: list[Completion] = []
        while len(completions) < n:
            wanted = n - len(completions)
            more: dict[str, Any] = {"n": wanted} if wanted > 1 else {}
            if self.send_seed:
                more["seed"] = (seed + len(completions)) % 2**31
            try:
                answer = await self._ask(connection, messages, {**body, **more})
            except RequestRejected as rejected:
                if self._field[0] in rejected.said and any(self._field[0] in message for message in messages):
                    raise UsageError(
                        f"{rejected}. If the server does not take earlier thoughts back as {self._field[0]!r}, set "
                        'earlier_thoughts = "template" or "drop"'
                    ) from rejected
                raise
            except ContextExceeded:
                return _alike(Completion("", truncated=True), n, [_spent(completions)])
            except ContentFiltered as refused:
                own = self._usage(refused.answer) if refused.answer is not None else {}
                reason = f"refused by a content filter: {refused}"
                return _alike(Completion("", masked=reason), n, [_spent(completions), own])
            choices = answer.get("choices") or []
            if not choices:
                error = answer.get("error")
                why = f": {error.get('message') or error}" if isinstance(error, Mapping) else ""
                raise InfrastructureFailure(f"{self.server.label} answered without a choice{why:.400}")
            some = [self.completion(choice, request) for choice in choices[:wanted]]
            some[0] = evolve(some[0], usage=self._usage(answer))
            completions += some
        return completions

    def _usage(self, answer: Mapping[str, Any]) -> dict[str, float]:
        found = usage_of(answer, self.server.prices)
        found.requests = 1
        return {name: value for name, value in asdict(found).items() if value}

    async def _ask(
        self, connection: Connection, messages: Sequence[dict[str, Any]], body: dict[str, Any]
    ) -> dict[str, Any]:
        if self.api == "chat":
            return await connection.chat(messages, **body)
        asked = request_of(messages, body)
        return as_chat(await connection.respond(asked.pop("input"), **asked))

    # What is read -----------------------------------------------------------------------------------------------------

    def completion(self, choice: Mapping[str, Any], request: SamplingRequest | None = None) -> Completion:
        """The completion of a choice. Raises :class:`callwright.InfrastructureFailure` for what is no message."""
        if is_filtered(choice):
            return Completion("", masked=f"refused by a content filter: {self.server.label} cut what the model wrote")
        given = choice.get("message") or {}
        try:
            message = Message.from_openai({"role": "assistant", **given})
        except DataError as error:
            raise InfrastructureFailure(f"{self.server.label} answered with what is no message: {error}") from error
        self._field[:] = [name for name in _FIELDS if isinstance(given.get(name), str)][:1] or self._field
        if given.get(self._field[0]) == "" and not message.thought:
            message = evolve(message, extra={**message.extra, _EMPTY: True})
        tokens = (choice.get("logprobs") or {}).get("content") or ()
        truncated = choice.get("finish_reason") == "length"
        return Completion(
            self._text(message, request, truncated),
            logprobs=tuple(float(token["logprob"]) for token in tokens),
            truncated=truncated,
            message=message,
        )

    def _text(self, message: Message, request: SamplingRequest | None, truncated: bool) -> str:
        parser = request.parser if request is not None else None
        if self.functions is not None:
            parser = parser or self.native_form
            assert parser is not None
            if request is not None:
                message = self.functions.read(message, request.task)
            return turn_text(message, parser, native=True, truncated=truncated)
        if parser is not None:
            return turn_text(evolve(message, tool_calls=()), parser, truncated=truncated)
        thought, text = message.thought, message.text
        if truncated and thought.strip() and not text.strip():
            return cut_thought(thought)
        return with_thought(thought, text) if thought.strip() else begun(text)

    # What is sent -----------------------------------------------------------------------------------------------------

    def _said(self, request: SamplingRequest) -> Sequence[Message]:
        """The messages of a request, what the model wrote as the server gave it."""
        messages = list(request.messages)
        written = [place for place, message in enumerate(messages) if message.role == "assistant"]
        own = dict(zip(reversed(written), (turn.completion.message for turn in reversed(request.turns)), strict=False))
        for place in written:
            messages[place] = self._earlier(messages[place], own.get(place))
        if self.functions is None:
            return messages
        parser = request.parser or self.native_form
        assert parser is not None
        return native_messages(messages, parser, thoughts=self.earlier_thoughts == "keep")

    def _earlier(self, message: Message, own: Message | None) -> Message:
        """An earlier answer of the model under the policy; ``own`` is how the server gave it, if it did."""
        native = self.functions is not None
        if own is None:
            if self.earlier_thoughts == "drop" and not message.tool_calls:
                split = split_thought(message.text)
                return message if split is None else evolve(message, content=split[1])
            return message
        calls = tuple(evolve(call, extra=_without(call.extra, "index")) for call in own.tool_calls) if native else ()
        plain = evolve(own, tool_calls=calls, content=own.text, reasoning="", extra={})
        if self.earlier_thoughts == "keep":
            kept = {key: value for key, value in own.extra.items() if key in _OPAQUE or key == _EMPTY}
            if not native and not own.thought:
                return message
            return evolve(plain, reasoning=own.thought, extra=kept)
        if self.earlier_thoughts == "template":
            text = THINK.around(own.thought, own.text) if own.thought.strip() else own.text
            return evolve(plain, content=text) if native else message
        split = split_thought(begun(own.text))
        return plain if split is None else evolve(plain, content=split[1])

    def _sent(self, message: Message) -> dict[str, Any]:
        made = message.to_openai()
        if made.pop(_EMPTY, False):
            made[self._field[0]] = ""
        if "reasoning_content" in made:
            made[self._field[0]] = made.pop("reasoning_content")
        return made


def _without(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != key}


def _spent(completions: Sequence[Completion]) -> dict[str, float]:
    return _sum(one.usage or {} for one in completions)


def _sum(usages: Iterable[Mapping[str, float]]) -> dict[str, float]:
    summed: Counter[str] = Counter()
    for usage in usages:
        summed.update(usage)
    return dict(summed)


def _alike(completion: Completion, n: int, usages: Iterable[Mapping[str, float]]) -> list[Completion]:
    """The same ``n`` times; the first one carries what was paid for all."""
    return [evolve(completion, usage=_sum(usages) or None), *[completion] * (n - 1)]
