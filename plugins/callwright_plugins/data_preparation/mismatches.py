"""How far released trajectories fit their own schemas, and how many queries use a tool (TIER, appendix E.5)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from callwright.tools.reading import accepts
from callwright.tools.schema_dialects import DIALECT
from callwright_plugins.data_preparation.conversations import BadRow, Called, Conversation, Parameter, Tool, Turn
from callwright_plugins.data_preparation.decisions import DECISIONS
from callwright_plugins.data_preparation.formats import READERS
from callwright_plugins.data_preparation.reading import read_values

#: What can be wrong with a call.
KINDS: Final = ("unknown tool", "unknown argument", "missing required", "type")
_WORD: Final = re.compile(r"[a-z]+")
#: Up to how many queries use a tool, and what that is called; more is "more than 10".
_USES: Final = ((0, "none"), (1, "1"), (2, "2"), (10, "3 to 10"))


def json_type_of(parameter: Parameter) -> str | None:
    """The JSON type that a declaration such as ``List[int]`` means; ``None`` if it is not known."""
    declared = parameter.type.strip().lower()
    if "union" in declared or " or " in declared or "|" in declared:
        return None
    declared = declared.removeprefix("optional[")
    word = _WORD.match(declared)
    return DIALECT.get(word.group()) if word else None


def kinds_of(called: Called, tools: Mapping[str, Tool]) -> Iterator[str]:
    """What is wrong with a call, each kind once. ``None`` for an optional parameter is no mismatch of type."""
    tool = tools.get(called.tool)
    if tool is None:
        yield "unknown tool"
        return
    parameters = {parameter.name: parameter for parameter in tool.parameters}
    if any(name not in parameters for name in called.arguments):
        yield "unknown argument"
    if any(parameter.required and parameter.name not in called.arguments for parameter in tool.parameters):
        yield "missing required"
    for name, value in called.arguments.items():
        parameter = parameters.get(name)
        kind = None if parameter is None else json_type_of(parameter)
        if parameter is None or kind is None or (value is None and not parameter.required):
            continue
        if not accepts(frozenset({kind}), value):
            yield "type"
            return


class Fit:
    """Counts over the conversations of a data set."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._uses: Counter[str] = Counter()

    def add(self, conversation: Conversation) -> None:
        """Count the calls of a conversation."""
        tools = {tool.name: tool for tool in conversation.tools}
        self._uses.update(dict.fromkeys(tools, 0))
        found = [(call, set(kinds_of(call, tools))) for turn in conversation.turns for call in turn.calls]
        for _, kinds in found:
            self._kinds.update(kinds)
        self._uses.update({call.tool for call, _ in found if call.tool in tools})
        self._counts["conversations"] += 1
        self._counts["conversations with calls"] += bool(found)
        self._counts["conversations that mismatch"] += any(kinds for _, kinds in found)
        self._counts["calls"] += len(found)
        self._counts["calls that mismatch"] += sum(bool(kinds) for _, kinds in found)

    def to_json(self) -> dict[str, Any]:
        """The report. Rates are shares of all calls, ``null`` where there are none; a call may have several kinds."""
        calls, used = self._counts["calls"], Counter(_bucket(count) for count in self._uses.values())
        names = ("conversations", "conversations with calls", "conversations that mismatch", "calls")
        return {
            **{name: self._counts[name] for name in names},
            "calls that mismatch": _share(self._counts["calls that mismatch"], calls),
            "kinds": {kind: _share(self._kinds[kind], calls) for kind in KINDS},
            "tools": len(self._uses),
            "tools by queries that call them": {name: used[name] for _, name in (*_USES, (0, "more than 10"))},
        }


def _bucket(count: int) -> str:
    return next((name for most, name in _USES if count <= most), "more than 10")


def _share(count: int, total: int) -> dict[str, Any]:
    return {"count": count, "rate": count / total if total else None}


def _conversation(name: str, row: Mapping[str, Any]) -> Conversation:
    """A row of any data set that an importer reads. Raises :class:`.conversations.BadRow`."""
    if name in READERS:
        return READERS[name](row)
    decided = DECISIONS[name](row)
    return Conversation(
        decided.tools, (Turn("user", decided.query), Turn("assistant", decided.words, tuple(decided.calls)))
    )


def fit_of(name: str, path: Path, advance: Callable[[int], object] = lambda size: None) -> dict[str, Any]:
    """The report of a file of the data set ``name``. Raises :class:`callwright.errors.DataError` if it is damaged."""
    fit = Fit()
    rejected: Counter[str] = Counter()
    for value in read_values(path, advance):
        try:
            if not isinstance(value, Mapping):
                raise BadRow("not an object")
            fit.add(_conversation(name, value))
        except BadRow as error:
            rejected[str(error)] += 1
    return {**fit.to_json(), "rejected": dict(sorted(rejected.items()))}
