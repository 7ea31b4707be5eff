"""Rows of the issue tracker."""

from __future__ import annotations

from typing import Final

from callwright.environments.rows import row


@row("users", prefix="U")
class User:
    """Someone with an account; one that is not ``active`` cannot be assigned to."""

    id: str
    name: str
    email: str
    active: bool = True


@row("profile")
class Profile:
    """Who is signed in."""

    id: str
    user: str


@row("statuses", key=("workflow", "name"), index=("workflow",))
class Status:
    """A node of a workflow; ``category`` is todo, in_progress or done. ``position`` orders the columns of a board."""

    workflow: str
    name: str
    category: str
    position: int


@row("transitions", key=("workflow", "source", "target"), index=("workflow",))
class Transition:
    """An edge of a workflow."""

    workflow: str
    source: str
    target: str
    name: str
    needs_assignee: bool = False


# A counter.
@row("projects", key="key", bookkeeping=("next_number",), unordered=("members",))
class Project:
    """A project; ``next_number`` is the number of its next issue."""

    key: str
    name: str
    workflow: str
    lead: str
    members: tuple[str, ...]
    next_number: int
    archived: bool = False


# A field that was changed and changed back is as it was.
@row(
    "issues",
    key="key",
    index=("project", "sprint", "assignee"),
    generated=("key",),
    stamps=("created",),
    bookkeeping=("updated",),
    unordered=("labels",),
)
class Issue:
    """An issue. ``sprint``, ``assignee`` and ``resolution`` are empty where there is none; times in seconds."""

    key: str
    project: str
    type: str
    summary: str
    description: str
    status: str
    priority: str
    reporter: str
    assignee: str
    labels: tuple[str, ...]
    points: int
    estimate_minutes: int
    sprint: str
    resolution: str
    created: int
    updated: int


@row("sprints", prefix="SP", index=("project",), stamps=("starts", "ends"), relative={"ends": "starts"})
class Sprint:
    """A sprint: ``state`` is future, active or closed. ``capacity_points`` of 0 is unlimited."""

    id: str
    project: str
    name: str
    state: str
    goal: str
    starts: int
    ends: int
    capacity_points: int


@row("sprint_issues", key=("sprint", "issue"), index=("sprint",), stamps=("added",))
class SprintIssue:
    """That an issue was in a sprint: ``outcome`` is open while it lasts, then done or carried."""

    sprint: str
    issue: str
    added: int
    outcome: str


@row("comments", prefix="C", index=("issue",), stamps=("created",))
class Comment:
    """A comment."""

    id: str
    issue: str
    author: str
    body: str
    created: int


@row("links", prefix="L", index=("source", "target"))
class Link:
    """``source`` blocks, duplicates or relates to ``target``."""

    id: str
    kind: str
    source: str
    target: str


# Unless a call says otherwise it follows from now and the minutes; a stated goal may ask for it.
@row("worklogs", prefix="W", index=("issue", "user"), bookkeeping=("started",))
class WorkLog:
    """Time that somebody spent on an issue."""

    id: str
    issue: str
    user: str
    minutes: int
    started: int
    note: str


# The log of changes: issues, sprints and links hold what they came to.
@row("history", prefix="H", index=("issue",), bookkeeping=True)
class Change:
    """One field of an issue changed; values as text."""

    id: str
    issue: str
    field: str
    old: str
    new: str
    author: str
    at: int


ROWS: Final = (
    User,
    Profile,
    Status,
    Transition,
    Project,
    Issue,
    Sprint,
    SprintIssue,
    Comment,
    Link,
    WorkLog,
    Change,
)
