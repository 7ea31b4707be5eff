"""Proposals: what schemas suggest, and what a teacher says, of which nothing is proven."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final, Literal

from attrs import frozen

from callwright.language.messages import Message
from callwright.tools.spec import ToolSpec
from callwright.training.teaching.teacher import Teacher, TeacherFailure, TeacherReply, TeacherRequest
from callwright_plugins.synthesis.exploration.free import branches_of, options_of
from callwright_plugins.synthesis.exploration.names import likeness, words_of
from callwright_plugins.synthesis.graph.edges import Graph

Relation = Literal["explicit", "implicit", "none"]
Pair = tuple[str, str]
#: How alike the names of a result's field and a parameter are where schemas alone propose an edge.
_ALIKE: Final = 0.7
_DEEPEST: Final = 6
_PAGING: Final = frozenset({"limit", "cursor", "offset", "page", "page_size", "total", "next_cursor"})
_RELATIONS: Final = ["explicit", "implicit", "none"]
#: The shape of a teacher's reply.
SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "first_before_second": {"enum": _RELATIONS},
        "second_before_first": {"enum": _RELATIONS},
    },
    "required": ["first_before_second", "second_before_first"],
    "additionalProperties": False,
}
_ASKED: Final = """\
You are given two tools of one system. Say how they depend on one another, in both directions.

explicit: an output of the one is a required input of the other.
implicit: the one must be called first, because it brings about a state that the other needs.
none: neither.

Answer with JSON: {"first_before_second": …, "second_before_first": …}."""


def matched(tools: Mapping[str, ToolSpec]) -> dict[Pair, None]:
    """The pairs that names propose: a field of the source's result schema is called like a parameter of the target."""
    fields = {name: list(_fields(spec.result, ())) for name, spec in tools.items()}
    found: dict[Pair, None] = {}
    for target, spec in sorted(tools.items()):
        for parameter, schema in spec.parameters.get("properties", {}).items():
            closed = isinstance(schema, Mapping) and options_of(schema) is not None
            if parameter in _PAGING or closed:
                continue
            wanted = words_of(parameter)
            for source in sorted(tools):
                around = words_of(source)
                if source != target and any(
                    likeness(wanted, words_of(path[-1]), (*around, *words_of(" ".join(path[:-1])))) >= _ALIKE
                    for path in fields[source]
                ):
                    found[source, target] = None
    return found


def _fields(schema: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not isinstance(schema, Mapping) or len(path) > _DEEPEST:
        return
    for branch in (schema, *branches_of(schema)):
        members = branch.get("properties")
        if isinstance(members, Mapping):
            for name, inner in members.items():
                if name not in _PAGING:
                    yield (*path, name)
                    yield from _fields(inner, (*path, name))
        yield from _fields(branch.get("items"), path)


@frozen
class Classified:
    """What a teacher says of pairs, as the paper asks (section 3.2, step 1), and the pairs of which it said nothing."""

    relations: Mapping[Pair, Relation]
    failed: Mapping[Pair, str]

    @property
    def pairs(self) -> dict[Pair, None]:
        """The pairs that it says depend."""
        return {pair: None for pair, relation in self.relations.items() if relation != "none"}


def classify(teacher: Teacher, tools: Mapping[str, ToolSpec], *, seed: int = 0) -> Classified:
    """Ask a teacher in the role ``planner`` of every pair of tools: one request for each two.

    Give it one that is :func:`callwright.training.cached`, and each pair is paid once for each schema of its tools.
    """
    pairs = list(combinations(sorted(tools), 2))
    answers = teacher.ask([_request(tools[one], tools[other], seed) for one, other in pairs])
    relations: dict[Pair, Relation] = {}
    failed: dict[Pair, str] = {}
    for (one, other), answer in zip(pairs, answers, strict=True):
        read = _read(answer)
        if isinstance(read, str):
            failed[one, other] = read
        else:
            relations[one, other], relations[other, one] = read
    return Classified(relations, failed)


def _request(one: ToolSpec, other: ToolSpec, seed: int) -> TeacherRequest:
    shown = "\n\n".join(
        f"{which} tool:\n{json.dumps(_shown(spec), ensure_ascii=False, indent=1)}"
        for which, spec in (("First", one), ("Second", other))
    )
    return TeacherRequest("planner", (Message.system(_ASKED), Message.user(shown)), schema=SCHEMA, seed=seed)


def _shown(spec: ToolSpec) -> dict[str, Any]:
    return {**spec.to_openai()["function"], **({"returns": spec.result} if spec.result else {})}


def _read(answer: TeacherReply | TeacherFailure) -> tuple[Relation, Relation] | str:
    """Both relations, or why there are none."""
    from callwright.language import strict_json
    from callwright.language.parser import ParseFailure

    if isinstance(answer, TeacherFailure):
        return answer.reason
    value = strict_json.decode(answer.text.strip(), 0, 8)
    if isinstance(value, ParseFailure | strict_json.Duplicated) or not isinstance(value, dict):
        return "the reply is not a JSON object"
    found = [value.get(name) for name in ("first_before_second", "second_before_first")]
    match found:
        case [
            "explicit" | "implicit" | "none" as forth,
            "explicit" | "implicit" | "none" as back,
        ]:
            return forth, back
    return "the reply names no relation in both directions"


@frozen
class Compared:
    """How one way to find pairs compares with what was proven."""

    way: str
    pairs: int
    proven: int
    missed: int


def compare(graph: Graph, proposed: Mapping[str, Sequence[Pair] | Mapping[Pair, None]]) -> list[Compared]:
    """For each way: how many pairs it names, how many of them are proven, and how many proven ones it leaves out."""
    proven = set(graph.pairs())
    return [
        Compared(way, len(set(pairs)), len(set(pairs) & proven), len(proven - set(pairs)))
        for way, pairs in proposed.items()
    ]
