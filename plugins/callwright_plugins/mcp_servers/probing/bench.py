"""The bench: a server's processes in scratch folders, and the calls that are known to read, to write and to succeed."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Final
from uuid import uuid4

from attrs import define, evolve, field, frozen

from callwright_plugins.mcp_servers.connecting.connection import Connection, Target
from callwright_plugins.mcp_servers.connecting.foreign import ForeignTool
from callwright_plugins.mcp_servers.connecting.workspace import PLACEHOLDER, Workspace, mentions_workspace
from callwright_plugins.mcp_servers.probing.runner import Calls, ProbeCall, Runner
from callwright_plugins.mcp_servers.wire import DIGEST, SESSION

#: Tools that read by the look of their names, where nothing is declared.
_READING: Final = re.compile(r"^(list|get|read|search|find|show|describe|status|count|open|view|fetch|select)", re.I)
#: How many successful calls of a tool are enough.
CALLS_A_TOOL: Final = 2
#: How many calls that may change something are made to see whether others see it.
_WRITES: Final = 24
_OBSERVERS: Final = 10


@frozen
class ProbeOptions:
    """What a probe was asked to do; see :func:`.probe.probe`."""

    target: Target
    script: Calls
    anything: bool
    template: Path | None
    seed: int
    time_limit: float
    start_limit: float


@define(eq=False)
class Bench:
    """The server under test: its open connections, and the calls that the checks make.

    :mod:`.exploring` fills ``script``, ``succeeded`` and ``observers``; the checks compare what these calls give.
    """

    options: ProbeOptions
    tools: dict[str, ForeignTool] = field(factory=dict)
    open: list[Connection] = field(factory=list)
    runners: list[Runner] = field(factory=list)
    #: The calls that were made while exploring, and which of them succeeded.
    script: list[ProbeCall] = field(factory=list)
    succeeded: list[ProbeCall] = field(factory=list)
    #: Calls that show the state, leave it as it is and answer twice alike.
    observers: list[ProbeCall] = field(factory=list)
    #: A process in which the script was run, and nothing else.
    used: Runner | None = None

    async def connection(self, workspace: Workspace | None = None) -> Connection:
        """A new process (or connection), in a scratch folder of its own."""
        target = self.options.target
        if target.command:
            workspace = workspace or Workspace.make(self.options.template)
            home = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), PLACEHOLDER)
            if mentions_workspace([*target.command, *target.env.values()]):
                home = {"TMPDIR": tempfile.gettempdir()}  # its folder should hold what tools make, nothing else
            target = evolve(target, env={**home, **target.env})
        connection = Connection(target, workspace)
        self.open.append(connection)
        await connection.start(self.options.start_limit)
        return connection

    async def process(self) -> Runner:
        """A session in a process (or on a connection) of its own."""
        return self.runner(await self.connection())

    def runner(self, connection: Connection) -> Runner:
        """Another session on a connection."""
        runner = Runner(connection, self.tools, {SESSION: uuid4().hex, DIGEST: True}, self.options.time_limit)
        self.runners.append(runner)
        return runner

    async def stop(self, connection: Connection) -> None:
        """Close a connection and delete its folder."""
        if connection in self.open:
            self.open.remove(connection)
            await connection.stop()
            if connection.workspace is not None:
                connection.workspace.remove()

    async def stop_all(self) -> None:
        """Close everything that is open."""
        for connection in list(self.open):
            await self.stop(connection)

    async def revive(self, runner: Runner) -> None:
        """Give a session whose process died another process."""
        if not runner.connection.alive:
            await self.stop(runner.connection)
            runner.connection = await self.connection()

    # Calls by what they do

    def reads(self, name: str) -> bool:
        """Whether a tool declares to read only, or is named so where the server declares nothing at all."""
        spec = self.tools[name].spec
        return spec.read_only or bool(_READING.match(name) and not self._declares)

    @property
    def _declares(self) -> bool:
        """Whether the server says of any tool that it only reads, so that its silence means something."""
        return any(tool.spec.read_only for tool in self.tools.values())

    def reading(self) -> list[ProbeCall]:
        """Of each tool that reads, the calls that succeeded, the plainest first."""
        found: list[ProbeCall] = []
        calls = sorted(self.succeeded, key=lambda call: len(json.dumps(call[1])))
        for round_ in range(CALLS_A_TOOL):
            for name in self.tools:
                own = [call for call in calls if call[0] == name]
                if self.reads(name) and len(own) > round_ and own[round_] not in found:
                    found.append(own[round_])
        return found[:_OBSERVERS]

    def mutating(self) -> list[ProbeCall]:
        """Calls that may change something, those that succeeded first."""
        calls = [call for call in self.script if not self.tools[call[0]].spec.read_only and not self.reads(call[0])]
        succeeded = [call for call in calls if call in self.succeeded]
        return (succeeded + [call for call in calls if call not in succeeded])[:_WRITES]
