"""A Griffe extension: what a class that attrs writes takes is shown as its signature.

Griffe reads source without running it, and knows of dataclasses alone. Without this a value such as ``Term`` would
stand in the reference without its fields.
"""

from __future__ import annotations

from typing import Any

from griffe import Attribute, Class, Extension, Function, Parameter, ParameterKind, Parameters

_MAKERS = {"attrs.frozen", "attrs.define", "attrs.mutable"}


class AttrsFields(Extension):
    """Gives such classes an ``__init__`` of their annotated attributes, in the order of the source."""

    def on_class_members(self, *, cls: Class, **_: Any) -> None:
        """Called once all members of a class are known."""
        makers = [decorator for decorator in cls.decorators if decorator.callable_path in _MAKERS]
        if not makers or "__init__" in cls.members:
            return
        only_by_name = "kw_only=True" in str(makers[0].value)
        fields = [_parameter(member, only_by_name) for member in cls.members.values() if _is_field(member)]
        if fields:
            parameters = Parameters(Parameter("self", kind=ParameterKind.positional_or_keyword), *fields)
            cls.set_member("__init__", Function("__init__", parameters=parameters, returns="None"))


def _is_field(member: Any) -> bool:
    if not isinstance(member, Attribute) or member.annotation is None or "property" in member.labels:
        return False
    return "ClassVar" not in str(member.annotation) and "init=False" not in str(member.value)


def _parameter(member: Attribute, only_by_name: bool) -> Parameter:
    by_name = only_by_name or "kw_only=True" in str(member.value)
    kind = ParameterKind.keyword_only if by_name else ParameterKind.positional_or_keyword
    return Parameter(member.name.lstrip("_"), annotation=member.annotation, kind=kind, default=_default(member.value))


def _default(value: Any) -> Any:
    said = None if value is None else str(value)
    if said is None or not said.startswith("field("):
        return value
    return "..." if "default" in said or "factory" in said else None
