"""Whether there are words for what a user is to ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from callwright.errors import DataError
from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.language.grammar import Grammar
from callwright_plugins.synthesis.language.plan import Plan


class Sayable:
    """Says what is asked for, once for each form of it: wording a plan takes longer than making it.

    Two plans have one form if they have the same tools, arguments and references. What is refused of a form is refused
    for its values' sake now and then, so a form counts as sayable once it has been said.
    """

    def __init__(self, tools: Mapping[str, ToolSpec]) -> None:
        self.grammar = Grammar(tools)
        self.known: set[Any] = set()

    def __call__(self, asked: Plan) -> bool:
        """Whether there are words for it."""
        form = tuple(
            (call.tool, tuple(call.arguments), tuple((path, str(reference)) for path, reference in call.located))
            for call in asked.calls
        )
        if form in self.known:
            return True
        try:
            self.grammar.render(asked)
        except DataError:
            return False
        self.known.add(form)
        return True
