"""Worlds of issues: a company with several projects, a project that has just begun, and one full of traps."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from random import Random
from typing import Any, Final

from callwright.environments.stateful import NOW, Scenario
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
from callwright_plugins.mcp_environments.people import email_of, person
from callwright_plugins.mcp_environments.times import DAY, HOUR

#: Workflows: statuses with their categories in order, and edges (source, target, name, needs an assignee).
_STATUSES: Final = {
    "software": {
        "Backlog": "todo",
        "Selected": "todo",
        "In Progress": "in_progress",
        "In Review": "in_progress",
        "Done": "done",
    },
    "simple": {"To Do": "todo", "Doing": "in_progress", "Done": "done"},
    "service": {
        "New": "todo",
        "Triaged": "todo",
        "Working": "in_progress",
        "Waiting": "in_progress",
        "Resolved": "done",
        "Closed": "done",
    },
}
_EDGES: Final = {
    "software": (
        ("Backlog", "Selected", "select", False),
        ("Selected", "Backlog", "put back", False),
        ("Selected", "In Progress", "start", True),
        ("In Progress", "Selected", "stop", False),
        ("In Progress", "In Review", "ask for review", True),
        ("In Review", "In Progress", "ask for changes", False),
        ("In Review", "Done", "accept", False),
        ("Backlog", "Done", "reject", False),
        ("Done", "Selected", "reopen", False),
    ),
    "simple": (
        ("To Do", "Doing", "start", False),
        ("Doing", "To Do", "stop", False),
        ("Doing", "Done", "finish", False),
        ("Done", "To Do", "reopen", False),
    ),
    "service": (
        ("New", "Triaged", "triage", False),
        ("Triaged", "Working", "take on", True),
        ("Working", "Waiting", "wait for customer", False),
        ("Waiting", "Working", "customer answered", False),
        ("Working", "Resolved", "resolve", False),
        ("New", "Closed", "reject", False),
        ("Resolved", "Working", "reopen", False),
        ("Resolved", "Closed", "close", False),
    ),
}
_PROJECTS: Final = (
    ("PAY", "Payments", "software"),
    ("WEB", "Website", "software"),
    ("OPS", "Operations", "service"),
    ("MOB", "Mobile app", "software"),
    ("HR", "People", "simple"),
    ("DATA", "Data platform", "software"),
)
_VERBS: Final = ("Fix", "Add", "Remove", "Speed up", "Document", "Test", "Redesign", "Upgrade", "Investigate")
_THINGS: Final = (
    "login page",
    "invoice export",
    "search index",
    "refund flow",
    "dark mode",
    "nightly backup",
    "rate limiter",
    "address form",
    "email templates",
    "audit log",
    "mobile menu",
    "price rounding",
    "password reset",
    "image upload",
)
_WHERE: Final = ("on Safari", "for large accounts", "after the migration", "in French", "under load", "for new users")
_LABELS: Final = ("backend", "frontend", "security", "regression", "quick-win", "customer", "tech-debt")
_TYPES: Final = ("bug", "bug", "task", "task", "task", "story", "story", "epic")
_PRIORITIES: Final = ("lowest", "low", "medium", "medium", "high", "highest")


class _Office:
    """Rows while a world is laid out; issues come into being by walking their workflow, with the history of it."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.users: list[User] = []
        self.projects: dict[str, Project] = {}
        self.issues: dict[str, Issue] = {}
        self.sprints: list[Sprint] = []
        self.others: list[Any] = []
        self.numbers = {"C": 0, "L": 0, "W": 0, "H": 0}
        for workflow, statuses in _STATUSES.items():
            for position, (name, category) in enumerate(statuses.items()):
                self.others.append(Status(workflow, name, category, position))
            self.others += [Transition(workflow, *edge) for edge in _EDGES[workflow]]

    def id(self, prefix: str) -> str:
        self.numbers[prefix] += 1
        return f"{prefix}{self.numbers[prefix]:05d}"

    def user(self, active: bool = True, name: tuple[str, str] | None = None) -> User:
        first, last = name or person(self.rng)
        number = len(self.users) + 1
        user = User(f"U{number:05d}", f"{first} {last}", email_of(first, last, number), active)
        self.users.append(user)
        return user

    def project(self, key: str, name: str, workflow: str, members: list[User], archived: bool = False) -> None:
        ids = tuple(user.id for user in members)
        self.projects[key] = Project(key, name, workflow, ids[0], ids, 1, archived)

    def change(self, issue: str, field: str, old: str, new: str, author: str, at: int) -> None:
        self.others.append(Change(self.id("H"), issue, field, old, new, author, at))

    def issue(self, project: str, steps: int, **fixed: Any) -> Issue:
        """An issue that has made up to ``steps`` steps of its workflow."""
        rng, found = self.rng, self.projects[project]
        self.projects[project] = Project(
            found.key, found.name, found.workflow, found.lead, found.members, found.next_number + 1, found.archived
        )
        active = [user.id for user in self.users if user.id in found.members and user.active] or [found.lead]
        at = NOW - rng.randrange(20, 200) * DAY
        reporter, assignee = rng.choice(active), rng.choice(active) if rng.random() < 0.75 else ""
        status = next(iter(_STATUSES[found.workflow]))
        key = f"{project}-{found.next_number}"
        self.change(key, "created", "", status, reporter, at)
        resolution, created = "", at
        for _ in range(steps):
            edges = [edge for edge in _EDGES[found.workflow] if edge[0] == status and (assignee or not edge[3])]
            if not edges:
                break
            target = rng.choice(edges)[1]
            at += rng.randrange(HOUR, 2 * DAY)
            author = assignee or reporter
            self.change(key, "status", status, target, author, at)
            done = _STATUSES[found.workflow][target] == "done"
            closing = (resolution or rng.choice(("done", "done", "wont_do", "duplicate"))) if done else ""
            if closing != resolution:
                self.change(key, "resolution", resolution, closing, author, at)
            status, resolution = target, closing
        summary = f"{rng.choice(_VERBS)} the {rng.choice(_THINGS)} {rng.choice(_WHERE)}"
        fields = {
            "type": rng.choice(_TYPES),
            "summary": summary,
            "description": f"{summary}.\n\nReported by a customer; see the log of {rng.randrange(1, 29)} January.",
            "priority": rng.choice(_PRIORITIES),
            "labels": tuple(rng.sample(_LABELS, rng.randrange(3))),
            "points": rng.choice((0, 1, 2, 3, 5, 8)),
            "estimate_minutes": rng.choice((0, 60, 120, 240, 480, 960)),
        }
        issue = Issue(
            key=key,
            project=project,
            status=status,
            reporter=reporter,
            assignee=assignee,
            sprint="",
            resolution=resolution,
            created=created,
            updated=min(at, NOW - HOUR),
            **{**fields, **fixed},
        )
        self.issues[key] = issue
        return issue

    def is_open(self, issue: Issue) -> bool:
        return _STATUSES[self.projects[issue.project].workflow][issue.status] != "done"

    def sprint(self, project: str, name: str, state: str, capacity: int = 0) -> Sprint:
        number = len(self.sprints) + 1
        begin = {"closed": NOW - 30 * DAY, "active": NOW - 7 * DAY, "future": 0}[state]
        sprint = Sprint(f"SP{number:05d}", project, name, state, "", begin, begin + 14 * DAY if begin else 0, capacity)
        self.sprints.append(sprint)
        return sprint

    def plan(self, sprint: Sprint, issue: Issue) -> None:
        """Put an issue without a sprint into one; the open ones of a closed sprint were carried to the backlog."""
        outcome = "open" if sprint.state != "closed" else "carried" if self.is_open(issue) else "done"
        self.others.append(SprintIssue(sprint.id, issue.key, sprint.starts or NOW - DAY, outcome))
        if outcome == "carried":
            return
        fields = {name: getattr(issue, name) for name in Issue.__annotations__}
        self.issues[issue.key] = Issue(**{**fields, "sprint": sprint.id})
        self.change(issue.key, "sprint", "", sprint.id, issue.reporter, issue.updated)

    def link(self, kind: str, source: Issue, target: Issue) -> None:
        self.others.append(Link(self.id("L"), kind, source.key, target.key))

    def comment(self, issue: Issue) -> None:
        rng = self.rng
        body = rng.choice(("I can reproduce this.", "Any news?", "Fixed on my branch.", "Please add a test."))
        author = rng.choice(self.projects[issue.project].members)
        at = issue.created + rng.randrange(HOUR, 9 * DAY)
        self.others.append(Comment(self.id("C"), issue.key, author, f"{body} ({rng.choice(_THINGS)})", at))

    def work(self, issue: Issue) -> None:
        if issue.assignee:
            minutes = self.rng.choice((15, 30, 45, 60, 90))
            at = issue.created + self.rng.randrange(10 * DAY)
            self.others.append(WorkLog(self.id("W"), issue.key, issue.assignee, minutes, at, ""))

    def rows(self) -> Iterable[Any]:
        return (
            *self.users,
            Profile("me", self.users[0].id),
            *self.projects.values(),
            *self.issues.values(),
            *self.sprints,
            *self.others,
        )


