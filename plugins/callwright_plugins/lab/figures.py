"""Figures: what the ledger says of each recipe, as one JSON object that the tables, the page and the warnings read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from callwright.training.agreement import truth_agreement
from callwright_plugins.lab.agreement import compare, compare_within
from callwright_plugins.lab.ledger import STAGES, Account, Ledger
from callwright_plugins.lab.probing import Probing

#: Totals that differ by less are equal; sums of the same scores in another order differ in the last bits.
SAME: Final = 1e-9
BINS: Final = 24
#: The ranking that knows only whether the answer is right.
TRUTH: Final = "right answer"


def figures(ledger: Ledger, probing: Probing) -> dict[str, Any]:
    """Everything that was measured; shares are in [0, 1], rewards on the scale of their recipe."""
    groups = ledger.members()
    ranks = {account.name: [round(total, 9) for total in account.totals] for account in ledger.accounts}
    ranks[TRUTH] = [float(stage == "right") for stage in ledger.stages]
    count = len(ledger.stages)
    return {
        "attempts": count,
        "masked": ledger.masked,
        "tasks": len(ledger.tasks),
        "groups": {"count": len(groups), "of_one": len(set(ledger.groups)) - len(groups)},
        "right": ranks[TRUTH].count(1.0) / count if count else None,
        "recipes": {
            account.name: {
                **_distribution(account, probing),
                "groups": _signal(groups, account),
                "components": _components(account),
                **_judged(ledger.stages, account),
                "stages": _by_stage(ledger.stages, account),
            }
            for account in ledger.accounts
        },
        "skipped": ledger.skipped,
        "stages": {stage: ledger.stages.count(stage) for stage in STAGES if stage in set(ledger.stages)},
        "agreement": _agreement(groups, ranks),
        "probes": probing.to_json(),
    }


def _distribution(account: Account, probing: Probing) -> dict[str, Any]:
    totals, low, high = account.totals, account.recipe.low, account.recipe.high
    count = len(totals)
    probed = [total for probe in probing.rewards.get(account.name, {}).values() for total in probe.values()]
    least = min(min(totals, default=high), min(probed, default=high))
    # Prove's penalty has no practical bound; a histogram from the least possible total would be one bar.
    first = low if high - low <= 2 * (high - least) else least
    width = high - first or 1.0
    bins = [0] * BINS
    for total in totals:
        bins[min(BINS - 1, max(0, int((total - first) / width * BINS)))] += 1
    mean = math.fsum(totals) / count if count else None
    return {
        "low": low,
        "high": high,
        "mean": mean,
        "std": _deviation(totals) if count else None,
        "at_low": sum(total <= low + SAME for total in totals) / count if count else None,
        "at_high": sum(total >= high - SAME for total in totals) / count if count else None,
        "least": least,
        "histogram": {"from": first, "to": high, "counts": bins},
    }


def _deviation(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))


def _signal(groups: Sequence[Sequence[int]], account: Account) -> dict[str, Any]:
    """How much rewards differ inside of groups; equal ones give GRPO an advantage of 0 throughout."""
    flat, spreads = 0, []
    for group in groups:
        totals = [account.totals[position] for position in group]
        if max(totals) - min(totals) <= SAME:
            flat += 1
            spreads.append(0.0)
        else:
            spreads.append(_deviation(totals))
    count = len(groups)
    return {
        "without_signal": flat / count if count else None,
        "spread": math.fsum(spreads) / count if count else None,
        "at_high": sum(all(account.totals[i] >= account.recipe.high - SAME for i in group) for group in groups) / count
        if count
        else None,
    }


def _components(account: Account) -> dict[str, Any]:
    """Per term its mean and share of the variance, cov(contribution, total) / var(total), which sum to 1."""
    totals, count = account.totals, len(account.totals)
    mean = math.fsum(totals) / count if count else 0.0
    variance = math.fsum((total - mean) ** 2 for total in totals)
    found = {}
    for name, (low, high) in account.ranges.items():
        values = account.contributions[name]
        own = math.fsum(values) / count if count else 0.0
        shared = math.fsum((v - own) * (t - mean) for v, t in zip(values, totals, strict=True))
        found[name] = {
            "mean": own if count else None,
            "low": low,
            "high": high,
            "variance_share": shared / variance if variance > SAME * max(count, 1) else None,
            "full": account.full[name] / count if count else None,
            "closed": account.closed[name] / count if count else None,
        }
    return found


def _judged(stages: Sequence[str], account: Account) -> dict[str, Any]:
    """Per term that waits for somebody's verdict, how well that tells right answers from wrong ones; often nothing.

    Only samples that it was asked about count. The threshold is the middle of its range.
    """
    components = {term.name: term.component for term in account.recipe.terms}
    found = {}
    for name, said in account.said.items():
        middle = (components[name].low + components[name].high) / 2
        truths = [stages[position] == "right" for position, _ in said]
        found[name] = truth_agreement([value for _, value in said], truths, middle).to_json()
    return {"judged": found} if found else {}


def _by_stage(stages: Sequence[str], account: Account) -> dict[str, float]:
    totals: dict[str, list[float]] = {}
    for stage, total in zip(stages, account.totals, strict=True):
        totals.setdefault(stage, []).append(total)
    return {stage: math.fsum(totals[stage]) / len(totals[stage]) for stage in STAGES if stage in totals}


def _agreement(groups: Sequence[Sequence[int]], ranks: dict[str, list[float]]) -> list[dict[str, Any]]:
    names = list(ranks)
    found = []
    for index, first in enumerate(names):
        for second in names[index + 1 :]:
            within = compare_within(groups, ranks[first], ranks[second])
            found.append(
                {
                    "recipes": [first, second],
                    "tau": compare(ranks[first], ranks[second]).tau,
                    "tau_within": within.tau,
                    "opposite_within": within.opposite,
                }
            )
    return found
