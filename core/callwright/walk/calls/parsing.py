"""Parsing completions: a parser is total on texts, and one that is not is named with the completion."""

from __future__ import annotations

from typing import Final

from callwright.errors import ComponentError
from callwright.language.parser import ParseFailure, Parser
from callwright.language.program import Program
from callwright.language.shortening import shortened
from callwright.walk.completion import Completion
from callwright.walk.tasks import Task

#: Characters of what a parser gave that a message quotes.
_LONGEST: Final = 200


def parsed(parser: Parser, completion: Completion, task: Task) -> Program | ParseFailure:
    """What a parser makes of a completion.

    Raises :class:`callwright.errors.ComponentError` if it raises, or gives anything else.
    """
    try:
        found = parser.parse(completion.text)
    except Exception as error:
        raise parser_bug(parser, completion, task, f"raised {type(error).__name__}: {error}") from error
    kind = type(found)
    if kind is not Program and kind is not ParseFailure:  # nearly always one of them itself
        check_parsed(parser, completion, task, found)
    return found


def check_parsed(parser: Parser, completion: Completion, task: Task, found: object) -> None:
    """Raises :class:`callwright.errors.ComponentError` unless a parser gave a program or a failure."""
    if not isinstance(found, Program | ParseFailure):
        what = f"gave {shortened(repr(found), _LONGEST)}; it must give a Program or a ParseFailure"
        raise parser_bug(parser, completion, task, what)


def parser_bug(parser: Parser, completion: Completion, task: Task, what: str) -> ComponentError:
    """The error about a parser that did ``what`` it must not."""
    return ComponentError(
        f"parser {parser.name!r} {what} (task {task.id!r}). "
        f"This is a bug of the parser; the completion was: {completion.text[:400]!r}"
    )