def typical(rng: Random, scale: float) -> Iterable[Any]:
    """A company: six projects with workflows of three kinds, sprints behind and ahead, links, comments, work."""
    office = _Office(rng)
    everybody = [office.user(active=number % 9 != 8) for number in range(max(6, round(24 * scale)))]
    me = everybody[0]
    for number, (key, name, workflow) in enumerate(_PROJECTS):
        team = rng.sample(everybody[1:], min(len(everybody) - 1, 9))
        office.project(key, name, workflow, team if number == 4 else [me, *team], archived=False)
    office.project("OLD", "Legacy portal", "simple", [me, *everybody[1:4]], archived=True)
    for key in office.projects:
        issues = [office.issue(key, rng.choice((0, 0, 1, 1, 2, 3, 4, 6))) for _ in range(max(4, round(60 * scale)))]
        for number, target in enumerate(issues[1:], 1):
            if rng.random() < 0.25:  # from earlier to later ones only, so that there are no cycles
                kind = rng.choice(("blocks", "blocks", "relates", "duplicates"))
                office.link(kind, issues[rng.randrange(number)], target)
        for issue in issues:
            for _ in range(rng.randrange(3)):
                office.comment(issue)
            if rng.random() < 0.4:
                office.work(issue)
        plannable = [issue for issue in issues if issue.type != "epic"]
        rng.shuffle(plannable)
        for number, state in enumerate(("closed", "active", "future", "future")):
            if state == "active" and key in ("MOB", "OLD"):
                continue
            sprint = office.sprint(key, f"{key} sprint {number + 1}", state, capacity=rng.choice((0, 20, 30)))
            for _ in range(0 if number == 3 else 8):
                fitting = [one for one in plannable if state == "closed" or office.is_open(one)]
                if fitting:
                    plannable.remove(fitting[0])
                    office.plan(sprint, fitting[0])
    return office.rows()


