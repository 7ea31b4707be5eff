"""Several environments as one: names, scenarios, one clock, one digest, forks, goals, and the same worlds as apart."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import callwright as cw
from callwright.environments import ClockPolicy, EventKind, Notice
from callwright.environments.briefing.policy import Policy, Rule
from callwright.environments.composed.environment import ComposedEnvironment
from callwright.environments.functions import FunctionEnvironment
from callwright.environments.goals.comparing import compare
from callwright.environments.hazards.policy import Fault, Hazards, RateLimit
from callwright.environments.living.events import Moment
from callwright.environments.telling import told
from callwright.errors import DataError, NameClash, SessionInUse, UnknownName, UsageError
from callwright.language.program import Call, Program
from callwright.testing import checks_for
from callwright.walk import execute

NOW = 1_772_442_000


@cw.row("letters", prefix="L")
class Letter:
    id: str
    at: int
    text: str
    there: bool = False


@cw.row("stamps", prefix="S")
class Stamp:
    id: str
    cents: int


@cw.tool
def send(world: cw.World, /, text: str, after_s: int = 60) -> str:
    """Send a letter."""
    if after_s < 0:
        raise cw.ToolError("PAST", "letters arrive later")
    return world.put(Letter(world.new_id(Letter), world.now + after_s, text)).id


@cw.tool(read_only=True, discovery=True)
def look(world: cw.World, /) -> list[str]:
    """The letters that are there."""
    return [letter.text for letter in world.rows(Letter) if letter.there]


@cw.tool(name="look", read_only=True, discovery=True)
def look_at_stamps(world: cw.World, /) -> list[int]:
    """The stamps."""
    return [stamp.cents for stamp in world.rows(Stamp)]


@cw.tool
def buy(world: cw.World, /, cents: int) -> str:
    """Buy a stamp."""
    return world.put(Stamp(world.new_id(Stamp), cents)).id


@cw.tool
def roll(world: cw.World, /) -> int:
    """Roll a die."""
    return world.random().randint(1, 6)


def next_letter(world: cw.World, since: Moment) -> Moment | None:
    return min(((one.at, one.id) for one in world.rows(Letter) if not one.there), default=None)


def deliver(world: cw.World, key: Any) -> None:
    world.update(world.need(Letter, key), there=True)


def said(world: cw.World, key: Any, came: Any) -> Iterable[Notice]:
    yield Notice(f"{world.need(Letter, key).text} at {world.now - NOW}")


def letters(rng: random.Random, scale: float) -> Iterator[Letter]:
    for number in range(round(3 * scale)):
        yield Letter(f"L{number + 1:05d}", NOW + 30 + rng.randrange(60), f"letter {number}")


def stamps(rng: random.Random, scale: float) -> Iterator[Stamp]:
    for number in range(round(4 * scale)):
        yield Stamp(f"S{number + 1:05d}", rng.randrange(100))


def no_stamps(rng: random.Random, scale: float) -> Iterator[Stamp]:
    yield from ()


EVENTS = (EventKind("delivered", "A letter is there.", next_letter, said, deliver),)
POLICY = Policy("You fetch letters.", (Rule("Letters arrive later than they are sent.", "PAST"),))


def whoever(world: cw.World) -> str:
    return "Ada"


def post(name: str, now: int = NOW, clock: ClockPolicy | None = None) -> cw.StatefulEnvironment:
    scenarios = {"typical": cw.Scenario(letters, now=now), "moving": cw.Scenario(letters, clock=clock)}
    return cw.StatefulEnvironment(
        name, rows=[Letter], tools=[send, look], scenarios=scenarios, events=EVENTS, policy=POLICY, person=whoever
    )


def shop(name: str = "shop") -> cw.StatefulEnvironment:
    scenarios = {"typical": cw.Scenario(stamps), "sparse": cw.Scenario(no_stamps)}
    return cw.StatefulEnvironment(name, rows=[Stamp], tools=[buy, look_at_stamps, roll], scenarios=scenarios)


@cw.tool
def note(state: list[str], /, text: str) -> int:
    """Write a note."""
    state.append(text)
    return len(state)


def empty(scenario: str, seed: int) -> list[str]:
    return []


NOTES = FunctionEnvironment("notes", [note], state=empty)
POST, SHOP = post("post"), shop()
BOTH = ComposedEnvironment([POST, SHOP])
ALL = ComposedEnvironment([POST, SHOP, NOTES])
MOVING = ClockPolicy(call=20, user_turn=100)


def opened(environment: ComposedEnvironment = BOTH, clock: ClockPolicy | None = MOVING, **more: Any) -> Any:
    session = environment.open(**more)
    session.keep_time(clock)
    return session


def test_tools_have_the_names_that_offering_them_gives() -> None:
    assert list(BOTH.tools) == list(cw.offer(POST, SHOP)) == ["send", "post__look", "buy", "shop__look", "roll"]
    assert BOTH.tools["shop__look"].description == SHOP.tools["look"].description
    session = BOTH.open()
    assert session.call("shop__look", {}).value == SHOP.open().call("look", {}).value
    assert session.call("post__look", {}).kind == "empty"
    assert session.call("look", {}).kind == "unknown_tool"
    assert session.call("send", {"letter": 1}).kind == "schema_error"


def test_parts_are_at_least_two_of_different_names_and_composed_ones_are_taken_apart() -> None:
    with pytest.raises(UsageError, match="at least two"):
        ComposedEnvironment([POST])
    with pytest.raises(NameClash, match="'post'"):
        ComposedEnvironment([POST, post("post")])
    assert ComposedEnvironment([BOTH, NOTES]).name == ALL.name == "post+shop+notes"
    assert not ALL.pure
    assert BOTH.pure


def test_a_scenario_is_that_of_all_parts_or_each_has_its_own_and_its_own_seed() -> None:
    assert BOTH.scenarios == ("typical",)
    assert BOTH.opens("typical", 3) == (("typical", 3), ("typical", 3))
    assert BOTH.opens("shop=sparse@7", 3) == (("", 3), ("sparse", 7))
    assert BOTH.open("shop=sparse").call("shop__look", {}).kind == "empty"
    mixed = BOTH.open("post=typical@5, shop=typical", 3)
    assert mixed.call("shop__look", {}).value == SHOP.open("typical", 3).call("look", {}).value
    assert mixed.part("post").world.base is POST.open("typical", 5).world.base
    with pytest.raises(UnknownName, match=r"(?s)'sparse'.*post=NAME,shop=NAME"):
        BOTH.open("sparse")
    with pytest.raises(UnknownName, match="shp"):
        BOTH.open("shp=typical")
    with pytest.raises(UsageError, match="whole number"):
        BOTH.open("shop=typical@x")
    with pytest.raises(UsageError, match="twice"):
        BOTH.open("shop=typical,shop=sparse")
    with pytest.raises(UsageError, match="names no part"):
        BOTH.open("shop=typical,sparse")
    assert BOTH.opens('{"shop": ["sparse", 7], "post": "typical"}', 3) == BOTH.opens("shop=sparse@7,post=typical", 3)
    for wrong, words in (
        ("{", "JSON"),
        ('{"shop": 3}', "a name and a seed"),
        ('{"shp": ""}', "shp"),
        ('{"shop": "no"}', "no"),
    ):
        with pytest.raises(UsageError, match=words):
            BOTH.open(wrong)


def test_no_part_is_opened_before_it_is_needed_and_reading_does_not_show_in_the_digest() -> None:
    session = BOTH.open("typical", 3)
    first = session.digest()
    assert [part.session for part in session._parts] == [None, None]
    session.call("shop__look", {})
    assert [part.session is None for part in session._parts] == [True, False]
    assert session.digest() == first
    made = session.call("buy", {"cents": 5}).value
    assert session.digest() != first
    session.part("shop").world.drop(session.part("shop").world.need(Stamp, made))
    session.part("shop").world._counters.clear()
    assert session.digest() == first, "what was handed out is looked at again"


def test_digests_tell_scenarios_seeds_parts_and_times_apart() -> None:
    sessions = [BOTH.open(), BOTH.open(seed=1), BOTH.open("shop=sparse"), ALL.open(), opened()]
    sessions[-1].elapse(1)
    assert len({session.digest() for session in sessions}) == len(sessions)


def test_one_clock_moves_all_parts_and_what_falls_due_is_told_in_the_order_of_the_times() -> None:
    pair = ComposedEnvironment([post("home"), post("work"), SHOP])
    session = opened(pair, ClockPolicy(call=100))
    session.call("home__send", {"text": "late", "after_s": 90})
    outcome = session.call("buy", {"cents": 1})
    assert session.now == NOW + 200
    assert {session.part(name).world.now for name in ("home", "work", "shop")} == {NOW + 200}
    assert outcome.notices == ()
    again = opened(pair, ClockPolicy(call=100))
    heard = again.call("buy", {"cents": 1}).notices
    times = [int(words.rpartition(" ")[2]) for words in heard]
    assert len(heard) == 6
    assert times == sorted(times)
    at_home = [words for words in heard if words in [f"{one.text} at {one.at - NOW}" for one in letters_of("home")]]
    assert len(at_home) >= 3
    assert told(again.call("buy", {"cents": 1})).keys() == {"result"}


def letters_of(name: str) -> list[Letter]:
    return list(post(name).open().world.rows(Letter))


def test_at_one_moment_the_parts_have_their_turn_in_their_order() -> None:
    pair = ComposedEnvironment([post("home"), post("work")])
    for first, second in (("home", "work"), ("work", "home")):
        session = opened(pair, ClockPolicy(call=0, user_turn=0))
        session.elapse(1000)
        session.call("home__look", {})
        session.call(f"{first}__send", {"text": first})
        session.call(f"{second}__send", {"text": second})
        session.elapse(60)
        assert session.call("home__look", {}).notices == (f"home at {1060}", f"work at {1060}")


def test_turns_of_the_user_and_jumps_pass_for_all_parts_and_are_told_once() -> None:
    session = opened(ALL)
    session.user_turn()
    assert session.now == NOW + 100
    outcome = session.call("note", {"text": "x"})
    assert len(outcome.notices) == 3
    assert session.call("note", {"text": "y"}).notices == ()
    session.keep_time(None)
    session.user_turn()
    with pytest.raises(UsageError, match="time stands still"):
        session.elapse(5)
    assert session.call("note", {"text": "z"}).executed
    assert session.now == NOW + 140


def test_all_parts_begin_at_the_latest_of_their_times() -> None:
    late = ComposedEnvironment([SHOP, post("late", NOW + 1000)])
    session = opened(late)
    assert session.now == NOW + 1000
    assert session.part("shop").world.now == NOW + 1000
    assert len(session.call("roll", {}).notices) == 3, "what was due before happens first"


def test_time_moves_by_the_scenario_of_a_part_if_that_says_so() -> None:
    pair = ComposedEnvironment([SHOP, post("moving", clock=MOVING)])
    session = pair.open("moving=moving")
    assert session.clock == MOVING
    session.call("roll", {})
    assert session.now == NOW + 20
    assert pair.open().clock is None


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("send", {"text": "a", "after_s": 5}), ("send", {"text": "b"}), ("send", {"text": "c", "after_s": -1}),
    ("post__look", {}), ("buy", {"cents": 7}), ("shop__look", {}), ("roll", {}), ("note", {"text": "n"}), ("none", {}),
]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(range(len(CALLS) + 2)), max_size=12), st.integers(0, 5), st.booleans())
def test_it_comes_to_what_its_parts_come_to_apart(steps: list[int], seed: int, moves: bool) -> None:
    whole = opened(ALL, MOVING if moves else None, seed=seed)
    apart: dict[str, Any] = {part.name: part.open("", seed) for part in ALL.parts}
    living = [session for session in apart.values() if hasattr(session, "elapse")]
    for session in living:
        session.keep_time(ClockPolicy(call=0, user_turn=0) if moves else None)
    now = NOW
    for step in steps:
        if step >= len(CALLS):
            whole.user_turn()
            passed = 100
        else:
            tool, arguments = CALLS[step]
            outcome = whole.call(tool, arguments)
            passed = 0 if tool == "none" else 20
            if tool in ALL.routes:
                number, original = ALL.routes[tool]
                alone = apart[ALL.parts[number].name].call(original, arguments)
                assert (outcome.kind, outcome.value, outcome.code) == (alone.kind, alone.value, alone.code)
        for session in living if moves else ():
            session.elapse(passed)
        now += passed if moves else 0
        assert whole.now == now
    for name, session in apart.items():
        state = getattr(session, "goal_state", None)
        if state is not None:
            assert compare(None, state(), whole.part(name).goal_state()).equal
        assert whole.part(name).digest() == session.digest()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(range(len(CALLS))), min_size=1, max_size=8), st.data())
def test_forks_copies_and_pickles_go_on_as_it_does(steps: list[int], data: Any) -> None:
    whole = opened(ALL)
    cut = data.draw(st.integers(0, len(steps)))
    for step in steps[:cut]:
        whole.call(*CALLS[step])
    others = [whole.fork(), deepcopy(whole), pickle.loads(pickle.dumps(whole))]
    before = whole.digest()
    assert {other.digest() for other in others} == {before}
    for step in steps[cut:]:
        outcomes = [other.call(*CALLS[step]) for other in others]
        assert whole.digest() == before
        outcome = whole.call(*CALLS[step])
        before = whole.digest()
        assert all((one, one.notices) == (outcome, outcome.notices) for one in outcomes)
        assert {other.digest() for other in others} == {before}


def test_another_seed_leaves_each_part_its_scenario_and_a_seed_of_its_own() -> None:
    session = ALL.open("shop=sparse@7", 1)
    session.reset(seed=2)
    assert session.digest() == ALL.open("shop=sparse@7", 2).digest()
    with pytest.raises(UnknownName):
        session.reset("no such", 3)
    session.reset()
    assert session.digest() == session.fork().digest() == ALL.open("shop=sparse@7", 2).digest()


def test_resetting_leads_back_to_the_first_state_or_to_another_scenario() -> None:
    session = opened(ALL)
    first = session.digest()
    for call in CALLS:
        session.call(*call)
    session.reset()
    assert session.digest() == first
    assert session.now == NOW
    session.reset("shop=sparse", 4)
    assert session.digest() == ALL.open("shop=sparse", 4).digest()
    assert session.clock == MOVING


def test_a_call_that_fails_changes_no_part_and_one_that_is_closed_answers_nothing() -> None:
    session = ALL.open()
    before = session.digest()
    assert session.call("send", {"text": "a", "after_s": -1}).code == "PAST"
    assert session.digest() == before
    session.close()
    session.close()
    with pytest.raises(UsageError, match="closed"):
        session.call("roll", {})


def test_one_thread_at_a_time() -> None:
    session = ALL.open()
    with session._turn:
        for ask in (lambda: session.call("roll", {}), session.digest, session.fork, session.goal_state, session.reset):
            with pytest.raises(SessionInUse):
                ask()


# Goals ----------------------------------------------------------------------------------------------------------------


def test_goal_states_are_compared_part_by_part() -> None:
    first, second = ALL.open(), ALL.open()
    first.call("send", {"text": "a"}), first.call("buy", {"cents": 1}), first.call("buy", {"cents": 2})
    second.call("buy", {"cents": 2}), second.call("shop__look", {}), second.call("buy", {"cents": 1})
    second.call("send", {"text": "a"})
    assert compare(None, first.goal_state(), second.goal_state()).equal
    second.call("note", {"text": "more"})
    other = compare(ALL.open().goal_state(), first.goal_state(), second.goal_state())
    assert (other.right, other.wrong, other.differences[0].path) == (3, 1, "notes.digest")
    second.call("buy", {"cents": 3})
    assert "shop.stamps[S00007]" in {
        one.path for one in compare(None, first.goal_state(), second.goal_state()).differences
    }
    assert ALL.open().goal_state() == {"form": "parts", "parts": {}}
    with pytest.raises(DataError, match="several environments"):
        compare(None, SHOP.open().goal_state(), first.goal_state())


def test_goals_name_tables_by_their_parts() -> None:
    session = ALL.open()
    goal = {"holds": [{"table": "shop.stamps", "where": {"cents": 777}}]}
    assert not session.check_goal(goal).equal
    session.call("buy", {"cents": 777})
    assert session.check_goal(goal).equal
    assert session.check_goal(goal).right == 1
    session.call("send", {"text": "more"})
    assert [one.path for one in session.check_goal(goal).differences] == ["post.letters[L00004]"]
    assert session.check_goal({**goal, "changed": [{"table": "post.letters"}]}).equal
    assert session.check_goal({**goal, "nothing_else": False}).equal
    session.call("note", {"text": "n"})
    assert [one.path for one in session.check_goal({**goal, "changed": [{"table": "post.letters"}]}).differences] == [
        "notes"
    ]
    for table, words in (("stamps", "begins with its part"), ("shp.stamps", "shop"), ("shop.stmps", "stamps")):
        with pytest.raises(DataError, match=words):
            session.check_goal({"holds": [{"table": table}]})
    with pytest.raises(DataError, match="neither check_goal"):
        session.check_goal({"changed": [{"path": "notes.0"}]})


def test_what_changed_is_told_by_part() -> None:
    session = opened(ALL)
    assert session.diff() == {}
    before = session.fork()
    session.call("buy", {"cents": 5})
    assert session.diff().keys() == {"shop.stamps", "clock"} == session.diff(before).keys()
    assert session.snapshot().keys() == {"shop"}


# Briefing -------------------------------------------------------------------------------------------------------------


def test_a_briefing_has_one_head_and_the_rules_of_each_part() -> None:
    session = opened(ComposedEnvironment([post("home"), post("work"), SHOP]))
    text = session.briefing()
    assert text.count("Signed in: Ada.") == text.count("Now: ") == 1
    assert text.index("home: You fetch letters.") < text.index("Signed in") < text.index("Rules of home")
    assert "Rules of work" in text
    assert "shop" not in text
    session.elapse(3600)
    assert "2026-03-02T10:00:00Z" in session.briefing()
    assert ComposedEnvironment([SHOP, NOTES]).briefing(ComposedEnvironment([SHOP, NOTES]).open()) == ""


# In the walk ----------------------------------------------------------------------------------------------------------


def test_programs_run_across_parts() -> None:
    reference = cw.Reference(0)
    program = Program((Call(0, "buy", {"cents": 3}), Call(1, "send", {"text": reference})))
    trace = execute(program, BOTH, BOTH.tools)
    assert [record.outcome.kind for record in trace.records] == ["ok", "ok"]
    assert trace.records[1].arguments["text"] == "S00005"


def test_hazards_name_tools_as_the_whole_does_and_take_time_of_all_parts() -> None:
    session = opened(ALL, MOVING)
    session.meet_hazards(
        Hazards((Fault("timeout", 1.0, ("shop__look",), seconds=50),), (RateLimit(1, 3600, "roll"),), in_a_row=0)
    )
    assert session.call("shop__look", {}).code == "TIMED_OUT"
    assert session.now == NOW + 70
    assert session.part("post").world.now == NOW + 70
    assert session.call("post__look", {}).kind != "execution_error"
    assert session.call("roll", {}).executed
    assert session.call("roll", {}).code == "RATE_LIMITED"
    forked = session.fork()
    session.elapse(3600)
    assert session.call("roll", {}).executed
    assert forked.call("roll", {}).code == "RATE_LIMITED"
    session.meet_hazards(None)
    assert session.call("shop__look", {}).executed
    lost = opened(ALL, MOVING)
    lost.meet_hazards(Hazards((Fault("timeout", 1.0, ("post__look",), seconds=3600),), in_a_row=0))
    before = lost.digest()
    assert len(lost.call("post__look", {}).notices) == 3, "letters came while nothing was answered"
    assert lost.digest() != before
    assert lost.part("post").world.digest() == lost.fork().part("post").world.digest()
    still = opened(ALL, None)
    still.meet_hazards(Hazards((), (RateLimit(1, 60, "roll"),)))
    assert [still.call("roll", {}).code for _ in range(2)] == ["", "RATE_LIMITED"]
    still.next_turn()
    assert still.call("roll", {}).executed


def test_a_tool_takes_the_time_of_all_parts_that_it_declares() -> None:
    @cw.tool(latency=300)
    def cure(world: cw.World, /) -> int:
        """Wait for the ink to dry."""
        return world.now

    ink = cw.StatefulEnvironment("ink", rows=[Stamp], tools=[cure], scenarios={"typical": cw.Scenario(stamps)})
    session = opened(ComposedEnvironment([POST, ink]))
    assert len(session.call("cure", {}).notices) == 3
    assert session.now == NOW + 320


def test_users_act_in_all_parts_by_tools_of_their_own() -> None:
    @cw.tool
    def drop(world: cw.World, /) -> int:
        """Lose a stamp."""
        world.drop(next(world.rows(Stamp)))
        return world.count(Stamp)

    def apart(name: str) -> cw.StatefulEnvironment:
        scenarios = {"typical": cw.Scenario(stamps)}
        return cw.StatefulEnvironment(name, rows=[Stamp], tools=[buy], user_tools=[drop], scenarios=scenarios)

    environment = ComposedEnvironment([POST, apart("album"), apart("box")])
    assert set(environment.user_tools) == {"album__drop", "box__drop"}
    assert not set(environment.user_tools) & set(environment.tools)
    session = opened(environment, ClockPolicy(call=100))
    before = session.digest()
    assert session.user_call("album__drop", {}).value == 3
    assert session.user_call("drop", {}).kind == session.call("album__drop", {}).kind == "unknown_tool"
    assert session.digest() != before
    assert session.tell_time() == session.now == NOW + 100
    assert len(session.call("album__buy", {"cents": 1}).notices) == 3, "the agent is told what happened meanwhile"


class Knowing:
    """A session's knowledge, as an environment may add it."""

    def __init__(self, known: dict[str, Any]) -> None:
        self.known = known

    def __call__(self, entity: str = "me") -> dict[str, Any]:
        return self.known if entity == "me" else {}


def test_knowledge_of_all_parts_is_one_and_what_they_do_not_agree_on_is_named_by_part() -> None:
    session: Any = ALL.open()
    for name, known in (("post", {"name": "Ada", "pin": "1"}), ("notes", {"name": "Ada", "pin": "2", "size": 5})):
        part = next(one for one in session._parts if one.name == name)
        part.session = _Known(part.open(session.now), Knowing(known))
    assert session.knowledge() == {"name": "Ada", "post.pin": "1", "notes.pin": "2", "size": 5}
    assert session.knowledge("somebody") == {}


class _Known:
    def __init__(self, inner: Any, knowledge: Knowing) -> None:
        self.inner, self.knowledge = inner, knowledge

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@pytest.mark.parametrize("check", checks_for("environment"), ids=str)
def test_it_passes_the_conformance_kit(check: Any) -> None:
    check(BOTH)


@pytest.mark.parametrize("check", checks_for("environment"), ids=str)
def test_it_passes_the_conformance_kit_with_a_part_of_functions(check: Any) -> None:
    check(ALL)
