"""What a probe found: whether sessions are apart, what does not repeat itself, which annotations do not hold."""

from __future__ import annotations

from typing import Any, Literal

from attrs import asdict, define, field, frozen

IsolationVerdict = Literal["isolated", "leaks", "unknown"]


@frozen
class Rung:
    """One step of the isolation ladder: whether what is written in one session is seen in another."""

    isolation: str
    verdict: IsolationVerdict
    evidence: str = ""


@frozen
class ToolFinding:
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
    nondeterministic: list[ToolFinding] = field(factory=list)
    #: Declare that they read only, and change what is read afterwards.
    not_read_only: list[ToolFinding] = field(factory=list)
    #: Mutating calls that succeeded and changed nothing that could be seen.
    no_ops: list[ToolFinding] = field(factory=list)
    #: Never succeeded with the arguments that were tried.
    never_succeeded: list[ToolFinding] = field(factory=list)
    #: Not called, because nothing says that they keep to the scratch folder.
    not_called: list[str] = field(factory=list)
    #: What else should be known.
    notes: list[str] = field(factory=list)
    recommended: str = ""

    @property
    def unstable(self) -> set[str]:
        """The tools that do not answer alike."""
        return {finding.tool for finding in self.nondeterministic}

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


def recommendation(report: Report, *, has_command: bool) -> str:
    """The safest option that is known to be right, and why."""
    verdicts = {rung.isolation: rung.verdict for rung in report.rungs}
    if verdicts.get("meta") == "isolated":
        return 'isolation = "meta": sessions in one process do not see one another'
    if not report.not_read_only and report.declared_read_only == report.tools:
        return 'isolation = "shared": every tool reads only, as it declares'
    apart = "process" if has_command else "connection"
    match verdicts.get(apart):
        case "isolated":
            return f'isolation = "{apart}": sessions need a {apart} each'
        case "leaks":
            return (
                f"none is safe: even sessions with a {apart} of their own see one another. Does it write outside of "
                "its workspace? Name its files with {workspace} in the command or in -e NAME={workspace}/…"
            )
    if not has_command:
        return "not known: nothing that was written could be seen; give calls that write and read (--calls)"
    return 'isolation = "process": the safe choice, since nothing that was written could be seen (see --calls)'
