"""The issue tracker environment: projects with workflows, issues, links, sprints, work logs and a full history.

- Every project has a workflow: a graph of statuses, each of the category todo, in_progress or done. An issue moves
  along its edges only (ILLEGAL_TRANSITION); edges may ask for an assignee.
- An issue that enters a done status needs a resolution (RESOLUTION_REQUIRED), and loses it when it is opened again. It
  cannot be resolved as done while an issue that blocks it is open (BLOCKED_BY_OPEN_LINK).
- ``blocks`` and ``duplicates`` form no cycles (LINK_CYCLE); ``relates`` has no direction.
- Only members of a project change its issues or are assigned to them (NOT_PROJECT_MEMBER); archived projects are
  read-only (PROJECT_ARCHIVED).
- A project has at most one active sprint (SPRINT_ACTIVE). Closed sprints stay as they are (SPRINT_CLOSED); what is open
  when a sprint is completed goes to another one or back to the backlog.
- Every change of a field of an issue is written to its history, with who made it and when.
- Whoever is signed in is the user of the one row of ``profile``.
"""

from __future__ import annotations

from callwright_plugins.mcp_environments.factory import factory

environment = factory(__name__, "person")
