"""What is laid over a screen: the keys, the list of sources, a line to write."""

from __future__ import annotations

from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static

from callwright_plugins.viewer.answers.notes import LONGEST
from callwright_plugins.viewer.serving.api import Board
from callwright_plugins.viewer.terminal.rendering import line

KEYS: Final = (
    ("/", "search and filter: words, step>30, failure:schema*, tool:NAME, score.format<1, answered:no, mark:good"),
    ("j k", "next and previous row"),
    ("Enter", "the row under the cursor"),
    ("s", "another order: by row, newest first, by reward, by advantage"),
    ("g", "the samples of its prompt, side by side"),
    ("t", "its task over the steps"),
    ("m x l", "mark as good, bad, to look at"),
    ("c", "comment"),
    ("e", "execute again: every value, and what each call changed"),
    ("p", "the prompt whole, or folded"),
    ("1 2", "rollouts, curves"),
    ("+ -", "smooth curves more, less"),
    ("[ ] o", "the source before, the next one, all of them"),
    ("Esc", "back"),
    ("q", "end; while you write, Ctrl-Q"),
)


class Help(ModalScreen[None]):
    """The keys, in words."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "back"),
        Binding("question_mark", "dismiss", "back", show=False),
        Binding("q", "app.quit", "end"),
    ]

    def compose(self) -> ComposeResult:
        """A list of them."""
        made = Text()
        for keys, words in KEYS:
            made.append(f"{keys:<7}", "bold").append(f"{words}\n")
        with VerticalScroll():
            yield Static(made)


class Sources(ModalScreen[str | None]):
    """What there is to look at."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "back"),
        Binding("q", "app.quit", "end"),
    ]

    def __init__(self, board: Board) -> None:
        super().__init__()
        self._board = board

    def compose(self) -> ComposeResult:
        """A list of them."""
        told = self._board.state()["sources"]
        yield OptionList(*(Text(f"{line(one['name'], 50)}  {one['kind']}  {one['rows']:,} rows") for one in told))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Go there."""
        self.dismiss(self._board.sources[event.option_index].key)


class Comment(ModalScreen[str | None]):
    """A line to write; ``None`` if it is left with Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "back")]

    def __init__(self, written: str) -> None:
        super().__init__()
        self._written = line(written, LONGEST)  # an input shows what it holds as it is

    def compose(self) -> ComposeResult:
        """The line."""
        yield Input(self._written, placeholder="comment", id="comment")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Done."""
        self.dismiss(event.value)
