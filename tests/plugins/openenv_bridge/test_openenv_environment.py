"""An OpenEnv environment as one of ours: what servers say, and what becomes of calls, rewards and sessions."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

import callwright as cw
from callwright.environments.protocol import Outcome
from callwright.environments.sessions import briefing_of
from callwright.errors import DataError, InfrastructureFailure, UnknownName, UsageError
from callwright_plugins.openenv_bridge.environment import OpenEnvSession

COUNT = {
    "title": "CountAction",
    "description": "Add to the count.",
    "type": "object",
    "additionalProperties": False,
    "properties": {"metadata": {"type": "object"}, "by": {"type": "integer"}},
    "required": ["by"],
}


def observed(observation: dict[str, Any], reward: Any = None, done: bool = False) -> dict[str, Any]:
    """A message with an observation."""
    return {"type": "observation", "data": {"observation": observation, "reward": reward, "done": done}}


class Counter:
    """An environment of one action that counts to three and pays for each step; a session is not told from another."""

    def __init__(self) -> None:
        self.count = 0
        self.resets: list[Any] = []

    def __call__(self, message: Any) -> Any:
        if message["type"] == "reset":
            self.count = 0
            self.resets.append(message["data"])
            return observed({"say": "Count to three.", "metadata": {"secret": 1}}, 0.0)
        if message["type"] == "state":
            return {"type": "state", "data": {"episode_id": "random", "step_count": 1, "count": self.count}}
        by = message["data"]["by"]
        if by < 0:
            return {"type": "error", "data": {"message": "it only goes up", "code": "EXECUTION_ERROR"}}
        self.count += by
        return observed({"count": self.count, "metadata": {}}, by / 4, self.count >= 3)


def test_an_action_is_one_tool_whose_parameters_are_its_fields(speak: Callable[..., str]) -> None:
    counter = Counter()
    environment = cw.environment("openenv", url=speak(counter, COUNT), tool="add", reset={"level": 2})
    (spec,) = environment.tools.values()
    assert (spec.name, spec.description) == ("add", "Counts.\nAdd to the count.")
    assert spec.parameters["properties"] == {"by": {"type": "integer"}}
    assert briefing_of(environment, "", 0) == "Count to three."
    session = environment.open("", 7)
    assert counter.resets[-1] == {"level": 2, "seed": 7}
    first = session.digest()
    assert session.call("add", {"by": "x"}).kind == "schema_error"
    assert session.call("step", {"by": 1}).kind == "unknown_tool"
    assert session.digest() == first
    one = session.call("add", {"by": 1})
    assert (one.kind, one.value, one.notices) == ("ok", {"count": 1}, ())
    assert session.digest() != first
    session.close()
    session.close()


def test_what_the_environment_raises_is_told_as_its_bug(speak: Callable[..., str]) -> None:
    session = cw.environment("openenv", url=speak(Counter(), COUNT)).open()
    failed = session.call("step", {"by": -1})
    assert (failed.kind, failed.code, failed.message) == ("execution_error", "execution_error", "it only goes up")
    assert "step made the environment raise" in failed.undeclared
    assert session.call("step", {"by": 1}).executed
    session.close()


def test_an_episode_that_is_over_takes_no_more_calls(speak: Callable[..., str]) -> None:
    session = cw.environment("openenv", url=speak(Counter(), COUNT)).open()
    assert isinstance(session, OpenEnvSession)
    last = session.call("step", {"by": 3})
    assert (last.value, last.notices, session.done) == ({"count": 3}, ("The episode is over.",), True)
    over = session.call("step", {"by": 1})
    assert (over.kind, over.code, session.rewards) == ("execution_error", "episode_over", [0.75])
    session.close()


def scored(environment: Any, steps: tuple[int, ...], **options: Any) -> cw.Reward:
    """What the environment's own reward is of these steps, each a call of one program."""
    tools = environment.tools
    task = cw.Task("t", "Count.", tools, cw.Answer(), environment)
    program = cw.Program(tuple(cw.Call(at, "step", {"by": by}) for at, by in enumerate(steps)))
    form = cw.parser("json")
    return cw.reward("openenv", **options).score(task, form.render(program), ir=form)


