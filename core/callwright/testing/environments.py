"""Conformance checks for environments: same seed, same world; sessions apart; a failed call changes nothing."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from copy import deepcopy
from io import StringIO
from itertools import combinations
from typing import Any, Final, get_args

from callwright.capability import has
from callwright.environments.capabilities import Forks, Resets
from callwright.environments.clock import all_ended
from callwright.environments.goals.comparing import compare, units
from callwright.environments.knowledge.asking import knowledge_of
from callwright.environments.protocol import Environment, Outcome, OutcomeKind, Session, TellsGoalState
from callwright.environments.rows import table_of
from callwright.environments.sessions import open_session
from callwright.environments.sizes import MOST_VALUE, Bounds, held_to, size_of
from callwright.environments.stateful.environment import StatefulEnvironment
from callwright.language.program import Call, Program
from callwright.testing.calls import Calls, ask, close_all, drawn_calls, same_answer
from callwright.testing.expectations import expect, expect_members, expect_name, never_raises, shown, snapshot
from callwright.testing.outcomes import check_kinds, check_results, check_schema_errors, check_threads
from callwright.testing.pickling import elsewhere, refuses
from callwright.testing.services.users import check_user_tools
from callwright.tools.spec import ToolSpec
from callwright.tools.validation import check_arguments
from callwright.walk.execution import ExecutionRules, copy_json, execute
from callwright.walk.trace import Trace

#: How many calls that change something are tried in both orders, each with each.
_WRITES: Final = 12
#: How many calls are made under limits, the time that they get (seconds), and how long one may go on beyond it.
_LIMITED: Final = 12
_NO_TIME: Final = 1e-6
_PATIENCE: Final = 30.0
#: Bounds that nearly every call is over.
_TINY: Final = (Bounds(value=16), Bounds(state=16))


def check_attributes(environment: Environment) -> None:
    """It has the members of :class:`callwright.Environment`, a name, and tools under their own names."""
    expect_members(environment, Environment)
    expect_name(environment)
    expect(isinstance(environment.pure, bool), f"pure must be a bool, but is {environment.pure!r}")
    expect(isinstance(environment.tools, Mapping), "tools must be a mapping of names to ToolSpecs")
    for name, spec in environment.tools.items():
        expect(isinstance(spec, ToolSpec), f"tools[{name!r}] is {type(spec).__name__}, not a ToolSpec")
        expect(spec.name == name, f"tools[{name!r}] calls itself {spec.name!r}")
        expect(not (spec.read_only and spec.destructive), f"tool {name!r} is annotated as read_only and as destructive")


def check_schemas(environment: Environment) -> None:
    """Every tool's schema compiles, and its descriptions are there for a model to read."""
    for name, spec in environment.tools.items():
        with never_raises(f"compiling the schema of tool {name!r}"):
            check_arguments(spec, {})
        expect(spec.description.strip() != "", f"tool {name!r} has no description: a model knows it by nothing else")


def check_sessions(environment: Environment, scenarios: Sequence[str] = ("",)) -> None:
    """A session is opened for any seed, answers, gives its digest as text, and may be closed twice."""
    for scenario in scenarios:
        for seed in (0, 1, 2**31):
            with never_raises(f"open({scenario!r}, {seed})"):
                session = open_session(environment, scenario, seed)
            expect_members(session, Session)
            with never_raises(f"digest() of a session of scenario {scenario!r} and seed {seed}"):
                digest = session.digest()
            expect(isinstance(digest, str), f"digest() gave {type(digest).__name__}, not text")
            with never_raises("closing a session twice"):
                session.close()
                session.close()


def check_same_seed(environment: Environment, scenarios: Sequence[str] = ("",), calls: Calls | None = None) -> None:
    """The members of a group, opened with one scenario and seed, start equal and go on equal."""
    for scenario in scenarios:
        first = open_session(environment, scenario, 3)
        others = [open_session(environment, scenario, 3) for _ in range(2)]
        start = first.digest()
        for other in others:
            expect(
                other.digest() == start,
                f"two sessions of scenario {scenario!r} and seed 3 start with different digests: does the world depend "
                "on a clock, a global random generator, or the order of a set?",
            )
        for tool, arguments in drawn_calls(environment, scenario, calls):
            outcomes = [ask(session, tool, arguments) for session in (first, *others)]
            expect(
                all(same_answer(outcome, outcomes[0]) for outcome in outcomes[1:]),
                f"the same call {tool}({shown(arguments)}) after the same calls was answered {shown(outcomes[0])} and "
                f"{shown(outcomes[1])}",
            )
            digests = {session.digest() for session in (first, *others)}
            expect(len(digests) == 1, f"after the same calls up to {tool}({shown(arguments)}) the digests differ")
        close_all(first, *others)


