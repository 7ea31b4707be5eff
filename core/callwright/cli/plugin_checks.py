"""What ``callwright plugins check`` looks at."""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
import select
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Literal

from attrs import define, field, frozen

from callwright import hookspecs
from callwright.environments.clock import TIME_LIMIT
from callwright.environments.undeclared import is_shipped
from callwright.errors import CallwrightError, DataError, MissingExtra, PluginError, UsageError, cannot_read
from callwright.hook_versions import DECLARED, breaks, changes, hooks_of, recorded
from callwright.options import option_table

if TYPE_CHECKING:
    from callwright.plugins import Lazy, PluginInfo, PluginSource, Registry
    from callwright.testing import CheckResult

#: Kinds whose components say their own name, which must be the registered one.
_NAMED: Final = frozenset(
    {
        *("parser", "environment", "sampler", "algorithm", "trainer", "tracker", "corpus", "reward recipe"),
        *("model check", "user"),
    }
)
#: Where the checks of the kit tell what they are at.
_PROGRESS: Final = "callwright.testing.services.progress"

_AN_ERROR: Final = re.compile(r"\b(?=[A-Za-z]+(?:Error|Exception): )")
_NO_END: Final = "What a plugin runs returns or raises; it must not end the process"


@frozen
class PluginFinding:
    """One result. ``skipped``: it could not be looked at here, and ``message`` says what would be needed."""

    level: Literal["ok", "warning", "skipped", "error"]
    plugin: str
    what: str
    message: str = ""
    checks: tuple[CheckResult, ...] = ()


@frozen
class HowToCheck:
    """``expected``: by kind and name of a component (``"parser acme"``) the checks that it is known to fail, and why.

    ``quick``: components are found and not made. ``again``: every check is made twice. Of somebody else's plugin each
    call of a tool has ``call_limit`` seconds, and anything else ``step_limit``.
    """

    quick: bool = False
    again: bool = False
    expected: Mapping[str, Mapping[str, str]] = field(factory=dict)
    call_limit: float = TIME_LIMIT
    step_limit: float = 600.0


def check_plugin(registry: Registry, info: PluginInfo, how: HowToCheck = HowToCheck()) -> Iterator[PluginFinding]:
    """Everything that is found about one plugin."""
    hooks = list(_check_hooks(info))
    yield from hooks
    if info.error:
        if not any(finding.level == "error" for finding in hooks):
            yield PluginFinding("error", info.name, "loading", info.error)
        return
    components = [(kind, lazy) for kind, lazy in registry.components() if lazy.plugin == info.name]
    source = None if how.quick or is_shipped(info.module) else registry.source()
    if source is not None and hasattr(select, "poll"):  # by which the other process is asked; Windows has none
        yield from _check_elsewhere(source, components, how)
        return
    for kind, lazy in components:
        yield from _check_component(registry, kind, lazy, how)


# Hooks ----------------------------------------------------------------------------------------------------------------


def _check_hooks(info: PluginInfo) -> Iterator[PluginFinding]:
    try:
        module = importlib.import_module(info.module.partition(":")[0])
    except Exception as error:  # the plugin's own code
        yield PluginFinding("error", info.name, "import", f"{type(error).__name__}: {error}")
        return
    specs = {name: value for name, value in vars(hookspecs).items() if hasattr(value, "callwright_spec")}
    yield from _check_version(info.name, module)
    for name, function in vars(module).items():
        marked = hasattr(function, "callwright_impl")
        if not marked and not (name.startswith("callwright_") and inspect.isfunction(function)):
            continue
        what = f"hook {name}"
        if name not in specs:
            if not name.startswith("callwright_"):
                continue
            near = difflib.get_close_matches(name, specs, n=1)
            meant = f" Did you mean {near[0]}?" if near else ""
            yield PluginFinding("error", info.name, what, f"there is no such hook.{meant}")
        elif not marked:
            yield PluginFinding(
                "error", info.name, what, "is not marked with @callwright.hookimpl, so it is never called"
            )
        else:
            yield from _check_arguments(info.name, what, function, specs[name])


