"""The options of the environment ``mcp``: each checked as it is read, and what follows from them together."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from callwright.environments.knowledge.files import read_knowledge
from callwright.environments.knowledge.suggestions import Suggestions, read_suggestions
from callwright.environments.undeclared import Undeclared
from callwright.errors import UnknownName, UsageError
from callwright.options import OptionTable
from callwright.registration import Reach
from callwright_plugins.mcp_servers.connecting.connection import REPLY_LIMIT, Target
from callwright_plugins.mcp_servers.connecting.workspace import mentions_workspace, refuse_misspelt

_LADDER: Final = ("auto", "meta", "connection", "process", "shared")
_RESETS: Final = ("restart", "workspace")
_DIGESTS: Final = ("auto", "server", "workspace", "history")


def _isolation(name: str) -> str:
    if name not in _LADDER:
        raise UnknownName("isolation", name, _LADDER)
    return name


def _reset(reset: str | Mapping[str, Any]) -> str | Mapping[str, Any]:
    if not isinstance(reset, Mapping) and reset not in _RESETS:
        raise UnknownName("reset", reset, _RESETS, hint='Or {"tool": …, "arguments": {…}}.')
    if isinstance(reset, Mapping) and not isinstance(reset.get("tool"), str):
        raise UsageError('reset is either "restart", "workspace" or {"tool": name, "arguments": {…}}')
    return reset


def _digest(digest: str | tuple[Mapping[str, Any], ...]) -> str | tuple[Mapping[str, Any], ...]:
    if isinstance(digest, str) and digest not in _DIGESTS:
        raise UnknownName("digest", digest, _DIGESTS, hint="Or a list of calls.")
    return digest


def _undeclared(way: Any) -> Any:
    if way not in get_args(Undeclared):
        raise UnknownName("way with undeclared failures", str(way), get_args(Undeclared))
    return way


def _alias(path: str) -> str:
    if not path.startswith("/") or path.endswith("/"):
        raise UsageError(f"workspace_alias must be an absolute path such as /workspace, not {path!r}")
    return path


def _patterns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    _joined(patterns)
    return patterns


def _seconds(limit: float, info: ValidationInfo) -> float:
    if limit <= 0:
        raise UsageError(f"{info.field_name} must be a positive number of seconds, not {limit:g}")
    return limit


def _not_too_few(number: int | None, info: ValidationInfo) -> int | None:
    if number is not None and number < (1 if info.field_name in ("pool", "reply_limit") else 0):
        raise UsageError("pool must be at least 1, as must reply_limit, and warm and retries at least 0")
    return number


Count = Annotated[int, AfterValidator(_not_too_few)]
Seconds = Annotated[float, AfterValidator(_seconds)]
Folder = str | Path


class MCPOptions(OptionTable):
    """The options of ``MCPEnvironment``, whose page explains them. Bad ones raise :class:`callwright.UsageError`."""

    command: str | tuple[str, ...] | None = Field(default=None, description="What starts the server.")
    url: str | None = Field(default=None, description="Where a server runs, instead of a command.")
    isolation: Annotated[str, AfterValidator(_isolation)] = Field(default="auto", description="How sessions are apart.")
    reset: Annotated[str | Mapping[str, Any], AfterValidator(_reset)] = Field(
        default="restart", description="How a process is made fresh for the next session."
    )
    workspace_template: Folder | Mapping[str, Folder] | None = Field(
        default=None, description="The folder that a workspace is filled from, or one for each scenario."
    )
    workspace_alias: Annotated[str, AfterValidator(_alias)] = Field(
        default="/workspace", description="What the workspace is called in calls and answers."
    )
    env: Mapping[str, str] | None = Field(default=None, description="Variables for the server.")
    cwd: str | None = Field(default=None, description="The folder that the server starts in.")
    headers: Mapping[str, str] | None = Field(default=None, description="Of requests to a URL.")
    hide: tuple[str, ...] = Field(default=(), description="Tools that are not offered.")
    read_only: tuple[str, ...] = Field(default=(), description="Tools that only read, though they do not say so.")
    errors: Annotated[tuple[str, ...], AfterValidator(_patterns)] = Field(
        default=(), description="Regular expressions of texts that are failures."
    )
    pool: Count = Field(default=4, description="The most processes.")
    warm: Annotated[int | None, AfterValidator(_not_too_few)] = Field(
        default=None, description="How many processes stand ready; as many as there may be if left out."
    )
    lock: Folder | None = Field(default=None, description="The lock file.")
    lock_name: str | None = Field(default=None, description="The server's name in the lock file.")
    digest: Annotated[str | tuple[Mapping[str, Any], ...], AfterValidator(_digest)] = Field(
        default="auto", description="What a session's digest is made of."
    )
    digest_ignore: tuple[str, ...] = Field(default=(), description="Paths of the workspace that do not count.")
    knowledge: Folder | Mapping[str, Folder] | None = Field(
        default=None, description="A JSON file of what users know and no tool tells, or one for each scenario."
    )
    suggestions: Folder | None = Field(
        default=None, description="A JSON file of texts for free-text arguments, or a name that ships (sqlite)."
    )
    time_limit: Seconds = Field(default=30.0, description="Seconds for a call.")
    start_limit: Seconds = Field(default=60.0, description="Seconds for a start.")
    wait_limit: Seconds = Field(default=120.0, description="Seconds to wait for a process.")
    retries: Count = Field(default=1, description="How often a call is done again after a crash or time-out.")
    reply_limit: Count = Field(default=REPLY_LIMIT, description="The most bytes of an answer; longer ones are refused.")
    undeclared: Annotated[Undeclared, BeforeValidator(_undeclared)] = Field(
        default="execution_error", description="What an internal error of the server becomes."
    )
    legacy: bool = Field(default=False, description="Whether not to ask for the newest protocol version.")
    name: str = Field(default="mcp", description="The environment's name.")

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if bool(self.words) == (self.url is not None):
            raise UsageError("the environment 'mcp' needs either command=[…], which starts a server, or url=…")
        if self.url is not None and self.isolation == "process":
            raise UsageError("isolation 'process' needs a command: a server at a URL is somebody else's process")
        refuse_misspelt(self._placed)
        if self.workspace_template is not None and not self.has_workspace:
            raise UsageError("workspace_template is given, but nothing in command, env or cwd mentions {workspace}")
        if self.digest == "workspace" and not self.has_workspace:
            raise UsageError("digest 'workspace' needs {workspace} in command, env or cwd")
        self.templates()
        return self

    @property
    def words(self) -> tuple[str, ...]:
        """The command, word by word; none for a URL."""
        return tuple(shlex.split(self.command)) if isinstance(self.command, str) else self.command or ()

    @property
    def has_workspace(self) -> bool:
        """Whether the command wants a folder for each process."""
        return mentions_workspace(self._placed)

    @property
    def _placed(self) -> list[str]:
        return [*self.words, *(self.env or {}).values(), self.cwd or ""]

    @property
    def stand_ready(self) -> int:
        """How many processes stand ready: ``warm``, at most ``pool``."""
        return self.pool if self.warm is None else min(self.warm, self.pool)

    @property
    def reset_tools(self) -> tuple[str, ...]:
        """The tool that makes a process fresh, if one does: it is not offered."""
        return (str(self.reset["tool"]),) if isinstance(self.reset, Mapping) else ()

    def target(self) -> Target:
        """How the server is reached."""
        return Target(
            command=self.words,
            url=self.url,
            env=dict(self.env or {}),
            cwd=self.cwd,
            headers=dict(self.headers or {}),
            legacy=self.legacy,
            reply_limit=self.reply_limit,
        )

    def known(self) -> dict[str, dict[str, dict[str, Any]]]:
        """By scenario, what everybody knows; ``""`` stands for any other one.

        Raises :class:`callwright.errors.DataError` for a file that cannot be read.
        """
        if self.knowledge is None:
            return {}
        files = self.knowledge if isinstance(self.knowledge, Mapping) else {"": self.knowledge}
        return {scenario: read_knowledge(path) for scenario, path in files.items()}

    def suggested(self) -> Suggestions | None:
        """What to write into free-text arguments, if anything says so.

        Raises :class:`callwright.errors.DataError` for a file that cannot be read.
        """
        return None if self.suggestions is None else read_suggestions(self.suggestions)

    def failures(self) -> re.Pattern[str] | None:
        """What the texts of failures match, or ``None`` if ``errors`` names none."""
        return _joined(self.errors) if self.errors else None

    def templates(self) -> dict[str, Path | None]:
        """The folder for each scenario's workspace. Raises :class:`callwright.UsageError` for one that is no folder."""
        if self.workspace_template is None:
            return {"": None}
        given = self.workspace_template
        found = given if isinstance(given, Mapping) else {"": given}
        if not found:
            raise UsageError("workspace_template names no folder")
        templates = {name: Path(path).absolute() for name, path in found.items()}
        for path in templates.values():
            if not path.is_dir():
                raise UsageError(f"{path}: the workspace template is not a folder")
        return dict(templates)


def _joined(patterns: Iterable[str]) -> re.Pattern[str]:
    try:
        return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
    except re.error as error:
        raise UsageError(f"errors: not a regular expression: {error}") from error


def reaches(options: Mapping[str, Any]) -> Iterator[Reach]:
    """What the environment would start with these options, as exactly as they say it; bad ones are refused later."""
    command = options.get("command")
    if not command:
        return
    what = f"starts: {command if isinstance(command, str) else shlex.join(map(str, command))}"
    if options.get("cwd"):
        what += f"; in the folder {options['cwd']}"
    if options.get("env"):
        variables = options["env"]
        listed = variables.items() if isinstance(variables, Mapping) else [("env", variables)]
        what += f"; with {', '.join(f'{name}={value}' for name, value in listed)}"
    yield Reach("process", what, ("command", "env", "cwd"))
