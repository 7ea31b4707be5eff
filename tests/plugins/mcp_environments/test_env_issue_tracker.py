"""The issue tracker environment: its surface, every failure, its golden edges, its invariants and its scenarios."""

from __future__ import annotations

import json
from typing import Any

import pytest
from environment_sessions import code, executed
from hypothesis import given, settings
from hypothesis import strategies as st

from callwright.environments.stateful import StatefulSession
from callwright_plugins.mcp_environments.issue_tracker import environment
from callwright_plugins.mcp_environments.issue_tracker.rows import (
    Change,
    Comment,
    Issue,
    Link,
    Profile,
    Project,
    Sprint,
    SprintIssue,
    Status,
    Transition,
    User,
    WorkLog,
)
from callwright_plugins.mcp_environments.issue_tracker.rules import as_text

READ_ONLY = (
    "list_projects list_users list_sprints search_issues get_issue get_issue_history list_comments "
    "list_allowed_transitions get_sprint_board"
).split()
DISCOVERY = "list_projects list_users list_sprints search_issues".split()
MUTATING = (
    "create_issue update_issue assign_issue transition_issue add_comment link_issues unlink_issues log_work "
    "add_to_sprint start_sprint complete_sprint"
).split()
ENV = environment()

Call = tuple[str, dict[str, Any]]


def test_surface() -> None:
    assert len(ENV.tools) == 20
    assert sorted(ENV.tools) == sorted(READ_ONLY + MUTATING)
    for mark, names in (("read_only", READ_ONLY), ("discovery", DISCOVERY), ("destructive", ["unlink_issues"])):
        assert sorted(name for name, spec in ENV.tools.items() if getattr(spec, mark)) == sorted(names), mark


#: Calls before, the call and its code, in the scenario "adversarial": U00001 is signed in and a member of PAY and PAYM.
DONE = {"to": "Done", "resolution": "done"}
FAILURES: list[tuple[list[Call], Call, str]] = [
    ([], ("transition_issue", {"issue": "PAY-1", "to": "In Review"}), "ILLEGAL_TRANSITION"),
    ([], ("transition_issue", {"issue": "PAY-1", "to": "done"}), "ILLEGAL_TRANSITION"),
    ([], ("transition_issue", {"issue": "PAY-2", **DONE}), "BLOCKED_BY_OPEN_LINK"),
    ([], ("transition_issue", {"issue": "PAY-1", "to": "Done"}), "RESOLUTION_REQUIRED"),
    ([], ("transition_issue", {"issue": "PAY-1", "to": "Selected", "resolution": "done"}), "INVALID_STATE"),
    ([("assign_issue", {"issue": "PAY-1", "user": ""}), ("transition_issue", {"issue": "PAY-1", "to": "Selected"})],
     ("transition_issue", {"issue": "PAY-1", "to": "In Progress"}), "ASSIGNEE_REQUIRED"),
    ([("add_to_sprint", {"sprint": "SP00002", "issues": ["PAY-3"]})],
     ("start_sprint", {"sprint": "SP00002"}), "SPRINT_ACTIVE"),
    ([("complete_sprint", {"sprint": "SP00001"})], ("start_sprint", {"sprint": "SP00002"}), "EMPTY_SPRINT"),
    ([], ("start_sprint", {"sprint": "SP00003"}), "SPRINT_CLOSED"),
    ([], ("complete_sprint", {"sprint": "SP00003"}), "SPRINT_CLOSED"),
    ([], ("add_to_sprint", {"sprint": "SP00003", "issues": ["PAY-1"]}), "SPRINT_CLOSED"),
    ([], ("complete_sprint", {"sprint": "SP00001", "move_open_to": "SP00003"}), "SPRINT_CLOSED"),
    ([], ("complete_sprint", {"sprint": "SP00002"}), "SPRINT_NOT_STARTED"),
    ([], ("complete_sprint", {"sprint": "SP00001", "move_open_to": "SP00004"}), "WRONG_PROJECT"),
    ([], ("add_to_sprint", {"sprint": "SP00001", "issues": ["PAYM-1"]}), "WRONG_PROJECT"),
    ([("transition_issue", {"issue": "PAY-1", **DONE})],
     ("add_to_sprint", {"sprint": "SP00001", "issues": ["PAY-1"]}), "NOT_PLANNABLE"),
    ([], ("start_sprint", {"sprint": "SP00004"}), "NOT_PROJECT_MEMBER"),
    ([], ("add_comment", {"issue": "PYA-1", "body": "hello"}), "NOT_PROJECT_MEMBER"),
    ([], ("assign_issue", {"issue": "PAY-1", "user": "U00005"}), "NOT_PROJECT_MEMBER"),
    ([], ("assign_issue", {"issue": "PAY-1", "user": "U00003"}), "USER_INACTIVE"),
    ([], ("create_issue", {"project": "PYA", "type": "bug", "summary": "x"}), "NOT_PROJECT_MEMBER"),
    ([], ("create_issue", {"project": "OLD", "type": "bug", "summary": "x"}), "PROJECT_ARCHIVED"),
    ([], ("link_issues", {"source": "PAY-3", "target": "PAY-1", "kind": "blocks"}), "LINK_CYCLE"),
    ([], ("link_issues", {"source": "PAY-3", "target": "PAY-3"}), "LINK_CYCLE"),
    ([], ("link_issues", {"source": "PAY-1", "target": "PAY-2", "kind": "blocks"}), "LINK_EXISTS"),
    ([], ("link_issues", {"source": "PAY-1", "target": "PYA-1"}), "LINK_EXISTS"),
    ([], ("unlink_issues", {"link_id": "L99999"}), "NOT_FOUND"),
    ([], ("get_issue", {"issue": "PAY-999"}), "NOT_FOUND"),
    ([], ("list_sprints", {"project": "NO"}), "NOT_FOUND"),
    ([], ("get_sprint_board", {"sprint": "SP99999"}), "NOT_FOUND"),
    ([], ("update_issue", {"issue": "PAY-1"}), "NOTHING_TO_CHANGE"),
    ([], ("log_work", {"issue": "PAY-1", "minutes": 5, "started": "2026-03-02T08:58:00Z"}), "FUTURE_TIME"),
    ([], ("log_work", {"issue": "PAY-1", "minutes": 5, "started": "at nine"}), "BAD_TIME"),
    ([], ("log_work", {"issue": "PAY-1", "minutes": 5, "started": "1969-01-01"}), "BAD_TIME"),
    ([("log_work", {"issue": "PAY-1", "minutes": 1440, "started": "2026-02-27"})],
     ("log_work", {"issue": "PAY-2", "minutes": 1, "started": "2026-02-27T09:00:00Z"}), "DAY_FULL"),
    ([], ("list_comments", {"issue": "PAY-1", "cursor": "9"}), "BAD_CURSOR"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "call", "expected"), FAILURES)
