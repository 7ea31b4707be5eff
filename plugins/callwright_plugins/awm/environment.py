"""A world as an environment: each session is a server of its own over its own copy of the database."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from callwright.digests import digest_of
from callwright.environments.calling import schema_error
from callwright.environments.goals.comparing import Comparison
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.errors import DataError, UsageError
from callwright.language.shortening import shortened
from callwright.options import read_options
from callwright.tools.spec import ToolSpec
from callwright.tools.validation import check_arguments
from callwright_plugins.awm.files import read_world
from callwright_plugins.awm.options import WorldOptions
from callwright_plugins.awm.server import WorldServer, operations
from callwright_plugins.awm.verifiers import is_complete, verifiers

_LONGEST: Final = 2000


class WorldEnvironment(Environment):
    """The world of some options. A scenario and a seed change nothing: a world begins in one state.

    Raises :class:`callwright.errors.DataError` for files and code that cannot be used.
    """

    #: It is somebody else's code, whichever class holds it.
    foreign = True

    def __init__(self, options: WorldOptions) -> None:
        self.options = options
        self.files = read_world(Path(options.data).absolute(), options.world)
        server = WorldServer(self.files, self.files.database)
        try:
            self.operations = operations(server.openapi)
        finally:
            server.close()
        self._tools = {name: ToolSpec(name, one.description, one.parameters) for name, one in self.operations.items()}

    def __reduce__(self) -> Any:
        return WorldEnvironment, (self.options,)

    @property
    def name(self) -> str:
        return f"awm/{self.files.name}"

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """An operation of the server each, by its operation id."""
        return self._tools

    @property
    def pure(self) -> bool:
        """True: what goes in and out is a copy."""
        return True

    @property
    def briefs(self) -> bool:
        """True."""
        return True

    def briefing(self, session: Session) -> str:
        """Who the model acts for: AWM tells its own agent the same."""
        return "You are logged in already. Where a tool asks for a user's id, yours is 1."

    @property
    def blocking(self) -> bool:
        """True: calls wait for somebody else's code."""
        return True

    def open(self, scenario: str = "", seed: int = 0) -> WorldSession:
        """A fresh session."""
        return WorldSession(self, self.files.database)


class WorldSession(Session):
    """A session of a world, from a state of its database."""

    def __init__(self, environment: WorldEnvironment, database: bytes) -> None:
        self.environment = environment
        self._server = WorldServer(environment.files, database)
        self._closed = False

    def __reduce__(self) -> Any:
        return WorldSession, (self.environment, self._server.dump())

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """Ask the server. A status of 400 or more is a failure with its text, and what it changed is undone."""
        if self._closed:
            raise UsageError("the session is closed")
        spec = self.environment.tools.get(tool)
        if spec is None:
            return Outcome("unknown_tool", None, "unknown_tool", f"no tool named {tool!r} is offered")
        if check_arguments(spec, arguments):
            return schema_error(spec, arguments)
        before = self._server.dump()
        status, body = self._server.ask(self.environment.operations[tool], arguments)
        if status < 400:
            return Outcome("ok", body)
        if self._server.dump() != before:
            self._server.restore(before)
        told = body.get("detail", body) if isinstance(body, dict) else body
        kind: Any = "schema_error" if status == 422 else "execution_error"
        return Outcome(kind, None, f"http_{status}", shortened(str(told), _LONGEST) or f"status {status}")

    def fork(self) -> WorldSession:
        """Another session in the same state."""
        return WorldSession(self.environment, self._server.dump())

    def digest(self) -> str:
        """A hash of every table and row."""
        return digest_of(self._server.rows())

    def check_answer(self, goal: Mapping[str, Any], answer: str) -> Comparison:
        """Whether the verifier of a task accepts this database and what was said: all right, or one thing wrong.

        ``goal`` names world and task. Raises :class:`callwright.InfrastructureFailure` where the verifier fails, and
        :class:`callwright.errors.DataError` for a goal that is not of this world.
        """
        files, given = self.environment.files, goal.get("task")
        code = verifiers(Path(self.environment.options.data).absolute(), files.name).get(given)  # type: ignore[arg-type]
        if goal.get("awm") != files.name or code is None:
            raise DataError(f"the goal {dict(goal)!r:.80} is no task of {files.name!r} with a verifier in code")
        return Comparison(1, 0) if is_complete(code, files.database, self._server.dump(), answer) else Comparison(0, 1)

    def close(self) -> None:
        """Stop its server. Closing twice is allowed."""
        if not self._closed:
            self._closed = True
            self._server.close()


def open_world(**options: Any) -> WorldEnvironment:
    """A world by the options of :class:`.options.WorldOptions`. Raises what :class:`WorldEnvironment` raises."""
    return WorldEnvironment(read_options(WorldOptions, options, "the environment 'awm'"))


open_world.__signature__ = inspect.signature(WorldOptions)  # type: ignore[attr-defined]