def test_the_reward_is_what_the_environment_gave(speak: Callable[..., str]) -> None:
    environment = cw.environment("openenv", url=speak(Counter(), COUNT))
    assert scored(environment, (1, 1)).total == 0.5
    assert scored(environment, (1, 1), of="last").total == 0.25
    assert scored(environment, (2, 1), of="best").total == 0.5
    assert scored(environment, (1, 1), high=0.5).explain() == "0.5: every point"
    nothing = scored(environment, ())
    assert (nothing.total, "gave no reward" in nothing.explain()) == (0.0, True)
    assert "call 0 step earned 0.25" in scored(environment, (1,)).explain()
    with pytest.raises(DataError, match=r"gave 0.75 .* state its own with low=… and high=…"):
        scored(environment, (3,), high=0.5)


def test_a_step_without_a_reward_earned_nothing(speak: Callable[..., str]) -> None:
    def answer(message: Any) -> Any:
        return {"type": "state", "data": {}} if message["type"] == "state" else observed({"n": 1})

    assert scored(cw.environment("openenv", url=speak(answer, COUNT)), (1,)).total == 0.0


def test_where_nobody_gave_rewards_the_sample_is_masked() -> None:
    corpus = cw.corpus("toolworld-mini-v1")
    task = corpus.task("evaluation-16")
    form = cw.parser("json")
    found = cw.reward("openenv").score(task, form.render(task.program), ir=form)
    assert found.total is None
    assert "is not known" in (found.masked or "")


@pytest.mark.parametrize("given", [{"low": 1.0, "high": 1.0}, {"high": float("inf")}])
def test_a_range_that_is_none_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match=r"low must be below high|finite number, not"):
        cw.reward("openenv", **given)


def test_episodes_are_tasks_by_seed_and_scenario(speak: Callable[..., str]) -> None:
    counter = Counter()
    corpus = cw.corpus(
        "openenv",
        url=speak(counter, COUNT),
        train_size=5,
        evaluation_size=2,
        first_seed=10,
        scenarios={"easy": {"level": 1}, "hard": {"level": 9}},
        turns=3,
    )
    assert [(task.scenario, task.seed) for task in corpus["train"]] == [
        ("easy", 10),
        ("hard", 10),
        ("easy", 11),
        ("hard", 11),
        ("easy", 12),
    ]
    assert [(task.scenario, task.seed) for task in corpus["evaluation"]] == [("hard", 12), ("easy", 13)]
    assert corpus.limits.assistant_turns == 3
    corpus.environment.open("hard", 4).close()
    assert counter.resets[-1] == {"seed": 4, "level": 9}
    assert pickle.loads(pickle.dumps(corpus)).task("train-1") == corpus.task("train-1")
    with pytest.raises(UnknownName, match="scenario"):
        corpus.environment.open("other")


LISTED: Any = {
    "tools": [
        {"name": "find.item", "description": "Find.", "input_schema": {"properties": {"q": {"type": "string"}}}},
        {"name": "find_item", "description": "", "inputSchema": {"properties": {}, "additionalProperties": False}},
    ]
}
CALL: Any = {"title": "CallToolAction", "properties": {"type": {"const": "call_tool"}, "tool_name": {}}}


def structured(value: Any, text: str = "", *, is_error: bool = False, data: Any = None) -> dict[str, Any]:
    """A result of FastMCP as its client holds it."""
    return {
        "content": [{"type": "text", "text": text}] if text else [],
        "structured_content": value,
        "data": data,
        "meta": None,
        "is_error": is_error,
    }