def check_isolation(environment: Environment, scenarios: Sequence[str] = ("",), calls: Calls | None = None) -> None:
    """What is called in one session is never seen in another, open at the same time or opened later."""
    for scenario in scenarios:
        busy, idle = open_session(environment, scenario, 5), open_session(environment, scenario, 5)
        before = idle.digest()
        for tool, arguments in drawn_calls(environment, scenario, calls):
            ask(busy, tool, arguments)
            expect(
                idle.digest() == before,
                f"{tool}({shown(arguments)}) in one session changed the digest of another: do they share state?",
            )
        late = open_session(environment, scenario, 5)
        expect(
            late.digest() == before,
            "a session opened after others were used starts with another digest: is the state of the scenario copied?",
        )
        close_all(busy, idle, late)


def check_limits(environment: Environment, scenarios: Sequence[str] = ("",), calls: Calls | None = None) -> None:
    """Over a time limit it masks the sample and ends soon; results are within their bound; it prints nothing.

    Where bounds are tiny (:func:`callwright.environments.sizes.held_to`), a call that comes to more fails and changes
    nothing.
    """
    printed = StringIO()
    with redirect_stdout(printed):
        for scenario in scenarios:
            drawn = drawn_calls(environment, scenario, calls)
            program = Program(tuple(Call(at, tool, arguments) for at, (tool, arguments) in enumerate(drawn[:_LIMITED])))
            for limit in (math.inf, _NO_TIME):
                rules = ExecutionRules(time_limit=limit, isolation="none")
                trace = execute(program, environment, environment.tools, scenario=scenario, seed=1, rules=rules)
                _expect_bounded(trace)
                expect(all_ended(_PATIENCE), f"a call went on for {_PATIENCE:g} s after it was given up")
            for tiny in _TINY:
                with held_to(tiny):
                    _expect_taken_back(environment, scenario, drawn[:_LIMITED])
    expect(not printed.getvalue(), f"it printed {shown(printed.getvalue())}; standard output belongs to commands")


def _expect_taken_back(environment: Environment, scenario: str, drawn: Sequence[tuple[str, dict[str, Any]]]) -> None:
    session = open_session(environment, scenario, 1)
    for tool, arguments in drawn:
        before = session.digest()
        outcome = ask(session, tool, arguments)
        if outcome is not None and outcome.code in ("result_too_large", "state_too_large"):
            expect(
                not outcome.executed and session.digest() == before,
                f"{tool}({shown(arguments)}) came to {outcome.kind!r} with the code {outcome.code!r}, but changed the "
                "state: measure before the first change, or restore what was there",
            )
    close_all(session)


def _expect_bounded(trace: Trace) -> None:
    for record in trace.records:
        outcome = record.outcome
        expect(outcome.kind in get_args(OutcomeKind), f"{record.tool} came to {outcome.kind!r}, which is no kind")
        expect(
            size_of(outcome.value, MOST_VALUE) <= MOST_VALUE,
            f"the result of {record.tool} is larger than {MOST_VALUE:,} characters: its session declares "
            "bounds_results, so it has to see to that itself",
        )


def check_unknown_tool(environment: Environment, scenarios: Sequence[str] = ("",)) -> None:
    """A tool that does not exist is an ``unknown_tool`` and changes nothing."""
    for scenario in scenarios:
        session = open_session(environment, scenario, 0)
        before = session.digest()
        for name in ("no_such_tool", "", "__init__", "close", "digest", "é\0"):
            if name in environment.tools:
                continue
            outcome = ask(session, name, {})
            kind = outcome.kind if isinstance(outcome, Outcome) else "infrastructure_error"
            expect(
                kind in ("unknown_tool", "infrastructure_error"),
                f"calling {name!r}, which is no tool, came to {kind!r} instead of 'unknown_tool'",
            )
            expect(session.digest() == before, f"calling {name!r}, which is no tool, changed the state")
        close_all(session)


