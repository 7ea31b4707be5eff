"""Parameters that several tools of the issue tracker take."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

ProjectKey = Annotated[str, Field(max_length=20, description="Key of a project, such as PAY; see list_projects.")]
IssueKey = Annotated[str, Field(max_length=40, description="Key of an issue, such as PAY-12.")]
SprintId = Annotated[str, Field(max_length=20, description="Id of a sprint; see list_sprints.")]
UserId = Annotated[str, Field(max_length=20, description="Id of a user; see list_users.")]
Type = Literal["bug", "task", "story", "epic"]
Priority = Literal["lowest", "low", "medium", "high", "highest"]
Resolution = Literal["done", "wont_do", "duplicate", "cannot_reproduce"]
Summary = Annotated[str, Field(min_length=1, max_length=200, description="One line that says what it is about.")]
Description = Annotated[str, Field(max_length=10_000, description="What it is about, at length.")]
Labels = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[^\s,]+$")]],
    Field(max_length=20, description="Labels: words without spaces."),
]
Points = Annotated[int, Field(ge=0, le=100, description="Story points.")]
Estimate = Annotated[int, Field(ge=0, le=100_000, description="Estimated work in minutes.")]
