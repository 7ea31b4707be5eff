"""What makes a task sound: other programs that are right, wrong ones that lose, shorter ones that do not exist."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from attrs import evolve, field, frozen

from callwright.environments.protocol import Environment
from callwright.language.program import Call, Path, Program, Reference
from callwright.tools.compiled import CompiledTool, compile_tool
from callwright.tools.spec import ToolSpec
from callwright.tools.validation import TABLE
from callwright.walk.answers import answers_match, values_equal
from callwright.walk.execution import execute
from callwright.walk.tasks import Answer, Task
from callwright_plugins.depthbench.families.family import FILTERS
from callwright_plugins.depthbench.families.slots import alternatives
from callwright_plugins.depthbench.world import V1, within, world

MUTATIONS: Final = ("drop", "change", "swap", "skip", "tool", "dangle", "rewire")


# Other right programs -------------------------------------------------------------------------------------------------


def orders(program: Program) -> Iterator[tuple[int, ...]]:
    """Every topological order of the calls. Where one value is wanted, its call stays last."""
    count = len(program.calls)
    needs: list[set[int]] = [set() for _ in range(count)]
    for earlier, later in program.edges:
        needs[later].add(earlier)

    def extend(done: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(done) == count:
            if program.returns == "all" or not done or done[-1] == count - 1:
                yield done
            return
        for place in range(count):
            if place not in done and needs[place] <= set(done):
                yield from extend((*done, place))

    return extend(())


def arranged(program: Program, order: Sequence[int], numbers: Sequence[int] | None = None) -> Program:
    """The calls in another order, with other ids (0, 1, 2 … unless given), references following."""
    numbers = numbers or range(len(order))
    new = {program.calls[place].id: number for place, number in zip(order, numbers, strict=True)}
    calls = tuple(
        Call(new[call.id], call.tool, replaced(call.arguments, lambda r: Reference(new[r.call], r.path)))
        for call in (program.calls[place] for place in order)
    )
    return evolve(program, calls=calls)


def commutations(program: Program) -> Iterator[Program]:
    """The programs in which the filters of a chain are applied in another order."""
    for chain in _filter_chains(program):
        conditions = [program.calls[place] for place in chain]
        for permuted in itertools.islice(itertools.permutations(conditions), 1, None):
            calls = list(program.calls)
            for place, condition in zip(chain, permuted, strict=True):
                here = program.calls[place]
                table = here.arguments[FILTERS[here.tool]]
                arguments = {**condition.arguments, FILTERS[condition.tool]: table}
                calls[place] = Call(here.id, condition.tool, arguments)
            yield _sorted(evolve(program, calls=tuple(calls)))


def _filter_chains(program: Program) -> list[list[int]]:
    place = {call.id: index for index, call in enumerate(program.calls)}
    used: dict[int, int] = {}
    for call in program.calls:
        for _, reference in call.located:
            used[reference.call] = used.get(reference.call, 0) + 1
    chains: list[list[int]] = []
    for index, call in enumerate(program.calls):
        if call.tool in FILTERS:
            table = call.arguments[FILTERS[call.tool]]
            before = place[table.call] if isinstance(table, Reference) else -1
            if chains and chains[-1][-1] == before and used[program.calls[before].id] == 1:
                chains[-1].append(index)
            else:
                chains.append([index])
    return [chain for chain in chains if len(chain) > 1]


def _sorted(program: Program) -> Program:
    """The calls in an order in which references point backwards; ids as before, then numbered anew."""
    left, done, order = list(range(len(program.calls))), set[int](), []
    while left:
        place = next(p for p in left if all(r.call in done for _, r in program.calls[p].located))
        left.remove(place)
        done.add(program.calls[place].id)
        order.append(place)
    return arranged(program, order)


def equals(program: Program) -> Iterator[Program]:
    """Every reordering, two renumberings, and every reordering of every commutation."""
    every = list(orders(program))
    for order in every:
        yield arranged(program, order)
    count = len(program.calls)
    if count:
        yield arranged(program, every[-1], range(1, count + 1))
        yield arranged(program, every[0], range(7, 7 + 13 * count, 13))
    for other in commutations(program):
        for order in orders(other):
            yield arranged(other, order)


# Wrong programs -------------------------------------------------------------------------------------------------------


@frozen
class Mutation:
    """A wrong program: its kind (one of :data:`MUTATIONS`), what was done, and the program."""

    kind: str
    what: str
    program: Program


def mutations(program: Program, tools: Mapping[str, ToolSpec]) -> Iterator[Mutation]:
    """Every single mutation of a program over the offered tools."""
    for number, call in enumerate(program.calls):
        rest = (*program.calls[:number], *program.calls[number + 1 :])
        yield Mutation("drop", f"call {call.id}", evolve(program, calls=rest))
        for name, value in call.arguments.items():  # go round the call: its users take what it took
            passed = tuple(_redirected(other, call.id, value) for other in rest)
            if passed != rest and name != FILTERS.get(call.tool):
                yield Mutation("drop", f"call {call.id}, passing on {name}", evolve(program, calls=passed))
        if call.tool in FILTERS:
            table = call.arguments[FILTERS[call.tool]]
            yield Mutation(
                "skip", call.tool, evolve(program, calls=tuple(_redirected(other, call.id, table) for other in rest))
            )
        for path, value in scalars(call.arguments):
            for other in alternatives(value):
                yield Mutation("change", f"{path}: {value} -> {other}", _with(program, number, path, other))
        for path, reference in references(call.arguments):
            yield Mutation("dangle", f"{path}", _with(program, number, path, Reference(99, reference.path)))
            for earlier in program.calls[:number]:
                if earlier.id != reference.call:
                    yield Mutation(
                        "rewire", f"{path} -> {earlier.id}", _with(program, number, path, Reference(earlier.id))
                    )
        for name, spec in tools.items():
            if name != call.tool:
                arguments = _carried(call, tools[call.tool], spec)
                calls = (*program.calls[:number], Call(call.id, name, arguments), *program.calls[number + 1 :])
                yield Mutation("tool", f"{call.tool} -> {name}", evolve(program, calls=calls))
    yield from _swaps(program)


def _swaps(program: Program) -> Iterator[Mutation]:
    leaves = [
        (number, path, value) for number, call in enumerate(program.calls) for path, value in scalars(call.arguments)
    ]
    same = _signature(program)
    for (first, here, one), (second, there, other) in itertools.combinations(leaves, 2):
        if (
            one != other
            and type(one) is type(other)
            and (here[-1] == there[-1] or (isinstance(one, str) and other in alternatives(one)))
        ):
            swapped = _with(_with(program, first, here, other), second, there, one)
            if _signature(swapped) != same:
                yield Mutation("swap", f"{one} and {other}", swapped)
    for number, call in enumerate(program.calls):
        found = list(references(call.arguments))
        for (here, first_ref), (there, second_ref) in itertools.combinations(found, 2):
            if first_ref != second_ref:
                swapped = _with(_with(program, number, here, second_ref), number, there, first_ref)
                yield Mutation("swap", f"{first_ref} and {second_ref}", swapped)


def _signature(program: Program) -> list[str]:
    """Equal for programs that differ in the order of calls that refer to nothing."""
    return sorted(json.dumps([call.tool, replaced(call.arguments, str)], sort_keys=True) for call in program.calls)


def _carried(call: Call, old: ToolSpec, new: ToolSpec) -> dict[str, Any]:
    """The arguments for another tool: by name where it has the name, else in order."""
    names = list(new.parameters["properties"])
    arguments = {name: value for name, value in call.arguments.items() if name in names}
    left = [value for name, value in call.arguments.items() if name not in names]
    free = [name for name in names if name not in arguments]
    return {**arguments, **dict(zip(free, left, strict=False))}


def right(
    answer: Answer, program: Program, environment: Environment, tools: Mapping[str, ToolSpec], scenario: str
) -> bool:
    """Whether a program reaches the answer."""
    trace = execute(program, environment, tools, scenario=scenario)
    return trace.executed and answers_match(answer, trace.returned)


def mutations_of(task: Task) -> list[Mutation]:
    """Every single mutation of a task's reference, with other names from the task's own data."""
    assert task.program is not None
    version = getattr(task.environment, "version", V1)
    with within(world(0, version)):
        return list(mutations(task.program, task.tools))


def survivors(task: Task) -> list[Mutation]:
    """The mutations of a task's reference that still reach the answer."""
    return [
        mutation
        for mutation in mutations_of(task)
        if right(task.answer, mutation.program, task.environment, task.tools, task.scenario)
    ]


