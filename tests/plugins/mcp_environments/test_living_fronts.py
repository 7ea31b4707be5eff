"""A clock that moves, by every way in: episodes, processes of their own, MCP, recordings, recipes, the command line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.cli.root import root
from callwright.environments import ClockPolicy, Fault, Hazards, RateLimit
from callwright.environments.stateful import Scenario, StatefulEnvironment
from callwright.episodes.conversation import Conversation
from callwright.errors import RecipeError
from callwright.language.messages import Message
from callwright.language.program import Call, Program
from callwright.pipeline import build_pipeline
from callwright.recipe_file import parse_recipe
from callwright.training.ledger.ingredients import task_digests
from callwright.walk import (
    Answer,
    Completion,
    Conditions,
    ExecutionRules,
    Task,
    TurnLimits,
    UserSpec,
    execute,
    replay,
)
from callwright_plugins.mcp_servers.serving.service import Service, make_server
from callwright_plugins.mcp_servers.wire import SESSION, answer_of, result_of
from callwright_plugins.recorded.environment import RecordedEnvironment
from callwright_plugins.recorded.recording import RecordingEnvironment

HOUR = 3600
PARSER = cw.parser("json")
#: Orders that the scenario has under way are packed, shipped and delivered within the first days.
SLOW = ClockPolicy(call=12 * HOUR, call_spread=HOUR, user_turn=6 * HOUR, jumps=(0, 24 * HOUR), seed=5)


def shop() -> StatefulEnvironment:
    made: StatefulEnvironment = cw.environment("shopping")
    return made


def notices_of(environment: Any, policy: ClockPolicy, calls: int) -> list[tuple[str, ...]]:
    session = environment.open("typical", 0)
    session.keep_time(policy)
    return [session.call("list_orders", {"limit": 1}).notices for _ in range(calls)]


def looks(count: int) -> Program:
    return Program(tuple(Call(number, "list_orders", {"limit": 1}) for number in range(count)))


def test_the_model_of_an_episode_reads_what_happened_and_users_take_their_time() -> None:
    environment = shop()
    asked = Task(
        "t",
        "?",
        environment.tools,
        Answer(),
        environment,
        clock=ClockPolicy(call=60, user_turn=120, jumps=(0, 48 * HOUR)),
        user=UserSpec("replayed", {"says": ["And now?", "Two days later: and now?"]}),
    )
    conditions = Conditions(limits=TurnLimits(assistant_turns=9, user_turns=9))
    talk = Conversation(asked, PARSER, [Message(role="user", content="?")], conditions)
    read = []
    for number in range(6):
        answer = PARSER.render(looks(1 - number % 2))
        before = len(talk.messages)
        talk.accept(Completion(answer))
        read.append(" ".join(str(message.content) for message in talk.messages[before + 1 :]))
    assert "notices" not in read[0]
    assert "notices" not in read[2]
    assert "is packed" in read[4]
    assert replay(talk.attempt).same
    again = cw.walk.Attempt.of(asked, PARSER, talk.turns, conditions)
    lenient = again.execution(ExecutionRules(missing_field="whole"))
    assert [record.state for record in lenient.records] == [record.state for record in talk.attempt.whole_trace.records]


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_sessions_in_processes_of_their_own_go_the_same_way(isolation: Any) -> None:
    environment = shop()
    rules = ExecutionRules(isolation=isolation)
    trace = execute(looks(3), environment, environment.tools, scenario="typical", clock=SLOW, rules=rules)
    assert [record.outcome.notices for record in trace.records] == notices_of(environment, SLOW, 3)
    assert any(record.outcome.notices for record in trace.records)


def test_over_mcp_the_same_is_told() -> None:
    from mcp import Client

    environment = shop()
    service = Service(environment, scenario="typical", clock=SLOW)

    async def ask() -> list[Any]:
        async with Client(make_server(service)) as client:
            named: Any = {SESSION: "a"}
            return [await client.call_tool("list_orders", {"limit": 1}, meta=named) for _ in range(3)]

    told = []
    for result in asyncio.run(ask()):
        blocks = [json.loads(block.text) for block in result.content]
        said = [tuple(block["notices"]) for block in blocks if isinstance(block, dict) and "notices" in block]
        told.append(said[0] if said else ())
    assert told == notices_of(environment, SLOW, 3)
    assert any(told)


def test_an_outcome_with_notices_crosses_the_wire_whole() -> None:
    for outcome in (
        cw.Outcome("ok", {"a": 1}, notices=("one", "two")),
        cw.Outcome("refused", None, "NO", "no", "", ("x",)),
    ):
        answer = answer_of(json.loads(json.dumps(result_of(outcome))))
        assert answer is not None
        assert answer.outcome == outcome


def test_a_recording_keeps_what_was_told(tmp_path: Path) -> None:
    environment = shop()
    scenario = environment.scenarios["typical"]
    environment.scenarios["moving"] = Scenario(scenario.build, "", scenario.now, SLOW)
    recording = RecordingEnvironment(environment, tmp_path)
    first = execute(looks(3), recording, recording.tools, scenario="moving")
    played = RecordedEnvironment(tmp_path)
    again = execute(looks(3), played, played.tools, scenario="moving")
    assert [one.outcome for one in again.records] == [one.outcome for one in first.records]
    assert any(one.outcome.notices for one in again.records)


RECIPE = """\
[corpus]
name = "toolworld-mini-v1"
train = "train"