#: What a call_tool is answered with, and what comes of it.
ANSWERS: Any = [
    ({"tool_name": "x", "result": {"n": 1}, "error": None}, ("ok", {"n": 1}, "")),
    ({"tool_name": "x", "result": structured({"result": 4}, data=4), "error": None}, ("ok", 4, "")),
    ({"tool_name": "x", "result": structured({"result": 4}, data={"result": 4})}, ("ok", {"result": 4}, "")),
    ({"tool_name": "x", "result": structured({"n": 2}), "error": None}, ("ok", {"n": 2}, "")),
    ({"tool_name": "x", "result": structured(None, "words"), "error": None}, ("ok", "words", "")),
    ({"tool_name": "x", "result": structured(None), "error": None}, ("ok", None, "")),
    (
        {"tool_name": "x", "result": structured(None, "no bread", is_error=True)},
        ("execution_error", None, "tool_error"),
    ),
    (
        {"tool_name": "x", "tool_result": [1], "reward_type": "success"},
        ("ok", {"tool_result": [1], "reward_type": "success"}, ""),
    ),
    ({"tool_name": "x", "error": "no such row"}, ("execution_error", None, "tool_error")),
    # OpenEnv guesses these two from words; the tool was listed and its arguments fit.
    (
        {"error": {"error_type": "tool_not_found", "message": "customer not found"}},
        ("execution_error", None, "tool_error"),
    ),
    ({"error": {"error_type": "invalid_args", "message": "an invalid month"}}, ("execution_error", None, "tool_error")),
    (
        {"error": {"error_type": "invalid_args", "message": "1 validation error for call[x]"}},
        ("schema_error", None, "invalid_params"),
    ),
    ({"error": {"error_type": "timeout", "message": "30 s"}}, ("infrastructure_error", None, "timeout")),
    (
        {"error": {"error_type": "transport_error", "message": "lost"}},
        ("infrastructure_error", None, "transport_error"),
    ),
]


@pytest.mark.parametrize(("observation", "expected"), ANSWERS)
def test_what_a_call_comes_to(speak: Callable[..., str], observation: Any, expected: Any) -> None:
    asked = []

    def answer(message: Any) -> Any:
        if message["type"] == "reset":
            return observed({})
        if message["data"]["type"] == "list_tools":
            return observed(LISTED)
        asked.append(message["data"])
        return observed(observation)

    environment = cw.environment("openenv", url=speak(answer, CALL))
    assert list(environment.tools) == ["find_item", "find_item_2"]
    assert not environment.briefs
    session = environment.open()
    outcome = session.call("find_item", {"q": "a"})
    assert (outcome.kind, outcome.value, outcome.code) == expected
    assert asked == [{"type": "call_tool", "tool_name": "find.item", "arguments": {"q": "a"}}]
    if outcome.kind == "infrastructure_error":
        assert session.call("find_item", {}).code == "session"
    session.close()


#: What a server may do to a step, and the code that it comes to.
TROUBLE: Any = [
    (lambda message: None, "crashed"),
    (lambda message: "{", "protocol"),
    (lambda message: '{"type": "observation", "data": {"observation": {"n": NaN}}}', "protocol"),
    (lambda message: [1], "protocol"),
    (lambda message: {"type": "observation", "data": {"no": 1}}, "protocol"),
    (lambda message: {"type": "state", "data": {}}, "protocol"),
    (lambda message: ..., "timeout"),
    (lambda message: observed({"n": "x" * 3000}), "crashed"),
]


@pytest.mark.parametrize(("trouble", "code"), TROUBLE)
def test_a_lost_session_masks_and_is_over(speak: Callable[..., str], trouble: Any, code: str) -> None:
    def answer(message: Any) -> Any:
        return observed({}) if message["type"] == "reset" else trouble(message)

    limits: dict[str, Any] = {"time_limit": 0.2} if code == "timeout" else {"reply_limit": 2000}
    session = cw.environment("openenv", url=speak(answer, COUNT), **limits).open()
    assert session.call("step", {"by": 1}).code == code
    assert session.call("step", {"by": 1}).code == "session"
    with pytest.raises(InfrastructureFailure):
        session.digest()
    session.close()


def test_a_reset_that_is_refused_is_the_callers_mistake(speak: Callable[..., str]) -> None:
    refusing = speak(
        lambda message: {"type": "error", "data": {"message": "no level 9", "code": "EXECUTION_ERROR"}}, COUNT
    )
    with pytest.raises(UsageError, match=r"refuses reset\(level=9, seed=0\): no level 9"):
        cw.environment("openenv", url=refusing, reset={"level": 9}).open()


