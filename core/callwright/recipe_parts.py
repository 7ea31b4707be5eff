"""Parts of a recipe: each is made by its name, and what is wrong with any of them is told with file and line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from callwright.errors import CallwrightError, RecipeError, SeveralMistakes, UsageError
from callwright.plugins import Registry
from callwright.recipe_file import Choice, LoadedRecipe, LoadedTable

_Part = TypeVar("_Part")


def create_trainer(loaded: LoadedRecipe, registry: Registry) -> Any:
    """The trainer of a recipe."""
    return create_part(loaded, registry, "trainer", "trainer", loaded.recipe.trainer)


def create_part(loaded: LoadedTable, registry: Registry, kind: str, key: str | Sequence[str], choice: Choice) -> Any:
    """What a recipe chooses under a key, or a path of keys. Errors name its file and line."""
    at = (key,) if isinstance(key, str) else tuple(key)
    try:
        return registry.create(kind, choice.name, **choice.options)
    except RecipeError:
        raise
    except UsageError as error:
        each = error.each if isinstance(error, SeveralMistakes) else (error,)
        raise RecipeError("\n".join(_located(loaded, at, choice, mistake) for mistake in each)) from error


def _located(loaded: LoadedTable, at: Sequence[str], choice: Choice, mistake: UsageError) -> str:
    """A mistake with the line of the option that it is about."""
    path = getattr(mistake, "path", ())
    if not path or path[0] not in choice.options:
        named = getattr(mistake, "name", None)  # what an UnknownName is about; its message also mentions known names
        mentioned = (name for name in choice.options if f"{name!r}" in str(mistake))
        path = (named if named in choice.options else next(mentioned, "name"),)
    return str(loaded.error(str(mistake), *at, *path))


class Together:
    """Makes the parts of a recipe one after another, and raises what is wrong with any of them at once."""

    def __init__(self) -> None:
        self.mistakes: list[UsageError] = []
        self._others: list[CallwrightError] = []

    def made(self, make: Callable[[], _Part]) -> _Part | None:
        """What it makes, or ``None`` for a mistake."""
        try:
            return make()
        except UsageError as error:
            self.mistakes.append(error)
        except CallwrightError as error:  # a missing extra, a broken plugin: said where nothing is the user's mistake
            self._others.append(error)
        return None

    def check(self) -> None:
        """Raise what was wrong, one line for each mistake."""
        if len(self.mistakes) == 1:
            raise self.mistakes[0]
        if self.mistakes:
            raise RecipeError("\n".join(dict.fromkeys(map(str, self.mistakes)))) from self.mistakes[0]
        if self._others:
            raise self._others[0]