[algorithm]
name = "grpo"

[clock]
call = 30
call_spread = {spread}
jumps = [0, 7200]
"""


def test_a_recipe_names_a_clock_for_tasks_that_name_none() -> None:
    pipeline = build_pipeline(parse_recipe(RECIPE.format(spread=5), source="r.toml"))
    assert pipeline.conditions.clock == ClockPolicy(call=30, call_spread=5, jumps=(0, 7200))
    with pytest.raises(RecipeError, match="smaller than call"):
        parse_recipe(RECIPE.format(spread=30), source="r.toml")


def test_a_task_with_a_clock_is_another_task() -> None:
    environment = shop()
    plain = Task("t", "?", environment.tools, Answer(), environment)
    digests = [task_digests([task])["t"] for task in (plain, evolve(plain, clock=None), evolve(plain, clock=SLOW))]
    assert digests[0] == digests[1] != digests[2]


def invoke(*words: str, input: str | None = None) -> Any:
    from click.testing import CliRunner

    return CliRunner().invoke(root, ["env", *words], input=input)


def test_the_command_line_has_a_clock() -> None:
    found = invoke("call", "shopping", "list_orders", "--arg", "limit=1", "--clock", "call=86400", "--json")
    assert found.exit_code == 0, found.output
    assert any("is packed" in text for text in json.loads(found.stdout)["notices"])
    still = invoke("call", "shopping", "list_orders", "--arg", "limit=1", "--json")
    assert "notices" not in json.loads(still.stdout)
    wrong = invoke("call", "shopping", "list_orders", "--clock", "fast")
    assert wrong.exit_code != 0


def test_the_shell_lets_time_pass() -> None:
    script = ":wait 86400\nlist_orders limit=1\n:user\n:undo\n:quit\n"
    moved = invoke("shell", "shopping", "--clock", "on", input=script)
    assert "is packed" in moved.output
    still = invoke("shell", "shopping", input=":user\n:quit\n")
    assert "--clock on" in still.output


def test_calls_meet_hazards_from_the_command_line() -> None:
    always = "unavailable=1,in_a_row=0"
    found = invoke("call", "shopping", "list_orders", "--hazards", always, "--json")
    assert found.exit_code == 1
    assert json.loads(found.output)["code"] == "UNAVAILABLE"
    assert invoke("call", "shopping", "list_orders", "--hazards", "off").exit_code == 0
    wrong = invoke("call", "shopping", "list_orders", "--hazards", "gremlins")
    assert wrong.exit_code != 0
    assert "does not say what calls meet" in f"{wrong.output}{wrong.exception}"
    lines = "list_orders limit=1\nlist_orders limit=1\nlist_orders limit=1\n"
    limited = invoke("shell", "shopping", "--hazards", "limit=2/60", input=lines)
    assert limited.output.count("RATE_LIMITED") == 1


def test_over_mcp_calls_meet_hazards_and_say_which() -> None:
    from mcp import Client

    hazards = Hazards((Fault("truncated_page", 1.0),), (RateLimit(3),), in_a_row=1)
    service = Service(shop(), scenario="typical", hazards=hazards)

    async def ask() -> list[Any]:
        async with Client(make_server(service)) as client:
            named: Any = {SESSION: "a"}
            return [await client.call_tool("list_orders", {"limit": 4}, meta=named) for _ in range(4)]

    found = [answer_of(result.model_dump(by_alias=True)) for result in asyncio.run(ask())]
    outcomes = [one.outcome for one in found if one is not None]
    assert [one.injected for one in outcomes] == ["truncated_page", "", "truncated_page", "rate_limit"]
    assert [one.kind for one in outcomes] == ["partial", "ok", "partial", "execution_error"]
