"""Tools for sprints."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.issue_tracker.parameters import SprintId
from callwright_plugins.mcp_environments.issue_tracker.rows import Issue, Sprint, SprintIssue
from callwright_plugins.mcp_environments.issue_tracker.rules import (
    change,
    is_open,
    issue_of,
    sprint_of,
    writable,
)
from callwright_plugins.mcp_environments.issue_tracker.views import SprintView, sprint_view
from callwright_plugins.mcp_environments.times import DAY


class AddedView(TypedDict):
    """What was put into a sprint, and what was not, with the reason."""

    sprint: SprintView
    added: Annotated[list[str], Field(description="Keys of issues.")]
    left_out: Annotated[list[str], Field(description="Keys of issues that were not put into the sprint.")]


class CompletedView(TypedDict):
    """How a sprint ended: what was done, and where the rest went (``None``: the backlog)."""

    sprint: SprintView
    done: Annotated[list[str], Field(description="Keys of issues.")]
    done_points: Annotated[int, Field(description="Story points.")]
    carried: Annotated[list[str], Field(description="Keys of open issues that left the sprint when it was closed.")]
    moved_to: Annotated[str | None, Field(description="Id of a sprint; null: the backlog.")]


def _not_closed(sprint: Sprint) -> None:
    if sprint.state == "closed":
        raise ToolError("SPRINT_CLOSED", f"the sprint {sprint.id} ({sprint.name}) is closed and stays as it is")


def _enter(world: World, issue: Issue, sprint: str) -> None:
    """Put an issue into a sprint (empty: the backlog) and out of the one it is in, if that still lasts."""
    before = world.get(SprintIssue, (issue.sprint, issue.key)) if issue.sprint else None
    if before is not None and before.outcome == "open":
        world.drop(before)
    change(world, issue, sprint=sprint)
    if sprint:
        world.put(SprintIssue(sprint, issue.key, world.now, "open"))


@tool(idempotent=True)
def add_to_sprint(
    world: World,
    /,
    sprint: SprintId,
    issues: Annotated[
        list[Annotated[str, Field(max_length=40)]],
        Field(min_length=1, max_length=50, description="Keys of open issues of the sprint's project."),
    ],
) -> AddedView:
    """Put issues into a future or active sprint; they leave the one they are in. Closed issues and epics are left out
    (partial, NOT_PLANNABLE). Fails with SPRINT_CLOSED, WRONG_PROJECT, NOT_FOUND, NOT_PROJECT_MEMBER."""
    found = sprint_of(world, sprint)
    writable(world, found.project)
    _not_closed(found)
    chosen = [issue_of(world, key) for key in dict.fromkeys(issues)]
    for issue in chosen:
        if issue.project != found.project:
            raise ToolError("WRONG_PROJECT", f"{issue.key} is not of {found.project}, the project of {found.id}")
    fitting = [issue for issue in chosen if issue.type != "epic" and is_open(world, issue)]
    if not fitting:
        raise ToolError("NOT_PLANNABLE", "all of these issues are closed or epics; neither goes into a sprint")
    for issue in fitting:
        if issue.sprint != found.id:
            _enter(world, issue, found.id)
    left_out = [issue.key for issue in chosen if issue not in fitting]
    if left_out:
        world.warn("NOT_PLANNABLE", f"closed issues and epics are left out: {', '.join(left_out)}")
    return {"sprint": sprint_view(world, found), "added": [issue.key for issue in fitting], "left_out": left_out}


@tool(irreversible=True)
def start_sprint(
    world: World,
    /,
    sprint: SprintId,
    days: Annotated[int, Field(ge=1, le=60, description="How long it lasts.")] = 14,
    goal: Annotated[str, Field(max_length=500, description="Its goal; empty to keep the one it has.")] = "",
) -> SprintView:
    """Start a future sprint now. Fails with SPRINT_ACTIVE (one per project), SPRINT_CLOSED, EMPTY_SPRINT, NOT_FOUND,
    NOT_PROJECT_MEMBER. More points than its capacity are a partial outcome (OVER_CAPACITY): it starts all the same."""
    found = sprint_of(world, sprint)
    writable(world, found.project)
    _not_closed(found)
    active = world.find(Sprint, project=found.project, state="active")
    if active:
        raise ToolError("SPRINT_ACTIVE", f"{active[0].id} ({active[0].name}) of {found.project} is active; complete it")
    issues = world.find(Issue, sprint=found.id)
    if not issues:
        raise ToolError("EMPTY_SPRINT", f"{found.id} holds no issue; add_to_sprint puts some into it")
    started = world.update(
        found, state="active", starts=world.now, ends=world.now + days * DAY, goal=goal or found.goal
    )
    points = sum(issue.points for issue in issues)
    if found.capacity_points and points > found.capacity_points:
        world.warn("OVER_CAPACITY", f"{points} points are planned and the team has {found.capacity_points}")
    return sprint_view(world, started)


@tool(irreversible=True)
def complete_sprint(
    world: World,
    /,
    sprint: SprintId,
    move_open_to: Annotated[
        str, Field(max_length=20, description="Future sprint for open issues; empty: backlog.")
    ] = "",
) -> CompletedView:
    """Close the active sprint. Open issues go to a future sprint of the same project or to the backlog. Fails with
    SPRINT_CLOSED, SPRINT_NOT_STARTED, WRONG_PROJECT, NOT_FOUND, NOT_PROJECT_MEMBER."""
    found = sprint_of(world, sprint)
    writable(world, found.project)
    _not_closed(found)
    if found.state != "active":
        raise ToolError("SPRINT_NOT_STARTED", f"{found.id} is not active; start_sprint starts it")
    if move_open_to:
        following = sprint_of(world, move_open_to)
        _not_closed(following)
        if following.project != found.project or following.id == found.id:
            raise ToolError("WRONG_PROJECT", f"{move_open_to} is not another sprint of {found.project}")
    issues = world.find(Issue, sprint=found.id)
    done = [issue for issue in issues if not is_open(world, issue)]
    carried = [issue for issue in issues if is_open(world, issue)]
    closed = world.update(found, state="closed", ends=world.now)
    for issue in issues:
        kept = world.need(SprintIssue, (found.id, issue.key))
        world.update(kept, outcome="carried" if issue in carried else "done")
    for issue in carried:
        _enter(world, issue, move_open_to)
    return {
        "sprint": sprint_view(world, closed),
        "done": [issue.key for issue in done],
        "done_points": sum(issue.points for issue in done),
        "carried": [issue.key for issue in carried],
        "moved_to": move_open_to or None,
    }


TOOLS: Final[list[FunctionTool]] = [add_to_sprint, start_sprint, complete_sprint]
