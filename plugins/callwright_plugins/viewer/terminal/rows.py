"""The table: rows that a filter lets through, in an order, while they grow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, cast

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Input, Static

from callwright.errors import CallwrightError
from callwright_plugins.viewer.answers.notes import Note
from callwright_plugins.viewer.answers.tables import MOST
from callwright_plugins.viewer.terminal.looking import EVERY, Looking
from callwright_plugins.viewer.terminal.modals import Comment
from callwright_plugins.viewer.terminal.rendering import SOFT, cells, line
from callwright_plugins.viewer.terminal.rollout import Group, Rollout

_PAGE: Final = 200
_COLUMNS: Final = ("", "row", "step", "reward", "adv.", "calls", "came to", "task")
#: Orders, one after the other.
_ORDERS: Final = ("n", "-n", "-total", "total", "-advantage", "advantage")
_NAMED: Final[Mapping[str, str]] = {
    "n": "by row",
    "-n": "newest first",
    "-total": "best first",
    "total": "worst first",
    "-advantage": "by advantage",
    "advantage": "by advantage, lowest first",
}


class Rows(Screen[None]):
    """The rows of the source."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "search", key_display="/"),
        Binding("j", "move(1)", "next", show=False),
        Binding("k", "move(-1)", "previous", show=False),
        Binding("s", "order", "order"),
        Binding("g", "group", "group"),
        Binding("t", "task", "over time", show=False),
        Binding("m", "mark('good')", "good", show=False),
        Binding("x", "mark('bad')", "bad", show=False),
        Binding("l", "mark('look')", "look", show=False),
        Binding("c", "comment", "comment", show=False),
        Binding("escape", "back", "back", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.filter = ""
        self.order = ""
        #: The task that is shown over the steps, instead of what the filter lets through.
        self.of_task = ""
        self.rows: list[dict[str, Any]] = []
        self.total = 0
        self._seen: tuple[Any, ...] = ()
        self._notes: dict[int, Note] = {}

    @property
    def terminal(self) -> Looking:
        """The app."""
        return cast("Looking", self.app)

    @property
    def table(self) -> DataTable[Text]:
        """The table."""
        return cast("DataTable[Text]", self.query_one("#rows", DataTable))

    def compose(self) -> ComposeResult:
        """A head, the filter, the table, what is wrong, and the keys."""
        yield Static(id="head")
        yield Input(placeholder="words, or step>30 failure:schema* tool:GetPrice score.format<1", id="search")
        yield DataTable(id="rows", cursor_type="row", zebra_stripes=True)
        yield Static(id="said")
        yield Footer()

    def on_mount(self) -> None:
        """Show what there is, and look again and again."""
        for name in _COLUMNS:
            self.table.add_column(name, key=name or "mark")
        self.order = "-n" if self.terminal.about["live"] else "n"
        self.table.focus()
        self.load()
        self.set_interval(EVERY, self.look)

    # Loading ------------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Load again if there is more than before, or notes are others."""
        told = self.terminal.about
        if (told["rows"], told["reading"], told["error"], self.terminal.notes()) != self._seen:
            self.load(len(self.rows), self.current)

    def load(self, count: int = 0, at: int | None = None) -> None:
        """Load the first ``count`` rows of the filter, a page at least; the cursor stays at its row.

        Where newer rows pushed row ``at`` further down, a page more is loaded to keep it.
        """
        told = self.terminal.about
        self._notes = self.terminal.notes()
        self._seen = (told["rows"], told["reading"], told["error"], self._notes)
        said = Text(line(told["error"] or "", 400))
        rows: dict[int, dict[str, Any]] = {}
        wanted, read = max(count, _PAGE), 0
        try:
            while read < wanted and (some := self._page(read, wanted - read)):
                # Rows that come while pages are read push others onto the next page: each counts once.
                rows |= {row["n"]: row for row in some}
                read += len(some)
            if at is not None and at not in rows:
                rows |= {row["n"]: row for row in self._page(read, MOST)}
        except CallwrightError as error:
            said = Text(line(str(error), 400))
        else:
            held = self.current
            self.rows = list(rows.values())
            self._fill(held)
        self.query_one("#said", Static).update(said)
        self._head(told)

    def _page(self, offset: int, limit: int) -> list[dict[str, Any]]:
        if self.of_task:
            found = self.terminal.ask("task", name=self.of_task)
            self.total = len(found["rows"])
            members: list[dict[str, Any]] = found["rows"][offset : offset + limit]
            return members
        found = self.terminal.ask("rows", q=self.filter, sort=self.order, offset=offset, limit=max(1, min(limit, MOST)))
        self.total = found["total"]
        rows: list[dict[str, Any]] = found["rows"]
        return rows

    def _fill(self, at: int | None) -> None:
        table = self.table
        table.clear()
        for row in self.rows:
            table.add_row(*cells(row, self._notes.get(row["n"])), key=str(row["n"]))
        place = next((place for place, row in enumerate(self.rows) if row["n"] == at), 0)
        if self.rows:
            table.move_cursor(row=place, animate=False)

    def _head(self, told: Mapping[str, Any]) -> None:
        sources = self.terminal.board.sources
        which = next(place for place, one in enumerate(sources, 1) if one.key == self.terminal.source)
        made = Text.assemble((line(told["name"], 60), "bold"), (f"  {told['kind']}", SOFT))
        if len(sources) > 1:
            made.append(f"  {which} of {len(sources)} ([ ] o)", SOFT)
        if self.of_task:
            made.append(f"   task {line(self.of_task, 40)}", "bold")
        order = "by step" if self.of_task else _NAMED.get(self.order, self.order)
        made.append(f"   {self.total:,} of {told['rows']:,} rows, {order}")
        if told["reading"]:
            made.append("   reading …", "yellow")
        elif told["live"]:
            made.append("   live", "green")
        self.query_one("#head", Static).update(made)

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Near the end, load more."""
        if event.cursor_row >= len(self.rows) - 20 and len(self.rows) < self.total:
            try:
                some = self._page(len(self.rows), _PAGE)
            except CallwrightError:
                return
            known = {row["n"] for row in self.rows}
            some = [row for row in some if row["n"] not in known]
            for row in some:
                self.table.add_row(*cells(row, self._notes.get(row["n"])), key=str(row["n"]))
            self.rows += some

    # What keys do -------------------------------------------------------------------------------------------------

    @property
    def current(self) -> int | None:
        """The number of the row under the cursor."""
        place = self.table.cursor_row
        return self.rows[place]["n"] if 0 <= place < len(self.rows) else None

    def step(self, by: int) -> int | None:
        """Move the cursor, and say where it is."""
        if self.rows:
            self.table.move_cursor(row=max(0, min(len(self.rows) - 1, self.table.cursor_row + by)), animate=False)
        return self.current

    def row(self, n: int) -> dict[str, Any] | None:
        """A row that is loaded."""
        return next((row for row in self.rows if row["n"] == n), None)

    def action_move(self, by: int) -> None:
        """j and k."""
        self.step(by)

    def action_search(self) -> None:
        """Write a filter."""
        self.query_one("#search", Input).focus()

    def action_back(self) -> None:
        """From the filter to the table, from a task to what the filter lets through; from there to all rows."""
        search = self.query_one("#search", Input)
        if not search.has_focus:
            if self.of_task:
                self.of_task = ""
                self.load()
            else:
                search.value = ""
        self.table.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while it is written."""
        self.filter, self.of_task = event.value, ""
        self.load()

    def on_input_submitted(self) -> None:
        """To the table."""
        self.table.focus()

    def action_order(self) -> None:
        """The next order. The rows of a task stand by step."""
        if self.of_task:
            return
        self.order = _ORDERS[(_ORDERS.index(self.order) + 1) % len(_ORDERS)]
        self.load()

    def on_data_table_row_selected(self) -> None:
        """Open a row."""
        if (n := self.current) is not None:
            self.terminal.push_screen(Rollout(n, self.step, self.over_time))

    def action_group(self) -> None:
        """The group of the row."""
        row = None if self.current is None else self.row(self.current)
        if row is not None and row.get("group"):
            self.terminal.push_screen(Group(row["group"]))

    def action_task(self) -> None:
        """All rows of its task."""
        row = None if self.current is None else self.row(self.current)
        if row is not None:
            self.over_time(row)

    def over_time(self, row: Mapping[str, Any]) -> None:
        """The rows of a task in the order of the steps."""
        # Not by way of the filter: what a row says must not stand in an input, which shows it as it is.
        if row.get("task"):
            self.of_task = str(row["task"])
            self.load()

    def action_mark(self, mark: str) -> None:
        """Mark the row, or take the mark back."""
        if (n := self.current) is not None:
            held = self._notes.get(n)
            self.terminal.note(n, "" if held is not None and held.mark == mark else mark, held.comment if held else "")
            self.look()

    def action_comment(self) -> None:
        """Write a comment."""
        n = self.current
        if n is None:
            return
        held = self._notes.get(n)

        def written(comment: str | None) -> None:
            if comment is not None:
                self.terminal.note(n, held.mark if held else "", comment)
                self.look()

        self.terminal.push_screen(Comment(held.comment if held else ""), written)