# Shorter programs -----------------------------------------------------------------------------------------------------


def shorter(task: Task, most: int = 6000) -> Program | None:
    """A program of fewer calls that reaches the answer, if a bounded search finds one.

    Forward from the literals of the reference (they are the values in the prompt; the scenario says nothing): every
    offered tool with every fitting literal or result, results joined by the union of their calls, at most ``most``
    executed calls. Where all values are wanted, fewer calls return fewer values, so there is nothing to search.
    """
    program = task.program
    assert program is not None
    if task.returns == "all" or len(program.calls) < 2:
        return None
    limit = len(program.calls) - 1
    session = task.environment.open(task.scenario)
    literals: list[Any] = []
    shapes: dict[tuple[str, str], list[Any]] = {}
    for call in program.calls:
        for name, value in call.arguments.items():
            if isinstance(value, dict | list):
                shapes.setdefault((call.tool, name), []).append(value)
        literals.extend(value for _, value in scalars(call.arguments))
    choosing = _Choosing(literals, shapes)
    made: list[tuple[str, dict[str, Any]]] = []
    tried: set[tuple[str, ...]] = set()
    seen: set[str] = set()
    grew = True
    executed = 0
    while grew and executed < most:
        grew = False
        known = list(choosing.results)
        for name, spec in task.tools.items():
            names = [name for name in spec.parameters["properties"] if name in spec.parameters.get("required", ())]
            choices = [choosing.options(spec, parameter, known) for parameter in names]
            for chosen in itertools.islice(itertools.product(*choices), 4000):
                key = (name, *[option.text for option, _ in chosen])
                if key in tried:
                    continue
                needed = frozenset[int]().union(*[option.calls for option, _ in chosen])
                if len(needed) >= limit:
                    continue
                tried.add(key)
                executed += 1
                if executed >= most:
                    break
                if not all(fits for _, fits in chosen):  # it would be refused, in words that nobody reads
                    continue
                given = {name: option.given for name, (option, _) in zip(names, chosen, strict=True)}
                outcome = session.call(name, given)
                if not outcome.executed:
                    continue
                value = json.dumps(outcome.value, sort_keys=True)
                if value in seen:  # breadth first: it was reached with no more calls before
                    continue
                seen.add(value)
                made.append((name, {name: option.written for name, (option, _) in zip(names, chosen, strict=True)}))
                calls = needed | {len(made) - 1}
                if values_equal(task.answer.values[0], outcome.value):
                    return _rebuilt(made, calls, len(made) - 1)
                choosing.results.append(_Result(outcome.value, calls, len(made) - 1, spec))
                grew = True
    return None


