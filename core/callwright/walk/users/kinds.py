"""Kinds of users by name: a task names one with its options, and gets a fresh user for every episode."""

from __future__ import annotations

import json
import threading
import weakref
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from callwright.errors import DataError, UsageError
from callwright.plugins import Registry, default_registry
from callwright.walk.users.said import UserSpec
from callwright.walk.users.user import User, UserKind

if TYPE_CHECKING:
    from callwright.walk.tasks import Task

_KEPT: Final = 1024


class UserKinds:
    """Makes the users of tasks by a registry. A kind is made once for the same options, as long as it is kept."""

    def __init__(self, registry: Registry) -> None:
        self._registry = weakref.ref(registry)
        self._made: dict[str, UserKind] = {}
        self._guard = threading.Lock()

    def __reduce__(self) -> Any:
        return kinds_of, (self.registry,)

    @property
    def registry(self) -> Registry:
        """Where the kinds come from."""
        registry = self._registry()
        assert registry is not None, "whoever makes users keeps their registry"
        return registry

    def kind(self, spec: UserSpec) -> UserKind:
        """The kind of user that a task names.

        Raises :class:`callwright.UsageError` for a name that is not registered and for options that it does not take.
        """
        key = json.dumps([spec.name, spec.options], sort_keys=True)
        with self._guard:
            made = self._made.get(key)
            if made is None:
                if len(self._made) >= _KEPT:
                    self._made.clear()
                made = self._made[key] = self.registry.create("user", spec.name, **spec.options)
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


def usual_kinds() -> UserKinds:
    """The kinds of the registry of the process."""
    return kinds_of(default_registry())


_of_registries: Final[weakref.WeakKeyDictionary[Registry, UserKinds]] = weakref.WeakKeyDictionary()
_guard: Final = threading.Lock()


def user_seed(task: Task, seed: int) -> int:
    """What the user of an episode draws from: 31 bits of the task, its seed, and the seed of the episode."""
    text = f"user/{seed}/{task.seed}/{task.id}"
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest()) >> 1
