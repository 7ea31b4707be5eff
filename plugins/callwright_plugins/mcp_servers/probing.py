"""What a server really does: what its sessions see of one another, what it repeats, what its annotations are worth.

Annotations and descriptions are claims. Here tools are called, with invented arguments or a given script, and what
comes back is compared: between two sessions, between two fresh processes, and before and after a call.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, Literal
from uuid import uuid4

from attrs import asdict, define, evolve, field, frozen

from callwright.digests import digest_of
from callwright.environments.protocol import Outcome
from callwright.errors import UsageError
from callwright.tools.validation import check_arguments
from callwright_plugins.mcp_servers.connection import Connection, Description, Lost, Refused, Target
from callwright_plugins.mcp_servers.foreign import ForeignTool, read_listing, read_refusal, read_reply
from callwright_plugins.mcp_servers.inventing import Inventor
from callwright_plugins.mcp_servers.portal import PORTAL
from callwright_plugins.mcp_servers.wire import DIGEST, SESSION, answer_of, need_mcp
from callwright_plugins.mcp_servers.workspace import PLACEHOLDER, Workspace, mentions_workspace

Verdict = Literal["isolated", "leaks", "unknown"]
#: Tools that read by the look of their names, where nothing is declared.
_READING: Final = re.compile(r"^(list|get|read|search|find|show|describe|status|count|open|view|fetch|select)", re.I)
_ROUNDS: Final = 8
#: Calls that take longer (seconds) are made once and left out of comparisons, which would make them a hundred times.
_SLOW: Final = 1.0
#: How many calls that may change something are made to see whether others see it.
_WRITES: Final = 24
_OBSERVERS: Final = 10
_CALLS_A_TOOL: Final = 2

Calls = Sequence[tuple[str, dict[str, Any]]]


@frozen
class Rung:
    """One step of the isolation ladder: whether what is written in one session is seen in another."""

    isolation: str
    verdict: Verdict
    evidence: str = ""


@frozen
class Finding:
    """Something about a tool, and the call that showed it."""

    tool: str
    what: str
    call: str = ""


@define
class Report:
    """Everything that was found."""

    server: str
    version: str
    protocol: str
    tools: int
    declared_read_only: int
    declares_sessions: bool
    scratch: str
    calls: int = 0
    rungs: list[Rung] = field(factory=list)
    #: Answer otherwise when the same script is run in another fresh process.
    nondeterministic: list[Finding] = field(factory=list)
    #: Declare that they read only, and change what is read afterwards.
    not_read_only: list[Finding] = field(factory=list)
    #: Mutating calls that succeeded and changed nothing that could be seen.
    no_ops: list[Finding] = field(factory=list)
    #: Never succeeded with the arguments that were tried.
    never_succeeded: list[Finding] = field(factory=list)
    #: Not called, because nothing says that they keep to the scratch folder.
    not_called: list[str] = field(factory=list)
    #: What else should be known.
    notes: list[str] = field(factory=list)
    recommended: str = ""

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


def probe(
    target: Target,
    *,
    script: Calls = (),
    anything: bool = False,
    template: Path | None = None,
    seed: int = 0,
    time_limit: float = 10.0,
    start_limit: float = 60.0,
) -> Report:
    """Find out what a server is like.

    Processes run in a scratch folder, which is also their home and temporary folder and stands for ``{workspace}``.
    Tools that may change something are called only if the command mentions ``{workspace}`` (then they are taken to keep
    to it), if the server is a served environment, or with ``anything``. ``script`` are calls to make besides invented
    ones. Raises :class:`callwright.InfrastructureFailure` if the server does not start.
    """
    need_mcp("env probe")
    options = _Options(target, list(script), anything, template, seed, time_limit, start_limit)
    return PORTAL.run(_Probe(options).run())


@frozen
class _Options:
    target: Target
    script: Calls
    anything: bool
    template: Path | None
    seed: int
    time_limit: float
    start_limit: float


@define(eq=False)
class _Runner:
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
        except Lost as lost:
            return Outcome("infrastructure_error", None, lost.code, str(lost))
        else:
            structured = reply.structured
            answer = answer_of({"_meta": reply.meta, "isError": reply.is_error, "structuredContent": structured})
            outcome = (
                answer.outcome if answer is not None else read_reply(reply, read_only=self.tools[tool].spec.read_only)
            )
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
        except (Lost, Refused):
            return ""


@frozen
class _View:
    """What can be seen of a session: answers of observers, files and digest."""

    answers: list[str]
    files: str
    state: str


def _print(outcome: Outcome) -> str:
    """What must repeat itself; how a failure is worded need not."""
    return digest_of([outcome.kind, outcome.code, outcome.value])


@define(eq=False)
class _Probe:
    options: _Options
    tools: dict[str, ForeignTool] = field(factory=dict)
    open: list[Connection] = field(factory=list)
    runners: list[_Runner] = field(factory=list)
    #: The calls that were made while exploring, and which of them succeeded.
    script: list[tuple[str, dict[str, Any]]] = field(factory=list)
    succeeded: list[tuple[str, dict[str, Any]]] = field(factory=list)

    async def run(self) -> Report:
        try:
            return await self._run()
        finally:
            for connection in list(self.open):
                await self._stop(connection)

    async def _run(self) -> Report:
        first = await self._process()
        description = first.connection.description
        assert description is not None
        report = self._begin(description)
        await self._explore(first, report)
        if first.connection.alive:
            await self._stop(first.connection)
        await self._determinism(report)
        unstable = {finding.tool for finding in report.nondeterministic}
        observers = await self._observers(report, unstable)
        if not observers:
            report.notes.append("no tool that reads succeeded twice alike, so only files and digests could be compared")
        await self._isolation(report, observers)
        await self._changes(report, observers, unstable)
        report.calls = sum(runner.count for runner in self.runners)
        report.recommended = _recommendation(report, self.options.target)
        return report

    # Places

    async def _connection(self, workspace: Workspace | None = None) -> Connection:
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

    async def _process(self) -> _Runner:
        """A session in a process (or on a connection) of its own."""
        return self._runner(await self._connection())

    def _runner(self, connection: Connection) -> _Runner:
        runner = _Runner(connection, self.tools, {SESSION: uuid4().hex, DIGEST: True}, self.options.time_limit)
        self.runners.append(runner)
        return runner

    async def _stop(self, connection: Connection) -> None:
        if connection in self.open:
            self.open.remove(connection)
            await connection.stop()
            if connection.workspace is not None:
                connection.workspace.remove()

    # The script

    def _begin(self, description: Description) -> Report:
        target = self.options.target
        self.tools.update(read_listing(description.tools))
        for name, arguments in self.options.script:
            if name not in self.tools:
                raise UsageError(f"the script calls {name!r}, which is no tool of this server")
            problems = check_arguments(self.tools[name].spec, arguments)
            if problems:
                raise UsageError(f"the script: {problems[0]}")
        declared = sum(tool.spec.read_only for tool in self.tools.values())
        report = Report(
            server=description.name,
            version=description.version,
            protocol=description.protocol,
            tools=len(self.tools),
            declared_read_only=declared,
            declares_sessions=description.declares is not None,
            scratch="a scratch folder for each process" if target.command else "",
        )
        inside = mentions_workspace([*target.command, *target.env.values()]) or description.declares is not None
        if not (inside or self.options.anything):
            listed = {name for name, _ in self.options.script}
            report.not_called = [n for n, tool in self.tools.items() if not tool.spec.read_only and n not in listed]
        return report

    async def _explore(self, runner: _Runner, report: Report) -> None:
        """Make the script: call every tool some times, with what was heard so far."""
        rng = Random(self.options.seed)
        workspace = runner.connection.workspace
        folder = workspace.alias if workspace is not None else "/workspace"
        inventor = Inventor(rng, folder, _places(workspace))
        for name, arguments in self.options.script:
            await self._try(runner, inventor, name, arguments)
        names = sorted(set(self.tools) - set(report.not_called), key=lambda name: not self._reads(name))
        failures: dict[str, Finding] = {}
        left_out: dict[str, str] = {}
        done: dict[str, int] = {}
        for number in range(_ROUNDS):
            for name in names:
                if done.get(name, 0) >= _CALLS_A_TOOL or name in left_out:
                    continue
                drawn = inventor.arguments(self.tools[name].spec, plain=number % 2 == 0, reads=self._reads(name))
                if drawn is None:
                    failures[name] = Finding(name, "no arguments that its schema takes could be invented")
                    continue
                arguments, begun = drawn, time.monotonic()
                outcome = await self._try(runner, inventor, name, arguments)
                if outcome.kind == "infrastructure_error":
                    left_out[name] = f"{_shown(name, arguments)}: {outcome.code}"
                elif time.monotonic() - begun > _SLOW:
                    left_out[name] = f"{_shown(name, arguments)}: slow"
                if name in left_out:
                    self.script = [call for call in self.script if call[0] != name]
                    self.succeeded = [call for call in self.succeeded if call[0] != name]
                if outcome.executed:
                    done[name] = done.get(name, 0) + 1
                else:
                    failures[name] = Finding(name, _shortened(outcome.message), _shown(name, arguments))
                if outcome.kind == "infrastructure_error":
                    runner.meta = {**runner.meta, SESSION: uuid4().hex}
                    if not runner.connection.alive:
                        await self._stop(runner.connection)
                        runner.connection = await self._connection()
        report.notes += [f"called once and not compared: {reason}" for reason in left_out.values()]
        report.never_succeeded = [failures[name] for name in names if name not in done and name in failures]

    async def _try(self, runner: _Runner, inventor: Inventor, name: str, arguments: dict[str, Any]) -> Outcome:
        outcome = await runner.call(name, arguments)
        self.script.append((name, arguments))
        if outcome.executed:
            inventor.listen(outcome.value)
            self.succeeded.append((name, arguments))
        return outcome

    def _reads(self, name: str) -> bool:
        spec = self.tools[name].spec
        return spec.read_only or bool(_READING.match(name) and not self._declares(name))

    def _declares(self, name: str) -> bool:
        """Whether the server says anything about what the tool does."""
        return any(tool.spec.read_only for tool in self.tools.values())

    async def _observers(self, report: Report, unstable: set[str]) -> list[tuple[str, dict[str, Any]]]:
        """Calls that show the state and leave it as it is, tried in a process in which the script was run."""
        runner = await self._process()
        for name, arguments in self.script:
            await runner.call(name, arguments)
        candidates = [call for call in self._reading() if call[0] not in unstable]
        kept = [call for call in candidates if await self._repeats(runner, call)]
        for call in list(kept):
            for other in kept:
                before = _print(await runner.call(*other))
                await runner.call(*call)
                if other != call and _print(await runner.call(*other)) != before:
                    kept.remove(call)
                    if self.tools[call[0]].spec.read_only:
                        changed = f"changed the answer of {_shown(*other)}"
                        report.not_read_only.append(Finding(call[0], changed, _shown(*call)))
                    break
        await self._stop(runner.connection)
        return kept

    async def _repeats(self, runner: _Runner, call: tuple[str, dict[str, Any]]) -> bool:
        return _print(await runner.call(*call)) == _print(await runner.call(*call))

    def _reading(self) -> list[tuple[str, dict[str, Any]]]:
        """Of each tool that reads, the calls that succeeded, the plainest first."""
        found: list[tuple[str, dict[str, Any]]] = []
        calls = sorted(self.succeeded, key=lambda call: len(json.dumps(call[1])))
        for round_ in range(_CALLS_A_TOOL):
            for name in self.tools:
                own = [call for call in calls if call[0] == name]
                if self._reads(name) and len(own) > round_ and own[round_] not in found:
                    found.append(own[round_])
        return found[:_OBSERVERS]

    # Isolation

    async def _isolation(self, report: Report, observers: Calls) -> None:
        shared = self._runner(await self._connection())
        beside = self._runner(shared.connection)
        report.rungs.append(await self._rung("meta", shared, beside, observers))
        await self._stop(shared.connection)
        rung = "process" if self.options.target.command else "connection"
        one, other = await self._process(), await self._process()
        report.rungs.append(await self._rung(rung, one, other, observers))
        if one.connection.workspace is not None and not report.declares_sessions:
            await self._restarted(report, one, observers)
        await self._stop(one.connection)
        await self._stop(other.connection)

    async def _rung(self, isolation: str, writer: _Runner, reader: _Runner, observers: Calls) -> Rung:
        steady = await self._steady(reader, observers)
        apart = writer.connection is not reader.connection
        visible = False
        for name, arguments in self._mutating():  # looked at after each: the next one may take it back
            wrote = _shown(name, arguments)
            before, own = await self._look(reader, steady, apart), await self._look(writer, steady, apart)
            await writer.call(name, arguments)
            after = await self._look(reader, steady, apart)
            for call, old, new in zip(steady, before.answers, after.answers, strict=True):
                if old != new:
                    return Rung(isolation, "leaks", f"{_shown(*call)} in one session shows {wrote} of another")
            if before.files != after.files:
                return Rung(isolation, "leaks", f"{wrote} wrote into the folder of the other session")
            if before.state != after.state:
                return Rung(isolation, "leaks", f"{wrote} changed the digest of the other session")
            visible = visible or own != await self._look(writer, steady, apart)
            shown = await self._shows(writer, reader, name, arguments)
            if shown is not None and shown[0]:
                return Rung(isolation, "leaks", f"{shown[1]} in one session shows {wrote} of another")
            visible = visible or shown is not None
        if visible:
            return Rung(isolation, "isolated", "what one session wrote is seen in it and not in the other")
        return Rung(isolation, "unknown", "nothing that was written could be seen anywhere")

    async def _shows(
        self, writer: _Runner, reader: _Runner, name: str, arguments: dict[str, Any]
    ) -> tuple[bool, str] | None:
        """Write a word that was never used, and look for it: (whether the other session shows it, which call does).

        This finds leaks also by calls whose answers differ anyway.
        """
        word = f"canary{uuid4().hex[:8]}"
        sent = _reworded(arguments, word)
        if sent == arguments or check_arguments(self.tools[name].spec, sent):
            return None
        await writer.call(name, sent)
        for runner in (reader, writer):
            for call in self._reading()[:_OBSERVERS]:
                if word not in json.dumps(call[1]) and word in json.dumps((await runner.call(*call)).value):
                    return runner is reader, _shown(*call)
        return None

    async def _restarted(self, report: Report, used: _Runner, observers: Calls) -> None:
        """Whether a process that is started anew, in a fresh folder, is as one that was never used."""
        workspace = used.connection.workspace
        assert workspace is not None
        fresh = await self._process()
        steady = await self._steady(fresh, observers)
        wanted = await self._observe(fresh, steady)
        await self._stop(fresh.connection)
        self.open.remove(used.connection)
        await used.connection.stop()
        workspace.fill(self.options.template)
        again = self._runner(await self._connection(workspace))
        for call, old, new in zip(steady, wanted, await self._observe(again, steady), strict=True):
            if old != new:
                report.notes.append(f"after a restart with a restored folder {_shown(*call)} still shows old state")
                break
        await self._stop(again.connection)

    async def _look(self, runner: _Runner, observers: Calls, files: bool = True) -> _View:
        """``files``: whether its folder counts; where two sessions share one it says nothing of either."""
        folder = await runner.files() if files else ""
        return _View(await self._observe(runner, observers), folder, await runner.state())

    async def _observe(self, runner: _Runner, observers: Calls) -> list[str]:
        return [_print(await runner.call(name, arguments)) for name, arguments in observers]

    async def _steady(self, runner: _Runner, observers: Calls) -> list[tuple[str, dict[str, Any]]]:
        """The observers that answer twice alike."""
        once, twice = await self._observe(runner, observers), await self._observe(runner, observers)
        return [call for call, first, second in zip(observers, once, twice, strict=True) if first == second]

    def _mutating(self) -> list[tuple[str, dict[str, Any]]]:
        calls = [call for call in self.script if not self.tools[call[0]].spec.read_only and not self._reads(call[0])]
        succeeded = [call for call in calls if call in self.succeeded]
        return (succeeded + [call for call in calls if call not in succeeded])[:_WRITES]

    # Determinism

    async def _determinism(self, report: Report) -> None:
        outcomes: list[list[tuple[str, str]]] = []
        for _ in range(2):
            runner = await self._process()
            outcomes.append([])
            for name, arguments in self.script:
                outcome = await runner.call(name, arguments)
                outcomes[-1].append((_print(outcome), _shortened(json.dumps(outcome.value or outcome.message))))
            await self._stop(runner.connection)
        found: dict[str, Finding] = {}
        for call, one, other in zip(self.script, *outcomes, strict=True):
            if one[0] != other[0]:
                found.setdefault(call[0], Finding(call[0], f"{one[1]}, then {other[1]}", _shown(*call)))
        report.nondeterministic = list(found.values())

    # What calls change

    async def _changes(self, report: Report, observers: Calls, unstable: set[str]) -> None:
        runner = await self._process()
        lying = {finding.tool: finding for finding in report.not_read_only}
        idle: dict[str, list[str]] = {}
        effective: set[str] = set()
        for name, arguments in self.script:
            spec = self.tools[name].spec
            steady = [call for call in observers if call[0] != name]
            steady = await self._steady(runner, steady)
            before = await self._look(runner, steady)
            outcome = await runner.call(name, arguments)
            again = await runner.call(name, arguments) if spec.read_only and name not in unstable else outcome
            changed = self._changed(steady, before, await self._look(runner, steady))
            if not changed and spec.read_only and _print(again) != _print(outcome):
                changed = "its own next answer"
            if spec.read_only:
                if changed:
                    lying.setdefault(name, Finding(name, f"changed {changed}", _shown(name, arguments)))
            elif changed:
                effective.add(name)
            elif outcome.executed and not self._reads(name):
                idle.setdefault(name, []).append(_shown(name, arguments))
            if not runner.connection.alive:
                await self._stop(runner.connection)
                runner.connection = await self._connection()
        await self._stop(runner.connection)
        report.not_read_only = list(lying.values())
        if observers or self.options.target.command or report.declares_sessions:
            report.no_ops = [Finding(name, _times(calls, name in effective), calls[0]) for name, calls in idle.items()]

    @staticmethod
    def _changed(observers: Calls, before: _View, after: _View) -> str:
        if before.files != after.files:
            return "files in the workspace"
        for call, old, new in zip(observers, before.answers, after.answers, strict=True):
            if old != new:
                return f"the answer of {_shown(*call)}"
        return "the digest of the session" if before.state != after.state else ""


def _times(calls: Sequence[str], effective: bool) -> str:
    times = "once" if len(calls) == 1 else f"{len(calls)} times"
    return f"succeeded {times} and changed nothing that could be seen" + ("" if effective else "; no call of it did")


def _places(workspace: Workspace | None) -> list[str]:
    if workspace is None:
        return []
    inside = sorted(path for path in workspace.path.rglob("*") if path.is_file() and ".git" not in path.parts)
    return [f"{workspace.alias}/{path.relative_to(workspace.path)}" for path in inside[:20]]


def _reworded(value: Any, word: str) -> Any:
    """Arguments in which another word stands for the ones that were invented."""
    if isinstance(value, str):
        return re.sub(r"canary\d*", word, value)
    if isinstance(value, Mapping):
        return {key: _reworded(inner, word) for key, inner in value.items()}
    if isinstance(value, list):
        return [_reworded(inner, word) for inner in value]
    return value


def _shown(name: str, arguments: Mapping[str, Any]) -> str:
    return f"{name}({_shortened(json.dumps(arguments, ensure_ascii=False))})"


def _shortened(text: str, most: int = 100) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def _recommendation(report: Report, target: Target) -> str:
    """The safest option that is known to be right, and why."""
    verdicts = {rung.isolation: rung.verdict for rung in report.rungs}
    if verdicts.get("meta") == "isolated":
        return 'isolation = "meta": sessions in one process do not see one another'
    if not report.not_read_only and report.declared_read_only == report.tools:
        return 'isolation = "shared": every tool reads only, as it declares'
    apart = "process" if target.command else "connection"
    match verdicts.get(apart):
        case "isolated":
            return f'isolation = "{apart}": sessions need a {apart} each'
        case "leaks":
            return (
                f"none is safe: even sessions with a {apart} of their own see one another. Does it write outside of "
                "its workspace? Name its files with {workspace} in the command or in -e NAME={workspace}/…"
            )
    if not target.command:
        return "not known: nothing that was written could be seen; give calls that write and read (--calls)"
    return 'isolation = "process": the safe choice, since nothing that was written could be seen (see --calls)'


def read_calls(lines: Iterable[Mapping[str, Any]], where: str) -> list[tuple[str, dict[str, Any]]]:
    """The rows of a script. Raises :class:`callwright.UsageError` for one that is not a call."""
    calls = []
    for number, row in enumerate(lines, 1):
        tool, arguments = row.get("tool"), row.get("arguments", {})
        if not isinstance(tool, str) or not isinstance(arguments, dict):
            raise UsageError(f"{where}: row {number} needs a string 'tool' and an object 'arguments'")
        calls.append((tool, arguments))
    return calls
