"""Reason, retrieve, understand: the thought, the tool and the arguments of one step.

In JSON an answer holds all three, and is scored for each. In words it is asked for one of them, and is that one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from attrs import frozen

from callwright_plugins.teval.embedders import Embedder
from callwright_plugins.teval.literals import Unreadable, as_text, read_data

#: What one of them is called in the official tables, by the dimension that it measures.
Field = Literal["thought", "name", "args"]
#: Added to the number of arguments that it is divided by: a perfect answer with one argument has 0.99999.
EPSILON: Final = 1e-5
#: A tool is named in words as ``library.function``, or is the end.
_DOTTED: Final = re.compile(r"\w+\.\w+")
_FINISH: Final = "FinishAction"


@frozen
class Step:
    """The three fields. ``args`` is an object or a text, as the file of the task has it; ``None`` is what is not."""

    thought: str | None = None
    name: str | None = None
    args: Mapping[Any, Any] | str | None = None

    @property
    def parsed(self) -> bool:
        """Whether there is anything."""
        return self != Step()


def read_step(given: Any, *, as_json: bool) -> Step:
    """A step in JSON. What is missing in it is empty; what is no object has none of the three.

    ``as_json`` says that the arguments of its file are objects; else they are the text of whatever stands there.
    """
    try:
        data = read_data(given, "{", "}")
    except Unreadable:
        return Step()
    if type(data) is not dict:
        return Step()
    stated = data.get("args")
    if as_json:
        args: Mapping[Any, Any] | str = stated if isinstance(stated, dict) else {}
    else:
        args = _text(data, "args")
    return Step(_text(data, "thought"), _text(data, "name"), args)


def _text(data: Mapping[Any, Any], key: str) -> str:
    try:
        return as_text(data[key])
    except (KeyError, Unreadable):
        return ""


def score_thought(made: Step, wanted: Step, embedder: Embedder) -> float:
    """The cosine of the two thoughts, 0 or more; 0 where one is missing."""
    if made.thought is None or wanted.thought is None:
        return 0.0
    return float(max(embedder.similarity([made.thought], [wanted.thought])[0][0], 0))


def score_name(made: Step, wanted: Step, *, as_json: bool) -> float:
    """1 for the right tool. In words: if it is named, and no other one is."""
    if made.name is None or wanted.name is None:
        return 0.0
    if as_json:
        return float(made.name == wanted.name)
    if wanted.name not in made.name:
        return 0.0
    named = _DOTTED.findall(made.name) + [_FINISH] * (_FINISH in made.name)
    return float(all(name == wanted.name for name in named))


def score_args(made: Step, wanted: Step) -> float:
    """The share of arguments whose texts are equal, or whether the whole text is.

    Of a text, quotes around it are left out. Nothing is right only where nothing is wanted.
    """
    if made.args is None or wanted.args is None:
        return 0.0
    if not isinstance(wanted.args, Mapping):
        written = made.args if isinstance(made.args, str) else ""
        return float(wanted.args == written.strip("'").strip('"'))
    if not wanted.args:
        return float(not made.args)
    right = sum(_same(made.args, name, value) for name, value in wanted.args.items())
    return right / (len(wanted.args) + EPSILON)


def _same(made: Mapping[Any, Any] | str, name: Any, value: Any) -> bool:
    if not isinstance(made, Mapping) or name not in made:
        return False
    try:
        return as_text(made[name]) == as_text(value)
    except Unreadable:
        return False
