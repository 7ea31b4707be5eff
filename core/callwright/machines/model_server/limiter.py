"""One limiter for a whole command: requests and tokens a minute, over all connections, retries and worker processes.

The generic cell rate algorithm (ITU-T I.371): the state is the time at which everything taken so far is paid for at the
given rate, so that two numbers in a file are all that processes share. There is no allowance of a whole minute to burst
with: after a pause as before it, requests begin one interval apart.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from callwright.machines.command_folder import SharedNumbers

_MINUTE: Final = 60.0
#: Seconds that requests may begin early, to make up for wake-ups that came late. In any minute these are at most 2%
#: more requests than the limit; a slow limit, of which one more request is a larger part, has none.
_EARLY: Final = 0.2
_SLOW: Final = 60.0
#: Seconds after which a limit is looked at again: what others used may turn out to be less than they expected.
_LOOK: Final = 0.5
_REQUESTS, _TOKENS = range(2)


class Limiter:
    """Requests and tokens a minute of a server. ``clock`` gives seconds, the same in all processes.

    In any minute at most 2% more requests begin than ``requests``; the tokens that begin pass ``tokens`` by no more
    than one request has, and by what servers count in addition to what was expected.
    """

    def __init__(
        self,
        shared: SharedNumbers,
        requests: float | None = None,
        tokens: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._shared, self._clock = shared, clock
        self._request = _MINUTE / requests if requests else 0.0
        self._token = _MINUTE / tokens if tokens else 0.0
        self._early = _EARLY if requests and requests >= _SLOW else 0.0
        self._turn = asyncio.Lock()

    def take(self, tokens: int) -> float:
        """Begin a request if it may begin now: 0. Else the seconds until it may, and nothing is taken."""
        with self._shared.locked() as paid:
            now = self._clock()
            wait = max(paid[_REQUESTS] - self._early - now, paid[_TOKENS] - now)
            if wait > 0:
                return wait
            paid[_REQUESTS] = max(paid[_REQUESTS], now) + self._request
            paid[_TOKENS] = max(paid[_TOKENS], now) + tokens * self._token
        return 0.0

    def correct(self, difference: int) -> None:
        """So many tokens more than expected were used, or fewer."""
        if self._token and difference:
            with self._shared.locked() as paid:
                paid[_TOKENS] += difference * self._token

    async def taken(self, tokens: int) -> None:
        """Wait until a request may begin. Those of one connection begin in the order in which they came."""
        async with self._turn:
            while (wait := self.take(tokens)) > 0:
                await asyncio.sleep(min(wait, _LOOK))
