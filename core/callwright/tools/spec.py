"""Tools: the specification that models see and checks use, and plain Python functions turned into tools."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from types import CoroutineType, FunctionType
from typing import TYPE_CHECKING, Any, Final, overload

from attrs import evolve, field, frozen

from callwright.errors import DataError, UnknownName, UsageError
from callwright.language.strict_json import kind as json_kind
from callwright.machines.awaiting import finished
from callwright.pickling import cannot_be_found, fields_of, named
from callwright.tools.foreign_values import TooManyNumbers, in_python, refuse_infinite
from callwright.tools.reading import SENSITIVE, holds_mark, without_marks
from callwright.tools.signatures import argument_model, parameters_schema, result_schema, result_writer, signature_of

if TYPE_CHECKING:
    from callwright.tools.compiled import CompiledTool

OPEN_OBJECT: dict[str, Any] = {"type": "object", "properties": {}}
#: Results that are JSON as they are.
_PLAIN: Final = frozenset({type(None), str, int, float, bool})
#: What :func:`tool` is told of a function beside what it is called.
ANNOTATIONS: Final = (
    "read_only", "destructive", "idempotent", "discovery", "sensitive", "hidden", "cost", "latency", "irreversible",
)  # fmt: skip


def _instead_of_a_name(definition: Mapping[str, Any]) -> str:
    """In words, what a definition has where its name was expected: a text that is not empty."""
    if "name" in definition:
        name = definition["name"]
        return f"'name' is {'empty' if name == '' else json_kind(name)}, expected a text"
    keys = ", ".join(repr(str(key))[:40] for key in list(definition)[:4]) + (", …" if len(definition) > 4 else "")
    return f"expected an object with 'name', 'description' and a schema, not one with {keys or 'nothing in it'}"


@frozen(slots=False)
class ToolSpec:
    """A tool as a model is told of it: name, description and JSON Schemas.

    ``parameters`` and ``result`` are JSON Schema (2020-12) objects; the constructors ``from_openai``, ``from_mcp`` and
    ``from_tier`` read the dialects. ``result_field`` is what a bare reference to a result of this tool means.

    ``read_only`` tools change nothing; ``destructive`` ones take something away; ``idempotent`` ones may be repeated
    without further effect; ``discovery`` tools list what exists; ``sensitive`` ones take a secret (a parameter marked
    ``"x-sensitive": true``); ``hidden`` ones are never offered to an agent.

    ``cost`` is what a call itself costs, apart from what is bought or sent with it: cents, or the members of the result
    that tell them (``"fee_cents"``, ``"bill.delivery_cents + bill.service_cents"``). ``latency`` is how long a call
    takes, in whole seconds, where time moves. ``irreversible`` is a tool whose calls, or some of them, do what no tool
    takes back and nobody can leave out of account: money that is gone, words that others have, data that is lost. By
    default a call is free, immediate, and can be undone; models are told of it only where they are asked to be
    (:mod:`callwright.tools.costing`).

    ``brief`` tools are shown to models in few words: without codes of failures and what only checks need to know, and
    of results the names alone. Calls are checked against the whole schemas all the same.

    Raises :class:`callwright.UsageError` for a cost or latency that is none, and for a read-only tool that is
    irreversible.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(factory=lambda: dict(OPEN_OBJECT), repr=False)
    result: Mapping[str, Any] | None = field(default=None, repr=False)
    result_field: str | None = None
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    discovery: bool = False
    sensitive: bool = False
    hidden: bool = False
    cost: int | str = 0
    latency: int = 0
    irreversible: bool = False
    brief: bool = False

    def __attrs_post_init__(self) -> None:
        if self.cost or self.latency or self.irreversible:
            from callwright.tools.costing import check_costs

            check_costs(self)

    @cached_property
    def compiled(self) -> CompiledTool:
        """The compiled schema; made once per spec."""
        from callwright.tools.compiled import compile_tool

        return compile_tool(self.name, self.parameters, self.result, self.result_field)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: the fields. The compiled schema belongs to this process and is made again in another."""
        return fields_of(self)

    @classmethod
    def from_openai(cls, definition: Mapping[str, Any]) -> ToolSpec:
        """From an OpenAI function definition, with or without the ``{"type": "function", …}`` wrapper."""
        inner = definition.get("function", definition)
        if not isinstance(inner, Mapping):
            raise DataError(
                f"an OpenAI function definition has no function: expected an object with a name and parameters there, "
                f"not {json_kind(inner)}"
            )
        return cls._read(inner, inner.get("parameters"), inner.get("returns"), "an OpenAI function definition")

    @classmethod
    def from_mcp(cls, definition: Mapping[str, Any]) -> ToolSpec:
        """From an MCP tool (``inputSchema``, ``outputSchema``, ``annotations`` with their hints).

        A hint that is absent has the specification's default: not read-only, destructive, not idempotent.
        """
        spec = cls._read(definition, definition.get("inputSchema"), definition.get("outputSchema"), "an MCP tool")
        given = definition.get("annotations")
        hints: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        read_only = bool(hints.get("readOnlyHint", False))
        return evolve(
            spec,
            read_only=read_only,
            destructive=not read_only and bool(hints.get("destructiveHint", True)),
            idempotent=not read_only and bool(hints.get("idempotentHint", False)),
        )

    @classmethod
    def from_tier(cls, definition: Mapping[str, Any]) -> ToolSpec:
        """From the dialect of TIER and BFCL: ``dict``, ``float``, ``pandas.DataFrame``, ``returns.index``."""
        return cls._read(definition, definition.get("parameters"), definition.get("returns"), "a TIER definition")

    @classmethod
    def _read(cls, definition: Mapping[str, Any], parameters: Any, result: Any, what: str) -> ToolSpec:
        from callwright.tools.schema_dialects import normalise

        name = definition.get("name")
        if not isinstance(name, str) or not name:
            raise DataError(f"{what} has no name: {_instead_of_a_name(definition)}")
        if parameters is not None and not isinstance(parameters, Mapping):
            raise DataError(f"the parameters of tool {name!r} are not an object but {json_kind(parameters)}")
        index = result.get("index") if isinstance(result, Mapping) else None
        return cls(
            name=name,
            description=str(definition.get("description") or ""),
            parameters=normalise(parameters) if parameters else dict(OPEN_OBJECT),
            result=normalise(result) if isinstance(result, Mapping) else None,
            result_field=index if isinstance(index, str) else None,
        )

    @property
    def title(self) -> str:
        """The name as people read it in lists: ``Transfer funds``."""
        words = self.name.replace("_", " ").replace("-", " ").split()
        return " ".join(words)[:1].upper() + " ".join(words)[1:]

    def to_openai(self, *, compact: bool = False) -> dict[str, Any]:
        """The OpenAI function definition.

        ``compact`` leaves out of the parameters what only checks need to know, and :attr:`brief` of the description the
        codes of failures, too.
        """
        parameters, description = without_marks(self.parameters), self.description
        if compact or self.brief:
            from callwright.tools.descriptions import compact as smaller
            from callwright.tools.descriptions import without_codes

            parameters = smaller(parameters)
            description = without_codes(description) if self.brief else description
        return {
            "type": "function",
            "function": {"name": self.name, "description": description, "parameters": parameters},
        }


class ToolError(Exception):
    """Raised by a tool function for a documented failure; becomes an ``execution_error`` outcome with this code."""

    def __init__(self, code: str, message: str) -> None:
        self.code, self.message = code, message
        super().__init__(message)

    def __reduce__(self) -> Any:
        return type(self), (self.code, self.message)


class Refused(ToolError):
    """Raised by a tool for a call that it refuses and that counts all the same, such as a wrong PIN.

    Becomes a ``refused`` outcome. Unlike any other failure it keeps what the tool changed before: the attempt that was
    counted. Change nothing else before you raise it.
    """


class ArgumentError(ToolError):
    """Arguments that fit the schema and yet not the annotations, such as ``"soon"`` for a date; a ``schema_error``."""

    def __init__(self, message: str) -> None:
        super().__init__("value", message)

    def __reduce__(self) -> Any:
        return type(self), (self.message,)


@frozen(slots=False)
class FunctionTool:
    """A plain typed function with its spec; calling it calls the function.

    ``state`` is the name of the first parameter where that one takes the session's state instead of an argument of the
    model (a positional-only first parameter: ``def pay(bank: Bank, /, amount: float)``).

    A tool is pickled as the module and the qualified name of its function, and found by them again. Pickling one that
    cannot be found so (a function inside of another one) raises :class:`callwright.UsageError`.
    """

    spec: ToolSpec
    function: Callable[..., Any] = field(repr=False)
    state: str | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's own result for these Python arguments."""
        return self.function(*args, **kwargs)

    def __reduce__(self) -> Any:
        function = self.function
        if type(function) is not FunctionType:  # a method or an object that can be called: pickle knows what to do
            return FunctionTool, (self.spec, function, self.state)
        place = (function.__module__, function.__qualname__)
        found = named(*place)
        if found is self:
            return _tool_named, place
        if found is function:
            return FunctionTool, (self.spec, function, self.state)
        if isinstance(found, FunctionTool) and found.function is function:  # this one says something else of it
            return _tool_like, (found, self.spec, self.state)
        raise cannot_be_found(function, f"the tool {self.spec.name!r}")

    def __copy__(self) -> FunctionTool:
        return self

    def __deepcopy__(self, memo: Any) -> FunctionTool:
        return self

    @cached_property
    def _arguments(self) -> Any:
        return argument_model(self.function, self.spec.name)

    @cached_property
    def _result(self) -> Callable[[Any], Any]:
        return result_writer(inspect.signature(self.function, eval_str=True).return_annotation)

    def call(self, state: Any, arguments: dict[str, Any]) -> Any:
        """Run the function on JSON arguments and return a JSON value.

        Raises :class:`ArgumentError` for arguments that do not fit the annotations, and whatever the function raises.
        """
        from pydantic import ValidationError

        model, names, filled = self._arguments
        try:
            checked = model.model_validate(arguments)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise ArgumentError(f"{self.spec.name}.{place}: {first['msg']}" if place else first["msg"]) from error
        values = {names[field]: getattr(checked, field) for field in checked.model_fields_set | filled}
        result = self.function(state, **values) if self.state else self.function(**values)
        if type(result) is CoroutineType:
            result = finished(result)
        try:
            if result is None or isinstance(result, str | int | float | bool):
                plain = result if type(result) in _PLAIN else in_python(result)  # some of NumPy's numbers are floats
                refuse_infinite(plain)
                return plain
            return self._result(result)
        except TooManyNumbers as error:
            raise ToolError("result_too_large", str(error)) from None


