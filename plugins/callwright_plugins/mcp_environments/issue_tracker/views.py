"""What tools of the issue tracker show."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright_plugins.mcp_environments.issue_tracker.rows import (
    Comment,
    Issue,
    Link,
    Project,
    Sprint,
    Status,
    User,
    WorkLog,
)
from callwright_plugins.mcp_environments.issue_tracker.rules import blockers, status_of
from callwright_plugins.mcp_environments.times import iso


class ProjectView(TypedDict):
    """A project."""

    key: str
    name: str
    lead: Annotated[str, Field(description="Id of a user.")]
    members: Annotated[int, Field(description="How many.")]
    archived: Annotated[bool, Field(description="Can only be read.")]
    statuses: Annotated[list[str], Field(description="Of its workflow, in order.")]


class UserView(TypedDict):
    """A user."""

    id: str
    name: str
    email: str
    active: Annotated[bool, Field(description="Others are assigned nothing.")]


class IssueLine(TypedDict):
    """An issue in a list."""

    key: str
    type: str
    summary: str
    status: str
    category: str
    priority: str
    assignee: Annotated[str | None, Field(description="Id of a user; null: nobody.")]
    points: Annotated[int, Field(description="Story points.")]
    sprint: Annotated[str | None, Field(description="Id; null: in the backlog.")]


class LinkView(TypedDict):
    """A link as seen from an issue: ``relation`` is blocks, is_blocked_by, duplicates, is_duplicated_by or relates."""

    link_id: str
    relation: Annotated[str, Field(description="As seen from this issue.")]
    issue: Annotated[str, Field(description="Key of the other issue.")]
    status: Annotated[str, Field(description="Of the other issue.")]


class IssueView(IssueLine):
    """An issue with everything about it; times in minutes as their names say."""

    project: str
    description: str
    labels: list[str]
    reporter: str
    resolution: str | None
    created: str
    updated: str
    estimate_minutes: Annotated[int, Field(description="Of the whole issue.")]
    spent_minutes: Annotated[int, Field(description="On the issue in all.")]
    remaining_minutes: Annotated[int, Field(description="Estimate less the work that is logged, at least 0.")]
    links: list[LinkView]
    open_blockers: list[str]
    comments: int


class SprintView(TypedDict):
    """A sprint with the points and number of the issues in it now."""

    id: str
    project: str
    name: str
    state: str
    goal: str
    starts: str | None
    ends: str | None
    issues: Annotated[int, Field(description="How many now.")]
    points: Annotated[int, Field(description="Story points of its issues now.")]
    capacity_points: Annotated[int, Field(description="Story points that fit.")]


class CommentView(TypedDict):
    """A comment."""

    id: str
    issue: str
    author: Annotated[str, Field(description="Id of a user.")]
    body: str
    created: str


def user_view(user: User) -> UserView:
    """The view of a user."""
    return {"id": user.id, "name": user.name, "email": user.email, "active": user.active}


def project_view(world: World, project: Project) -> ProjectView:
    """The view of a project with the statuses of its workflow, in order."""
    statuses = sorted(world.find(Status, workflow=project.workflow), key=lambda status: status.position)
    return {
        "key": project.key,
        "name": project.name,
        "lead": project.lead,
        "members": len(project.members),
        "archived": project.archived,
        "statuses": [status.name for status in statuses],
    }


def issue_line(world: World, issue: Issue) -> IssueLine:
    """The short view of an issue."""
    return {
        "key": issue.key,
        "type": issue.type,
        "summary": issue.summary,
        "status": issue.status,
        "category": status_of(world, issue).category,
        "priority": issue.priority,
        "assignee": issue.assignee or None,
        "points": issue.points,
        "sprint": issue.sprint or None,
    }


def links_of(world: World, issue: Issue) -> list[LinkView]:
    """The links of an issue, those that begin at it first."""
    out = [(link, link.kind, link.target) for link in world.find(Link, source=issue.key)]
    turned = {"blocks": "is_blocked_by", "duplicates": "is_duplicated_by", "relates": "relates"}
    into = [(link, turned[link.kind], link.source) for link in world.find(Link, target=issue.key)]
    return [
        {"link_id": link.id, "relation": relation, "issue": key, "status": world.need(Issue, key).status}
        for link, relation, key in out + into
    ]


def issue_view(world: World, issue: Issue) -> IssueView:
    """The whole view of an issue."""
    spent = sum(log.minutes for log in world.find(WorkLog, issue=issue.key))
    return {
        **issue_line(world, issue),
        "project": issue.project,
        "description": issue.description,
        "labels": list(issue.labels),
        "reporter": issue.reporter,
        "resolution": issue.resolution or None,
        "created": iso(issue.created),
        "updated": iso(issue.updated),
        "estimate_minutes": issue.estimate_minutes,
        "spent_minutes": spent,
        "remaining_minutes": max(0, issue.estimate_minutes - spent),
        "links": links_of(world, issue),
        "open_blockers": blockers(world, issue),
        "comments": world.count(Comment, issue=issue.key),
    }


def sprint_view(world: World, sprint: Sprint) -> SprintView:
    """The view of a sprint."""
    issues = world.find(Issue, sprint=sprint.id)
    return {
        "id": sprint.id,
        "project": sprint.project,
        "name": sprint.name,
        "state": sprint.state,
        "goal": sprint.goal,
        "starts": iso(sprint.starts) if sprint.starts else None,
        "ends": iso(sprint.ends) if sprint.ends else None,
        "issues": len(issues),
        "points": sum(issue.points for issue in issues),
        "capacity_points": sprint.capacity_points,
    }


def comment_view(comment: Comment) -> CommentView:
    """The view of a comment."""
    return {
        "id": comment.id,
        "issue": comment.issue,
        "author": comment.author,
        "body": comment.body,
        "created": iso(comment.created),
    }
