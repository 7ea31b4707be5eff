"""Kinds of users by name: a task names one with its options, and gets a fresh user for every episode."""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from callwright.errors import DataError, UsageError
from callwright.plugins import Registry, default_registry
from callwright.walk.users.said import UserSpec
from callwright.walk.users.user import User, UserKind

if TYPE_CHECKING:
    from callwright.recipe_file import LoadedRecipe
    from callwright.walk.tasks import Task

_KEPT: Final = 1024


class UserKinds:
    """Makes the users of tasks by a registry. A kind is made once for the same options, as long as it is kept.

    ``given`` are options by the name of a kind, from a recipe or a script: they take the place of those that tasks
    state. Only these may reach for something outside of the process: a task comes from a file, and its user must not
    send a secret to a host that the file names.
    """

    def __init__(self, registry: Registry, given: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self._registry = weakref.ref(registry)
        self.given = {name: dict(options) for name, options in (given or {}).items()}
        self._made: dict[str, UserKind] = {}
        self._guard = threading.Lock()

    def __reduce__(self) -> Any:
        return (UserKinds, (self.registry, self.given)) if self.given else (kinds_of, (self.registry,))

    @property
    def registry(self) -> Registry:
        """Where the kinds come from."""
        registry = self._registry()
        assert registry is not None, "whoever makes users keeps their registry"
        return registry

    def kind(self, spec: UserSpec) -> UserKind:
        """The kind of user that a task names.

        Raises :class:`callwright.UsageError` for a name that is not registered, for options that it does not take, and
        for those of the task that reach for something.
        """
        key = json.dumps([spec.name, spec.options], sort_keys=True)
        with self._guard:
            made = self._made.get(key)
            if made is None:
                if len(self._made) >= _KEPT:
                    self._made.clear()
                made = self._made[key] = self._make(spec)
            return made

    def _make(self, spec: UserSpec) -> UserKind:
        given = self.given.get(spec.name, {})
        own = {name: value for name, value in spec.options.items() if name not in given}
        reached = [one for one in self.registry.spec("user", spec.name).reach(own) if {*one.options} & own.keys()]
        if reached:
            raise UsageError(
                f"it {reached[0].what}, which a task must not ask for. Say so in the table 'user' of a recipe, or by "
                f"Conditions(users=UserKinds(registry, {{{spec.name!r}: options}}))"
            )
        made: UserKind = self.registry.create("user", spec.name, **own, **given)
        return made

    def begin(self, task: Task, seed: int) -> User:
        """A user for one episode of a task that names one; ``seed`` is that of the episode.

        Raises :class:`callwright.errors.DataError`, which names the task.
        """
        assert task.user is not None
        try:
            return self.kind(task.user).begin(task, user_seed(task, seed))
        except (UsageError, DataError) as error:
            raise DataError(f"task {task.id!r}: the user {task.user.name!r}: {error}") from error


def kinds_of(registry: Registry) -> UserKinds:
    """The kinds of a registry: the same ones each time, so that what they hold is shared."""
    with _guard:
        return _of_registries.setdefault(registry, UserKinds(registry))


def kinds_with(registry: Registry, loaded: LoadedRecipe) -> UserKinds | None:
    """The kinds of a registry with the options that a recipe gives one of them; ``None`` for a recipe that gives none.

    Raises :class:`callwright.errors.RecipeError` for a kind that is none. Its options go with those of tasks, so that
    it is made when an episode begins.
    """
    choice = loaded.recipe.user
    if choice is None:
        return None
    try:
        registry.spec("user", choice.name)
    except UsageError as error:
        raise loaded.error(str(error), "user") from error
    return UserKinds(registry, {choice.name: choice.options})


def usual_kinds() -> UserKinds:
    """The kinds of the registry of the process."""
    return kinds_of(default_registry())


_of_registries: Final[weakref.WeakKeyDictionary[Registry, UserKinds]] = weakref.WeakKeyDictionary()
_guard: Final = threading.Lock()


def user_seed(task: Task, seed: int) -> int:
    """What the user of an episode draws from: 31 bits of the task, its seed, and the seed of the episode."""
    text = f"user/{seed}/{task.seed}/{task.id}"
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest()) >> 1
