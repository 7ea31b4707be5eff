"""Model checks: what looks over a model directory before anybody spends a long run on it.

A plugin registers one with the hook ``callwright_model_checks``; ``callwright doctor --model DIR`` runs every one there
is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Protocol, runtime_checkable

from attrs import asdict, field, frozen

#: ``error``: training would go wrong. ``warning``: it is right here, but not everywhere, or costs something. ``note``.
Severity = Literal["error", "warning", "note"]
#: Worst first.
SEVERITIES: Final[tuple[Severity, ...]] = ("error", "warning", "note")


@frozen
class ModelFinding:
    """One thing that was found: a stable code, what it is, what it means for training, and what to do."""

    code: str
    severity: Severity
    found: str
    meaning: str
    advice: str


def _worst_first(findings: Iterable[ModelFinding]) -> tuple[ModelFinding, ...]:
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))


@frozen
class ModelReport:
    """Everything that one check found of a model, worst first.

    ``facts`` are JSON values by name, what was measured whether or not it is a finding. ``headlines`` say the most
    important of them to people, a line each.
    """

    findings: tuple[ModelFinding, ...] = field(converter=_worst_first)
    facts: dict[str, Any] = field(factory=dict)
    headlines: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing would make training wrong."""
        return not any(finding.severity == "error" for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """What ``callwright doctor --model DIR --json`` prints."""
        return {"ok": self.ok, **self.facts, "findings": [asdict(finding) for finding in self.findings]}


@runtime_checkable
class ModelCheck(Protocol):
    """Looks over a model on disk, in seconds and on CPU."""

    @property
    def name(self) -> str:
        """The registered name."""

    def examine(self, folder: Path) -> ModelReport:
        """The report on a Hugging Face directory, or on the run folder that a model was trained in.

        Raises :class:`callwright.errors.DataError` for a folder that holds nothing the check can read, and
        :class:`callwright.errors.MissingExtra` where a package is missing.
        """


def merged(reports: Sequence[ModelReport]) -> ModelReport:
    """What several checks found of the same model, as one report: worst first, the facts of later checks last."""
    facts: dict[str, Any] = {}
    for report in reports:
        facts.update(report.facts)
    findings = [finding for report in reports for finding in report.findings]
    return ModelReport(findings, facts, tuple(line for report in reports for line in report.headlines))