def _check_version(plugin: str, module: Any) -> Iterator[PluginFinding]:
    """What has changed in the hooks that a plugin implements since the version that it was written for."""
    version = getattr(module, DECLARED, None)
    current, known = hookspecs.HOOKSPEC_VERSION, recorded()
    if version is None or version == current:
        return
    what = f"{DECLARED} = {version!r}"
    if version not in known:
        newer = type(version) is int and version > current
        told = "upgrade Callwright" if newer else f"there are: {', '.join(map(str, sorted(known)))}"
        yield PluginFinding("error", plugin, what, f"the hooks are version {current}, and there is no such one: {told}")
        return
    found = False
    for hook, change in changes(known[version], hooks_of(hookspecs)):
        used = getattr(module, hook, None)
        if used is None or not breaks(change):
            continue
        lost = change.rpartition(" ")[2].strip("'")
        if change.endswith("'") and lost not in inspect.signature(used).parameters:
            continue  # it left the argument out
        found = True
        yield PluginFinding("warning", plugin, f"hook {hook}", f"since version {version} of the hooks it {change}")
    if not found:
        yield PluginFinding("ok", plugin, what, f"nothing that it uses has changed up to version {current}")


def _check_arguments(plugin: str, what: str, function: Any, spec: Any) -> Iterator[PluginFinding]:
    offered = list(inspect.signature(spec).parameters)
    leaving = spec.callwright_spec.get("warn_on_impl_args") or {}
    wrong = False
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            continue
        if name not in offered:
            near = difflib.get_close_matches(name, offered, n=1)
            listed = ", ".join(offered) or "none"
            meant = f" Did you mean {near[0]!r}?" if near else ""
            yield PluginFinding("error", plugin, what, f"there is no argument {name!r}.{meant} The hook has: {listed}")
            wrong = True
        elif parameter.default is not inspect.Parameter.empty:
            yield PluginFinding("error", plugin, what, f"the argument {name!r} has a default, so it is never passed")
            wrong = True
        elif name in leaving:
            yield PluginFinding("warning", plugin, what, f"the argument {name!r} will go: {leaving[name]}")
    if not wrong:
        yield PluginFinding("ok", plugin, what)


# Elsewhere ------------------------------------------------------------------------------------------------------------


@define
class _Underway:
    """What the other process is at, and how long that may take."""

    how: HowToCheck
    what: str = "loading the plugins"
    component: int = 0
    _check: str = ""
    _calls: bool = False

    def names(self) -> Iterator[str]:
        """What it is at, whenever that is asked."""
        while True:
            yield self.what

    def limit(self) -> float:
        """How many seconds it has for that."""
        return self.how.call_limit if self._calls else self.how.step_limit

    def hear(self, step: str, words: str) -> None:
        """``step`` is one of :data:`callwright.testing.services.progress.Step`."""
        if step == "check":
            self._check = words
        self._calls = step == "call"
        self.what = f"{self._check}: {words}" if self._calls else self._check


def _check_elsewhere(
    source: PluginSource, components: list[tuple[str, Lazy]], how: HowToCheck
) -> Iterator[PluginFinding]:
    """The same in a process that can be killed: somebody else's code may end the process that it runs in, or block it.

    The component that does is an error, and the others are looked at in another process.
    """
    from callwright.environments.isolated.process import ProcessLost, SessionLimits, SessionProcess

    left = [(kind, lazy.name) for kind, lazy in components]
    while left:
        underway = _Underway(how)
        process = SessionProcess(SessionLimits(time=None, memory=None))
        request = ("work", _check_here, (source, left, how))
        try:
            for step, told in process.stream(underway.names(), request, underway.limit):
                if step == "finding":
                    yield told
                elif step == "component":
                    underway.component, underway.what = told, "making it"
                else:
                    underway.hear(step, told)
            return
        except ProcessLost as lost:
            kind, name = left[underway.component]
            told = str(lost) if lost.code == "timeout" else f"{lost}. {_NO_END}"
            yield PluginFinding("error", components[0][1].plugin, f"{kind} {name}", told)
            del left[: underway.component + 1]
        finally:
            process.kill()


