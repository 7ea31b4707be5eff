"""The rules of a map service, as its model is told them."""

from __future__ import annotations

from typing import Final

from callwright.environments.briefing.policy import Policy, Rule

POLICY: Final = Policy(
    "You find places and ways for one person; home and the saved places are theirs.",
    (
        Rule(
            "An address that fits several houses is not decided for the person: the candidates are shown.",
            "AMBIGUOUS",
        ),
        Rule("An address that is not on the map is not made up.", "ADDRESS_NOT_FOUND"),
        Rule("The map knows its own cells only; coordinates outside of them have no answer.", "OUT_OF_COVERAGE"),
        Rule("A location is home, the id of a place or a saved place, or latitude,longitude.", "BAD_LOCATION"),
        Rule("Where no way leads in a mode, there is no route; another mode may have one.", "NO_ROUTE"),
        Rule("Arrivals are estimated for departures from now on.", "PAST_TIME"),
        Rule("A matrix has at most 100 pairs.", "MATRIX_TOO_LARGE"),
        Rule("No two saved places have one label.", "LABEL_TAKEN"),
        Rule("The saved place that is home stays until home is another one.", "IN_USE"),
    ),
)
