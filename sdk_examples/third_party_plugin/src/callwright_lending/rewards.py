"""A component, and the recipe that adds it to TIER."""

from __future__ import annotations

import callwright as cw


class LookFirst(cw.RewardComponent):
    """The share of calls which change something that come after a call which only reads; 1 if nothing is changed."""

    name = "look-first"
    stage = "execution"

    def score(self, attempt: cw.Attempt) -> cw.Score:
        """Pure, and total: no text of a model makes it raise."""
        if attempt.program is None:
            return cw.Score(0.0, evidence=(cw.Evidence("no_program", "there is no program to look at"),))
        looked, changes, hasty = False, 0, []
        for call in attempt.program.calls:
            spec = attempt.tools.get(call.tool)
            if spec is None:
                continue  # an unknown tool changes nothing; `names` speaks of it
            looked = looked or spec.read_only
            if not spec.read_only:
                changes += 1
                if not looked:
                    reason = f"call {call.id} {call.tool} changes something that nothing was looked up about"
                    hasty.append(cw.Evidence("changed_first", reason, call=call.id))
        return cw.Score(1 - len(hasty) / changes if changes else 1.0, evidence=tuple(hasty))


def tier_look_first(registry: cw.Registry) -> cw.RewardRecipe:
    """TIER's terms, and this one with weight 1. ``registry`` is handed in by the registry that makes the recipe."""
    tier = registry.create("reward recipe", "tier")
    extra = cw.Term(registry.create("reward component", "look-first"), requires=("format",))
    recipe: cw.RewardRecipe = tier.with_terms(extra, name="tier-look-first")
    return recipe
