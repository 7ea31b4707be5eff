"""The root command, and groups that know their commands without importing them."""

from __future__ import annotations

import copy
import difflib
import errno
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

import click

import callwright
from callwright.cli.failures import report, silence_stdout
from callwright.cli.starting import end_start
from callwright.commands.app import App
from callwright.commands.failures import NO_READER
from callwright.errors import CallwrightError, NameClash, PluginError
from callwright.machines.interrupts import answered
from callwright.plugins import Lazy

_HERE = "callwright.cli"
#: The core's own commands, in the order in which they are listed.
CORE: Final = (
    Lazy("run", f"{_HERE}.run:run", "train by a pipeline recipe, or go on with a run"),
    Lazy("score", f"{_HERE}.score:score", "score a file of completions"),
    Lazy("synthesize", f"{_HERE}.synthesize:synthesize", "make tasks by a recipe, or go on with it"),
    Lazy("evaluate", f"{_HERE}.evaluate:evaluate", "accuracy of a sampler on a corpus, by depth and structure"),
    Lazy("benchmark list", f"{_HERE}.benchmarks:list_", "the installed benchmarks"),
    Lazy("benchmark show", f"{_HERE}.benchmarks:show", "what a benchmark holds and needs"),
    Lazy("benchmark get", f"{_HERE}.benchmark_get:get", "fetch the files of others that it needs"),
    Lazy("benchmark judge", f"{_HERE}.benchmarks:judge", "judge answers without a model"),
    Lazy("benchmark export", f"{_HERE}.benchmarks:export", "write the tasks for whoever answers them elsewhere"),
    Lazy("benchmark contamination", f"{_HERE}.contamination:contamination", "what training data shares with it"),
    Lazy("env list", f"{_HERE}.environments:list_", "the registered environments"),
    Lazy("env tools", f"{_HERE}.environments:tools", "the tools of an environment"),
    Lazy("env call", f"{_HERE}.environments:call", "one call in a fresh session"),
    Lazy("env shell", f"{_HERE}.environment_shell:shell", "call tools by hand and see what they change"),
    Lazy("env snapshot", f"{_HERE}.environment_state:snapshot", "the first state of a scenario as JSON"),
    Lazy("env diff", f"{_HERE}.environment_state:diff", "what differs between two snapshots"),
    Lazy("plugins list", f"{_HERE}.plugins:list_", "the installed plugins"),
    Lazy("plugins show", f"{_HERE}.plugins:show", "a plugin, or a component by its name"),
    Lazy("plugins check", f"{_HERE}.plugins:check", "whether plugins fit the hooks and their components work"),
    Lazy("completion", f"{_HERE}.completion:completion", "what a shell needs to complete commands and names"),
    Lazy("schema", f"{_HERE}.schema:schema", "the JSON Schema of a file format"),
    Lazy("doctor", f"{_HERE}.doctor:doctor", "what is installed, what is missing, what is broken"),
)
#: Commands of the core that plugins may add commands to: ``synthesize RECIPE``, ``synthesize graph ENV``.
OPEN: Final = frozenset({"synthesize"})
#: What groups are for, where no command of the group's own name says it.
GROUPS: Final = {
    "plugins": "list, show and check plugins",
    "benchmark": "tasks with an official metric",
    "env": "work with environments",
    "corpus": "work with corpora",
}


def command_table(app: App) -> dict[str, Lazy]:
    """Every command by its words (``"env record"``): the core's first, then those of plugins by name.

    Raises :class:`callwright.errors.NameClash` if a plugin takes a name of the core.
    """
    table = {lazy.name: lazy for lazy in CORE}
    for name in app.registry.names("command"):
        lazy = app.registry.spec("command", name)
        if any(
            name == core.name or (_inside(name, core.name) and core.name not in OPEN) or _inside(core.name, name)
            for core in CORE
        ):
            raise NameClash(
                f"plugin {lazy.plugin!r} registers the command {name!r}, which is Callwright's own. "
                f"Leave it out: callwright -p no:{lazy.plugin} …"
            )
        table[name] = lazy
    return table


def _inside(name: str, group: str) -> bool:
    return name.startswith(f"{group} ")


