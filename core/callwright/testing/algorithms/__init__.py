"""Conformance checks for algorithms: what every trainer relies on, whatever the formula.

One at a time, so that a failing check has its own name::

    @pytest.mark.parametrize("check", ALGORITHM_CHECKS, ids=lambda check: check.__name__)
    def test_conformance(check):
        check(MyAlgorithm())

or all at once with :func:`check_algorithm`. Each check raises :class:`AssertionError` and states the likely cause. They
run on the CPU in float64, on a batch of 3 prompts with 2 completions of up to 7 tokens, and need torch
(``pip install 'callwright[train]'``). The last ones are about protocols that not every algorithm has (token-level
advantages, a critic, a KL weight that moves, an entropy bonus, groups of a smallest size, penalties that are placed),
and pass where it has not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from callwright.testing.algorithms.advantages import (
    check_advantages_follow_rewards,
    check_masked_samples,
    check_reward_shapes,
)
from callwright.testing.algorithms.capabilities import (
    check_adaptive_kl,
    check_critic,
    check_entropy,
    check_environment_tokens,
    check_group_baseline,
    check_placed_credit,
    check_token_advantages,
)
from callwright.testing.algorithms.losses import (
    check_empty,
    check_gradient_direction,
    check_kl,
    check_loss,
    check_micro_batches,
    check_padding_is_never_read,
    check_weighed_tokens,
)
from callwright.testing.algorithms.members import check_attributes, check_purity
from callwright.training.algorithm import Algorithm

Check = Callable[[Algorithm], None]

ALGORITHM_CHECKS: Final[tuple[Check, ...]] = (
    check_attributes,
    check_reward_shapes,
    check_advantages_follow_rewards,
    check_masked_samples,
    check_loss,
    check_gradient_direction,
    check_kl,
    check_weighed_tokens,
    check_padding_is_never_read,
    check_micro_batches,
    check_empty,
    check_purity,
    check_token_advantages,
    check_environment_tokens,
    check_critic,
    check_adaptive_kl,
    check_entropy,
    check_group_baseline,
    check_placed_credit,
)


def check_algorithm(algorithm: Algorithm) -> None:
    """Run every check of :data:`ALGORITHM_CHECKS`; raise an :class:`ExceptionGroup` of all that failed."""
    failures: list[Exception] = []
    for check in ALGORITHM_CHECKS:
        try:
            check(algorithm)
        except Exception as error:
            error.add_note(f"in {check.__name__}: {check.__doc__}")
            failures.append(error)
    if failures:
        raise ExceptionGroup(f"algorithm {getattr(algorithm, 'name', algorithm)!r} does not conform", failures)
