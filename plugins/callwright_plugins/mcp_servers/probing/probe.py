"""Probing: what a server really does, told by what its calls give, not by what it says of itself.

Annotations and descriptions are claims. Here tools are called, with invented arguments or a given script, and what
comes back is compared: between two sessions, between two fresh processes, and before and after a call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from callwright.errors import UsageError
from callwright.tools.validation import check_arguments
from callwright.training.reporter import SILENT, Reporter
from callwright_plugins.mcp_servers.connecting.connection import Target
from callwright_plugins.mcp_servers.connecting.foreign import read_listing
from callwright_plugins.mcp_servers.connecting.portal import PORTAL
from callwright_plugins.mcp_servers.connecting.workspace import mentions_workspace
from callwright_plugins.mcp_servers.probing.bench import Bench, ProbeOptions
from callwright_plugins.mcp_servers.probing.claims import check_changes, check_determinism
from callwright_plugins.mcp_servers.probing.exploring import explore, find_observers
from callwright_plugins.mcp_servers.probing.isolation import check_isolation
from callwright_plugins.mcp_servers.probing.report import Report, recommendation
from callwright_plugins.mcp_servers.probing.runner import Calls, ProbeCall
from callwright_plugins.mcp_servers.wire import need_mcp

#: What a probe does, in this order: make a script, then compare what its calls give. Each writes into the report.
STEPS: Final[tuple[Callable[[Bench, Report], Awaitable[None]], ...]] = (
    explore,
    check_determinism,
    find_observers,
    check_isolation,
    check_changes,
)


def probe(
    target: Target,
    *,
    script: Calls = (),
    anything: bool = False,
    template: Path | None = None,
    seed: int = 0,
    time_limit: float = 10.0,
    start_limit: float = 60.0,
    reporter: Reporter = SILENT,
) -> Report:
    """Find out what a server is like.

    Processes run in a scratch folder, which is also their home and temporary folder and stands for ``{workspace}``.
    Tools that may change something are called only if the command mentions ``{workspace}`` (then they are taken to keep
    to it), if the server is a served environment, or with ``anything``. ``script`` are calls to make besides invented
    ones; ``reporter`` hears of each step. Raises :class:`callwright.InfrastructureFailure` if no server starts.
    """
    need_mcp("env probe")
    options = ProbeOptions(target, list(script), anything, template, seed, time_limit, start_limit)
    return PORTAL.run(_run(Bench(options), reporter))


async def _run(bench: Bench, reporter: Reporter) -> Report:
    try:
        report = await _begin(bench)
        reporter.start("probing, steps", len(STEPS))
        for step in STEPS:
            await step(bench, report)
            reporter.advance()
        reporter.finish()
    finally:
        await bench.stop_all()
    report.calls = sum(runner.count for runner in bench.runners)
    report.recommended = recommendation(report, has_command=bool(bench.options.target.command))
    return report


async def _begin(bench: Bench) -> Report:
    """Read the listing in a first process, in which the tools are explored afterwards."""
    connection = (await bench.process()).connection
    description, target = connection.description, bench.options.target
    assert description is not None
    broken = list(description.broken)
    bench.tools.update(read_listing(description.tools, broken=broken))
    for name, arguments in bench.options.script:
        if name not in bench.tools:
            raise UsageError(f"the script calls {name!r}, which is no tool of this server")
        problems = check_arguments(bench.tools[name].spec, arguments)
        if problems:
            raise UsageError(f"the script: {problems[0]}")
    declared = sum(tool.spec.read_only for tool in bench.tools.values())
    report = Report(
        server=description.name,
        version=description.version,
        protocol=description.protocol,
        tools=len(bench.tools),
        declared_read_only=declared,
        declares_sessions=description.declares is not None,
        notes=[one.words for one in broken],
        scratch="a scratch folder for each process" if target.command else "",
    )
    inside = mentions_workspace([*target.command, *target.env.values()]) or description.declares is not None
    if not (inside or bench.options.anything):
        listed = {name for name, _ in bench.options.script}
        report.not_called = [n for n, tool in bench.tools.items() if not tool.spec.read_only and n not in listed]
    return report


def read_calls(lines: Iterable[Mapping[str, Any]], where: str) -> list[ProbeCall]:
    """The rows of a script. Raises :class:`callwright.UsageError` for one that is not a call."""
    calls = []
    for number, row in enumerate(lines, 1):
        tool, arguments = row.get("tool"), row.get("arguments", {})
        if not isinstance(tool, str) or not isinstance(arguments, dict):
            raise UsageError(f"{where}: row {number} needs a string 'tool' and an object 'arguments'")
        calls.append((tool, arguments))
    return calls
