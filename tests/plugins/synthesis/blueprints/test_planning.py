"""Blueprints: made again call by call in fresh sessions, in other orders, and counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import networkx
import pytest
from tests.plugins.synthesis.depot import Far, depot

import callwright as cw
from callwright.environments.goals import compare
from callwright.environments.protocol import Environment, Outcome
from callwright.errors import UsageError
from callwright.language.program import Call, plain
from callwright.plugins import default_registry
from callwright.training.synthesis.synthesizer import Materials
from callwright_plugins.synthesis.blueprints.blueprint import Blueprint, Stage, coverage_of, edges_of
from callwright_plugins.synthesis.blueprints.knobs import Knobs, shared_out
from callwright_plugins.synthesis.blueprints.knowledge import Knowledge, known
from callwright_plugins.synthesis.blueprints.planning import plan_blueprints
from callwright_plugins.synthesis.blueprints.repertoire import Repertoire
from callwright_plugins.synthesis.blueprints.turns import assistant_turns
from callwright_plugins.synthesis.blueprints.wishes import Coverage, Venue, Wisher
from callwright_plugins.synthesis.graph.references import replaced
from callwright_plugins.synthesis.language.grammar import Grammar

COUNT = 240


def planned(environment: Environment, knowledge: Knowledge, count: int, seed: int = 0, **knobs: Any) -> list[Blueprint]:
    return plan_blueprints(Materials(environment, seed, count), knowledge, Knobs(**knobs))


@pytest.fixture(scope="module")
def meetings(kept_knowledge: Path) -> tuple[Environment, Knowledge, list[Blueprint]]:
    environment = cw.environment("video_meeting")
    knowledge = known(environment, registry=default_registry(), calls=1500, cache=kept_knowledge)
    return environment, knowledge, planned(environment, knowledge, COUNT)


@pytest.fixture(scope="module")
def parcels() -> tuple[Environment, Knowledge, list[Blueprint]]:
    environment = depot()
    knowledge = known(environment, registry=default_registry(), calls=1500)
    return environment, knowledge, planned(environment, knowledge, 60, others=["banking", "crm"])


@pytest.fixture(params=["meetings", "parcels"])
def found(request: pytest.FixtureRequest) -> tuple[Environment, Knowledge, list[Blueprint]]:
    made: tuple[Environment, Knowledge, list[Blueprint]] = request.getfixturevalue(request.param)
    return made


def environment_of(one: Blueprint, own: Environment) -> Environment:
    """The environment of a blueprint: the one that it was planned for, or one that this is a part of."""
    return own if one.environment == own.name else cw.environment(one.environment)


def filled(call: Call, results: dict[int, Any]) -> dict[str, Any]:
    """The arguments of a call with what its references stand for, found without the planner's own code."""
    arguments: Any = dict(call.arguments)
    for path, reference in call.located:
        value = results[reference.call]
        for part in reference.path:
            value = value[part]
        arguments = replaced(arguments, path, value)
    return dict(arguments)


def played(session: Any, stage: Stage, order: list[int]) -> dict[int, Outcome]:
    outcomes: dict[int, Outcome] = {}
    results: dict[int, Any] = {}
    for place in order:
        call = stage.calls[place]
        outcomes[place] = session.call(call.tool, filled(call, results))
        results[place] = outcomes[place].value
    return outcomes


def an_order(stage: Stage, rng: Random) -> list[int]:
    """Any order that the edges of a stage allow."""
    left, order = list(range(len(stage.calls))), []
    while left:
        free = [one for one in left if not any(later == one and earlier in left for earlier, later in stage.edges)]
        order.append(rng.choice(free))
        left.remove(order[-1])
    return order


