"""Whether there are words for what a user is to ask for."""

from __future__ import annotations

from typing import Any

from callwright.environments.protocol import Environment
from callwright.errors import DataError
from callwright.plugins import Registry
from callwright_plugins.synthesis.language.environments import grammar_for
from callwright_plugins.synthesis.language.plan import Plan


class Sayable:
    """Says what is asked for, once for each form of its calls: wording a plan takes longer than making it.

    Two calls have one form if they have the same tool, arguments and references. Where a plan holds a form that has not
    been said yet, all of it is said, and its forms count as sayable from then on.
    """

    def __init__(self, environment: Environment, registry: Registry) -> None:
        self.grammar = grammar_for(environment, registry)
        self.known: set[Any] = set()

    def __call__(self, asked: Plan) -> bool:
        """Whether there are words for it."""
        forms = {
            (call.tool, tuple(call.arguments), tuple((path, reference.path) for path, reference in call.located))
            for call in asked.calls
        }
        if forms <= self.known:
            return True
        try:
            self.grammar.render(asked)
        except DataError:
            return False
        self.known |= forms
        return True