def test_failures_leave_the_state_untouched(before: list[Call], call: Call, expected: str) -> None:
    session = ENV.open("adversarial")
    for tool, arguments in before:
        executed(session, tool, **arguments)
    assert code(session, call[0], **call[1]) == expected


def test_edge_allowed_transitions_lead_through_the_workflow() -> None:
    session = ENV.open("typical")
    me = session.world.need(Profile, "me").user
    made = executed(session, "create_issue", project="PAY", type="task", summary="walk", assignee=me)
    seen = [made["status"]]
    while made["category"] != "done":
        choices = executed(session, "list_allowed_transitions", issue=made["key"])["items"]
        onward = next(one for one in reversed(choices) if one["to"] not in seen)
        if onward["needs_resolution"]:
            assert code(session, "transition_issue", issue=made["key"], to=onward["to"]) == "RESOLUTION_REQUIRED"
            made = executed(session, "transition_issue", issue=made["key"], to=onward["to"], resolution="wont_do")
        else:
            made = executed(session, "transition_issue", issue=made["key"], to=onward["to"])
        seen.append(made["status"])
    statuses = [
        one["new"] for one in executed(session, "get_issue_history", issue=made["key"], field="status")["items"]
    ]
    assert statuses == seen[1:]
    reopened = executed(session, "transition_issue", issue=made["key"], to="Selected")
    assert reopened["resolution"] is None


