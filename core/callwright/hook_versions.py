"""The hooks as they were in every version, so that a plugin is told what has changed since the one it was written for.

A plugin says which that is by the attribute ``callwright_hooks`` of its module. ``hook_versions.json`` is the record:
the hooks of each version with their arguments. Whoever changes ``hookspecs.py`` raises its number and adds an entry; a
test says so.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any, Final

from callwright.errors import PluginError
from callwright.hookspecs import HOOKSPEC_VERSION

#: What a plugin calls the version that it was written for.
DECLARED: Final = "callwright_hooks"

#: How pluggy says that there is no such hook.
_UNKNOWN: Final = re.compile(r"unknown hook '(\w+)'")

#: Hooks by name, with the names of their arguments in order.
Hooks = Mapping[str, tuple[str, ...]]


@functools.cache
def recorded() -> Mapping[int, Hooks]:
    """The hooks of every version."""
    stated = json.loads(resources.files("callwright").joinpath("hook_versions.json").read_text(encoding="utf-8"))
    return {int(version): {hook: tuple(names) for hook, names in hooks.items()} for version, hooks in stated.items()}


def hooks_of(specifications: Any) -> Hooks:
    """The hooks of a module such as ``callwright.hookspecs``."""
    return {
        name: tuple(inspect.signature(value).parameters)
        for name, value in vars(specifications).items()
        if hasattr(value, "callwright_spec")
    }


def changes(before: Hooks, after: Hooks) -> Iterator[tuple[str, str]]:
    """What has changed, in words, each with its hook. Names alone count: hook functions take arguments by name."""
    for hook in sorted({*before, *after}):
        if hook not in after:
            yield hook, "is gone"
        elif hook not in before:
            yield hook, "is new"
        else:
            for name in before[hook]:
                if name not in after[hook]:
                    yield hook, f"no longer has the argument {name!r}"
            for name in after[hook]:
                if name not in before[hook]:
                    yield hook, f"has the new argument {name!r}"


def breaks(change: str) -> bool:
    """Whether a change can break a plugin that was right before."""
    return not change.startswith(("is new", "has the new"))


def misfit(plugin: object, name: str, error: Exception) -> PluginError:
    """The error for a plugin that does not fit the hooks, which names the version that it was written for."""
    said = f"plugin {name!r} does not fit the hooks: {' '.join(str(error).split())}"
    unknown = _UNKNOWN.search(said)
    if unknown is not None and (near := difflib.get_close_matches(unknown[1], recorded()[HOOKSPEC_VERSION], n=1)):
        said += f". Did you mean {near[0]!r}?"
    version = getattr(plugin, DECLARED, None)
    if type(version) is int and version != HOOKSPEC_VERSION:
        newer = version > HOOKSPEC_VERSION
        what = "upgrade Callwright" if newer else f"callwright plugins check {name} says what has changed since"
        stop = "" if said.endswith("?") else "."
        written = f"{stop} It was written for version {version} of the hooks"
        said += f"{written}, and these are version {HOOKSPEC_VERSION}: {what}"
    return PluginError(said)
