"""An episode of several turns as the page shows it: what the model wrote, what it read, and what its user said."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from callwright_plugins.report.drawing.markup import cut, safe

_LONGEST: Final = 3000
#: Turns that are shown at most: the first ones, and how many follow.
_MOST_TURNS: Final = 20


def conversation(row: Mapping[str, Any], longest: int = _LONGEST) -> str:
    """The turns of a row of a run or of an evaluation; empty for a row of one completion to which nobody answered."""
    turns = list(_turns(row))
    if not turns or (len(turns) == 1 and not turns[0][1]):
        return ""
    shown = "".join(_turn(text, after, longest) for text, after in turns[:_MOST_TURNS])
    left = len(turns) - _MOST_TURNS
    return shown + (f'<p class="aside">{left:,} more turns</p>' if left > 0 else "")


def _turns(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each completion, and in HTML what followed it. Whatever a file holds in their places is left out."""
    turns = row.get("turns")
    if isinstance(turns, list):
        for turn in turns:
            if isinstance(turn, Mapping) and isinstance(turn.get("completion"), str):
                user = turn.get("user")
                read = turn.get("observation")
                after = _user(user) if isinstance(user, Mapping) else _read(read) if isinstance(read, str) else ""
                yield turn["completion"], after
        return
    completions, said = row.get("completions"), row.get("said")
    answers = said if isinstance(said, list) else []
    for place, text in enumerate(completions if isinstance(completions, list) else []):
        if isinstance(text, str):
            user = answers[place] if place < len(answers) else None
            yield text, _user(user) if isinstance(user, Mapping) else ""


def _turn(text: str, after: str, longest: int) -> str:
    return f'<pre class="completion" tabindex="0">{safe(cut(text, longest)) or "<i>nothing</i>"}</pre>{after}'


def _read(text: str) -> str:
    return f'<pre class="heard" tabindex="0">{safe(cut(text.strip(), _LONGEST))}</pre>' if text.strip() else ""


def _user(user: Mapping[str, Any]) -> str:
    words = user.get("text")
    said = safe(cut(words, _LONGEST)) if isinstance(words, str) and words else "<i>nothing</i>"
    calls = user.get("calls")
    called = "".join(
        f"<br>{safe(cut(_call(call), 400))}"
        for call in (calls if isinstance(calls, list) else [])
        if isinstance(call, Mapping)
    )
    ended = ", and is done" if user.get("done") is True else ""
    return f'<p class="heard"><b>The user{ended}:</b> {said}{called}</p>'


def _call(call: Mapping[str, Any]) -> str:
    given = call.get("arguments")
    shown = json.dumps(given, ensure_ascii=False) if isinstance(given, Mapping) else ""
    return f"{call.get('tool')}({shown})"
