"""The rules of a household's budget, as its model is told them."""

from __future__ import annotations

from typing import Final

from callwright.environments.briefing.policy import Policy, Rule

POLICY: Final = Policy(
    "You keep a household's budget: money by category and month, in cents.",
    (
        Rule("No month, this or a later one, gives away more than it has unallocated.", "INSUFFICIENT_UNALLOCATED"),
        Rule("A category gives away no more of its budget than it has left.", "INSUFFICIENT_BUDGET"),
        Rule("A category with a hard cap takes no expense beyond what it has; give it more first.", "OVER_BUDGET"),
        Rule("Other categories may be overspent, and the call says by how much.", "OVER_BUDGET"),
        Rule("A month is locked ten days after its end: nothing in it changes any more.", "MONTH_LOCKED"),
        Rule("Expenses are not dated in the future; what is to come is a recurring expense.", "FUTURE_DATE"),
        Rule("Budgets are kept for the months of this world only, to a year from now.", "BAD_MONTH"),
        Rule("Archived categories take neither money nor expenses.", "INVALID_STATE"),
        Rule("Expenses are above 0 cents; a correction changes or deletes the expense.", "NEGATIVE_AMOUNT"),
        Rule("No two categories have one name, whatever its case.", "CATEGORY_EXISTS"),
    ),
)