class _OfTheGroup(click.Context):
    """Of a command that has the name of its group: nobody types the word twice, so no message has it twice."""

    @property
    def command_path(self) -> str:
        """The words that were typed."""
        return super().command_path if self.parent is None else self.parent.command_path


class LazyGroup(click.Group):
    """A group over the words of a table of commands; one is imported when it is run or asked for its help.

    ``prefix`` are the words before (``"env "``). ``base`` is a click group of the same name that a plugin registered
    whole: its commands are offered too. ``default`` is the command of the group's own name: it is run where the first
    word is none of its commands.
    """

    def __init__(
        self,
        *args: Any,
        prefix: str = "",
        base: click.Group | None = None,
        default: click.Command | None = None,
        **kwargs: Any,
    ) -> None:
        if default is not None:  # whose options may come first
            kwargs["context_settings"] = {"ignore_unknown_options": True, **kwargs.get("context_settings", {})}
        super().__init__(*args, **kwargs)
        self.prefix, self.base, self.default = prefix, base, default

    def _table(self, ctx: click.Context) -> Mapping[str, Lazy]:
        app = ctx.find_object(App)
        assert app is not None
        cached: dict[str, Lazy] | None = ctx.find_root().meta.get("callwright.commands")
        if cached is None:
            try:
                cached = command_table(app)
            except CallwrightError:
                if not ctx.resilient_parsing:
                    raise
                cached = {lazy.name: lazy for lazy in CORE}  # a shell completes what there is, and shows no errors
            ctx.find_root().meta["callwright.commands"] = cached
        return cached

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The next words, in the order of the table."""
        here = [name.removeprefix(self.prefix) for name in self._table(ctx) if name.startswith(self.prefix)]
        words = [name.partition(" ")[0] for name in here]
        return list(dict.fromkeys([*words, *(self.base.list_commands(ctx) if self.base else ())]))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command of this word; imports its module."""
        table, path = self._table(ctx), self.prefix + name
        own = _load(table[path]) if path in table else None
        if not any(_inside(key, path) for key in table):
            return own or (self.base.get_command(ctx, name) if self.base else None)
        if own is not None and not isinstance(own, click.Group):
            if path in OPEN:
                return LazyGroup(name, prefix=f"{path} ", default=own, help=_sentence(self._summary(ctx, name)))
            raise NameClash(f"the command {path!r} of plugin {table[path].plugin!r} cannot also be a group of commands")
        return LazyGroup(name, prefix=f"{path} ", base=own, help=_sentence(self._summary(ctx, name)))

    def _summary(self, ctx: click.Context, name: str) -> str:
        table, path = self._table(ctx), self.prefix + name
        if path in table:
            return table[path].summary
        if path in GROUPS:
            return GROUPS[path]
        inner = [key for key in table if _inside(key, path)]
        if len(inner) == 1:
            return table[inner[0]].summary
        if inner:
            return ", ".join(dict.fromkeys(key.removeprefix(f"{path} ").partition(" ")[0] for key in inner))
        command = self.base.get_command(ctx, name) if self.base else None
        return command.get_short_help_str(100) if command else ""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The help of the command of its own name, where there is one, and the commands."""
        if self.default is None:
            super().format_help(ctx, formatter)
            return
        self.default.format_help(click.Context(self.default, ctx.parent, ctx.info_name), formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from their registered summaries."""
        rows = [(name, self._summary(ctx, name)) for name in self.list_commands(ctx)]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest name where there is no such command, or those that a group has."""
        name = args[0]
        self._note(ctx, self.prefix + name)
        if self.default is not None and self.get_command(ctx, name) is None:
            command = copy.copy(self.default)
            command.context_class = _OfTheGroup
            return command.name, command, args
        if name.startswith("-") or self.get_command(ctx, name) is not None or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        here = self.list_commands(ctx)
        # "probe" alone is meant as "env probe"; inside of a group nothing of another one is.
        inside = [] if self.prefix else [path for path in self._table(ctx) if path.endswith(f" {name}")]
        near = inside or difflib.get_close_matches(name, here, n=1)
        known = f" Known: {', '.join(here)}." if self.prefix else ""
        meant = f" Did you mean {' or '.join(map(repr, near[:3]))}?" if near else known
        raise click.UsageError(f"No such command {name!r}.{meant}", ctx)

    def _note(self, ctx: click.Context, path: str) -> None:
        """Remember whose command is about to be run, if it is somebody else's."""
        lazy, app = self._table(ctx).get(path), ctx.find_object(App)
        if lazy is not None and lazy.plugin and app is not None:
            from callwright.environments.undeclared import is_shipped

            if not is_shipped(app.registry.plugin(lazy.plugin).module):
                app.running = f"plugin {lazy.plugin!r}: its command {path!r}"