@frozen
class _Use:
    """Stands for the result of a call, or a part of it, in the arguments of a search."""

    call: int
    path: Path

    def __str__(self) -> str:
        return f"<{self.call} {self.path}>"


@frozen(eq=False)
class _Option:
    """A value for a parameter: as the search writes it, as the tool gets it, and the calls that it comes from."""

    written: Any
    given: Any
    calls: frozenset[int] = frozenset()
    kind: str = field(init=False)
    #: Options that are written alike are one.
    text: str = field(init=False)

    @kind.default
    def _kind(self) -> str:
        return _json_type(self.given)

    @text.default
    def _text(self) -> str:
        return json.dumps(self.written, default=str)


class _Result:
    """What a call of a search came to: as a bare reference gives it, and every part that a reference may name."""

    def __init__(self, value: Any, calls: frozenset[int], call: int, source: ToolSpec) -> None:
        self.calls, self.use = calls, _Use(call, ())
        named = source.result_field is not None and isinstance(value, dict)
        self.bare = value[source.result_field] if named else value
        self.parts: list[_Option] = []
        for path in _paths(value, source):
            inner = value
            for part in path:
                inner = inner[part]
            self.parts.append(_Option(_Use(call, path), inner, calls))


class _Choosing:
    """What the parameters of tools may be given: literals, shapes with results in their holes, results and parts."""

    def __init__(self, literals: Sequence[Any], shapes: Mapping[tuple[str, str], list[Any]]) -> None:
        self.literals = [_Option(value, value) for value in {json.dumps(value): value for value in literals}.values()]
        self.shapes = shapes
        self.results: list[_Result] = []
        self._filled: dict[tuple[str, str, int, tuple[int, ...]], _Option] = {}
        self._fits: dict[tuple[str, str, _Option], bool] = {}

    def options(self, spec: ToolSpec, name: str, known: Sequence[_Result]) -> list[tuple[_Option, bool]]:
        """What is of the type of a parameter, each with whether the whole of its schema takes it."""
        schema = spec.parameters["properties"][name]
        kind = schema.get("type")
        found: list[_Option] = []
        if not schema.get(TABLE):
            found += [option for option in self.literals if _takes(schema, option)]
            for number, value in enumerate(self.shapes.get((spec.name, name), ())):
                found += self._fillings(spec.name, name, number, value, known)
        for result in known:
            found += [
                option
                for option in result.parts
                if option.kind == kind or (kind == "number" and option.kind == "integer")
            ]
        return [(option, self._does_fit(spec, name, option)) for option in found]

    def _fillings(self, tool: str, name: str, number: int, value: Any, known: Sequence[_Result]) -> Iterator[_Option]:
        holes = [path for path, _ in references(value)]
        for filling in itertools.islice(itertools.product(range(len(known)), repeat=len(holes)), 400):
            key = (tool, name, number, filling)
            if key not in self._filled:
                written = given = value
                for path, index in zip(holes, filling, strict=True):
                    written, given = _put(written, path, known[index].use), _put(given, path, known[index].bare)
                calls = frozenset[int]().union(*(known[index].calls for index in filling))
                self._filled[key] = _Option(written, given, calls)
            yield self._filled[key]

    def _does_fit(self, spec: ToolSpec, name: str, option: _Option) -> bool:
        key = (spec.name, name, option)
        if key not in self._fits:
            self._fits[key] = _parameters(spec.compiled)({name: option.given})
        return self._fits[key]


