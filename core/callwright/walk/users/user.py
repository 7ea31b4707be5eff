"""The seam of users: a kind of user makes one for every episode, which answers what the agent says.

@hookimpl
def callwright_users():
    yield cw.Lazy("patient", "mine:Patient", "says the same until it is done")

class Patient:
    name = "patient"

    def __init__(self, says: str = "Please go on.") -> None: ...
    def begin(self, task, seed): return self

    def reply(self, messages, session):
        return Said("", done=True) if len(messages) > 4 else Said(self.says)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from callwright.errors import Abstention, CallwrightError, ComponentError, InfrastructureFailure
from callwright.language.messages import Message
from callwright.language.program import Call
from callwright.walk.users.said import Said

if TYPE_CHECKING:
    from callwright.walk.tasks import Task

#: So often in one turn a user may call its tools before it says something.
MOST_ROUNDS: Final = 20


class Looks(Protocol):
    """What a user is told of the world: :class:`callwright.walk.users.world.WorldView`. It never changes it."""

    def knowledge(self, entity: str = "me") -> Mapping[str, Any]:
        """What an entity of the world knows that no tool tells; empty where nothing is known."""

    def check_goal(self, goal: Mapping[str, Any]) -> Any:
        """What a goal comes to: a :class:`callwright.environments.goals.Comparison`."""

    @property
    def now(self) -> int | None:
        """The time in the world, in seconds since 1970 (UTC); ``None`` where there is none."""


@runtime_checkable
class User(Protocol):
    """The user of one episode. One that :class:`Waits` for a server is asked beside others, each by one thread."""

    def reply(self, messages: Sequence[Message], session: Looks) -> Said:
        """What the user answers.

        ``messages`` are the conversation as the user has it: its own words have the role ``user``, the agent's the role
        ``assistant``, thoughts and calls taken out; the last one is the agent's. Where the user itself called a tool,
        a message of the role ``tool`` says what came of it.

        Total on any text of the agent. Raises :class:`callwright.InfrastructureFailure` where machinery fails that it
        needs, which masks the sample.
        """


@runtime_checkable
class Waits(Protocol):
    """A user or episode that waits for a server when it is asked: such ones are asked from several threads at once."""

    @property
    def waits(self) -> bool:
        """Whether it does."""


@runtime_checkable
class UserKind(Protocol):
    """What the hook ``callwright_users`` registers: makes a user for every episode. It can be pickled."""

    @property
    def name(self) -> str:
        """The registered name."""

    def begin(self, task: Task, seed: int) -> User:
        """A fresh user for one episode of a task, whose draws hang on ``seed`` (31 bits) alone.

        Raises :class:`callwright.errors.DataError` for a task that it cannot talk about.
        """


@runtime_checkable
class KnowsLines(Protocol):
    """What a kind adds whose users say the same, whatever the agent says: their lines, one for each of its turns."""

    @property
    def lines(self) -> Sequence[Said]:
        """What is said after each turn of the agent; a line that is ``done`` is the last."""


def reply_of(user: User, name: str, messages: Sequence[Message], session: Looks, *, silent: bool = False) -> Said:
    """What a user answers; a bug of it names it. Where it may be ``silent``, it need not say or do anything.

    Raises :class:`callwright.InfrastructureFailure` where it has no answer, whoever's fault that is, and
    :class:`callwright.errors.ComponentError` for a user that raises anything else or answers with something else.
    """
    try:
        said = user.reply(messages, session)
    except Abstention as error:
        raise InfrastructureFailure(f"the user {name!r} gave no answer: {error}") from error
    except CallwrightError:
        raise
    except Exception as error:
        raise ComponentError(
            f"the user {name!r} raised {type(error).__name__}: {error}. This is a bug of the user"
        ) from error
    if not isinstance(said, Said) or not all(isinstance(call, Call) for call in said.calls):
        raise ComponentError(f"the user {name!r} answered {said!r:.80}, not Said(text, calls, done); this is its bug")
    if not (said.text or said.calls or said.done or silent):
        raise ComponentError(f"the user {name!r} neither says nor does anything, and is not done; this is its bug")
    return said
