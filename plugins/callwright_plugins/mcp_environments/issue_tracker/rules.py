"""Rules that several tools share: who may, what blocks, and how a change gets into the history."""

from __future__ import annotations

from typing import Any

from callwright.environments.world import World
from callwright.tools.spec import ToolError
from callwright_plugins.mcp_environments.issue_tracker.rows import (
    Change,
    Issue,
    Link,
    Profile,
    Project,
    Sprint,
    Status,
    User,
)


def me(world: World) -> User:
    """The user who is signed in."""
    return world.need(User, world.need(Profile, "me").user)


def project_of(world: World, key: str) -> Project:
    """A project by its key; NOT_FOUND."""
    return world.need(Project, key, message=f"there is no project {key!r}; see list_projects")


def issue_of(world: World, key: str) -> Issue:
    """An issue by its key; NOT_FOUND."""
    return world.need(Issue, key, message=f"there is no issue {key!r}; see search_issues")


def sprint_of(world: World, key: str) -> Sprint:
    """A sprint by its id; NOT_FOUND."""
    return world.need(Sprint, key, message=f"there is no sprint {key!r}; see list_sprints")


def status_of(world: World, issue: Issue) -> Status:
    """The status of an issue in the workflow of its project."""
    return world.need(Status, (project_of(world, issue.project).workflow, issue.status))


def is_open(world: World, issue: Issue) -> bool:
    """Whether an issue is in no done status."""
    return status_of(world, issue).category != "done"


def writable(world: World, key: str) -> Project:
    """A project that the user may change: PROJECT_ARCHIVED, NOT_PROJECT_MEMBER."""
    project = project_of(world, key)
    if project.archived:
        raise ToolError("PROJECT_ARCHIVED", f"the project {key} is archived: it can be read but not changed")
    check_member(project, me(world))
    return project


def check_member(project: Project, user: User) -> None:
    """Fails with NOT_PROJECT_MEMBER."""
    if user.id not in project.members:
        raise ToolError("NOT_PROJECT_MEMBER", f"{user.name} ({user.id}) is not a member of the project {project.key}")


def assignable(world: World, project: Project, key: str) -> User:
    """A user to whom issues of a project can be assigned: NOT_FOUND, NOT_PROJECT_MEMBER, USER_INACTIVE."""
    user = world.need(User, key, message=f"there is no user {key!r}; see list_users")
    check_member(project, user)
    if not user.active:
        raise ToolError("USER_INACTIVE", f"the account of {user.name} ({user.id}) is not active")
    return user


def blockers(world: World, issue: Issue) -> list[str]:
    """The keys of open issues that block this one, in the order of the links."""
    sources = [link.source for link in world.find(Link, target=issue.key) if link.kind == "blocks"]
    return [key for key in sources if is_open(world, issue_of(world, key))]


def closes_cycle(world: World, kind: str, source: str, target: str) -> bool:
    """Whether a link of this kind from ``source`` to ``target`` would close a cycle of links of that kind."""
    seen, todo = {target}, [target]
    while todo:
        key = todo.pop()
        if key == source:
            return True
        for link in world.find(Link, source=key):
            if link.kind == kind and link.target not in seen:
                seen.add(link.target)
                todo.append(link.target)
    return False


def as_text(value: Any) -> str:
    """A value as the history keeps it."""
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def change(world: World, issue: Issue, **fields: Any) -> Issue:
    """Change fields of an issue and write those that differ to the history. Returns the issue as it is then."""
    author = me(world).id
    changed = {name: value for name, value in fields.items() if getattr(issue, name) != value}
    for name, value in changed.items():
        old, new = as_text(getattr(issue, name)), as_text(value)
        world.put(Change(world.new_id(Change), issue.key, name, old, new, author, world.now))
    return world.update(issue, **changed, updated=world.now) if changed else issue
