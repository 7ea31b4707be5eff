"""Tools that change single issues."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, ToolError, tool
from callwright_plugins.mcp_environments.issue_tracker.parameters import (
    Description,
    Estimate,
    IssueKey,
    Labels,
    Points,
    Priority,
    ProjectKey,
    Resolution,
    Summary,
    Type,
)
from callwright_plugins.mcp_environments.issue_tracker.rows import (
    Change,
    Comment,
    Issue,
    Link,
    Project,
    Status,
    Transition,
    WorkLog,
)
from callwright_plugins.mcp_environments.issue_tracker.rules import (
    assignable,
    blockers,
    change,
    closes_cycle,
    issue_of,
    me,
    writable,
)
from callwright_plugins.mcp_environments.issue_tracker.views import CommentView, IssueView, comment_view, issue_view
from callwright_plugins.mcp_environments.times import DAY, iso, iso_date, parse_time


class LinkedView(TypedDict):
    """A link between two issues."""

    link_id: str
    kind: str
    source: Annotated[str, Field(description="Key of an issue.")]
    target: Annotated[str, Field(description="Key of an issue.")]


class WorkView(TypedDict):
    """Logged work, and what has been spent on the issue in all."""

    worklog_id: str
    issue: str
    minutes: Annotated[int, Field(description="Of this entry.")]
    started: Annotated[str, Field(description="UTC.")]
    spent_minutes: Annotated[int, Field(description="On the issue in all.")]
    remaining_minutes: Annotated[int, Field(description="Estimate less the work that is logged, at least 0.")]


@tool
def create_issue(
    world: World,
    /,
    project: ProjectKey,
    type: Annotated[Type, Field(description="What kind of issue.")],
    summary: Summary,
    description: Description = "",
    priority: Annotated[Priority, Field(description="How urgent.")] = "medium",
    labels: Labels = [],  # noqa: B006 (tools never change their arguments)
    assignee: Annotated[str, Field(max_length=20, description="Id of a member of the project; empty: nobody.")] = "",
    points: Points = 0,
    estimate_minutes: Estimate = 0,
) -> IssueView:
    """Create an issue in the first status of the project's workflow; you are its reporter. Fails with NOT_FOUND,
    NOT_PROJECT_MEMBER, PROJECT_ARCHIVED, USER_INACTIVE."""
    found = writable(world, project)
    user = assignable(world, found, assignee).id if assignee else ""
    first = min(world.find(Status, workflow=found.workflow), key=lambda status: status.position)
    key = f"{found.key}-{found.next_number}"
    world.update(found, next_number=found.next_number + 1)
    issue = world.put(
        Issue(
            key,
            found.key,
            type,
            summary,
            description,
            first.name,
            priority,
            me(world).id,
            user,
            tuple(dict.fromkeys(labels)),
            points,
            estimate_minutes,
            "",
            "",
            world.now,
            world.now,
        )
    )
    world.put(Change(world.new_id(Change), key, "created", "", first.name, me(world).id, world.now))
    return issue_view(world, issue)


@tool(idempotent=True)
def update_issue(
    world: World,
    /,
    issue: IssueKey,
    summary: Annotated[str | None, Field(min_length=1, max_length=200, description="New summary.")] = None,
    description: Annotated[str | None, Field(max_length=10_000, description="New description.")] = None,
    type: Annotated[Type | None, Field(description="New type.")] = None,
    priority: Annotated[Priority | None, Field(description="New priority.")] = None,
    labels: Annotated[Labels | None, Field(description="All labels that it is to have.")] = None,
    points: Annotated[int | None, Field(ge=0, le=100, description="New story points.")] = None,
    estimate_minutes: Annotated[int | None, Field(ge=0, le=100_000, description="New estimate in minutes.")] = None,
) -> IssueView:
    """Change fields of an issue; what is left out stays. Status, assignee and sprint have their own tools. Fails with
    NOTHING_TO_CHANGE if no field is given, NOT_FOUND, NOT_PROJECT_MEMBER, PROJECT_ARCHIVED."""
    found = issue_of(world, issue)
    writable(world, found.project)
    given: dict[str, Any] = {
        "summary": summary,
        "description": description,
        "type": type,
        "priority": priority,
        "labels": None if labels is None else tuple(dict.fromkeys(labels)),
        "points": points,
        "estimate_minutes": estimate_minutes,
    }
    fields = {name: value for name, value in given.items() if value is not None}
    if not fields:
        raise ToolError("NOTHING_TO_CHANGE", f"no field was given; {issue} stays as it is")
    return issue_view(world, change(world, found, **fields))


@tool(idempotent=True)
def assign_issue(
    world: World,
    /,
    issue: IssueKey,
    user: Annotated[str, Field(max_length=20, description="Id of a member of the project; empty: nobody.")],
) -> IssueView:
    """Assign an issue to a member of its project, or to nobody. Fails with NOT_FOUND, NOT_PROJECT_MEMBER (you or the
    user), USER_INACTIVE, PROJECT_ARCHIVED."""
    found = issue_of(world, issue)
    project = writable(world, found.project)
    if user:
        assignable(world, project, user)
    return issue_view(world, change(world, found, assignee=user))


@tool
def transition_issue(
    world: World,
    /,
    issue: IssueKey,
    to: Annotated[str, Field(max_length=40, description="A status that list_allowed_transitions gives.")],
    resolution: Annotated[Resolution | None, Field(description="Why it is closed; for done statuses only.")] = None,
    comment: Annotated[str, Field(max_length=5000, description="A comment to add; empty for none.")] = "",
) -> IssueView:
    """Move an issue to another status along its workflow. A done status needs a resolution (RESOLUTION_REQUIRED); the
    resolution done also needs all blockers closed (BLOCKED_BY_OPEN_LINK). Fails with ILLEGAL_TRANSITION,
    ASSIGNEE_REQUIRED, NOT_FOUND, NOT_PROJECT_MEMBER, PROJECT_ARCHIVED."""
    found = issue_of(world, issue)
    project = writable(world, found.project)
    edge = _edge(world, project, found, to)
    if edge.needs_assignee and not found.assignee:
        raise ToolError("ASSIGNEE_REQUIRED", f"{issue} must be assigned before it can move to {to!r}")
    is_done = world.need(Status, (project.workflow, to)).category == "done"
    closing = resolution or found.resolution
    if is_done and not closing:
        raise ToolError("RESOLUTION_REQUIRED", f"{to!r} closes {issue}: give a resolution such as done or wont_do")
    if not is_done and resolution:
        raise ToolError("INVALID_STATE", f"{to!r} leaves {issue} open: it takes no resolution")
    open_ones = blockers(world, found) if is_done and closing == "done" else []
    if open_ones:
        raise ToolError(
            "BLOCKED_BY_OPEN_LINK", f"{issue} cannot be resolved as done while {', '.join(open_ones)} is open"
        )
    moved = change(world, found, status=to, resolution=closing if is_done else "")
    if comment:
        _commented(world, issue, comment)
    return issue_view(world, moved)


def _edge(world: World, project: Project, issue: Issue, to: str) -> Transition:
    edge = world.get(Transition, (project.workflow, issue.status, to))
    if edge is not None:
        return edge
    targets = [one.target for one in world.find(Transition, workflow=project.workflow) if one.source == issue.status]
    raise ToolError(
        "ILLEGAL_TRANSITION",
        f"{issue.key} is in {issue.status!r} and cannot move to {to!r}; from there it goes to {', '.join(targets)}",
    )


@tool(irreversible=True)
def add_comment(
    world: World, /, issue: IssueKey, body: Annotated[str, Field(min_length=1, max_length=5000, description="Text.")]
) -> CommentView:
    """Comment on an issue. Fails with NOT_FOUND, NOT_PROJECT_MEMBER, PROJECT_ARCHIVED."""
    writable(world, issue_of(world, issue).project)
    return _commented(world, issue, body)


def _commented(world: World, issue: str, body: str) -> CommentView:
    return comment_view(world.put(Comment(world.new_id(Comment), issue, me(world).id, body, world.now)))


@tool
def link_issues(
    world: World,
    /,
    source: IssueKey,
    target: IssueKey,
    kind: Annotated[
        Literal["blocks", "duplicates", "relates"], Field(description="What source does to target.")
    ] = "relates",
) -> LinkedView:
    """Link two issues, also of two projects: source blocks, duplicates or relates to target. Fails with LINK_CYCLE,
    LINK_EXISTS, NOT_FOUND, NOT_PROJECT_MEMBER (of the source's project), PROJECT_ARCHIVED."""
    one, other = issue_of(world, source), issue_of(world, target)
    writable(world, one.project)
    if source == target:
        raise ToolError("LINK_CYCLE", f"{source} cannot be linked to itself")
    there = [link for link in world.find(Link, source=source) if link.kind == kind and link.target == target]
    if kind == "relates":
        there += [link for link in world.find(Link, source=target) if link.kind == kind and link.target == source]
    if there:
        raise ToolError("LINK_EXISTS", f"{there[0].id} says already that {source} {kind} {target}")
    if kind != "relates" and closes_cycle(world, kind, source, target):
        raise ToolError("LINK_CYCLE", f"{target} {kind} {source}, directly or through others: this would close a cycle")
    link = world.put(Link(world.new_id(Link), kind, source, target))
    _note(world, one, "link", "", f"{kind} {target}")
    _note(world, other, "link", "", f"{source} {kind} this")
    return {"link_id": link.id, "kind": kind, "source": source, "target": target}


@tool(destructive=True)
def unlink_issues(
    world: World, /, link_id: Annotated[str, Field(max_length=20, description="Id that get_issue or link_issues gave.")]
) -> LinkedView:
    """Remove a link between issues. Fails with NOT_FOUND, NOT_PROJECT_MEMBER (of the source's project),
    PROJECT_ARCHIVED."""
    link = world.need(Link, link_id, message=f"there is no link {link_id!r}; get_issue shows the links of an issue")
    one, other = issue_of(world, link.source), issue_of(world, link.target)
    writable(world, one.project)
    world.drop(link)
    _note(world, one, "link", f"{link.kind} {link.target}", "")
    _note(world, other, "link", f"{link.source} {link.kind} this", "")
    return {"link_id": link.id, "kind": link.kind, "source": link.source, "target": link.target}


def _note(world: World, issue: Issue, field: str, old: str, new: str) -> None:
    world.put(Change(world.new_id(Change), issue.key, field, old, new, me(world).id, world.now))
    world.update(issue, updated=world.now)


@tool
def log_work(
    world: World,
    /,
    issue: IssueKey,
    minutes: Annotated[int, Field(ge=1, le=1440, description="Minutes of work.")],
    started: Annotated[str, Field(max_length=40, description="ISO 8601 time; empty: it ends now.")] = "",
    note: Annotated[str, Field(max_length=500, description="What was done.")] = "",
) -> WorkView:
    """Log your work on an issue. Work cannot end in the future (FUTURE_TIME), and a day (UTC) has 1440 minutes for all
    your issues (DAY_FULL). Fails with BAD_TIME, NOT_FOUND, NOT_PROJECT_MEMBER, PROJECT_ARCHIVED."""
    found = issue_of(world, issue)
    writable(world, found.project)
    begin = parse_time(started) if started else world.now - minutes * 60
    if begin + minutes * 60 > world.now:
        raise ToolError("FUTURE_TIME", f"{minutes} minutes from {iso(begin)} end after now, {iso(world.now)}")
    if begin < 0:
        raise ToolError("BAD_TIME", f"{started[:40]!r} is before 1970")
    user = me(world).id
    day = begin // DAY
    spent = sum(log.minutes for log in world.find(WorkLog, user=user) if log.started // DAY == day)
    if spent + minutes > 1440:
        raise ToolError("DAY_FULL", f"{spent} minutes are logged on {iso_date(begin)} already; a day has 1440")
    log = world.put(WorkLog(world.new_id(WorkLog), issue, user, minutes, begin, note))
    total = sum(one.minutes for one in world.find(WorkLog, issue=issue))
    _note(world, found, "spent_minutes", str(total - minutes), str(total))
    return {
        "worklog_id": log.id,
        "issue": issue,
        "minutes": minutes,
        "started": iso(begin),
        "spent_minutes": total,
        "remaining_minutes": max(0, found.estimate_minutes - total),
    }


TOOLS: Final[list[FunctionTool]] = [
    create_issue,
    update_issue,
    assign_issue,
    transition_issue,
    add_comment,
    link_issues,
    unlink_issues,
    log_work,
]
