"""A slow TIER scorer over abstract programs, in exact fractions: the specification, written down a second time.

It imports nothing of Callwright. Every rule has its source beside it: a section of the TIER paper (2.2, A, C) or "ours"
where the paper is silent (``docs/divergences.md`` gives the reasons). Texts are read by ``specification_forms.py``.

What a call comes to is told by a function ``world(tool, arguments) -> Came``; tools are plain JSON Schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations
from typing import Any

LAMBDA = Fraction(1, 4)  # 2.2: "We set lambda_p = 0.25"
WEIGHTS = {"format": 1, "names": 1, "parameters": 1, "types": 1, "execution": 1, "answer": 5}  # 2.2: the four ranges


# Abstract programs ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ref:
    """A reference to the result of a call (A.2, C rule 10); ``says`` is the tool that the xml form names beside it."""

    call: int
    path: tuple[str | int, ...] = ()
    says: str | None = None


@dataclass(frozen=True)
class AbstractCall:
    """One call; ``arguments`` is ``None`` where they are no table of names and values (C, rule 8)."""

    id: int
    tool: str
    arguments: Mapping[str, Any] | None = field(default_factory=dict)


@dataclass(frozen=True)
class Facts:
    """What a completion is, whatever its form: the facts of its envelope and its tree.

    ``blocks`` counts complete tool-call blocks; ``stray`` says that text stands before the thought or after the block;
    ``tree`` that what the block holds could be parsed into calls.
    """

    calls: tuple[AbstractCall, ...] = ()
    returns: str | None = "one"
    envelope: bool = True
    blocks: int = 1
    stray: bool = False
    tree: bool = True


@dataclass(frozen=True)
class Came:
    """What a call came to. ``kind``: ``result``, ``failed`` or ``machinery`` (nobody knows)."""

    kind: str
    value: Any = None


@dataclass(frozen=True)
class Tool:
    """JSON Schemas of parameters and result (``None``: not stated), and what a bare reference means."""

    parameters: Mapping[str, Any]
    result: Mapping[str, Any] | None = None
    result_field: str | None = None


@dataclass(frozen=True)
class Question:
    """A task: the offered tools, the expected values, and the world that answers."""

    tools: Mapping[str, Tool]
    expected: tuple[Any, ...]
    world: Callable[[str, dict[str, Any]], Came]


@dataclass(frozen=True)
class Verdict:
    """Components in [0, 1], after their gates, and totals of the recipes; ``None`` where the machinery failed."""

    components: dict[str, Fraction | None]
    totals: dict[str, Fraction | None]


# Format --------------------------------------------------------------------------------------------------------------


def format_reward(facts: Facts) -> int:
    """2.2: "R_format in {0, 1} checks whether the full AST is well-formed and parsable."."""
    if not facts.envelope:  # C: "strictly respond in one of the following formats": <think>, then <tool_call>
        return 0
    if facts.blocks != 1:  # ours: a second complete block closes the gate, so that nobody can answer twice
        return 0
    if not facts.tree:  # 2.2: "parsable"; C, rules 6 and 7: one tool a call
        return 0
    ids = [call.id for call in facts.calls]
    if len(set(ids)) != len(ids):  # C, rule 4: "a unique numeric string key"
        return 0
    # C, rule 5 ("increasing integers"): any start and gaps, and calls run by id, because JSON's members have no order:
    # ours. References are no matter of format: A.2 checks "names, parameter schemas, and data types", not them.
    return 1


def strict_format_reward(facts: Facts) -> int:
    """``tier-strict`` (ours): nothing before or after the block, and every reference names an earlier call."""
    if facts.stray or not format_reward(facts):
        return 0
    if any(call.arguments is None for call in facts.calls):  # ours: of what cannot be read nothing is said
        return 1
    return int(not any(dangles for call in in_order(facts) for _, dangles in references(call, facts)))


def in_order(facts: Facts) -> list[AbstractCall]:
    """C, rule 5: "this sequence represents the order of execution"."""
    return sorted(facts.calls, key=lambda call: call.id)


def references(call: AbstractCall, facts: Facts) -> list[tuple[Ref, bool]]:
    """Every reference of a call, and whether it dangles: it names no earlier call, or says another tool's name."""
    tools = {other.id: other.tool for other in facts.calls}
    found = []

    def look(value: Any) -> None:
        if isinstance(value, Ref):
            earlier = value.call in tools and value.call < call.id
            contradicts = earlier and value.says is not None and value.says != tools[value.call]
            found.append((value, not earlier or contradicts))
        elif isinstance(value, dict):
            for inner in value.values():
                look(inner)
        elif isinstance(value, list):
            for inner in value:
                look(inner)

    look(dict(call.arguments or {}))
    return found


