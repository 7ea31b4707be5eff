"""Claims: whether calls repeat themselves, and whether they change what they say and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence

from callwright_plugins.mcp_servers.probing.bench import Bench
from callwright_plugins.mcp_servers.probing.report import Report, ToolFinding
from callwright_plugins.mcp_servers.probing.runner import Calls, View, fingerprint, in_short, look, shown, steady_calls


async def check_determinism(bench: Bench, report: Report) -> None:
    """Run the script in two fresh processes and compare every answer. The second one is kept for who comes next."""
    outcomes: list[list[tuple[str, str]]] = []
    for _ in range(2):
        runner = await bench.process()
        outcomes.append([])
        for name, arguments in bench.script:
            outcome = await runner.call(name, arguments)
            outcomes[-1].append((fingerprint(outcome), in_short(json.dumps(outcome.value or outcome.message))))
        if bench.used is not None:
            await bench.stop(bench.used.connection)
        bench.used = runner
    found: dict[str, ToolFinding] = {}
    for call, one, other in zip(bench.script, *outcomes, strict=True):
        if one[0] != other[0]:
            found.setdefault(call[0], ToolFinding(call[0], f"{one[1]}, then {other[1]}", shown(*call)))
    report.nondeterministic = list(found.values())


async def check_changes(bench: Bench, report: Report) -> None:
    """Make every call of the script, and look before and after it: only those that may change something should."""
    unstable = report.unstable
    runner = await bench.process()
    lying = {finding.tool: finding for finding in report.not_read_only}
    idle: dict[str, list[str]] = {}
    effective: set[str] = set()
    for name, arguments in bench.script:
        spec = bench.tools[name].spec
        steady = [call for call in bench.observers if call[0] != name]
        steady = await steady_calls(runner, steady)
        before = await look(runner, steady)
        outcome = await runner.call(name, arguments)
        again = await runner.call(name, arguments) if spec.read_only and name not in unstable else outcome
        changed = _changed(steady, before, await look(runner, steady))
        if not changed and spec.read_only and fingerprint(again) != fingerprint(outcome):
            changed = "its own next answer"
        if spec.read_only:
            if changed:
                lying.setdefault(name, ToolFinding(name, f"changed {changed}", shown(name, arguments)))
        elif changed:
            effective.add(name)
        elif outcome.executed and not bench.reads(name):
            idle.setdefault(name, []).append(shown(name, arguments))
        await bench.revive(runner)
    await bench.stop(runner.connection)
    report.not_read_only = list(lying.values())
    if bench.observers or bench.options.target.command or report.declares_sessions:
        # The last idle call says most: calls with the name of something that is not there stand at the end.
        report.no_ops = [ToolFinding(name, _times(calls, name in effective), calls[-1]) for name, calls in idle.items()]


def _changed(observers: Calls, before: View, after: View) -> str:
    if before.files != after.files:
        return "files in the workspace"
    for call, old, new in zip(observers, before.answers, after.answers, strict=True):
        if old != new:
            return f"the answer of {shown(*call)}"
    return "the digest of the session" if before.state != after.state else ""


def _times(calls: Sequence[str], effective: bool) -> str:
    times = "once" if len(calls) == 1 else f"{len(calls)} times"
    return f"succeeded {times} and changed nothing that could be seen" + ("" if effective else "; no call of it did")
