"""Options of components as pydantic tables: typed and documented, and a mistake is told with the way to its key.

A plugin names the table of a component where it registers it: ``Lazy(…, takes="package.options:Mine")``. The table lies
in a module that imports nothing heavy, so that options are checked and listed without torch or a server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from callwright.errors import UnknownName, UsageError, raise_together

_Options = TypeVar("_Options", bound=BaseModel)


class OptionTable(BaseModel):
    """A table of options. It takes no others than it names, no number that is not finite, and does not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False, allow_inf_nan=False)


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


def read_options(model: type[_Options], given: Mapping[str, Any], owner: str) -> _Options:
    """Validate a table. Raises :class:`callwright.UsageError`, naming its key, for the one thing that is wrong, and
    :class:`callwright.errors.SeveralMistakes` for several.
    """
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        try:
            raise_together([_mistake(model, problem, owner) for problem in error.errors()])
        except UsageError as mistake:
            raise mistake from error
        raise


def _mistake(model: type[BaseModel], problem: Any, owner: str) -> UsageError:
    path = tuple(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        table: Any = model
        for key in path[:-1]:
            if not key.isdecimal():  # a place in a list of tables
                table = _inner(table.model_fields[key].annotation)
        where = f"option of {owner}" + (f" in {'.'.join(map(repr, path[:-1]))}" if len(path) > 1 else "")
        return UnknownOption(where, path, table.model_fields)
    key = ".".join(map(repr, path[:1])) + "".join(f".{part}" for part in path[1:])
    message = problem["msg"].removeprefix("Value error, ")
    if path and message.startswith("must be "):
        return WrongOption(f"{owner}: {key} {message}", path)
    return WrongOption(f"{owner}: {key}: {message}" if path else f"{owner}: {message}", path)


def _inner(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(part for part in annotation.__args__ if isinstance(part, type) and issubclass(part, BaseModel))
