"""Answers: whether what a program returned is what the task expects, compared by value."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from callwright.errors import Abstention
from callwright.walk.tasks import Answer, Instance, Task
from callwright.walk.trace import Trace

if TYPE_CHECKING:
    from callwright.walk.attempt import Attempt


@frozen
class Tolerance:
    """Numbers are equal within ``absolute + relative * |expected|``, as in :func:`math.isclose` with both given."""

    relative: float = 1e-9
    absolute: float = 1e-9


DEFAULT_TOLERANCE: Final = Tolerance()


def values_equal(expected: Any, found: Any, tolerance: Tolerance = DEFAULT_TOLERANCE) -> bool:
    """Equality of JSON values: key order does not matter, list order does, ``True`` is not ``1``, ``1`` is ``1.0``."""
    if expected is found:
        return True
    kind = type(expected)
    if kind is str or expected is None:
        return type(found) is kind and bool(expected == found)
    if kind is bool or isinstance(found, bool):
        return type(found) is kind and bool(expected == found)
    if kind is int or kind is float:
        if not isinstance(found, int | float):
            return False
        if expected == found:
            return True
        if kind is int and isinstance(found, int):
            return False
        try:
            allowed = tolerance.absolute + tolerance.relative * abs(expected)
            return allowed != math.inf and bool(abs(expected - found) <= allowed)
        except OverflowError:  # an integer beyond the range of floats
            return False
    if isinstance(expected, dict):
        if not isinstance(found, dict) or len(expected) != len(found):
            return False
        for key, value in expected.items():
            if key not in found or not values_equal(value, found[key], tolerance):
                return False
        return True
    if isinstance(expected, list | tuple):
        if not isinstance(found, list | tuple) or len(expected) != len(found):
            return False
        return all(values_equal(mine, theirs, tolerance) for mine, theirs in zip(expected, found, strict=True))
    return bool(expected == found)


def answers_match(answer: Answer, returned: tuple[Any, ...], tolerance: Tolerance = DEFAULT_TOLERANCE) -> bool:
    """Whether the returned values are the expected multiset, or another one that is equally right.

    Ids and the order of calls play no part. Matching takes each expected value's first equal partner: within a
    tolerance, equality is transitive for all values that tools produce in practice, so no better assignment is
    searched for. Where members are open (``answer.open``) it need not be, and the best one is.
    """
    if answer.others and any(_matches(answer, values, returned, tolerance) for values in answer.others):
        return True
    return _matches(answer, answer.values, returned, tolerance)


def _matches(answer: Answer, values: tuple[Any, ...], returned: tuple[Any, ...], tolerance: Tolerance) -> bool:
    if len(values) != len(returned):
        return False
    try:
        if answer.open:
            return _all_paired(answer, values, returned, tolerance)
        if len(returned) == 1:
            return values_equal(values[0], returned[0], tolerance)
        return _same_multiset(values, returned, tolerance)
    except RecursionError:  # results nested in results; no expected answer is nested like that
        return False


def value_counts(answer: Answer, expected: Any, found: Any) -> Any:
    """What of a returned value counts beside an expected one: without further members of the answer's open objects."""
    if not answer.open or not isinstance(expected, dict) or not isinstance(found, dict):
        return found
    return {
        key: _counting(expected[key], value) if key in answer.open and key in expected else value
        for key, value in found.items()
    }


def _counting(expected: Any, found: Any) -> Any:
    if not isinstance(expected, dict) or not isinstance(found, dict):
        return found
    return {key: value for key, value in found.items() if key in expected}


def _all_paired(answer: Answer, values: tuple[Any, ...], returned: tuple[Any, ...], tolerance: Tolerance) -> bool:
    """Whether each expected value has a returned one of its own, by augmenting paths (Kuhn's algorithm)."""
    fits = [
        [
            index
            for index, found in enumerate(returned)
            if values_equal(expected, value_counts(answer, expected, found), tolerance)
        ]
        for expected in values
    ]
    taken: dict[int, int] = {}

    def place(expected: int, tried: set[int]) -> bool:
        for index in fits[expected]:
            if index not in tried:
                tried.add(index)
                if index not in taken or place(taken[index], tried):
                    taken[index] = expected
                    return True
        return False

    return all(place(expected, set()) for expected in range(len(fits)))


def answer_collected(task: Task, trace: Trace) -> bool:
    """Whether a task that wants all results has them from several turns, each of which called some of what it needs.

    Raises :class:`callwright.errors.Abstention` as :attr:`callwright.walk.Trace.collected` does.
    """
    collected = trace.collected if task.returns == "all" else None
    return collected is not None and answers_match(task.answer, collected)


def wrong_instance(attempt: Attempt) -> Instance | None:
    """The first further world of the task in which the attempt's program does not reach the answer there.

    Only a program that is written at once can be right in several worlds: what is called in later turns was chosen by
    what the first world returned, so that ``None`` is all that is said of these. Raises
    :class:`callwright.errors.Abstention` where the machinery failed in another world.
    """
    task, program = attempt.task, attempt.program
    if not task.instances or program is None or len(attempt.parts) > 1 or attempt.is_told:
        return None
    from callwright.walk.conditions import rules_under
    from callwright.walk.execution import STRICT, execute

    conditions = attempt.conditions
    rules = rules_under(STRICT, conditions.time_limit, conditions.isolation)
    for instance in task.instances:
        trace = execute(
            program,
            task.environment,
            task.tools,
            scenario=instance.scenario,
            seed=instance.seed,
            rules=rules,
            clock=task.clock or conditions.clock,
            opening=task.opening,
        )
        if trace.masked is not None:
            raise Abstention(f"in the world {instance.scenario!r}: {trace.masked}")
        if not (trace.answer_executed and answers_match(instance.answer, trace.returned)):
            return instance
    return None


def _same_multiset(expected_values: tuple[Any, ...], returned: tuple[Any, ...], tolerance: Tolerance) -> bool:
    left = list(returned)
    for expected in expected_values:
        for index, found in enumerate(left):
            if values_equal(expected, found, tolerance):
                del left[index]
                break
        else:
            return False
    return True


def first_difference(expected: Any, found: Any, path: str = "") -> tuple[str, Any, Any] | None:
    """The first place at which two JSON values differ: ``(path, expected, found)``; for evidence."""
    if values_equal(expected, found):
        return None
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in expected:
            inner = f"{path}.{key}" if path else str(key)
            if key not in found:
                return inner, expected[key], "nothing"
            deeper = first_difference(expected[key], found[key], inner)
            if deeper is not None:
                return deeper
        surplus = next((key for key in found if key not in expected), None)
        if surplus is not None:
            return f"{path}.{surplus}" if path else str(surplus), "nothing", found[surplus]
    if isinstance(expected, list) and isinstance(found, list):
        for index, (mine, theirs) in enumerate(zip(expected, found, strict=False)):
            deeper = first_difference(mine, theirs, f"{path}[{index}]")
            if deeper is not None:
                return deeper
        return path, f"{len(expected)} items", f"{len(found)} items"
    return path, expected, found
