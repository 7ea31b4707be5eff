"""Execution: references, outcomes, isolation of values, lost machinery, limits."""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from callwright.environments.protocol import Outcome
from callwright.errors import InfrastructureFailure, UsageError
from callwright.language.program import Call, Program, Reference
from callwright.tools.spec import ToolError, ToolSpec
from callwright.walk.execution import STRICT, ExecutionRules, copy_json, execute, records_there, resolved_arguments
from callwright.walk.trace import Trace

OPEN = {"type": "object", "additionalProperties": True}
SPECS = {
    name: ToolSpec(name, parameters=OPEN, result_field=field)
    for name, field in {
        "echo": None,  # {"got": arguments}
        "value": None,  # arguments["it"]
        "rows": "rows",  # {"rows": arguments["it"], "count": …}
        "bare": "rows",  # arguments["it"], although the specification promises a field
        "greedy": None,  # empties what it was given, and hands out a list that it goes on changing
        "fails": None,
        "documented": None,
        "quits": None,
        "lost": None,
        "slow": None,
        "count": None,  # the only one that changes the state
    }.items()
}
SPECS["hidden"] = ToolSpec("hidden", parameters=OPEN, hidden=True)


class World:
    """An environment that logs what reaches it."""

    name = "world"
    tools: Mapping[str, ToolSpec] = SPECS

    def __init__(self, *, pure: bool = False, broken: str = "") -> None:
        self.pure, self.broken = pure, broken
        self.opened: list[tuple[str, int]] = []
        self.received: list[tuple[str, dict[str, Any]]] = []
        self.closed = 0
        self.release = threading.Event()

    def open(self, scenario: str = "", seed: int = 0) -> WorldSession:
        if self.broken == "open":
            raise InfrastructureFailure("no room")
        self.opened.append((scenario, seed))
        return WorldSession(self)


class WorldSession:
    def __init__(self, world: World) -> None:
        self.world, self.counter, self.kept = world, 0, [1, 2, 3]

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        self.world.received.append((tool, copy.deepcopy(arguments)))
        it = arguments.get("it")
        match tool:
            case "echo":
                return Outcome("ok", {"got": arguments})
            case "value" | "bare":
                return Outcome("ok", it)
            case "rows":
                return Outcome("ok", {"rows": it, "count": len(it) if isinstance(it, list) else 0})
            case "greedy":
                for value in list(arguments.values()):
                    if isinstance(value, list | dict):
                        value.clear()
                arguments.clear()
                self.kept.append(9)
                return Outcome("ok", self.kept)
            case "documented":
                raise ToolError("not_found", "nothing there")
            case "quits":
                raise SystemExit(3)
            case "lost":
                raise InfrastructureFailure("the server is gone")
            case "slow":
                self.world.release.wait(30)
                return Outcome("ok", "late")
            case "count":
                self.counter += 1
                return Outcome("ok", self.counter)
        raise LookupError(f"{tool} cannot")

    def digest(self) -> str:
        if self.world.broken == "digest" or (self.world.broken == "later digest" and self.counter):
            raise InfrastructureFailure("no answer")
        return str(self.counter)

    def close(self) -> None:
        self.world.closed += 1
        if self.world.broken == "close":
            raise InfrastructureFailure("no answer")


def run(*calls: Call, world: World | None = None, rules: ExecutionRules = STRICT, returns: Any = "one") -> Trace:
    return execute(Program(calls, returns), world or World(), SPECS, rules=rules)


def arguments_of(trace: Trace, call: int = -1) -> Mapping[str, Any]:
    return trace.records[call].arguments


# References -----------------------------------------------------------------------------------------------------------

TABLE = [{"name": "a", "tags": ["x", "y"]}, {"name": "b", "tags": []}]


