"""Adversarial completions with their totals, written by hand from the specification, never from the implementation.

A row holds the form, the task (``adversarial_world.py``), the completion, seven totals in the order of ``RECIPES``, and
the sentence or the decision that they follow from. Sections of TIER are 2.2, A and C, of ToolRL 3.3; "ours" is one of
``docs/divergences.md`` or ``docs/toolrl-and-prove.md``; "RFC 8259" is JSON, "XML" is XML 1.0.

How totals are worked out. ``tier`` is (format + names + parameters + types + execution + 5 answer) / 10, so that format
and R_parse are worth .4, execution .1 and the answer .5; ``simple`` is (format + 5 answer) / 6. ``toolrl`` is format
plus 6 R / S - 3, with S = 1 + |G| + keys: S is 3 for ``number``, ``words`` and ``null``, 7 for ``chain``, 5 for
``parallel`` and 4 for ``order``; ``toolrl-guarded`` multiplies the part of S that belongs to calls with
max(1, |P| / |G|).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

RECIPES = ("tier", "tier-guarded", "tier-strict", "tier-released", "simple", "toolrl", "toolrl-guarded")
#: The recipes that the specification oracle scores too.
OF_THE_ORACLE = ("tier", "tier-guarded", "tier-strict", "simple")


@dataclass(frozen=True)
class Row:
    """One completion and what it is worth."""

    name: str
    form: str
    task: str
    completion: str
    totals: dict[str, Fraction]
    why: str


def row(form: str, name: str, task: str, completion: str, totals: str, why: str) -> Row:
    """A row; ``totals`` are seven numbers or fractions with spaces between them."""
    written = [Fraction(total) for total in totals.split()]
    return Row(f"{form}: {name}", form, task, completion, dict(zip(RECIPES, written, strict=True)), why)


def block(body: str, returns: str = ' return="one"', thought: str = "so") -> str:
    """The usual envelope of json, xml and direct (C, "Response Format")."""
    return f"<think>\n{thought}\n</think>\n<tool_call{returns}>\n{body}\n</tool_call>"


def all_rows() -> list[Row]:
    """Every row of the tables."""
    import adversarial_direct
    import adversarial_json
    import adversarial_json_programs
    import adversarial_toolrl
    import adversarial_xml

    tables = (
        adversarial_json.ROWS,
        adversarial_json_programs.ROWS,
        adversarial_xml.ROWS,
        adversarial_direct.ROWS,
        adversarial_toolrl.ROWS,
    )
    return [one for table in tables for one in table]
