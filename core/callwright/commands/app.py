"""What the options before the command say, and the plugins that they leave."""

from __future__ import annotations

import importlib
import shlex
import sys
from functools import partial
from pathlib import Path

import click
from attrs import define, field

from callwright.errors import PluginError, UsageError
from callwright.machines.redaction import redacted_words
from callwright.plugins import Registry, load_plugins


@define(eq=False)
class App:
    """``ctx.obj`` of every command, those of plugins included. Plugins are loaded when ``registry`` is first read."""

    blocked: list[str] = field(factory=list)
    modules: list[str] = field(factory=list)
    trace_hooks: bool = False
    traceback: bool = False
    verbosity: int = 0
    argv: tuple[str, ...] = ()
    _registry: Registry | None = None

    @property
    def registry(self) -> Registry:
        """The plugins of this invocation.

        Raises :class:`callwright.errors.NameClash` and :class:`callwright.errors.UnknownName`.
        """
        if self._registry is None:
            trace = partial(click.echo, err=True) if self.trace_hooks else None
            registry = load_plugins(blocked=self.blocked, trace=trace)
            for name in self.modules:
                registry.add(_import(name), name=name)
                if not registry.plugin(name).hooks:
                    raise UsageError(
                        f"-p {name}: this module is no plugin of Callwright: it has no function marked with "
                        "@callwright.hookimpl. Was another module meant?"
                    )
            self._registry = registry
        return self._registry

    @property
    def command(self) -> str:
        """The command line that started this process, for the report: without the secrets in it."""
        return shlex.join(["callwright", *redacted_words(self.argv)])

    def plugin_options(self) -> list[str]:
        """The ``-p`` options as they were given, for a command line that goes on with this one."""
        return [part for name in (*(f"no:{name}" for name in self.blocked), *self.modules) for part in ("-p", name)]


def _import(name: str) -> object:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # last, so that nothing in this folder can stand in for another module
    try:
        return importlib.import_module(name)
    except SystemExit as error:
        raise PluginError(f"-p {name}: the module ends the process when it is imported: sys.exit({error})") from error
    except Exception as error:  # somebody else's module: whatever goes wrong in it is reported as its own
        raise PluginError(f"-p {name}: the module cannot be imported: {type(error).__name__}: {error}") from error
