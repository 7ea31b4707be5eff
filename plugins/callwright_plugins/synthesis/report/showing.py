"""Showing: one task in the terminal, with its conversation, its plan, what changes, and the gates beside each other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from callwright.commands.terminal import text
from callwright_plugins.synthesis.report.replaying import (
    ANSWERS,
    Heard,
    Replayed,
    call_text,
    outcome_text,
    replayed,
    state_lines,
)

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from callwright.walk.task_rows.decisions import Decision
    from callwright.walk.tasks import Task
    from callwright_plugins.synthesis.report.gating import Told

#: Facts that are told in the heading where a task has them.
_HEADING: Final = ("kind", "information", "persona", "teacher", "family")
#: Columns from which on things stand beside each other.
_WIDE: Final = 100
_MOST_LINES: Final = 60


def show_task(out: Console, task: Task, *, place: str, gates: Sequence[Told] | None, decision: Decision | None) -> None:
    """Print a task: beside each other where the terminal is wide, else below each other. ``gates`` is ``None`` where
    nobody asked them.
    """
    from rich.table import Table

    again = replayed(task)
    out.rule(text(f"{place} {task.id}", "bold"))
    out.print(text(" · ".join(_heading(task)), "dim"))
    left = _panel("conversation", _conversation(task, again))
    right = [_panel("plan", _plan(task)), _panel("what changes", _changes(again))]
    if gates is not None:
        told = (
            text(f"{'✓' if one.passed else '✗'} {one.gate} {one.reason}".strip(), "green" if one.passed else "red")
            for one in gates
        )
        right.append(_panel("gates", list(told)))
    if out.width >= _WIDE:
        from rich.console import Group

        grid = Table.grid(expand=True, padding=(0, 1))
        grid.add_column(ratio=3)
        grid.add_column(ratio=2)
        grid.add_row(left, Group(*right))
        out.print(grid)
    else:
        for one in (left, *right):
            out.print(one)
    if decision is not None:
        style = "green" if decision.verdict == "keep" else "red"
        out.print(text(f"decided: {decision.verdict} {decision.note}".strip(), style))


def _panel(title: str, lines: Sequence[RenderableType]) -> RenderableType:
    from rich.console import Group
    from rich.panel import Panel

    return Panel(Group(*(lines or [text("nothing", "dim")])), title=text(title), title_align="left", border_style="dim")


def _heading(task: Task) -> Iterator[str]:
    world = f"{task.environment.name}, {task.scenario or 'first scenario'}, seed {task.seed}"
    yield from (world, f"split {task.split}", f"depth {task.depth}", f"{len(task.offered)} tools offered")
    for name in _HEADING:
        if task.facts.get(name):
            yield f"{name} {task.facts[name]}"


def _conversation(task: Task, again: Replayed) -> Sequence[RenderableType]:
    lines: list[RenderableType] = list(_user(again.first))
    users = 0  # turns of the user that have passed, by which tools appear
    for turn in again.turns:
        if turn.says or not turn.records:
            lines.append(text(f"agent: {turn.says}", "bold"))
        for record in turn.records:
            lines.append(text(f"→ {call_text(record.tool, record.arguments)}"))
            style = "dim" if record.outcome.executed else "red"
            lines.append(text(f"  {outcome_text(record)}", style))
        if turn.heard is not None:
            lines += [text("")] * turn.heard.asks  # a request begins a part of its own
            lines += _user(turn.heard)
        users += not turn.records and bool(turn.says)
        later = [name for name, at in task.appear.items() if at == users and turn.says]
        if later:
            lines.append(text(f"  offered from here on: {', '.join(later)}", "dim"))
    if again.wrong:
        lines.append(text(again.wrong, "red"))
    if task.user is not None and task.user.name != ANSWERS:
        lines.append(text(f"its user ({task.user.name}) answers in its own words, which are not shown", "dim"))
    if task.answer.is_no_call:
        lines.append(text("due: nothing is to be called", "dim"))
    else:
        lines += [text(f"due: {_short(value)}", "dim") for value in task.answer.values]
    return lines


def _user(heard: Heard) -> Iterator[RenderableType]:
    """What the user says, a new request set off from what was before, and what it keeps back."""
    if heard.text:
        yield text(f"user: {heard.text}", "bold cyan" if heard.asks else "dim cyan" if heard.done else "cyan")
    kept = ", ".join(f"{name.replace('_', ' ')} ({_known(value)})" for name, value in heard.knows.items())
    if kept:
        yield text(f"  keeps back until it is asked: {kept}", "dim")


def _known(value: Any) -> str:
    """A value that a user knows; of one that is looked up in the world, where it is found."""
    if isinstance(value, Mapping) and "knowledge" in value:
        return f"what the world knows as {value['knowledge']}"
    return _short(value)


def _plan(task: Task) -> Sequence[RenderableType]:
    lines: list[RenderableType] = []
    stated = task.facts.get("blueprint")
    if isinstance(stated, Mapping):
        chain = " → ".join(map(str, stated.get("chain") or ()))
        lines.append(text(f"{stated.get('kind')}, {stated.get('structure')}{': ' + chain if chain else ''}"))
        for number, stage in enumerate(stated.get("stages") or (), 1):
            lines.append(text(f"turn {number}: {stage.get('information')}, ends with {stage.get('ending')}"))
            failing = {one.get("call"): one for one in stage.get("failing") or ()}
            for place, call in enumerate(stage.get("calls") or ()):
                why = failing.get(place)
                note = f"  fails with {why.get('code')}, made up for by {why.get('recovery')}" if why else ""
                lines.append(text(f"  {place}. {call_text(call.get('tool', ''), call.get('arguments') or {})}{note}"))
        for one in stated.get("distractors") or ():
            lines.append(text(f"beside it: {one.get('tool')} of {one.get('environment')}", "dim"))
        return lines
    if task.program is not None:
        from callwright.language.program import plain

        for call in task.program.calls:
            lines.append(text(f"{call.id}. {call_text(call.tool, plain(call.arguments))}"))
    for name, turn in task.appear.items():
        lines.append(text(f"{name} appears in turn {turn}", "dim"))
    return lines


def _changes(again: Replayed) -> Sequence[RenderableType]:
    lines = list(state_lines(again.state))
    more = len(lines) - _MOST_LINES
    return [text(line) for line in lines[:_MOST_LINES]] + ([text(f"… and {more} more", "dim")] if more > 0 else [])


def _short(value: Any) -> str:
    told = json.dumps(value, ensure_ascii=False, default=str)
    return told if len(told) <= 300 else f"{told[:300]} …"
