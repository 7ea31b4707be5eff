"""Sizes: results, arguments and states are bounded, and a long integer is a value like any other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright.digests import digest_of
from callwright.environments.sizes import MOST_STATE, MOST_VALUE, Bounds, bounds, held_by, held_to, size_of
from callwright.language.long_numbers import digits_of, integer_of, json_text, json_value, shortened_numbers
from callwright.language.program import Call, Program, Reference
from callwright.training.run_folder import append_jsonl, read_jsonl
from callwright.walk.answers import values_equal
from callwright.walk.execution import execute
from callwright.walk.trace import Trace


@cw.tool(read_only=True)
def wide(a: list[Any]) -> list[Any]:
    """Ten times as much."""
    return a * 10


@cw.tool(read_only=True)
def cat(a: list[Any], b: list[Any]) -> list[Any]:
    """Both."""
    return a + b


@cw.tool(read_only=True)
def nest(a: Any, b: Any) -> list[Any]:
    """Both, one beside the other."""
    return [a, b]


@cw.tool(read_only=True)
def long_text(n: int) -> str:
    """A text of n characters."""
    return "x" * n


@cw.tool(read_only=True)
def power(n: int) -> int:
    """Ten to the power of n."""
    return 10**n


@cw.tool
def keep(state: list[Any], /, n: int) -> int:
    """Twice what was kept, and n more."""
    state.append("x" * n)
    state.append("".join(state))
    return len(state)


TOOLS = cw.environment("growing", tools=[wide, cat, nest, long_text, power, keep], state=lambda scenario, seed: [])


def run(*calls: Call) -> Trace:
    return execute(Program(tuple(calls)), TOOLS, TOOLS.tools)


def codes(trace: Trace) -> list[str]:
    return [record.outcome.code for record in trace.records]


def test_a_tool_that_multiplies_lists_cannot_hang_a_walk() -> None:
    calls = [Call(0, "wide", {"a": [1]}), *(Call(i, "wide", {"a": Reference(i - 1)}) for i in range(1, 9))]
    found = codes(run(*calls))
    assert found == ["", "", "", "", "", "result_too_large", *["failed_dependency"] * 3]


def test_a_tool_that_joins_lists_cannot_fill_the_memory() -> None:
    calls = [Call(0, "cat", {"a": [1], "b": [1]})]
    calls += [Call(i, "cat", {"a": Reference(i - 1), "b": Reference(i - 1)}) for i in range(1, 29)]
    found = codes(run(*calls))
    assert "too_large" in found or "result_too_large" in found
    assert found[-1] == "failed_dependency"


@pytest.mark.parametrize("copied", [False, True])
def test_references_count_before_they_are_copied(copied: bool) -> None:
    """Texts have no members to count: twenty of a million characters in one call are twenty million."""
    calls = [Call(0, "long_text", {"n": 1_000_000}), Call(1, "wide", {"a": [Reference(0)] * 20})]
    environment = TOOLS
    if not copied:
        environment = cw.StatefulEnvironment(
            "pure", rows=[], tools=[wide, long_text], scenarios={"only": cw.Scenario(lambda rng, scale: ())}
        )
    trace = execute(Program(tuple(calls)), environment, environment.tools)
    assert codes(trace) == ["", "too_large"]
    assert trace.masked is None


def test_the_results_of_a_program_are_bounded_together() -> None:
    """Each of them is within the bound of one."""
    found = codes(run(*(Call(i, "long_text", {"n": 7_900_000}) for i in range(12))))
    assert found == [""] * 9 + ["results_too_large"] * 3


def test_a_result_that_is_too_large_is_the_callers_failure_and_changes_nothing() -> None:
    session = TOOLS.open()
    outcome = session.call("long_text", {"n": MOST_VALUE + 1})
    assert (outcome.kind, outcome.code, outcome.undeclared) == ("execution_error", "result_too_large", "")
    assert session.call("long_text", {"n": MOST_VALUE - 8}).kind == "ok"


def test_a_world_of_rows_is_as_it_was_after_a_result_that_is_too_large() -> None:
    @cw.row("notes", prefix="N")
    class Note:
        id: str
        text: str

    @cw.tool
    def write(world: cw.World, /, n: int) -> str:
        """Write a note, and return a text."""
        world.put(Note(world.new_id(Note), "note"))
        return "x" * n

    world = cw.StatefulEnvironment(
        "notes", rows=[Note], tools=[write], scenarios={"only": cw.Scenario(lambda rng, scale: ())}
    ).open()
    before = world.digest()
    assert world.call("write", {"n": MOST_VALUE + 1}).code == "result_too_large"
    assert world.digest() == before
    assert world.call("write", {"n": 1}).kind == "ok"
    assert world.digest() != before


def test_a_state_that_doubles_is_stopped_and_put_back() -> None:
    session = TOOLS.open()
    assert session.call("keep", {"n": 1_000_000}).kind == "ok"
    before, found = session.digest(), []
    for _ in range(8):
        outcome = session.call("keep", {"n": 1_000_000})
        found.append(outcome.code)
        if outcome.failed:
            assert session.digest() == before
        before = session.digest()
    assert found[-1] == "state_too_large"
    assert held_by(session.state, MOST_STATE) <= MOST_STATE


def test_a_session_of_somebody_else_is_held_to_the_same_bound() -> None:
    class Other:
        name, pure, tools = "other", True, TOOLS.tools

        def open(self, scenario: str = "", seed: int = 0) -> Other:
            return self

        def call(self, tool: str, arguments: dict[str, Any]) -> cw.Outcome:
            return cw.Outcome("ok", ["x" * 1000] * 10_000)

        def digest(self) -> str:
            return ""

        def close(self) -> None: ...

    trace = execute(Program((Call(0, "power", {"n": 1}),)), Other(), TOOLS.tools)
    assert codes(trace) == ["result_too_large"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_a_size_is_about_the_length_of_the_json_text(value: Any) -> None:
    size, text = size_of(value, 10**9), json.dumps(value, ensure_ascii=False)
    assert size <= 8 * len(text) + 8
    assert len(text) <= 7 * size  # control characters are six characters in JSON
    assert size_of(value, size) == size
    assert size_of(value, size - 1) > size - 1


def test_a_circular_value_has_a_size() -> None:
    circle: list[Any] = []
    circle.append(circle)
    assert size_of(circle, 1000) > 1000
    assert held_by(circle, 1000) < 100


# Long integers --------------------------------------------------------------------------------------------------------

LONG = 10**5000


@given(st.integers(min_value=-(10**6000), max_value=10**6000) | st.integers())
def test_long_integers_are_written_and_read(number: int) -> None:
    assert integer_of(digits_of(number)) == number
    assert json_value(json_text({"a": [number, None]}, sort_keys=True)) == {"a": [number, None]}


@given(JSON)
def test_the_text_of_a_value_without_long_integers_is_that_of_json(value: Any) -> None:
    long = json_text([value, LONG], ensure_ascii=False)
    assert json_text(value, ensure_ascii=False) == json.dumps(value, ensure_ascii=False)
    assert long == f"[{json.dumps(value, ensure_ascii=False)}, {digits_of(LONG)}]"


def test_a_long_integer_is_a_value_of_a_walk() -> None:
    trace = run(Call(0, "power", {"n": 5000}), Call(1, "nest", {"a": Reference(0), "b": 1}))
    assert trace.executed
    assert trace.returned == ([LONG, 1],)
    assert values_equal([LONG, 1], trace.returned[0])
    assert not values_equal([LONG + 1, 1], trace.returned[0])
    assert "not_json" not in cw.environments.tell(trace.records[0].outcome)
    assert digits_of(LONG) in cw.environments.tell(trace.records[1].outcome)


def test_digests_tell_long_integers_apart() -> None:
    assert digest_of({"a": LONG}) == digest_of({"a": LONG}) != digest_of({"a": LONG + 1})


def test_a_long_integer_stands_in_a_row(tmp_path: Any) -> None:
    append_jsonl(tmp_path / "rows.jsonl", [{"value": LONG}, {"value": 5}])
    assert [*read_jsonl(tmp_path / "rows.jsonl")] == [{"value": LONG}, {"value": 5}]


def test_a_long_integer_is_short_in_messages() -> None:
    assert shortened_numbers({"a": [-LONG, True, 5]}) == {"a": ["-1000000000000000000… (5,001 digits)", True, 5]}


@pytest.mark.parametrize("recipe", ["tier", "tier-strict", "tier-released", "simple", "toolrl"])
@pytest.mark.parametrize("expected", [LONG, LONG + 1, 7], ids=["right", "wrong", "short"])
def test_a_long_integer_is_scored_by_every_recipe(recipe: str, expected: int) -> None:
    program = Program((Call(0, "power", {"n": 5000}),))
    task = cw.Task("t", "?", TOOLS.tools, cw.Answer((expected,)), TOOLS, program=program)
    completion = cw.parser("json").render(program)
    reward = cw.reward(recipe).score(task, completion)
    assert reward.masked is None
    assert json.loads(json.dumps(reward.to_json()))
    reward.explain()


# Other bounds ---------------------------------------------------------------------------------------------------------


def test_bounds_can_be_made_small_and_are_the_usual_ones_again() -> None:
    held: list[int] = []

    @cw.tool()
    def remember(state: list[int], /, number: int) -> list[int]:
        """Keep a number; say all of them."""
        state.append(number)
        return state

    shop = cw.environment("small", tools=[remember], state=lambda scenario, seed: held.copy())
    program = Program(tuple(Call(number, "remember", {"number": number}) for number in range(6)))

    def outcomes() -> list[str]:
        return [record.outcome.code or "ok" for record in execute(program, shop, shop.tools).records]

    with held_to(Bounds(value=40)):  # a list of four numbers
        assert bounds().value == 40
        assert outcomes() == ["ok"] * 4 + ["result_too_large"] * 2
        assert "larger than 40 characters" in execute(program, shop, shop.tools).records[-1].outcome.message
    with held_to(Bounds(state=24)):
        assert outcomes() == ["ok"] * 2 + ["state_too_large"] * 4
    with pytest.raises(KeyError), held_to(Bounds(value=1)):
        raise KeyError
    assert bounds() == Bounds()
    assert outcomes() == ["ok"] * 6


def test_arguments_and_all_results_have_small_bounds_too() -> None:
    environment = cw.environment("joins", tools=[cat])
    calls = [Call(0, "cat", {"a": [1], "b": [2]})]
    calls += [Call(number, "cat", {"a": Reference(number - 1), "b": Reference(number - 1)}) for number in (1, 2)]
    program = Program(tuple(calls))
    with held_to(Bounds(value=56)):  # two lists of two numbers each, by their names
        codes = [record.outcome.code for record in execute(program, environment, environment.tools).records]
    assert codes == ["", "too_large", "failed_dependency"]
    with held_to(Bounds(results=20)):
        codes = [record.outcome.code for record in execute(program, environment, environment.tools).records]
    assert codes == ["", "results_too_large", "failed_dependency"]
