"""How well a number tells right answers from wrong ones: a judge's verdicts beside what execution says."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from attrs import frozen


@frozen
class TruthAgreement:
    """``n`` values beside as many truths, ``right`` of which are true.

    ``auc``: the chance that a right one has the larger value of a right and a wrong one, ties counting half (Hanley and
    McNeil, 1982); 0.5 is a coin. ``accuracy``: the share of values on the right side of ``threshold`` (a value at it
    counts as right). ``kappa``: Cohen's (1960), the accuracy above what chance gives for these margins, in [-1, 1].
    ``None`` where a figure has no meaning: all truths alike (``auc``, ``kappa``), or nothing at all.
    """

    n: int
    right: int
    threshold: float
    auc: float | None
    accuracy: float | None
    kappa: float | None

    def to_json(self) -> dict[str, float | int | None]:
        """The figures by name."""
        return {name: getattr(self, name) for name in ("n", "right", "threshold", "auc", "accuracy", "kappa")}


def truth_agreement(values: Sequence[float], truths: Sequence[bool], threshold: float) -> TruthAgreement:
    """Compare values with truths of the same things. O(n log n)."""
    n, right = len(values), sum(map(bool, truths))
    wrong = sorted(value for value, truth in zip(values, truths, strict=True) if not truth)
    auc = None
    if 0 < right < n:
        above = sum(
            bisect_left(wrong, value) + bisect_right(wrong, value)
            for value, truth in zip(values, truths, strict=True)
            if truth
        )
        auc = above / 2 / (right * (n - right))
    said = sum(value >= threshold for value in values)
    agreed = sum((value >= threshold) == bool(truth) for value, truth in zip(values, truths, strict=True))
    accuracy = agreed / n if n else None
    kappa = None
    if accuracy is not None and 0 < right < n:
        chance = (said * right + (n - said) * (n - right)) / (n * n)
        kappa = (accuracy - chance) / (1 - chance)
    return TruthAgreement(n, right, threshold, auc, accuracy, kappa)
