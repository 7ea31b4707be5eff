"""``torch``, imported when something of it is first used.

Options are read, shown and checked by ``--dry-run`` and ``plugins show`` without it: importing it takes seconds, and it
need not be installed there.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class _Torch:
    def __getattr__(self, name: str) -> Any:
        found = getattr(importlib.import_module("torch"), name)
        setattr(self, name, found)  # the next time it is simply there
        return found


torch: Final = _Torch()


def without_gradient(function: Callable[P, T]) -> Callable[P, T]:
    """As ``torch.no_grad()``, which would be there as soon as the function is."""

    @functools.wraps(function)
    def called(*given: P.args, **named: P.kwargs) -> T:
        with torch.no_grad():
            return function(*given, **named)

    return called