def test_a_full_server_is_waited_for_and_named(speak: Callable[..., str]) -> None:
    left = [2]

    def answer(message: Any) -> Any:
        if message["type"] == "reset" and left[0]:
            left[0] -= 1
            return {"type": "error", "data": {"message": "Server at capacity: 1/1", "code": "CAPACITY_REACHED"}}
        return observed({})

    url = speak(answer, COUNT)
    cw.environment("openenv", url=url).open().close()
    assert left == [0]
    left[0] = 10**9
    with pytest.raises(InfrastructureFailure, match="max_concurrent_envs"):
        cw.environment("openenv", url=url, wait_limit=0).open()


def test_nobody_there_is_said_at_once() -> None:
    environment = cw.environment("openenv", url="http://127.0.0.1:9")
    with pytest.raises(
        InfrastructureFailure, match=r"the OpenEnv server at 127\.0\.0\.1:9 does not answer GET /schema"
    ):
        _ = environment.tools


def test_a_listing_that_failed_is_said(speak: Callable[..., str]) -> None:
    failed = {"tools": [], "metadata": {"error": "reset with a scenario first", "error_type": "list_tools_failed"}}
    url = speak(lambda message: observed({} if message["type"] == "reset" else failed), CALL)
    with pytest.raises(DataError, match="reset with a scenario first"):
        _ = cw.environment("openenv", url=url).tools


def test_histories_stand_in_where_the_state_says_nothing(speak: Callable[..., str]) -> None:
    def answer(message: Any) -> Any:
        if message["type"] == "state":
            return {"type": "state", "data": {"episode_id": "x", "step_count": 3}}
        return observed({"n": 1})

    environment = cw.environment("openenv", url=speak(answer, COUNT))
    one, other = environment.open("", 1), environment.open("", 1)
    assert one.digest() == other.digest() != environment.open("", 2).digest()
    one.call("step", {"by": 1})
    assert one.digest() != other.digest()
    other.call("step", {"by": 1})
    assert one.digest() == other.digest()


def test_hidden_tools_and_names_that_nobody_has(speak: Callable[..., str]) -> None:
    url = speak(lambda message: observed({} if message["type"] == "reset" else LISTED), CALL)
    environment = cw.environment("openenv", url=url, hide=["find_item_2"])
    assert environment.open().call("find_item_2", {}).kind == "unknown_tool"
    with pytest.raises(UnknownName, match="tool to hide"):
        _ = cw.environment("openenv", url=url, hide=["other"]).tools


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "needs either url=…, where a server runs, or environment="),
        ({"url": "http://a", "environment": "a:B"}, "needs either url"),
        ({"url": "http://a", "action": "a:B"}, "a server at a URL tells its own"),
        ({"url": "ftp://a"}, "not of the form http://HOST:PORT"),
        ({"url": "http://a", "digest": "all"}, "digest"),
        ({"url": "http://a", "time_limit": 0}, "time_limit"),
        ({"url": "http://a", "hiden": ()}, "hide"),
    ],
)
def test_options_that_cannot_be(options: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        cw.environment("openenv", **options)


def test_an_environment_travels_and_a_session_does_not(speak: Callable[..., str]) -> None:
    environment = cw.environment("openenv", url=speak(Counter(), COUNT))
    other = pickle.loads(pickle.dumps(environment))
    session = other.open()
    assert session.call("step", {"by": 1}) == environment.open().call("step", {"by": 1})
    with pytest.raises(UsageError, match="cannot be copied"):
        pickle.dumps(session)


def test_outcomes_with_rewards_compare_and_travel(speak: Callable[..., str]) -> None:
    outcome = cw.environment("openenv", url=speak(Counter(), COUNT)).open().call("step", {"by": 1})
    again = pickle.loads(pickle.dumps(outcome))
    assert again == outcome
    assert isinstance(again, Outcome)
    assert again.reward == 0.25
