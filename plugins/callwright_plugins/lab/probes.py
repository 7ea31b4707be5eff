"""Probes: programs made from a task's reference program, each right or wrong in one known way.

Whether a probe is what it claims to be is not assumed: it is executed, and kept only if its answer is right (for the
valid ones) or wrong (for the others). So a reordering that matters, or a filter that does not commute, never counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from attrs import evolve, field, frozen

from callwright.errors import UnknownName
from callwright.language.program import Call, Program, Reference, revive
from callwright.walk.execution import execute
from callwright.walk.tasks import Task

Kind = Literal["gold", "valid", "verbose", "shortcut", "wrong"]


@frozen
class Probe:
    """A named way to change a reference program. ``kind`` says what its reward should be.

    ``valid``: as right as the reference, and no longer; ``verbose``: right, with a call too many; ``shortcut``: right,
    but not made out of results.
    """

    name: str
    kind: Kind
    about: str
    make: Callable[[Task, Program, Pool], Program | None] = field(repr=False)


@frozen(eq=False)
class Pool:
    """Calls without references, and values of parameters, from the reference programs of all tasks that are probed."""

    calls: Sequence[Call]
    values: Mapping[tuple[str, str], Sequence[Any]]

    @classmethod
    def of(cls, programs: Sequence[Program]) -> Pool:
        """Gathered in the order of the programs."""
        calls: dict[str, Call] = {}
        values: dict[tuple[str, str], list[Any]] = {}
        for program in programs:
            for call in program.calls:
                if not call.located:
                    calls.setdefault(f"{call.tool} {sorted(call.arguments.items(), key=repr)!r}", call)
                for key, value in call.arguments.items():
                    known = values.setdefault((call.tool, key), [])
                    if isinstance(value, str | int | float) and value not in known:
                        known.append(value)
        return cls(list(calls.values()), values)


def _mapped(value: Any, ids: Mapping[int, int]) -> Any:
    if isinstance(value, Reference):
        return Reference(ids.get(value.call, value.call), value.path)
    if isinstance(value, Mapping):
        return {key: _mapped(inner, ids) for key, inner in value.items()}
    if isinstance(value, list):
        return [_mapped(inner, ids) for inner in value]
    return value


def in_order(program: Program, calls: Sequence[Call], ids: Sequence[int] | None = None) -> Program:
    """These calls in this order, numbered anew (0, 1, 2 … or ``ids``), references following their calls."""
    numbers = ids or range(len(calls))
    new = {call.id: number for call, number in zip(calls, numbers, strict=True)}
    renamed = tuple(Call(new[call.id], call.tool, _mapped(call.arguments, new)) for call in calls)
    return Program(renamed, program.returns, program.thought)


def _gold(task: Task, program: Program, pool: Pool) -> Program | None:
    return program


def _renumbered(task: Task, program: Program, pool: Pool) -> Program | None:
    return in_order(program, program.calls, [3 * index + 2 for index in range(len(program.calls))])


def _reordered(task: Task, program: Program, pool: Pool) -> Program | None:
    """The last possible call first, wherever the dependencies leave a choice; the last call stays the last."""
    count = len(program.calls)
    needs = {index: {earlier for earlier, later in program.edges if later == index} for index in range(count)}
    left, order = set(range(count)), []
    while left:
        ready = [index for index in left if not needs[index] & left]
        if program.returns == "one" and len(left) > 1:
            ready = [index for index in ready if index != count - 1]
        if not ready:  # everything waits for the last call, which is not so in a program that has an order
            return None
        order.append(max(ready))
        left.remove(order[-1])
    if order == list(range(count)):
        return None
    return in_order(program, [program.calls[index] for index in order])


def _key_order(task: Task, program: Program, pool: Pool) -> Program | None:
    if not any(len(call.arguments) > 1 for call in program.calls):
        return None
    return evolve(
        program,
        calls=tuple(evolve(call, arguments=dict(reversed(list(call.arguments.items())))) for call in program.calls),
    )


def _commuted(task: Task, program: Program, pool: Pool) -> Program | None:
    """Two neighbours of a chain exchanged, in tasks that say that their filters commute."""
    if task.structure not in ("conjunctive", "mixed"):
        return None
    for index in range(len(program.calls) - 1, 0, -1):
        first, second = program.calls[index - 1], program.calls[index]
        if len(first.located) != 1 or len(second.located) != 1 or second.located[0][1].call != first.id:
            continue
        (path, source), (other, _) = first.located[0], second.located[0]
        if len(path) != 1 or len(other) != 1 or second.located[0][1].path or source.path:
            continue
        key, other_key = str(path[0]), str(other[0])
        if key != other_key or first.tool == second.tool:  # the same table goes through both
            continue
        early = Call(first.id, second.tool, {**second.arguments, other_key: source})
        late = Call(second.id, first.tool, {**first.arguments, key: Reference(first.id)})
        calls = list(program.calls)
        calls[index - 1 : index + 1] = [early, late]
        return evolve(program, calls=tuple(calls))
    return None


def _fresh(task: Task, program: Program, pool: Pool) -> Call | None:
    """A call that the task offers and its program does not make."""
    used = {call.tool for call in program.calls}
    return next((call for call in pool.calls if call.tool in task.tools and call.tool not in used), None)


def _extra(task: Task, program: Program, pool: Pool) -> Program | None:
    call = _fresh(task, program, pool)
    if call is None or not program.calls:
        return None
    spare = Call(max(other.id for other in program.calls) + 1, call.tool, call.arguments)
    return in_order(program, (spare, *program.calls))


def _repeated(task: Task, program: Program, pool: Pool) -> Program | None:
    if not program.calls:
        return None
    first = program.calls[0]
    again = Call(max(call.id for call in program.calls) + 1, first.tool, first.arguments)
    return in_order(program, (first, again, *program.calls[1:]))


def _shortcut(task: Task, program: Program, pool: Pool) -> Program | None:
    """The last call alone, with what the others gave it written out, as a policy could have it by heart."""
    if program.returns != "one" or len(program.calls) < 2 or not program.calls[-1].located:
        return None
    trace = execute(program, task.environment, task.tools, scenario=task.scenario, seed=task.seed, opening=task.opening)
    if trace.infrastructure is not None or not trace.executed:
        return None
    last = trace.records[-1]
    return Program((Call(0, last.tool, dict(last.arguments)),), "one", program.thought)


def _nothing(task: Task, program: Program, pool: Pool) -> Program | None:
    return Program((), program.returns, program.thought) if program.calls else None


def _safe(task: Task, program: Program, pool: Pool) -> Program | None:
    call = _fresh(task, program, pool)
    if call is None and len(program.calls) > 1 and not program.calls[0].located:
        call = program.calls[0]
    return None if call is None else Program((Call(0, call.tool, call.arguments),), "one", program.thought)


def _unfinished(task: Task, program: Program, pool: Pool) -> Program | None:
    return evolve(program, calls=program.calls[:-1]) if len(program.calls) > 1 else None


def _skipped(task: Task, program: Program, pool: Pool) -> Program | None:
    """A call left out; what used its result uses what it was given."""
    for index, call in enumerate(program.calls[:-1]):
        if len(call.located) == 1 and not call.located[0][1].path:
            calls = [*program.calls[:index], *program.calls[index + 1 :]]
            passed = {call.id: call.located[0][1].call}
            joined = [Call(other.id, other.tool, _mapped(other.arguments, passed)) for other in calls]
            return in_order(program, joined)
    return None


def _changed(
    program: Program, change: Callable[[Call], Mapping[str, Any] | None], *, last: bool = False
) -> Program | None:
    positions = range(len(program.calls))
    for index in reversed(positions) if last else positions:
        arguments = change(program.calls[index])
        if arguments is not None:
            calls = list(program.calls)
            calls[index] = Call(calls[index].id, calls[index].tool, arguments)
            return evolve(program, calls=tuple(calls))
    return None


def _dangling(task: Task, program: Program, pool: Pool) -> Program | None:
    missing = max((call.id for call in program.calls), default=0) + 7

    def change(call: Call) -> Mapping[str, Any] | None:
        if not call.located:
            return None
        return {key: _mapped(value, {call.located[0][1].call: missing}) for key, value in call.arguments.items()}

    return _changed(program, change, last=True)


def _misnamed(task: Task, program: Program, pool: Pool) -> Program | None:
    def change(call: Call) -> Mapping[str, Any] | None:
        if not call.arguments:
            return None
        first = next(iter(call.arguments))
        return {(f"{key}_value" if key == first else key): value for key, value in call.arguments.items()}

    return _changed(program, change)


def _misvalued(task: Task, program: Program, pool: Pool) -> Program | None:
    """Another value of the same parameter that some task uses, or for numbers one more."""

    def change(call: Call) -> Mapping[str, Any] | None:
        for key, value in call.arguments.items():
            if isinstance(value, bool | Reference) or not isinstance(value, str | int | float):
                continue
            known = [other for other in pool.values.get((call.tool, key), ()) if other != value]
            same = [other for other in known if type(other) is type(value)]
            if same or not isinstance(value, str):
                return {**call.arguments, key: same[0] if same else value + 1}  # type: ignore[operator]
        return None

    return _changed(program, change, last=True)


PROBES: Final[tuple[Probe, ...]] = (
    Probe("gold", "gold", "the reference program", _gold),
    Probe("renumbered", "valid", "other ids", _renumbered),
    Probe("reordered", "valid", "independent calls in another order", _reordered),
    Probe("key order", "valid", "arguments in another order", _key_order),
    Probe("commuted", "valid", "two filters of a conjunction exchanged", _commuted),
    Probe("extra call", "verbose", "right, after a call that nobody needs", _extra),
    Probe("repeated call", "verbose", "right, with its first call made twice", _repeated),
    Probe("literal shortcut", "shortcut", "the last call alone, with literals for what the others give", _shortcut),
    Probe("no calls", "wrong", "calls nothing where calls are due", _nothing),
    Probe("one safe call", "wrong", "one call that executes and does not answer", _safe),
    Probe("last call dropped", "wrong", "stops one call early", _unfinished),
    Probe("step skipped", "wrong", "an inner call left out, the rest joined up", _skipped),
    Probe("dangling reference", "wrong", "refers to a call that is not there", _dangling),
    Probe("wrong parameter name", "wrong", "one parameter under another name", _misnamed),
    Probe("wrong value", "wrong", "one literal value exchanged", _misvalued),
)


def chosen(names: Sequence[str]) -> tuple[Probe, ...]:
    """The probes of these names, and the reference program beside them; all of them if there are no names.

    Raises :class:`callwright.errors.UnknownName`.
    """
    known = {probe.name: probe for probe in PROBES}
    for name in names:
        if name not in known:
            raise UnknownName("probe", name, known)
    return tuple(probe for probe in PROBES if not names or probe.name in names or probe.kind == "gold")


def variants(task: Task, pool: Pool, probes: Sequence[Probe] = PROBES) -> Iterator[tuple[Probe, Program]]:
    """Every one of these probes that can be made of a task's reference program."""
    assert task.program is not None
    gold = evolve(task.program, calls=tuple(evolve(c, arguments=revive(dict(c.arguments))) for c in task.program.calls))
    for probe in probes:
        made = probe.make(task, gold, pool)
        if made is not None:
            yield probe, made
