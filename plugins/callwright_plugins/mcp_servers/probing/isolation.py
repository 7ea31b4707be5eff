"""Isolation: what one session writes must be seen in it and nowhere else, in one process and in several."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from callwright.tools.validation import check_arguments
from callwright_plugins.mcp_servers.probing.bench import Bench
from callwright_plugins.mcp_servers.probing.report import Report, Rung
from callwright_plugins.mcp_servers.probing.runner import Runner, look, observe, shown, steady_calls


async def check_isolation(bench: Bench, report: Report) -> None:
    """Compare two sessions of one process, two of their own, and a process that starts anew with an unused one."""
    shared = bench.runner(await bench.connection())
    beside = bench.runner(shared.connection)
    report.rungs.append(await _rung(bench, "meta", shared, beside))
    await bench.stop(shared.connection)
    rung = "process" if bench.options.target.command else "connection"
    one, other = await bench.process(), await bench.process()
    report.rungs.append(await _rung(bench, rung, one, other))
    if one.connection.workspace is not None and not report.declares_sessions:
        await _restarted(bench, report, one)
    await bench.stop(one.connection)
    await bench.stop(other.connection)


async def _rung(bench: Bench, isolation: str, writer: Runner, reader: Runner) -> Rung:
    """Whether what is written in one of two sessions is seen in the other, looked for after each call."""
    steady = await steady_calls(reader, bench.observers)
    apart = writer.connection is not reader.connection
    visible = False
    for name, arguments in bench.mutating():  # looked at after each: the next one may take it back
        wrote = shown(name, arguments)
        before, own = await look(reader, steady, apart), await look(writer, steady, apart)
        await writer.call(name, arguments)
        after = await look(reader, steady, apart)
        for call, old, new in zip(steady, before.answers, after.answers, strict=True):
            if old != new:
                return Rung(isolation, "leaks", f"{shown(*call)} in one session shows {wrote} of another")
        if before.files != after.files:
            return Rung(isolation, "leaks", f"{wrote} wrote into the folder of the other session")
        if before.state != after.state:
            return Rung(isolation, "leaks", f"{wrote} changed the digest of the other session")
        visible = visible or own != await look(writer, steady, apart)
        sight = await _sight_of_a_word(bench, writer, reader, name, arguments)
        if sight is not None and sight[0]:
            return Rung(isolation, "leaks", f"{sight[1]} in one session shows {wrote} of another")
        visible = visible or sight is not None
    if visible:
        return Rung(isolation, "isolated", "what one session wrote is seen in it and not in the other")
    return Rung(isolation, "unknown", "nothing that was written could be seen anywhere")


async def _sight_of_a_word(
    bench: Bench, writer: Runner, reader: Runner, name: str, arguments: dict[str, Any]
) -> tuple[bool, str] | None:
    """Write a word that was never used, and look for it: whether the other session shows it, and by which call.

    This also finds leaks in calls whose answers differ anyway.
    """
    word = f"canary{uuid4().hex[:8]}"
    sent = _reworded(arguments, word)
    if sent == arguments or check_arguments(bench.tools[name].spec, sent):
        return None
    await writer.call(name, sent)
    for runner in (reader, writer):
        for call in bench.reading():
            if word not in json.dumps(call[1]) and word in json.dumps((await runner.call(*call)).value):
                return runner is reader, shown(*call)
    return None


async def _restarted(bench: Bench, report: Report, used: Runner) -> None:
    """Whether a process that is started anew, in a fresh folder, is as one that was never used."""
    workspace = used.connection.workspace
    assert workspace is not None
    fresh = await bench.process()
    steady = await steady_calls(fresh, bench.observers)
    wanted = await observe(fresh, steady)
    await bench.stop(fresh.connection)
    bench.open.remove(used.connection)
    await used.connection.stop()
    workspace.fill(bench.options.template)
    again = bench.runner(await bench.connection(workspace))
    for call, old, new in zip(steady, wanted, await observe(again, steady), strict=True):
        if old != new:
            report.notes.append(f"after a restart with a restored folder {shown(*call)} still shows old state")
            break
    await bench.stop(again.connection)


def _reworded(value: Any, word: str) -> Any:
    """Arguments in which another word stands for the ones that were invented."""
    if isinstance(value, str):
        return re.sub(r"canary\d*", word, value)
    if isinstance(value, Mapping):
        return {key: _reworded(inner, word) for key, inner in value.items()}
    if isinstance(value, list):
        return [_reworded(inner, word) for inner in value]
    return value
