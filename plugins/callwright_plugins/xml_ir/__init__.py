"""TIER's XML form (appendix A.1)."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy


@hookimpl
def callwright_parsers() -> Iterable[Lazy]:
    """Register ``xml``."""
    yield Lazy(
        "xml",
        "callwright_plugins.xml_ir.parser:XmlParser",
        summary="<api> elements with typed parameters, references as <response/> (TIER, appendix A.1)",
        takes="callwright.language.options:FormOptions",
    )