def test_edge_a_sprint_from_create_to_complete() -> None:
    session = ENV.open("sparse")
    me = session.world.need(Profile, "me").user
    assert code(session, "start_sprint", sprint="SP00001") == "EMPTY_SPRINT"
    assert code(session, "complete_sprint", sprint="SP00001") == "SPRINT_NOT_STARTED"
    keys = []
    for points in (3, 5):
        key = executed(session, "create_issue", project="NEW", type="task", summary="a task", points=points)["key"]
        assert executed(session, "assign_issue", issue=key, user=me)["assignee"] == me
        keys.append(key)
    assert executed(session, "add_to_sprint", sprint="SP00001", issues=keys)["sprint"]["points"] == 8
    assert executed(session, "start_sprint", sprint="SP00001", days=7)["ends"] == "2026-03-09T09:00:00Z"
    executed(session, "transition_issue", issue=keys[0], to="Doing")
    executed(session, "transition_issue", issue=keys[0], to="Done", resolution="done")
    ended = executed(session, "complete_sprint", sprint="SP00001")
    assert (ended["done"], ended["done_points"], ended["carried"]) == ([keys[0]], 3, [keys[1]])
    assert executed(session, "get_issue", issue=keys[1])["sprint"] is None
    board = executed(session, "get_sprint_board", sprint="SP00001")
    assert (board["sprint"]["state"], board["done"], board["carried"]) == ("closed", [keys[0]], [keys[1]])


def test_edge_unlinking_takes_the_id_of_the_link_and_frees_the_blocked() -> None:
    session = ENV.open("sparse")
    keys = [one["key"] for one in executed(session, "search_issues", project="NEW")["items"]]
    link = executed(session, "link_issues", source=keys[0], target=keys[1], kind="blocks")
    executed(session, "transition_issue", issue=keys[1], to="Doing")
    assert executed(session, "list_allowed_transitions", issue=keys[1])["items"][-1]["obstacle"].startswith("BLOCKED")
    assert code(session, "transition_issue", issue=keys[1], **DONE) == "BLOCKED_BY_OPEN_LINK"
    fork = session.fork()
    executed(
        fork, "transition_issue", issue=keys[1], to="Done", resolution="wont_do"
    )  # giving up needs no blocker closed
    executed(session, "unlink_issues", link_id=link["link_id"])
    assert code(session, "unlink_issues", link_id=link["link_id"]) == "NOT_FOUND"
    assert executed(session, "transition_issue", issue=keys[1], **DONE)["resolution"] == "done"


def test_partial_outcomes_say_what_was_left_out() -> None:
    session = ENV.open("adversarial")
    epic = executed(session, "search_issues", project="PAY", type="epic")["items"][0]["key"]
    outcome = session.call("add_to_sprint", {"sprint": "SP00001", "issues": [epic, "PAY-4", "PAY-4"]})
    assert (outcome.kind, outcome.code) == ("partial", "NOT_PLANNABLE")
    assert (outcome.value["added"], outcome.value["left_out"]) == (["PAY-4"], [epic])
    executed(session, "update_issue", issue="PAY-4", points=50)
    executed(session, "complete_sprint", sprint="SP00001", move_open_to="SP00002")
    outcome = session.call("start_sprint", {"sprint": "SP00002"})
    assert (outcome.kind, outcome.code) == ("partial", "OVER_CAPACITY")
    assert outcome.value["state"] == "active"


def test_work_is_added_up_per_issue() -> None:
    session = ENV.open("sparse")
    executed(session, "update_issue", issue="NEW-1", estimate_minutes=100)
    assert executed(session, "log_work", issue="NEW-1", minutes=60)["remaining_minutes"] == 40
    assert executed(session, "log_work", issue="NEW-1", minutes=60)["spent_minutes"] == 120
    assert executed(session, "get_issue", issue="NEW-1")["remaining_minutes"] == 0


# Invariants -----------------------------------------------------------------------------------------------------------


def has_cycle(edges: set[tuple[str, str]]) -> bool:
    """Whether a graph has a cycle, found by taking away sinks until none is left."""
    nodes = {node for edge in edges for node in edge}
    while nodes:
        sinks = {node for node in nodes if not any(a == node and b in nodes for a, b in edges)}
        if not sinks:
            return True
        nodes -= sinks
    return False