def test_every_call_comes_to_what_its_stage_says(found: tuple[Environment, Knowledge, list[Blueprint]]) -> None:
    environment, _, blueprints = found
    calls = 0
    for one in blueprints:
        session: Any = environment_of(one, environment).open(one.scenario, one.seed)
        for stage in one.stages:
            codes = {failing.call: failing.code for failing in stage.failing}
            for place, outcome in played(session, stage, list(range(len(stage.calls)))).items():
                calls += 1
                said = (one, stage.calls[place], outcome)
                assert outcome.executed == (place not in codes), said
                assert not outcome.failed or (outcome.code or outcome.kind) == codes[place], said
            ended = bool(stage.failing) and stage.failing[-1].recovery == "give up"
            assert (stage.ending == "failure") == ended
            assert stage.code == (stage.failing[-1].code if ended else "")
            assert (stage.ending == "refusal") == (not stage.calls)
        session.close()
    assert calls > 2 * len(blueprints)


def test_any_order_that_the_edges_allow_comes_to_the_same(
    meetings: tuple[Environment, Knowledge, list[Blueprint]],
) -> None:
    environment, _, blueprints = meetings
    rng, others = Random(3), 0
    for one in blueprints:
        expected: Any = environment_of(one, environment).open(one.scenario, one.seed)
        for stage in one.stages:
            before, straight = expected.fork(), list(range(len(stage.calls)))
            outcomes = played(expected, stage, straight)
            order = an_order(stage, rng)
            others += order != straight
            again = played(before, stage, order)
            assert {place: again[place].kind for place in again} == {place: outcomes[place].kind for place in again}
            assert compare(None, expected.goal_state(), before.goal_state()).equal
    assert others > 20


def test_no_call_is_said_to_need_another_one_in_vain(
    found: tuple[Environment, Knowledge, list[Blueprint]],
) -> None:
    """A call that is made before what it needs, and after all else that was before it, comes to something else. Where
    one of several calls will do, it does so after the rest of what it needs alone.
    """
    environment, _, blueprints = found
    checked = across = several = 0
    for one in blueprints:
        if any(stage.failing for stage in one.stages):
            continue  # what fails comes first, or there would be nothing to make up for
        calls = [call for stage in one.stages for call in stage.calls]
        turns = [number for number, stage in enumerate(one.stages) for _ in stage.calls]
        edges = edges_of(one.stages)
        behind: list[set[int]] = []
        for place in range(len(calls)):
            near = {earlier for earlier, later in edges if later == place}
            behind.append(near.union(*(behind[earlier] for earlier in near)))
        for earlier, later in edges:
            told = turns[earlier] == turns[later] and any(
                reference.call == calls[earlier].id for _, reference in calls[later].located
            )
            if told or any(earlier in behind[between] for between in behind[later]):
                continue
            over = [place for place in range(later) if place == earlier or earlier in behind[place]]
            sooner = [*(place for place in range(later) if place not in over), later, *over]
            there = environment_of(one, environment)
            straight, another = (conversation(one, there, order) for order in (range(later + 1), sooner))
            if straight[later] == another[later]:
                rest = sorted(behind[later].difference(over))
                alone = conversation(one, there, [*rest, later])
                assert straight[later] != alone[later], (one, earlier, later)
                several += 1
            checked += 1
            across += turns[earlier] != turns[later]
    assert checked > 20
    assert across > 5
    assert several <= 0.02 * checked


def test_what_a_call_needs_is_enough_for_it(meetings: tuple[Environment, Knowledge, list[Blueprint]]) -> None:
    environment, _, blueprints = meetings
    left_out = 0
    for one in blueprints:
        if any(stage.failing for stage in one.stages) or one.environment != environment.name:
            continue
        count, edges = sum(len(stage.calls) for stage in one.stages), edges_of(one.stages)
        straight = conversation(one, environment, range(count))
        behind: list[set[int]] = []
        for place in range(count):
            near = {earlier for earlier, later in edges if later == place}
            behind.append(near.union(*(behind[earlier] for earlier in near)))
            alone = conversation(one, environment, [*sorted(behind[place]), place])
            assert alone[place][:2] == straight[place][:2], (one, place)
            left_out += place - len(behind[place])
    assert left_out > 100


