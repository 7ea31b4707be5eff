"""Rows and documents as text for a terminal.

What models and tools wrote never reaches it as it is: every text of a row goes through :func:`shown`, and is put into
``rich.text.Text``, which reads no markup.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from rich.text import Text

from callwright.commands.safe_text import visible
from callwright_plugins.viewer.answers.notes import Note

Row = Mapping[str, Any]

GOOD: Final = "green"
PART: Final = "yellow"
BAD: Final = "red"
SOFT: Final = "dim"
_MARKS: Final = {"good": ("●", GOOD), "bad": ("●", BAD), "look": ("●", PART), "": ("", "")}
#: Characters of one text, of one value and of a folded prompt that are shown.
_TEXT: Final = 20_000
_VALUE: Final = 1200
_FOLDED: Final = 160
_BAR: Final = 10
#: Kinds of outcomes that are no failures.
_EXECUTED: Final = ("ok", "empty", "partial", None)


def shown(value: Any, longest: int = _TEXT) -> str:
    """A value of a row as harmless text, cut."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = visible(text[: longest + 1])
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def line(value: Any, longest: int) -> str:
    """The same in one line."""
    return " ".join(shown(value, longest).split())


def figure(value: Any) -> str:
    """A number as people read it."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return "–"
    return f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) < 1000 else f"{value:,.0f}"


def tone(value: Any, low: Any = 0.0, high: Any = 1.0) -> str:
    """The colour of a figure between the worst and the best."""
    if not isinstance(value, int | float):
        return SOFT
    least, most = (one if isinstance(one, int | float) else other for one, other in ((low, 0.0), (high, 1.0)))
    return GOOD if value >= most - 1e-9 else BAD if value <= least + 1e-9 else PART


def cells(row: Row, note: Note | None) -> list[Text]:
    """A row of the table: mark, number, step, reward, advantage, calls, what it came to, and its query."""
    mark, style = _MARKS.get(note.mark if note else "", ("", ""))
    if note is not None and note.comment and not mark:
        mark = "…"
    advantage = row.get("advantage")
    calls = "" if row.get("calls") is None else str(row["calls"])
    failed = f" {row['failed']}✗" if row.get("failed") else ""
    came = "right" if row.get("answered") else line(row.get("failure") or row.get("stage") or "", 24)
    return [
        Text(mark, style),
        Text(str(row.get("n", "")), SOFT, justify="right"),
        Text("" if row.get("step") is None else str(row["step"]), justify="right"),
        Text(figure(row.get("total")), tone(row.get("total")), justify="right"),
        Text("" if advantage is None else f"{advantage:+.2f}", justify="right"),
        Text.assemble(calls, (failed, BAD)),
        Text(came, GOOD if row.get("answered") else ""),
        Text(line(row.get("query") or row.get("task") or row.get("id") or "", 200)),
    ]


def head(row: Row, note: Note | None) -> Text:
    """What a row is, and what it came to."""
    about = [
        line(row.get("task") or row.get("id") or "", 60),
        *(f"{name} {row[name]}" for name in ("step", "sample", "depth") if row.get(name) is not None),
        *(line(row[name], 30) for name in ("structure", "branch") if row.get(name)),
    ]
    if row.get("truncated"):
        about.append("cut off")
    made = Text.assemble(
        (line(row.get("query") or row.get("task") or "", 400), "bold"), "\n", (" · ".join(about), SOFT)
    )
    made.append("\n")
    if row.get("total") is not None:
        made.append(figure(row["total"]), f"bold {tone(row['total'])}").append(" reward   ", SOFT)
    if row.get("advantage") is not None:
        made.append(f"{row['advantage']:+.3f}", "bold").append(" advantage   ", SOFT)
    if row.get("answered") is not None:
        made.append("right" if row["answered"] else "wrong", f"bold {GOOD if row['answered'] else BAD}")
        made.append(f" {line(row.get('failure') or '', 60)}", SOFT)
    if note is not None and (note.mark or note.comment):
        made.append(f"\n{note.mark or 'noted'}", f"bold {_MARKS.get(note.mark, ('', ''))[1]}")
        made.append(f"  {line(note.comment, 400)}")
    return made


def document(told: Row, row: Row, *, unfolded: bool = False) -> Text:
    """A rollout whole: conversation with calls, scores with their evidence, what was expected."""
    made = Text()
    calls = list(told.get("calls") or ())
    for said in told.get("conversation") or ():
        _said(made, said, calls, unfolded=unfolded)
    if calls and not any(said.get("calls") for said in told.get("conversation") or ()):
        for call in calls:
            _call(made, call)
    if told.get("masked"):
        made.append(f"\nmasked: {line(told['masked'], 400)}\n", PART)
    _scores(made, told.get("scores") or (), row)
    for name in ("expected", "found", "at", "goal", "plan"):
        if told.get(name) is not None:
            made.append(f"\n{name} ", "bold").append(f"{shown(told[name], _VALUE)}\n")
    return made


def _said(made: Text, said: Row, calls: Sequence[Row], *, unfolded: bool) -> None:
    role, text = line(said.get("role") or "?", 30), str(said.get("text") or "")
    made.append(f"\n── {role}", "bold")
    made.append(" · loss\n" if said.get("loss") else "\n", SOFT)
    if role in ("prompt", "system") and not unfolded and len(text) > _FOLDED:
        made.append(f"{line(text, _FOLDED)}  (p: all of it)\n", SOFT)
    elif text:
        made.append_text(_marked(text, said.get("marks") or ())).append("\n")
    for number in said.get("calls") or ():
        if number < len(calls):
            _call(made, calls[number])


def _marked(text: str, marks: Iterable[Sequence[Any]]) -> Text:
    """A text with evidence at its place. Characters are replaced one for one, so that places stay."""
    made = Text(shown(text))
    for mark in marks:
        made.stylize("black on yellow", int(mark[0]), int(mark[1]))
    return made


def _call(made: Text, call: Row) -> None:
    executed = call.get("kind") in _EXECUTED
    made.append("  ▸ " if executed else "  ✗ ", "cyan" if executed else BAD)
    made.append(line(call.get("tool") or f"call {call.get('call', '')}", 80), "bold")
    given = call.get("arguments")
    for name, value in given.items() if isinstance(given, Mapping) else ():
        made.append(f" {line(name, 60)}=", SOFT).append(line(value, 200))
    if call.get("by"):
        made.append(f"  by the {line(call['by'], 20)}", SOFT)
    if call.get("changed"):
        made.append("  changed the world", PART)
    made.append("\n")
    if not executed or call.get("code"):
        words = " ".join(line(call[name], 300) for name in ("kind", "code", "message") if call.get(name))
        made.append(f"    {words}\n", SOFT if executed else BAD)
    if "value" in call:
        made.append(f"    → {shown(call['value'], _VALUE)}\n")
    elif call.get("size") is not None:
        size = f"{call['size']:,}" if isinstance(call["size"], int) else line(call["size"], 20)
        made.append(f"    → a value of {size} characters, which is not kept (e: execute again)\n", SOFT)
    for table, parts in (call.get("changes") or {}).items():
        made.append(f"    ~ {line(table, 60)} ", PART).append(f"{shown(parts, _VALUE)}\n")


def _scores(made: Text, scores: Sequence[Row], row: Row) -> None:
    if not scores:
        return
    made.append(f"\n── reward {figure(row.get('total'))}\n", "bold")
    width = max(len(line(one["name"], 30)) for one in scores)
    for one in scores:
        value, low, high = one.get("value"), one.get("low"), one.get("high")
        made.append(f"{line(one['name'], 30):<{width}}  ")
        if one.get("closed") or value is None:
            made.append("not reached\n", SOFT)
            continue
        least, most = (low or 0.0), (1.0 if high is None else high)
        share = 0.0 if most <= least else max(0.0, min(1.0, (value - least) / (most - least)))
        filled = round(share * _BAR)
        colour = tone(value, least, most)
        made.append("█" * filled, colour).append("░" * (_BAR - filled), SOFT)
        weight = one.get("weight")
        times = "" if weight in (None, 1, 1.0) else f" × {figure(weight)}"
        made.append(f" {figure(value)} / {figure(most)}{times}\n", colour)
        for evidence in one.get("evidence") or ():
            made.append(f"  {line(evidence.get('reason') or evidence.get('code') or '', 400)}\n", PART)
