"""Who calls: what whoever runs a server should know of its clients, said once each."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from attrs import define, field

#: How many clients and messages are remembered: clients choose their names.
_REMEMBERED: Final = 1000
#: After how many connections with one call each a client is named.
_CONNECTIONS: Final = 3


@define
class Callers:
    """Notices of refusals and of clients that open a connection for each call, whose state does not last."""

    notice: Callable[[str], None]
    #: Of each client its last connections, and how many calls came by each.
    _clients: OrderedDict[str, OrderedDict[str, int]] = field(factory=OrderedDict)
    _said: OrderedDict[str, None] = field(factory=OrderedDict)

    def called(self, connection: str, client: str) -> None:
        """A call came by a connection that is a session of its own."""
        connections = self._clients.setdefault(client, OrderedDict())
        self._clients.move_to_end(client)
        connections[connection] = connections.get(connection, 0) + 1
        if len(connections) > _CONNECTIONS:
            connections.popitem(last=False)
        if list(connections.values()) == [1] * _CONNECTIONS:
            self._say(
                f"the client {client or 'that gives no name'} opens a connection for each call, and each has a session "
                "of its own: what a call changes the next one does not see. Give it the URL …/mcp?session=NAME, or "
                "start the server with --session NAME"
            )
        if len(self._clients) > _REMEMBERED:
            self._clients.popitem(last=False)

    def refused(self, client: str, reason: str) -> None:
        """A call was refused before it reached a session."""
        self._say(f"refused a call{f' of {client}' if client else ''}: {reason}")

    def _say(self, text: str) -> None:
        if text in self._said:
            return
        self._said[text] = None
        if len(self._said) > _REMEMBERED:
            self._said.popitem(last=False)
        # A client chooses its name: nothing of it may end the line or draw on a terminal.
        self.notice("".join(character if character.isprintable() else "?" for character in text))