def _load(lazy: Lazy) -> click.Command:
    command = lazy.load()
    end_start()
    if not isinstance(command, click.Command):
        raise PluginError(
            f"plugin {lazy.plugin!r}: the command {lazy.name!r} is {type(command).__name__}, not a click.Command"
        )
    return command


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "…")) else ".") if text else ""


class Root(LazyGroup):
    """The root group: every failure ends in one line and an exit status."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run and leave the process; with ``standalone_mode=False`` exceptions reach the caller instead."""
        app = extra.setdefault("obj", None) or App()
        extra["obj"] = app
        app.argv = tuple(sys.argv[1:] if args is None else args)
        app.traceback = app.traceback or _traceback_wanted()
        try:
            with answered() if standalone_mode else nullcontext():  # an embedder's signals are its own
                status = super().main(
                    args,
                    prog_name,
                    complete_var,
                    standalone_mode=False,
                    windows_expand_args=windows_expand_args,
                    **extra,
                )
                sys.stdout.flush()
        except Exception as error:  # one place for all: a command line never shows a traceback unasked
            if not standalone_mode:
                raise
            status = report(error, with_traceback=app.traceback, running=app.running)
            if isinstance(error, OSError):
                silence_stdout()
        except KeyboardInterrupt as error:
            if not standalone_mode:
                raise
            status = report(error)
        if not standalone_mode:
            return status
        sys.exit(status if isinstance(status, int) else 0)

    def invoke(self, ctx: click.Context) -> None:
        """Run the command; what it returns is not an exit status (``ctx.exit`` is)."""
        try:
            super().invoke(ctx)
            sys.stdout.flush()
        except OSError as error:
            if error.errno != errno.EPIPE:
                raise
            silence_stdout()  # before click sees it, which would leave with 1
            ctx.exit(NO_READER)


def _traceback_wanted() -> bool:
    import os

    return os.environ.get("CALLWRIGHT_TRACEBACK", "") not in ("", "0")


def _plugin_option(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> None:
    app = ctx.ensure_object(App)
    for value in values:
        kind, sign, name = value.partition(":")
        if not sign:
            app.modules.append(value)
        elif kind == "no" and name:
            app.blocked.append(name)
        else:
            raise click.BadParameter("expected no:NAME (leave a plugin out) or MODULE (add one)", ctx, parameter)


def _flag(attribute: str) -> Any:
    def remember(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value:
            setattr(ctx.ensure_object(App), attribute, value)

    return remember


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "-p",
    "plugins",
    multiple=True,
    metavar="no:NAME|MODULE",
    is_eager=True,
    expose_value=False,
    callback=_plugin_option,
    help="Leave the plugin NAME out, or add a module as a plugin. May be repeated.",
)
@click.option(
    "--trace-hooks",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_flag("trace_hooks"),
    help="Write every hook call and its result to stderr.",
)
@click.option(
    "--traceback",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_flag("traceback"),
    help="Show where an error came from (also CALLWRIGHT_TRACEBACK=1).",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="What is logged to stderr. Default: warning.",
)
@click.option("--log-json", is_flag=True, help="Log one JSON object a line.")
@click.option("-v", "--verbose", count=True, help="Log more: -v is info, -vv is debug.")
@click.version_option(callwright.__version__, prog_name="callwright")
@click.pass_obj
def root(app: App, log_level: str | None, log_json: bool, verbose: int) -> None:
    """Teach language models to use tools by reinforcement learning."""
    from callwright.cli.logging import configure
    from callwright.commands.safe_text import say

    app.verbosity = verbose
    configure(level=log_level, json_lines=log_json, verbosity=verbose)
    for plugin in app.registry.plugins:
        if plugin.error:
            say(f"warning: {plugin.error}")