def _tool_named(module: str, qualified_name: str) -> FunctionTool:
    """The tool that was pickled by this name."""
    found = named(module, qualified_name)
    if isinstance(found, FunctionTool):
        return found
    here = "; here another program is __main__" if module == "__main__" else ""
    raise UsageError(
        f"a tool was sent to this process as {module}.{qualified_name}, but there is no tool of this name{here}. Keep "
        "tools in a module that both processes can import, and the same version of it"
    )


def _tool_like(tool: FunctionTool, spec: ToolSpec, state: str | None) -> FunctionTool:
    return FunctionTool(spec, tool.function, state)


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    result_field: str | None = None,
    read_only: bool = False,
    destructive: bool = False,
    idempotent: bool = False,
    discovery: bool = False,
    sensitive: bool = False,
    hidden: bool = False,
    cost: int | str = 0,
    latency: int = 0,
    irreversible: bool = False,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    result_field: str | None = None,
    **annotations: Any,
) -> Any:
    """Turn a typed function into a tool: schemas from the annotations, descriptions from the docstring.

    Parameters that no ``Field(description=…)`` describes are described by the docstring's section on them (``Args:`` as
    Google has it, ``Parameters`` as NumPy has it, or ``:param x:``), which the tool's own description is without. A
    positional-only first parameter receives the session's state and is not part of the schema. An ``async def``
    function is awaited in an event loop of its own thread, and cancelled when it is over its time limit. Raises
    :class:`callwright.UsageError` for a parameter without annotation, for a type of which there is no schema, and for
    an async generator.
    """
    for option in annotations:
        if option not in ANNOTATIONS:
            raise UnknownName(
                "option of callwright.tool", option, ("name", "description", "result_field", *ANNOTATIONS)
            )

    def wrap(target: Callable[..., Any]) -> FunctionTool:
        from callwright.tools.descriptions import flowing, tidied
        from callwright.tools.docstrings import described
        from callwright.tools.schema_dialects import inline_definitions

        if isinstance(target, FunctionTool):
            raise UsageError(f"{target.spec.name!r} is a tool already")
        tool_name = name or getattr(target, "__name__", "")
        if not tool_name:
            raise UsageError(f"a tool made of {target!r:.80} needs a name: callwright.tool(name=…)(…)")
        if inspect.isasyncgenfunction(target):
            raise UsageError(
                f"tool {tool_name!r} is an async generator; a call has one result: return it in place of yield"
            )
        signature = signature_of(target, tool_name)
        positional = [p for p in signature.parameters.values() if p.kind is inspect.Parameter.POSITIONAL_ONLY]
        if len(positional) > 1:
            raise UsageError(f"tool {tool_name!r}: only the first parameter, the state, may be positional-only")
        said = described(inspect.getdoc(target) or "")
        parameters = tidied(inline_definitions(parameters_schema(target, tool_name, said.parameters)))
        returned = result_schema(signature.return_annotation, tool_name)
        result = None if returned is None else tidied(inline_definitions(returned))
        annotations["sensitive"] = bool(annotations.get("sensitive")) or holds_mark(parameters, SENSITIVE)
        spec = ToolSpec(
            name=tool_name,
            description=flowing(description or said.text),
            parameters=parameters,
            result=result,
            result_field=result_field,
            **annotations,
        )
        return FunctionTool(spec, target, positional[0].name if positional else None)

    return wrap if function is None else wrap(function)
