"""The teacher ``openai``: requests of any role to a model server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, Literal

from callwright.errors import DataError, InfrastructureFailure, UnknownName, UsageError
from callwright.language.messages import Message
from callwright.machines.model_server import (
    OPENAI,
    Connection,
    Refused,
    Server,
    Usage,
    is_filtered,
    key_reaches,
    run_to_end,
    usage_of,
)
from callwright.registration import Reach
from callwright.training.teaching.cache import together
from callwright.training.teaching.teacher import (
    ROLES,
    Asker,
    Finish,
    Role,
    TeacherFailure,
    TeacherReply,
    TeacherRequest,
)

#: What a role may have of its own.
OF_A_ROLE: Final = ("model", "temperature", "max_tokens", "body")
Structured = Literal["auto", "schema", "text"]
_FINISHES: Final[Mapping[str, Finish]] = {"length": "length", "tool_calls": "calls", "function_call": "calls"}
#: Words by which servers that know no ``response_format`` of this kind can be told, in what they say of a 400 or 422.
_NO_SCHEMA: Final = ("response_format", "json_schema", "guided", "structured output", "grammar")


def reaches(options: Mapping[str, Any]) -> Iterator[Reach]:
    """What the teacher would reach for with these options: the key that it sends."""
    return key_reaches(options, "OPENAI_API_KEY", OPENAI)


class ModelTeacher:
    """A model of an OpenAI-compatible server.

    ``temperature`` and ``max_tokens`` (sent as ``token_limit``) hold where a request says nothing, ``body`` is added to
    every request. ``roles`` has other values of ``model``, ``temperature``, ``max_tokens`` and ``body`` for a role:
    ``{judge = {model = "large", temperature = 0}}``. ``structured`` says how a schema is sent: ``schema`` as
    ``response_format``, ``text`` without it, ``auto`` as the first until the server refuses it. ``revision`` is a
    word for what the server runs, for caches: change it when the weights behind a name change. The other options are
    those of :class:`callwright.machines.model_server.Server`, for each model.

    The address is no part of :meth:`settings`: a model that moves to another host keeps its cached replies.
    """

    name = "openai"

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key_env: str = "OPENAI_API_KEY",
        temperature: float = 0.7,
        max_tokens: int = 1024,
        token_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens",
        body: Mapping[str, Any] | None = None,
        roles: Mapping[str, Mapping[str, Any]] | None = None,
        structured: Structured = "auto",
        send_seed: bool = True,
        revision: str = "",
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
        if structured not in ("auto", "schema", "text"):
            raise UsageError(f'\'structured\' is "auto", "schema" or "text", not {structured!r}')
        usual = {"model": model, "temperature": temperature, "max_tokens": max_tokens, "body": dict(body or {})}
        self._of_role: dict[str, dict[str, Any]] = {}
        for role, own in (roles or {}).items():
            if role not in ROLES:
                raise UnknownName("role of a teacher", role, ROLES)
            if not isinstance(own, Mapping):
                raise UsageError(f"'roles.{role}' is a table of options, not {own!r:.60}")
            for option in own:
                if option not in OF_A_ROLE:
                    raise UnknownName(f"option of the role {role!r}", option, OF_A_ROLE)
        for role in ROLES:
            self._of_role[role] = _checked({**usual, **(roles or {}).get(role, {})}, role)
        self._structured, self._token_limit, self._send_seed = structured, token_limit, send_seed
        self._revision = revision
        self._prices = (price_prompt, price_completion, price_prompt if price_cached is None else price_cached)
        self.servers = {
            name: Server(
                model=name,
                base_url=base_url,
                api_key_env=api_key_env,
                concurrency=concurrency,
                requests_per_minute=requests_per_minute,
                tokens_per_minute=tokens_per_minute,
                retries=retries,
                timeout=timeout,
                prices=self._prices,
                max_cost=max_cost,
                most_failures=most_failures,
            )
            for name in dict.fromkeys(own["model"] for own in self._of_role.values())
        }
        #: Models of servers that refused a schema: they are asked in words from then on.
        self._without_schema: set[str] = set()
        self.concurrency = concurrency

    @property
    def usage(self) -> Usage:
        """What was asked so far in all roles, and what it cost."""
        total = Usage()
        for server in self.servers.values():
            total.add(server.usage)
        return total

    def settings(self, role: Role) -> Mapping[str, Any]:
        """What decides replies in a role, beside the request."""
        own = self._of_role[role]
        return {**own, "structured": self._structured, "send_seed": self._send_seed, "revision": self._revision}

    def ask(self, requests: Sequence[TeacherRequest]) -> list[TeacherReply | TeacherFailure]:
        """One answer each; at most ``concurrency`` requests are under way. Works within a running event loop, too."""

        async def work() -> list[TeacherReply | TeacherFailure]:
            async with self.connected() as asker:
                return await together([asker.ask_one(request) for request in requests])

        return run_to_end(work()) if requests else []

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Asker]:
        """Connections to the servers of all roles."""
        async with AsyncExitStack() as stack:
            opened = {name: await stack.enter_async_context(Connection(one)) for name, one in self.servers.items()}
            yield _Asking(self, opened)

    def _body(self, request: TeacherRequest) -> dict[str, Any]:
        own = self._of_role[request.role]
        limit = own["max_tokens"] if request.max_tokens is None else request.max_tokens
        temperature = own["temperature"] if request.temperature is None else request.temperature
        body = {self._token_limit: limit, "temperature": temperature, **own["body"]}
        if self._send_seed:
            body["seed"] = request.seed % 2**31
        if request.tools:
            body["tools"] = [tool.to_openai() for tool in request.tools]
        return body

    def _wants_schema(self, request: TeacherRequest) -> bool:
        model = self._of_role[request.role]["model"]
        return request.schema is not None and self._structured != "text" and model not in self._without_schema


class _Asking:
    """Open connections of a teacher."""

    def __init__(self, teacher: ModelTeacher, connections: Mapping[str, Connection]) -> None:
        self._teacher, self._connections = teacher, connections

    async def ask_one(self, request: TeacherRequest) -> TeacherReply | TeacherFailure:
        teacher = self._teacher
        own = teacher._of_role[request.role]
        connection = self._connections[own["model"]]
        messages = [message.to_openai() for message in request.messages]
        body = teacher._body(request)
        try:
            if teacher._wants_schema(request):
                held = {"name": request.role, "schema": dict(request.schema or {}), "strict": True}
                try:
                    shape = {"type": "json_schema", "json_schema": held}
                    return self._read(connection, await connection.chat(messages, **body, response_format=shape))
                except UsageError as error:
                    said = str(error).lower()
                    if teacher._structured == "schema" or not any(word in said for word in _NO_SCHEMA):
                        raise
                    teacher._without_schema.add(own["model"])
            return self._read(connection, await connection.chat(messages, **body))
        except Refused as error:
            return TeacherFailure(f"{connection.server.label} refuses the request: {error}", refused=True)
        except InfrastructureFailure as error:
            return TeacherFailure(str(error))

    def _read(self, connection: Connection, answer: Mapping[str, Any]) -> TeacherReply | TeacherFailure:
        label = connection.server.label
        choices = answer.get("choices") or []
        if not choices:
            return TeacherFailure(f"{label} answered without a choice")
        choice = choices[0]
        finish = str(choice.get("finish_reason") or "stop")
        if is_filtered(choice):
            return TeacherFailure(f"a content filter of {label} refuses the reply", refused=True)
        try:
            said = Message.from_openai({"role": "assistant", **(choice.get("message") or {})})
        except DataError as error:
            return TeacherFailure(f"{label} answered with what is no message: {error}")
        return TeacherReply(
            said.text,
            said.tool_calls,
            said.thought,
            _FINISHES.get(finish, "calls" if said.tool_calls else "stop"),
            _usage(answer, self._teacher._prices),
        )


def _usage(answer: Mapping[str, Any], prices: Sequence[float]) -> dict[str, float]:
    counted = usage_of(answer, prices).to_json()
    return {name: value for name, value in counted.items() if value and name != "requests"}


def _checked(own: dict[str, Any], role: str) -> dict[str, Any]:
    where = f"(of the role {role!r})"
    temperature, limit = own["temperature"], own["max_tokens"]
    if isinstance(temperature, bool) or not isinstance(temperature, int | float) or not temperature >= 0:
        raise UsageError(f"'temperature' is a number, 0 or more, not {temperature!r} {where}")
    if type(limit) is not int or limit < 1:
        raise UsageError(f"'max_tokens' is a whole number, 1 or more, not {limit!r} {where}")
    if not isinstance(own["model"], str) or not own["model"]:
        raise UsageError(f"'model' is the name of a model, not {own['model']!r} {where}")
    if not isinstance(own["body"], Mapping):
        raise UsageError(f"'body' is a table, not {own['body']!r:.60} {where}")
    return own