def conversation(one: Blueprint, environment: Environment, order: Iterable[int]) -> dict[int, Any]:
    """What calls of a conversation, numbered over its turns, come to in an order."""
    session: Any = environment.open(one.scenario, one.seed)
    places = [(stage, call) for stage in one.stages for call in stage.calls]
    results: dict[tuple[int, int], Any] = {}
    outcomes: dict[int, Any] = {}
    for number in order:
        stage, call = places[number]
        mine = {place: value for (turn, place), value in results.items() if turn == id(stage)}
        try:
            arguments = filled(call, mine)
        except (KeyError, TypeError):  # what it refers to came to nothing
            outcomes[number] = "nothing", "", None
            continue
        outcome = session.call(call.tool, arguments)
        results[id(stage), call.id] = outcome.value
        outcomes[number] = outcome.kind, outcome.code, outcome.value
    return outcomes


def test_a_task_that_changes_something_has_changed_something_in_the_end(
    meetings: tuple[Environment, Knowledge, list[Blueprint]],
) -> None:
    environment, _, blueprints = meetings
    changing = 0
    for one in blueprints:
        tools = environment_of(one, environment).tools
        writes = any(not tools[call.tool].read_only for stage in one.stages for call in stage.calls)
        if one.kind == "task" and writes:
            session: Any = environment_of(one, environment).open(one.scenario, one.seed)
            before = session.goal_state()
            for stage in one.stages:
                played(session, stage, list(range(len(stage.calls))))
            assert not compare(None, before, session.goal_state()).equal
            changing += 1
    assert changing > 30


def test_what_nobody_told_is_said_by_the_user(found: tuple[Environment, Knowledge, list[Blueprint]]) -> None:
    environment, _, blueprints = found
    for one in blueprints:
        session: Any = environment_of(one, environment).open(one.scenario, one.seed)
        heard: list[str] = []
        for stage in one.stages:
            heard += [json.dumps(plain(call.arguments)) for call in stage.asked.calls]
            slips = {failing.call for failing in stage.failing if failing.recovery == "parameters"}
            outcomes = played(session, stage, list(range(len(stage.calls))))
            for place, call in enumerate(stage.calls):
                texts = [value for value in call.arguments.values() if isinstance(value, str)]
                if place not in slips:
                    assert all(json.dumps(text) in " ".join(heard) for text in texts), (call, heard)
                heard.append(json.dumps(outcomes[place].value))


def test_blueprints_are_json_and_can_be_said(meetings: tuple[Environment, Knowledge, list[Blueprint]]) -> None:
    environment, _, blueprints = meetings
    for one in blueprints:
        assert Blueprint.from_json(json.loads(json.dumps(one.to_json()))) == one
    for one in blueprints[::6]:
        grammar = Grammar(environment_of(one, environment).tools)
        for stage in one.stages:
            if not stage.elsewhere:
                assert grammar.parse(grammar.render(stage.asked).text) == stage.asked


def test_shares_are_exact(meetings: tuple[Environment, Knowledge, list[Blueprint]]) -> None:
    _, _, blueprints = meetings
    kinds = Counter(one.kind for one in blueprints)
    assert len(blueprints) == COUNT
    assert kinds["clarification"] == round(COUNT * 1500 / 13517)
    assert kinds["abstention"] == round(COUNT * 1122 / 13517)
    assert sum(bool(one.distractors) for one in blueprints) == round(COUNT * 0.4)
    assert sum(bool(one.stripped) for one in blueprints) == round(COUNT * 0.3)
    assert all(3 <= len(one.distractors) <= 8 for one in blueprints if one.distractors)
    turns = [stage for one in blueprints if one.kind in ("task", "failing") for stage in one.stages if stage.calls]
    levels = Counter(stage.information for stage in turns)
    assert levels["minimal"] == levels["missing"] == round(len(turns) * 0.2)
    assert {len(one.stages) for one in blueprints if one.kind == "task"} == {2, 3}


def test_tools_edges_and_failures_are_covered(meetings: tuple[Environment, Knowledge, list[Blueprint]]) -> None:
    _, knowledge, blueprints = meetings
    called = coverage_of(blueprints)
    assert all(called[tool] >= 10 for tool in knowledge.explored.witnesses)
    cells = {(tool, code) for tool, codes in knowledge.explored.failures.items() for code in codes}
    assert {one.recovers for one in blueprints if one.recovers[0]} == cells
    pairs = {(s.calls[i].tool, s.calls[j].tool) for one in blueprints for s in one.stages for i, j in s.edges}
    assert len(pairs & set(knowledge.graph.pairs())) >= 0.95 * len(knowledge.graph.pairs())
    recoveries = {failing.recovery for one in blueprints for stage in one.stages for failing in stage.failing}
    assert recoveries == {"parameters", "tool", "give up"}


