"""Commands and options that the documentation mentions exist."""

from __future__ import annotations

import re
import shlex
from functools import cache
from typing import Any

import click

from callwright.cli.root import root
from callwright.commands.app import App

#: What stands for something that the reader fills in.
_PLACEHOLDER = re.compile(r"^(?:[A-Z][A-Z_.]*|…|\.\.\.|\[.*|<.*)$")


def _mentioned(page: Any) -> list[tuple[int, str]]:
    """Command lines that begin with ``callwright``, in code spans and in blocks of shell input.

    Those of a plugin with commands that the page itself writes are left out: the page's own test runs them.
    """
    found = []
    own = [block.note[1].removesuffix(".py") for block in page.blocks if "def callwright_commands" in block.text]
    for token in page.inline:
        if token.type == "code_inline" and token.content.startswith("callwright "):
            found.append((0, token.content))
    for block in page.blocks:
        if block.language not in ("console", "sh", "bash"):
            continue
        text = block.text.replace("\\\n", " ")
        for line in text.splitlines():
            line = line.removeprefix("$ ")
            if line.startswith("callwright ") and not any(line.startswith(f"callwright -p {name} ") for name in own):
                found.append((block.line, line))
    return found


@cache
def _app() -> App:
    """The application of all commands, whose plugins are loaded once."""
    return App()


def _complaint(line: str) -> str:
    """What is wrong with a command line; empty if nothing is."""
    try:
        words = shlex.split(re.split(r"\s[|>]|\s#\s", line)[0].rstrip("…"))[1:]
    except ValueError:
        return "it cannot be read"
    command: click.Command = root
    with click.Context(root, obj=_app(), info_name="callwright") as context:
        while words:
            word = words.pop(0)
            if word == "--":
                break
            if word.startswith("-"):
                name = word.partition("=")[0]
                option = _option(command, name) or _option(getattr(command, "default", None) or command, name)
                if option is None:
                    return f"{command.name} has no option {name}"
                if not option.is_flag and not option.count and "=" not in word and words:
                    words.pop(0)
            elif isinstance(command, click.Group) and not _PLACEHOLDER.match(word) and "|" not in word:
                inner = command.get_command(context, word)
                own = getattr(command, "default", None)  # the command of the group's own name
                if inner is None and own is None:
                    return f"there is no command {word!r}"
                command = inner or own
    return ""


def _option(command: click.Command, name: str) -> click.Option | None:
    if name in ("-h", "--help"):
        return click.Option([name], is_flag=True)
    for parameter in command.params:
        if isinstance(parameter, click.Option) and name in (*parameter.opts, *parameter.secondary_opts):
            return parameter
    return None


def test_commands_exist(every_page: list[Any]) -> None:
    wrong = [
        f"{page.name}:{number or ''}: {line!r}: {complaint}"
        for page in every_page
        for number, line in _mentioned(page)
        for complaint in [_complaint(line)]
        if complaint
    ]
    assert wrong == []


def test_the_check_finds_what_is_wrong() -> None:
    assert _complaint("callwright plugins list --json") == ""
    assert _complaint("callwright -p no:NAME run RECIPE --set a.b=c") == ""
    assert _complaint("callwright shout") == "there is no command 'shout'"
    assert _complaint("callwright run tier-mini --loud") == "run has no option --loud"


def test_every_command_is_described(page: Any) -> None:
    """Each command of the command line has a heading of its own in its page."""
    headings = " ".join(page("docs/command-line.md").headings)
    with click.Context(root, obj=_app(), info_name="callwright") as context:
        paths = [path for name in root.list_commands(context) for path in _paths(context, root, name)]
    assert [path for path in paths if path not in headings] == []


def _paths(context: click.Context, group: click.Group, name: str, before: str = "") -> list[str]:
    command = group.get_command(context, name)
    if not isinstance(command, click.Group):
        return [f"{before}{name}"]
    names = command.list_commands(context)
    return [path for inner in names for path in _paths(context, command, inner, f"{before}{name} ")]