def _check_here(
    tell: Callable[[Any], None], source: PluginSource, left: list[tuple[str, str]], how: HowToCheck
) -> None:
    """In the other process: check components, and tell what is begun and found."""
    registry, turn = source.load(), Lock()

    def say(*told: Any) -> None:
        with turn:  # some checks call from several threads
            tell(told)

    with nullcontext() if _kit() is None else importlib.import_module(_PROGRESS).heard_by(say):
        for number, (kind, name) in enumerate(left):
            say("component", number)
            for finding in _check_component(registry, kind, registry.spec(kind, name), how):
                say("finding", finding)


# Components -----------------------------------------------------------------------------------------------------------


def _check_component(registry: Registry, kind: str, lazy: Lazy, how: HowToCheck) -> Iterator[PluginFinding]:
    what = f"{kind} {lazy.name}"
    if not lazy.summary:
        yield PluginFinding("warning", lazy.plugin, what, "has no summary")
    try:
        factory = lazy.load()
    except MissingExtra as error:
        yield PluginFinding("skipped", lazy.plugin, what, str(error))
        return
    except CallwrightError as error:
        yield PluginFinding("error", lazy.plugin, what, str(error))
        return
    if kind == "command":
        import click

        fits = isinstance(factory, click.Command)
        message = "" if fits else f"is {type(factory).__name__}, not a click.Command"
        yield PluginFinding("ok" if fits else "error", lazy.plugin, what, message)
        return
    try:
        options = [PluginFinding(level, lazy.plugin, what, told) for level, told in check_options(lazy, factory)]
    except CallwrightError as error:
        yield PluginFinding("error", lazy.plugin, what, str(error))
        return
    yield from options
    if any(finding.level == "error" for finding in options):
        return
    if how.quick:
        yield PluginFinding("ok", lazy.plugin, what)
        return
    yield from _check_made(registry, kind, lazy, what, how)


def check_options(lazy: Lazy, factory: Any) -> Iterator[tuple[Literal["warning", "error"], str]]:
    """What is wrong with how a component declares its options: they stand in a table, which says what they mean, and
    has the names and defaults that the factory has. Raises :class:`callwright.errors.PluginError` for no table.
    """
    table = option_table(lazy)
    try:
        parameters = inspect.signature(factory).parameters.values() if callable(factory) else ()
    except (TypeError, ValueError):
        parameters = ()
    handed_on = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters)
    taken = {
        one.name: one.default
        for one in parameters
        if one.name != "registry" and one.kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    }
    if table is None:
        if taken or handed_on:
            which = ", ".join(taken) or "**options"
            yield (
                "warning",
                f"declares no table for its options ({which}), so nobody is told what they mean and mistakes are found "
                "late; name one with Lazy(…, takes=…) (docs/plugins.md, Options)",
            )
        return
    declared = table.model_fields
    for name, option in declared.items():
        if not option.description:
            yield "warning", f"the option {name!r} of its table has no description"
        if name not in taken and not handed_on:
            yield "error", f"the table has the option {name!r}, which the component does not take"
    for name, default in taken.items():
        if name not in declared:
            yield "error", f"the component takes {name!r}, which is not in its table, so that no recipe can set it"
        elif declared[name].is_required() is not (default is inspect.Parameter.empty):
            which = "the table" if declared[name].is_required() else "the component"
            yield "error", f"the option {name!r} must be given by {which} alone"
        elif not declared[name].is_required() and declared[name].annotation is not Any:
            told = declared[name].get_default(call_default_factory=True, validated_data={})
            if told != default and repr(default) != "<factory>":  # a signature that pydantic or attrs made
                yield "error", f"the option {name!r} is {default!r} if left out, and {told!r} in the table"


def _check_made(registry: Registry, kind: str, lazy: Lazy, what: str, how: HowToCheck) -> Iterator[PluginFinding]:
    """Make a component and check it, with no connection to anything: what would ask a live service has a stand-in."""
    from callwright.testing.services.network import WouldConnect, no_connections
    from callwright.testing.services.registries import checking_with

    with no_connections() as tried, checking_with(registry):
        found: list[PluginFinding] = []
        try:
            found.extend(_check_without_network(registry, kind, lazy, what, how))
        except (WouldConnect, BaseExceptionGroup):
            if not tried:
                raise
    if not tried:
        yield from found
        return
    places = ", ".join(dict.fromkeys(tried[:4]))
    yield PluginFinding(
        "error",
        lazy.plugin,
        what,
        f"would connect to {places} while it is checked, which no check may. Declare "
        "callwright.conformance.NeedsNetwork, and name a stand-in (docs/conformance.md)",
    )