def check_invariants(session: StatefulSession) -> None:
    world = session.world
    projects = {project.key: project for project in world.rows(Project)}
    users = {user.id for user in world.rows(User)}
    issues = {issue.key: issue for issue in world.rows(Issue)}
    sprints = {sprint.id: sprint for sprint in world.rows(Sprint)}
    assert world.need(Profile, "me").user in users
    for project in projects.values():
        assert {project.lead, *project.members} <= users
        active = [one for one in sprints.values() if one.project == project.key and one.state == "active"]
        assert len(active) <= 1
        numbers = [int(key.rpartition("-")[2]) for key, issue in issues.items() if issue.project == project.key]
        assert all(number < project.next_number for number in numbers)
    for edge in world.rows(Transition):
        assert world.get(Status, (edge.workflow, edge.source))
        assert world.get(Status, (edge.workflow, edge.target))
    for issue in issues.values():
        status = world.need(Status, (projects[issue.project].workflow, issue.status))
        assert bool(issue.resolution) == (status.category == "done"), issue
        assert issue.assignee in ("", *projects[issue.project].members)
        if issue.sprint:
            assert sprints[issue.sprint].project == issue.project
            assert world.get(SprintIssue, (issue.sprint, issue.key))
        assert issue.created <= issue.updated <= world.now
        check_history(issue, world.find(Change, issue=issue.key))
    for kept in world.rows(SprintIssue):
        assert (kept.outcome == "open") == (sprints[kept.sprint].state != "closed")
        if kept.outcome == "open":
            assert issues[kept.issue].sprint == kept.sprint
    for kind in ("blocks", "duplicates"):
        edges = {(link.source, link.target) for link in world.rows(Link) if link.kind == kind}
        assert not has_cycle(edges)
        assert edges <= {(a, b) for a in issues for b in issues} if len(issues) < 60 else True
    for link in world.rows(Link):
        assert link.source in issues
        assert link.target in issues
    for comment in world.rows(Comment):
        assert comment.issue in issues
        assert comment.author in users
    for log in world.rows(WorkLog):
        assert log.issue in issues
        assert log.user in users
        assert log.minutes > 0


def check_history(issue: Issue, changes: list[Change]) -> None:
    """The history, played from its beginning, is without gaps and ends in the issue as it is."""
    assert changes[0].field == "created"
    latest: dict[str, str] = {"status": changes[0].new, "resolution": "", "sprint": ""}
    for one in changes[1:]:
        if one.field in ("link", "spent_minutes"):
            continue
        assert latest.get(one.field, one.old) == one.old, (issue, changes)
        latest[one.field] = one.new
    for name, value in latest.items():
        assert as_text(getattr(issue, name)) == value, (issue, changes)


keys = st.sampled_from(["NEW-1", "NEW-2", "NEW-3", "NEW-4"])
sprint_ids = st.sampled_from(["SP00001", "SP00002"])
calls = st.one_of(
    st.tuples(
        st.just("create_issue"),
        st.builds(
            lambda t, p: {"project": "NEW", "type": t, "summary": "s", "points": p},
            st.sampled_from(["bug", "epic"]),
            st.integers(0, 9),
        ),
    ),
    st.tuples(
        st.just("transition_issue"),
        st.builds(
            lambda k, t, r: {"issue": k, "to": t, "resolution": r},
            keys,
            st.sampled_from(["To Do", "Doing", "Done"]),
            st.sampled_from([None, "done", "wont_do"]),
        ),
    ),
    st.tuples(
        st.just("link_issues"),
        st.builds(
            lambda a, b, k: {"source": a, "target": b, "kind": k},
            keys,
            keys,
            st.sampled_from(["blocks", "duplicates", "relates"]),
        ),
    ),
    st.tuples(st.just("unlink_issues"), st.builds(lambda n: {"link_id": f"L{n:05d}"}, st.integers(1, 4))),
    st.tuples(st.just("add_to_sprint"), st.builds(lambda s, k: {"sprint": s, "issues": [k]}, sprint_ids, keys)),
    st.tuples(st.just("start_sprint"), st.builds(lambda s: {"sprint": s}, sprint_ids)),
    st.tuples(
        st.just("complete_sprint"),
        st.builds(lambda s, m: {"sprint": s, "move_open_to": m}, sprint_ids, st.sampled_from(["", "SP00002"])),
    ),
    st.tuples(
        st.just("assign_issue"),
        st.builds(lambda k, u: {"issue": k, "user": u}, keys, st.sampled_from(["", "U00001", "U00002"])),
    ),
    st.tuples(st.just("log_work"), st.builds(lambda k, m: {"issue": k, "minutes": m}, keys, st.integers(1, 600))),
    st.tuples(
        st.just("update_issue"),
        st.builds(lambda k, p: {"issue": k, "points": p, "labels": ["x"]}, keys, st.integers(0, 9)),
    ),
)


def with_two_sprints() -> StatefulSession:
    session = ENV.open("sparse")
    session.world.begin(False)
    session.world.put(Sprint("SP00002", "NEW", "NEW sprint 2", "future", "", 0, 0, 5))
    session.world.end()
    return session


