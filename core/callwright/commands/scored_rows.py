"""Rows of rewards as ``callwright score`` writes them: the format ``score-output``, a line for each reward."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from callwright.walk.reward import evidence_json

if TYPE_CHECKING:
    from callwright.walk.reward import Reward, Score, WeightedScore


class RewardWriter:
    """Writes ``{"id": …, **reward.to_json()}`` as a line of JSON, remembering how common scores look.

    A line is the same text as ``json.dumps`` of that object; a test says so.
    """

    _LIMIT: Final = 4096

    def __init__(self) -> None:
        self._heads: dict[tuple[str, float, float, float, float], str] = {}
        self._closed: dict[tuple[str, int], tuple[Score, str]] = {}

    def line(self, row_id: str | int, reward: Reward) -> str:
        """The line, with its line end."""
        scores = ", ".join([self._score(name, weighted) for name, weighted in reward.scores.items()])
        masked = "" if reward.masked is None else f', "masked": {json.dumps(reward.masked)}'
        total = "null" if reward.total is None else repr(float(reward.total))
        head = f'{{"id": {json.dumps(row_id)}, "total": {total}, "scores": {{{scores}}}, "stage": "{reward.stage}"'
        return f"{head}{masked}}}\n"

    def _score(self, name: str, weighted: WeightedScore) -> str:
        score = weighted.score
        if weighted.closed:  # the core keeps one score for each closed gate
            known = self._closed.get((name, id(score)))
            if known is None or known[0] is not score:
                if len(self._closed) >= self._LIMIT:
                    self._closed.clear()
                known = self._closed[name, id(score)] = score, self._open(name, score, weighted.weight)
            return known[1]
        return self._open(name, score, weighted.weight)

    def _open(self, name: str, score: Score, weight: float) -> str:
        key = (name, score.value, score.low, score.high, weight)
        head = self._heads.get(key)
        if head is None:
            if len(self._heads) >= self._LIMIT:
                self._heads.clear()
            shown = {"value": score.value, "low": score.low, "high": score.high, "weight": weight}
            head = self._heads[key] = f'{json.dumps(name)}: {json.dumps(shown)[:-1]}, "evidence": '
        if not score.evidence:
            return head + "[]}"
        return head + json.dumps([evidence_json(evidence) for evidence in score.evidence]) + "}"