@pytest.mark.parametrize(
    ("tool", "reference", "expected"),
    [
        ("value", Reference(0), TABLE),
        ("value", Reference(0, (1,)), TABLE[1]),
        ("value", Reference(0, (0, "tags", 1)), "y"),
        ("rows", Reference(0), TABLE),
        ("rows", Reference(0, ("rows",)), TABLE),
        ("rows", Reference(0, ("count",)), 2),
        ("rows", Reference(0, ("rows", 0, "name")), "a"),
        ("bare", Reference(0), TABLE),
        ("bare", Reference(0, (0, "name")), "a"),
    ],
)
@pytest.mark.parametrize("pure", [True, False])
def test_a_reference_is_what_it_points_to(tool: str, reference: Reference, expected: Any, pure: bool) -> None:
    trace = run(Call(0, tool, {"it": TABLE}), Call(1, "echo", {"x": reference}), world=World(pure=pure))
    assert arguments_of(trace) == {"x": expected}
    assert trace.executed
    assert trace.returned == ({"got": {"x": expected}},)


def test_a_result_without_its_field_stands_for_itself() -> None:
    for reference in (Reference(0), Reference(0, ("rows",))):
        trace = run(Call(0, "bare", {"it": {"error": 404}}), Call(1, "echo", {"x": reference}))
        assert arguments_of(trace) == {"x": {"error": 404}}


@pytest.mark.parametrize(
    "path", [("nothing",), (2,), (0, "nothing"), (0, "tags", 5), ("rows",), (0, 0), (0, "name", 0), (0, "name", "x")]
)
def test_a_path_that_is_not_there_fails_the_call(path: tuple[str | int, ...]) -> None:
    calls = (Call(0, "value", {"it": TABLE}), Call(1, "echo", {"x": Reference(0, path)}), Call(2, "value", {"it": 1}))
    trace = run(*calls)
    assert [step.outcome.kind for step in trace.records] == ["ok", "execution_error", "ok"]
    assert trace.records[1].outcome.code == "unresolved_reference"
    assert str(Reference(0, path)) in trace.records[1].outcome.message
    assert arguments_of(run(*calls, rules=ExecutionRules(missing_field="whole")), 1) == {"x": TABLE}


def test_references_stand_anywhere_in_the_arguments() -> None:
    deep = {"a": [1, Reference(0, ("count",)), {"b": [Reference(0), Reference(1)]}], "c": "API_RESPONSE_0"}
    trace = run(Call(0, "rows", {"it": [7]}), Call(1, "value", {"it": None}), Call(2, "echo", deep))
    assert arguments_of(trace) == {"a": [1, 1, {"b": [[7], None]}], "c": "API_RESPONSE_0"}


leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from([Reference(0), Reference(1)])
trees = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


def substituted(value: Any, results: list[Any]) -> Any:
    match value:
        case Reference():
            return results[value.call]
        case dict():
            return {key: substituted(inner, results) for key, inner in value.items()}
        case list():
            return [substituted(inner, results) for inner in value]
    return value


@given(st.dictionaries(st.text(max_size=3), trees, max_size=3), st.booleans())
def test_resolving_is_substitution(tree: dict[str, Any], pure: bool) -> None:
    results = [{"k": [1]}, "text"]
    calls = [Call(i, "value", {"it": result}) for i, result in enumerate(results)]
    trace = run(*calls, Call(2, "echo", tree), world=World(pure=pure))
    assert arguments_of(trace) == substituted(tree, results)


def test_a_dangling_reference() -> None:
    for number in (0, 1, 9):
        trace = run(Call(0, "echo", {"x": Reference(number)}), Call(1, "value", {"it": 2}))
        assert trace.records[0].outcome.code == "unresolved_reference"
        assert trace.returned == (2,)
    literal = run(Call(0, "echo", {"x": Reference(9, ("k",))}), rules=ExecutionRules(unresolved="literal"))
    assert literal.returned == ({"got": {"x": "API_RESPONSE_9.k"}},)


