"""Event hooks under guard: what one raises is said to be its plugin's, by name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Generator, Iterable
from typing import Any

from callwright.errors import CallwrightError, PluginError


def guard(callers: Iterable[Any], plugin: object, name: str, events: Collection[str]) -> None:
    """Put the implementations that ``plugin``, named ``name``, has of ``events`` under guard.

    ``callers`` are pluggy's hook callers. An exception that is not one of ours becomes a
    :class:`callwright.errors.PluginError`, and so does ``sys.exit``. Errors of ours are what a hook means to raise:
    :class:`callwright.InfrastructureFailure` masks a sample.
    """
    for caller in callers:
        if caller.name in events:
            for implementation in caller.get_hookimpls():
                if implementation.plugin is plugin:
                    wraps = implementation.wrapper or implementation.hookwrapper
                    guarded = _guarded_wrapper if wraps else _guarded
                    implementation.function = guarded(implementation.function, name, caller.name)


def _guarded(function: Callable[..., Any], plugin: str, event: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except CallwrightError:
            raise
        except (Exception, SystemExit) as error:
            raise _fault(plugin, event, error) from error

    return call


def _guarded_wrapper(function: Callable[..., Any], plugin: str, event: str) -> Callable[..., Any]:
    """The same for a hook function that is a generator around the others, whose errors pass through it."""

    @functools.wraps(function)
    def call(*arguments: Any) -> Generator[Any, Any, Any]:
        try:
            return (yield from function(*arguments))
        except CallwrightError:
            raise
        except (Exception, SystemExit) as error:
            raise _fault(plugin, event, error) from error

    return call


def _fault(plugin: str, event: str, error: BaseException) -> PluginError:
    said = f"plugin {plugin!r}: its hook {event} raised {type(error).__name__}: {error}. This is a bug of the plugin"
    return PluginError(f"{said}; run without it, or see where: callwright --traceback …")
