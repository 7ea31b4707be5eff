"""Idempotency keys: a request that is sent twice is done once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, TypeVar

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.payments.rows import IdempotencyKey
from callwright_plugins.mcp_environments.times import DAY, iso

T = TypeVar("T")
REMEMBERED: Final = DAY


def once(world: World, key: str, request: list[Any], do: Callable[[], T]) -> T:
    """Do it, unless the same request was done under this key in the last day: then give that answer again.

    Another request under the key fails with ``DUPLICATE_IDEMPOTENCY_KEY``. Requests without a key are always done.
    """
    if not key:
        return do()
    text = json.dumps(request, sort_keys=True)
    known = world.get(IdempotencyKey, key)
    if known is not None and world.now < known.created_at + REMEMBERED:
        if known.request != text:
            raise ToolError(
                "DUPLICATE_IDEMPOTENCY_KEY",
                f"the key {key!r} was used at {iso(known.created_at)} for another request; use a new key",
            )
        answer: T = json.loads(known.answer)
        return answer
    made = do()
    world.put(IdempotencyKey(key, text, json.dumps(made), world.now))
    return made
