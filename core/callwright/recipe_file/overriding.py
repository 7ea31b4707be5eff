"""What the command line changes of a recipe: ``--set a.b=c`` sets a value, ``--unset a.b`` leaves a key out.

In Python both are texts of one list, in their order: ``"a.b=c"`` and ``"-a.b"``.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel

from callwright.errors import RecipeError, UnknownName

#: What was changed: the text of a value by its key, ``None`` for a key that was left out.
Applied = Mapping[str, str | None]

#: Before a key that is to be left out. Of a key that is set it cannot be the beginning: there is no ``=``.
LEAVE_OUT: Final = "-"
#: Tables and lists in one another: far more than any component reads, far less than would exhaust the stack.
DEEPEST: Final = 64
#: Digits that Python reads as an integer unless it is told to read more.
MOST_DIGITS: Final = 4300
TOO_DEEP: Final = f"tables or lists stand more than {DEEPEST} deep in one another"
TOO_MANY_DIGITS: Final = f"an integer of more than {MOST_DIGITS} digits"


def override_words(overrides: Iterable[str]) -> list[str]:
    """The options of a command line that say the same as some overrides."""
    return [word for one in overrides for word in _words(one)]


def _words(override: str) -> tuple[str, str]:
    return ("--unset", override[len(LEAVE_OUT) :]) if _leaves_out(override) else ("--set", override)


def _leaves_out(override: str) -> bool:
    return override.startswith(LEAVE_OUT) and "=" not in override


def apply_override(model: type[BaseModel], data: dict[str, Any], override: str) -> tuple[str, str | None]:
    """Change the data of a recipe; returns the key and the text of its value, ``None`` for a key that is left out.

    Raises :class:`callwright.errors.RecipeError` with the option that says it.
    """
    return _unset(data, override[len(LEAVE_OUT) :]) if _leaves_out(override) else _set(model, data, override)


def _set(model: type[BaseModel], data: dict[str, Any], override: str) -> tuple[str, str]:
    key, sign, raw = override.partition("=")
    parts = [part.strip() for part in key.split(".")]
    if not sign or not all(parts):
        raise RecipeError(f"--set {override}: expected KEY=VALUE, such as algorithm.name=dapo")
    try:
        value: Any = tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        value = raw.strip()  # a bare word is a string
    except RecursionError as error:
        raise RecipeError(f"--set {override:.60}…: {TOO_DEEP}") from error
    except ValueError as error:
        raise RecipeError(f"--set {override:.60}…: {TOO_MANY_DIGITS}") from error
    node = data
    for part in parts[:-1]:
        inner = node.get(part, _usual(model, part) if node is data else {})
        if isinstance(inner, str):
            inner = {"path" if parts[0] == "model" else "name": inner}
        if not isinstance(inner, dict):
            raise RecipeError(f"--set {override}: {part!r} is a value, not a table")
        node[part] = inner
        node = inner
    if parts == ["trainer"] and isinstance(value, str) and isinstance(data.get("trainer"), dict):
        parts, node = ["trainer", "name"], data["trainer"]  # what training is does not hang on who does it
    node[parts[-1]] = value
    return ".".join(parts), raw


def _usual(model: type[BaseModel], key: str) -> Any:
    """What a key is whose component is not stated: the name of the usual one, whose options can be set all the same."""
    field = model.model_fields.get(key)
    usual = None if field is None else field.get_default(call_default_factory=True)
    return getattr(usual, "name", {})


def _unset(data: dict[str, Any], key: str) -> tuple[str, None]:
    parts = [part.strip() for part in key.split(".")]
    node: Any = data
    for part in parts[:-1]:
        node = node.get(part) if isinstance(node, dict) else None
    if not isinstance(node, dict) or parts[-1] not in node:
        stated = sorted(_keys(data))
        raise RecipeError(f"--unset {key}: {UnknownName('key in the recipe', '.'.join(parts), stated)}")
    del node[parts[-1]]
    return ".".join(parts), None


def _keys(data: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """Every key that is stated, tables included, by its path."""
    for key, value in data.items():
        yield f"{within}{key}"
        if isinstance(value, Mapping):
            yield from _keys(value, f"{within}{key}.")
