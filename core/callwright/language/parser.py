"""Parsers: what an intermediate representation (IR) must offer, and the limits that every parser keeps."""

from __future__ import annotations

from typing import Any, Literal, Protocol, runtime_checkable

from attrs import frozen

from callwright.language.program import Program

#: Where reading stopped. ``arguments``: the tree of ids and tool names is well formed, but the arguments of a call are
#: not a table of names and values, so nothing can be checked against a schema or executed.
FailureStage = Literal["limit", "envelope", "syntax", "structure", "arguments"]
#: A half-open range of characters of a completion.
Span = tuple[int, int]


@frozen(slots=False)  # which attrs makes faster
class ParseFailure:
    """Why a completion is not a program. A value, never an exception.

    ``code`` is stable and lower-case (``missing_think``, ``invalid_json``, ``duplicate_id`` …); ``message`` is a
    sentence for people; ``span`` is the half-open range of characters in the completion that it is about.
    """

    stage: FailureStage
    code: str
    message: str
    span: Span


@frozen
class ParseLimits:
    """Bounds on what a parser accepts; beyond them the result is a ``limit`` failure."""

    characters: int = 400_000
    nesting: int = 64
    calls: int = 256


DEFAULT_LIMITS = ParseLimits()


@runtime_checkable
class Parser(Protocol):
    """A textual form of tool programs: it parses, renders, and explains itself to a model.

    ``parse`` is total on ``str``, linear in its length and pure. For every program that the form can express,
    ``parse(render(program)) == program``; ``render`` raises :class:`callwright.errors.CannotExpress` for the others.
    """

    @property
    def name(self) -> str:
        """The registered name of the form, such as ``json``."""

    def parse(self, text: str) -> Program | ParseFailure:
        """Read a whole completion."""

    def render(self, program: Program) -> str:
        """Write a completion, ``program.thought`` included."""

    def instructions(self) -> str:
        """The part of the system prompt that teaches this form, with everything that several turns allow.

        Parsers may also follow what an attempt allows (:class:`callwright.language.teaching.TeachesWhatIsAllowed`).
        """


@runtime_checkable
class TakesHandles(Protocol):
    """What a form adds that has no references: a later turn may name earlier results (:mod:`callwright.walk`)."""

    @property
    def takes_handles(self) -> bool:
        """Whether texts that are handles of earlier results stand for these."""


@runtime_checkable
class WritesResults(Protocol):
    """What a form adds that has its own way to show a model the results of calls; by default each is one message."""

    def observe(self, turn: Any) -> Any:
        """What follows a turn (:class:`callwright.walk.Turn`) with calls: a text, for one message of the role ``tool``.

        Or a list of messages, as :class:`callwright.Message` or in the wire format of chat completions.
        """


@runtime_checkable
class SpeaksToUsers(Protocol):
    """What a form adds in which a model talks with a user otherwise than by an answer without a call."""

    @property
    def speaking(self) -> str:
        """How it does, in a sentence of the system prompt."""


@runtime_checkable
class HasLimits(Protocol):
    """What a form adds whose bounds can be set: the kit then tries smaller ones."""

    @property
    def limits(self) -> ParseLimits:
        """What it accepts at most."""


@runtime_checkable
class OneBlock(Protocol):
    """What a parser adds whose completion is one tool-call block: where a text holds more than that.

    ``parse`` reads the first block, whatever else there is; a reward that minds asks here. Both methods are total on
    ``str``, linear in its length and pure. Forms in which several blocks are one answer do not have them.
    """

    def second_block(self, text: str) -> Span | None:
        """The second complete tool-call block of a completion, wherever it stands; ``None`` if there is none."""

    def stray_text(self, text: str) -> Span | None:
        """What stands before or after the blocks that are read, white space aside; ``None`` if nothing does."""