def _check_without_network(
    registry: Registry, kind: str, lazy: Lazy, what: str, how: HowToCheck
) -> Iterator[PluginFinding]:
    try:
        made = lazy.make_stand_in()
        if made is None:
            made = registry.create(kind, lazy.name)
    except MissingExtra as error:
        yield PluginFinding("skipped", lazy.plugin, what, str(error))
        return
    except UsageError as error:  # it needs options, data or a server that nobody has named
        yield PluginFinding("skipped", lazy.plugin, what, str(error))
        return
    except Exception as error:
        raised = (isinstance(error, PluginError) and error.__cause__) or error  # the registry names what is named here
        yield PluginFinding("error", lazy.plugin, what, f"making it raised {type(raised).__name__}: {raised}")
        return
    name = getattr(made, "name", None)
    if kind in _NAMED and name != lazy.name:
        yield PluginFinding("error", lazy.plugin, what, f"calls itself {name!r}; it must have its registered name")
        return
    for told in _misdescribed(kind, made):
        yield PluginFinding("warning", lazy.plugin, what, told)
    kit = _kit()
    if kit is None:
        yield PluginFinding("ok", lazy.plugin, what)
        return
    results = tuple(kit.run_checks(kind, made, expected_failures=how.expected.get(what), again=how.again))
    failed = [one for one in results if one.level == "failed"]
    alike: dict[str, list[CheckResult]] = {}
    for one in failed:
        alike.setdefault(_cause(one.message), []).append(one)
    for first, *others in alike.values():
        message = " ".join(f"{first.name}: {first.message}".split())
        if others:
            message += f" (the same in {', '.join(one.name for one in others)})"
        yield PluginFinding("error", lazy.plugin, what, message, results if first is failed[0] else ())
    if failed:
        return
    skipped = "; ".join(dict.fromkeys(one.message for one in results if one.level == "skipped"))
    if skipped:
        yield PluginFinding("skipped", lazy.plugin, what, skipped, results)
    else:
        yield PluginFinding("ok", lazy.plugin, what, "on its stand-in" if lazy.stand_in else "", results)


def _cause(message: str) -> str:
    """The error inside of what a check says, up to the advice: one lost method fails a dozen checks."""
    return _AN_ERROR.split(message)[-1].partition("; ")[0]


def _misdescribed(kind: str, made: Any) -> Iterator[str]:
    """What docstrings of tools say of parameters that are none, which no model reads."""
    from callwright.tools.docstrings import unknown_parameters
    from callwright.tools.spec import FunctionTool

    tools = made if kind == "toolset" else getattr(made, "functions", ()) if kind == "environment" else ()
    for tool in tools if isinstance(tools, list | tuple) else ():
        if isinstance(tool, FunctionTool) and (names := unknown_parameters(tool.function)):
            which = ", ".join(map(repr, names))
            yield f"the docstring of tool {tool.spec.name!r} describes {which}, which is no parameter of it"


def read_expected(path: Path) -> dict[str, dict[str, str]]:
    """Expected failures from a TOML file: for each component a table, ``["parser acme"]``, of checks and reasons.

    Raises :class:`callwright.errors.DataError` for a file that is not that.
    """
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise cannot_read(path, error) from error
    except ValueError as error:
        raise DataError(f"{path} is not TOML: {error}") from error
    for component, checks in found.items():
        if not isinstance(checks, dict) or not all(isinstance(reason, str) and reason for reason in checks.values()):
            raise DataError(
                f'{path}: [{component!r}] is a table of checks with the reason for each: check_purity = "asks a judge"'
            )
    return found


def _kit() -> Any:
    """``callwright.testing``, if this installation has it."""
    try:
        return importlib.import_module("callwright.testing")
    except ImportError:
        return None