def check_outcomes(environment: Environment, scenarios: Sequence[str] = ("",), calls: Calls | None = None) -> None:
    """Calls with fitting and with wrong arguments end in outcomes: a known kind, a JSON value, a code and a message."""
    for scenario in scenarios:
        session = open_session(environment, scenario, 1)
        for tool, arguments in drawn_calls(environment, scenario, calls, wrong=True):
            outcome = ask(session, tool, arguments)
            if outcome is None:
                continue
            about = f"{tool}({shown(arguments)})"
            expect(isinstance(outcome, Outcome), f"{about} gave {type(outcome).__name__}, not an Outcome")
            expect(outcome.kind in get_args(OutcomeKind), f"{about} came to {outcome.kind!r}, which is no kind")
            if outcome.executed:
                with never_raises(f"writing the value of {about}, {shown(outcome.value)}, as JSON"):
                    json.dumps(outcome.value, allow_nan=False)
            else:
                expect(outcome.code != "", f"{about} came to {outcome.kind!r} without a code")
                expect(outcome.message != "", f"{about} came to {outcome.kind!r} without a message")
        close_all(session)


def check_failed_calls(environment: Environment, scenarios: Sequence[str] = ("",), calls: Calls | None = None) -> None:
    """A call that fails leaves the digest as it was; one that was refused may have been counted."""
    for scenario in scenarios:
        session = open_session(environment, scenario, 1)
        for tool, arguments in drawn_calls(environment, scenario, calls, wrong=True):
            before = session.digest()
            outcome = ask(session, tool, arguments)
            expect(
                outcome is None
                or outcome.executed
                or outcome.kind == "refused"
                or outcome.injected == "lost_reply"
                or session.digest() == before,
                f"{tool}({shown(arguments)}) came to {shown(outcome)}, but changed the state: check everything before "
                "the first change, or restore what was there",
            )
        close_all(session)


def check_read_only(environment: Environment, scenarios: Sequence[str] = ("",), calls: Calls | None = None) -> None:
    """A tool that is annotated as read-only leaves the digest as it was, whatever it answers."""
    for scenario in scenarios:
        session = open_session(environment, scenario, 2)
        for tool, arguments in drawn_calls(environment, scenario, calls, wrong=True):
            spec = environment.tools.get(tool)
            before = session.digest()
            ask(session, tool, arguments)
            expect(
                spec is None or not spec.read_only or session.digest() == before,
                f"{tool}({shown(arguments)}) changed the state, though the tool is annotated as read_only",
            )
        close_all(session)


def check_values(environment: Environment, scenarios: Sequence[str] = ("",), calls: Calls | None = None) -> None:
    """In a pure environment no tool changes its arguments, nor later a value that it handed out."""
    if not environment.pure:  # then execution copies whatever goes in and comes out
        return
    for scenario in scenarios:
        session = open_session(environment, scenario, 4)
        handed_out: list[tuple[str, Any, str]] = []
        for tool, arguments in drawn_calls(environment, scenario, calls, wrong=True):
            given, before = copy_json(arguments), snapshot(arguments)
            outcome = ask(session, tool, given, copied=False)
            expect(
                snapshot(given) == before,
                f"{tool} changed its arguments {shown(arguments)} into {shown(given)}, though the environment is pure",
            )
            if outcome is not None and isinstance(outcome.value, list | dict):
                handed_out.append((f"{tool}({shown(arguments)})", outcome.value, snapshot(outcome.value)))
        for origin, value, text in handed_out:
            expect(
                snapshot(value) == text,
                f"the value that {origin} handed out was changed by a later call, though the environment is pure",
            )
        close_all(session)


def check_fork(environment: Environment, scenarios: Sequence[str] = ("",), calls: Calls | None = None) -> None:
    """A forked session, where sessions can be forked, starts equal, goes on equal, and is apart from then on."""
    for scenario in scenarios:
        session: Any = open_session(environment, scenario, 6)
        if not has(session, Forks):
            return
        for number, (tool, arguments) in enumerate(drawn_calls(environment, scenario, calls)):
            other = session.fork()
            lost = [name for name in dir(session) if not name.startswith("_") and not hasattr(other, name)]
            expect(not lost, f"a fork lacks {', '.join(lost)}, which the session that it comes from has")
            before = session.digest()
            expect(other.digest() == before, f"a fork before {tool}({shown(arguments)}) starts with another digest")
            theirs = ask(other, tool, arguments)
            expect(session.digest() == before, f"{tool}({shown(arguments)}) in a fork changed the session it came from")
            after = other.digest()
            ours = ask(session, tool, arguments)
            expect(same_answer(ours, theirs), f"{tool}({shown(arguments)}) was answered differently in a fork")
            expect(session.digest() == after, f"after {tool}({shown(arguments)}) a fork has another digest")
            expect(other.digest() == after, f"{tool}({shown(arguments)}) changed a session that was forked from it")
            if number % 2:
                session, other = other, session
            close_all(other)
        close_all(session)


