"""Effects: a server that says that all went well has done so only where something changed or was found."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from attrs import define, field

import callwright as cw
from callwright.environments.knowledge.suggestions import Gap, Suggestions, Template
from callwright.environments.protocol import Outcome
from callwright.language.program import Call
from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.blueprints.knobs import Knobs
from callwright_plugins.synthesis.blueprints.wishes import Coverage
from callwright_plugins.synthesis.graph.directed import suggested
from callwright_plugins.synthesis.graph.effects import holds_nothing, made_in_effect, state_of

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


@define(eq=False)
class Notes:
    """A session that never fails."""

    notes: list[str] = field(factory=lambda: ["a"])

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        match tool:
            case "drop" if arguments["text"] in self.notes:
                self.notes.remove(arguments["text"])
            case "find":
                return Outcome("ok", [one for one in self.notes if one == arguments["text"]])
        return Outcome("ok", "done")

    def digest(self) -> str:
        return repr(self.notes)


@define(eq=False)
class Here:
    """The environment of such sessions."""

    name: str = "notes"
    tools: dict[str, ToolSpec] = field(
        factory=lambda: {
            "drop": ToolSpec("drop", "", TEXT, destructive=True),
            "find": ToolSpec("find", "", TEXT, read_only=True),
            "touch": ToolSpec("touch", "", TEXT),
        }
    )


@define(eq=False)
class Elsewhere(Here):
    """The same in another process, as far as anybody can tell."""

    out_of_process = True


@pytest.mark.parametrize(
    ("tool", "text", "kind"),
    [
        ("drop", "a", "ok"),
        ("drop", "b", "empty"),
        ("find", "a", "ok"),
        ("find", "b", "empty"),
        ("touch", "a", "ok"),
    ],
)
def test_what_changes_or_finds_nothing_has_come_to_nothing(tool: str, text: str, kind: str) -> None:
    environment: Any = Elsewhere()
    session: Any = Notes()
    assert made_in_effect(environment, session, Call(0, tool, {"text": text})).kind == kind


def test_environments_of_this_process_are_taken_at_their_word() -> None:
    session: Any = Notes()
    here: Any = Here()
    assert made_in_effect(here, session, Call(0, "drop", {"text": "b"})).kind == "ok"
    assert state_of(session) == session.digest()
    shipped = cw.environment("email").open()
    assert state_of(shipped) == shipped.goal_state()  # type: ignore[attr-defined]


@pytest.mark.parametrize("value", [[], {}, "[]", " {}\n", "", {"items": [], "links": [{}]}])
def test_empty_lists_and_objects_hold_nothing(value: Any) -> None:
    assert holds_nothing(value)


@pytest.mark.parametrize("value", [0, False, None, "no", [""], {"items": [], "text": ""}, {"count": 0}, [[1]]])
def test_anything_else_is_something(value: Any) -> None:
    assert not holds_nothing(value)


def test_what_fills_gaps_is_a_pair_to_try_and_what_writes_comes_first() -> None:
    gaps = {"note": Gap(sources=("find", "drop.text"))}
    texts = Suggestions(gaps, (Template("touch", "text", "see {note}"),))
    pairs = suggested(Elsewhere().tools, texts)
    assert list(pairs)[:2] == [("drop", "touch"), ("find", "touch")]
    assert all(pairs[pair] for pair in list(pairs)[:2])


def test_a_tool_with_too_many_of_the_calls_is_planned_last() -> None:
    coverage = Coverage(0.3)
    coverage.calls.update({"a": 40, "b": 10, "c": 20})
    coverage.tools.update({"b": 5, "c": 9})
    assert coverage.least("abc", coverage.tools, Random(0)) == ["b", "c", "a"]
    assert coverage.overused(("a", "b", "a")) == 2
    free = Coverage(Knobs().most_of_one)
    free.calls.update(coverage.calls)
    free.tools.update(coverage.tools)
    assert free.least("abc", free.tools, Random(0)) == ["a", "b", "c"]
    assert free.overused("abc") == 0
