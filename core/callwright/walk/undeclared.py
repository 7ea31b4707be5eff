"""Undeclared failures counted by tool: whose bug a model is paying for, in every report.

A tool that raises what it does not declare has a bug, most likely. Where that is an ``execution_error``, rewards take
it for the model's failure, which does no harm while it is rare. Above 2% of a tool's calls it is an alarm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field

from callwright.walk.attempt import Attempt
from callwright.walk.trace import Trace

#: The share of a tool's calls above which undeclared failures are an alarm.
ALARMING: Final = 0.02


@define
class ToolCalls:
    """How often each tool was called, and how often it raised what it does not declare.

    ``accounts`` hold the first such failure of each tool: where it happened (:attr:`callwright.Outcome.undeclared`).
    """

    calls: Counter[str] = field(factory=Counter)
    undeclared: Counter[str] = field(factory=Counter)
    accounts: dict[str, str] = field(factory=dict)

    def add(self, attempt: Attempt) -> None:
        """Count what an attempt has executed. Nothing is executed for it."""
        for trace in attempt.executed_traces:
            self.add_trace(trace)

    def add_trace(self, trace: Trace) -> None:
        """Count the calls of a trace."""
        for record in trace.records:
            self.calls[record.tool] += 1
            account = record.outcome.undeclared
            if account:
                self.undeclared[record.tool] += 1
                self.accounts.setdefault(record.tool, account)

    def merge(self, other: ToolCalls) -> None:
        """Add what was counted elsewhere."""
        self.calls.update(other.calls)
        self.undeclared.update(other.undeclared)
        self.accounts = {**other.accounts, **self.accounts}

    def to_row(self) -> dict[str, Any]:
        """The counts as members of a row: ``calls`` by tool, and ``undeclared`` if there was any failure."""
        row: dict[str, Any] = {"calls": dict(sorted(self.calls.items()))}
        if self.undeclared:
            row["undeclared"] = {
                tool: {"failures": count, "account": self.accounts.get(tool, "")}
                for tool, count in sorted(self.undeclared.items())
            }
        return row

    def add_row(self, row: Mapping[str, Any]) -> None:
        """Count what :meth:`to_row` wrote; a row without counts adds nothing."""
        self.calls.update(_counts(row.get("calls")))
        undeclared = row.get("undeclared")
        for tool, said in undeclared.items() if isinstance(undeclared, Mapping) else ():
            if isinstance(said, Mapping) and type(said.get("failures")) is int:
                self.undeclared[tool] += said["failures"]
                self.accounts.setdefault(tool, str(said.get("account", "")))

    def to_json(self) -> dict[str, dict[str, Any]]:
        """For each tool with undeclared failures: ``calls``, ``failures``, ``share``, ``alarming`` and one account."""
        return {
            tool: {
                "calls": self.calls[tool],
                "failures": count,
                "share": self.share(tool),
                "alarming": self.share(tool) > ALARMING,
                "account": self.accounts.get(tool, ""),
            }
            for tool, count in sorted(self.undeclared.items())
        }

    def share(self, tool: str) -> float:
        """The share of a tool's calls that failed undeclared; 0 for one that was not called."""
        return self.undeclared[tool] / self.calls[tool] if self.calls[tool] else 0.0

    @property
    def alarm(self) -> str | None:
        """The alarm in words, if a tool has more undeclared failures than 2% of its calls."""
        loud = {tool: counts for tool, counts in self.to_json().items() if counts["alarming"]}
        return alarm_of(loud) if loud else None

    @property
    def sentence(self) -> str | None:
        """All undeclared failures in words; ``None`` if there are none."""
        found = self.to_json()
        return sentence_of(found) if found else None


def sentence_of(found: Mapping[str, Mapping[str, Any]]) -> str:
    """What :meth:`ToolCalls.to_json` says, in words."""
    return "undeclared failures: " + ", ".join(
        f"{tool} in {counts['failures']:,} of {counts['calls']:,} calls ({counts['share']:.1%})"
        for tool, counts in found.items()
    )


def alarm_of(loud: Mapping[str, Mapping[str, Any]]) -> str:
    """The alarm about tools, each with what :meth:`ToolCalls.to_json` says of it."""
    account = next((str(counts["account"]) for counts in loud.values() if counts.get("account")), "")
    where = f" The first: {' '.join(account.split())}." if account else ""
    return (
        f"tools raise what they do not declare, which is most likely a bug of theirs that the model pays for: "
        f"{sentence_of(loud)}.{where} Raise callwright.ToolError for what may go wrong, or open the environment with "
        "undeclared='mask'"
    )


def _counts(value: Any) -> dict[str, int]:
    given = value if isinstance(value, Mapping) else {}
    return {tool: count for tool, count in given.items() if type(count) is int}
