"""One row whole, and the samples of a prompt side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import HorizontalScroll, VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

from callwright.errors import CallwrightError
from callwright_plugins.viewer.terminal.looking import Looking
from callwright_plugins.viewer.terminal.modals import Comment
from callwright_plugins.viewer.terminal.rendering import BAD, GOOD, document, figure, head, line


class Rollout(Screen[None]):
    """A row. ``step`` moves to the next one and says which it is; ``over_time`` shows its task in the table."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.pop_screen", "back"),
        Binding("j", "move(1)", "next"),
        Binding("k", "move(-1)", "previous"),
        Binding("g", "group", "group"),
        Binding("t", "task", "over time"),
        Binding("m", "mark('good')", "good"),
        Binding("x", "mark('bad')", "bad"),
        Binding("l", "mark('look')", "look"),
        Binding("c", "comment", "comment"),
        Binding("e", "again", "execute again"),
        Binding("p", "prompt", "prompt"),
    ]

    def __init__(
        self, n: int, step: Callable[[int], int | None], over_time: Callable[[Mapping[str, Any]], None]
    ) -> None:
        super().__init__()
        self.n = n
        self._step, self._over_time = step, over_time
        self._told: dict[str, Any] = {}
        self._made: dict[str, Any] | None = None
        self._unfolded = False

    @property
    def terminal(self) -> Looking:
        """The app."""
        return cast("Looking", self.app)

    def compose(self) -> ComposeResult:
        """What it is, and below it the whole."""
        yield Static(id="head")
        with VerticalScroll(id="scrolled"):
            yield Static(id="body")
        yield Footer()

    def on_mount(self) -> None:
        """Show the row."""
        self.query_one("#scrolled").focus()
        self.load()

    def load(self) -> None:
        """Ask for the row anew."""
        try:
            self._told = self.terminal.ask("rollout", n=self.n) or {}
        except CallwrightError as error:
            self._told = {}
            self.query_one("#body", Static).update(Text(line(str(error), 400), BAD))
            return
        self._made = None
        self.draw()

    def draw(self) -> None:
        """Draw what is known of it."""
        note = self.terminal.notes().get(self.n)
        self.query_one("#head", Static).update(head(self._told, note))
        told = dict(self._told.get("document") or {})
        made = Text()
        if self._made is not None:
            calls, then = self._made["calls"], told.get("calls") or []
            if not then or len(then) == len(calls):
                told["calls"] = [{**(then[place] if then else {}), **one} for place, one in enumerate(calls)]
                told["calls"] = [_by_whom(one) for one in told["calls"]]
            wrong = [self._made["masked"]] if self._made["masked"] else self._made["differences"]
            for one in wrong:
                made.append(f"{line(one, 300)}\n", BAD)
            if not wrong:
                made.append("executed again, as it was\n", GOOD)
        made.append_text(document(told, self._told, unfolded=self._unfolded))
        self.query_one("#body", Static).update(made)

    def action_move(self, by: int) -> None:
        """j and k."""
        n = self._step(by)
        if n is not None and n != self.n:
            self.n = n
            self.query_one("#scrolled", VerticalScroll).scroll_home(animate=False)
            self.load()

    def action_prompt(self) -> None:
        """The prompt whole, or folded."""
        self._unfolded = not self._unfolded
        self.draw()

    def action_group(self) -> None:
        """Its group."""
        if self._told.get("group"):
            self.terminal.push_screen(Group(self._told["group"]))

    def action_task(self) -> None:
        """Its task, in the table."""
        told = self._told
        self.terminal.pop_screen()
        self._over_time(told)

    def action_mark(self, mark: str) -> None:
        """Mark it, or take the mark back."""
        held = self.terminal.notes().get(self.n)
        self.terminal.note(self.n, "" if held is not None and held.mark == mark else mark, held.comment if held else "")
        self.draw()

    def action_comment(self) -> None:
        """Write a comment."""
        n, held = self.n, self.terminal.notes().get(self.n)

        def written(comment: str | None) -> None:
            if comment is not None:
                self.terminal.note(n, held.mark if held else "", comment)
                self.draw()

        self.terminal.push_screen(Comment(held.comment if held else ""), written)

    def action_again(self) -> None:
        """Execute it again, beside what the screen does."""
        n = self.n
        self.query_one("#head", Static).update(head(self._told, None).append("\nexecuting …", "yellow"))

        def execute() -> None:
            found: dict[str, Any] | None = None
            wrong = ""
            try:
                found = self.terminal.ask("again", n=n)
            except CallwrightError as error:
                wrong = line(str(error), 400)
            self.app.call_from_thread(done, found, wrong)

        def done(found: dict[str, Any] | None, wrong: str) -> None:
            if self.n != n:
                return
            self._made = found
            self.draw()
            if wrong:
                self.notify(wrong, severity="error", markup=False)

        self.run_worker(execute, thread=True, exclusive=True)


def _by_whom(call: dict[str, Any]) -> dict[str, Any]:
    """A call of the model says nothing of whose it is."""
    return {name: value for name, value in call.items() if (name, value) != ("by", "agent")}


class Group(Screen[None]):
    """The samples of one prompt, as GRPO sees them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.pop_screen", "back"),
        Binding("g", "app.pop_screen", "back", show=False),
    ]

    def __init__(self, group: str) -> None:
        super().__init__()
        self._group = group

    def compose(self) -> ComposeResult:
        """A column each."""
        terminal = cast("Looking", self.app)
        found = terminal.ask("group", name=self._group)
        rows = found["rows"]
        alike = len({row["total"] for row in rows}) == 1
        made = Text.assemble((f"group {line(self._group, 60)}", "bold"), f"  {len(rows)} kept samples")
        made.append(f"  mean {figure(found['mean'])}  deviation {figure(found['deviation'])}")
        if alike:
            made.append("  all alike: nothing is learnt from it", BAD)
        yield Static(made, id="head")
        notes = terminal.notes()
        with HorizontalScroll(id="columns"):
            for row in rows:
                with VerticalScroll():
                    told = {**(row.get("document") or {})}
                    kept = [one for one in told.get("conversation") or () if one["role"] not in ("prompt", "system")]
                    whole = head(row, notes.get(row["n"])).append("\n")
                    yield Static(whole.append_text(document({**told, "conversation": kept}, row)))
        yield Footer()
