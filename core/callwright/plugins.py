"""Plugins: discovery by entry points, blocking, naming, tracing, lazy loading.

A :class:`Registry` is a plain object. Two of them live side by side in one process without knowing of each other.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import pickle
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import pluggy
from attrs import evolve, frozen

from callwright import hookspecs
from callwright.errors import (
    CallwrightError,
    MissingExtra,
    NameClash,
    PluginError,
    UnknownName,
    UsageError,
)
from callwright.guarding import guard
from callwright.hook_versions import misfit
from callwright.language.shortening import shortened
from callwright.pickling import Made, remember
from callwright.registration import Lazy as Lazy
from callwright.registration import check_made, check_options, parameters_of

if TYPE_CHECKING:
    from callwright.options import OptionTable

GROUP: Final = "callwright"

#: Kind of component (as people say it) and the hook that registers it.
KINDS: Final[Mapping[str, str]] = {
    "parser": "callwright_parsers",
    "toolset": "callwright_toolsets",
    "environment": "callwright_environments",
    "reward component": "callwright_reward_components",
    "reward recipe": "callwright_reward_recipes",
    "sampler": "callwright_samplers",
    "algorithm": "callwright_algorithms",
    "trainer": "callwright_trainers",
    "corpus": "callwright_corpora",
    "benchmark": "callwright_benchmarks",
    "synthesizer": "callwright_synthesizers",
    "teacher": "callwright_teachers",
    "user": "callwright_users",
    "model check": "callwright_model_checks",
    "tracker": "callwright_trackers",
    "framework": "callwright_frameworks",
    "log format": "callwright_log_formats",
    "command": "callwright_commands",
}
#: Options of a kind that the core itself sets on what a factory made: the same ones for every component.
#: One that a factory takes itself stays its own.
OF_THE_CORE: Final[Mapping[str, tuple[str, ...]]] = {
    "reward recipe": ("truncated", "floor"),
    "environment": ("page_bytes", "compact"),
}
EVENTS: Final = (
    "callwright_prompt",
    "callwright_tool_call",
    "callwright_attempt_scored",
    "callwright_training_step",
    "callwright_run_finished",
    "callwright_synthesis_finished",
)


@frozen
class PluginInfo:
    """A plugin as ``callwright plugins list`` shows it."""

    name: str
    distribution: str = ""
    version: str = ""
    module: str = ""
    hooks: tuple[str, ...] = ()
    blocked: bool = False
    error: str = ""


class _CoreEvents:
    """The innermost implementation of ``callwright_tool_call``: it executes the call."""

    @hookspecs.hookimpl(trylast=True)
    def callwright_tool_call(self, session: Any, call: Any, arguments: dict[str, object], by: str) -> Any:
        from callwright.environments.living.called_by_users import call_by

        return call_by(by, session, call, arguments)


@frozen
class PluginSource:
    """Where the plugins of a registry come from: a value that reaches other processes and machines.

    ``blocked`` are the plugins that are left out, ``None`` if none was loaded by its entry point; ``modules`` are the
    names and import paths of those that were added.
    """

    blocked: frozenset[str] | None
    modules: tuple[tuple[str, str], ...] = ()

    def load(self) -> Registry:
        """The same plugins again."""
        registry = Registry()
        if self.blocked is not None:
            registry.load_entry_points(self.blocked)
        for name, path in self.modules:
            registry.add(_imported(path), name=name)
        return registry


@functools.lru_cache(maxsize=8)
def _shared(source: PluginSource) -> Registry:
    """The registry that makes what was sent to this process: the default one where it has the same plugins."""
    usual = default_registry()
    return usual if usual.source() == source else source.load()


def registered(source: PluginSource, kind: str, name: str, options: bytes) -> Any:
    """Make the component that a registry of another process made; ``options`` are pickled."""
    return _shared(source).create(kind, name, **(pickle.loads(options) if options else {}))


def _imported(path: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # as the option -p of the command line does
    return importlib.import_module(path)


class Registry:
    """The plugins of one application and the components that they registered."""

    def __init__(self) -> None:
        self._manager: Final = pluggy.PluginManager(GROUP)
        self._manager.add_hookspecs(hookspecs)
        self._manager.register(_CoreEvents(), name="callwright-core")
        self._plugins: dict[str, PluginInfo] = {}
        self._components: dict[str, dict[str, Lazy]] = {}
        self._made: dict[tuple[str, str], Any] = {}
        self._write: Callable[[str], object] | None = None
        #: How to make the same registry elsewhere: the blocked plugins (``None``: no entry points), added modules …
        self._blocked: frozenset[str] | None = None
        self._modules: list[tuple[str, str]] = []
        #: … and the names of added objects, which cannot be found again by name.
        self._objects: list[str] = []

    @property
    def hook(self) -> pluggy.HookRelay:
        """The hooks, to be called by the core."""
        return self._manager.hook

    def listens(self, event: str) -> bool:
        """Whether any plugin implements this event hook. Checked before an event is fired, so silence is free."""
        implementations = getattr(self._manager.hook, event).get_hookimpls()
        return len(implementations) > (1 if event == "callwright_tool_call" else 0)

    @contextlib.contextmanager
    def hearing(self, listener: object) -> Iterator[None]:
        """Let an object of this process hear events until the end of the block.

        It is no plugin: it registers nothing, is in no list, and no other process is asked to have it.
        """
        self._manager.register(listener)
        try:
            yield
        finally:
            self._manager.unregister(listener)

    def trace(self, write: Callable[[str], object]) -> None:
        """Report every hook call and its result, one line each, to ``write``: registration from now on, and events."""
        self._write = write

        def before(name: str, implementations: Any, arguments: Any) -> None:
            given = ", ".join(f"{key}={_shown(value)}" for key, value in arguments.items())
            write(f"hook {name}({given}) -> {len(implementations)} implementation(s)")

        def after(outcome: Any, name: str, implementations: Any, arguments: Any) -> None:
            error = outcome.exception
            write(f"hook {name} " + (f"raised {error!r}" if error else f"returned {_shown(outcome.get_result())}"))

        self._manager.add_hookcall_monitoring(before, after)

    def load_entry_points(self, blocked: Iterable[str] = ()) -> None:
        """Load every plugin of the entry-point group, one at a time, so that a broken one names itself.

        A blocked plugin is never imported. A broken plugin is remembered with its error (:attr:`plugins`) and does
        not stop the others; asking for a component that nobody else offers then mentions it.
        """
        blocked = self._blocked = frozenset(blocked)
        found: dict[str, metadata.EntryPoint] = {}
        for point in metadata.entry_points(group=GROUP):
            other = found.setdefault(point.name, point)
            if other.value != point.value and point.name not in blocked:
                raise NameClash(
                    f"two distributions name a plugin {point.name!r}: {_origin(other)} and {_origin(point)}. "
                    "Uninstall one of them"
                )
        for name in sorted(blocked - found.keys()):
            raise UnknownName("plugin", name, found, hint="(after -p no:)")
        known: dict[metadata.Distribution | None, tuple[str, str]] = {None: ("", "")}
        for name, point in sorted(found.items()):
            if point.dist is not None and point.dist not in known:  # its metadata are parsed each time they are read
                about = point.dist.metadata
                known[point.dist] = about["Name"], about["Version"]
            distribution, version = known[point.dist]
            info = PluginInfo(name, distribution=distribution, version=version, module=point.value)
            if name in blocked:
                self._plugins[name] = evolve(info, blocked=True)
                continue
            try:
                self.add(point.load(), name=name, info=info)
            except NameClash:
                raise
            except (Exception, SystemExit) as error:  # a plugin is somebody else's code: any failure is theirs
                reason = str(error) if isinstance(error, PluginError) else f"{type(error).__name__}: {error}"
                self._plugins[name] = evolve(
                    info,
                    error=f"plugin {name!r} ({info.distribution} {info.version}) is broken: {reason}. "
                    f"Run without it: callwright -p no:{name} …",
                )

    def add(self, plugin: ModuleType | object, *, name: str, info: PluginInfo | None = None) -> None:
        """Register a plugin module or object and the components that it yields.

        Raises :class:`callwright.errors.NameClash` if a name of a kind is taken, :class:`callwright.errors.PluginError`
        if a hook does not fit its specification or yields something else than :class:`Lazy` specs. Then nothing of it
        stays.
        """
        if self._manager.has_plugin(name):
            raise NameClash(f"a plugin named {name!r} is already registered")
        if self._manager.is_registered(plugin):
            raise NameClash(f"{name!r} is already registered, as the plugin {self._manager.get_name(plugin)!r}")
        if info is None:
            if isinstance(plugin, ModuleType) and plugin.__spec__ is not None:
                self._modules.append((name, plugin.__name__))
            else:
                self._objects.append(name)
            info = PluginInfo(name, module=getattr(plugin, "__name__", type(plugin).__name__))
        try:
            self._manager.register(plugin, name=name)
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            if self._manager.has_plugin(name):
                self._manager.unregister(name=name)
            raise misfit(plugin, name, error) from error
        callers = self._manager.get_hookcallers(plugin) or []
        guard(callers, plugin, name, EVENTS)
        self._plugins[name] = evolve(info, hooks=tuple(sorted(caller.name for caller in callers)))
        try:
            self._collect(plugin, name)
        except BaseException:
            self._manager.unregister(name=name)
            for components in self._components.values():
                for component in [key for key, lazy in components.items() if lazy.plugin == name]:
                    del components[component]
            del self._plugins[name]
            raise

    def _registered(self, implementation: Any, hook: str, name: str) -> list[Any]:
        try:
            return list(implementation() or ())
        except PluginError as error:
            if str(error).startswith("plugin "):
                raise
            raise PluginError(f"plugin {name!r}: {error}") from error
        except CallwrightError:
            raise
        except (Exception, SystemExit) as error:
            raise PluginError(f"plugin {name!r}: {hook} raised {type(error).__name__}: {error}") from error

    def _collect(self, plugin: object, name: str) -> None:
        for kind, hook_name in KINDS.items():
            implementation = getattr(plugin, hook_name, None)
            if implementation is None or not hasattr(implementation, "callwright_impl"):
                continue
            registered = []
            for lazy in self._registered(implementation, hook_name, name):
                if not isinstance(lazy, Lazy):
                    raise PluginError(
                        f"plugin {name!r}: {hook_name} yielded {_shown(lazy)}; it must yield callwright.Lazy(name, "
                        '"module:attribute", summary="…")'
                    )
                taken = self._components.setdefault(kind, {}).get(lazy.name)
                if taken is not None and taken.plugin == name:
                    raise NameClash(f"plugin {name!r} registers the {kind} {lazy.name!r} twice")
                if taken is not None:
                    raise NameClash(
                        f"two plugins register the {kind} {lazy.name!r}: {taken.plugin!r} and {name!r}. Leave one out: "
                        f"callwright -p no:{taken.plugin} …  or  callwright -p no:{name} …"
                    )
                self._components[kind][lazy.name] = evolve(lazy, plugin=name)
                registered.append(lazy.name)
            if self._write is not None:
                self._write(f"hook {hook_name}() of plugin {name!r} registered {', '.join(registered) or 'nothing'}")

    def source(self) -> PluginSource | None:
        """:meth:`description`, or ``None`` for added objects."""
        return None if self._objects else PluginSource(self._blocked, tuple(self._modules))

    def description(self) -> PluginSource:
        """How to load the same plugins in another process. Raises :class:`callwright.UsageError` for added objects."""
        if self._objects:
            raise UsageError(
                f"the plugin {self._objects[0]!r} is an object of this process, so no other process can load it; add "
                "an importable module instead"
            )
        return PluginSource(self._blocked, tuple(self._modules))

    def __reduce__(self) -> Any:
        return _loaded, (self.description(),)

    # Looking up

    @property
    def plugins(self) -> Sequence[PluginInfo]:
        """Every plugin that was found, by name, blocked and broken ones included."""
        return [self._plugins[name] for name in sorted(self._plugins)]

    def plugin(self, name: str) -> PluginInfo:
        """The plugin of this name. Raises :class:`callwright.errors.UnknownName`."""
        if name not in self._plugins:
            raise UnknownName("plugin", name, self._plugins)
        return self._plugins[name]

    def names(self, kind: str) -> list[str]:
        """The registered names of a kind, sorted."""
        _check_kind(kind)
        return sorted(self._components.get(kind, {}))

    def knows(self, kind: str, name: str) -> bool:
        """Whether there is such a component, or all those of which it is composed: ``email+calendar``."""
        if name in self._components.get(kind, {}):
            return True
        first, *others = name.split("+")
        return bool(others) and self.knows(kind, first) and all(self.knows("environment", one) for one in others)

    def components(self) -> Iterator[tuple[str, Lazy]]:
        """Every component as ``(kind, spec)``, in a stable order."""
        for kind in KINDS:
            for name in self.names(kind):
                yield kind, self._components[kind][name]

    def spec(self, kind: str, name: str) -> Lazy:
        """The registration of a component. Raises :class:`callwright.errors.UnknownName`."""
        _check_kind(kind)
        known = self._components.get(kind, {})
        if name not in known and kind == "environment" and "+" in name:
            from callwright.environments.composed.registered import composed

            return composed(name, lambda part: self.spec(kind, part), functools.partial(self.create, kind))
        if name not in known and kind == "corpus" and "+" in name:
            from callwright.environments.composed.registered import among_tools

            return among_tools(name, self.spec)
        if name not in known:
            broken = [info for info in self._plugins.values() if info.error]
            blocked = [info.name for info in self._plugins.values() if info.blocked]
            hint = " ".join(info.error for info in broken)
            if blocked:
                hint += f" Blocked plugins: {', '.join(blocked)}."
            raise UnknownName(kind, name, known, hint=hint.strip())
        return known[name]

    def create(self, kind: str, name: str, /, **options: Any) -> Any:
        """Make a component. Without options the same object is returned every time.

        Raises :class:`callwright.UsageError` for an option that the component does not take, and
        :class:`callwright.errors.PluginError` where making it raises anything but our errors and those of the machine.
        """
        spec = self.spec(kind, name)
        key = (kind, name)
        if not options and key in self._made:
            return self._made[key]
        if kind == "command":
            return spec.load()
        merged = {**spec.options, **options}
        declared = None
        if spec.takes is not None:
            from callwright.options import option_table

            declared = option_table(spec)
        theirs: Iterable[str] = ()
        if declared is not None:  # read before the component's module is imported, which may be a heavy one
            theirs = declared.model_fields
            merged = _read(declared, kind, name, merged)
        factory = spec.load()
        made: Any
        if declared is None and kind in OF_THE_CORE:
            theirs = parameters_of(factory)
        own = {
            option: merged.pop(option)
            for option in OF_THE_CORE.get(kind, ())
            if option in merged and option not in theirs
        }
        if not callable(factory):
            if merged:
                raise UsageError(f"the {kind} {name!r} takes no options, but was given {', '.join(sorted(merged))}")
            made = factory
        else:
            if kind == "environment":
                merged = self._with_toolsets(merged)
            if declared is None:
                check_options(f"the {kind} {name!r}", factory, merged, OF_THE_CORE.get(kind, ()))
            if "registry" in parameters_of(factory):
                merged["registry"] = self
            try:
                made = factory(**merged)
            except ModuleNotFoundError as error:
                if spec.extra and error.name:
                    raise MissingExtra(f"{name!r}", spec.extra, error.name) from error
                raise _not_made(spec, kind, error) from error
            except (CallwrightError, OSError, MemoryError):
                raise
            except (Exception, SystemExit) as error:
                if options and isinstance(error, ValueError):  # most likely about one of them
                    raise UsageError(f"{kind} {name!r}: {error}") from error
                if options and isinstance(error, TypeError):  # an option of the wrong type, or a slip of the plugin's
                    raise UsageError(
                        f"{kind} {name!r} with {', '.join(options)}: {error}. If the options are right, this is a bug "
                        f"of plugin {spec.plugin!r} (where: run it again as callwright --traceback …)"
                    ) from error
                raise _not_made(spec, kind, error) from error
        check_made(kind, spec, made)
        made = _with_own(kind, made, own) if own else made
        remember(made, functools.partial(self._again, kind, name, options), name, options)
        if not options:
            self._made[key] = made
        return made

    def _again(self, kind: str, name: str, options: dict[str, Any]) -> Made | None:
        """How another process makes this component."""
        import pickle

        source = self.source()
        if source is None:
            return None
        return registered, (source, kind, name, pickle.dumps(options) if options else b"")

    def _with_toolsets(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options of an environment with its ``toolsets``, where they are given by name, looked up."""
        named = options.get("toolsets")
        if not isinstance(named, list | tuple):
            return options
        found = [self.create("toolset", toolset) if isinstance(toolset, str) else toolset for toolset in named]
        return {**options, "toolsets": found}


