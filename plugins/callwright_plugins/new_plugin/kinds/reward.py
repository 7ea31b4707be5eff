"""The reward ``zebra``: the share of calls that repeat none before them, and a recipe that adds it to TIER.

A component is pure and total: whatever a model wrote, ``score`` returns a score and raises nothing.
"""

from __future__ import annotations

import json

import callwright as cw
from callwright.language.program import plain


class Zebra(cw.RewardComponent):
    """1 for a program in which no call is made twice; a program without calls repeats none."""

    name = "zebra"
    stage = "parse"

    def score(self, attempt: cw.Attempt) -> cw.Score:
        """A value in [0, 1], with evidence for every point that is lost."""
        if attempt.program is None:
            return cw.Score(0.0, evidence=(cw.Evidence("no_program", "there is no program to look at"),))
        seen: set[str] = set()
        repeated = []
        for call in attempt.program.calls:
            key = json.dumps([call.tool, plain(call.arguments)], sort_keys=True)
            if key in seen:
                repeated.append(cw.Evidence("repeated", f"call {call.id} {call.tool} was made before", call=call.id))
            seen.add(key)
        count = len(attempt.program.calls)
        return cw.Score(1 - len(repeated) / count if count else 1.0, evidence=tuple(repeated))


def tier_zebra(registry: cw.Registry) -> cw.RewardRecipe:
    """TIER's terms, and this one with weight 1. ``registry`` is handed in by the registry that makes the recipe."""
    tier = registry.create("reward recipe", "tier")
    own = cw.Term(registry.create("reward component", "zebra"), requires=("format",))
    recipe: cw.RewardRecipe = tier.with_terms(own, name="tier-zebra")
    return recipe
