"""Dialogues that are led here: in the domain of our own, and over a small source in its process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.episodes import Conversation
from callwright.errors import DataError, InfrastructureFailure, UsageError
from callwright.machines.foreign_code.code import ForeignLost
from callwright.measuring.benchmark import Judged, Judgement, users_of
from callwright.pickling import made_again
from callwright.walk.attempt import Attempt
from callwright.walk.prompt import build_messages
from callwright_plugins.tau2 import benchmark as made
from callwright_plugins.tau2.domain import SourceEnvironment
from callwright_plugins.tau2.mock.benchmark import Tau2Mock
from callwright_plugins.tau2.tasks import GREETING, reference

PARSER = cw.parser("json")
REGISTRY = cw.default_registry()


def led(benchmark: Any, task: cw.Task, texts: Sequence[str] | None = None) -> Attempt:
    """A dialogue with these words of the agent; without any those of its reference."""
    conditions = cw.Conditions(limits=benchmark.corpus.limits, users=users_of(benchmark, REGISTRY))
    talk = Conversation(task, PARSER, build_messages(task, PARSER), conditions)
    spoken = iter(texts if texts is not None else [written(one) for one in task.facts["gold"]])
    while not talk.over:
        talk.accept(cw.Completion(next(spoken, written({"say": "Goodbye."}))))
    return talk.attempt


def written(turn: dict[str, Any]) -> str:
    if "say" in turn:
        return PARSER.render(cw.Program(text=turn["say"]))
    calls = tuple(cw.Call(at, one["tool"], one["arguments"]) for at, one in enumerate(turn["calls"]))
    return PARSER.render(cw.Program(calls))


def called(tool: str, **arguments: Any) -> str:
    return written({"calls": [{"tool": tool, "arguments": arguments}]})


MOCK = Tau2Mock()
TASKS = {task.id: task for task in MOCK.tasks()}


# Of our own -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("user", [None, "reference"])
def test_references_are_right(user: str | None) -> None:
    benchmark = Tau2Mock(user=user)
    for task in benchmark.tasks():
        attempt = led(benchmark, task)
        found = benchmark.judge(task, attempt)
        assert found.correct, (task.id, found)
        assert attempt.stop == "answered"
    bases = {name for task in benchmark.tasks() for name in benchmark.judge(task, led(benchmark, task)).parts}
    assert bases == {"DB", "ENV_ASSERTION", "ACTION", "COMMUNICATE", "db_match"}


def test_without_its_last_writing_action_no_reference_is_right() -> None:
    for task in TASKS.values():
        gold = task.facts["gold"]
        writing = [at for at, one in enumerate(gold) if any(not reads(task, call) for call in one.get("calls", ()))]
        if not writing:
            continue
        left = [written(one) for at, one in enumerate(gold) if at != writing[-1]]
        found = MOCK.judge(task, led(MOCK, task, left))
        assert found.masked is None
        assert not found.correct, task.id
        assert found.error in ("db", "env_assertion", "action")


def reads(task: cw.Task, call: dict[str, Any]) -> bool:
    return task.tools[call["tool"]].read_only


def test_what_has_to_be_said_is_said_by_the_agent_and_by_nobody_else() -> None:
    task = TASKS["longer"]
    done = [called("extend_hire", hire="H1", hours=2)]
    assert MOCK.judge(task, led(MOCK, task, [*done, written({"say": "That makes 20 euros."})])).correct
    found = MOCK.judge(task, led(MOCK, task, [*done, written({"say": "It is done."})]))
    assert (found.correct, found.error, found.parts["COMMUNICATE"]) == (False, "communicate", 0.0)
    other = [called("extend_hire", hire="H1", hours=3), written({"say": "20"})]
    assert MOCK.judge(task, led(MOCK, task, other)).error == "db"


def test_the_user_acts_on_the_same_world() -> None:
    task = TASKS["bring_back"]
    early = led(MOCK, task, [called("end_hire", hire="H2"), written({"say": "Goodbye."})])
    assert early.turns[0].trace is not None
    assert early.turns[0].trace.records[0].outcome.code == "NOT_LOCKED"
    attempt = led(MOCK, task, [written({"say": "Please lock it."}), called("end_hire", hire="H2")])
    user = attempt.turns[0].user
    assert user is not None
    assert user.trace is not None
    assert user.trace.records[0].outcome.value["locked"] is True
    assert MOCK.judge(task, attempt).correct
    assert not MOCK.judge(task, early).correct


def test_the_agent_greets_and_reads_the_policy_and_the_history() -> None:
    task = TASKS["longer"]
    seen = led(MOCK, task, [written({"say": "Goodbye."})])
    assert seen.task.query.startswith("I want to keep my bicycle for two hours more.")
    messages = build_messages(seen.task, PARSER)
    assert "A hire has at most 24 hours" in messages[0].text
    assert "close_lock" not in messages[0].text
    assert [(one.role, one.text) for one in messages[1:]] == [
        ("assistant", PARSER.render(cw.Program(text=GREETING))),
        ("user", seen.task.query),
    ]
    middle = build_messages(TASKS["in_the_middle"], PARSER)
    assert [one.role for one in middle] == ["system", "assistant", "user", "assistant", "tool", "assistant", "user"]


def test_a_dialogue_ends_after_so_many_steps_or_failed_calls_or_without_a_word() -> None:
    task = TASKS["longer"]
    gold = [written(one) for one in task.facts["gold"]]
    failing = [called("hire_details", hire=f"X{number}") for number in range(10)]
    assert MOCK.judge(task, led(MOCK, task, [*failing[:9], *gold])).correct
    assert MOCK.judge(task, led(MOCK, task, [*failing, *gold])).error == "too_many_errors"
    unknown = [called("no_such_tool") for _ in range(10)]
    assert MOCK.judge(task, led(MOCK, task, [*unknown, *gold])).error == "too_many_errors"
    looking = [called("hire_details", hire="H1")]
    # Each message with calls is two steps, the last one and the user's are one each, as is the query.
    assert MOCK.judge(task, led(MOCK, task, [*looking * 94, *gold])).correct
    assert MOCK.judge(task, led(MOCK, task, [*looking * 95, *gold])).correct
    assert MOCK.judge(task, led(MOCK, task, [*looking * 96, *gold])).error == "max_steps"
    assert MOCK.judge(task, led(MOCK, task, looking * 200)).error == "max_steps"
    silent = PARSER.render(cw.Program())
    assert MOCK.judge(task, led(MOCK, task, [silent, *gold])).error == "agent_error"


class Judge:
    """A judge of sentences that remembers what it was shown."""

    name = "test-judge"

    def __init__(self, *verdicts: bool) -> None:
        self.verdicts, self.asked = list(verdicts), []  # type: ignore[var-annotated]

    def holds(self, lines: Sequence[tuple[str, str]], sentences: Sequence[str]) -> list[bool]:
        self.asked.append((lines, sentences))
        return self.verdicts


def test_sentences_are_judged_or_left_out_and_it_is_said() -> None:
    assert any("NL_ASSERTION of 1 tasks is left out" in one for one in MOCK.unofficial)
    task = TASKS["too_long"]
    assert "NL_ASSERTION is left out" in MOCK.judge(task, led(MOCK, task)).evidence
    for verdict in (True, False):
        judge = Judge(verdict)
        benchmark = Tau2Mock(judge=judge)
        found = benchmark.judge(task, led(benchmark, task, [written({"say": "I am sorry, that is too long."})]))
        assert (found.correct, found.error) == (verdict, "" if verdict else "nl_assertion")
        (lines, sentences), *_ = judge.asked
        assert lines[0] == ("assistant", GREETING)
        assert ("assistant", "I am sorry, that is too long.") in lines
        assert sentences == ["The agent does not let the hire last longer than 24 hours, and says so."]
        assert not any("is left out" in one for one in benchmark.unofficial)


def test_pass_hat_is_told_for_every_k_that_all_tasks_have_samples_of() -> None:
    right, wrong = Judgement(True, 1.0), Judgement(False, 0.0, "db")
    rows = [Judged("a", "mock", right, 0), Judged("a", "mock", right, 1), Judged("b", "mock", right, 0)]
    rows += [Judged("b", "mock", wrong, 1), Judged("b", "mock", right, 2), Judged("a", "mock", wrong, 2)]
    found = MOCK.aggregate(rows)
    assert found == {
        "overall": pytest.approx(2 / 3),
        "pass^1": pytest.approx(2 / 3),
        "pass^2": pytest.approx(1 / 3),
        "pass^3": 0.0,
    }
    assert list(MOCK.aggregate([Judged("a", "mock", right, number) for number in range(10)])) == [
        "overall",
        *(f"pass^{k}" for k in range(1, 9)),
    ]
    assert MOCK.aggregate([]) == {"overall": None}


def test_who_plays_the_user_is_said_and_a_model_is_named_by_whoever_measures() -> None:
    benchmark = Tau2Mock(user="gold", user_options={"ir": "json"})
    assert benchmark.users == {"model": {"sampler": "gold", "options": {"ir": "json"}, "temperature": 0.0}}
    user = benchmark.tasks()[0].user
    assert user is not None
    assert user.name == "model"
    assert "Why you get in touch: I want to keep my bicycle" in user.options["goal"]
    assert set(user.options) == {"goal", "persona", "stop"}  # nothing that a task must not reach for
    assert any("told of its task in other words" in one for one in benchmark.unofficial)
    with pytest.raises(UsageError, match="go with a sampler as the user"):
        Tau2Mock(user_model="m")
    with pytest.raises(UsageError, match="needs a model"):
        Tau2Mock(judge="openai")


def test_lines_of_the_reference_hand_over_to_the_user_and_back() -> None:
    criteria = made.Criteria(
        actions=[
            {"name": "a", "arguments": {"x": 1}},
            {"name": "b", "arguments": {}, "requestor": "user"},
            {"name": "c", "arguments": {}, "requestor": "user"},
            {"name": "d", "arguments": {}},
        ],
        communicate=["one", "two"],
    )
    gold, lines = reference(criteria, "Hello.")
    assert [list(one) for one in gold] == [["calls"], ["say"], ["calls"], ["say"]]
    assert gold[-1]["say"] == "one\ntwo"
    assert [one if isinstance(one, str) else [call["tool"] for call in one["calls"]] for one in lines] == [
        "Hello.",
        ["b", "c"],
        "###STOP###",
    ]


# Over a source --------------------------------------------------------------------------------------------------------


BUY = {"name": "buy", "arguments": {"item": "i1"}}
NAME = {"name": "rename", "arguments": {"item": "i2", "name": "new"}}


def stated(task_id: str, *actions: dict[str, Any], **criteria: Any) -> dict[str, Any]:
    basis = {"reward_basis": ["DB", "COMMUNICATE"], **criteria}
    told = {"reason_for_call": "I want something.", "task_instructions": "Be brief."}
    return {
        "id": task_id,
        "user_scenario": {"persona": None, "instructions": told},
        "initial_state": None,
        "evaluation_criteria": {"actions": list(actions), "communicate_info": None, "nl_assertions": None, **basis},
    }


@pytest.fixture(scope="module")
def retail(shop: tuple[Any, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    source = shop[1].parents[3]
    domain = source / "data/tau2/domains/retail"
    domain.mkdir()
    tasks = [stated("0", BUY), stated("1", BUY, NAME, communicate_info=["3.0"]), stated("2")]
    (domain / "tasks.json").write_text(json.dumps(tasks))
    return {"data": str(source / "data"), "package": str(source)}


def test_references_are_right_in_the_process_of_the_source(retail: dict[str, str]) -> None:
    benchmark = made.Tau2Retail(**retail)  # type: ignore[arg-type]
    assert benchmark.unofficial[0] == "the file holds 3 tasks of the 114 of the split base"
    assert [one.id for one in benchmark.tasks()] == ["0", "1", "2"]
    for task in benchmark.tasks():
        attempt = led(benchmark, task)
        assert benchmark.judge(task, attempt).correct
        assert "Sell what there is." in build_messages(attempt.task, PARSER)[0].text
    other = led(benchmark, benchmark.corpus.task("0"), [called("buy", item="i2"), called("buy", item="i1")])
    assert benchmark.judge(other.task, other).error == "db"
    assert other.turns[0].trace is not None
    assert other.turns[0].trace.records[0].outcome.value == 2.0
    failed = led(benchmark, benchmark.corpus.task("0"), [called("buy", item="none"), called("buy", item="i1")])
    assert failed.turns[0].trace is not None
    outcome = failed.turns[0].trace.records[0].outcome
    assert (outcome.kind, outcome.message) == ("execution_error", "no none")
    assert benchmark.judge(failed.task, failed).correct


def test_equal_databases_have_equal_digests(retail: dict[str, str]) -> None:
    environment = made.Tau2Retail(**retail).corpus.environment  # type: ignore[arg-type]

    def digests(*calls: tuple[str, dict[str, Any]]) -> list[str]:
        session = environment.open("0")
        found = [session.digest()]
        for tool, arguments in calls:
            session.call(tool, arguments)
            found.append(session.digest())
        session.close()
        session.close()
        return found

    first, bought = digests(("buy", {"item": "i1"}))
    assert first != bought
    there = {"item": "i2", "name": "x"}
    assert digests(("count", {}), ("buy", {"item": "none"}), ("rename", {**there, "item": "none"})) == [first] * 4
    one, two = digests(("rename", there), ("stock", {"item": "y", "price": 1.0}))[1:]
    assert len({first, bought, one, two}) == 4
    assert digests(("stock", {"item": "y", "price": 1.0}), ("rename", there))[2] == two
    assert digests(("stock", {"item": "y", "price": 1.0}), ("drop", {"item": "y"}))[2] == first
    assert digests(("drop", {"item": "i3"}))[1] not in {first, bought, one, two}


def test_a_process_that_is_lost_costs_the_dialogue_that_lost_it(retail: dict[str, str]) -> None:
    benchmark = made.Tau2Retail(**retail)  # type: ignore[arg-type]
    environment = benchmark.corpus.environment
    there = environment.open("0")
    there.call("buy", {"item": "i1"})
    before = there.digest()
    lost = environment.open("0")
    with pytest.raises(InfrastructureFailure, match="ended its process"):
        lost.call("die", {})
    assert there.call("buy", {"item": "none"}).message == "no none"
    assert there.digest() == before
    assert there.call("drop", {"item": "i1"}).value == "item 1"
    attempts = [led(benchmark, task) for task in benchmark.tasks()]
    calls = [[called("die")], [written(one) for one in benchmark.tasks()[0].facts["gold"]]]
    died, right = (led(benchmark, benchmark.tasks()[0], texts) for texts in calls)
    found = benchmark.judge_together([(one.task, one) for one in [*attempts, died, right]])
    assert [one.masked is not None for one in found] == [False, False, False, True, False]
    assert [one.correct for one in found] == [True, True, True, False, True]


def test_a_call_that_uses_more_than_it_may_has_failed() -> None:
    asked: list[str] = []

    class Source:
        """One whose process does not survive a call of ``reckon``."""

        alive = True

        def describe(self, domain: str) -> dict[str, Any]:
            tools = [{"function": {"name": name}} for name in ("reckon", "count")]
            return {"policy": "None.", "tools": tools, "user_tools": []}

        def begin(self, domain: str, task: Any) -> tuple[int, str]:
            self.alive = True
            return 0, "first"

        def call(self, number: int, by: str, name: str, arguments: Any) -> dict[str, Any] | None:
            if not self.alive:
                return None
            asked.append(name)
            if name == "reckon":
                self.alive = False
                raise ForeignLost(arguments["code"], "gone")
            return {"content": "1", "error": False, "digest": "later"}

        def end(self, number: int) -> None:
            raise UsageError("it is closed")

    environment = SourceEnvironment("retail", Source(), {"0": {}}, (dict, ()))  # type: ignore[arg-type]
    session = environment.open()
    session.call("count", {})
    outcome = session.call("reckon", {"code": "timeout"})
    assert (outcome.kind, outcome.code) == ("execution_error", "timeout")
    assert session.call("count", {}).value == 1
    assert asked == ["count", "reckon", "count", "count"]
    with pytest.raises(ForeignLost):
        session.call("reckon", {"code": "exited"})
    session.close()


def test_a_benchmark_over_a_source_is_made_again_elsewhere(retail: dict[str, str]) -> None:
    benchmark = made.Tau2Retail(**retail, user="gold", user_options={"ir": "json"})  # type: ignore[arg-type]
    make, given = benchmark.__reduce__()
    again = make(*given)
    assert (again.version, again.users) == (benchmark.version, benchmark.users)
    reduced = benchmark.corpus.environment.__reduce__()
    assert reduced[0] is made_again
    assert reduced[0](*reduced[1]) is benchmark.corpus.environment


@pytest.mark.parametrize(
    ("version", "told"),
    [("12dddd3", "is not of tau2-bench at 12dddd3"), ("9999999", "has no version '9999999'")],
)
def test_tasks_of_another_version_are_refused(version: str, told: str, retail: dict[str, str]) -> None:
    with pytest.raises((DataError, UsageError), match=told):
        made.Tau2Retail(version, **retail)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="--data DIR"):
        made.Tau2Retail()
    with pytest.raises(UsageError, match="--package DIR"):
        made.Tau2Retail(data=retail["data"])
    with pytest.raises(DataError, match=r"holds none of tasks\.a2c0247\.json, tasks\.json"):
        made.Tau2Airline(**retail)  # type: ignore[arg-type]