def _not_made(spec: Lazy, kind: str, error: BaseException) -> PluginError:
    said = f"plugin {spec.plugin!r}: making the {kind} {spec.name!r} raised {type(error).__name__}: {error}"
    return PluginError(f"{said} (where: run it again as callwright --traceback …)")


def _with_own(kind: str, made: Any, own: Mapping[str, Any]) -> Any:
    """A component with options that the core sets."""
    if kind != "environment":
        return evolve(made, **own)
    from callwright.environments.paging import Fit, fit_to

    return fit_to(made, Fit(**own))


def _loaded(source: PluginSource) -> Registry:
    return source.load()


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise UnknownName("kind of component", kind, KINDS)


def _read(table: type[OptionTable], kind: str, name: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given, as their table reads them; the core's own stay as they are."""
    from callwright.options import read_options

    core = {key for key in OF_THE_CORE.get(kind, ()) if key not in table.model_fields}
    theirs = {key: value for key, value in options.items() if key not in core}
    read = read_options(table, theirs, f"the {kind} {name!r}", OF_THE_CORE.get(kind, ()))
    return {key: getattr(read, key) if key in read.model_fields_set else value for key, value in options.items()}


def _origin(point: metadata.EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.value


def _shown(value: object) -> str:
    return shortened(repr(value), 80, keep=77)


def load_plugins(
    *,
    blocked: Iterable[str] = (),
    extra: Mapping[str, ModuleType | object] | None = None,
    entry_points: bool = True,
    trace: Callable[[str], object] | None = None,
) -> Registry:
    """A new registry with every installed plugin except the blocked ones, plus the ``extra`` modules by name.

    ``trace`` hears of every hook call, one line each.
    """
    registry = Registry()
    if trace is not None:
        registry.trace(trace)
    if entry_points:
        registry.load_entry_points(blocked)
    for name, plugin in (extra or {}).items():
        registry.add(plugin, name=name)
    return registry


def default_registry() -> Registry:
    """The registry that the short functions of the package use (``callwright.reward``, ``callwright.corpus`` …).

    There is one in a process, whichever threads ask first: what is made with it may hold it weakly.
    """
    with _one_at_a_time:
        return _loaded_once()


# A cache alone does not keep a second thread from making another while the first is at it.
_one_at_a_time: Final = threading.RLock()
_loaded_once: Final = functools.cache(load_plugins)
