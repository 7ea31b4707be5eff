"""What option tables of algorithms are made of: rules that say in plain words which values an option takes.

A rule stands once, in the table (:mod:`.option_tables`). A recipe's options are read by the table, before torch or the
algorithm is imported; the class of the algorithm takes its defaults and rules from there (:func:`taken`), so that it
cannot be made with others in Python either.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs
from attrs import frozen
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from callwright.errors import UsageError
from callwright.options import OptionTable


@frozen
class Rule:
    """Which values an option takes. ``wanted`` says it as the end of "… must be …"; whole numbers become floats
    where ``real``; ``None`` is taken where ``optional``.
    """

    wanted: str
    holds: Callable[[Any], bool]
    real: bool = False
    optional: bool = False

    def read(self, value: Any) -> Any:
        """The value as the algorithm has it. Raises ``ValueError``, in words, for one that it does not take."""
        if self.real and type(value) is int:
            value = float(value)
        if (self.optional and value is None) or self.holds(value):
            return value
        raise ValueError(f"must be {self.wanted}, but is {value!r}")

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)


def taken(table: type[OptionTable], name: str) -> Any:
    """The attrs field of an algorithm for an option of its table, with the same default and rule."""
    option = table.model_fields[name]
    rule = next(rule for rule in option.metadata if isinstance(rule, Rule))

    def validate(algorithm: Any, attribute: Any, value: Any) -> None:
        try:
            rule.read(value)
        except ValueError as error:
            raise UsageError(f"{algorithm.name}: {attribute.name} {error}") from None

    def convert(value: Any) -> Any:
        return float(value) if rule.real and type(value) is int else value

    return attrs.field(default=option.default, converter=convert, validator=validate)


def number(
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    below: float = math.inf,
    at_most: float = math.inf,
    optional: bool = False,
) -> Rule:
    """A finite number in a range; the limits that are left out do not appear in the message."""
    limits = [
        f"{word} {limit:g}"
        for word, limit in (
            ("greater than", above),
            ("of at least", at_least),
            ("less than", below),
            ("of at most", at_most),
        )
        if math.isfinite(limit)
    ]

    def holds(value: Any) -> bool:
        known = value if isinstance(value, float) and math.isfinite(value) else math.nan
        return above < known < below and at_least <= known <= at_most

    return Rule(f"a number {' and '.join(limits)}" if limits else "a number", holds, real=True, optional=optional)


def count(least: int = 0, *, optional: bool = False) -> Rule:
    """A whole number, at least this one."""
    return Rule(
        f"a whole number, {least} or more", lambda value: type(value) is int and value >= least, False, optional
    )


#: True or false, and nothing that merely counts as one of them.
SWITCH = Rule("true or false", lambda value: isinstance(value, bool))


def one_of(*choices: str, optional: bool = False) -> Rule:
    """One of a few words."""
    listed = f"{', '.join(map(repr, choices[:-1]))} or {choices[-1]!r}"
    return Rule(listed, lambda value: value in choices, optional=optional)
