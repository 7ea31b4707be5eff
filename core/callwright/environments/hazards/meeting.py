"""Sessions that meet hazards: what a session is asked about them."""

from __future__ import annotations

from callwright.environments.calling import OneThread
from callwright.environments.hazards.exposure import Exposure
from callwright.environments.hazards.policy import Hazards


class MeetingHazards(OneThread):
    """What a session over a world knows of hazards. A class with it begins with ``_exposure = None``."""

    __slots__ = ("_exposure",)
    _exposure: Exposure | None

    @property
    def hazards(self) -> Hazards | None:
        """Those that hold; ``None``: there are none."""
        return None if self._exposure is None else self._exposure.hazards

    def meet_hazards(self, hazards: Hazards | None) -> None:
        """Let calls meet these hazards from now on, as in a session that begins; ``None`` are none."""
        self._exposure = Exposure(hazards) if hazards else None

    def next_turn(self) -> None:
        """The model has another turn: where time stands still, limits of rates begin anew."""
        if self._exposure is not None:
            self._exposure.next_turn()
