"""Curves of a run's figures, while it goes on."""

from __future__ import annotations

from typing import Any, ClassVar, Final, cast

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

from callwright_plugins.viewer.terminal.looking import EVERY, Looking
from callwright_plugins.viewer.terminal.plotting import plot, smoothed
from callwright_plugins.viewer.terminal.rendering import SOFT, figure, line

#: What stands first; the rest follows as the run wrote it.
_FIRST: Final = (
    "reward",
    "answered",
    "executed",
    "parsed",
    "loss",
    "kl",
    "entropy",
    "length",
    "tokens/s",
    "memory (GB)",
    "gradient_norm",
)
_HIGH: Final = 4
_NARROW: Final = 36
_BY: Final = (0.0, 0.5, 0.7, 0.9, 0.97)


class Curves(Screen[None]):
    """The figures of the source by step."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("plus", "smooth(1)", "smoother", key_display="+"),
        Binding("minus", "smooth(-1)", "rougher", key_display="-"),
        Binding("escape", "app.page('rows')", "rollouts"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.by = 2
        self._seen: Any = None

    def compose(self) -> ComposeResult:
        """A head and the charts."""
        yield Static(id="head")
        with VerticalScroll(id="scrolled"):
            yield Static(id="body")
        yield Footer()

    def on_mount(self) -> None:
        """Draw, and again whenever there is more."""
        self.query_one("#scrolled").focus()
        self.look()
        self.set_interval(EVERY, self.look)

    def on_resize(self) -> None:
        """Other columns."""
        self.look()

    def action_smooth(self, by: int) -> None:
        """+ and -."""
        self.by = max(0, min(len(_BY) - 1, self.by + by))
        self.look()

    def look(self) -> None:
        """Draw if something is new."""
        terminal = cast("Looking", self.app)
        told = terminal.about
        seen = (told["stamp"], self.by, self.size.width)
        if seen == self._seen:
            return
        self._seen = seen
        found = terminal.ask("curves")
        steps = [step for step in found["steps"] if step is not None]
        last = f"step {steps[-1]:,}" if steps else "no step yet"
        made = Text.assemble((line(told["name"], 60), "bold"), f"  {last}")
        made.append(f"  smoothing {_BY[self.by]:g} (+ -)", SOFT)
        self.query_one("#head", Static).update(made)
        self.query_one("#body", Static).update(charts(found, max(_NARROW, self.size.width - 4), _BY[self.by]))


def charts(found: dict[str, Any], width: int, by: float) -> Text:
    """Evaluations, and a chart for each figure, as many in a row as there is room for."""
    made = Text()
    for one in found["evaluations"]:
        when = one["name"] if one.get("step") is None else f"step {one['step']}"
        if isinstance(one["overall"], int | float):
            made.append(f"{line(when, 20):<12}", SOFT).append(f"{100 * one['overall']:5.1f}%", "bold")
            depths = (
                f"{line(name, 20)}: {100 * cell['accuracy']:.0f}%"
                for name, cell in one["by_depth"].items()
                if cell["n"] and cell["accuracy"] is not None
            )
            made.append(f"   by depth  {'  '.join(depths)}\n", SOFT)
    figures = {name: values for name, values in found["figures"].items() if any(one is not None for one in values)}
    names = [*(name for name in _FIRST if name in figures), *(name for name in figures if name not in _FIRST)]
    if not names:
        return made.append("\nThere are no figures yet.\n", SOFT)
    columns = max(1, width // (_NARROW + 2))
    each = width // columns - 2
    for start in range(0, len(names), columns):
        block = names[start : start + columns]
        made.append("\n")
        for name in block:
            now = smoothed(figures[name], by)[-1]
            title = line(name, each - 12)
            made.append(title, "bold").append(f" {figure(now)}".ljust(each - len(title) + 2))
        made.append("\n")
        drawn = [plot(smoothed(figures[name], by), each, _HIGH) for name in block]
        for level in range(_HIGH):
            for chart in drawn:
                made.append(chart[level], "cyan").append("  ")
            made.append("\n")
        for name in block:
            known = [one for one in figures[name] if one is not None]
            made.append(f"{figure(min(known))} … {figure(max(known))}".ljust(each + 2), SOFT)
        made.append("\n")
    return made
