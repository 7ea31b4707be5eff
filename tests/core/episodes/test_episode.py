"""Episodes: several turns in one session, scored like an attempt."""

from __future__ import annotations

from typing import Any

import pytest
from callwright.episodes.episode import Episode

import callwright as cw
from callwright.environments.protocol import Outcome
from callwright.walk.execution import ExecutionRules


class Counter:
    """Two tools: ``add`` changes a number, ``read`` returns it. ``break`` loses the session."""

    name = "counter"
    pure = True
    tools = {  # noqa: RUF012
        "add": cw.ToolSpec("add", parameters={"type": "object", "properties": {"n": {"type": "integer"}}}),
        "read": cw.ToolSpec("read"),
        "break": cw.ToolSpec("break"),
    }

    def __init__(self) -> None:
        self.opened: list[CounterSession] = []

    def open(self, scenario: str = "", seed: int = 0) -> CounterSession:
        self.opened.append(CounterSession())
        return self.opened[-1]


class CounterSession:
    def __init__(self) -> None:
        self.value, self.closed = 0, False

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        assert not self.closed
        if tool == "break":
            raise cw.InfrastructureFailure("the server is gone")
        if tool == "add":
            if type(arguments.get("n")) is not int:
                return Outcome("execution_error", None, "not_an_integer", "n is not an integer")
            self.value += arguments["n"]
        return Outcome("ok", self.value)

    def digest(self) -> str:
        return str(self.value)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def world() -> Counter:
    return Counter()


@pytest.fixture
def task(world: Counter) -> cw.Task:
    gold = cw.Program((cw.Call(0, "add", {"n": 5}), cw.Call(1, "read", {})))
    return cw.Task("t", "", world.tools, cw.Answer((5,)), world, program=gold)


PARSER = cw.parser("json")


def text(*calls: tuple[str, dict[str, Any]], returns: Any = "one", first: int = 0) -> str:
    made = tuple(cw.Call(first + index, tool, arguments) for index, (tool, arguments) in enumerate(calls))
    return PARSER.render(cw.Program(made, returns, "thinking"))


def test_turns_share_one_session(task: cw.Task, world: Counter) -> None:
    with Episode(task, PARSER) as episode:
        first = episode.step(text(("add", {"n": 2})))
        assert first.trace is not None
        assert first.trace.returned == (2,)
        assert not episode.over
        episode.step(text(("add", {"n": 3}), ("read", {})))
        assert not episode.over
        episode.step(text())
        assert episode.over
        assert not world.opened[0].closed
    assert [session.closed for session in world.opened] == [True]
    assert episode.trace is not None
    assert [(step.call, step.tool, step.outcome.value, step.state) for step in episode.trace.records] == [
        (0, "add", 2, "2"),
        (1, "add", 5, "5"),
        (2, "read", 5, "5"),
    ]
    assert episode.trace.state == "0"
    assert episode.trace.returned == (5,)
    assert episode.program is not None
    assert [call.id for call in episode.program.calls] == [0, 1, 2]
    assert episode.validation is not None
    assert episode.validation.valid


def test_an_attempt_is_an_episode_of_one(task: cw.Task) -> None:
    completion = text(("add", {"n": 5}), ("read", {"surplus": 1}), ("nothing", {}), first=3)
    attempt, episode = cw.Attempt(task, completion, PARSER), Episode(task, PARSER, [completion])
    assert episode.program == attempt.program
    assert episode.validation == attempt.validation
    assert episode.trace is not None
    assert attempt.trace is not None
    assert (episode.trace.records, episode.trace.returned, episode.trace.state) == (
        attempt.trace.records,
        attempt.trace.returned,
        attempt.trace.state,
    )
    for name in ("tier", "tier-released", "prove", "toolrl"):
        recipe = cw.reward(name)
        assert recipe.score_attempt(episode).to_json() == recipe.score_attempt(attempt).to_json()


def test_every_reward_scores_an_episode(task: cw.Task) -> None:
    turns = [text(("add", {"n": "two"})), text(("add", {"n": 2})), text(("add", {"n": 3})), text(("read", {}))]
    reward = cw.reward("tier").score_attempt(Episode(task, PARSER, turns[1:]))
    assert reward.total == 1.0
    recovered = cw.reward("tier").score_attempt(Episode(task, PARSER, turns))
    assert recovered.scores["types"].score.value == 0.75
    assert recovered.scores["execution"].score.value == 0.0
    assert cw.reward("tier").score_attempt(Episode(task, PARSER, [])).total == 0.5  # calls nothing
    broken = Episode(task, PARSER, [turns[1], "no program"])
    assert broken.over
    assert cw.reward("tier").score_attempt(broken).total == 0.0
    assert broken.failure is not None
    assert [call.tool for call in broken.whole.calls] == ["add"]
    assert [step.tool for step in broken.whole_trace.records] == ["add"]


def test_the_answer_is_what_the_last_turn_with_calls_returned(task: cw.Task) -> None:
    both = text(("add", {"n": 1}), ("read", {}), returns="all")
    episode = Episode(task, PARSER, [text(("add", {"n": 9})), both, text()])
    assert episode.trace is not None
    assert episode.trace.returned == (10, 10)


def test_references_stay_within_their_turn(task: cw.Task) -> None:
    call = cw.Program((cw.Call(0, "add", {"n": 4}), cw.Call(1, "add", {"n": cw.Reference(0)})))
    dangling = cw.Program((cw.Call(0, "add", {"n": cw.Reference(1)}),))
    episode = Episode(task, PARSER, [PARSER.render(call), PARSER.render(call), PARSER.render(dangling)])
    assert [step.outcome.value for step in episode.whole_trace.records] == [4, 8, 12, 24, None]
    assert [(position, reference.call) for position, _, reference in episode.whole.dangling] == [(4, 5)]
    again = episode.execution(ExecutionRules(unresolved="literal"))
    assert again is not None
    assert [step.outcome.kind for step in again.records] == ["ok"] * 4 + ["execution_error"]
    assert again.records[-1].arguments == {"n": "API_RESPONSE_1"}


def test_a_lost_session_masks_and_ends_the_episode(task: cw.Task) -> None:
    episode = Episode(task, PARSER, [text(("add", {"n": 5})), text(("break", {}))])
    assert episode.over
    assert episode.masked is not None
    assert "the server is gone" in episode.masked
    assert cw.reward("tier").score_attempt(episode).total is None
    with pytest.raises(cw.UsageError, match="has ended"):
        episode.step(text(("read", {})))


def test_nothing_runs_after_closing(task: cw.Task) -> None:
    episode = Episode(task, PARSER, [text(("add", {"n": 5}))])
    episode.close()
    episode.close()
    with pytest.raises(cw.UsageError, match="closed"):
        episode.step(text(("read", {})))


def test_scoring_again_after_another_turn(task: cw.Task) -> None:
    episode = Episode(task, PARSER, [text(("add", {"n": 5}))])
    recipe = cw.reward("prove")
    before = recipe.score_attempt(episode)
    episode.step(text(("read", {})))
    after = recipe.score_attempt(episode)
    assert (before.scores["coverage"].score.value, after.scores["coverage"].score.value) == (0.5, 1.0)
