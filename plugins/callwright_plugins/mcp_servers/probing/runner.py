"""A runner: one session of the server, calls in it, and what can be seen of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, evolve, frozen

from callwright.digests import digest_of
from callwright.environments.protocol import Outcome
from callwright.language.shortening import shortened
from callwright_plugins.mcp_servers.connecting.connection import Connection, Refused, ServerFailure
from callwright_plugins.mcp_servers.connecting.foreign import ForeignTool, read_refusal, read_reply
from callwright_plugins.mcp_servers.wire import answer_of

ProbeCall = tuple[str, dict[str, Any]]
Calls = Sequence[ProbeCall]


@define(eq=False)
class Runner:
    """A session to try things in."""

    connection: Connection
    tools: Mapping[str, ForeignTool]
    meta: dict[str, Any]
    limit: float
    count: int = 0

    async def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """One call; every failure is an outcome."""
        self.count += 1
        workspace = self.connection.workspace
        sent = workspace.inward(arguments) if workspace is not None else arguments
        try:
            reply = await self.connection.call(self.tools[tool].original, sent, self.meta or None, self.limit)
        except Refused as refusal:
            outcome = read_refusal(refusal, tool)
        except ServerFailure as failure:
            return Outcome("infrastructure_error", None, failure.code, str(failure))
        else:
            structured = reply.structured
            answer = answer_of({"_meta": reply.meta, "isError": reply.is_error, "structuredContent": structured})
            reading = self.tools[tool].spec.read_only
            outcome = answer.outcome if answer is not None else read_reply(reply, read_only=reading)
        if workspace is None:
            return outcome
        message = workspace.outward(outcome.message)
        return evolve(outcome, value=workspace.outward(outcome.value), message=message)

    async def files(self) -> str:
        """The digest of its folder."""
        return self.connection.workspace.digest() if self.connection.workspace is not None else ""

    async def state(self) -> str:
        """The digest of the session, where the server is one that gives it."""
        description = self.connection.description
        if description is None or description.declares is None or not self.connection.alive:
            return ""
        try:
            return str((await self.connection.manage("digest", self.meta, self.limit)).get("digest", ""))
        except (ServerFailure, Refused):
            return ""


@frozen
class View:
    """What can be seen of a session: answers of observers, files and digest."""

    answers: list[str]
    files: str
    state: str


def fingerprint(outcome: Outcome) -> str:
    """What must repeat itself; how a failure is worded need not."""
    return digest_of([outcome.kind, outcome.code, outcome.value])


async def look(runner: Runner, observers: Calls, files: bool = True) -> View:
    """What can be seen of a session now.

    ``files``: whether its folder counts. Where two sessions share a folder it says nothing of either.
    """
    folder = await runner.files() if files else ""
    return View(await observe(runner, observers), folder, await runner.state())


async def observe(runner: Runner, observers: Calls) -> list[str]:
    """The fingerprints of these calls' answers."""
    return [fingerprint(await runner.call(name, arguments)) for name, arguments in observers]


async def steady_calls(runner: Runner, observers: Calls) -> list[ProbeCall]:
    """The observers that answer twice alike."""
    once, twice = await observe(runner, observers), await observe(runner, observers)
    return [call for call, first, second in zip(observers, once, twice, strict=True) if first == second]


def shown(name: str, arguments: Mapping[str, Any]) -> str:
    """A call for people."""
    return f"{name}({in_short(json.dumps(arguments, ensure_ascii=False))})"


def in_short(text: str) -> str:
    """A text on one line of at most 100 characters."""
    return shortened(" ".join(text.split()), 100)
