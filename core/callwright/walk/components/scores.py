"""Scores: the value that a component gives an attempt, with a reason for every point that is lost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, SupportsFloat

from attrs import field, frozen

#: The order in which a completion is judged; ``Reward.stage`` is the first one that lost a point.
STAGES: Final = ("format", "parse", "execution", "answer")


@frozen(slots=False)  # which attrs makes faster
class Evidence:
    """One reason for a lost point: which call, which path, what was expected and what came."""

    code: str
    reason: str
    call: int | None = None
    path: str = ""
    expected: str = ""
    found: str = ""

    def __str__(self) -> str:
        return self.reason


def _number(value: SupportsFloat) -> float:
    """A number of Python's, of whatever is one: those of NumPy and PyTorch are no JSON."""
    return value if type(value) is float or type(value) is int else float(value)


def _pieces(evidence: Iterable[Evidence] | Evidence) -> tuple[Evidence, ...]:
    """Pieces of evidence, of one or several."""
    if type(evidence) is not tuple:
        evidence = (evidence,) if isinstance(evidence, Evidence | str) else tuple(evidence)
    for piece in evidence:
        if not isinstance(piece, Evidence):
            raise TypeError(f"evidence is a tuple of callwright.Evidence, and {piece!r:.80} is none")
    return evidence


@frozen
class Score:
    """The value of one component in ``[low, high]``. Below ``high`` there is at least one piece of evidence.

    ``masked`` says why the value is not known: the machinery failed where the property would have been seen. The whole
    sample is then masked, whatever the value.

    Numbers of other libraries become Python's. Raises :class:`TypeError` or :class:`ValueError` for what is no number,
    and :class:`TypeError` for evidence that is none.
    """

    value: float = field(converter=_number)
    low: float = field(default=0.0, converter=_number)
    high: float = field(default=1.0, converter=_number)
    evidence: tuple[Evidence, ...] = field(default=(), converter=_pieces)
    masked: str | None = None

    @property
    def full(self) -> bool:
        """Whether the value is at its maximum."""
        return self.value >= self.high

    @property
    def told_by(self) -> str | None:
        """The term of the recipe that tells why points are lost, if it is not this one."""
        return None


@frozen
class Deferred(Score):
    """The score of a term that was not looked at, because another one, ``told``, tells why points are lost.

    It shuts off the terms that require it, but not that one.
    """

    told: str = ""

    @property
    def told_by(self) -> str | None:
        """The term that tells."""
        return self.told or None


@frozen(slots=False)
class WeightedScore:
    """A score as it enters a total: ``weight * score.value`` is its contribution. ``closed``: a gate shut it off."""

    score: Score
    weight: float
    closed: bool = False

    @property
    def contribution(self) -> float:
        """What this term adds to the total."""
        return self.weight * self.score.value


def evidence_json(evidence: Evidence) -> dict[str, object]:
    """A piece of evidence as it stands in a row of ``callwright score``."""
    row: dict[str, object] = {"code": evidence.code, "reason": evidence.reason}
    if evidence.call is not None:
        row["call"] = evidence.call
    for key in ("path", "expected", "found"):
        if getattr(evidence, key):
            row[key] = getattr(evidence, key)
    return row
