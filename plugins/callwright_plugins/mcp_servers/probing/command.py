"""``callwright env probe``: what a server's isolation, repeatability and annotations are worth."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from callwright.commands.bars import reporter
from callwright.commands.options import check_words
from callwright.commands.safe_text import visible
from callwright.errors import UsageError
from callwright.training.run_folder import read_jsonl

if TYPE_CHECKING:
    from callwright_plugins.mcp_servers.probing.report import Report, ToolFinding


@click.command("probe", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("words", nargs=-1, required=True, metavar="CMD...", type=click.UNPROCESSED)
@click.option(
    "-e", "--env", "variables", multiple=True, metavar="K=V", help="A variable for the server. May be repeated."
)
@click.option(
    "--template", metavar="DIR", type=click.Path(exists=True, file_okay=False), help="What is in the workspace."
)
@click.option("--calls", metavar="FILE", help='Make these calls too: rows {"tool", "arguments"}.')
@click.option("--yes", is_flag=True, help="Call tools that may change something outside of the scratch folder too.")
@click.option("--seed", default=0, show_default=True, help="Fixes the invented arguments.")
@click.option("--time-limit", default=10.0, show_default=True, metavar="S", help="Seconds that a call may take.")
@click.option("--legacy", is_flag=True, help="Do not ask for the newest protocol version.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def probe(
    words: Sequence[str],
    variables: Sequence[str],
    template: str | None,
    calls: str | None,
    yes: bool,
    seed: int,
    time_limit: float,
    legacy: bool,
    as_json: bool,
) -> None:
    """Find out what an MCP server really isolates, repeats and changes.

    CMD is the command that starts it, or a URL. {workspace} in it stands for a scratch folder:

        callwright env probe npx -y @modelcontextprotocol/server-filesystem {workspace}

    Its tools are called with invented arguments, in processes that run in scratch folders. Tools that may change
    something are left out, unless the command keeps the server to {workspace} or --yes is given.
    """
    from callwright_plugins.mcp_servers.connecting.connection import Target
    from callwright_plugins.mcp_servers.connecting.workspace import refuse_misspelt
    from callwright_plugins.mcp_servers.probing.probe import probe as look
    from callwright_plugins.mcp_servers.probing.probe import read_calls

    check_words(click.get_current_context(), words)
    env = {}
    for pair in variables:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise UsageError(f"-e {pair}: expected NAME=VALUE")
        env[key] = value
    if words[0].startswith(("http://", "https://")):
        if len(words) > 1 or env:
            raise UsageError("a URL stands alone; there is no process to give words or variables to")
        target = Target(url=words[0], legacy=legacy)
    else:
        refuse_misspelt([*words, *env.values()])
        target = Target(tuple(words), env=env, legacy=legacy)
        if not as_json:
            click.echo("The server runs in scratch folders, which are deleted afterwards.", err=True)
    script = read_calls(read_jsonl(Path(calls)), calls) if calls else ()
    with reporter() as bars:  # servers that are slow to start take minutes
        report = look(
            target,
            script=script,
            anything=yes,
            template=Path(template) if template else None,
            seed=seed,
            time_limit=time_limit,
            reporter=bars,
        )
    click.echo(json.dumps(report.as_json(), indent=2) if as_json else visible(_drawn(report)))


def _drawn(report: Report) -> str:
    lines = [
        f"{report.server or 'a server without a name'} {report.version}, protocol {report.protocol}: {report.tools} "
        f"tools, {report.declared_read_only} declare that they read only",
        "1 call was made" if report.calls == 1 else f"{report.calls} calls were made",
        "",
        "Isolation",
    ]
    for rung in report.rungs:
        lines.append(f"  {rung.isolation:<11}{rung.verdict:<10}{rung.evidence}")
    lines.append(f"  -> {report.recommended}")
    lines += _section("Not deterministic", report.nondeterministic, "every tool answered alike in two fresh processes")
    lines += _section("Declare read-only, but change something", report.not_read_only, "none was caught")
    lines += _section("Succeeded, but changed nothing", report.no_ops, "none")
    if report.never_succeeded:
        lines += _section(
            "Never succeeded with invented arguments (give some with --calls)", report.never_succeeded, ""
        )
    if report.not_called:
        lines += [
            "",
            "Not called, since nothing keeps them to the scratch folder ({workspace} in the command, or --yes)",
        ]
        lines.append("  " + ", ".join(report.not_called))
    if report.notes:
        lines += ["", "Notes", *(f"  {note}" for note in report.notes)]
    return "\n".join(lines)


def _section(title: str, findings: Sequence[ToolFinding], nothing: str) -> list[str]:
    lines: list[Any] = ["", title]
    for finding in findings:
        lines.append(f"  {finding.tool}: {finding.what}" + (f" [{finding.call}]" if finding.call else ""))
    return lines if findings else [*lines, f"  {nothing}"]
