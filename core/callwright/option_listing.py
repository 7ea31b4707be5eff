"""What options a component takes, in words: for ``callwright plugins show``, pages and completion."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from attrs import frozen
from pydantic.fields import FieldInfo

from callwright.errors import PluginError
from callwright.language.shortening import shortened
from callwright.options import OptionTable
from callwright.registration import Lazy

#: Pydantic's limits by the name of their class: the attribute that holds the limit, and how it is said.
_LIMITS: Final[Mapping[str, tuple[str, str]]] = {
    "Gt": ("gt", "greater than"),
    "Ge": ("ge", "at least"),
    "Lt": ("lt", "less than"),
    "Le": ("le", "at most"),
    "MinLen": ("min_length", "of a length of at least"),
    "MaxLen": ("max_length", "of a length of at most"),
}


@frozen
class Option:
    """An option of a component.

    ``type`` is its type in words, with its limits; ``default`` the ``repr`` of its default, ``None`` where it must be
    given. ``description`` and ``type`` are empty where the plugin does not say. ``inner`` are the options of a table.
    """

    name: str
    type: str
    default: str | None
    description: str = ""
    inner: tuple[Option, ...] = ()


def option_table(lazy: Lazy) -> type[OptionTable] | None:
    """The table of a component's options, where its plugin declares one; the component's own module is not imported.

    Raises :class:`callwright.errors.PluginError` for one that is no :class:`callwright.options.OptionTable`, and as
    :meth:`callwright.Lazy.load` does.
    """
    if lazy.takes is None:
        return None
    table = lazy.found(lazy.takes)
    if not (isinstance(table, type) and issubclass(table, OptionTable)):
        raise PluginError(
            f"plugin {lazy.plugin!r}: {lazy.name!r} takes {table!r}, which is no callwright.options.OptionTable; "
            "derive a class from that and name its options with types, defaults and Field(description=…)"
        )
    return table


def options_of(lazy: Lazy) -> tuple[Option, ...]:
    """The options of a component: those of its table, or the parameters of its factory where it declares none.

    With a table, the component's own module is not imported. Raises as :meth:`callwright.Lazy.load` does.
    """
    table = option_table(lazy)
    if table is not None:
        return options_of_table(table)
    factory = lazy.load()
    try:
        parameters = inspect.signature(factory).parameters if callable(factory) else {}
    except (TypeError, ValueError):
        return ()
    return tuple(
        Option(
            name,
            "" if parameter.annotation is inspect.Parameter.empty else type_in_words(parameter.annotation),
            None if parameter.default is inspect.Parameter.empty else repr(parameter.default),
        )
        for name, parameter in parameters.items()
        if name != "registry" and parameter.kind is not inspect.Parameter.VAR_KEYWORD
    )


def options_of_table(table: type[OptionTable]) -> tuple[Option, ...]:
    """The options of a table, in its order."""
    return tuple(_option(name, field) for name, field in table.model_fields.items())


def _option(name: str, field: FieldInfo) -> Option:
    inner = _table_in(field.annotation)
    if field.is_required():
        default: str | None = None
    elif field.default_factory is not None:
        default = "{}" if inner is not None else repr(field.get_default(call_default_factory=True, validated_data={}))
    else:
        default = repr(field.default)
    words = [type_in_words(field.annotation)]
    for limit in field.metadata:
        if type(limit).__name__ in _LIMITS:
            attribute, said = _LIMITS[type(limit).__name__]
            words.append(f"{said} {getattr(limit, attribute):g}")
        elif isinstance(whole := getattr(limit, "wanted", None), str):  # a rule with words of its own says it all
            words = [whole]
    return Option(
        name, ", ".join(words), default, field.description or "", () if inner is None else options_of_table(inner)
    )


def _table_in(annotation: Any) -> type[OptionTable] | None:
    """The table that an option holds, alone or beside ``None``."""
    parts = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    return next((part for part in parts if isinstance(part, type) and issubclass(part, OptionTable)), None)


def type_in_words(annotation: Any) -> str:
    """A type as a person writes it: ``str | None``, ``list[int]``, ``'json' | 'hermes'``."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation is None or annotation is type(None):
        return "None"
    if annotation is Any:
        return "anything"
    if origin is Annotated:
        return type_in_words(parts[0])
    if origin is Literal:
        return " | ".join(map(repr, parts))
    if origin in (Union, UnionType):
        return " | ".join(map(type_in_words, parts))
    if isinstance(annotation, type) and issubclass(annotation, OptionTable):
        return "a table"
    if origin is not None and parts:
        inner = ", ".join("…" if part is ... else type_in_words(part) for part in parts)
        return f"{getattr(origin, '__name__', origin)}[{inner}]"
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return shortened(text, 80, keep=77)