def test_what_depends_on_a_failed_call_fails() -> None:
    calls = (
        Call(0, "fails", {}),
        Call(1, "echo", {"x": Reference(0)}),
        Call(2, "echo", {"x": [Reference(1, ("got",))]}),
        Call(3, "value", {"it": 1}),
    )
    trace = run(*calls)
    assert [step.outcome.code for step in trace.records] == [
        "LookupError",
        "failed_dependency",
        "failed_dependency",
        "",
    ]
    assert not trace.executed
    assert [step.call for step in trace.failures] == [0, 1, 2]
    passed = run(*calls, rules=ExecutionRules(after_failure="pass"))
    assert arguments_of(passed, 1) == {"x": None}
    passed = run(calls[0], Call(1, "echo", {"x": Reference(0, ("k",))}), rules=ExecutionRules(after_failure="pass"))
    assert arguments_of(passed, 1) == {"x": "API_RESPONSE_0.k"}


# Outcomes -------------------------------------------------------------------------------------------------------------


def test_exceptions_of_tools_are_outcomes() -> None:
    for tool, code in (("fails", "LookupError"), ("documented", "ToolError"), ("quits", "SystemExit")):
        (step,) = run(Call(0, tool, {})).records
        assert (step.outcome.kind, step.outcome.code) == ("execution_error", code)
        assert not step.outcome.executed
    assert run(Call(0, "fails", {})).records[0].outcome.message == "fails cannot"


def test_only_offered_tools_run() -> None:
    world = World()
    trace = run(Call(0, "hidden", {}), Call(1, "nobody", {}), world=world)
    assert [step.outcome.kind for step in trace.records] == ["unknown_tool", "unknown_tool"]
    assert world.received == []
    trace = execute(Program((Call(0, "count", {}),)), world, {"echo": SPECS["echo"]})
    assert trace.records[0].outcome.kind == "unknown_tool"


def test_what_is_returned() -> None:
    calls = (Call(0, "value", {"it": 1}), Call(1, "value", {"it": 2}))
    assert run(*calls).returned == (2,)
    assert run(*calls, returns="all").returned == (1, 2)
    assert run().returned == ()
    assert run().executed
    assert run(returns="all").records == ()


def test_a_session_is_opened_once_and_closed() -> None:
    world = World()
    execute(Program((Call(0, "count", {}), Call(1, "fails", {}))), world, SPECS, scenario="s", seed=5)
    assert (world.opened, world.closed) == ([("s", 5)], 1)
    execute(Program(()), world, SPECS)
    assert (world.opened, world.closed) == ([("s", 5)], 1), "a program without calls needs no session"


def test_the_state_is_recorded_after_each_call() -> None:
    trace = run(Call(0, "value", {}), Call(1, "count", {}), Call(2, "fails", {}), Call(3, "count", {}))
    assert trace.state == "0"
    assert [step.state for step in trace.records] == ["0", "1", "1", "2"]


# Isolation ------------------------------------------------------------------------------------------------------------


def test_a_tool_cannot_change_the_data_of_another() -> None:
    program = (
        Call(0, "value", {"it": [1, [2]]}),
        Call(1, "greedy", {"it": Reference(0), "more": {"k": Reference(0, (1,))}}),
        Call(2, "echo", {"x": Reference(0), "y": Reference(1)}),
        Call(3, "greedy", {}),
        Call(4, "echo", {"x": Reference(1), "y": Reference(3)}),
    )
    before = copy.deepcopy(program)
    trace = run(*program)
    assert program == before
    assert arguments_of(trace, 1) == {"it": [1, [2]], "more": {"k": [2]}}, "the trace shows what the tool was given"
    assert arguments_of(trace, 2) == {"x": [1, [2]], "y": [1, 2, 3, 9]}
    assert arguments_of(trace, 4) == {"x": [1, 2, 3, 9], "y": [1, 2, 3, 9, 9]}
    assert [step.outcome.value for step in trace.records if step.tool == "greedy"] == [[1, 2, 3, 9], [1, 2, 3, 9, 9]]


def test_nothing_is_copied_in_a_pure_environment() -> None:
    big = [1, 2]
    seen: list[Any] = []

    def spy(session: Any, call: Call, arguments: dict[str, Any]) -> Outcome:
        seen.append(arguments["it"])
        return Outcome("ok", arguments["it"])

    program = Program((Call(0, "value", {"it": big}), Call(1, "value", {"it": Reference(0)})))
    execute(program, World(pure=True), SPECS, caller=spy)
    assert seen[0] is seen[1] is big
    seen.clear()
    execute(program, World(), SPECS, caller=spy)
    assert seen[0] is not big
    assert seen[0] is not seen[1]


