"""Parsing completions: a parser is total on texts, and one that is not is named with the completion."""

from __future__ import annotations

from callwright.errors import ComponentError
from callwright.language.parser import ParseFailure, Parser
from callwright.language.program import Program
from callwright.walk.completion import Completion
from callwright.walk.tasks import Task


def parsed(parser: Parser, completion: Completion, task: Task) -> Program | ParseFailure:
    """What a parser makes of a completion. Raises :class:`callwright.errors.ComponentError` if it raises."""
    try:
        return parser.parse(completion.text)
    except Exception as error:
        raise parser_bug(parser, completion, task, error) from error


def parser_bug(parser: Parser, completion: Completion, task: Task, error: Exception) -> ComponentError:
    """The error about a parser that raised."""
    return ComponentError(
        f"parser {parser.name!r} raised {type(error).__name__}: {error} (task {task.id!r}). "
        f"This is a bug of the parser; the completion was: {completion.text[:400]!r}"
    )
