"""Users: a script that holds something back, a recording, or a model, who talk with the agent about its task."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy

_HERE = "callwright_plugins.users"


@hookimpl
def callwright_users() -> Iterable[Lazy]:
    """Register the kinds of users."""
    yield Lazy(
        "scripted",
        f"{_HERE}.scripted:Scripted",
        "tells what it knows when it is asked, and is done when its goal is reached",
        takes=f"{_HERE}.options:ScriptedOptions",
    )
    yield Lazy(
        "model",
        f"{_HERE}.model:ModelUser",
        "a model, by any sampler, that is told who it is, what it wants and what it knows",
        reaches=f"{_HERE}.reaching:reaches",
        stand_in=f"{_HERE}.stand_in:stand_in",
        takes=f"{_HERE}.options:ModelUserOptions",
    )
    yield Lazy(
        "replayed",
        f"{_HERE}.replayed:Replayed",
        "says the same lines, whatever the agent says",
        takes=f"{_HERE}.options:ReplayedOptions",
    )
