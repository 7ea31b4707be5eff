"""Checks by kind, one at a time or all at once."""

from __future__ import annotations

import importlib
import inspect
import time
import unittest
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

from attrs import evolve, field, frozen

from callwright.capability.listed import CAPABILITIES, misspelt
from callwright.conformance import ExpectsFailures
from callwright.errors import UnknownName, UsageError
from callwright.plugins import KINDS
from callwright.testing.services.network import checked_as
from callwright.testing.services.progress import begin_check

#: Where the checks of a kind are: ``module:tuple of functions``.
_PLACES: Final[Mapping[str, str]] = {
    "parser": "callwright.testing.parsers:PARSER_CHECKS",
    "toolset": "callwright.testing.others:TOOLSET_CHECKS",
    "environment": "callwright.testing.environments:ENVIRONMENT_CHECKS",
    "reward component": "callwright.testing.rewards:REWARD_COMPONENT_CHECKS",
    "reward recipe": "callwright.testing.rewards:REWARD_RECIPE_CHECKS",
    "sampler": "callwright.testing.samplers:SAMPLER_CHECKS",
    "algorithm": "callwright.testing.algorithms:ALGORITHM_CHECKS",
    "trainer": "callwright.testing.running.trainers:TRAINER_CHECKS",
    "corpus": "callwright.testing.corpora:CORPUS_CHECKS",
    "benchmark": "callwright.testing.measuring.benchmarks:BENCHMARK_CHECKS",
    "synthesizer": "callwright.testing.synthesis.synthesizers:SYNTHESIZER_CHECKS",
    "teacher": "callwright.testing.services.teachers:TEACHER_CHECKS",
    "user": "callwright.testing.services.users:USER_CHECKS",
    "model check": "callwright.testing.others:MODEL_CHECK_CHECKS",
    "tracker": "callwright.testing.services.trackers:TRACKER_CHECKS",
    "framework": "callwright.testing.services.logs:FRAMEWORK_CHECKS",
    "log format": "callwright.testing.services.logs:LOG_FORMAT_CHECKS",
    "command": "callwright.testing.running.commands:COMMAND_CHECKS",
}


class CheckSkipped(unittest.SkipTest):
    """A check was not made, or failed as the component declares; the message says why. pytest shows it as a skip."""


@frozen
class Check:
    """One named check. Called with a component it returns nothing or raises, in words, :class:`AssertionError`.

    A component that declares :class:`callwright.conformance.NeedsNetwork` is replaced by its stand-in where the check
    would ask its service; without one, and where it declares that the check fails, :class:`CheckSkipped` is raised.
    """

    name: str
    summary: str
    function: Callable[..., None] = field(repr=False)

    @property
    def __name__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name

    def __call__(self, component: Any) -> None:
        known = component.expected_failures.get(self.name) if isinstance(component, ExpectsFailures) else None
        placed = checked_as(component, self.name)
        if placed is None:
            raise CheckSkipped(f"{self.name} would ask a live service, and the component names no stand-in for it")
        if known is None:
            self.function(placed)
            return
        try:
            self.function(placed)
        except AssertionError as error:
            raise CheckSkipped(f"{self.name} fails, as the component declares: {known}") from error
        raise AssertionError(f"{self.name} passes, though the component declares that it fails: {known}")


def checks_for(kind: str, **context: Any) -> list[Check]:
    """The checks of a kind of component. ``context`` goes to those that take an argument of its name.

    Raises :class:`callwright.errors.UnknownName` for a kind that is none or a name that no check of the kind takes.
    """
    if kind not in KINDS:
        raise UnknownName("kind of component", kind, KINDS)
    module, _, name = _PLACES[kind].partition(":")
    functions: tuple[Callable[..., None], ...] = getattr(importlib.import_module(module), name)
    if kind in CAPABILITIES:
        functions = (*functions, _spelt(kind))
    taken = {function: list(inspect.signature(function).parameters)[1:] for function in functions}
    known = sorted({name for names in taken.values() for name in names})
    for given in context:
        if given not in known:
            raise UnknownName(f"argument of the {kind} checks", given, known)
    return [
        Check(
            function.__name__,
            (function.__doc__ or "").strip().partition("\n")[0],
            partial(function, **{name: context[name] for name in taken[function] if name in context}),
        )
        for function in functions
    ]


def _spelt(kind: str) -> Callable[..., None]:
    def check_capabilities(component: Any) -> None:
        """No public member is nearly one of a capability of the kind, so that nothing is declared in vain."""
        misspelt(kind, component)

    def check_world(component: Any, scenarios: Sequence[str] = ("",)) -> None:
        """No public member is nearly one of a capability of the kind, so that nothing is declared in vain."""
        misspelt(kind, component, next(iter(scenarios), ""))

    chosen = check_world if kind == "environment" else check_capabilities
    chosen.__name__ = "check_capabilities"
    return chosen


@frozen
class CheckResult:
    """What one check of a component came to, in ``seconds`` of processor time.

    ``steady`` is whether it came to the same when it was made again; ``None`` if it was not.
    """

    name: str
    level: Literal["ok", "skipped", "failed"]
    message: str = ""
    seconds: float = 0.0
    steady: bool | None = None


