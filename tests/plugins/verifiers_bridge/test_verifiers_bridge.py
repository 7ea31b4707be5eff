"""What of the verifiers bridge needs nothing of verifiers, and the tests against it in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.environments import Fault, Hazards
from callwright.errors import DataError
from callwright.language.program import plain
from callwright_plugins import verifiers_bridge
from callwright_plugins.verifiers_bridge.calling import RolloutSession
from callwright_plugins.verifiers_bridge.scoring import make_corpus, own_name, score_messages

ROOT = Path(__file__).resolve().parents[3]
NAME = "toolworld-mini-v1"
TASK = cw.corpus(NAME).task("train-3")
ONE_CALL = next(task for task in cw.corpus(NAME)["train"][:40] if task.depth == 1 and task.returns == "one")


def said(content: str | None, *calls: tuple[str, str], thought: str | None = None) -> Any:
    """A message of an assistant as verifiers has it."""
    made = [SimpleNamespace(name=name, arguments=arguments) for name, arguments in calls]
    return SimpleNamespace(content=content, reasoning_content=thought, tool_calls=made or None)


@pytest.mark.parametrize("name", ["tier", "toolrl", "prove"])
def test_a_completion_in_a_form_is_scored_as_its_text(name: str) -> None:
    assert TASK.program is not None
    gold = cw.parser("json").render(TASK.program)
    for text in (gold, "no", ""):
        found = score_messages(name, TASK, [said("earlier"), said(text)], ir="json")
        assert found.to_json() == cw.reward(name).score(TASK, text).to_json()


def test_a_thought_that_the_server_took_out_is_put_back() -> None:
    assert TASK.program is not None
    text = cw.parser("json").render(TASK.program)
    body = text.partition("</think>")[2].lstrip("\n")
    assert score_messages("tier", TASK, [said(body)], ir="json").total == 0.0
    assert score_messages("tier", TASK, [said(body, thought="Hm.")], ir="json").total == 1.0


def test_calls_that_the_server_took_apart_are_turns_of_an_episode() -> None:
    assert ONE_CALL.program is not None
    call = ONE_CALL.program.calls[0]
    arguments = __import__("json").dumps(dict(call.arguments))
    hermes = cw.parser("hermes")
    texts = [hermes.render(cw.Program((cw.Call(0, call.tool, dict(call.arguments)),))), "There."]
    expected = cw.reward("tier").score_attempt(cw.Attempt(ONE_CALL, texts, hermes))
    for tool in (call.tool, f"mcp__callwright__{call.tool}"):
        found = score_messages("tier", ONE_CALL, [said(None, (tool, arguments)), said("There.")], ir=None)
        assert found.to_json() == expected.to_json()
    assert expected.total == 1.0
    assert own_name("other__tool", ONE_CALL) == "other__tool"


def test_a_tools_own_name_may_hold_what_a_harness_puts_before_names() -> None:
    spec = next(iter(ONE_CALL.tools.values()))
    task = evolve(ONE_CALL, tools=dict.fromkeys(("files__read", "read", "__odd"), spec))
    for name in task.tools:
        assert own_name(f"mcp__callwright__{name}", task) == own_name(name, task) == name
    assert own_name("mcp__callwright__write", task) == "mcp__callwright__write"


def test_the_model_works_in_the_world_in_which_it_is_scored() -> None:
    """With the hazards and the clock of its task, in one session, its calls numbered."""
    assert ONE_CALL.program is not None
    tool = ONE_CALL.program.calls[0].tool
    arguments = dict(ONE_CALL.program.calls[0].arguments)
    session = RolloutSession(ONE_CALL)
    told = [json.loads(session.call(name, arguments)) for name in (tool, tool, "nobody")]
    assert [one["id"] for one in told] == [0, 1, 2]
    assert told[0]["result"] == told[1]["result"]
    assert told[2]["error"]["code"] == "unknown_tool"
    assert session.masked is None
    session.close()
    worlds = cw.corpus("worlds-mini-v1")
    task = next(one for one in worlds[next(iter(worlds.splits))] if one.program is not None and one.program.calls)
    broken = evolve(task, hazards=Hazards((Fault("unavailable", 1.0),)), user=None, opening=None)
    call = broken.program.calls[0]  # type: ignore[union-attr]
    session = RolloutSession(broken)
    (record,) = cw.Attempt(broken, cw.parser("json").render(cw.Program((call,))), cw.parser("json")).trace.records
    assert record.outcome.injected == "unavailable"
    assert json.loads(session.call(call.tool, dict(call.arguments)))["error"]["code"] == record.outcome.code
    session.close()


def test_a_lost_session_masks_the_rollout() -> None:
    class Down:
        def call(self, tool: str, arguments: dict[str, Any]) -> Any:
            raise cw.InfrastructureFailure("the server is down")

        def digest(self) -> str:
            return ""

    session = RolloutSession(ONE_CALL, Down())  # type: ignore[arg-type]
    assert "the server is down" in json.loads(session.call(next(iter(ONE_CALL.tools)), {}))["error"]["message"]
    assert session.masked is not None
    assert "the server is down" in session.masked


@pytest.mark.parametrize("arguments", ["{", "[1]", "7", '{"a": 1e999}', '{"a": NaN}', ""])
def test_odd_arguments_of_a_model_never_raise(arguments: str) -> None:
    for task in (TASK, ONE_CALL, cw.corpus(NAME).task("train-0")):
        total = score_messages("tier", task, [said("x", ("FindHotels", arguments))], ir=None).total
        assert total is not None
        assert total < 1


def test_a_task_fixes_its_world(vault: Any) -> None:
    for task in [*vault["train"], *vault["evaluation"]]:
        text = cw.parser("json").render(task.program)
        assert score_messages("tier", task, [said(text)], ir="json").total == 1.0
        assert score_messages("tier", task, [said(None, ("turn", '{"by": 3}'))], ir=None).total == 1.0
        assert vault.opened == [task.seed] * 2
        vault.opened.clear()


def test_a_lost_rollout_has_no_total() -> None:
    assert score_messages("tier", TASK, [said("x")], ir=None, masked="the server is down").total is None
    assert score_messages("tier", TASK, [], ir="json", masked="the server is down").masked == "the server is down"
    with pytest.raises(DataError, match="nothing to score"):
        score_messages("tier", TASK, [], ir="json")


def test_corpora_are_made_once_for_their_options() -> None:
    one = make_corpus(NAME, {"train_size": 9, "seed": 1})
    assert one is make_corpus(NAME, {"seed": 1, "train_size": 9})
    assert one.splits["train"] == 9
    assert one is not make_corpus(NAME, {})


def test_without_verifiers_the_package_to_install_is_named() -> None:
    code = (
        "import sys; sys.modules['verifiers'] = sys.modules['verifiers.v1'] = None\n"
        "from callwright.errors import MissingExtra\nfrom callwright_plugins import verifiers_bridge\n"
        f"try: verifiers_bridge.taskset({NAME!r})\nexcept MissingExtra as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip().endswith("pip install 'callwright[verifiers]'"), done.stderr
    assert verifiers_bridge.__doc__


def test_the_tests_against_verifiers_pass_in_its_own_environment() -> None:
    """verifiers pins another mcp and openai than we do, so that it lives in an environment of its own."""
    python = os.environ.get("CALLWRIGHT_VERIFIERS_PYTHON")
    if not python:
        pytest.skip(
            "set CALLWRIGHT_VERIFIERS_PYTHON to the interpreter of an environment with verifiers and callwright"
        )
    file = Path(__file__).parent / "test_verifiers_package.py"
    path = os.pathsep.join([str(ROOT / "core"), str(ROOT / "plugins")])
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout


@pytest.mark.parametrize(("policy", "total"), [(None, 0.0), ("as_is", 1.0), ("overlong", 1.0), ("mask", None)])
def test_a_rollout_that_was_cut_off(policy: Any, total: float | None) -> None:
    assert TASK.program is not None
    text = cw.parser("json").render(TASK.program) + "and so on " * 260
    cut = score_messages("tier", TASK, [said(text)], ir="json", truncated=True, policy=policy)
    assert cut.total == total
    assert score_messages("tier", TASK, [said(text)], ir="json", policy=policy).total == 1.0
    call = ONE_CALL.program.calls[0] if ONE_CALL.program else None
    assert call is not None
    message = said(None, (call.tool, json.dumps(plain(call.arguments))))
    turns = {"ir": None, "policy": policy}
    assert score_messages("tier", ONE_CALL, [message], **turns).total == 1.0
    assert score_messages("tier", ONE_CALL, [message], truncated=True, **turns).total == total


def test_a_floor_of_ones_own() -> None:
    assert TASK.program is not None
    gold = cw.parser("json").render(TASK.program)
    assert score_messages("tier", TASK, [said(gold)], ir="json", truncated=True, floor=-1.5).total == -1.5
