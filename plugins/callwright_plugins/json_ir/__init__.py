"""TIER's JSON form (appendix A.2), its default."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy


@hookimpl
def callwright_parsers() -> Iterable[Lazy]:
    """Register ``json``."""
    yield Lazy(
        "json",
        "callwright_plugins.json_ir.parser:JsonParser",
        summary="an object of numbered calls, references as API_RESPONSE_0 (TIER, appendix A.2)",
        takes="callwright.language.options:FormOptions",
    )
