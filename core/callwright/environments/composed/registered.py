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
_OF_ALL: Final = ("scale", "page_bytes", "compact")
#: Options of the whole.
_OF_THE_WHOLE: Final = ("people", "money")


def composed(name: str, find: Callable[[str], Lazy], create: Callable[..., Environment]) -> Lazy:
    """The registration of a name with ``+`` in it. ``find`` and ``create`` give and make a part by its name.

    Its options are those of the parts, by part: ``{"email": {"scale": 2}}``; ``scale``, ``page_bytes`` and ``compact``
    are also those of all, and ``people`` and ``money`` are those of :class:`.environment.ComposedEnvironment`.
    """
    names = tuple(name.split(PLUS))
    specs = {part: find(part) for part in names}

    def made(**options: Any) -> ComposedEnvironment:
        of_all = {option: options.pop(option) for option in _OF_THE_WHOLE if option in options}
        of_each = _of_each(names, options)
        return ComposedEnvironment([create(part, **of_each[part]) for part in names], **of_all)

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
        if option not in names and option not in (*_OF_ALL, *_OF_THE_WHOLE):
            what = f"option of the environment {PLUS.join(names)!r} (options are those of its parts, by part)"
            raise UnknownName(what, option, [*names, *_OF_ALL, *_OF_THE_WHOLE])
    for name in names:
        own = options.get(name, {})
        if not isinstance(own, Mapping):
            raise UsageError(f"the options of {name!r} must be an object, not {own!r:.80}")
        of_each[name] = {**{key: options[key] for key in _OF_ALL if key in options}, **own}
    return of_each


def among_tools(name: str, find: Callable[[str, str], Lazy]) -> Lazy:
    """The registration of a corpus with ``+`` in its name: its tasks are offered tools of the environments behind it.

    ``find`` gives a component by its kind and name.
    """
    corpus, *others = name.split(PLUS)
    specs = {"corpus": find("corpus", corpus), **{part: find("environment", part) for part in others}}

    def reaches(options: Mapping[str, Any]) -> Iterator[Reach]:
        for part, spec in specs.items():
            of_parts = options if part == "corpus" else options.get("environments", {})
            own = of_parts.get(part, {}) if isinstance(of_parts, Mapping) else {}
            for reach in spec.reach(own if isinstance(own, Mapping) else {}):
                yield evolve(reach, options=("corpus" if part == "corpus" else "environments", "name"))

    return Lazy(
        name,
        "callwright.walk.distractors.corpus:among_tools",
        f"{corpus} among tools of {' and '.join(others)}",
        options={"names": (corpus, *others)},
        reaches=reaches,
        plugin=specs["corpus"].plugin,
    )
