"""A budget that is never passed: what requests may cost at most is set aside before they are sent."""

from __future__ import annotations

import asyncio
import itertools
import time
from pathlib import Path
from typing import Final

from callwright.errors import RunError
from callwright.machines.command_folder import SharedNumbers, is_first, name_folder

_SPENT, _RESERVED, _UNDER_WAY, _CHANGED, _OVER = range(5)
#: Seconds between looks at what others have settled.
_LOOK: Final = 0.05
_number = itertools.count()


class BudgetSpent(RunError):
    """The next request might pass the budget. What was paid for is kept; with a higher budget the work goes on."""


class Budget:
    """At most ``most`` is spent, by all processes of a command together.

    ``key`` tells budgets apart. In the process of the command each budget is a new one; its workers take part in the
    latest of that key. A request that was sent and whose answer was lost may have been paid for: it stays counted at
    its worst case, and so do those of a worker that was killed. ``patience``: after so many seconds in which nothing
    was settled, those under way are given up.
    """

    def __init__(self, key: str, most: float, patience: float) -> None:
        self.most, self._patience = most, patience
        folder = Path(name_folder())
        if is_first():
            name = f"{key}-{next(_number):06}.budget"
        else:
            name = max((path.name for path in folder.glob(f"{key}-*.budget")), default=f"{key}-000000.budget")
        self._shared = SharedNumbers(name, 5)
        with self._shared.locked():  # so that workers find it
            pass

    @property
    def spent(self) -> float:
        """What was spent so far, with what may have been paid for."""
        with self._shared.locked() as numbers:
            return numbers[_SPENT]

    async def reserve(self, cost: float) -> None:
        """Set aside what a request may cost at most.

        Where that does not fit beside those under way, wait for them: they mostly cost less. Raises
        :class:`BudgetSpent` if it does not fit then either, and for all requests after that one.
        """
        while not self._reserved(cost):
            await asyncio.sleep(_LOOK)

    def _reserved(self, cost: float) -> bool:
        with self._shared.locked() as numbers:
            now = time.monotonic()
            if not numbers[_OVER] and numbers[_SPENT] + numbers[_RESERVED] + cost <= self.most:
                numbers[_RESERVED] += cost
                numbers[_UNDER_WAY] += 1
                numbers[_CHANGED] = now
                return True
            waiting = numbers[_UNDER_WAY] > 0 and now - numbers[_CHANGED] < self._patience
            if waiting and not numbers[_OVER]:
                return False
            numbers[_OVER] = 1
            spent = numbers[_SPENT] + (0.0 if waiting else numbers[_RESERVED])
        raise BudgetSpent(
            f"the budget of {self.most:g} is spent: {spent:.6g} so far, and the next request may cost up to "
            f"{cost:.6g}. Nothing that was paid for is lost; to go on, give the same command a higher budget (max_cost)"
        )

    def settle(self, reserved: float, cost: float) -> None:
        """A request is over, for which so much was set aside and which cost so much."""
        with self._shared.locked() as numbers:
            numbers[_SPENT] += cost
            numbers[_UNDER_WAY] -= 1
            # What is left of sums of fractions must not look like a reservation.
            numbers[_RESERVED] = numbers[_RESERVED] - reserved if numbers[_UNDER_WAY] else 0.0
            numbers[_CHANGED] = time.monotonic()
