"""Text of unknown origin, made harmless: what models and tools wrote must never reach a terminal as it is."""

from __future__ import annotations

import unicodedata

import click

from callwright.machines.redaction import redacted


def say(text: str) -> None:
    """A line on stderr, without secrets, and with nothing in it that a terminal would obey."""
    try:
        click.echo(visible(redacted(text)), err=True)
    except OSError:  # nobody reads stderr either
        return


def visible(text: str) -> str:
    """A text of unknown origin with control, bidirectional and surrogate characters replaced, one for one.

    Line feeds and tabs stay. Model text may hold escape sequences; a terminal must never see them.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if character in "\n\t":
        return character
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)  # the picture of the control character
    if code == 0x7F:
        return "\u2421"
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in "\u200d\u00ad":
        return "\ufffd"
    return character