def how_many_returned(facts: Facts) -> str:
    """C, rule 2: ``return`` is "all" or "one". Ours for A.3, which has none: all if no call refers to another."""
    if facts.returns is not None:
        return facts.returns
    dependent = any(not dangles for call in facts.calls for _, dangles in references(call, facts))
    return "one" if dependent or len(facts.calls) == 1 else "all"


# Schemas -------------------------------------------------------------------------------------------------------------


def clip(mismatches: int) -> Fraction:
    """2.2: R_param/dtype = clip(1 - lambda_p p, 0, 1)."""
    return max(Fraction(0), min(Fraction(1), 1 - LAMBDA * mismatches))


def kind_of(value: Any) -> str:
    """JSON's types. Ours: a bool is neither integer nor number; 3.0 is an integer (JSON Schema says so)."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value == int(value)):
        return "integer"
    if isinstance(value, float):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def mismatches(value: Any, schema: Mapping[str, Any], source: Callable[[Ref], set[str] | None]) -> tuple[int, int]:
    """(parameter mismatches, type mismatches) of a value and everything in it; one a place (ours).

    2.2: "p is the total number of mismatches across all calls, each call's parameters checked against its own schema".
    Bounds, enumerations and patterns are neither parameters nor types: not graded.
    """
    wanted = schema.get("type")
    if isinstance(value, Ref):  # C, rule 9: a placeholder stands for a value; ours: with its result's stated type
        given = source(value)
        if given is None or wanted is None:
            return 0, 0
        fits = wanted in given or (wanted in ("integer", "number") and given & {"integer", "number"})
        return 0, int(not fits)
    if schema.get("table"):  # a table cannot be written, only referred to
        return 0, 1
    kind = kind_of(value)
    if wanted is not None and kind != wanted and (kind, wanted) != ("integer", "number"):
        return 0, 1  # the whole value is of another type: its inside is not looked at
    if isinstance(value, dict) and (schema.get("properties") or "closed" in schema):
        return members(value, schema, source)
    if isinstance(value, list) and "items" in schema:
        inner = [mismatches(item, schema["items"], source) for item in value]
        return sum(one[0] for one in inner), sum(one[1] for one in inner)
    return 0, 0


def members(
    value: Mapping[str, Any], schema: Mapping[str, Any], source: Callable[[Ref], set[str] | None]
) -> tuple[int, int]:
    """Missing and unexpected members (C, rule 3: "all required parameters"), nested ones too (ours)."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    parameters = sum(name not in value for name in required)
    parameters += sum(name not in properties and name not in required for name in value)
    types = 0
    for name, inner in value.items():
        if name in properties:
            more, other = mismatches(inner, properties[name], source)
            parameters, types = parameters + more, types + other
    return parameters, types


def stated_type(schema: Mapping[str, Any] | None, path: Sequence[str | int]) -> set[str] | None:
    """The type that a result's schema states at a path; ``None`` where it does not say."""
    for part in path:
        if schema is None:
            return None
        schema = schema.get("items") if isinstance(part, int) else schema.get("properties", {}).get(part)
    return {schema["type"]} if schema is not None and "type" in schema else None