def sparse(rng: Random, scale: float) -> Iterable[Any]:
    """A project that began today: two issues, an empty sprint, one colleague; and a project without anything."""
    office = _Office(rng)
    me, colleague = office.user(), office.user()
    office.project("NEW", "New thing", "simple", [me, colleague])
    office.project("NIL", "Nothing yet", "software", [me])
    for _ in range(max(2, round(2 * scale))):
        office.issue("NEW", 0)
    office.sprint("NEW", "NEW sprint 1", "future")
    return office.rows()


def adversarial(rng: Random, scale: float) -> Iterable[Any]:
    """Traps: namesakes, inactive members, chains of blockers, issues that look alike, foreign and archived projects."""
    office = _Office(rng)
    me = office.user(name=("Ada", "Berg"))
    namesakes = [office.user(name=("Ada", "Berg"), active=number != 1) for number in range(3)]
    stranger = office.user(name=("Ada", "Bergs"))
    office.project("PAY", "Payments", "software", [me, *namesakes])
    office.project("PAYM", "Payment", "service", [me, namesakes[0]])
    office.project("PYA", "Payroll", "simple", [stranger])
    office.project("OLD", "Payments", "software", [me], archived=True)
    same = {"summary": "Fix the refund flow", "type": "bug", "priority": "high"}
    chain = []
    for _ in range(max(5, round(40 * scale))):
        chain.append(office.issue("PAY", 0, **same))
        office.issue("PAYM", rng.randrange(4), **same)
        office.issue("PYA", rng.randrange(3), **same)
    for one, other in pairwise(chain):
        office.link("blocks", one, other)
    office.link("relates", office.issues["PYA-1"], chain[0])
    office.issue("OLD", 2, **same)
    office.issue("PAY", 0, type="epic", summary="Fix the refund flow (epic)")
    running = office.sprint("PAY", "Sprint 1", "active", capacity=1)
    office.plan(running, chain[0])
    office.sprint("PAY", "Sprint 1", "future", capacity=1)
    office.sprint("PAY", "Sprint 1", "closed")
    office.sprint("PYA", "Sprint 1", "future")
    return office.rows()


SCENARIOS: Final = {
    "typical": Scenario(typical, "a company with seven projects, three workflows, sprints, links and history"),
    "sparse": Scenario(sparse, "a project that began today, and one without a single issue"),
    "adversarial": Scenario(adversarial, "namesakes, issues that look alike, chains of blockers, foreign projects"),
}
