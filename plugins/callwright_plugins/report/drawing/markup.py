"""Text into HTML. Everything that comes from a file passes through :func:`safe` or :func:`attribute`."""

from __future__ import annotations

from html import escape

from callwright.commands.safe_text import visible


def safe(value: object) -> str:
    """A value as text of an element: escaped, and without characters that would reorder or hide others."""
    return escape(visible(str(value)), quote=False)


def attribute(value: object) -> str:
    """A value as an attribute in double quotes."""
    return escape(visible(str(value)), quote=True)


def cut(text: str, longest: int) -> str:
    """A text of at most about ``longest`` characters; what was cut off is counted."""
    return text if len(text) <= longest else f"{text[:longest]} … ({len(text) - longest:,} more characters)"


def percent(share: float | None) -> str:
    """``0.8333`` as ``83.3%``, ``0.9`` as ``90%``; a dash where it is not known."""
    return "–" if share is None else f"{points(share)}%"


def points(share: float, *, signed: bool = False) -> str:
    """A share in hundredths, with one decimal where it is not whole."""
    text = f"{100 * share:{'+' if signed else ''}.1f}".removesuffix(".0").replace("-", "−")
    return "0" if text in ("+0", "−0") else text


def section(title: str, body: str, *, lead: str = "", key: str = "") -> str:
    """A section with its heading and one line about it."""
    about = f"<p>{lead}</p>" if lead else ""
    rail = f'<div class="rail"><h2>{safe(title)}</h2>{about}</div>'
    return f'<section id="{attribute(key)}">{rail}<div class="body">{body}</div></section>'
