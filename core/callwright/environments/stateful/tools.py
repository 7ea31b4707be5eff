"""The tools of stateful environments: what may be added to them, and how each is called."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

from typing_extensions import is_typeddict

from callwright.environments.calling import ReadyTool, ready
from callwright.environments.sizes import TooLarge
from callwright.environments.undeclared import holds_foreign
from callwright.errors import UsageError
from callwright.machines.awaiting import waited_for
from callwright.tools.foreign_values import TooManyNumbers, in_python, refuse_infinite
from callwright.tools.spec import FunctionTool

#: What may be added to the tools of an environment: sequences of tools. Where a registry makes the environment (a
#: recipe, the command line, :func:`callwright.environment`), names of registered toolsets, too.
Toolsets: TypeAlias = Sequence[Sequence[FunctionTool]]


def ready_function(added: FunctionTool) -> ReadyTool:
    """A tool that gets the world or its arguments alone, whatever its annotations make of these."""
    function = added.function
    hints = typing.get_type_hints(function, include_extras=True)
    returned = hints.pop("return", Any)
    if added.state is not None:
        hints.pop(added.state, None)
    if not all(map(_plain, hints.values())) or not _plain(returned):
        return ready(added.spec, added.call, "mapping")  # dates, models and the like are made of JSON and become JSON
    if holds_foreign([added]):  # ours return nothing of NumPy, and are not looked through for it
        function = _giving_python(function)
    return ready(added.spec, function, "state" if added.state is not None else "arguments")


def _giving_python(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with numbers of NumPy and PyTorch in its results made Python's; NaN and infinities are its bug."""
    awaited = waited_for(function)

    @functools.wraps(awaited)
    def call(*given: Any, **arguments: Any) -> Any:
        result = awaited(*given, **arguments)
        try:
            plain = in_python(result)
        except RecursionError:  # nested too deeply, or in a circle: told where sizes are
            return result
        except TooManyNumbers as error:
            raise TooLarge("result_too_large", str(error)) from None
        refuse_infinite(plain)
        return plain

    return call


def _plain(hint: Any) -> bool:
    """Whether values of an annotation are JSON as they are."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _plain(get_args(hint)[0])
    if origin is Literal:
        return True
    if origin in (Union, types.UnionType, list, dict):
        return all(map(_plain, get_args(hint)))
    return hint in (str, int, float, bool, None, type(None), list, dict, Any) or is_typeddict(origin or hint)


def check_toolsets(name: str, toolsets: Any) -> None:
    """Raise :class:`callwright.UsageError` for what are no toolsets of the environment ``name``."""
    if isinstance(toolsets, str) or not isinstance(toolsets, Sequence):
        raise UsageError(f"environment {name!r}: toolsets must be a list of toolsets, not {toolsets!r:.80}")
    for toolset in toolsets:
        if isinstance(toolset, str):
            raise UsageError(
                f"environment {name!r}: {toolset!r:.80} is the name of a toolset. Names are looked up where a registry "
                f"makes the environment: callwright.environment({name!r}, toolsets=[{toolset!r:.80}])"
            )
