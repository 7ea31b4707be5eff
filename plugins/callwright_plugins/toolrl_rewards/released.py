"""What ToolRL's released scorer computes, from facts measured on its scores; ``docs/toolrl-and-prove.md`` lists them.

It reads the text of the completion itself, whatever form the attempt is in. Any defect of the predicted block loses all
of the correctness; equality is Python's (``True == 1``); names are compared as multisets of all calls.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar, Final, Literal

from callwright.walk.attempt import Attempt
from callwright.walk.reward import Evidence, RewardComponent, Score
from callwright_plugins.toolrl_rewards.assignment import assign
from callwright_plugins.toolrl_rewards.differences import RawCall, explain_calls
from callwright_plugins.toolrl_rewards.lazy_score import LazyScore
from callwright_plugins.toolrl_rewards.released_text import (
    CLOSE,
    OPEN,
    THINK,
    THINK_END,
    TRUTHS,
    Truth,
    answer_of,
    body_of,
    well_formed,
)
from callwright_plugins.toolrl_rewards.scales import Scale, Target

Granularity = Literal["default", "refined", "intermediate", "intermediate_refined", "coarse"]
#: What loading and comparing model text of the wrong shape raises; the released code catches everything.
_DEFECTS: Final = (ValueError, KeyError, TypeError, AttributeError, RecursionError)


class ReleasedFormat(RewardComponent):
    """The released format reward: the high or the low end of its scale."""

    name: ClassVar[str] = "format"
    stage: ClassVar[str] = "format"

    def __init__(self, scale: Scale) -> None:
        self.scale = scale
        self.low, self.high = scale.low, scale.high

    def score(self, attempt: Attempt) -> Score:
        low, high = self.scale.at(attempt.progress)
        truth = TRUTHS.of(attempt.task)
        if well_formed(truth.kind, answer_of(attempt.completion.text)):
            return Score(high, low, high)
        return LazyScore(low, low, high, _explain_format, truth.kind)


def _explain_format(kind: str) -> tuple[Evidence, ...]:
    blocks = {"calls": "<tool_call>", "response": "<response>", "both": "<tool_call>, <response>", "thought": "nothing"}
    reason = (
        f"the completion is not <think> … </think>, then {blocks[kind]}, one line break between blocks, each tag once"
    )
    return (Evidence("format", reason, expected=kind),)


class ReleasedCorrectness(RewardComponent):
    """The released correctness reward; ``matching``, ``pairs`` and ``names`` exchange one of its choices each.

    ``greedy`` takes for each true call, in order, the best unused call; ``optimal`` the best assignment of all. Pairs
    share a name, or are ``any``. Names are compared as a ``multiset``, or as a ``set``.
    """

    name: ClassVar[str] = "correctness"
    stage: ClassVar[str] = "answer"

    def __init__(
        self,
        scale: Scale,
        granularity: Granularity = "default",
        matching: Literal["greedy", "optimal"] = "greedy",
        pairs: Literal["same-name", "any"] = "same-name",
        names: Literal["multiset", "set"] = "multiset",
    ) -> None:
        self.scale, self.granularity = scale, granularity
        self.low, self.high = scale.low, scale.high
        self._refined = granularity in ("refined", "intermediate_refined")
        self._intermediate = granularity in ("intermediate", "intermediate_refined")
        self._plain = granularity == "default" and matching == "greedy" and pairs == "same-name" and names == "multiset"
        self._matching, self._any, self._set = matching, pairs == "any", names == "set"

    def score(self, attempt: Attempt) -> Score:
        """On the scale of the step; 0 in ``[0, 0]`` where the ground truth calls nothing, whatever was predicted."""
        truth = TRUTHS.of(attempt.task)
        if truth.calls is None:
            return _NOTHING_DUE
        low, high = self.scale.at(attempt.progress)
        text = answer_of(attempt.completion.text)
        if OPEN not in text or CLOSE not in text:
            return LazyScore(low, low, high, _explain_defect, "there is no <tool_call> … </tool_call>")
        body = body_of(text)
        if body == truth.body:
            return Score(high, low, high)
        try:
            predicted = [truth.lines.get(line) or json.loads(line) for line in body.split("\n")]
            if predicted == truth.calls:
                return Score(high, low, high)
            share = self._share(truth, predicted)
        except _DEFECTS as error:
            reason = (
                f"the block of calls cannot be read, so all of it is lost: {type(error).__name__}: {str(error)[:80]}"
            )
            return LazyScore(low, low, high, _explain_defect, reason)
        value = (high - low) * share + low
        if value >= high:
            return Score(high, low, high)
        return LazyScore(value, low, high, _explain_calls, truth.calls, predicted)

    def _share(self, truth: Truth, predicted: list[Any]) -> float:
        """R / S, in [0, 1]."""
        if self._plain:
            return _default_share(truth, predicted)
        assert truth.calls is not None
        if self.granularity == "coarse":
            return 0.0
        called = [call["name"] for call in predicted]
        if self._set:
            here, there = set(truth.names), set(called)
            earned = len(here & there) / len(here | there)
        else:
            earned = self._alike(truth.names, called)
        if self._matching == "greedy":
            earned += self._greedy(truth.calls, predicted)
        else:
            weights = [[self._pair(mine, theirs) for theirs in predicted] for mine in truth.calls]
            earned += sum(row[column] for row, column in zip(weights, assign(weights), strict=True) if column >= 0)
        return earned / (truth.most_intermediate if self._intermediate else truth.most)

    def _greedy(self, calls: list[dict[str, Any]], predicted: list[Any]) -> float:
        earned = 0.0
        used: set[int] = set()
        for mine in calls:
            best, at = 0.0, -1
            for index, theirs in enumerate(predicted):
                if index not in used:
                    weight = self._pair(mine, theirs)
                    if weight > best:
                        best, at = weight, index
            if at >= 0:
                used.add(at)
                earned += best
        return earned

    def _pair(self, mine: dict[str, Any], theirs: Any) -> float:
        if self._intermediate:
            return 1.0 if mine == theirs else 0.0
        if not self._any and theirs["name"] != mine["name"]:
            return 0.0
        wanted, given = mine["parameters"], theirs["parameters"]
        alike = self._alike(list(wanted), list(given.keys()))
        return alike + sum(1 for key, value in wanted.items() if key in given and given[key] == value)

    def _alike(self, mine: Sequence[Any], theirs: Sequence[Any]) -> float:
        if mine == theirs:
            return 1.0
        return 0.0 if self._refined else _overlap(mine, theirs)


def _default_share(truth: Truth, predicted: list[Any]) -> float:
    """The released default, with the loops that it needs and no others."""
    called = [call["name"] for call in predicted]
    earned = 1.0 if called == truth.names else _overlap(truth.names, called)
    unused = list(range(len(called)))
    for mine in truth.calls or ():
        name, wanted = mine["name"], mine["parameters"]
        best, at = 0.0, -1
        for index in unused:
            if called[index] == name:
                given = predicted[index]["parameters"]
                if given.keys() == wanted.keys():
                    weight = 1.0
                else:
                    both = len(given.keys() & wanted.keys())
                    weight = both / (len(given) + len(wanted) - both)
                for key, value in wanted.items():
                    if key in given and given[key] == value:
                        weight += 1.0
                if weight > best:
                    best, at = weight, index
        if at >= 0:
            unused.remove(at)
            earned += best
    return earned / truth.most


def _overlap(mine: Sequence[Any], theirs: Sequence[Any]) -> float:
    """Jaccard index of two multisets; 0 if one of them is empty."""
    if not mine or not theirs:
        return 0.0
    if len(mine) == 1:  # the usual case: one true call
        both = 1 if mine[0] in theirs else 0
        if any(type(other) not in (str, int, float, bool, type(None)) for other in theirs):
            raise TypeError("unhashable name")
    else:
        both = sum((Counter(mine) & Counter(theirs)).values())
    return both / (len(mine) + len(theirs) - both)


class ReleasedLength(RewardComponent):
    """The released length reward in [0, 1]: words of the last thought over the target, rounded to two decimals."""

    name: ClassVar[str] = "length"

    def __init__(self, target: Target) -> None:
        self.target = target

    def score(self, attempt: Attempt) -> Score:
        """At most 1; 0 without a closed thought."""
        text = answer_of(attempt.completion.text)
        words = 0
        if THINK in text and THINK_END in text:
            words = len(text.split(THINK)[-1].split(THINK_END)[0].split())
        target = self.target.at(attempt.progress)
        value = min(1.0, round(words / target, 2))
        return Score(1.0) if value >= 1.0 else LazyScore(value, 0.0, 1.0, explain_length, words, target)


def explain_length(words: int, target: float) -> tuple[Evidence, ...]:
    """Why a length reward is not full."""
    return (
        Evidence("short_thought", f"the thought has {words} words, {target:g} are asked for", found=f"{words} words"),
    )


_NOTHING_DUE: Final = Score(0.0, 0.0, 0.0)


def _explain_defect(reason: str) -> tuple[Evidence, ...]:
    return (Evidence("unreadable_calls", reason),)


def _explain_calls(calls: list[dict[str, Any]], predicted: list[Any]) -> tuple[Evidence, ...]:
    mine = [RawCall(call["name"], call["parameters"]) for call in calls]
    theirs = []
    for call in predicted:  # a coarse or intermediate score does not look into every call
        parts = call if type(call) is dict else {}
        parameters = parts.get("parameters")
        theirs.append(RawCall(str(parts.get("name", "")), parameters if type(parameters) is dict else {}))
    found = explain_calls(mine, theirs, equal=lambda a, b: bool(a == b))
    return found or (Evidence("order", "the calls are right, but the released scorer also compares their order"),)
