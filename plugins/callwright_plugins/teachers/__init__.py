"""Teachers: any OpenAI-compatible server, a script, or a recording, in the roles planner, user, assistant and judge."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE = "callwright_plugins.teachers"


@hookimpl
def callwright_teachers() -> Iterable[Lazy]:
    """Register the teachers; a client is imported when it is first needed."""
    yield Lazy(
        "openai",
        f"{_HERE}.model_teacher:ModelTeacher",
        summary="a model of any OpenAI-compatible server, with options of its own for each role",
        extra="openai",
        reaches=f"{_HERE}.model_teacher:reaches",
        takes=f"{_HERE}.options:ModelTeacherOptions",
    )
    yield Lazy(
        "scripted",
        f"{_HERE}.scripted:ScriptedTeacher",
        "lines of a script: no model, for tests and offline use",
        takes=f"{_HERE}.options:ScriptedTeacherOptions",
    )
    yield Lazy(
        "replayed",
        f"{_HERE}.replayed:ReplayedTeacher",
        "what another teacher replied, from a file; asks nobody",
        takes=f"{_HERE}.options:ReplayedTeacherOptions",
    )
