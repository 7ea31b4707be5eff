"""What is wrong with the keys of a recipe, in words, and what is left of it to be looked at all the same."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Final, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from callwright.errors import UnknownName

_Model = TypeVar("_Model", bound=BaseModel)
#: Keys of a recipe without which the others ask for the same.
_APART: Final = frozenset(
    ("description", "seed", "time_limit", "isolation", "sampler", "user", "tracker", "turns", "clock", "hazards")
)
#: What a key may be a misspelling of.
_LOST: Final = frozenset((None, *_APART))


def in_words(problem: Any, path: tuple[str, ...], model: type[BaseModel]) -> str:
    """One of the errors of a :class:`pydantic.ValidationError` of a recipe; ``path`` is where it is."""
    dotted = ".".join(path) or "the recipe"
    if problem["type"] == "extra_forbidden":
        return str(UnknownName("recipe key", path[-1], _table(model, path[:-1]).model_fields))
    if problem["type"] == "missing":
        return f"{dotted} is missing"
    if problem["type"] == "model_type":
        named = "name" in _table(model, path).model_fields
        return f"{dotted} must be " + ("the name of a component, or a table with its 'name'" if named else "a table")
    return f"{dotted}: {problem['msg'].removeprefix('Value error, ')}"


def sound_part(
    model: type[_Model], data: dict[str, Any], error: ValidationError
) -> tuple[_Model, dict[str, Any]] | None:
    """The recipe without what ``error`` says is wrong; ``None`` where something else hangs on that.

    So it does on a table whose name is nearly that of another: what stands there may be meant for that one.
    """
    left: Any = copy.deepcopy(data)
    for problem in error.errors():
        path = problem["loc"]
        if problem["type"] == "extra_forbidden":
            if len(path) == 1 and UnknownName("recipe key", str(path[0]), model.model_fields).nearest not in _LOST:
                return None
            table = left
            for part in path[:-1]:
                table = table[part]
            del table[path[-1]]
        elif path and path[0] in _APART:
            left.pop(path[0], None)
        else:
            return None
    try:
        return model.model_validate(left), left
    except ValidationError:
        return None


def _table(model: type[BaseModel], path: Sequence[str]) -> type[BaseModel]:
    """The table of a model in which a key stands."""
    for key in path:
        annotation = model.model_fields[key].annotation if key in model.model_fields else None
        parts = (annotation, *get_args(annotation))
        model = next((one for one in parts if isinstance(one, type) and issubclass(one, BaseModel)), model)
    return model