@settings(max_examples=100, deadline=None)
@given(st.lists(calls, max_size=30))
def test_any_calls_keep_workflow_sprints_links_and_history_sound(given_calls: list[Call]) -> None:
    session = with_two_sprints()
    for tool, arguments in given_calls:
        before = session.digest()
        outcome = session.call(tool, arguments)
        assert outcome.kind != "schema_error"
        if outcome.kind == "execution_error":
            assert session.digest() == before
    check_invariants(session)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(keys, keys, st.sampled_from(["blocks", "duplicates"])), max_size=16))
def test_a_link_is_refused_exactly_when_it_would_close_a_cycle(pairs: list[tuple[str, str, str]]) -> None:
    session = ENV.open("sparse")
    for _ in range(2):
        executed(session, "create_issue", project="NEW", type="bug", summary="one more")
    all_edges: dict[str, set[tuple[str, str]]] = {"blocks": set(), "duplicates": set()}
    for source, target, kind in pairs:
        edges = all_edges[kind]
        outcome = session.call("link_issues", {"source": source, "target": target, "kind": kind})
        if (source, target) in edges:
            assert outcome.code == "LINK_EXISTS"
        elif has_cycle(edges | {(source, target)}):
            assert outcome.code == "LINK_CYCLE"
        else:
            assert outcome.kind == "ok"
            edges.add((source, target))


# Scenarios ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", ["typical", "sparse", "adversarial"])
@pytest.mark.parametrize("scale", [0.3, 1, 2])
def test_scenarios_are_sound_and_the_same_for_a_seed(scenario: str, scale: float) -> None:
    first, second = (environment(scale=scale).open(scenario, 4) for _ in range(2))
    assert first.digest() == second.digest()
    other = environment(scale=scale).open(scenario, 5)
    assert scenario == "sparse" or first.world.dump()["tables"] != other.world.dump()["tables"]
    check_invariants(first)


def test_scale_multiplies() -> None:
    counts = [environment(scale=scale).open("typical").world.count(Issue) for scale in (0.5, 1, 2)]
    assert counts == [7 * 30, 7 * 60, 7 * 120]


@pytest.mark.parametrize("scenario", ["typical", "sparse", "adversarial"])
def test_every_tool_works(scenario: str) -> None:
    session = ENV.open(scenario)
    world = session.world
    me = world.need(Profile, "me").user
    project = next(one for one in world.rows(Project) if me in one.members and one.workflow != "service")
    sprint = next(one for one in world.find(Sprint, project=project.key) if one.state == "future")
    active = world.find(Sprint, project=project.key, state="active")
    if active:
        executed(session, "complete_sprint", sprint=active[0].id)
    one, two = (
        executed(session, "create_issue", project=project.key, type="task", summary=f"task {name}")["key"]
        for name in "ab"
    )
    link = executed(session, "link_issues", source=one, target=two)["link_id"]
    onward = executed(session, "list_allowed_transitions", issue=one)["items"][0]["to"]
    script: list[Call] = [
        ("list_projects", {}), ("list_users", {"project": project.key}), ("list_sprints", {"project": project.key}),
        ("search_issues", {"text": "task a"}), ("get_issue", {"issue": one}), ("get_issue_history", {"issue": one}),
        ("list_allowed_transitions", {"issue": one}), ("update_issue", {"issue": one, "points": 1}),
        ("assign_issue", {"issue": one, "user": me}), ("transition_issue", {"issue": one, "to": onward}),
        ("add_comment", {"issue": one, "body": "hello"}), ("list_comments", {"issue": one}),
        ("link_issues", {"source": one, "target": two, "kind": "blocks"}), ("unlink_issues", {"link_id": link}),
        ("log_work", {"issue": one, "minutes": 10}), ("add_to_sprint", {"sprint": sprint.id, "issues": [one]}),
        ("start_sprint", {"sprint": sprint.id}), ("get_sprint_board", {"sprint": sprint.id}),
        ("complete_sprint", {"sprint": sprint.id}),
        ("create_issue", {"project": project.key, "type": "bug", "summary": "more", "labels": ["x", "x"]}),
    ]  # fmt: skip
    assert {tool for tool, _ in script} == set(ENV.tools)
    for tool, arguments in script:
        outcome = session.call(tool, arguments)
        assert outcome.kind == "ok" or outcome.code == "OVER_CAPACITY", (tool, outcome)
        json.dumps(outcome.value)
    check_invariants(session)