def run_checks(
    kind: str,
    component: Any,
    /,
    *,
    expected_failures: Mapping[str, str] | None = None,
    again: bool = False,
    **context: Any,
) -> list[CheckResult]:
    """Every check of a kind, made one after the other, and what each came to.

    ``expected_failures`` as in :func:`check_component`: such a one is ``skipped`` with its reason, and ``failed`` if it
    passes. With ``again`` each is made twice; a check that comes to something else then is ``failed``.
    """
    checks = checks_for(kind, **context)
    expected = _known_failures(checks, expected_failures)
    found = []
    for check in checks:
        one = _result(check, component, expected.get(check.name))
        if again:
            other = _result(check, component, expected.get(check.name))
            steady = (one.level, one.message) == (other.level, other.message)
            one = evolve(one, steady=steady, seconds=one.seconds + other.seconds)
            if not steady:
                told = f"made again it is {other.level}: {other.message}"
                one = evolve(one, level="failed", message=f"{one.message or one.level}; {told}")
        found.append(one)
    return found


def _result(check: Check, component: Any, expected: str | None) -> CheckResult:
    begun = time.process_time()
    level: Literal["ok", "skipped", "failed"] = "ok"
    message = ""
    begin_check(check.name)
    try:
        check(component)
    except CheckSkipped as why:
        level, message = "skipped", str(why)
    except Exception as error:
        level, message = "failed", f"{type(error).__name__}: {error}"
        if expected is not None:
            level, message = "skipped", f"{check.name} fails, as is expected: {expected}"
    else:
        if expected is not None:
            level, message = "failed", f"{check.name} passes, though it is expected to fail: {expected}"
    return CheckResult(check.name, level, message, time.process_time() - begun)


def check_component(
    kind: str, component: Any, /, *, expected_failures: Mapping[str, str] | None = None, **context: Any
) -> tuple[str, ...]:
    """Run every check of a kind. Returns why checks were skipped, a sentence each; mostly nothing is.

    Raises an :class:`ExceptionGroup` of every failure, each with a note that names the check. ``expected_failures``
    (check name -> reason) are run too: one that no longer fails is a failure, so that the list stays true. A component
    may declare its own (:mod:`callwright.conformance`).
    """
    checks = checks_for(kind, **context)
    expected = _known_failures(checks, expected_failures)
    failures: list[Exception] = []
    skipped: list[str] = []
    for check in checks:
        try:
            check(component)
        except CheckSkipped as why:
            skipped.append(str(why))
        except Exception as error:
            if check.name not in expected:
                error.add_note(f"in {check.name}: {check.summary}")
                failures.append(error)
        else:
            if check.name in expected:
                reason = expected[check.name]
                failures.append(AssertionError(f"{check.name} passes, though it is expected to fail: {reason}"))
    if failures:
        raise ExceptionGroup(f"{kind} {getattr(component, 'name', component)!r} does not conform", failures)
    return tuple(skipped)


def parametrize_with_checks(kind: str, *, expected_failures: Mapping[str, str] | None = None, **context: Any) -> Any:
    """A decorator of pytest that runs a test once for each check of a kind, as its argument ``check``.

    The checks' names are the ids of the tests. ``expected_failures`` (check name -> reason) are marked ``xfail``,
    strictly.
    """
    import pytest

    checks = checks_for(kind, **context)
    expected = _known_failures(checks, expected_failures)
    return pytest.mark.parametrize(
        "check",
        [
            pytest.param(
                check,
                id=check.name,
                marks=[pytest.mark.xfail(reason=expected[check.name], strict=True)] if check.name in expected else [],
            )
            for check in checks
        ],
    )


def _known_failures(checks: list[Check], expected: Mapping[str, str] | None) -> Mapping[str, str]:
    names = [check.name for check in checks]
    for name, reason in (expected or {}).items():
        if name not in names:
            raise UnknownName("check", name, names)
        if not reason:
            raise UsageError(f"the expected failure of {name} needs a reason")
    return expected or {}


def check_parser(parser: Any, **context: Any) -> None:
    """Every check of a :class:`callwright.Parser`."""
    check_component("parser", parser, **context)


def check_reward_component(component: Any, **context: Any) -> None:
    """Every check of a :class:`callwright.RewardComponent`. ``tasks`` and ``parser``: what it is tried on."""
    check_component("reward component", component, **context)


def check_reward_recipe(recipe: Any, **context: Any) -> None:
    """Every check of a :class:`callwright.RewardRecipe`. ``tasks`` and ``parser``: what it is tried on."""
    check_component("reward recipe", recipe, **context)


def check_environment(environment: Any, **context: Any) -> None:
    """Every check of a :class:`callwright.Environment`. ``scenarios``: to open it with; ``calls``: to try in it."""
    check_component("environment", environment, **context)


def check_corpus(corpus: Any, **context: Any) -> None:
    """Every check of a :class:`callwright.Corpus`. ``again``: a second instance; ``limit``: tasks per split."""
    check_component("corpus", corpus, **context)


def check_sampler(sampler: Any, **context: Any) -> None:
    """Every check of a :class:`callwright.Sampler`. ``tasks``: what it is asked about."""
    check_component("sampler", sampler, **context)


def check_teacher(teacher: Any, **context: Any) -> None:
    """Every check of a :class:`callwright.training.Teacher`."""
    check_component("teacher", teacher, **context)


def check_user(user: Any, **context: Any) -> None:
    """Every check of a :class:`callwright.walk.UserKind`."""
    check_component("user", user, **context)


def check_algorithm(algorithm: Any, **context: Any) -> None:
    """Every check of a :class:`callwright.Algorithm`; needs torch."""
    check_component("algorithm", algorithm, **context)
