"""Signatures: what the annotations of a function say of a tool's arguments and of its result.

Schemas and checks are pydantic's. What it refuses is told with the tool and the parameter.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Annotated, Any

from callwright.errors import UsageError
from callwright.tools.foreign_values import in_python, infinite, is_foreign, no_json, refuse_infinite

#: The keyword by which a schema says that a list was a set.
_SET = "uniqueItems"


def signature_of(function: Callable[..., Any], tool: str) -> inspect.Signature:
    """The signature, with annotations that are texts read.

    Raises :class:`callwright.UsageError` for one that names nothing.
    """
    try:
        return inspect.signature(function, eval_str=True)
    except NameError as error:
        raise UsageError(
            f"tool {tool!r}: an annotation names {error.name!r}, which its module does not have; types of tools stand "
            "at the top level of a module"
        ) from error


def argument_model(function: Callable[..., Any], tool: str) -> tuple[Any, dict[str, str], frozenset[str]]:
    """A pydantic model of a function's arguments, which argument each of its fields is, and the fields that are handed
    over even where a call leaves them out.

    The fields have names of their own, because pydantic does not take every name (``copy``, ``json``, ``_x``). A
    default that is a ``Field(…)`` is no value that a function could be left with: it is filled in here.

    Raises :class:`callwright.UsageError` for a parameter of which there is no schema.
    """
    from pydantic import ConfigDict, Field, create_model
    from pydantic.fields import FieldInfo

    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    filled: set[str] = set()
    for place, parameter in enumerate(signature_of(function, tool).parameters.values()):
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            continue
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise UsageError(f"tool {tool!r}: *args and **kwargs have no schema; name every parameter")
        if parameter.annotation is inspect.Parameter.empty:
            method = place == 0 and parameter.name in ("self", "cls")
            way = "; of a method make the tool where it is bound: callwright.tool(object.method)" if method else ""
            raise UsageError(f"tool {tool!r}: parameter {parameter.name!r} has no type annotation{way}")
        inner = f"argument_{len(fields)}"
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        if isinstance(default, FieldInfo) and not default.is_required():
            filled.add(inner)
        fields[inner] = (Annotated[parameter.annotation, Field(alias=parameter.name)], default)
        names[inner] = parameter.name
    with _told(tool, lambda: _refused_parameter(function)):
        return create_model(tool, __config__=ConfigDict(extra="forbid"), **fields), names, frozenset(filled)


def parameters_schema(
    function: Callable[..., Any], tool: str, descriptions: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """The JSON Schema of a function's arguments. ``descriptions`` are for those that their annotations do not describe.

    Raises :class:`callwright.UsageError` where there is none.
    """
    model, _, _ = argument_model(function, tool)
    with _told(tool, lambda: _refused_parameter(function)):
        schema: dict[str, Any] = model.model_json_schema()
    if descriptions:
        _describe(schema.get("properties", {}), descriptions)
    return schema


def _describe(properties: dict[str, Any], descriptions: Mapping[str, str]) -> None:
    from callwright.tools.descriptions import tidied

    for name, schema in properties.items():
        # That of a class which the schema refers to says what such a thing is, and not what it is here.
        if descriptions.get(name) and "description" not in tidied(schema):
            properties[name] = {"description": descriptions[name], **schema}


def result_schema(returned: Any, tool: str) -> dict[str, Any] | None:
    """The JSON Schema of what a function returns; ``None`` where its annotation does not say.

    Raises :class:`callwright.UsageError` for a type of which there is no schema.
    """
    from pydantic import TypeAdapter

    if returned is inspect.Signature.empty or returned is Any:
        return None
    with _told(tool, lambda: "the result"):
        return TypeAdapter(returned).json_schema(mode="serialization")


def result_writer(returned: Any) -> Callable[[Any], Any]:
    """What makes JSON of the results of a function with this annotation.

    A set has no order, and what Python gives it is another one in each process; so its members are sorted. Values of
    NumPy and PyTorch are written as Python's. Of anything else that is no JSON a :class:`TypeError` says what it is,
    and of NaN and infinities a :class:`ValueError`.
    """
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    said = returned is not inspect.Signature.empty and returned is not Any
    adapter: TypeAdapter[Any] = TypeAdapter(returned if said else Any)
    try:
        sets = not said or _SET in json.dumps(adapter.json_schema(mode="serialization"))
    except PydanticUserError:  # of a tool whose schema somebody stated
        sets = True

    def write(result: Any) -> Any:
        try:
            written = adapter.dump_python(result, mode="json", fallback=_unknown)
        except _Foreign:  # so rare that no other result is looked through for them
            result = in_python(result)
            # Those inside of objects are found on the way. Annotations say int of them, which they are not.
            written = adapter.dump_python(result, mode="json", fallback=_known, warnings=False)
        if refuse_infinite(written):
            _refuse_nulls(written, result)
        return _in_order(written, result) if sets else written

    return write


class _Foreign(Exception):
    """A result holds a value of NumPy or PyTorch."""


def _unknown(value: Any) -> Any:
    raise _Foreign if is_foreign(value) else no_json(value)


def _known(value: Any) -> Any:
    if is_foreign(value):
        return in_python(value)
    raise no_json(value)


def _refuse_nulls(written: Any, value: Any) -> None:
    """Raise :class:`ValueError` where pydantic wrote null for NaN or an infinity, and nobody asked it to."""
    if written is None:
        if isinstance(value, float):
            raise infinite(value)
    elif isinstance(written, list) and isinstance(value, list | tuple | set | frozenset):
        for one, of in zip(written, value, strict=False):
            _refuse_nulls(one, of)
    elif isinstance(written, dict) and isinstance(value, Mapping):
        for one, of in zip(written.values(), value.values(), strict=False):
            _refuse_nulls(one, of)
    elif isinstance(written, dict) and not _has_writers(type(value)):
        for key, one in written.items():
            _refuse_nulls(one, getattr(value, key, None))


def _has_writers(kind: type) -> bool:
    """Whether a class says itself how its fields are written: a null is then its own."""
    decorators = getattr(kind, "__pydantic_decorators__", None)
    config = getattr(kind, "model_config", None) or getattr(kind, "__pydantic_config__", None) or {}
    return "ser_json_inf_nan" in config or bool(
        decorators is not None and (decorators.field_serializers or decorators.model_serializers)
    )


def _in_order(written: Any, value: Any) -> Any:
    """JSON that was written of a value, with what was a set there sorted; lists stay as they are."""
    if isinstance(written, list) and isinstance(value, list | tuple | set | frozenset) and len(written) == len(value):
        inner = [_in_order(one, of) for one, of in zip(written, value, strict=True)]
        return _members(inner) if isinstance(value, set | frozenset) else inner
    if isinstance(written, dict) and isinstance(value, Mapping) and len(written) == len(value):
        return {key: _in_order(one, of) for (key, one), of in zip(written.items(), value.values(), strict=True)}
    if isinstance(written, dict):  # of an object with fields
        return {key: _in_order(one, getattr(value, key, None)) for key, one in written.items()}
    return written


def _members(values: list[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:  # of several types
        return sorted(values, key=lambda one: json.dumps(one, sort_keys=True, default=repr))


@contextmanager
def _told(tool: str, where: Callable[[], str]) -> Iterator[None]:
    """What pydantic says of a type, with the tool and the place."""
    from pydantic.errors import PydanticUserError

    try:
        yield
    except PydanticUserError as error:
        said = next(iter(str(error).splitlines()), type(error).__name__)
        raise UsageError(f"tool {tool!r}, {where()}: {said}") from error


def _refused_parameter(function: Callable[..., Any]) -> str:
    """The parameter of whose type there is no schema."""
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:  # the state
            continue
        try:
            TypeAdapter(parameter.annotation).json_schema()
        except PydanticUserError:
            return f"parameter {parameter.name!r}"
    return "its parameters"
