"""The alarm: says in words when a policy collapses into safe calls.

Under rewards that pay for any program that executes, a weak policy may find that one harmless call is worth more than
an honest attempt at several. The reward then rises while the answers do not, and a curve of the reward hides it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from callwright.walk.undeclared import alarm_of

#: Executions count as succeeding above this share. A collapse seen in practice stayed at 0.5 to 0.65 for 50 steps; in
#: healthy runs programs keep 0.84 and more of the calls that are due, whatever share executes.
EXECUTED: Final = 0.5
#: Programs are short if they have less than this share of the calls that their tasks need.
SHORT: Final = 0.75
#: Answers are flat if their share rose by less than this from one window to the next …
FLAT: Final = 0.05
#: … and there is something to gain only if executions are ahead of answers by this.
GAP: Final = 0.3


def collapse(rows: Sequence[Mapping[str, Any]], window: int = 15) -> str | None:
    """The alarm of the newest of the metrics ``rows`` (oldest first), or ``None``. Looks at multi-call tasks only.

    Raised when, over the last ``window`` rows: more than half of the attempts execute, programs have less than 0.75 of
    the calls that are due, executions are ahead of right answers by at least 0.3, and right answers have risen by less
    than 0.05 against the window before. ``rows`` need not be more than the last ``2 * window``.
    """
    if len(rows) < 2 * window:
        return None
    now, before = rows[-window:], rows[-2 * window : -window]
    executed, answered = _mean(now, "executed"), _mean(now, "answered")
    calls, due = _mean(now, "calls"), _mean(now, "calls_due")
    earlier, earlier_calls = _mean(before, "answered"), _mean(before, "calls")
    if executed is None or answered is None or calls is None or due is None or earlier is None:
        return None
    if executed <= EXECUTED or calls >= SHORT * due or executed - answered < GAP or answered - earlier >= FLAT:
        return None
    falling = f" (from {earlier_calls:.1f})" if earlier_calls is not None and earlier_calls > calls + 0.05 else ""
    return (
        f"the policy is collapsing into safe calls: {executed:.0%} of its programs for multi-call tasks execute, but "
        f"they have {calls:.1f} calls{falling} where {due:.1f} are due, and {answered:.0%} of the answers are right "
        f"({earlier:.0%} before). A better warm start is what helped where this was studied; a larger kl_weight and "
        "a smaller learning_rate stopped the collapse and the learning alike"
    )


def undeclared(row: Mapping[str, Any]) -> str | None:
    """The alarm of a metrics row in which a tool raised what it does not declare in more than 2% of its calls."""
    loud = {tool: counts for tool, counts in row.get("undeclared", {}).items() if counts["alarming"]}
    return alarm_of(loud) if loud else None


def _mean(rows: Sequence[Mapping[str, Any]], key: str) -> float | None:
    values = [row["multi_call"][key] for row in rows if row["multi_call"][key] is not None]
    return sum(values) / len(values) if values else None
