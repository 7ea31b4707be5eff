"""Rows to train on, of logs that were scored: the good ones for supervised fine-tuning, pairs for preferences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from callwright.episodes.logs.log import Log
from callwright.walk.reward import Reward

Scored = Sequence[tuple[Log, Reward]]


def sft_rows(logs: Scored, at_least: float | None = None) -> Iterator[dict[str, Any]]:
    """Chat rows of the logs that earn ``at_least`` so much; without it, of those that earn the most that any does.

    A masked log is left out: nothing is known of it.
    """
    totals = [reward.total for _, reward in logs if reward.total is not None]
    least = max(totals, default=0.0) if at_least is None else at_least
    for log, reward in logs:
        if reward.total is not None and reward.total >= least:
            yield {**_chat(log), "reward": reward.total}


def preference_rows(logs: Scored) -> Iterator[dict[str, Any]]:
    """For each query of which logs earned differently a pair: the best and the worst, after what they share.

    Rows are those of TRL's preference data: ``prompt``, ``chosen`` and ``rejected`` are lists of messages. Logs that
    begin with other messages are not compared.
    """
    groups: dict[str, list[tuple[Log, Reward]]] = defaultdict(list)
    for log, reward in logs:
        if reward.total is not None and log.messages:
            head = [message.to_openai() for message in _before(log)]
            groups[repr(head)].append((log, reward))
    for members in groups.values():
        ranked = sorted(members, key=lambda pair: pair[1].total or 0.0)
        (worse, low), (better, high) = ranked[0], ranked[-1]
        if low.total == high.total:
            continue
        count = len(_before(better))
        yield {
            "prompt": [message.to_openai() for message in better.messages[:count]],
            "chosen": [message.to_openai() for message in better.messages[count:]],
            "rejected": [message.to_openai() for message in worse.messages[count:]],
            "chosen_reward": high.total,
            "rejected_reward": low.total,
            "tools": [spec.to_openai() for spec in better.task.tools.values()],
        }


def _before(log: Log) -> Sequence[Any]:
    """The messages before the first of the assistant."""
    count = next((at for at, one in enumerate(log.messages) if one.role == "assistant"), len(log.messages))
    return log.messages[:count]


def _chat(log: Log) -> dict[str, Any]:
    return {
        "id": log.task.id,
        "messages": [message.to_openai() for message in log.messages],
        "tools": [spec.to_openai() for spec in log.task.tools.values()],
    }
