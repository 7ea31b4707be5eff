"""Composed environments by name: ``email+calendar``, in recipes, tasks, files and commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from attrs import evolve

from callwright.environments.composed.environment import ComposedEnvironment
from callwright.environments.protocol import Environment
from callwright.errors import UnknownName, UsageError
from callwright.registration import Lazy, Reach

#: Between the names of parts.
PLUS: Final = "+"
#: Options that every part is given which is not given its own.
_OF_ALL: Final = ("scale",)


def composed(name: str, find: Callable[[str], Lazy], create: Callable[..., Environment]) -> Lazy:
    """The registration of a name with ``+`` in it. ``find`` and ``create`` give and make a part by its name.

    Its options are those of the parts, by part: ``{"email": {"scale": 2}}``; ``scale`` alone is that of all.
    """
    names = tuple(name.split(PLUS))
    specs = {part: find(part) for part in names}

    def made(**options: Any) -> ComposedEnvironment:
        of_each = _of_each(names, options)
        return ComposedEnvironment([create(part, **of_each[part]) for part in names])

    def reaches(options: Mapping[str, Any]) -> Iterator[Reach]:
        of_each = _of_each(names, options)
        for part, spec in specs.items():
            for reach in spec.reach(of_each[part]):
                yield evolve(reach, options=(part, *(("name",) if "name" in reach.options else ())))

    summary = f"{' and '.join(names)} in one session"
    return Lazy(name, made, summary, reaches=reaches, plugin=specs[names[0]].plugin)


def _of_each(names: tuple[str, ...], options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    of_each: dict[str, dict[str, Any]] = {}
    for option in options:
        if option not in names and option not in _OF_ALL:
            what = f"option of the environment {PLUS.join(names)!r} (options are those of its parts, by part)"
            raise UnknownName(what, option, [*names, *_OF_ALL])
    for name in names:
        own = options.get(name, {})
        if not isinstance(own, Mapping):
            raise UsageError(f"the options of {name!r} must be an object, not {own!r:.80}")
        of_each[name] = {**{key: options[key] for key in _OF_ALL if key in options}, **own}
    return of_each