def test_how_far_a_walk_over_the_edges_goes(meetings: tuple[Environment, Knowledge, Any]) -> None:
    environment, knowledge, _ = meetings
    repertoire = Repertoire(environment, knowledge)
    graph = networkx.DiGraph(list(repertoire.edges))
    for most in (2, 3, 4):
        walks = (
            walk
            for start in graph
            for walk in networkx.all_simple_paths(graph, start, set(graph) - {start}, cutoff=most - 1)
        )
        longest: dict[tuple[str, str], int] = {}
        for walk in walks:
            longest[walk[0], walk[1]] = max(len(walk), longest.get((walk[0], walk[1]), 0))
        assert {pair: repertoire.reach(pair, most) for pair in repertoire.edges} == longest
        assert most == 2 or len(set(longest.values())) > 1  # some walks end sooner


def test_what_is_not_offered_cannot_be_done(meetings: tuple[Environment, Knowledge, list[Blueprint]]) -> None:
    environment, _, blueprints = meetings
    for one in blueprints:
        tools_there = environment_of(one, environment).tools
        assert set(one.offered) == {name for name, spec in tools_there.items() if not spec.hidden}
        assert not {other.tool for other in one.distractors} & set(tools_there)
        for stage in one.stages:
            tools = {call.tool for call in stage.asked.calls}
            if stage.elsewhere:
                assert tools <= set(cw.environment(stage.elsewhere).tools)
                assert not tools & (set(one.offered) | {other.tool for other in one.distractors})
        if one.kind == "clarification":
            first, second = one.stages
            assert first.asked == second.asked
            assert not first.calls
            assert set(one.hidden.values()) == {1}
            assert set(one.hidden) <= {call.tool for call in second.calls}
        elif one.kind == "abstention":
            assert one.depth == 0
            assert one.stages[0].elsewhere or set(one.hidden.values()) == {-1}


def test_a_tenth_of_the_conversations_needs_two_environments(
    meetings: tuple[Environment, Knowledge, list[Blueprint]],
) -> None:
    environment, _, blueprints = meetings
    talks = [one for one in blueprints if one.kind in ("task", "failing")]
    several = [one for one in blueprints if "+" in one.environment]
    assert len(several) == round(len(talks) * 0.1)
    for one in several:
        called = {call.tool for call in one.stages[0].calls}
        assert called & set(environment.tools)
        assert called - set(environment.tools)


def test_the_same_materials_give_the_same_blueprints_in_any_process() -> None:
    program = (
        "import json, sys\n"
        "from callwright.plugins import default_registry\n"
        "from tests.plugins.synthesis.blueprints.test_planning import planned, depot, known\n"
        "knowledge = known(depot(), registry=default_registry(), calls=300)\n"
        "for seed in (0, 1):\n"
        "    made = planned(depot(), knowledge, 20, seed, others=['vehicle'])\n"
        "    print(json.dumps([one.to_json() for one in made]))\n"
    )
    texts = []
    for hashes in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": hashes},
            check=True,
        )
        texts.append(done.stdout.splitlines())
    assert texts[0] == texts[1]
    assert texts[0][0] != texts[0][1]


def test_knobs_at_nothing_leave_nothing() -> None:
    environment = depot()
    knowledge = known(environment, registry=default_registry(), calls=600)
    none: dict[str, Any] = dict.fromkeys(
        ("missing", "minimal", "distractors", "stripped", "irrelevance", "clarifications", "abstentions"), 0.0
    )
    made = planned(environment, knowledge, 10, failing=0.0, recoveries=0.0, least_turns=1, decay=0.0, **none)
    assert made
    for one in made:
        assert (one.kind, one.distractors, one.stripped, one.hidden, one.recovers) == ("task", (), (), {}, ("", ""))
        assert [stage.information for stage in one.stages] == ["complete"]


