"""The app: pages, keys that hold everywhere, and how it looks."""

from __future__ import annotations

from typing import ClassVar, Final

from textual.binding import Binding, BindingType

from callwright_plugins.viewer.serving.api import Board
from callwright_plugins.viewer.terminal.curves import Curves
from callwright_plugins.viewer.terminal.looking import Looking
from callwright_plugins.viewer.terminal.modals import Help, Sources
from callwright_plugins.viewer.terminal.rows import Rows

STYLE: Final = """
Screen { layout: vertical; }
#head { height: auto; padding: 0 1; }
#search { height: 3; }
#rows { height: 1fr; }
#said { height: auto; padding: 0 1; color: $error; }
#body { padding: 0 1; }
#columns { height: 1fr; }
#columns > VerticalScroll { width: 56; padding: 0 1; border-right: solid $surface-lighten-1; }
Help, Comment, Sources { align: center middle; }
Help > VerticalScroll, Sources > OptionList {
  width: 76; max-width: 95%; height: auto; max-height: 90%; border: round $accent; padding: 0 1;
}
Comment > Input { width: 76; max-width: 95%; }
"""


class Terminal(Looking):
    """``callwright view --tui``."""

    CSS = STYLE
    TITLE = "callwright view"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "end"),
        Binding("question_mark", "help", "keys", key_display="?"),
        Binding("left_square_bracket", "other(-1)", "source before", show=False),
        Binding("right_square_bracket", "other(1)", "next source", show=False),
        Binding("o", "sources", "sources", show=False),
        Binding("1", "page('rows')", "rollouts", show=False),
        Binding("2", "page('curves')", "curves"),
    ]

    def on_mount(self) -> None:
        """Begin with the rows of the first source."""
        self.show_page("rows")

    def show_page(self, name: str) -> None:
        """Show the rows or the curves of the source, and nothing over them."""
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self.push_screen(Curves() if name == "curves" else Rows())

    def action_page(self, name: str) -> None:
        """1 and 2."""
        self.show_page(name)

    def action_other(self, by: int) -> None:
        """[ and ]."""
        keys = [one.key for one in self.board.sources]
        self.source = keys[(keys.index(self.source) + by) % len(keys)]
        self.show_page("rows")

    def action_sources(self) -> None:
        """All sources in a list."""

        def chosen(key: str | None) -> None:
            if key is not None:
                self.source = key
                self.show_page("rows")

        self.push_screen(Sources(self.board), chosen)

    def action_help_quit(self) -> None:
        """Ctrl-C, which copies what is selected: say the key that ends, which Textual takes for its own Ctrl-Q."""
        self.notify("q ends it, and while you write Ctrl-Q")

    def action_help(self) -> None:
        """The keys."""
        self.push_screen(Help())


def show(board: Board) -> None:
    """Look at a board in the terminal until the user ends it."""
    board.start()
    Terminal(board).run()
