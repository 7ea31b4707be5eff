"""A reward of your own: one component, added to a shipped recipe. Run: python sdk_examples/own_reward.py"""

from __future__ import annotations

import callwright as cw


class Brevity(cw.RewardComponent):
    """1 up to ``calls`` calls more than the task needs, then falling by a quarter for each further call."""

    name = "brevity"

    def __init__(self, calls: int = 0) -> None:
        self.calls = calls

    def score(self, attempt: cw.Attempt) -> cw.Score:
        """Every point that is lost comes with the evidence for it."""
        if attempt.program is None:
            return cw.Score(0.0, evidence=(cw.Evidence("no_program", "there is no program to count"),))
        found, allowed = attempt.program.depth, attempt.task.depth + self.calls
        if found <= allowed:
            return cw.Score(1.0)
        reason = f"{found} calls, where {allowed} are enough"
        lost = cw.Evidence("too_many_calls", reason, expected=str(allowed), found=str(found))
        return cw.Score(max(0.0, 1 - 0.25 * (found - allowed)), evidence=(lost,))


# Weights are relative: TIER's are 1, 3, 1 and 5, so that Brevity gets a sixth of the total here.
recipe = cw.reward("tier").with_terms(cw.Term(Brevity(), weight=2, requires=("format",)), name="tier-brief")

if __name__ == "__main__":
    task = cw.corpus("toolworld-mini-v1")["evaluation"][16]
    assert task.program is not None
    first = task.program.calls[0]
    wordy = cw.Program((first, *(cw.Call(call.id + 1, call.tool, call.arguments) for call in task.program.calls)))
    json_form = cw.parser("json")
    print("reference", recipe.score(task, json_form.render(task.program)).explain())
    print("repeats itself", recipe.score(task, json_form.render(wordy)).explain())
