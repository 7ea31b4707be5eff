"""Options of components as pydantic tables: typed and documented, and a mistake is told with the way to its key.

A plugin names the table of a component where it registers it: ``Lazy(…, takes="package.options:Mine")``. The table lies
in a module that imports nothing heavy, so that options are checked and listed without torch or a server.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Mapping
from types import UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin

from attrs import frozen
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo

from callwright.errors import PluginError, UnknownName, UsageError, needs_option, raise_together
from callwright.registration import Lazy

_Options = TypeVar("_Options", bound=BaseModel)
#: Pydantic's limits by the name of their class: the attribute that holds the limit, and how it is said.
_LIMITS: Final[Mapping[str, tuple[str, str]]] = {
    "Gt": ("gt", "greater than"),
    "Ge": ("ge", "at least"),
    "Lt": ("lt", "less than"),
    "Le": ("le", "at most"),
    "MinLen": ("min_length", "of a length of at least"),
    "MaxLen": ("max_length", "of a length of at most"),
}


class OptionTable(BaseModel):
    """A table of options. It takes no others than it names, no number that is not finite, and does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _switches_are_switches(cls, value: Any, info: ValidationInfo) -> Any:
        """``True`` is 1 to Python, and "yes" and 1 are true to pydantic; who mixes them up meant another option."""
        field = cls.model_fields[info.field_name or ""]
        if any(hasattr(rule, "wanted") for rule in field.metadata):  # it says in its own words what it takes
            return value
        parts = set(_parts(field.annotation))
        if isinstance(value, bool) and parts & {int, float} and not parts & {bool, Any}:
            raise ValueError(f"must be a number, not {str(value).lower()}")
        if parts <= {bool, type(None)} and not isinstance(value, bool | None):
            raise ValueError(f"must be true or false, not {value!r:.60}")
        return value


class RequestOptions(OptionTable):
    """How often, how fast and for how much a server is asked (:class:`callwright.machines.model_server.Server`).

    A component's own table comes second among the bases, so that its options are listed first:
    ``class Mine(RequestOptions, Own)``.
    """

    concurrency: int = Field(default=16, ge=1, description="Requests under way at a time.")
    requests_per_minute: float | None = Field(
        default=None, gt=0, description="At most so many are begun, of all processes together; no limit if left out."
    )
    tokens_per_minute: float | None = Field(
        default=None, gt=0, description="The same for tokens, of prompts and completions; no limit if left out."
    )
    retries: int = Field(default=5, ge=0, description="How often a request is repeated that failed in passing.")
    timeout: float = Field(default=600.0, gt=0, description="Seconds for all of a request.")
    price_prompt: float = Field(default=0.0, ge=0, description="Price of a million prompt tokens.")
    price_completion: float = Field(default=0.0, ge=0, description="Price of a million completion tokens.")
    price_cached: float | None = Field(
        default=None, ge=0, description="Price of a million cached prompt tokens; as of others if left out."
    )
    max_cost: float | None = Field(
        default=None, gt=0, description="What may be spent, in the currency of the prices; it is never passed."
    )
    most_failures: int = Field(
        default=20, ge=1, description="So many requests in a row that fail end the command, of all processes together."
    )


class UnknownOption(UnknownName):
    """An option that does not exist; ``path`` leads to it from the table that was read."""

    def __init__(self, kind: str, path: tuple[str, ...], known: Iterable[str]) -> None:
        super().__init__(kind, path[-1], known)
        self.path = path


class WrongOption(UsageError):
    """An option with an impossible value; ``path`` leads to it from the table that was read."""

    def __init__(self, message: str, path: tuple[str, ...]) -> None:
        super().__init__(message)
        self.path = path


def read_options(model: type[_Options], given: Mapping[str, Any], owner: str, beside: Collection[str] = ()) -> _Options:
    """Validate a table. ``beside`` are names that its owner takes, too: they may be near to a wrong one.

    Raises :class:`callwright.UsageError`, naming its key, for the one thing that is wrong, and
    :class:`callwright.errors.SeveralMistakes` for several.
    """
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        try:
            raise_together(list(_mistakes(model, error, given, owner, beside).values()))
        except UsageError as mistake:
            raise mistake from error
        raise


def _mistakes(
    model: type[BaseModel], error: ValidationError, given: Mapping[str, Any], owner: str, beside: Collection[str]
) -> dict[tuple[str, ...], UsageError]:
    """A mistake for each place; pydantic has one for each of the types that a value might have had there."""
    found: dict[tuple[str, ...], UsageError] = {}
    for problem in error.errors():
        path = tuple(str(part) for part in problem["loc"])
        one_of_several = _union_on_the_way(model, path)
        if one_of_several is None:
            found[path] = _mistake(model, problem, owner, beside)
        else:
            path, annotation = one_of_several
            value: Any = given
            for key in path:
                value = value[key] if isinstance(value, Mapping) else getattr(value, key)
            found[path] = WrongOption(
                f"{owner}: {_key(path)} must be {type_in_words(annotation)}, not {value!r:.60}", path
            )
    return found


def _mistake(model: type[BaseModel], problem: Any, owner: str, beside: Collection[str]) -> UsageError:
    path = tuple(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        table: Any = model
        for key in path[:-1]:
            if not key.isdecimal():  # a place in a list of tables
                table = _inner(table.model_fields[key].annotation)
        where = f"option of {owner}" + (f" in {'.'.join(map(repr, path[:-1]))}" if len(path) > 1 else "")
        return UnknownOption(where, path, [*table.model_fields, *(beside if len(path) == 1 else ())])
    if problem["type"] == "missing":
        where = f"{owner}: {_key(path[:-1])}" if path[1:] else owner
        return WrongOption(needs_option(where, path[-1]), path)
    message = problem["msg"].removeprefix("Value error, ")
    if path and message.startswith("must be "):
        return WrongOption(f"{owner}: {_key(path)} {message}", path)
    if message.startswith("Input should be "):
        message = f"{message.partition(', unable to parse')[0]}, not {problem['input']!r:.60}"
    return WrongOption(f"{owner}: {_key(path)}: {message}" if path else f"{owner}: {message}", path)


def _key(path: tuple[str, ...]) -> str:
    return ".".join(map(repr, path[:1])) + "".join(f".{part}" for part in path[1:])


def _union_on_the_way(model: Any, path: tuple[str, ...]) -> tuple[tuple[str, ...], Any] | None:
    """The path to the option of several types, none of them a table, in which a mistake lies, and these types."""
    for place, key in enumerate(path[:-1], 1):
        field = model.model_fields.get(key)
        if field is None:
            return None
        model = _table_in(field.annotation)
        if model is None:
            several = [part for part in _parts(field.annotation) if part is not type(None)]
            return (path[:place], field.annotation) if len(several) > 1 else None
    return None


def _parts(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _inner(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(part for part in annotation.__args__ if isinstance(part, type) and issubclass(part, BaseModel))


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
    return next((part for part in _parts(annotation) if isinstance(part, type) and issubclass(part, OptionTable)), None)


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
    return text if len(text) <= 80 else f"{text[:77]}..."
