"""``callwright env shell``: try an environment by hand, one call after another, and see what each changes."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final

import click

from callwright.capability import has, members
from callwright.cli.environment_call import elsewhere
from callwright.cli.environments import (
    clock_option,
    draw_diff,
    draw_outcome,
    environment_options,
    hazards_option,
    make_environment,
    open_in_time,
    read_arguments,
    session_options,
)
from callwright.commands.app import App
from callwright.commands.options import ComponentName
from callwright.environments.capabilities import Diffs, Forks, Helps, Resets, helpers_of, scenarios_of
from callwright.environments.isolated.environment import IsolatedSession
from callwright.errors import CallwrightError, UsageError
from callwright.tools.reading import schema_at

_WORDS: Final = {
    ":help": "this list",
    ":tools": ":tools [TOOL]  the tools, or one with its parameters",
    ":diff": "what changed since the scenario's first state",
    ":undo": "take the last change back",
    ":reset": ":reset [SCENARIO]  begin again",
    ":digest": "the hash of the state",
    ":user": "let a turn of the user pass (--clock)",
    ":wait": ":wait SECONDS  let time pass (--clock)",
    ":helper": ":helper _NAME K=V …  a helper tool, which agents cannot call",
    ":save": ":save FILE  write the state",
    ":load": ":load FILE  go on from a state",
    ":quit": "leave (or end of input)",
}
_REMEMBERED: Final = 2000


@click.command("shell")
@click.argument("name", type=ComponentName("environment"), metavar="ENV")
@session_options
@clock_option
@hazards_option
@environment_options
@click.pass_obj
def shell(
    app: App,
    name: str,
    scenario: str,
    seed: int,
    clock: str | None,
    hazards: str | None,
    settings: tuple[str, ...],
    toolsets: tuple[str, ...],
    scale: float | None,
) -> None:
    """Call tools of ENV by hand: `TOOL K=V …` or `TOOL {JSON}` a line, `:help` for the rest. Tab completes.

    After each call the shell shows what it changed. Tools of somebody else run in a process of their own; one that
    ends or blocks it loses the session, and another one begins. Input that is not a terminal is read as a script.
    """
    environment = make_environment(app.registry, name, settings, toolsets, scale)
    with ExitStack() as stack:
        there = elsewhere(environment)
        if there is not None:
            stack.callback(there.close)

        def opened() -> Any:
            return open_in_time(there or environment, scenario, seed, clock, hazards)

        _read(stack.enter_context(closing(Shell(environment, opened(), opened))), name)


def _read(reading: Shell, name: str) -> None:
    """Read lines until they end, or one says so."""
    environment = reading.environment
    interactive = sys.stdin.isatty()
    if interactive:
        _install_completion(reading)
        click.echo(f"{name}: {len(environment.tools)} tools. :help for help, Tab completes, Ctrl-D leaves.", err=True)
    for line in _lines(f"{name}> ", interactive):
        if line.strip() in (":quit", ":q", ":exit"):
            break
        reading.run(line)


def _lines(prompt: str, interactive: bool) -> Iterable[str]:
    while True:
        try:
            line = input(prompt) if interactive else sys.stdin.readline()
        except EOFError:
            click.echo()
            return
        except KeyboardInterrupt:
            if not interactive:
                raise
            click.echo()  # Ctrl-C throws away the line that is being typed
            continue
        if not interactive and not line:
            return
        yield line


#: What the words ask of a session; the others need one that can be forked.
_NEEDS: Final[dict[str, type[Any]]] = {":diff": Diffs, ":reset": Resets, ":helper": Helps}


class Shell:
    """What the shell knows between two lines."""

    def __init__(self, environment: Any, session: Any, reopen: Callable[[], Any] | None = None) -> None:
        """``reopen`` gives another session where the process of this one is lost."""
        self.environment, self.session, self._reopen = environment, session, reopen
        self.before: Any = None
        self.heard: dict[str, None] = {}  # texts of answers: ids and names to complete

    def run(self, line: str) -> None:
        """One line. Whatever is wrong with it is said, and the shell goes on."""
        line = line.strip()
        if not line or line.startswith("#"):
            return
        try:
            if line.startswith(":"):
                self._command(*shlex.split(line))
            else:
                self._call(line)
        except click.UsageError as error:
            click.echo(f"error: {error.format_message()}", err=True)
        except (CallwrightError, ValueError) as error:
            click.echo(f"error: {error}", err=True)
        if self._reopen is not None and isinstance(self.session, IsolatedSession) and self.session.lost:
            self.close()
            self.before, self.session = None, self._reopen()
            click.echo("the session is lost with its process; another one begins", err=True)

    def _call(self, line: str) -> None:
        tool, _, rest = line.partition(" ")
        rest = rest.strip()
        if rest.startswith("{"):
            arguments = read_arguments(None, (), rest)
        else:
            arguments = read_arguments(self.environment.tools.get(tool), shlex.split(rest))
        forked = self.session.fork() if has(self.session, Forks) else None
        outcome = self.session.call(tool, arguments)
        told = forked is not None and has(self.session, Diffs)
        draw_outcome(outcome, self.session.diff(forked) if told else {})
        self._hear(outcome.value)
        if forked is not None and outcome.executed and forked.digest() != self.session.digest():
            self._keep(forked)
        elif forked is not None:
            forked.close()

    def _keep(self, forked: Any) -> None:
        """What ``:undo`` goes back to. The one before is closed: a session may be a process of a server."""
        if self.before is not None:
            self.before.close()
        self.before = forked

    def close(self) -> None:
        """Give back the sessions."""
        for session in (self.before, self.session):
            if session is not None:
                session.close()

    def _command(self, word: str, *rest: str) -> None:
        session = self.session
        if word == ":help":
            for command, meaning in _WORDS.items():
                click.echo(f"{command:<9}{meaning}")
        elif word == ":tools":
            self._tools(*rest[:1])
        elif word == ":digest":
            click.echo(session.digest())
        elif word not in _WORDS:
            raise UsageError(f"there is no {word}; :help lists what there is")
        elif not has(session, _NEEDS.get(word, Forks)):
            lacks = [f"{name}()" for name in members(_NEEDS.get(word, Forks)) if not hasattr(session, name)]
            raise UsageError(
                f"{word} needs {' and '.join(lacks)}, which sessions of {self.environment.name} do not have"
            )
        elif word == ":diff":
            draw_diff(session.diff())
        elif word == ":undo":
            if self.before is None:
                raise UsageError("there is nothing to take back")
            undone, self.session, self.before = self.session, self.before, None
            undone.close()
        elif word == ":reset":
            self._change(session.reset, *rest[:1])
        elif word in (":user", ":wait"):
            self._let_pass(word, *rest[:1])
        elif word == ":helper":
            helpers = helpers_of(self.environment)
            if not helpers or not rest:
                raise UsageError(f"name one: {', '.join(helpers)}" if helpers else "it has no helper tools")
            arguments = read_arguments(helpers.get(rest[0]), rest[1:])
            draw_outcome(self._change(session.helper, rest[0], arguments), {})
        else:
            from callwright.cli.state_files import write_dump

            if not rest:
                raise UsageError(f"{word} needs a file")
            if word == ":load" and not Path(rest[0]).exists():
                raise UsageError(f"there is no file {rest[0]}")
            if word == ":save":
                write_dump(_there(session, _dumped), Path(rest[0]))
            else:
                self._change(_there, session, _load, Path(rest[0]))

    def _change(self, work: Callable[..., Any], *given: Any) -> Any:
        """What ``work(*given)`` returns, which changes the session otherwise than by a call: ``:undo`` takes it back.

        Else ``:undo`` would go to before the last call, and lose what was done since.
        """
        forked = self.session.fork() if has(self.session, Forks) else None
        try:
            found = work(*given)
            changed = forked is not None and forked.digest() != self.session.digest()
        except BaseException:
            if forked is not None:
                forked.close()
            raise
        if changed:
            self._keep(forked)
        elif forked is not None:
            forked.close()
        return found

    def _let_pass(self, word: str, seconds: str = "") -> None:
        if not _there(self.session, _has_clock):
            raise UsageError(f"{word} needs a clock that moves; start the shell with --clock on")
        if word == ":wait" and not seconds.isdecimal():
            raise UsageError(":wait needs a number of seconds")
        forked = self.session.fork()
        if word == ":user":
            self.session.user_turn()
        else:
            self.session.elapse(int(seconds))
        draw_diff(self.session.diff(forked))
        self._keep(forked)

    def _tools(self, name: str | None = None) -> None:
        from callwright.cli.environments import draw_tool, draw_tools
        from callwright.errors import UnknownName

        if name is None:
            draw_tools(self.environment.tools)
        elif name not in self.environment.tools:
            raise UnknownName("tool", name, self.environment.tools)
        else:
            draw_tool(self.environment.tools[name])

    def _hear(self, value: Any) -> None:
        left = [value]
        while left and len(self.heard) < _REMEMBERED:
            found = left.pop()
            if isinstance(found, str) and 0 < len(found) <= 60:
                self.heard[found] = None
            elif isinstance(found, dict):
                left.extend(found.values())
            elif isinstance(found, list):
                left.extend(found)

    def complete(self, line: str, word: str) -> list[str]:
        """What ``word``, the last of ``line``, may become: a command, a tool, a parameter, one of its values."""
        before = line[: len(line) - len(word)].split()
        if not before:
            words: Iterable[str] = [*(f"{tool} " for tool in self.environment.tools), *(f"{one} " for one in _WORDS)]
        elif before[0] == ":tools":
            words = self.environment.tools
        elif before[0] == ":reset":
            words = scenarios_of(self.environment)
        elif before[0] == ":helper" and len(before) == 1:
            words = helpers_of(self.environment)
        elif before[0] in self.environment.tools:
            words = self._arguments(before[0], word, {part.partition("=")[0] for part in before[1:]})
        else:
            words = ()
        return [one for one in words if one.startswith(word)]

    def _arguments(self, tool: str, word: str, given: set[str]) -> list[str]:
        properties = self.environment.tools[tool].parameters.get("properties", {})
        name, sign, _ = word.partition("=")
        if not sign:
            return [f"{key}=" for key in properties if key not in given]
        schema = schema_at(self.environment.tools[tool].parameters, (name,)) or {}
        values = schema.get("enum") or ([True, False] if schema.get("type") == "boolean" else list(self.heard))
        return [f"{name}={_quoted(value)}" for value in values]


def _there(session: Any, work: Callable[..., Any], *given: Any) -> Any:
    """What ``work(session, *given)``, a function of a module, returns where the session lives."""
    if isinstance(session, IsolatedSession):
        return [*session.stream(iter(()), _steps, work, *given)][-1]
    return work(session, *given)


def _steps(session: Any, work: Callable[..., Any], *given: Any) -> Iterator[Any]:
    yield work(session.inner, *given)


def _dumped(session: Any) -> Any:
    from callwright.cli.state_files import dumped, must_have_tables

    must_have_tables(session)
    return dumped(session)


def _load(session: Any, path: Path) -> None:
    from callwright.cli.state_files import load_state

    load_state(session, path)


def _has_clock(session: Any) -> bool:
    return getattr(session, "clock", None) is not None


def _quoted(value: Any) -> str:
    return shlex.quote(value) if isinstance(value, str) else json.dumps(value)


def _install_completion(reading: Shell) -> None:
    try:
        import readline
    except ImportError:  # not on every system; the shell works without
        return
    found: list[str] = []

    def complete(word: str, state: int) -> str | None:
        if state == 0:
            found[:] = reading.complete(readline.get_line_buffer()[: readline.get_endidx()], word)
        return found[state] if state < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(" \t\n")
    readline.parse_and_bind("tab: complete")