@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_a_copy_shares_no_container(value: Any) -> None:
    def containers(node: Any) -> set[int]:
        inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        own = {id(node)} if isinstance(node, dict | list) else set()
        return own.union(*map(containers, inner))

    twin = copy_json(value)
    assert twin == value
    assert containers(twin).isdisjoint(containers(value))


# The machinery --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("broken", ["open", "digest"])
def test_a_session_that_never_began(broken: str) -> None:
    world = World(broken=broken)
    trace = run(Call(4, "count", {"a": 1}), Call(5, "count", {}), world=world)
    assert trace.masked is not None
    assert trace.masked.startswith("call 4 count: session: no ")
    assert len(trace.records) == 1
    assert world.received == []


def test_a_lost_server_ends_the_program_and_masks_it() -> None:
    world = World()
    trace = run(Call(0, "count", {}), Call(1, "lost", {}), Call(2, "count", {}), world=world)
    assert trace.masked == "call 1 lost: infrastructure: the server is gone"
    assert trace.infrastructure is trace.records[-1]
    assert [step.call for step in trace.records] == [0, 1]
    assert (trace.records[-1].state, world.closed) == ("", 1)


def test_a_session_lost_after_a_call_masks_it() -> None:
    trace = run(Call(0, "value", {}), Call(1, "count", {}), Call(2, "value", {}), world=World(broken="later digest"))
    assert trace.masked == "call 1 count: session: no answer"
    assert len(trace.records) == 2


def test_a_session_that_cannot_be_closed_has_said_everything() -> None:
    trace = run(Call(0, "value", {"it": 1}), world=World(broken="close"))
    assert (trace.masked, trace.returned) == (None, (1,))


def test_a_call_over_the_time_limit_is_the_machinerys_fault() -> None:
    world = World()
    rules = evolve(STRICT, time_limit=0.02)
    trace = run(Call(0, "value", {"it": 1}), Call(1, "slow", {}), Call(2, "count", {}), world=world, rules=rules)
    assert trace.masked == "call 1 slow: timeout: slow took more than 0.02 s"
    assert [step.outcome.kind for step in trace.records] == ["ok", "infrastructure_error"]
    world.release.set()


def test_under_a_time_limit_everything_else_is_the_same() -> None:
    calls = (Call(0, "fails", {}), Call(1, "documented", {}), Call(2, "quits", {}), Call(3, "value", {"it": [1]}))
    limited = run(*calls, rules=evolve(STRICT, time_limit=30.0))
    assert limited == run(*calls)
    assert run(Call(0, "lost", {}), rules=evolve(STRICT, time_limit=30.0)).masked is not None


def test_an_exception_of_a_caller_reaches_whoever_runs_the_program() -> None:
    """A tool's exceptions are outcomes by then: what is left is a bug of whatever stands around the session."""

    def buggy(session: Any, call: Call, arguments: dict[str, Any]) -> Outcome:
        raise ZeroDivisionError("a bug")

    def lost(session: Any, call: Call, arguments: dict[str, Any]) -> Outcome:
        raise InfrastructureFailure("gone")

    for limit in (None, 30.0):
        rules = evolve(STRICT, time_limit=limit)
        with pytest.raises(ZeroDivisionError, match="a bug"):
            execute(Program((Call(0, "value", {}),)), World(), SPECS, rules=rules, caller=buggy)
        assert execute(Program((Call(0, "value", {}),)), World(), SPECS, rules=rules, caller=lost).masked is not None


