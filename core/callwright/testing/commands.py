"""Checks of commands: that each of them, and of its subcommands, explains itself and refuses what it does not know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import click

from callwright.testing.expectations import expect

_UNKNOWN: Final = "--there-is-no-such-option"


def check_command(command: Any) -> None:
    """It is a :class:`click.Command` with a help text, and so is each of its subcommands."""
    expect(isinstance(command, click.Command), f"a command is a click.Command, not {type(command).__name__}")
    for path, one in _each(command):
        expect(bool((one.help or one.short_help or "").strip()), f"the command {path!r} has no help")


def check_help(command: click.Command) -> None:
    """``--help`` of it and of each subcommand is shown, without running anything."""
    for path, one in _each(command):
        try:
            with one.make_context(path, [], resilient_parsing=True) as context:
                shown = one.get_help(context)
        except Exception as error:
            raise AssertionError(f"{path} --help raised {type(error).__name__}: {error}") from error
        expect("Usage:" in shown, f"{path} --help says nothing of its usage")


def check_options(command: click.Command) -> None:
    """Each option has a help text and a spelling of its own, in lower case with dashes."""
    for path, one in _each(command):
        options = [option for option in one.params if isinstance(option, click.Option) and not option.hidden]
        for option in options:
            expect(bool((option.help or "").strip()), f"{path}: the option {option.opts[-1]} has no help")
        spellings = [spelling for option in options for spelling in (*option.opts, *option.secondary_opts)]
        for spelling, times in Counter(spellings).items():
            expect(times == 1, f"{path}: {times} options are spelt {spelling}")
            plain = spelling.startswith("--") and spelling == spelling.lower() and "_" not in spelling
            expect(len(spelling) == 2 or plain, f"{path}: spell the option {spelling} in lower case, with dashes")


def check_unknown_option(command: click.Command) -> None:
    """An option that it does not have is refused by name, before anything runs."""
    for path, one in _each(command):
        if one.context_settings.get(
            "ignore_unknown_options", one.ignore_unknown_options
        ):  # it hands what it does not know to another program
            continue
        try:
            one.make_context(path, [_UNKNOWN])
        except click.NoSuchOption as error:
            expect(error.option_name == _UNKNOWN, f"{path} {_UNKNOWN} is refused as {error.option_name}")
        except Exception as error:
            raise AssertionError(
                f"{path} {_UNKNOWN} raised {type(error).__name__}: {error}; unknown options are click.NoSuchOption"
            ) from error
        else:
            raise AssertionError(f"{path} takes {_UNKNOWN}, which nobody declared")


def _each(command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """The command and its subcommands, each with the words that it is called by."""
    todo = [(command.name or "command", command)]
    while todo:
        path, one = todo.pop()
        yield path, one
        if isinstance(one, click.Group):
            context = click.Context(one, info_name=path)
            found = ((name, one.get_command(context, name)) for name in one.list_commands(context))
            todo += [(f"{path} {name}", inner) for name, inner in found if inner is not None]


COMMAND_CHECKS: Final = (check_command, check_help, check_options, check_unknown_option)
