"""The multi-turn categories over the stand-in wheel, registered like any plugin, for commands."""

from __future__ import annotations

import stand_in_wheel

import callwright as cw
from callwright_plugins.bfcl.multi_turn import package as pinning
from callwright_plugins.bfcl.multi_turn.benchmark import BfclMultiTurn


class StandIn(BfclMultiTurn):
    """Five entries over three classes."""

    def __init__(self, data: str, package: str, version: str | None = None) -> None:
        pinning.RELEASES = stand_in_wheel.pinned()  # type: ignore[misc]
        super().__init__(version, data, package)


@cw.hookimpl
def callwright_benchmarks() -> list[cw.Lazy]:
    return [cw.Lazy("stand-in-multi-turn", StandIn, "five entries over three classes")]
