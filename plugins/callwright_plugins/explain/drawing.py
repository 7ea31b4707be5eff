"""The walk of ``callwright explain``, drawn for a terminal. Everything a model or tool wrote is made harmless first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from callwright.commands.safe_text import visible
from callwright.commands.terminal import screen, table, text
from callwright.language.long_numbers import json_text
from callwright.language.program import Program, Reference, plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from callwright.tools.spec import ToolSpec
    from callwright.walk.reward import WeightedScore
    from callwright_plugins.explain.walk_data import Walk

#: Characters of a value or text that are shown before it is cut.
_LONGEST: Final = 400
_LINES: Final = 40
_MARKS: Final = {True: ("✓", "green"), False: ("✗", "red")}


def draw(walk: Walk, console: Console | None = None) -> None:
    """Print the walk: task, completion, program, mismatches, trace, scores, total."""
    console = console or screen()
    _task(walk, console)
    _completion(walk, console)
    _mismatches(walk, console)
    _trace(walk, console)
    _scores(walk, console)


def _heading(console: Console, title: str, aside: str = "") -> None:
    console.print()
    line = text(title, "bold")
    if aside:
        line.append_text(text(f"  {aside}", "dim"))
    console.print(line)


def _task(walk: Walk, console: Console) -> None:
    task = walk.task
    shape = f"{task.split}, depth {task.depth}, chain {task.chain}, {task.structure}, returns {task.returns}"
    _heading(console, f"Task {task.id}", shape)
    console.print(text(task.query))
    expected = "no call" if task.answer.is_no_call else ", ".join(_shown(value) for value in task.answer.values)
    console.print(text(f"expected: {expected}", "dim"))
    offered = list(task.offered.values())
    _heading(console, f"Tools offered: {len(offered)}")
    used = {call.tool for call in walk.attempt.program.calls} if walk.attempt.program else set()
    for spec in offered[:_LINES]:
        console.print(text(f"  {signature(spec)}", "" if spec.name in used else "dim"))
    if len(offered) > _LINES:
        console.print(text(f"  … and {len(offered) - _LINES} more", "dim"))


def signature(spec: ToolSpec) -> str:
    """``name(required: type, optional?: type) -> type``."""
    from callwright.tools.validation import describe_schema

    properties = spec.parameters.get("properties") or {}
    required = set(spec.parameters.get("required") or ())
    parts = [
        f"{name}{'' if name in required else '?'}: {describe_schema(schema if isinstance(schema, Mapping) else None)}"
        for name, schema in properties.items()
    ]
    result = f" -> {describe_schema(spec.result)}" if spec.result else ""
    return f"{spec.name}({', '.join(parts)}){result}"


def _completion(walk: Walk, console: Console) -> None:
    attempt = walk.attempt
    failure = attempt.failure
    if failure is not None:
        _heading(console, "Program", f"not parsed as {attempt.parser.name}")
        for line in pointed(attempt.completion.text, failure.span, width=max(20, console.width - 12)):
            console.print(line)
        console.print(text(f"✗ {failure.stage}: {failure.message} ({failure.code})", "red"))
        return
    program = attempt.program
    assert program is not None
    if not program.calls:
        _heading(console, "Program", "no calls")
        return
    shape = f"depth {program.depth}, chain {program.chain}, {program.structure}, returns {program.returns}"
    _heading(console, "Program", shape)
    for line in _calls(program):
        console.print(line)


def _calls(program: Program) -> list[Text]:
    sources: dict[int, list[str]] = {}
    for earlier, later in program.edges:
        sources.setdefault(later, []).append(str(program.calls[earlier].id))
    lines = []
    for position, call in enumerate(program.calls):
        line = text(f"  {call.id}  ")
        line.append_text(text(call.tool, "bold"))
        line.append_text(text(f"({_arguments(call.arguments)})"))
        if position in sources:
            line.append_text(text(f"  uses {', '.join(sources[position])}", "cyan"))
        lines.append(line)
    for position, path, reference in program.dangling:
        call = program.calls[position]
        lines.append(text(f"  ✗ call {call.id} {path}: {reference} names no earlier call", "red"))
    return lines


def pointed(source: str, span: tuple[int, int], context: int = 2, width: int = 96) -> list[Text]:
    """The lines around a span of a text, numbered, with the span marked and underlined.

    A span of several lines is marked in its first one. Long lines are cut around the mark.
    """
    start = max(0, min(span[0], len(source)))
    end = max(start, min(span[1], len(source)))
    lines = source.split("\n")
    number = source.count("\n", 0, start)
    column = start - (source.rfind("\n", 0, start) + 1)
    length = max(1, min(end - start, len(lines[number]) - column))
    digits = len(str(min(len(lines), number + context + 1)))
    drawn = []
    for at in range(max(0, number - context), min(len(lines), number + context + 1)):
        begin = max(0, min(column - width // 2, len(lines[at]) - width)) if at == number else 0
        shown = lines[at][begin : begin + width].replace("\t", " ")
        before = "…" if begin else ""
        after = "…" if len(lines[at]) > begin + width else ""
        row = text(f"{at + 1:>{digits}} │ ", "dim")
        body = text(before + shown + after)
        if at != number:
            row.append_text(body)
            drawn.append(row)
            continue
        first = column - begin + len(before)
        marked = min(length, max(1, len(shown) - (column - begin)))
        body.stylize("bold red", first, first + marked)
        row.append_text(body)
        drawn.append(row)
        drawn.append(text(" " * (digits + 3 + _cells(before + shown[: column - begin])) + "^" * marked, "red"))
    return drawn


def _cells(shown: str) -> int:
    from rich.cells import cell_len

    return cell_len(visible(shown))


def _mismatches(walk: Walk, console: Console) -> None:
    found = walk.mismatches()
    if walk.attempt.program is None or not walk.attempt.program.calls:
        return
    count = "1 mismatch" if len(found) == 1 else f"{len(found)} mismatches"
    _heading(console, "Schema", count if found else "every call fits")
    for mismatch in found:
        graded = "" if mismatch.kind != "value" else "  (not graded)"
        console.print(text(f"  ✗ {mismatch.kind}: {mismatch}{graded}", "red" if not graded else "yellow"))


def _trace(walk: Walk, console: Console) -> None:
    trace = walk.attempt.trace
    if trace is None or not trace.records:
        return
    _heading(console, "Execution", "every call executed" if trace.executed else f"{len(trace.failures)} failed")
    for step in trace.records:
        mark, style = _MARKS[step.outcome.executed]
        line = text(f"  {mark} ", style)
        line.append_text(text(f"{step.call}  "))
        line.append_text(text(step.tool, "bold"))
        line.append_text(text(f"({_arguments(step.arguments)})"))
        console.print(line)
        outcome = step.outcome
        if outcome.executed:
            console.print(text(f"       {outcome.kind}: {_shown(outcome.value)}", "dim"))
        else:
            code = f" {outcome.code}" if outcome.code else ""
            console.print(text(f"       {outcome.kind}{code}: {outcome.message}", "red"))
    returned = ", ".join(_shown(value) for value in trace.returned) if trace.executed else "nothing"
    mark, style = _MARKS[walk.verdict.answer]
    console.print(text(f"  {mark} returned: {returned}", style))


def _scores(walk: Walk, console: Console) -> None:
    reward = walk.reward
    _heading(console, f"Reward {walk.recipe}")
    parts = table("", "score", "of", "weight", "adds", "why", right=(1, 2, 3, 4))
    for name, weighted in reward.scores.items():
        score = weighted.score
        style = "dim" if weighted.closed else "green" if score.full else "red"
        parts.add_row(
            text(name, style),
            f"{score.value:g}",
            f"{score.high:g}",
            f"{weighted.weight:.4g}",
            f"{weighted.contribution:.4g}",
            text("\n".join(_reasons(weighted)), "dim" if weighted.closed else ""),
        )
    console.print(parts)
    if reward.total is None:
        console.print(text(f"masked: {reward.masked}", "bold yellow"))
        return
    lost = "" if reward.stage == "done" else f"; the first point was lost at {reward.stage}"
    console.print(text(f"total {reward.total:.6g}{lost}", "bold"))


def _reasons(weighted: WeightedScore) -> list[str]:
    if weighted.closed:
        return ["not looked at"]
    return [str(evidence) for evidence in weighted.score.evidence]


def _arguments(arguments: Mapping[str, Any]) -> str:
    return _cut(", ".join(f"{name}={_shown(value)}" for name, value in arguments.items()))


def _shown(value: object) -> str:
    if isinstance(value, Reference):
        return str(value)
    return _cut(json_text(plain(value), ensure_ascii=False, default=str))


def _cut(shown: str) -> str:
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}… ({len(shown):,} characters)"
