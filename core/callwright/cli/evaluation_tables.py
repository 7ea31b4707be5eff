"""The tables that ``callwright evaluate`` prints for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from callwright.commands.terminal import fits, interval, masked_bounds, percent, screen, table, text
from callwright.language.shortening import shortened
from callwright.training.truncation import cut_off_in_words

if TYPE_CHECKING:
    from rich.table import Table

#: Reasons why attempts are masked that are shown, and the characters of one.
_REASONS: Final = 3
_LONGEST_REASON: Final = 400
_FAILURES: Final = "commonest failures"


def draw_accuracies(result: Mapping[str, Any], title: str, remedy: str) -> None:
    """Accuracies by depth, structure and whatever was asked for, then samples, rewards and what was masked.

    ``remedy`` says how the limit of tokens is raised, should it have cut many answers off.
    """
    console = screen()
    shown = _accuracies(result, title, with_failures=True)
    if fits(shown, console):
        console.print(shown)
    else:  # numbers and codes are not parted in the middle: the failures have lines of their own
        console.print(_accuracies(result, title, with_failures=False))
        below = table("", _FAILURES)
        for depth in result["by_depth"]:
            if words := _failures(result, depth):
                below.add_row(f"depth {depth}", text(", ".join(words)))
        if below.row_count:
            console.print(below)
    _draw_samples(result)
    whole = result.get("all")
    if result["masked"]:
        console.print(f"{result['masked']} tasks masked: their machinery failed, so nothing is known of them")
        for reason, count in list(result.get("lost", {}).items())[:_REASONS]:
            console.print(text(f"  {count}: {shortened(reason, _LONGEST_REASON)}"))
        if not result["headline"] and whole is not None:
            console.print(
                f"more than 2%, so there is no headline: {masked_bounds(whole)} of all are right, by what they were"
            )
    for sentence in cut_off_in_words(result, remedy):
        console.print(text(sentence))
    if result.get("shots") == "oracle":
        console.print(
            "oracle shots: the examples tell the structure and depth of each task, so this says less of a model"
        )
    if extended := result.get("context"):
        console.print(
            f"context extended by YaRN: {extended['factor']:g} times {extended['original']:,} tokens, "
            f"{extended['positions']:,}"
        )
    undeclared = result.get("undeclared")
    if undeclared:
        from callwright.walk.undeclared import alarm_of, sentence_of

        loud = {tool: counts for tool, counts in undeclared.items() if counts["alarming"]}
        console.print(text(f"alarm: {alarm_of(loud)}" if loud else sentence_of(undeclared)))


def _accuracies(result: Mapping[str, Any], title: str, *, with_failures: bool) -> Table:
    failures = [_FAILURES] if with_failures else []
    shown = table("", "tasks", "accuracy", "also valid", *failures, right=(1, 2, 3), title=title)
    for depth, cell in result["by_depth"].items():
        words = [text("\n".join(_failures(result, depth)))] if with_failures else []
        shown.add_row(f"depth {depth}", *_cell(cell), *words)
    for cells in (result["by_structure"], *result.get("by", {}).values()):
        shown.add_section()
        for name, cell in cells.items():
            shown.add_row(text(name), *_cell(cell))
    shown.add_section()
    whole = result.get("all")
    if whole is None:
        shown.add_row("all", "0", "–", "–")
    elif result["headline"]:
        shown.add_row("all", *_cell(whole))
    else:
        shown.add_row("all", str(whole["n"]), f"{masked_bounds(whole)}", "–")
    return shown


def _failures(result: Mapping[str, Any], depth: str) -> list[str]:
    """The two commonest failures of a depth, each with how often."""
    return [f"{count} {name}" for name, count in list(result["failures"].get(depth, {}).items())[:2]]


def _cell(cell: Mapping[str, Any]) -> tuple[str, str, str]:
    masked = cell.get("masked")
    beside = f"\n{masked} masked: {masked_bounds(cell)}" if masked else ""
    return str(cell["n"]), interval(cell) + beside, percent(cell["valid_accuracy"])


def _draw_samples(result: Mapping[str, Any]) -> None:
    samples, rewards = result.get("samples"), result.get("rewards")
    if samples is not None:
        shown = table("samples", "pass@k", "pass^k", right=(1, 2), title=f"{samples['n']} samples of each task")
        for k, at in samples["pass@k"].items():
            row = (interval({**one, "accuracy": one["value"], "n": one["tasks"]}) for one in (at, samples["pass^k"][k]))
            shown.add_row(f"k = {k}", *row)
        screen().print(shown)
    if rewards is not None and rewards["mean"] is not None:
        known = rewards["low"] is not None
        said = [f"reward {rewards['mean']:.4g}" + (f" [{rewards['low']:.4g}, {rewards['high']:.4g}]" if known else "")]
        for name, what in (("between", "between tasks"), ("within", "within a task")):
            if rewards[name] is not None:
                said.append(f"deviation {what} {rewards[name]:.4g}")
        if samples is not None:
            said.append(f"the same in every sample of {rewards['flat']} tasks of {rewards['tasks']}")
        screen().print("; ".join(said))
