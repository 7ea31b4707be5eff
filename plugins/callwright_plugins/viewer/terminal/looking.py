"""What every screen asks: which source is looked at, the board's answers about it, and its notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from textual.app import App

from callwright.errors import CallwrightError
from callwright_plugins.viewer.answers.notes import Note, read_notes, write_note
from callwright_plugins.viewer.serving.api import Board
from callwright_plugins.viewer.terminal.rendering import line

#: Seconds between two looks at what grows.
EVERY: Final = 1.0


class Looking(App[None]):
    """An app that looks at one source of a board at a time."""

    def __init__(self, board: Board) -> None:
        super().__init__()
        self.board = board
        self.source = board.sources[0].key

    def ask(self, question: str, **asked: Any) -> Any:
        """The board's answer about the source that is looked at. Raises :class:`callwright.errors.CallwrightError`."""
        return self.board.answer(question, {"source": self.source, **{name: str(one) for name, one in asked.items()}})

    @property
    def about(self) -> Mapping[str, Any]:
        """What the board says of the source."""
        found: Mapping[str, Any] = next(one for one in self.board.state()["sources"] if one["key"] == self.source)
        return found

    def notes(self) -> dict[int, Note]:
        """The notes about rows of the source; none of a file that cannot be read."""
        try:
            return read_notes(self.board.indexes[self.source])
        except CallwrightError:
            return {}

    def note(self, n: int, mark: str, comment: str) -> None:
        """Write a note, and say what hindered it."""
        try:
            write_note(self.board.indexes[self.source], n, mark, comment)
        except (CallwrightError, OSError) as error:
            self.notify(line(str(error), 300), severity="error", markup=False)