def parse_rewards(facts: Facts, question: Question) -> tuple[Fraction, Fraction, Fraction]:
    """R_name, R_param, R_dtype (2.2)."""
    # 2.2: "any invalid API makes the sequence unverifiable and by extension invalid (R_parse = 0)"; ours: an API is
    # valid if the task offers it (C, rule 1: "use only the provided APIs").
    if any(call.tool not in question.tools for call in facts.calls):
        return Fraction(0), Fraction(0), Fraction(0)
    by_id = {call.id: call for call in facts.calls}
    parameters = types = 0
    for call in facts.calls:
        tool = question.tools[call.tool]
        whole = dict(references(call, facts))

        def source(ref: Ref, whole: dict[Ref, bool] = whole) -> set[str] | None:
            if whole[ref]:  # what does not exist has no type: it is an execution failure, and only that (ours)
                return None
            earlier = question.tools[by_id[ref.call].tool]
            path = ref.path or ((earlier.result_field,) if earlier.result_field else ())
            return stated_type(earlier.result, path)

        assert call.arguments is not None
        closed = {**tool.parameters, "closed": True}  # C, rule 8: the names are those of the schema
        more, other = members(call.arguments, closed, source)
        parameters, types = parameters + more, types + other
    return Fraction(1), clip(parameters), clip(types)


# Execution -----------------------------------------------------------------------------------------------------------


def run(facts: Facts, question: Question) -> list[Came]:
    """Every call in order, with references replaced by results. After the machinery failed nothing runs (ours)."""
    results: dict[int, Came] = {}
    tools = {call.id: call.tool for call in facts.calls}
    came = []
    for call in in_order(facts):
        dangles = any(bad for _, bad in references(call, facts))
        if dangles:  # 2.2: "every tool call executes successfully"; ours: one that refers to nothing cannot
            outcome = Came("failed")
        else:
            try:
                arguments = {
                    name: resolved(value, results, tools, question) for name, value in (call.arguments or {}).items()
                }
            except LookupError:
                outcome = Came("failed")
            else:
                outcome = question.world(call.tool, arguments) if call.tool in question.tools else Came("failed")
        results[call.id] = outcome
        came.append(outcome)
        if outcome.kind == "machinery":
            break
    return came


def resolved(value: Any, results: Mapping[int, Came], tools: Mapping[int, str], question: Question) -> Any:
    """A value with its references followed. Raises ``LookupError`` where one leads nowhere."""
    if isinstance(value, dict):
        return {name: resolved(inner, results, tools, question) for name, inner in value.items()}
    if isinstance(value, list):
        return [resolved(inner, results, tools, question) for inner in value]
    if not isinstance(value, Ref):
        return value
    earlier = results[value.call]
    if earlier.kind != "result":  # 2.2: "a failure at step k invalidates downstream calls that depend on its output"
        raise LookupError
    found = earlier.value
    result_field = question.tools[tools[value.call]].result_field
    # A.2: a bare reference is "prior API responses"; ours: the result field where the tool declares one. A result
    # without that field (a documented error) is handed on whole, bare or spelt out (ours).
    path = value.path or ((result_field,) if result_field is not None else ())
    if path == (result_field,) and isinstance(found, dict) and result_field not in found:
        return found
    for part in path:
        if isinstance(part, int) and not isinstance(found, list):
            raise LookupError
        if isinstance(part, str) and not isinstance(found, dict):
            raise LookupError
        try:
            found = found[part]
        except (KeyError, IndexError):  # ours: a field that does not exist does not resolve
            if value.path:
                raise LookupError from None
            return earlier.value
    return found


# Answer --------------------------------------------------------------------------------------------------------------

NOTHING = object()


def same(expected: Any, found: Any) -> bool:
    """Equal by value (ours): key order is nothing, lists are ordered, True is not 1, 1 is 1.0, floats within 1e-9."""
    if expected is NOTHING or found is NOTHING:
        return False
    if isinstance(expected, list):
        return isinstance(found, list) and len(expected) == len(found) and all(map(same, expected, found))
    kinds = {type(expected), type(found)}
    if kinds <= {int, float}:
        if kinds == {int}:
            return bool(expected == found)
        one, other = Fraction(expected), Fraction(found)
        return abs(one - other) <= Fraction(1, 10**9) * (1 + abs(one))
    if len(kinds) != 1:
        return False
    if isinstance(expected, dict):
        return expected.keys() == found.keys() and all(same(expected[name], found[name]) for name in expected)
    return bool(expected == found)


