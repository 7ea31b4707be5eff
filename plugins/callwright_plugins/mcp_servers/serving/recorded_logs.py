"""Records of served environments as logs: what ``callwright env serve --record`` wrote, a log for each session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from callwright.environments.protocol import Outcome
from callwright.episodes.logs.files import peeked
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.logged import Logged
from callwright.episodes.logs.told import Shelf, told_log
from callwright.tools.spec import ToolSpec
from callwright_plugins.mcp_servers.serving.record import RecordedCall, read_record


class RecordedLogs:
    """The log format ``mcp-record``. A record holds outcomes and digests, and nothing that anybody said."""

    @property
    def name(self) -> str:
        """``mcp-record``."""
        return "mcp-record"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the first row is one of a session."""
        first = peeked(head)
        return "session" in first and "time" in first and ("op" in first or "kind" in first)

    def read(self, path: Path, tools: Mapping[str, ToolSpec]) -> Iterator[Log]:
        """A log for each session with calls. Raises :class:`callwright.errors.DataError` with the line."""
        world = Shelf(tools).world(None, str(path))
        names: dict[str, int] = {}
        for session in read_record(path):
            names[session.session] = again = names.get(session.session, 0) + 1
            name = session.session if again == 1 else f"{session.session}-{again}"
            calls, state = [], ""
            for number, call in enumerate(session.calls):
                before, state = state, call.digest
                calls.append(Logged(number, call.tool, call.arguments, _outcome(call), "", before, state))
            origin = {"format": self.name, "session": session.session}
            yield told_log(name, (), calls, world, origin=origin, scenario=session.scenario, seed=session.seed)


def _outcome(call: RecordedCall) -> Outcome:
    """A call that failed for want of a machine came to nobody knows what, so that rewards abstain."""
    if call.outcome.kind != "infrastructure_error":
        return call.outcome
    return Outcome("unknown", None, call.outcome.code, call.outcome.message)
