"""Faults and limits of rates: drawn by seed and state, told by documented codes, and survived by calling again."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.environments import ClockPolicy, Fault, Hazards, RateLimit
from callwright.environments.hazards.policy import CODES, read_hazards
from callwright.environments.telling import tell
from callwright.errors import DataError, RecipeError
from callwright.language.program import Call, Program
from callwright.pipeline import build_pipeline
from callwright.recipe_file import parse_recipe
from callwright.testing import check_component
from callwright.training.ledger.ingredients import task_digests
from callwright.walk.conditions import Conditions
from callwright.walk.execution import Execution, execute
from callwright.walk.tasks import Answer, Task


@cw.row("books", prefix="B")
class Book:
    id: str
    title: str
    copies: int


@cw.tool(read_only=True)
def books(world: cw.World, /) -> dict[str, Any]:
    """All books."""
    return {"items": [{"id": row.id, "title": row.title} for row in world.rows(Book)], "total": world.count(Book)}


@cw.tool(read_only=True)
def book(world: cw.World, /, book_id: str) -> dict[str, Any]:
    """One book."""
    row = world.need(Book, book_id)
    return {"book_id": row.id, "title": row.title, "copies": row.copies, "now": world.now}


@cw.tool(latency=7, irreversible=True)
def lend(world: cw.World, /, book_id: str) -> dict[str, int]:
    """Lend a copy."""
    row = world.need(Book, book_id)
    if not row.copies:
        raise cw.ToolError("NONE_LEFT", "no copy is left")
    return {"left": world.update(row, copies=row.copies - 1).copies}


def build(rng: Random, scale: float) -> Iterator[Book]:
    for number in range(1, 7):
        yield Book(f"B{number}", f"Volume {number}", 50)


HARD = (Fault("unavailable", 0.3), Fault("timeout", 0.2), Fault("dropped_fields", 0.2), Fault("stale_read", 0.5))
LIBRARY = cw.StatefulEnvironment(
    "library",
    rows=[Book],
    tools=[books, book, lend],
    scenarios={
        "calm": cw.Scenario(build),
        "rough": cw.Scenario(build, faults=HARD, limits=(RateLimit(40),)),
    },
)
ALWAYS = cw.StatefulEnvironment(
    "always",
    rows=[Book],
    tools=[books, book, lend],
    scenarios={"rough": cw.Scenario(build, faults=(*HARD, Fault("lost_reply", 0.2)), limits=(RateLimit(40),))},
)
SCRIPT = [
    ("books", {}),
    ("book", {"book_id": "B1"}),
    ("lend", {"book_id": "B1"}),
    ("book", {"book_id": "B1"}),
    ("book", {"book_id": "B9"}),
    ("lend", {}),
    ("nothing", {}),
] * 5


def seen(outcome: cw.Outcome) -> tuple[Any, ...]:
    return outcome.kind, repr(outcome.value), outcome.code, outcome.message, outcome.injected, outcome.notices


def lived(session: Any, script: Any = SCRIPT) -> list[tuple[Any, ...]]:
    return [(*seen(session.call(*call)), session.digest()) for call in script]


def program(*calls: tuple[str, dict[str, Any]]) -> Program:
    return Program(
        tuple(Call(number, name, arguments) for number, (name, arguments) in enumerate(calls)), returns="all"
    )


def meeting(*faults: Fault, limits: tuple[RateLimit, ...] = (), **more: Any) -> Any:
    session = LIBRARY.open("calm")
    session.meet_hazards(Hazards(faults, limits, **more))
    return session


def test_equal_sessions_have_equal_luck_however_they_came_about() -> None:
    first = lived(LIBRARY.open("rough"))
    assert lived(LIBRARY.open("rough")) == first
    assert {row[4] for row in first} >= {"unavailable", "timeout"}
    session = LIBRARY.open("rough")
    assert lived(session, SCRIPT[:17]) == first[:17]
    for other in (session.fork(), pickle.loads(pickle.dumps(session)), session):
        assert lived(other, SCRIPT[17:]) == first[17:]
    session.reset()
    assert lived(session) == first


def test_luck_hangs_on_the_seed_of_the_hazards_and_of_the_world_and_on_nothing_else() -> None:
    faults = (Fault("unavailable", 0.5),)

    def luck(seed: int, world: int, *between: Any) -> list[str]:
        session = LIBRARY.open("calm", world)
        session.meet_hazards(Hazards(faults, seed=seed, in_a_row=0))
        found = []
        for _ in range(30):
            found.append(session.call("books", {}).code)
            for call in between:
                session.call(*call)
        return found

    alone = luck(0, 0)
    assert luck(0, 0, ("lend", {"book_id": "B1"})) == alone
    assert luck(1, 0) != alone
    assert luck(0, 1) != alone
    assert 5 < alone.count("UNAVAILABLE") < 25


@pytest.mark.parametrize("clock", [None, ClockPolicy()])
def test_faults_that_are_drawn_never_change_the_state(clock: ClockPolicy | None) -> None:
    session = meeting(*HARD, in_a_row=0)
    session.keep_time(clock)
    for call in SCRIPT:
        before = session.snapshot()
        if session.call(*call).injected:
            assert session.snapshot() == before


def test_no_hazards_are_no_difference() -> None:
    calm, none = LIBRARY.open("calm"), LIBRARY.open("calm")
    none.meet_hazards(Hazards())
    assert none.hazards is None
    never = LIBRARY.open("calm")
    never.meet_hazards(Hazards((Fault("unavailable", 0.0),), (RateLimit(1000),)))
    assert lived(calm) == lived(none) == lived(never)


def test_each_kind_has_its_code_and_says_what_is_wrong() -> None:
    for kind in ("unavailable", "timeout"):
        outcome = meeting(Fault(kind, 1.0)).call("lend", {"book_id": "B1"})
        assert (outcome.kind, outcome.code, outcome.injected) == ("execution_error", CODES[kind], kind)
    session = meeting(Fault("lost_reply", 1.0))
    lost = session.call("lend", {"book_id": "B1"})
    assert seen(lost)[:4] == seen(meeting(Fault("timeout", 1.0)).call("lend", {"book_id": "B1"}))[:4]
    assert lost.injected == "lost_reply"
    assert session.world.need(Book, "B1").copies == 49  # it was done, and nobody is told

    dropped = meeting(Fault("dropped_fields", 1.0)).call("book", {"book_id": "B1"})
    assert (dropped.kind, dropped.code) == ("partial", "FIELDS_DROPPED")
    assert len(dropped.value) == 3
    assert dropped.value["book_id"] == "B1"
    page = meeting(Fault("dropped_fields", 1.0)).call("books", {})
    assert page.value == {"items": [{"id": f"B{number}"} for number in range(1, 7)], "total": 6}
    half = meeting(Fault("truncated_page", 1.0)).call("books", {})
    assert (half.kind, half.code, len(half.value["items"]), half.value["total"]) == ("partial", "PAGE_TRUNCATED", 3, 6)

    session = meeting(Fault("stale_read", 1.0))
    assert session.call("book", {"book_id": "B1"}).kind == "ok"  # nothing has changed that it could have missed
    session.call("lend", {"book_id": "B1"})
    stale = session.call("book", {"book_id": "B1"})
    assert (stale.kind, stale.code, stale.value["copies"]) == ("partial", "STALE_READ", 50)
    assert session.call("book", {"book_id": "B2"}).kind == "ok"  # which did not change


def test_silent_noise_looks_whole_to_a_model_and_not_to_a_reward() -> None:
    half = meeting(Fault("truncated_page", 1.0, silent=True)).call("books", {})
    assert (half.kind, half.code, half.message, half.injected) == ("ok", "", "", "truncated_page")
    assert len(half.value["items"]) == 3


def test_calling_again_helps_unless_it_was_asked_not_to() -> None:
    for kind in ("unavailable", "timeout", "lost_reply", "dropped_fields", "truncated_page"):
        session = meeting(Fault(kind, 1.0))
        whole = [not session.call("books", {}).injected for _ in range(9)]
        assert whole == [False, False, True] * 3
    hopeless = meeting(Fault("unavailable", 1.0), in_a_row=0)
    assert {hopeless.call("books", {}).injected for _ in range(50)} == {"unavailable"}


def test_faults_befall_the_tools_that_they_name_and_valid_calls_only() -> None:
    session = meeting(Fault("unavailable", 1.0, tools=("lend",)))
    assert session.call("books", {}).kind == "ok"
    assert session.call("lend", {}).kind == "schema_error"
    assert session.call("nothing", {}).kind == "unknown_tool"
    assert session.call("lend", {"book_id": "B1"}).code == "UNAVAILABLE"


def test_a_rate_is_a_rate() -> None:
    session = meeting(Fault("unavailable", 0.25), in_a_row=0)
    found = Counter(session.call("books", {}).kind for _ in range(2000))
    assert 400 < found["execution_error"] < 600


def test_an_environment_that_is_never_without_them_conforms() -> None:
    assert check_component("environment", ALWAYS) == ()


# Limits and time ------------------------------------------------------------------------------------------------------


def codes(session: Any, *tools: str) -> list[str]:
    return [session.call(name, {"book_id": "B1"} if name != "books" else {}).code for name in tools]


def test_limits_are_of_a_turn_where_time_stands_still() -> None:
    session = meeting(limits=(RateLimit(2),))
    assert codes(session, "books", "book", "books") == ["", "", "RATE_LIMITED"]
    session.next_turn()
    assert codes(session, "books", "lend", "lend") == ["", "", "RATE_LIMITED"]
    one = meeting(limits=(RateLimit(1, tool="lend"),))
    assert codes(one, "books", "books", "lend", "lend") == ["", "", "", "RATE_LIMITED"]
    each = meeting(limits=(RateLimit(1, tool="*"),))
    assert codes(each, "books", "lend", "books", "lend") == ["", "", "RATE_LIMITED", "RATE_LIMITED"]


def test_limits_are_of_a_time_where_it_moves_and_say_when_there_is_room() -> None:
    session = meeting(limits=(RateLimit(2, 60),))
    session.keep_time(ClockPolicy(call=20))
    assert codes(session, "books", "books", "books", "books") == ["", "", "RATE_LIMITED", ""]
    session = meeting(limits=(RateLimit(1, 60),))
    session.keep_time(ClockPolicy(call=5))
    session.call("books", {})
    refused = session.call("books", {})
    assert refused.injected == "rate_limit"
    assert "at most 1 calls in 60 s" in refused.message
    assert "in 55 s" in refused.message
    session.elapse(50)
    assert codes(session, "books") == [""]


def test_episodes_have_turns() -> None:
    limited = Hazards(limits=(RateLimit(2),))
    execution = Execution(LIBRARY, LIBRARY.tools, scenario="calm", hazards=limited)
    for _ in range(3):
        trace = execution.run(program(("books", {}), ("books", {}), ("books", {})))
        assert [record.outcome.code for record in trace.records] == ["", "", "RATE_LIMITED"]
    execution.close()


def test_latency_and_time_outs_take_time() -> None:
    def passed(call: str, *faults: Fault) -> int:
        session = meeting(*faults)
        session.keep_time(ClockPolicy(call=20))
        before = session.world.now
        session.call(call, {"book_id": "B1"})
        return int(session.world.now - before)

    assert passed("book") == 20
    assert passed("lend") == 27
    assert passed("book", Fault("timeout", 1.0, seconds=300)) == 320
    assert passed("book", Fault("unavailable", 1.0)) == 20
    still = LIBRARY.open("calm")
    still.call("lend", {"book_id": "B1"})
    assert still.world.now == LIBRARY.open("calm").world.now


# Who states them ------------------------------------------------------------------------------------------------------

ROUGH = Hazards((Fault("unavailable", 1.0),))


def task(scenario: str = "calm", **more: Any) -> Task:
    return Task("t", "?", LIBRARY.tools, Answer(), LIBRARY, scenario=scenario, **more)


def first_code(given: Task, conditions: Conditions | None = None) -> str:
    execution = (conditions or Conditions()).execution(given)
    trace = execution.run(program(("books", {})))
    execution.close()
    return str(trace.records[0].outcome.code)


def test_a_task_comes_before_the_conditions_and_these_before_the_scenario() -> None:
    assert first_code(task()) == ""
    assert first_code(task(), Conditions(hazards=ROUGH)) == "UNAVAILABLE"
    assert first_code(task(hazards=ROUGH)) == "UNAVAILABLE"
    assert first_code(task(hazards=Hazards()), Conditions(hazards=ROUGH)) == ""
    always = cw.StatefulEnvironment(
        "library",
        rows=[Book],
        tools=[books],
        scenarios={"one": cw.Scenario(build, faults=(Fault("unavailable", 1.0),))},
    )
    there = evolve(task("one"), environment=always, tools=always.tools)
    assert first_code(there) == "UNAVAILABLE"
    assert first_code(there, Conditions(hazards=Hazards())) == ""


def test_sessions_in_processes_have_the_same_luck() -> None:
    calls = program(*[call for call in SCRIPT if call[0] != "nothing"])
    hazards = Hazards(HARD, (RateLimit(20),))
    here = execute(calls, LIBRARY, LIBRARY.tools, scenario="calm", hazards=hazards)
    with_limits = cw.isolated(LIBRARY, cw.SessionLimits(processes=1))
    there = execute(calls, with_limits, LIBRARY.tools, scenario="calm", hazards=hazards)
    with_limits.close()
    assert [seen(record.outcome) for record in there.records] == [seen(record.outcome) for record in here.records]
    assert [record.state for record in there.records] == [record.state for record in here.records]


def test_where_nothing_can_go_wrong_hazards_are_refused() -> None:
    @cw.tool
    def plain() -> int:
        """One."""
        return 1

    environment = cw.environment("plain", tools=[plain])
    with pytest.raises(cw.UsageError, match="meet none"):
        execute(program(("plain", {})), environment, environment.tools, hazards=ROUGH)
    assert execute(program(("plain", {})), environment, environment.tools, hazards=Hazards()).executed


def test_they_are_json_and_what_is_none_is_refused() -> None:
    stated = Hazards(HARD, (RateLimit(3, 10, "lend"), RateLimit(5)), 7, 1)
    assert read_hazards(stated.to_json()) == stated
    assert not Hazards()
    for wrong in (
        {"faults": [{"kind": "gremlin"}]},
        {"faults": [{"kind": "timeout", "rate": 2}]},
        {"faults": [{"rate": 0.5}]},
        {"limits": [{"calls": 0}]},
        {"limits": [{"calls": 1, "seconds": 1.5}]},
        {"limits": 5},
        {"luck": 1},
        {"in_a_row": -1},
        [],
    ):
        with pytest.raises(DataError):
            read_hazards(wrong)


def test_an_option_states_them_in_a_line() -> None:
    assert read_hazards("off") == Hazards()
    said = read_hazards("unavailable=0.1, timeout=0.05,limit=20/30,limit=5,seed=1,in_a_row=0")
    faults = (Fault("unavailable", 0.1), Fault("timeout", 0.05))
    assert said == Hazards(faults, (RateLimit(20, 30), RateLimit(5, 60)), 1, 0)
    for wrong in ("", "on", "gremlin=1", "timeout", "timeout=x", "timeout=2", "limit=0", "limit=3/", "limit=a/b"):
        with pytest.raises(DataError):
            read_hazards(wrong)


def test_a_part_has_them_under_its_own_names() -> None:
    whole = Hazards(
        (Fault("timeout", tools=("library__lend", "books")), Fault("timeout", tools=("elsewhere",)), Fault("timeout")),
        (RateLimit(1), RateLimit(2, tool="library__lend"), RateLimit(3, tool="elsewhere"), RateLimit(4, tool="*")),
    )
    names = {"library__lend": "lend", "books": "books"}
    part = whole.under(names.get)
    assert [fault.tools for fault in part.faults] == [("lend", "books"), ()]
    assert [(limit.calls, limit.tool) for limit in part.limits] == [(1, ""), (2, "lend"), (4, "*")]


RECIPE = """\
[corpus]
name = "toolworld-mini-v1"
train = "train"

[algorithm]
name = "grpo"

[hazards]
seed = 3

[[hazards.faults]]
kind = "timeout"
rate = {rate}

[[hazards.limits]]
calls = 5
tool = "*"
"""


def test_a_recipe_names_hazards_for_tasks_that_name_none() -> None:
    pipeline = build_pipeline(parse_recipe(RECIPE.format(rate=0.25), source="r.toml"))
    assert pipeline.conditions.hazards == Hazards((Fault("timeout", 0.25),), (RateLimit(5, tool="*"),), 3)
    with pytest.raises(RecipeError, match="rate"):
        parse_recipe(RECIPE.format(rate=1.5), source="r.toml")


def test_a_task_with_hazards_is_another_task() -> None:
    digests = [task_digests([one])["t"] for one in (task(), task(hazards=None), task(hazards=ROUGH))]
    assert digests[0] == digests[1] != digests[2]


def test_a_model_reads_the_code_and_not_that_it_was_injected() -> None:
    outcome = meeting(Fault("unavailable", 1.0)).call("books", {})
    assert "unavailable" not in tell(outcome)
    assert "UNAVAILABLE" in tell(outcome)
