"""What a plugin registers: a component by its name, what it would reach for, and the options that its factory takes."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import re
import sys
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal

from attrs import field, frozen

from callwright.errors import (
    CallwrightError,
    MissingExtra,
    PluginError,
    UnknownName,
    UsageError,
    needs_option,
    raise_together,
)

if TYPE_CHECKING:
    from callwright.options import OptionTable

_TARGET: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")

#: By kind of component what a factory returns, and the members without which nothing can use it.
_MADE: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "parser": ("a Parser", ("parse",)),
    "toolset": ("a sequence of tools", ("__iter__",)),
    "environment": ("an Environment", ("name", "tools", "open")),
    "reward component": ("a RewardComponent", ("name", "score")),
    "reward recipe": ("a RewardRecipe", ("name", "terms")),
    "sampler": ("a Sampler", ("name", "sample")),
    "algorithm": ("an Algorithm", ("name", "loss")),
    "trainer": ("a Trainer", ("train",)),
    "corpus": ("a Corpus", ("name", "splits", "task")),
    "benchmark": ("a Benchmark", ("name", "tasks", "judge")),
    "synthesizer": ("a Synthesizer", ("make",)),
    "teacher": ("a Teacher", ("ask",)),
    "user": ("a UserKind", ("begin",)),
    "model check": ("a ModelCheck", ("examine",)),
    "tracker": ("a Tracker", ("follow",)),
    "framework": ("a Framework", ("tools",)),
    "log format": ("a LogFormat", ("read",)),
}


@frozen
class Reach:
    """Something outside of this process that a component would use with certain options.

    ``kind``: ``process`` (starts a program), ``secret`` (sends an environment variable to a host), ``data`` (sends a
    run's figures and rollouts to a host) or ``code`` (runs code of a folder or a package that options name). ``what``
    says it exactly, as the end of a sentence such as ``"starts: sh -c ls"``. ``options`` are those that decide it:
    where the user gave all of them that are given, nobody else asked for it (``name`` stands for the choice of the
    component). ``dry_run`` says that a dry run does it too.
    """

    kind: Literal["process", "secret", "data", "code"]
    what: str
    options: tuple[str, ...]
    dry_run: bool = False


@frozen
class Lazy:
    """A component by name, whose module is imported when it is first asked for.

    ``target`` is ``"package.module:attribute"`` (or the object itself, for embedders); calling it with the options of a
    recipe makes the component. ``extra`` names the optional dependencies that it needs; ``options`` are passed always.
    """

    name: str
    target: str | Callable[..., Any] = field(repr=False)
    summary: str = ""
    extra: str | None = None
    options: Mapping[str, Any] = field(factory=dict)
    #: What it would reach for, given the options of a recipe: a function (or where it is), called before anything of a
    #: recipe that is not trusted is made. Nothing may be started to find out.
    reaches: str | Callable[[Mapping[str, Any]], Iterable[Reach]] | None = field(default=None, repr=False)
    #: Makes, without options, the component with a recording in place of the live service that it asks: what
    #: ``callwright plugins check`` looks at then. A function, or where it is.
    stand_in: str | Callable[[], Any] | None = field(default=None, repr=False)
    #: The :class:`callwright.options.OptionTable` of its options, or where that class is. The registry reads
    #: options by it before it imports the component. Left out, the parameters of the factory are the options.
    takes: str | type[OptionTable] | None = field(default=None, repr=False)
    #: Filled in by the registry: the plugin that registered it.
    plugin: str = ""

    def __attrs_post_init__(self) -> None:
        for what in (self.target, self.reaches, self.stand_in, self.takes):
            if isinstance(what, str) and not _TARGET.fullmatch(what):
                raise PluginError(f"{self.name!r}: the target {what!r} is not of the form 'package.module:name'")

    def load(self) -> Any:
        """The factory itself.

        Raises :class:`callwright.errors.MissingExtra` or :class:`callwright.errors.PluginError`.
        """
        return self.found(self.target)

    def make_stand_in(self) -> Any | None:
        """The component with a recording in place of its live service; ``None`` where the plugin names none.

        Raises as :meth:`load` does.
        """
        return None if self.stand_in is None else self.found(self.stand_in)()

    def reach(self, options: Mapping[str, Any]) -> tuple[Reach, ...]:
        """What the component would reach for with these options; nothing where its plugin declares nothing.

        Raises :class:`callwright.errors.PluginError` for a declaration that fails: what is not known is not allowed.
        """
        if self.reaches is None:
            return ()
        declare = self.found(self.reaches)
        try:
            return tuple(declare({**self.options, **options}))
        except CallwrightError:
            raise
        except Exception as error:
            raise PluginError(
                f"plugin {self.plugin!r}: what {self.name!r} reaches for cannot be told: "
                f"{type(error).__name__}: {error}"
            ) from error

    def found(self, target: str | Callable[..., Any]) -> Any:
        """What ``"package.module:attribute"`` names; anything else as it is. Raises as :meth:`load` does."""
        if not isinstance(target, str):
            return target
        module_name, _, attribute = target.partition(":")
        try:
            return functools.reduce(getattr, attribute.split("."), _imported(module_name))
        except ModuleNotFoundError as error:
            if self.extra and error.name and not f"{module_name}.".startswith(f"{error.name}."):
                raise MissingExtra(f"{self.name!r}", self.extra, error.name) from error
            raise PluginError(f"plugin {self.plugin!r}: {target!r} cannot be imported: {error}") from error
        except CallwrightError:
            raise
        except (Exception, SystemExit) as error:
            raise PluginError(
                f"plugin {self.plugin!r}: loading {target!r} raised {type(error).__name__}: {error}"
            ) from error


def _imported(name: str) -> ModuleType:
    """A module; what it prints when it is first imported goes to stderr, since stdout is the output of a command.

    In the main thread alone: two threads that put stdout aside at once would not both put it back.
    """
    if name in sys.modules or threading.current_thread() is not threading.main_thread():
        return importlib.import_module(name)  # which waits for another thread that is at it
    with contextlib.redirect_stdout(sys.stderr):
        return importlib.import_module(name)


def check_made(kind: str, lazy: Lazy, made: Any) -> None:
    """Raise :class:`callwright.errors.PluginError` where a factory returned a value of Python's own in place of a
    component: nothing, a number, a dict, a function. What a class of somebody lacks is for the checks of
    :mod:`callwright.testing`.
    """
    about = f"plugin {lazy.plugin!r}: what makes the {kind} {lazy.name!r} returned"
    if made is None:
        raise PluginError(f"{about} nothing; it must return it")
    what, needed = _MADE.get(kind, ("", ()))
    own = type(made).__name__
    if type(made).__module__ == "builtins" and not all(_has(made, member) for member in needed):
        raise PluginError(f"{about} {'an' if own[0] in 'aeiou' else 'a'} {own}; it must return {what}")


def _has(made: Any, member: str) -> bool:
    """Whether it has a member; a property is not asked, which may read a file."""
    return hasattr(type(made), member) or hasattr(made, member)


def parameters_of(factory: Any) -> Mapping[str, inspect.Parameter]:
    """The parameters of a factory by name; none where its signature is not known."""
    read = _signature if isinstance(factory, Hashable) else inspect.signature
    try:
        return read(factory).parameters
    except (TypeError, ValueError):  # it has none that is known
        return {}


@functools.lru_cache(maxsize=256)
def _signature(factory: Any) -> inspect.Signature:
    """Read once: whoever makes a component for every episode would spend most of the time on it."""
    return inspect.signature(factory)


def check_options(what: str, factory: Any, options: Mapping[str, Any], others: Iterable[str] = ()) -> None:
    """Raise :class:`callwright.UsageError` for options that a factory does not take, and for those that it needs.

    ``what`` names the component in errors; ``others`` are options that somebody else takes of it.
    """
    parameters = parameters_of(factory)
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    known = [p for p in parameters if p not in ("self", "registry")]
    mistakes: list[UsageError] = [
        UnknownName(f"option of {what}", option, [*known, *others]) for option in options if option not in known
    ]
    for parameter in parameters.values():
        if (
            parameter.default is inspect.Parameter.empty
            and parameter.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
            and parameter.name in known
            and parameter.name not in options
        ):
            mistakes.append(UsageError(needs_option(what, parameter.name)))
    raise_together(mistakes)
