"""Rows of ``rollouts.jsonl``: which rollouts of a step are written, and what is kept of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from callwright.language.program import plain
from callwright.language.shortening import shortened
from callwright.walk.trace import observations

if TYPE_CHECKING:
    import random

    from callwright.episodes.finished import FinishedEpisode
    from callwright.training.verdicts import Verdict
    from callwright.walk.attempt import Attempt
    from callwright.walk.reward import Reward

#: Characters that are kept of a value that JSON cannot hold.
_LONGEST: Final = 200


@frozen
class Keeping:
    """How much of a step is written.

    ``per_step`` rollouts are drawn; of step 1 and every ``whole_step_every``-th all of them are written, so that
    groups can be looked at as an algorithm saw them (0: of none). A value that a call returned is written if its JSON
    has at most ``value_characters`` characters, else its size. With ``logprobs`` each sampled token stands beside its
    log-probability (nats).
    """

    per_step: int = 4
    whole_step_every: int = 0
    value_characters: int = 2000
    logprobs: bool = False

    def places(self, step: int, groups: Sequence[int], rng: random.Random) -> list[tuple[int, int]]:
        """Group and sample of those that are written of ``step`` (from 1), in order.

        ``groups`` are the sizes of the groups.
        """
        places = [(group, sample) for group, size in enumerate(groups) for sample in range(size)]
        if self.whole_step_every and (step == 1 or step % self.whole_step_every == 0):
            return places
        return sorted(rng.sample(places, min(self.per_step, len(places))))

    def row(
        self,
        attempt: Attempt,
        episode: FinishedEpisode,
        reward: Reward,
        verdict: Verdict,
        *,
        step: int,
        place: tuple[int, int],
        advantage: float,
        prompt: str,
        truncated: bool,
        text: Callable[[Sequence[int]], str],
    ) -> dict[str, Any]:
        """The row of a rollout of ``step`` (from 1). ``text`` writes ids as they were read by the model."""
        task = attempt.task
        return {
            "step": step,
            "task": task.id,
            "group": f"{step}-{place[0]}",
            "sample": place[1],
            "depth": task.depth,
            "structure": task.structure,
            "query": task.query,
            "prompt": prompt,
            "completion": attempt.completion.text,
            "truncated": truncated,
            "advantage": round(advantage, 6),
            "answered": verdict.answer,
            "failure": verdict.failure,
            "thought_words": verdict.thought_words,
            **reward.to_json(),
            "observations": observations(attempt.trace),
            "trace": list(calls_of(attempt, self.value_characters)),
            **turns_of(episode, text),
            **({"tokens": list(tokens_of(episode, text))} if self.logprobs else {}),
        }


def calls_of(attempt: Attempt, longest: int | None = None) -> Iterator[dict[str, Any]]:
    """Every call that ran, in the order of writing, with its arguments, its outcome and its value.

    In place of a value whose JSON is longer than ``longest`` characters its ``size`` is told.
    """
    place, grouped = 0, attempt.task.user is not None or bool(attempt.said)
    for number, turn in enumerate(attempt.turns):
        user_turn, place = place, place + (not turn.calls)
        if turn.trace is None:
            continue
        for record in turn.trace.records:
            outcome = record.outcome
            step = {"turn": number, "call": record.call, "tool": record.tool, "arguments": jsonable(record.arguments)}
            step |= {"user_turn": user_turn} if grouped else {}
            step["kind"] = outcome.kind
            if outcome.value is not None:
                value = jsonable(outcome.value)
                size = 0 if longest is None else len(json.dumps(value, ensure_ascii=False))
                step |= {"value": value} if longest is None or size <= longest else {"size": size}
            if outcome.code or outcome.message:
                step |= {"code": jsonable(outcome.code), "message": jsonable(outcome.message)}
            yield step


def turns_of(episode: FinishedEpisode, text: Callable[[Sequence[int]], str]) -> dict[str, Any]:
    """What only an episode of several turns has: why it stopped, and each turn with what the model read next."""
    if episode.conditions.limits.single:
        return {}
    response, ranges = episode.response_ids, episode.ranges
    following = [*(start for start, _ in ranges[1:]), len(response)][: len(ranges)]  # none before the first completion
    turns = [
        {
            "completion": turn.completion.text,
            "calls": len(turn.calls),
            "tokens": end - start,
            "observation": text(response[end:after]),
            **({} if turn.user is None else {"user": turn.user.to_json()}),
        }
        for turn, (start, end), after in zip(episode.attempt.turns, ranges, following, strict=True)
    ]
    return {"stop": episode.stop, "turns": turns}


def tokens_of(episode: FinishedEpisode, text: Callable[[Sequence[int]], str]) -> Iterator[list[Any]]:
    """Each token of a response as ``[text, log-probability]``; ``None`` in the place of the latter: it has no loss."""
    mask, logprobs = episode.mask, episode.logprobs
    for place, token in enumerate(episode.response_ids):
        known = bool(mask[place]) and bool(logprobs)
        yield [text((token,)), round(logprobs[place], 4) if known else None]


def jsonable(value: Any) -> Any:
    """A value as JSON; where it is none (NaN, half of a surrogate pair, an object), an object that says so."""
    try:
        made = plain(value)
        json.dumps(made, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError, UnicodeError) as error:
        try:
            shown = shortened(ascii(value), _LONGEST)
        except Exception:  # whatever a foreign object does when it is shown
            shown = type(value).__name__
        return {"not_json": shown, "why": type(error).__name__}
    return made
