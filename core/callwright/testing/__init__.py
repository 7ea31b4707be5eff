"""The conformance kit: what every component of a kind is relied upon to do, as named checks with a cause in words.

All checks at once, raising an :class:`ExceptionGroup` of every failure::

    from callwright.testing import check_component
    check_component("parser", MyParser())

or one test for each, with what is known to fail::

    @parametrize_with_checks("reward component", expected_failures={"check_purity": "asks a judge model"})
    def test_conformance(check):
        check(MyReward())

Checks take the component and nothing else; what they may be told besides (``scenarios``, ``tasks``, ``parser``,
``again``, ``limit``) is given by name to :func:`checks_for` or :func:`check_component`. The kit needs neither pytest
nor hypothesis; where hypothesis is installed, parsers are fed its texts too.
"""

from __future__ import annotations

from callwright.testing.checks import (
    Check,
    CheckResult,
    CheckSkipped,
    check_algorithm,
    check_component,
    check_corpus,
    check_environment,
    check_parser,
    check_reward_component,
    check_reward_recipe,
    check_sampler,
    check_teacher,
    check_user,
    checks_for,
    parametrize_with_checks,
    run_checks,
)

__all__ = [
    "Check",
    "CheckResult",
    "CheckSkipped",
    "check_algorithm",
    "check_component",
    "check_corpus",
    "check_environment",
    "check_parser",
    "check_reward_component",
    "check_reward_recipe",
    "check_sampler",
    "check_teacher",
    "check_user",
    "checks_for",
    "parametrize_with_checks",
    "run_checks",
]
