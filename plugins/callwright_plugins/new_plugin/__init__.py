"""New plugins: a distribution of your own that is green at once, for every kind of component."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy


@hookimpl
def callwright_commands() -> Iterable[Lazy]:
    """``callwright plugins new``."""
    yield Lazy("plugins new", "callwright_plugins.new_plugin.command:new", "a distribution of your own, green at once")
