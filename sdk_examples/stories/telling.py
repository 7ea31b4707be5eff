"""Stories: a conversation in a living world, written as a script, played as an episode, held against a goal.

The agent of a story is a generator. It yields a call (or a list of calls) and gets what came of it, or yields a
text and gets what its user says next. Everything else is as in training: the texts are parsed, the calls run in a
session whose clock moves, and the goal is checked by the reward recipe ``state``.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from attrs import field, frozen

import callwright as cw
from callwright.environments import ClockPolicy
from callwright.episodes import Conversation
from callwright.walk.limits import TurnLimits
from callwright.walk.users.said import UserSpec

#: Yields what the agent does next: a text, a call, or a list of calls.
Agent = Generator[Any, Any, None]
#: The form in which the agent's turns are written: text is said, calls stand in blocks.
FORM = cw.parser("hermes")


@frozen
class Story:
    """What somebody wants, who does it, and how it is to end."""

    title: str
    environment: str
    query: str
    agent: Callable[[], Agent]
    goal: Mapping[str, Any]
    #: What the user says later, one text each time that the agent has spoken …
    later: Sequence[str] = ()
    #: … or the options of a scripted user, who hears what the agent says.
    user: Mapping[str, Any] | None = None
    clock: ClockPolicy = field(factory=ClockPolicy)
    scenario: str = "typical"
    seed: int = 0
    #: The messages of the world that the story tells, as a regular expression; others are counted.
    tells: str = ""

    def task(self) -> cw.Task:
        """The story as a task, as a corpus would pose it."""
        environment = cw.environment(self.environment)
        replayed = UserSpec("replayed", {"says": list(self.later)})
        return cw.Task(
            id=self.title,
            query=self.query,
            tools={name: spec for name, spec in environment.tools.items() if not spec.hidden},
            answer=cw.Answer(("done",)),
            environment=environment,
            scenario=self.scenario,
            seed=self.seed,
            facts={"goal": self.goal},
            clock=self.clock,
            user=replayed if self.user is None else UserSpec("scripted", self.user),
        )


def ask(tool: str, /, **arguments: Any) -> cw.Call:
    """A call of a tool."""
    return cw.Call(0, tool, arguments)


def play(story: Story) -> tuple[Conversation, list[int]]:
    """The story as an episode that is over, and the time after each of its calls."""
    times: list[int] = []

    def watched(session: Any, call: cw.Call, arguments: dict[str, Any]) -> cw.Outcome:
        outcome: cw.Outcome = session.call(call.tool, arguments)
        times.append(session.now if hasattr(session, "now") else session.world.now)
        return outcome

    conditions = cw.Conditions(limits=TurnLimits(assistant_turns=99, user_turns=99), caller=watched)
    conversation = Conversation(story.task(), FORM, [cw.Message.user(story.query)], conditions)
    agent = story.agent()
    act = next(agent)
    while not conversation.over:
        heard = conversation.take(cw.Completion(written(act)))
        conversation.hear(heard)
        turn = conversation.turns[-1]
        if conversation.over:
            break
        if isinstance(act, str):
            act = agent.send(heard[0].text)
        else:
            assert turn.trace is not None
            came = [record.outcome for record in turn.trace.records]
            act = agent.send(came[0] if isinstance(act, cw.Call) else came)
    return conversation, times


def written(act: Any) -> str:
    """An act as the agent's completion."""
    if isinstance(act, str):
        return act
    calls = [act] if isinstance(act, cw.Call) else act
    numbered = tuple(cw.Call(number, one.tool, one.arguments) for number, one in enumerate(calls))
    return FORM.render(cw.Program(numbered, "all" if len(numbered) > 1 else "one"))


def told(story: Story, conversation: Conversation, times: Sequence[int]) -> Iterator[str]:
    """The story in plain words, line by line."""
    yield story.title
    yield ""
    yield from said("User", story.query)
    moments = iter(times)
    answers = iter([message.text for message in conversation.messages[1:] if message.role == "user"])
    for turn in conversation.turns:
        if turn.trace is None or not turn.calls:
            yield from said("Agent", turn.completion.text)
            if (text := next(answers, None)) is not None:
                yield from said("User", text)
            continue
        for record in turn.trace.records:
            outcome = record.outcome
            arguments = ", ".join(f"{name}={value!r}" for name, value in record.arguments.items())
            clock = datetime.fromtimestamp(next(moments), UTC).strftime("%a %d %b %H:%M")
            yield from said(clock, f"{record.tool}({arguments})", 90)
            came = json.dumps(outcome.value) if outcome.executed else f"{outcome.code}: {outcome.message}"
            yield from said("", f"-> {outcome.kind}: {came}", 90)
            told = [one for one in outcome.notices if re.search(story.tells, one)]
            for notice in told:
                yield from said("News", notice)
            if len(told) < len(outcome.notices):
                yield from said("", f"({len(outcome.notices) - len(told)} messages about something else)")


def said(who: str, text: str, most: int = 1000) -> Iterator[str]:
    """A text beside a name, in lines."""
    text = text if len(text) <= most else text[: most - 1] + "…"
    for number, line in enumerate(textwrap.wrap(text, 92)):
        yield f"{who if number == 0 else '':>16}  {line}"


def tell(story: Story) -> bool:
    """Play a story and print it; whether its goal is reached."""
    conversation, times = play(story)
    for line in told(story, conversation, times):
        print(line)
    reward = cw.reward("state").score_attempt(conversation.attempt)
    print("The goal is reached." if reward.total == 1 else f"The goal is missed: {reward.explain()}")
    print()
    return reward.total == 1