@lru_cache(maxsize=1024)
def _parameters(tool: CompiledTool) -> Callable[[Any], bool]:
    """Whether a tool takes values for some of its parameters, whatever the others are given."""
    optional = {key: value for key, value in tool.parameters.items() if key != "required"}
    return compile_tool(tool.name, optional, None, None).received.is_valid


def _paths(value: Any, source: ToolSpec) -> list[Path]:
    """How a result may be referred to: bare, a field, a field of a field, and the first of a list with its fields."""
    paths: list[Path] = [() if source.result_field is None else (source.result_field,)]
    found: list[tuple[Path, Any]] = [((), value)]
    for path, inner in found:  # grows while it is walked
        if len(path) < 3:
            parts = (
                inner.items() if isinstance(inner, dict) else enumerate(inner[:1]) if isinstance(inner, list) else ()
            )
            found.extend(((*path, part), deeper) for part, deeper in parts)
    paths += [path for path, _ in found if path and path not in paths]
    return paths


def _takes(schema: Mapping[str, Any], option: _Option) -> bool:
    if "enum" in schema:
        return option.given in schema["enum"]
    kind = schema.get("type")
    return option.kind == kind or (kind == "number" and option.kind == "integer")


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    for kind, name in ((str, "string"), (int, "integer"), (float, "number"), (list, "array"), (dict, "object")):
        if isinstance(value, kind):
            return name
    return "null"


def _rebuilt(made: Sequence[tuple[str, Any]], calls: frozenset[int], last: int) -> Program:
    order = sorted(calls)
    number = {index: place for place, index in enumerate(order)}

    def restore(value: Any) -> Any:
        if isinstance(value, _Use):
            return Reference(number[value.call], value.path)
        if isinstance(value, dict):
            return {name: restore(inner) for name, inner in value.items()}
        return [restore(inner) for inner in value] if type(value) is list else value

    return Program(tuple(Call(number[index], made[index][0], restore(made[index][1])) for index in order))


# Trees of values ------------------------------------------------------------------------------------------------------


def scalars(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The literal leaves with their paths."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from scalars(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from scalars(inner, (*path, index))
    elif not isinstance(value, Reference):
        yield path, value


def references(value: Any, path: Path = ()) -> Iterator[tuple[Path, Reference]]:
    """The references with their paths."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from references(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from references(inner, (*path, index))
    elif isinstance(value, Reference):
        yield path, value


def replaced(value: Any, change: Any) -> Any:
    """A copy with every reference changed."""
    if isinstance(value, Reference):
        return change(value)
    if isinstance(value, Mapping):
        return {name: replaced(inner, change) for name, inner in value.items()}
    if isinstance(value, list):
        return [replaced(inner, change) for inner in value]
    return value


def _put(value: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    head, *tail = path
    if isinstance(value, list):
        return [_put(inner, tuple(tail), new) if index == head else inner for index, inner in enumerate(value)]
    return {name: _put(inner, tuple(tail), new) if name == head else inner for name, inner in value.items()}


def _with(program: Program, number: int, path: Path, value: Any) -> Program:
    call = program.calls[number]
    changed = Call(call.id, call.tool, _put(dict(call.arguments), path, value))
    return evolve(program, calls=(*program.calls[:number], changed, *program.calls[number + 1 :]))


def _redirected(call: Call, from_id: int, value: Any) -> Call:
    return Call(call.id, call.tool, replaced(call.arguments, lambda r: value if r.call == from_id else r))
