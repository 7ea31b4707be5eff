"""TIER's direct call list (appendix A.3)."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy


@hookimpl
def callwright_parsers() -> Iterable[Lazy]:
    """Register ``direct``."""
    yield Lazy(
        "direct",
        "callwright_plugins.direct_ir.parser:DirectParser",
        summary="a list of calls such as [f(a=1), g(b=API_RESPONSE_0)] (TIER, appendix A.3)",
        takes="callwright.language.options:FormOptions",
    )
