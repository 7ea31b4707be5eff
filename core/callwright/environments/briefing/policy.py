"""Policies: the rules of an environment as data, each with the code by which the environment enforces it.

    POLICY = Policy(
        "You are the clerk of a village library.",
        (
            Rule("A reader has at most three books at a time.", "TOO_MANY_BOOKS"),
            Rule("What somebody reserved is lent to nobody else.", "RESERVED"),
        ),
    )

A rule without a code would be a wish: no outcome would show that it was broken, and no reward could tell.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from attrs import frozen

from callwright.errors import UsageError

_CODE: Final = re.compile(r"[A-Z][A-Z0-9_]*\Z")
_LONGEST_RULE: Final = 300


@frozen
class Rule:
    """One rule: a sentence or two, and the code of the failure, refusal or warning that breaking it comes to.

    Raises :class:`callwright.UsageError` for a text that is empty, has more than 300 characters, a line break or a
    double space, and for a code that is not written like ``DAILY_LIMIT``.
    """

    text: str
    code: str

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.text, str) or self.text != " ".join(self.text.split()) or not self.text:
            raise UsageError(f"a rule is one line of text with single spaces, not {self.text!r:.80}")
        if len(self.text) > _LONGEST_RULE:
            raise UsageError(f"a rule has at most {_LONGEST_RULE} characters, not {len(self.text)}: {self.text!r:.60}")
        if not isinstance(self.code, str) or not _CODE.match(self.code):
            raise UsageError(f"the code of the rule {self.text!r:.60} must be like DAILY_LIMIT, not {self.code!r:.40}")


@frozen
class Policy:
    """What the environment's model is there for (``role``, one line), and the rules that hold.

    Raises :class:`callwright.UsageError` for two rules of one text.
    """

    role: str
    rules: tuple[Rule, ...]

    def __attrs_post_init__(self) -> None:
        texts = [rule.text for rule in self.rules]
        for text in texts:
            if texts.count(text) > 1:
                raise UsageError(f"a policy has the rule {text!r:.80} twice")


#: What a model is told whose results leave out what is nothing (:class:`callwright.environments.paging.Fit`).
LEFT_OUT: Final = "Results leave out what is null or empty."


def written(policy: Policy | None, now: int, person: str, *, compact: bool = False) -> str:
    """The briefing: role, signed-in person, time, rules with their codes. ``now`` is in seconds of the Unix clock.

    ``person`` is empty where nobody is signed in; ``compact`` says that results leave out what is nothing. The text has
    no line break at its end.
    """
    lines = [] if policy is None else [policy.role]
    if person:
        lines.append(f"Signed in: {person}.")
    lines.append(f"Now: {moment_text(now)}.")
    if compact:
        lines.append(LEFT_OUT)
    if policy is not None and policy.rules:
        lines += ["", "Rules, each with the code that breaking it comes to:", *rule_lines(policy)]
    return "\n".join(lines)


def rule_lines(policy: Policy) -> list[str]:
    """The rules, a line each, with their codes."""
    return [f"- {rule.text} [{rule.code}]" for rule in policy.rules]


def moment_text(now: int) -> str:
    """``Monday, 2026-03-02T09:00:00Z``: tools write times so, and what day of the week it is cannot be looked up."""
    moment = datetime.fromtimestamp(now, UTC)
    return f"{_DAYS[moment.weekday()]}, {moment:%Y-%m-%dT%H:%M:%SZ}"


#: Not those of ``strftime``, which follow the machine's language.
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
