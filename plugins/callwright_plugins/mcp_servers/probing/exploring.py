"""Exploring: a script of calls, made by calling every tool with what was heard so far; and which of them observe."""

from __future__ import annotations

import time
from random import Random
from typing import Any, Final
from uuid import uuid4

from callwright.environments.protocol import Outcome
from callwright_plugins.mcp_servers.connecting.workspace import Workspace
from callwright_plugins.mcp_servers.probing.bench import CALLS_A_TOOL, Bench
from callwright_plugins.mcp_servers.probing.inventing import Inventor
from callwright_plugins.mcp_servers.probing.report import Report, ToolFinding
from callwright_plugins.mcp_servers.probing.runner import ProbeCall, Runner, fingerprint, in_short, shown
from callwright_plugins.mcp_servers.wire import SESSION

_ROUNDS: Final = 8
#: Calls that take longer (seconds) are made once and left out of comparisons, which would make them a hundred times.
_SLOW: Final = 1.0


async def explore(bench: Bench, report: Report) -> None:
    """Make the script: call every tool some times, with what was heard so far."""
    runner = bench.runners[0]
    rng = Random(bench.options.seed)
    workspace = runner.connection.workspace
    folder = workspace.alias if workspace is not None else "/workspace"
    inventor = Inventor(rng, folder, _places(workspace))
    for name, arguments in bench.options.script:
        await _try(bench, runner, inventor, name, arguments)
    skipped = set(
        report.not_called
    )  # in the order of the listing, so that a seed draws the same calls in every process
    names = sorted((name for name in bench.tools if name not in skipped), key=lambda name: not bench.reads(name))
    failures: dict[str, ToolFinding] = {}
    left_out: dict[str, str] = {}
    done: dict[str, int] = {}
    for number in range(_ROUNDS):
        for name in names:
            if done.get(name, 0) >= CALLS_A_TOOL or name in left_out:
                continue
            drawn = inventor.arguments(bench.tools[name].spec, plain=number % 2 == 0, reads=bench.reads(name))
            if drawn is None:
                failures[name] = ToolFinding(name, "no arguments that its schema takes could be invented")
                continue
            arguments, begun = drawn, time.monotonic()
            outcome = await _try(bench, runner, inventor, name, arguments)
            if outcome.kind == "infrastructure_error":
                left_out[name] = f"{shown(name, arguments)}: {outcome.code}"
            elif time.monotonic() - begun > _SLOW:
                left_out[name] = f"{shown(name, arguments)}: slow"
            if name in left_out:
                bench.script = [call for call in bench.script if call[0] != name]
                bench.succeeded = [call for call in bench.succeeded if call[0] != name]
            if outcome.executed:
                done[name] = done.get(name, 0) + 1
            else:
                failures[name] = ToolFinding(name, in_short(outcome.message), shown(name, arguments))
            if outcome.kind == "infrastructure_error":
                runner.meta = {**runner.meta, SESSION: uuid4().hex}
                await bench.revive(runner)
    for name in names:
        if name in done and name not in left_out and not bench.reads(name):
            await _call_ghost(bench, runner, inventor, name)
    report.notes += [f"called once and not compared: {reason}" for reason in left_out.values()]
    report.never_succeeded = [failures[name] for name in names if name not in done and name in failures]
    if runner.connection.alive:
        await bench.stop(runner.connection)


async def _call_ghost(bench: Bench, runner: Runner, inventor: Inventor, name: str) -> None:
    """Call a tool with the name of something that is not there; the call is compared only if it claims success."""
    arguments = inventor.ghostly(bench.tools[name].spec)
    if arguments is None:
        return
    outcome = await runner.call(name, arguments)
    if outcome.executed:
        bench.script.append((name, arguments))
    elif outcome.kind == "infrastructure_error":
        runner.meta = {**runner.meta, SESSION: uuid4().hex}
        await bench.revive(runner)


async def _try(bench: Bench, runner: Runner, inventor: Inventor, name: str, arguments: dict[str, Any]) -> Outcome:
    outcome = await runner.call(name, arguments)
    bench.script.append((name, arguments))
    if outcome.executed:
        inventor.listen(outcome.value)
        bench.succeeded.append((name, arguments))
    return outcome


async def find_observers(bench: Bench, report: Report) -> None:
    """Find calls that show the state and leave it as it is, in a process in which the script was run."""
    runner, bench.used = bench.used, None
    if runner is None or not runner.connection.alive:
        runner = await bench.process()
        for name, arguments in bench.script:
            await runner.call(name, arguments)
    candidates = [call for call in bench.reading() if call[0] not in report.unstable]
    kept = [call for call in candidates if await _repeats(runner, call)]
    for call in list(kept):
        for other in kept:
            before = fingerprint(await runner.call(*other))
            await runner.call(*call)
            if other != call and fingerprint(await runner.call(*other)) != before:
                kept.remove(call)
                if bench.tools[call[0]].spec.read_only:
                    changed = f"changed the answer of {shown(*other)}"
                    report.not_read_only.append(ToolFinding(call[0], changed, shown(*call)))
                break
    await bench.stop(runner.connection)
    bench.observers = kept
    if not kept:
        report.notes.append("no tool that reads succeeded twice alike, so only files and digests could be compared")


async def _repeats(runner: Runner, call: ProbeCall) -> bool:
    return fingerprint(await runner.call(*call)) == fingerprint(await runner.call(*call))


def _places(workspace: Workspace | None) -> list[str]:
    if workspace is None:
        return []
    inside = sorted(path for path in workspace.path.rglob("*") if path.is_file() and ".git" not in path.parts)
    return [f"{workspace.alias}/{path.relative_to(workspace.path)}" for path in inside[:20]]