def check_reset(environment: Environment, scenarios: Sequence[str] = ("",), calls: Calls | None = None) -> None:
    """A session that is reset, where sessions can be, has its first digest and answers as it did at first."""
    for scenario in scenarios:
        session: Any = open_session(environment, scenario, 7)
        if not has(session, Resets):
            return
        first = session.digest()
        script = drawn_calls(environment, scenario, calls)
        answers = [ask(session, tool, arguments) for tool, arguments in script]
        last = session.digest()
        session.reset()
        expect(session.digest() == first, "after reset() the digest is not the first one")
        for (tool, arguments), answer in zip(script, answers, strict=True):
            again = ask(session, tool, arguments)
            expect(same_answer(again, answer), f"{tool}({shown(arguments)}) was answered differently after reset()")
        expect(session.digest() == last, "the same calls after reset() lead to another digest")
        close_all(session)


def check_knowledge(environment: Environment, scenarios: Sequence[str] = ("",)) -> None:
    """What users know, where sessions say it, is JSON by name, the same for equal seeds; asking changes nothing."""
    for scenario in scenarios:
        first, twin = (open_session(environment, scenario, 5) for _ in range(2))
        before = first.digest()
        with never_raises(f"knowledge() of a session of scenario {scenario!r}"):
            known = knowledge_of(first)
            stranger = knowledge_of(first, "nobody of this name")
        expect(first.digest() == before, "knowledge() changed the digest")
        for other in (first, twin):
            again = knowledge_of(other)
            expect(known == again, f"knowledge() gave {shown(known)} and {shown(again)} for one scenario and seed")
        expect(stranger == {}, f"knowledge() of somebody whom nobody knows gave {shown(stranger)}")
        close_all(first, twin)


def check_pickles_before_use(environment: Environment, scenarios: Sequence[str] = ("",)) -> None:
    """It and a fresh session can be pickled, and open and go on equal in another process."""
    _expect_same_world(environment, elsewhere(environment, "the environment"), scenarios)
    for scenario in scenarios:
        session = open_session(environment, scenario, 8)
        if not refuses(session):
            there = elsewhere(session, "a fresh session")
            expect(there.digest() == session.digest(), "a fresh session has another digest after it was pickled")
        close_all(session)


def check_pickles_after_use(
    environment: Environment, scenarios: Sequence[str] = ("",), calls: Calls | None = None
) -> None:
    """After calls too. A session goes on there as here, unless it says in words that it is a live connection."""
    for scenario in scenarios:
        session = open_session(environment, scenario, 8)
        script = drawn_calls(environment, scenario, calls)
        for tool, arguments in script[::2]:
            ask(session, tool, arguments)
        if refuses(session):
            close_all(session)
            continue
        before = session.digest()
        copies = [elsewhere(session, "a session, after calls,"), deepcopy(session)]
        for copy in copies:
            expect(copy.digest() == before, "a session has another digest after it was pickled or copied")
        for tool, arguments in script[1::2]:
            answers = [ask(one, tool, arguments) for one in copies]
            expect(session.digest() == before, f"{tool}({shown(arguments)}) in a copy of a session changed the session")
            ours, before = ask(session, tool, arguments), session.digest()
            expect(
                all(same_answer(answer, ours) for answer in answers),
                f"{tool}({shown(arguments)}) was answered {shown(ours)}, and {shown(answers)} by copies of the session",
            )
            expect(
                all(copy.digest() == before for copy in copies),
                f"after {tool}({shown(arguments)}) a copy of the session has another digest",
            )
        close_all(session, *copies)
    _expect_same_world(environment, elsewhere(environment, "the environment, after it was used,"), scenarios)


