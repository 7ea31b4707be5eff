"""Tools of the issue tracker that change nothing."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from callwright.environments.paging import Cursor, Limit, Page, page
from callwright.environments.world import World
from callwright.tools.spec import FunctionTool, tool
from callwright_plugins.mcp_environments.closed_sets import none_such
from callwright_plugins.mcp_environments.issue_tracker.parameters import IssueKey, ProjectKey, SprintId
from callwright_plugins.mcp_environments.issue_tracker.rows import (
    Change,
    Comment,
    Issue,
    Project,
    Sprint,
    SprintIssue,
    Status,
    Transition,
    User,
)
from callwright_plugins.mcp_environments.issue_tracker.rules import (
    blockers,
    is_open,
    issue_of,
    project_of,
    sprint_of,
    status_of,
)
from callwright_plugins.mcp_environments.issue_tracker.views import (
    CommentView,
    IssueLine,
    IssueView,
    ProjectView,
    SprintView,
    UserView,
    comment_view,
    issue_line,
    issue_view,
    project_view,
    sprint_view,
    user_view,
)
from callwright_plugins.mcp_environments.times import iso

Query = Annotated[str, Field(max_length=100, description="Only those that hold this text; empty for all.")]
_PRIORITIES: Final = {"highest": 0, "high": 1, "medium": 2, "low": 3, "lowest": 4}


#: What the history of an issue keeps.
ChangedField = Literal[
    "",
    "created",
    "status",
    "resolution",
    "assignee",
    "sprint",
    "summary",
    "description",
    "type",
    "priority",
    "labels",
    "points",
    "estimate_minutes",
    "spent_minutes",
    "link",
]


class ChangeView(TypedDict):
    """A change of one field."""

    field: str
    old: str
    new: str
    author: Annotated[str, Field(description="Id of a user.")]
    at: str


class TransitionView(TypedDict):
    """A status that an issue can move to next, and what stands in the way (``None``: nothing)."""

    to: str
    name: str
    category: str
    needs_resolution: Annotated[bool, Field(description="transition_issue wants a resolution.")]
    needs_assignee: Annotated[bool, Field(description="The issue must have one.")]
    obstacle: Annotated[str | None, Field(description="What keeps the issue from going there; null: nothing.")]


class ColumnView(TypedDict):
    """A column of a board."""

    status: str
    category: str
    points: Annotated[int, Field(description="Story points of its issues.")]
    issues: list[IssueLine]


class BoardView(TypedDict):
    """A sprint as columns; of a closed one, what was done in it and what was carried on."""

    sprint: SprintView
    columns: list[ColumnView]
    done: list[str]
    carried: Annotated[list[str], Field(description="Keys of open issues that left the sprint when it was closed.")]


@tool(read_only=True, discovery=True)
def list_projects(
    world: World,
    /,
    query: Query = "",
    include_archived: Annotated[bool, Field(description="Also those that can only be read.")] = False,
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[ProjectView]:
    """List projects with their keys and the statuses of their workflows."""
    wanted = query.casefold()
    found = [
        project
        for project in world.rows(Project)
        if (include_archived or not project.archived) and wanted in f"{project.key} {project.name}".casefold()
    ]
    return page(found, lambda project: project_view(world, project), limit, cursor)


@tool(read_only=True, discovery=True)
def list_users(
    world: World,
    /,
    project: Annotated[str, Field(max_length=20, description="Only members of this project; empty for all.")] = "",
    query: Query = "",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[UserView]:
    """List users, or the members of a project. Only members can be assigned to its issues. Fails with NOT_FOUND."""
    members = project_of(world, project).members if project else None
    wanted = query.casefold()
    found = [
        user
        for user in world.rows(User)
        if (members is None or user.id in members) and wanted in f"{user.name} {user.email}".casefold()
    ]
    return page(found, user_view, limit, cursor)


@tool(read_only=True, discovery=True)
def list_sprints(
    world: World,
    /,
    project: ProjectKey,
    state: Annotated[Literal["any", "future", "active", "closed"], Field(description="Only in this state.")] = "any",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[SprintView]:
    """List the sprints of a project; at most one is active. Fails with NOT_FOUND."""
    project_of(world, project)
    found = [sprint for sprint in world.find(Sprint, project=project) if state in ("any", sprint.state)]
    return page(found, lambda sprint: sprint_view(world, sprint), limit, cursor)


@tool(read_only=True, discovery=True)
def search_issues(
    world: World,
    /,
    project: Annotated[str, Field(max_length=20, description="Only of this project; empty for all.")] = "",
    text: Query = "",
    status: Annotated[str, Field(max_length=40, description="Only in this status, as list_projects writes it.")] = "",
    category: Annotated[
        Literal["any", "todo", "in_progress", "done", "open"], Field(description="open: todo and in_progress.")
    ] = "any",
    type: Annotated[Literal["any", "bug", "task", "story", "epic"], Field(description="Only of this type.")] = "any",
    assignee: Annotated[str, Field(max_length=20, description="Only of this user; 'none': of nobody.")] = "",
    sprint: Annotated[str, Field(max_length=20, description="Only of this sprint; 'none': of the backlog.")] = "",
    label: Annotated[
        str,
        Field(
            max_length=40,
            description="backend, customer, frontend, quick-win, regression, security, tech-debt or one of your own.",
        ),
    ] = "",
    order: Annotated[Literal["key", "updated", "priority"], Field(description="Latest or highest first.")] = "key",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[IssueLine]:
    """Search issues that fit all conditions; text is looked for in summaries and descriptions. Fails with NOT_FOUND for
    a project that does not exist."""
    if project:
        project_of(world, project)
    wanted = text.casefold()
    found = [
        issue
        for issue, summary, description in world.prepared(Issue, _with_texts)
        if (not wanted or wanted in summary or wanted in description)
        and (not project or issue.project == project)
        and (not status or issue.status == status)
        and (type == "any" or issue.type == type)
        and (not assignee or issue.assignee == ("" if assignee == "none" else assignee))
        and (not sprint or issue.sprint == ("" if sprint == "none" else sprint))
        and (not label or label in issue.labels)
        and (category == "any" or _is_in(world, issue, category))
    ]
    if order == "updated":
        found.sort(key=lambda issue: -issue.updated)
    elif order == "priority":
        found.sort(key=lambda issue: _PRIORITIES[issue.priority])
    if not found and (unknown := _unknown(world, status, label)):
        world.warn("UNKNOWN_VALUE", unknown)
    return page(found, lambda issue: issue_line(world, issue), limit, cursor)


def _unknown(world: World, status: str, label: str) -> str:
    return none_such(world, Status, "name", status, "status") or none_such(world, Issue, "labels", label, "label")


def _with_texts(issue: Issue) -> tuple[Issue, str, str]:
    return issue, issue.summary.casefold(), issue.description.casefold()


def _is_in(world: World, issue: Issue, category: str) -> bool:
    return is_open(world, issue) if category == "open" else status_of(world, issue).category == category


@tool(read_only=True)
def get_issue(world: World, /, issue: IssueKey) -> IssueView:
    """An issue with description, links, open blockers and time spent. Fails with NOT_FOUND."""
    return issue_view(world, issue_of(world, issue))


@tool(read_only=True)
def get_issue_history(
    world: World,
    /,
    issue: IssueKey,
    field: Annotated[ChangedField, Field(description="Only changes of this field; empty for all.")] = "",
    limit: Limit = 20,
    cursor: Cursor = "",
) -> Page[ChangeView]:
    """The changes of an issue, the oldest first. Fails with NOT_FOUND."""
    issue_of(world, issue)
    found = [one for one in world.find(Change, issue=issue) if not field or one.field == field]
    return page(
        found,
        lambda one: {"field": one.field, "old": one.old, "new": one.new, "author": one.author, "at": iso(one.at)},
        limit,
        cursor,
    )


@tool(read_only=True)
def list_comments(world: World, /, issue: IssueKey, limit: Limit = 20, cursor: Cursor = "") -> Page[CommentView]:
    """The comments on an issue, the oldest first. Fails with NOT_FOUND."""
    issue_of(world, issue)
    return page(world.find(Comment, issue=issue), comment_view, limit, cursor)


@tool(read_only=True)
def list_allowed_transitions(world: World, /, issue: IssueKey) -> Page[TransitionView]:
    """The statuses to which an issue can move from its present one, what each asks for, and what stands in the way now:
    give `to` to transition_issue. Fails with NOT_FOUND."""
    found = issue_of(world, issue)
    project = project_of(world, found.project)
    edges = [edge for edge in world.find(Transition, workflow=project.workflow) if edge.source == found.status]
    return page(edges, lambda edge: _transition_view(world, found, edge), 100)


def _transition_view(world: World, issue: Issue, edge: Transition) -> TransitionView:
    category = world.need(Status, (edge.workflow, edge.target)).category
    blocked = blockers(world, issue) if category == "done" else []
    obstacle = None
    if edge.needs_assignee and not issue.assignee:
        obstacle = "ASSIGNEE_REQUIRED: assign the issue first"
    elif blocked:
        obstacle = f"BLOCKED_BY_OPEN_LINK: open issues block it: {', '.join(blocked)}"
    return {
        "to": edge.target,
        "name": edge.name,
        "category": category,
        "needs_resolution": category == "done" and not issue.resolution,
        "needs_assignee": edge.needs_assignee,
        "obstacle": obstacle,
    }


@tool(read_only=True)
def get_sprint_board(world: World, /, sprint: SprintId) -> BoardView:
    """A sprint as columns of its workflow with the issues in each; of a closed sprint what was done and what was
    carried on. Fails with NOT_FOUND."""
    found = sprint_of(world, sprint)
    project = project_of(world, found.project)
    statuses = sorted(world.find(Status, workflow=project.workflow), key=lambda status: status.position)
    issues = world.find(Issue, sprint=found.id)
    columns: list[ColumnView] = []
    for status in statuses:
        inside = [issue for issue in issues if issue.status == status.name]
        columns.append(
            {
                "status": status.name,
                "category": status.category,
                "points": sum(issue.points for issue in inside),
                "issues": [issue_line(world, issue) for issue in inside],
            }
        )
    kept = world.find(SprintIssue, sprint=found.id)
    return {
        "sprint": sprint_view(world, found),
        "columns": columns,
        "done": [one.issue for one in kept if one.outcome == "done"],
        "carried": [one.issue for one in kept if one.outcome == "carried"],
    }


TOOLS: Final[list[FunctionTool]] = [
    list_projects,
    list_users,
    list_sprints,
    search_issues,
    get_issue,
    get_issue_history,
    list_comments,
    list_allowed_transitions,
    get_sprint_board,
]
