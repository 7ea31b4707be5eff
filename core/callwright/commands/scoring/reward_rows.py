"""Rows of rewards as ``callwright score`` writes them: the format ``score-output``, a line for each reward."""

from __future__ import annotations

import json
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, Final, Literal, get_args

from callwright.walk.reward import evidence_json

if TYPE_CHECKING:
    from callwright.walk.reward import Evidence, Reward, Score, WeightedScore

#: Whose evidence a row holds: of ``all`` terms; of those that ``lost`` points themselves, so that of one that a gate
#: shut off nothing is said; of ``none``. The key is always there.
EvidenceKept = Literal["all", "lost", "none"]
EVIDENCE: Final[tuple[EvidenceKept, ...]] = get_args(EvidenceKept)


class RewardWriter:
    """Writes ``{"id": …, **reward.to_json()}`` as a line of JSON, remembering how common scores look.

    A line is the same text as ``json.dumps`` of that object, but for evidence that is not kept; a test says so.
    """

    _LIMIT: Final = 4096

    def __init__(self, evidence: EvidenceKept = "all") -> None:
        self._evidence = evidence
        self._heads: dict[tuple[object, ...], str] = {}
        self._shared: dict[int, tuple[WeightedScore, str, str]] = {}

    def line(self, row_id: str | int, reward: Reward) -> str:
        """The line, with its line end."""
        parts = []
        shared = self._shared
        for name, weighted in reward.scores.items():
            known = shared.get(id(weighted))  # attempts share full and closed scores, which are most of all
            if known is not None and known[0] is weighted and known[1] == name:
                parts.append(known[2])
            else:
                parts.append(self._written(name, weighted))
        masked = "" if reward.masked is None else f', "masked": {json.dumps(reward.masked)}'
        total = "null" if reward.total is None else repr(float(reward.total))
        shown = quoted(row_id) if type(row_id) is str else json.dumps(row_id)
        scores = ", ".join(parts)
        return f'{{"id": {shown}, "total": {total}, "scores": {{{scores}}}, "stage": "{reward.stage}"{masked}}}\n'

    def _written(self, name: str, weighted: WeightedScore) -> str:
        score = weighted.score
        head = self._head(name, score, weighted.weight)
        if self._evidence == "none" or (self._evidence == "lost" and (weighted.closed or score.full)):
            return head + "[]}"
        evidence = score.evidence
        text = f"{head}[{', '.join([_evidence(each) for each in evidence])}]}}"
        if weighted.closed or not evidence:
            if len(self._shared) >= self._LIMIT:
                self._shared.clear()
            self._shared[id(weighted)] = weighted, name, text
        return text

    def _head(self, name: str, score: Score, weight: float) -> str:
        value, low, high = score.value, score.low, score.high
        # Equal numbers have several texts (1 and 1.0, 0.0 and -0.0): a line must not hang on which one came first.
        kinds = type(value), type(low), type(high), type(weight)
        key = (name, value or repr(value), low or repr(low), high or repr(high), weight or repr(weight), kinds)
        head = self._heads.get(key)
        if head is None:
            if len(self._heads) >= self._LIMIT:
                self._heads.clear()
            shown = {"value": value, "low": low, "high": high, "weight": weight}
            head = self._heads[key] = f'{json.dumps(name)}: {json.dumps(shown)[:-1]}, "evidence": '
        return head


def _evidence(evidence: Evidence) -> str:
    """What ``json.dumps`` makes of a piece of evidence, in a third of the time."""
    call, path, expected, found = evidence.call, evidence.path, evidence.expected, evidence.found
    try:
        text = f'{{"code": {quoted(evidence.code)}, "reason": {quoted(evidence.reason)}'
        if call is not None:
            text += f', "call": {call if type(call) is int else json.dumps(call)}'
        if path:
            text += f', "path": {quoted(path)}'
        if expected:
            text += f', "expected": {quoted(expected)}'
        if found:
            text += f', "found": {quoted(found)}'
    except TypeError:  # a component says something else than text where text belongs
        return json.dumps(evidence_json(evidence))
    return text + "}"