# Model text neither raises nor hangs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("pure", [True, False])
def test_results_do_not_grow_without_bound(pure: bool) -> None:
    """Each call hands on twice what the last one returned: sixty of them would be more than there is memory."""
    doubling = [Call(0, "value", {"it": ["x"]})]
    doubling += [Call(i, "value", {"it": [Reference(i - 1), Reference(i - 1)]}) for i in range(1, 60)]
    trace = run(*doubling, world=World(pure=pure))
    kinds = [step.outcome.code for step in trace.records]
    assert kinds[:10] == [""] * 10
    assert kinds.count("too_large") == 1
    assert set(kinds) == {"", "too_large", "failed_dependency"}


def test_numbers_may_be_doubled_as_often_as_anyone_likes() -> None:
    doubling = [Call(0, "count", {})]
    doubling += [Call(i, "count", {"a": Reference(i - 1), "b": Reference(i - 1)}) for i in range(1, 60)]
    assert run(*doubling).executed


def test_a_long_chain_and_a_wide_funnel_run() -> None:
    chain = [Call(0, "rows", {"it": [1]}), *(Call(i, "rows", {"it": Reference(i - 1)}) for i in range(1, 256))]
    assert run(*chain).executed
    funnel = [
        *(Call(i, "rows", {"it": [i]}) for i in range(255)),
        Call(255, "value", {"it": [Reference(i) for i in range(255)]}),
    ]
    assert run(*funnel).returned == ([[i] for i in range(255)],)


def test_results_nested_in_results_end_in_an_outcome() -> None:
    calls = [Call(0, "value", {"it": [1]})]
    for i in range(1, 100):
        inner: Any = Reference(i - 1)
        for _ in range(60):
            inner = [inner]
        calls.append(Call(i, "value", {"it": inner}))
    trace = run(*calls)
    # Whether the tool or the copying meets the interpreter's limit first depends on the interpreter.
    assert {"too_deep", "RecursionError"} & {step.outcome.code for step in trace.records}
    assert trace.records[-1].outcome.code == "failed_dependency"


# What references come to, outside of a session ------------------------------------------------------------------------


def test_a_recorded_call_was_given_what_its_references_came_to() -> None:
    results = {0: Outcome("ok", {"a": [1, 2]}), 1: Outcome("execution_error", None, "no", "no"), 2: Outcome("unknown")}
    for asked, expected in [
        ({"x": [Reference(0, ("a", 1))], "y": "z"}, {"x": [2], "y": "z"}),
        ({"x": Reference(1), "y": [Reference(0)]}, {"x": "API_RESPONSE_1", "y": ["API_RESPONSE_0"]}),
        ({"x": Reference(7)}, {"x": "API_RESPONSE_7"}),
        ({"x": Reference(2)}, None),
    ]:
        assert resolved_arguments(Call(3, "echo", asked), results, {}) == expected


def test_as_many_copies_as_are_allowed_are_handed_on() -> None:
    for copies, code in ((4096, ""), (4097, "too_large")):
        calls = (Call(0, "value", {"it": 1}), Call(1, "echo", {"all": [Reference(0)] * copies}))
        assert execute(Program(calls), World(pure=True), SPECS).records[1].outcome.code == code


def test_in_the_process_of_a_session_its_own_tools_are_taken_where_none_are_sent() -> None:
    """What another process runs for the walk, run here: tools that the task changed are sent, the others are there."""
    world = World(pure=True)
    program = Program(
        (Call(0, "value", {"it": {"rows": [5]}}), Call(1, "value", {"it": Reference(0)}), Call(2, "hidden"))
    )
    for sent, expected in ((None, {"rows": [5]}), (evolve(SPECS["value"], result_field="rows"), [5])):
        session: Any = world.open()
        session.tools, session.inner = SPECS, session
        specs = {"value": sent, "hidden": None}
        before, *records = records_there(session, program, specs, STRICT, copied=False)
        assert before == session.digest()
        assert [record.outcome.kind for record in records] == ["ok", "ok", "unknown_tool"]
        assert records[1].outcome.value == expected


def test_a_session_in_place_of_an_environment_is_said() -> None:
    session = World().open()
    with pytest.raises(UsageError, match=r"opens a session of an environment.*Execution\("):
        execute(Program((Call(0, "echo", {}),)), session, SPECS)