def test_where_there_is_no_room_for_a_chain_one_call_is_asked_for(meetings: tuple[Environment, Knowledge, Any]) -> None:
    environment, knowledge, _ = meetings
    wanted: dict[str, Any] = dict.fromkeys(
        ["parallel", "two_goals", "failing", "recoveries", "several_servers", "irrelevance"], 0.0
    )
    wanted |= dict.fromkeys(["clarifications", "abstentions"], 0.0)
    blueprints = planned(
        environment, knowledge, 12, **wanted, chains=1.0, least_turns=2, most_turns=2, assistant_turns=4
    )
    assert len(blueprints) == 12
    assert {len(one.stages) for one in blueprints} == {2}
    assert {assistant_turns(stage) for one in blueprints for stage in one.stages} == {2}


def test_what_was_taken_back_is_not_spoken_of(parcels: tuple[Environment, Knowledge, Any]) -> None:
    environment, knowledge, _ = parcels
    venue = Venue(Repertoire(environment, knowledge), "", Random(1), 25, default_registry())
    try:
        wisher = Wisher(venue, venue.next_world(), Coverage(), Random(2))
        first = wisher.single(wisher.world.session)
        assert first is not None
        mark = wisher.binder.so_far()
        about, heard = list(wisher.binder.about), list(wisher.binder.heard)
        for _ in range(5):
            assert wisher.single(first[1]) is not None
        assert len(wisher.binder.heard) > len(heard)
        wisher.binder.back_to(mark)
        assert (list(wisher.binder.about), wisher.binder.heard) == (about, heard)
    finally:
        venue.close()


def test_confusable_tools_are_alike(meetings: tuple[Environment, Knowledge, list[Blueprint]]) -> None:
    environment, knowledge, _ = meetings

    def alike(share: float) -> float:
        made = planned(environment, knowledge, 12, confusable=share, distractors=1.0, failing=0.0, recoveries=0.0)
        worth = []
        for one in made:
            tools = environment_of(one, environment).tools
            called = {call.tool for stage in one.stages for call in stage.calls}
            about = {name for tool in called for name in tools[tool].parameters["properties"]}
            for other in one.distractors:
                names = cw.environment(other.environment).tools[other.tool].parameters["properties"]
                worth.append(len(about & set(names)) / max(1, len(names)))
        return sum(worth) / len(worth)

    assert alike(1.0) > alike(0.0)


def test_a_server_whose_sessions_do_not_fork_is_planned_for(parcels: tuple[Environment, Knowledge, Any]) -> None:
    far = Far(disposable=True)
    knowledge = known(far, registry=default_registry(), calls=400)
    made = planned(far, knowledge, 8, others=["crm"])
    assert len(made) >= 6  # a depot has few tasks that are no near-duplicates
    for one in made:
        session = far.inner.open(one.scenario, one.seed)
        for stage in one.stages:
            failing = {each.call for each in stage.failing}
            for place, outcome in played(session, stage, list(range(len(stage.calls)))).items():
                assert outcome.executed == (place not in failing)


def test_shares_are_given_out_as_exactly_as_whole_numbers_allow() -> None:
    rng = Random(1)
    for count in (0, 1, 7, 100, 545):
        shares = {"a": 0.6, "b": 0.25, "c": 0.15}
        got = Counter(shared_out(count, shares, rng))
        assert sum(got.values()) == count
        assert all(abs(got[one] - count * share) < 1 for one, share in shares.items())
    assert shared_out(5, {}, rng) == []


def test_knobs_say_what_is_wrong_with_them() -> None:
    assert Knobs.from_json(Knobs(missing=0.5, others=("crm",)).to_json()) == Knobs(missing=0.5, others=("crm",))
    wrong: tuple[dict[str, Any], ...] = (
        {"missing": 2},
        {"missing": 0.7, "minimal": 0.7},
        {"least_turns": 4},
        {"longest": 1},
        {"refreshed": 0},
        {"decay": "often"},
        {"distractor": 0.4},
    )
    for one in wrong:
        with pytest.raises(UsageError):
            Knobs.from_json(one)
