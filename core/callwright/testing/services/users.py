"""Conformance checks for users: an answer to any text of any agent, the same for the same seed, and an end to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import evolve

from callwright.capability import has
from callwright.environments.capabilities import GivesUsersTools
from callwright.environments.goals.comparing import Comparison
from callwright.environments.protocol import Environment, Outcome, ServesUsers
from callwright.environments.sessions import open_session
from callwright.errors import InfrastructureFailure
from callwright.language.messages import Message
from callwright.language.program import Call
from callwright.testing.expectations import expect, expect_members, expect_name, never_raises, shown
from callwright.testing.pickling import elsewhere, refuses
from callwright.testing.sample import sample_tasks
from callwright.testing.texts import NASTY, mutated
from callwright.walk.tasks import Task
from callwright.walk.users.said import Said
from callwright.walk.users.user import UserKind

#: So many messages of a user are enough: no limit of an episode is near it.
_MOST_TURNS: Final = 200
_TALK: Final = (
    "Hello.",
    "Which day, and what is your PIN?",
    "Shall I?",
    "That failed.",
    "It is done.",
    "Anything else?",
)


class _Unmoved:
    """A world of which nothing is known and no goal is reached."""

    now: Final = 1_772_442_000

    def knowledge(self, entity: str = "me") -> Mapping[str, Any]:
        return {}

    def check_goal(self, goal: Mapping[str, Any]) -> Comparison:
        return Comparison(wrong=1)


def check_user(user: UserKind) -> None:
    """It has the members of :class:`callwright.walk.UserKind` and a name, and begins a user that replies."""
    expect_members(user, UserKind)
    expect_name(user)
    with never_raises("begin(task, 0)"):
        begun = user.begin(_task(), 0)
    expect(callable(getattr(begun, "reply", None)), f"begin() gave {shown(begun)}, which has no method reply()")


def check_replies(user: UserKind) -> None:
    """It answers any text of an agent with what it says and does, or says in words that it cannot."""
    for text in ("", *_TALK, *NASTY, *mutated(_TALK, 100, seed=5)):
        with never_raises(f"reply() to {shown(text, 60)}"):
            try:
                said = user.begin(_task(), 1).reply(_said(text), _Unmoved())
            except InfrastructureFailure:
                continue
        expect(isinstance(said, Said), f"reply() gave {shown(said)}; it must be a Said")
        expect(all(isinstance(call, Call) for call in said.calls), f"calls must be Calls, not {shown(said.calls)}")
        expect(
            bool(said.text or said.calls or said.done),
            f"to {shown(text, 60)} it neither says nor does anything, and is not done",
        )


def check_seed(user: UserKind) -> None:
    """Two users of one seed say the same, whatever others said in between."""
    for seed in range(4):
        first = list(_talk(user, seed))
        list(_talk(user, seed + 1))
        again = list(_talk(user, seed))
        expect(
            first == again,
            f"the seed {seed} gave {shown(first)} and later {shown(again)}: is a global random generator used, or does "
            "one user remember another?",
        )


def check_end(user: UserKind) -> None:
    """It is done one day, whatever the agent says, though nothing of what it wants is done."""
    for text in ("", "I do not understand.", "What is it that you want?", "Shall I?"):
        begun, messages = user.begin(_task(), 2), [Message.user("Help me.")]
        for _ in range(_MOST_TURNS):
            messages.append(Message.assistant(text))
            said = begun.reply(tuple(messages), _Unmoved())
            if said.done:
                break
            messages.append(Message.user(said.text))
        else:
            raise AssertionError(f"after {_MOST_TURNS} answers {shown(text)} it is not done, and goes on asking")


def check_pickles(user: UserKind) -> None:
    """It can be pickled and says the same in another process, or says in words why not."""
    list(_talk(user, 3))
    if not refuses(user):
        copy = elsewhere(user, "the user")
        expect(list(_talk(copy, 3)) == list(_talk(user, 3)), "another process has a user that says something else")


def check_user_tools(environment: Environment) -> None:
    """Tools of users are no agent's: not among the tools, unknown where an agent calls them, and answered to users."""
    theirs = environment.user_tools if has(environment, GivesUsersTools) else None
    if not theirs:
        return
    shared = sorted(theirs.keys() & environment.tools.keys())
    expect(not shared, f"{', '.join(shared)} of 'user_tools' is offered to agents, too")
    session: Any = open_session(environment, "", 0)
    expect(has(session, ServesUsers), "there are 'user_tools', and sessions have no user_call()")
    for name in theirs:
        with never_raises(f"a call of {name}"):
            agent, user = session.call(name, {}), session.user_call(name, {})
        expect(agent.kind == "unknown_tool", f"an agent that calls the user's tool {name!r} gets {agent.kind}")
        expect(
            isinstance(user, Outcome) and user.kind != "unknown_tool",
            f"the user's call of {name!r} gets {shown(user)}",
        )
    expect(session.user_call("no_such_tool", {}).kind == "unknown_tool", "a user's call of no tool is no unknown_tool")
    session.close()


USER_CHECKS: Final = (check_user, check_replies, check_seed, check_end, check_pickles)


def _task() -> Task:
    return evolve(sample_tasks()[0], query="Help me.")


def _said(text: str) -> tuple[Message, ...]:
    return Message.user("Help me."), Message.assistant(text)


def _talk(user: UserKind, seed: int) -> Iterator[Said]:
    begun = user.begin(_task(), seed)
    messages: Sequence[Message] = (Message.user("Help me."),)
    for text in _TALK:
        messages = (*messages, Message.assistant(text))
        said = begun.reply(messages, _Unmoved())
        yield said
        if said.done:
            return
        messages = (*messages, Message.user(said.text))