def check_goal_states(environment: Environment, scenarios: Sequence[str] = ("",), calls: Calls | None = None) -> None:
    """A goal state, where sessions tell one, is JSON and the same for equal digests; asking for it changes nothing.

    Of rows, the order of calls that write different ones is nothing, and a row that is changed unseen is seen.
    """
    for scenario in scenarios:
        first = open_session(environment, scenario, 5)
        if not has(first, TellsGoalState):
            close_all(first)
            continue
        writing: list[tuple[str, dict[str, Any]]] = []
        drawn = drawn_calls(environment, scenario, calls)
        for tool, arguments in drawn:
            one, twin = (_after(environment, scenario, [(tool, arguments)]) for _ in range(2))
            before = one.digest()
            state = one.goal_state()
            expect(one.digest() == before, f"after {tool}({shown(arguments)}), goal_state() changed the digest")
            with never_raises(f"goal_state() as JSON, after {tool}({shown(arguments)})"):
                json.dumps(state, allow_nan=False)
            expect(
                compare(None, state, twin.goal_state()).equal,
                f"after {tool}({shown(arguments)}) two sessions have one digest and two goal states",
            )
            if before != first.digest() and len(writing) < _WRITES:
                writing.append((tool, arguments))
            close_all(one, twin)
        if isinstance(environment, StatefulEnvironment):
            for earlier, later in combinations(writing, 2):
                _expect_no_order(environment, scenario, earlier, later)
            _expect_seen(environment, scenario, writing)
        close_all(first)


def _after(environment: Environment, scenario: str, calls: Calls) -> Any:
    session = open_session(environment, scenario, 5)
    for tool, arguments in calls:
        ask(session, tool, arguments)
    return session


def _expect_no_order(
    environment: Environment, scenario: str, one: tuple[str, dict[str, Any]], other: tuple[str, dict[str, Any]]
) -> None:
    alone = [_after(environment, scenario, [call]).goal_state() for call in (one, other)]
    marks = [Counter(unit.label for unit in units(state)) for state in alone]
    if any(label in marks[1] for label in marks[0] if label[0] != "new"):
        return
    ends, heard = [], []
    for calls in ([one, other], [other, one]):
        session = _after(environment, scenario, [])
        told = {shown(call): repr(ask(session, *call)) for call in calls}
        ends.append(session.goal_state())
        made = [str(key) for key in ends[-1].get("made", ())]
        if any(key in json.dumps(arguments) for key in made for _, arguments in calls):
            return  # what was drawn names a row that only comes to be, another one in each order
        heard.append({call: _without(words, made) for call, words in told.items()})
    if heard[0] != heard[1] or any(Counter(unit.label for unit in units(end)) != marks[0] + marks[1] for end in ends):
        return  # one hangs on the other
    comparison = compare(None, *ends)
    expect(
        comparison.equal,
        f"{one[0]}({shown(one[1])}) and {other[0]}({shown(other[1])}) write different rows, and it shows which comes "
        f"first: {'; '.join(map(str, comparison.differences[:3]))}. Is a counter, a log or a stamp not declared as "
        "bookkeeping?",
    )


def _without(words: str, made: Sequence[str]) -> str:
    """What was answered, whatever the rows that came to be are called."""
    for key in made:
        words = words.replace(key, "…")
    return words


def _expect_seen(environment: StatefulEnvironment, scenario: str, calls: Calls) -> None:
    for call in calls or [("", {})]:
        session, found = (_after(environment, scenario, [call] if call[0] else []) for _ in range(2))
        world = found.world
        for kind in environment.kinds:
            table, row = table_of(kind), next(iter(world.rows(kind)), None)
            if row is not None and table.is_compared:
                world.drop(row)
                expect(
                    not compare(None, session.goal_state(), found.goal_state()).equal,
                    f"a row of {table.name!r} was taken away, and the goal state is as it was",
                )
                world.put(row)


def _expect_same_world(environment: Environment, copy: Environment, scenarios: Sequence[str]) -> None:
    expect(copy.name == environment.name, f"in another process its name is {copy.name!r}")
    expect(dict(copy.tools) == dict(environment.tools), "in another process it has other tools")
    for scenario in scenarios:
        ours, theirs = open_session(environment, scenario, 9), open_session(copy, scenario, 9)
        expect(
            ours.digest() == theirs.digest(),
            f"sessions of scenario {scenario!r} and seed 9 start with another digest in another process",
        )
        close_all(ours, theirs)


ENVIRONMENT_CHECKS: Final = (
    check_attributes,
    check_schemas,
    check_sessions,
    check_same_seed,
    check_isolation,
    check_limits,
    check_unknown_tool,
    check_outcomes,
    check_schema_errors,
    check_kinds,
    check_results,
    check_failed_calls,
    check_read_only,
    check_threads,
    check_values,
    check_fork,
    check_reset,
    check_goal_states,
    check_knowledge,
    check_user_tools,
    check_pickles_before_use,
    check_pickles_after_use,
)
