"""What a dry run plans without: data and models that are not there yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

from callwright.environments.protocol import Environment
from callwright.errors import CallwrightError, NotThere, RecipeError, UnknownName, UsageError
from callwright.plugins import Registry
from callwright.recipe_file import LoadedRecipe
from callwright.walk.tasks import Corpus, Task


@frozen
class AbsentCorpus:
    """A corpus whose files are not there: it has the splits that a recipe names, without a task in them."""

    name: str
    #: What is not there, and what to do.
    reason: str
    _named: tuple[str, ...]

    @property
    def splits(self) -> Mapping[str, int]:
        """The splits that the recipe names, of no tasks."""
        return dict.fromkeys(self._named, 0)

    @property
    def environment(self) -> Environment:
        """Raises :class:`callwright.errors.NotThere`: nothing can be executed."""
        raise NotThere(self.reason)

    def __getitem__(self, split: str) -> Sequence[Task]:
        """No tasks. Raises :class:`callwright.errors.UnknownName` for a split that the recipe does not name."""
        if split not in self._named:
            raise UnknownName(f"split of {self.name}", split, self._named)
        return ()

    def task(self, task_id: str) -> Task:
        """Raises :class:`callwright.errors.NotThere`: there is none."""
        raise NotThere(self.reason)


def corpus_of(loaded: LoadedRecipe, registry: Registry) -> Corpus | AbsentCorpus | None:
    """The corpus of a recipe, or what stands for it where its files are not there.

    ``None`` where it cannot be made for another reason, which whoever makes the pipeline says with file and line.
    """
    chosen = loaded.recipe.corpus
    try:
        made: Corpus = registry.create("corpus", chosen.name, **chosen.options)
    except NotThere as error:
        return AbsentCorpus(chosen.name, str(error), tuple(dict.fromkeys((chosen.train, chosen.evaluation))))
    except (CallwrightError, TypeError, ValueError):
        return None
    return made


def absent_model(loaded: LoadedRecipe) -> str | None:
    """The folder of ``[model]`` that is not there; ``None`` if there is one, or none is named."""
    path: Any = loaded.recipe.model.get("path")
    return path if isinstance(path, str) and not Path(path).exists() else None


def about_more_than_absence(mistakes: Sequence[UsageError], loaded: LoadedRecipe) -> list[UsageError]:
    """The mistakes without that of a model folder which is not there."""
    if absent_model(loaded) is None:
        return list(mistakes)
    return [one for one in mistakes if not (isinstance(one, RecipeError) and one.key == ("model", "path"))]
