"""The user ``zebra``: asks once whether the agent is sure, and is done."""

from __future__ import annotations

from collections.abc import Sequence

import callwright as cw
from callwright.walk import Said
from callwright.walk.users.user import Looks


class Zebra:
    """A kind of user; it is named in tasks: ``cw.UserSpec("zebra", {"question": "Really?"})``."""

    name = "zebra"

    def __init__(self, question: str = "Are you sure?") -> None:
        self.question = question

    def begin(self, task: cw.Task, seed: int) -> Zebra:
        """A user for one episode, whose draws hang on ``seed`` alone. This one draws nothing and remembers nothing."""
        return self

    def reply(self, messages: Sequence[cw.Message], session: Looks) -> Said:
        """``messages`` as the user has them; ``session`` is a look at the world that changes nothing."""
        spoken = sum(message.role == "assistant" for message in messages)
        return Said(self.question) if spoken == 1 else Said(done=True)