def answer_is_right(facts: Facts, came: Sequence[Came], question: Question) -> bool:
    """2.2: "Equals 5 iff the final output matches the expected answer"; C, rule 2: one output, or all of them."""
    handed = came if how_many_returned(facts) == "all" else came[-1:]
    values = [outcome.value if outcome.kind == "result" else NOTHING for outcome in handed]
    if len(values) != len(question.expected):
        return False
    if len(values) > 6:  # too many to try every order: the first that is equal, which is as good without tolerance
        left = list(values)
        for one in question.expected:
            at = next((index for index, value in enumerate(left) if same(one, value)), None)
            if at is None:
                return False
            del left[at]
        return True
    # 2.2: "regardless of ordering of independent sub-goals": a multiset (that repeats count is ours)
    return any(all(map(same, question.expected, order)) for order in permutations(values))


# Recipes -------------------------------------------------------------------------------------------------------------


def score(facts: Facts, question: Question) -> Verdict:
    """Every component of ``tier`` and the total of each recipe."""
    well_formed = format_reward(facts)
    readable = all(call.arguments is not None for call in facts.calls)
    executed: Fraction | None = Fraction(0)
    right: Fraction | None = Fraction(0)
    names = parameters = types = Fraction(0)
    if well_formed and readable:  # C, rule 8; ours: the tree parses, and nothing that a schema could confirm is there
        names, parameters, types = parse_rewards(facts, question)
        came = run(facts, question)  # 2.2: no calls execute, vacuously
        if any(outcome.kind == "failed" for outcome in came):
            executed = Fraction(0)
        elif any(outcome.kind == "machinery" for outcome in came):
            executed = None
        else:
            executed = Fraction(1)
        if any(outcome.kind == "machinery" for outcome in came):
            right = None
        else:
            right = Fraction(answer_is_right(facts, came, question))
    gate = Fraction(well_formed)  # 2.2: "If this fails, all downstream rewards are zero"
    parts: dict[str, Fraction | None] = {
        "format": gate,
        "names": names,
        "parameters": parameters,
        "types": types,
        "execution": executed,
        "answer": right,
    }
    # Ours: a wrong answer is not more than wrong because a call failed, so R_answer needs R_exec where that is graded.
    full = {**parts, "answer": Fraction(0) if executed == 0 else right}
    no_execution = {name: value for name, value in parts.items() if name != "execution"}
    no_parse = {name: full[name] for name in ("format", "execution", "answer")}
    abstains = bool(well_formed) and not facts.calls and bool(question.expected)
    guarded = {name: value if name == "format" or not abstains else Fraction(0) for name, value in full.items()}
    strict = full if strict_format_reward(facts) else dict.fromkeys(full, Fraction(0))
    return Verdict(
        components=full,
        totals={
            "tier": weighted(full),
            "tier-guarded": weighted(guarded),  # ours: calling nothing where something was due is format, and no more
            "tier-strict": weighted(strict),
            "simple": weighted({name: parts[name] for name in ("format", "answer")}),  # 4.3, Table 2, first row
            "tier-no-parse": weighted(no_parse),  # second row; 4.3: "renormalized"; ours: whatever the answer is
            "tier-no-execution": weighted(no_execution),  # third row
        },
    )


def weighted(parts: Mapping[str, Fraction | None]) -> Fraction | None:
    """2.2: the sum of the components, "scaled to [0, 1]"."""
    if any(value is None for value in parts.values()):
        return None
    maximum = sum(WEIGHTS[name] for name in parts)
    return sum((WEIGHTS[name] * value for name, value in parts.items() if value is not None), Fraction(0)) / maximum
