"""What servers were asked and what it cost, read from their answers in whatever dialect they count."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import asdict, define, frozen

#: Characters that are counted as a token where a limit of tokens needs an estimate before the server has counted.
_CHARACTERS: Final = 4
#: Tokens that a template may add to a prompt beyond its bytes (instructions for tools, special tokens).
_TEMPLATE: Final = 512
#: Under which names a request bounds the tokens of its answer.
_LIMITS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")


@define
class Usage:
    """What a server was asked and what that cost. ``cost`` is in the currency of the prices; 0 without prices.

    Every HTTP request is counted once, in ``requests`` or, when it repeats one, in ``retries``. ``failed`` requests
    had no answer after all retries, ``refused`` ones an answer that refuses this one sample (context, content).
    ``cached_tokens`` are among the prompt tokens and ``reasoning_tokens`` among the completion tokens.
    """

    requests: int = 0
    retries: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    refused: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def to_json(self) -> dict[str, float]:
        """The figures by name."""
        return {**asdict(self), "cost": round(self.cost, 9)}

    def add(self, figures: Usage | Mapping[str, float]) -> None:
        """Add what was counted elsewhere: in another process, or in one answer."""
        for name, value in (asdict(figures) if isinstance(figures, Usage) else figures).items():
            if hasattr(self, name):  # figures of a later version are not ours to add
                setattr(self, name, getattr(self, name) + value)


def usage_of(answer: Mapping[str, Any], prices: Sequence[float] = ()) -> Usage:
    """What one answer counts, and its cost; ``requests`` is 1.

    ``prices``: per million prompt and completion tokens, and cached prompt tokens (else those cost like others).
    Reads the usage of chat completions (also with ``prompt_cache_hit_tokens`` of DeepSeek and top-level
    ``cached_tokens`` and ``reasoning_tokens``), of the Responses API, and Anthropic's own. Total: what is no number
    counts 0.
    """
    counted = answer.get("usage")
    if not isinstance(counted, Mapping):
        return Usage(requests=1)
    inside, outside = _details(counted, "prompt", "input"), _details(counted, "completion", "output")
    read = _whole(counted.get("cache_read_input_tokens"))
    if "prompt_tokens" in counted or "completion_tokens" in counted:
        prompt, completion = _whole(counted.get("prompt_tokens")), _whole(counted.get("completion_tokens"))
    else:
        prompt, completion = _whole(counted.get("input_tokens")), _whole(counted.get("output_tokens"))
        # Anthropic counts what was read from and written to its cache beside the input.
        prompt += read + _whole(counted.get("cache_creation_input_tokens"))
    cached = max(
        _whole(inside.get("cached_tokens")),
        _whole(counted.get("prompt_cache_hit_tokens")),
        _whole(counted.get("cached_tokens")),
        read,
    )
    found = Usage(
        requests=1,
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=min(cached, prompt),
        reasoning_tokens=max(_whole(outside.get("reasoning_tokens")), _whole(counted.get("reasoning_tokens"))),
    )
    found.cost = cost_of(found.prompt_tokens, found.completion_tokens, found.cached_tokens, prices)
    return found


def cost_of(prompt: int, completion: int, cached: int, prices: Sequence[float]) -> float:
    """What so many tokens cost at prices per million; ``cached`` are among ``prompt``."""
    if not prices:
        return 0.0
    of_cached = prices[2] if len(prices) > 2 else prices[0]
    return ((prompt - cached) * prices[0] + cached * of_cached + completion * prices[1]) / 1_000_000


def _details(counted: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        if isinstance(found := counted.get(f"{name}_tokens_details"), Mapping):
            return found
    return {}


def _whole(value: Any) -> int:
    return int(value) if isinstance(value, int | float) and 0 <= value < 2**53 else 0


@frozen
class Expected:
    """The tokens of a request before it is sent: as estimated (``prompt``), and at the very most (``most_prompt``).

    ``completion`` is the limit that the request sets for all its choices together; None where it sets none.
    """

    prompt: int
    most_prompt: int
    completion: int | None

    @property
    def tokens(self) -> int:
        """What a limit of tokens counts until the server has counted."""
        return self.prompt + (self.completion or 0)


def expected(body: Mapping[str, Any]) -> Expected:
    """What a request may use. A token is no shorter than a byte, so that the bytes of a prompt bound its tokens."""
    prompt = body.get("prompt")
    if isinstance(prompt, Sequence) and prompt and isinstance(prompt[0], int):
        estimated = most = len(prompt)
    else:
        said = {name: body[name] for name in _SAID if body.get(name)}
        most = len(json.dumps(said, ensure_ascii=False, default=str).encode("utf-8", "replace")) + _TEMPLATE
        estimated = sum(len(text) for text in _texts(said)) // _CHARACTERS
    limits = [limit for name in _LIMITS if isinstance(limit := body.get(name), int)]
    copies = body.get("n") or 1
    return Expected(estimated, most, max(limits) * int(copies) if limits else None)


#: The fields of a request that become its prompt, whatever the endpoint.
_SAID: Final = ("messages", "prompt", "input", "instructions", "tools", "functions", "response_format", "text")


def _texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one
