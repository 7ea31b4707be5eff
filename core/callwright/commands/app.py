"""What the options before the command say, and the plugins that they leave."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import importlib.metadata
import re
import shlex
import sys
import traceback
from functools import partial
from pathlib import Path
from typing import Final

import click
from attrs import define, field

from callwright.commands.safe_text import say
from callwright.errors import PluginError, UsageError
from callwright.machines.redaction import redacted_words
from callwright.plugins import Registry, load_plugins

_MODULE: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@define(eq=False)
class App:
    """``ctx.obj`` of every command, those of plugins included. Plugins are loaded when ``registry`` is first read."""

    blocked: list[str] = field(factory=list)
    modules: list[str] = field(factory=list)
    trace_hooks: bool = False
    traceback: bool = False
    verbosity: int = 0
    argv: tuple[str, ...] = ()
    #: Recipes that a command of this process wrote of what was typed: what they start was asked for.
    typed: set[Path] = field(factory=set)
    #: Whose command is run, where somebody else's is: ``"plugin 'mine': its command 'look'"``.
    running: str = ""
    _registry: Registry | None = None

    @property
    def registry(self) -> Registry:
        """The plugins of this invocation.

        Raises :class:`callwright.errors.NameClash` and :class:`callwright.errors.UnknownName`.
        """
        if self._registry is None:
            with contextlib.redirect_stdout(sys.stderr):  # what plugins print is no output of the command
                self._registry = self._loaded()
        return self._registry

    def _loaded(self) -> Registry:
        trace = partial(click.echo, err=True) if self.trace_hooks else None
        registry = load_plugins(blocked=self.blocked, trace=trace)
        for name in self.modules:
            registry.add(_import(name), name=name)
            if not registry.plugin(name).hooks:
                raise UsageError(
                    f"-p {name}: this module is no plugin of Callwright: it has no function marked with "
                    "@callwright.hookimpl. Was another module meant?"
                )
        return registry

    @property
    def command(self) -> str:
        """The command line that started this process, for the report: without the secrets in it."""
        return shlex.join(["callwright", *redacted_words(self.argv)])

    def recall(self, folder: str | Path) -> None:
        """Add the plugin modules that a run folder remembers, as ``-p`` would, and say so.

        They are code: only those are imported that ``-p`` would find from here by the same name, none of Python's own
        and none that came with the folder. One that is not found is said and left out. Raises
        :class:`callwright.errors.PluginError` for a broken one.
        """
        from callwright.training.ledger.ingredients import plugin_digests

        for module, source in _remembered(Path(folder)):
            loaded = {name for info in self.registry.plugins for name in (info.name, info.module)}
            if module in loaded or module in self.blocked:
                continue
            if _is_inside(module, Path(folder)):  # a folder from somewhere else does not bring its own code
                say(f"{folder} names a module of its own as a plugin, which is not loaded; -p {module} loads it")
                continue
            if not _can_be_found(module):
                say(
                    f"{folder} remembers the plugin {module}, which cannot be imported from here: start in the folder "
                    "where its module is"
                )
                continue
            say(f"with -p {module}, which {folder} remembers")
            with contextlib.redirect_stdout(sys.stderr):
                self.registry.add(_import(module), name=module)
            self.modules.append(module)
            if plugin_digests(self.registry)[module].get("source") != source:
                say(f"the source of {module} is no longer what it was in {folder}")

    def plugin_options(self) -> list[str]:
        """The ``-p`` options as they were given, for a command line that goes on with this one."""
        return [part for name in (*(f"no:{name}" for name in self.blocked), *self.modules) for part in ("-p", name)]


def _remembered(folder: Path) -> list[tuple[str, str]]:
    """The modules that were plugins of a run, with the digests of their sources."""
    from callwright.training.ledger.account import read_ledger

    made_of = (read_ledger(folder) or {}).get("made_of", {})
    plugins = made_of.get("plugins", {}) if isinstance(made_of, dict) else {}
    found = []
    for plugin in plugins.values() if isinstance(plugins, dict) else ():
        module = plugin.get("module") if isinstance(plugin, dict) else None
        if isinstance(module, str) and _MODULE.fullmatch(module) and "source" in plugin:
            found.append((module, str(plugin["source"])))
    return found


def _is_inside(module: str, folder: Path) -> bool:
    """Whether a module of this name would be, or be found by importing, something in a folder."""
    _search_here()
    parts, folder = module.split("."), folder.resolve()
    return any(
        (Path(place) / Path(*parts[: depth + 1])).resolve().is_relative_to(folder)
        for place in sys.path
        for depth in range(len(parts))
    )


def _can_be_found(module: str) -> bool:
    """Whether it can be imported from here, and is none of Python's own."""
    from callwright.training.ledger.ingredients import source_files

    _search_here()
    return bool(source_files(module))


def _search_here() -> None:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # last, so that nothing in this folder can stand in for another module


def _import(name: str) -> object:
    _search_here()
    try:
        return importlib.import_module(name)
    except SystemExit as error:
        raise PluginError(f"-p {name}: the module ends the process when it is imported: sys.exit({error})") from error
    except Exception as error:  # somebody else's module: whatever goes wrong in it is reported as its own
        meant = _meant(name) if isinstance(error, ModuleNotFoundError) and error.name == name else ""
        said = f"the module cannot be imported: {type(error).__name__}: {error}"
        raise PluginError(f"-p {name}: {said}{_where(error)}{meant}") from error


def _where(error: Exception) -> str:
    """``" (module.py, line 3)"``: the innermost line of what the module's own files have of an error."""
    if isinstance(error, SyntaxError):  # which says it itself
        return ""
    passed = [(Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    machinery = {Path(__file__), Path(importlib.__file__)}
    theirs = [(path, line) for path, line in passed if path not in machinery and path.is_file()]
    if not theirs:
        return ""
    folder = theirs[0][0].parent  # not what is installed in an environment inside of it
    inner = [(path.relative_to(folder), line) for path, line in theirs if path.is_relative_to(folder)]
    path, line = [(path, line) for path, line in inner if "site-packages" not in path.parts][-1]
    return f" ({path}, line {line})"


def _meant(name: str) -> str:
    """The module of this folder, or the plugin, whose name is nearly that."""
    if name.endswith(".py") and Path(name).is_file():
        return f". -p takes the name of a module: {Path(name).stem!r}"
    here = {path.stem for path in Path.cwd().glob("*.py")} | {
        path.parent.name for path in Path.cwd().glob("*/__init__.py")
    }
    if near := difflib.get_close_matches(name, sorted(here), n=1):
        return f". Did you mean {near[0]!r}?"
    installed = importlib.metadata.entry_points(group="callwright").names
    if name in installed:
        return f". The plugin {name!r} is installed, so it is there without -p"
    if near := difflib.get_close_matches(name, sorted(installed), n=1):
        return f". The plugin {near[0]!r} is installed, so it is there without -p"
    return f". There is no {name}.py here: -p takes a module of this folder ({Path.cwd()}) or an installed one"
