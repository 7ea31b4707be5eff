"""Verdicts: what a judge replied, read strictly, and several of them taken together."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from attrs import frozen

from callwright.language.parser import ParseFailure
from callwright.language.shortening import shortened
from callwright.language.strict_json import Duplicated, decode
from callwright_plugins.judge.rubric import Rubric

Pooling = Literal["median", "majority", "mean"]
POOLINGS: Final = ("median", "majority", "mean")
#: A reply of more characters is read no further: verdicts are short.
_LONGEST: Final = 200_000
#: Characters of a reason that are kept.
_REASON: Final = 400
_FENCE: Final = re.compile(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)
_NESTING: Final = 8


@frozen
class Verdict:
    """A whole number for each criterion, with its reason."""

    points: Mapping[str, int]
    reasons: Mapping[str, str]


@frozen
class NoVerdict:
    """A reply that is none, and why."""

    reason: str


def read_verdict(text: str, rubric: Rubric, word: str) -> Verdict | NoVerdict:
    """The verdict of a reply that is one JSON object, alone or in a fence, or holds exactly one with the right word.

    Nothing is guessed: a missing criterion, an unknown one, a score off the scale, a key twice or two verdicts make it
    none. Total on ``str``, and linear in its length.
    """
    if len(text) > _LONGEST:
        return NoVerdict(f"the reply has {len(text):,} characters")
    whole = _FENCE.match(text)
    alone = (whole[1] if whole else text).strip()
    if alone.startswith("{"):
        found = _read(alone, rubric, word)
        if isinstance(found, Verdict):
            return found
    else:
        found = NoVerdict("the reply is no JSON object")
    # A judge that says more than it was asked for: its verdict holds the word, and nothing that it repeats does.
    starts = [match.start() for match in re.finditer(rf'\{{\s*"word"\s*:\s*"{re.escape(word)}"', text)]
    if len(starts) > 8:
        return NoVerdict(f"the reply holds {len(starts)} verdicts")
    verdicts = [
        read for read in (_read(_object(text, start), rubric, word) for start in starts) if isinstance(read, Verdict)
    ]
    if len(verdicts) == 1:
        return verdicts[0]
    return NoVerdict(f"the reply holds {len(verdicts)} verdicts") if verdicts else found


def _object(text: str, start: int) -> str:
    """The text from an opening brace to the one that closes it; braces in strings are none."""
    depth = 0
    for token in re.finditer(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[{}]', text[start:], re.DOTALL):
        depth += {"{": 1, "}": -1}.get(token[0], 0)
        if depth == 0:
            return text[start : start + token.end()]
    return text[start:]


def _read(text: str, rubric: Rubric, word: str) -> Verdict | NoVerdict:
    tree = decode(text, 0, _NESTING)
    if isinstance(tree, ParseFailure):
        return NoVerdict(f"the reply is no JSON: {tree.message}")
    if isinstance(tree, Duplicated):
        return NoVerdict(f"the verdict has the key {shortened(tree.key, 40)!r} twice")
    match tree:
        case {"word": str(given), "criteria": dict(rows)} if len(tree) == 2:
            if given != word:
                return NoVerdict("the verdict has another word than this case")
        case _:
            return NoVerdict("the reply is no object of 'word' and 'criteria'")
    low, high = rubric.scale
    points: dict[str, int] = {}
    reasons: dict[str, str] = {}
    for criterion in rubric.criteria:
        row: Any = rows.get(criterion.name)
        match row:
            case {"reason": str(reason), "score": int(score)} if len(row) == 2 and type(score) is int:
                if not low <= score <= high:
                    return NoVerdict(f"the score {shortened(str(score), 20)} of {criterion.name!r} is off the scale")
                points[criterion.name] = score
                reasons[criterion.name] = shortened(" ".join(reason.split()), _REASON)
            case None:
                return NoVerdict(f"the verdict lacks the criterion {criterion.name!r}")
            case _:
                return NoVerdict(f"the criterion {criterion.name!r} is no object of 'reason' and 'score'")
    if len(rows) > len(points):
        extra = next(str(name) for name in rows if name not in points)
        return NoVerdict(f"the verdict has a criterion {shortened(extra, 40)!r} that the rubric has not")
    return Verdict(points, reasons)


@frozen
class Pooled:
    """Several verdicts as one.

    ``votes`` are all points by criterion, in the order of the votes.
    """

    points: Mapping[str, float]
    reasons: Mapping[str, str]
    votes: Mapping[str, Sequence[int]]

    @property
    def spread(self) -> dict[str, int]:
        """Criteria on which the votes differ, with the distance of the lowest from the highest."""
        found = {name: max(points) - min(points) for name, points in self.votes.items()}
        return {name: distance for name, distance in found.items() if distance}


def pool(verdicts: Sequence[Verdict], pooling: Pooling = "median") -> Pooled:
    """One or more verdicts as one, criterion by criterion; the order of the votes plays no part in the points.

    ``median`` of an even number is the mean of the two in the middle. ``majority`` is the commonest number, and among
    equally common ones the smallest: a judge in doubt gives no more. The reason is that of the vote nearest to the
    result, the first of those.
    """
    names = list(verdicts[0].points)
    votes = {name: [verdict.points[name] for verdict in verdicts] for name in names}
    points = {name: _pooled(given, pooling) for name, given in votes.items()}
    reasons = {}
    for name in names:
        nearest = min(range(len(verdicts)), key=lambda index: (abs(votes[name][index] - points[name]), index))
        reasons[name] = verdicts[nearest].reasons[name]
    return Pooled(points, reasons, votes)


def _pooled(votes: Sequence[int], pooling: Pooling) -> float:
    if pooling == "median":
        return float(statistics.median(votes))
    if pooling == "mean":
        return statistics.fmean(votes)
    counted = Counter(votes)
    most = max(counted.values())
    return float(min(points for points, count in counted.items() if count == most))
