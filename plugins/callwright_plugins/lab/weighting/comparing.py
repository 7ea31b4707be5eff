"""Comparing: what each scheme would teach, beside the reference on the same attempts.

Everything is counted over cells, attempts that no scheme can tell apart, and over pairs of cells in one group; so a
scheme costs as much as there are different scores, whatever the number of attempts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import define, frozen

from callwright_plugins.lab.agreement import Pairs
from callwright_plugins.lab.weighting.recording import Recording, total
from callwright_plugins.lab.weighting.schemes import Scheme

#: Shares of the maximum that differ by less are equal.
SAME: Final = 1e-9
#: Of a group with more cells than this, so many, evenly drawn, make its pairs.
_MOST_CELLS: Final = 256
_EXAMPLES: Final = 3
_CHANGES: Final = 12

Pair = tuple[int, int]


@define(eq=False)
class PairCounts:
    """How many pairs of attempts at one task are of two cells, and a group that has such a pair."""

    counts: Counter[Pair]
    place: dict[Pair, int]
    thinned: bool = False


@frozen
class Seen:
    """A scheme's totals, a number a cell: as shares of the most that it gives, and to nine digits for ranking."""

    shares: Sequence[float]
    ranks: Sequence[float]


def compare_schemes(recording: Recording, advance: Callable[[], object] = lambda: None) -> dict[str, Any]:
    """The figures of every scheme. ``advance`` hears of each that is done."""
    schemes = recording.schemes
    pairs = count_pairs(recording.groups)
    cells = Counter(recording.cells)
    reference = see(schemes.reference, recording)
    rows = []
    for scheme in schemes.all:
        seen = see(scheme, recording)
        rows.append(
            {
                "label": scheme.label,
                "changes": dict(scheme.changes),
                "penalty": scheme.penalty,
                "weights": {term.name: term.weight for term in scheme.recipe.terms},
                "most": scheme.recipe.high,
                **_distribution(seen, cells),
                **_groups(seen, reference, recording.groups),
                **_pairs(seen, reference, pairs),
                **_kinds(seen, reference, cells, pairs, recording),
                "examples": _examples(seen, reference, pairs, recording) if scheme.changes else [],
            }
        )
        advance()
    return {
        "recipe": schemes.name,
        "attempts": len(recording.cells),
        "groups": sum(sum(counts.values()) > 1 for counts in recording.groups),
        "pairs": sum(pairs.counts.values()),
        "thinned": pairs.thinned,
        "combinations_left_out": schemes.left_out,
        "schemes": rows,
    }


def see(scheme: Scheme, recording: Recording) -> Seen:
    """The total of each cell under a scheme."""
    most = scheme.recipe.high if scheme.recipe.high > 0 else 1.0
    shares = [total(scheme.recipe, cell.values[scheme.penalty]) / most for cell in recording.known]
    return Seen(shares, [round(share, 9) for share in shares])


def count_pairs(groups: Sequence[Mapping[int, int]]) -> PairCounts:
    """Pairs of different cells, the smaller number first, over all groups."""
    found = PairCounts(Counter(), {})
    for place, counts in enumerate(groups):
        numbers = sorted(counts)
        if len(numbers) > _MOST_CELLS:
            found.thinned = True
            numbers = [numbers[index * len(numbers) // _MOST_CELLS] for index in range(_MOST_CELLS)]
        for index, first in enumerate(numbers):
            for second in numbers[index + 1 :]:
                pair = (first, second)
                found.counts[pair] += counts[first] * counts[second]
                found.place.setdefault(pair, place)
    return found


def _distribution(seen: Seen, cells: Mapping[int, int]) -> dict[str, Any]:
    count = sum(cells.values())
    mean = math.fsum(seen.shares[cell] * n for cell, n in cells.items()) / count
    square = math.fsum((seen.shares[cell] - mean) ** 2 * n for cell, n in cells.items()) / count
    return {"mean": mean, "std": math.sqrt(square)}


def _groups(seen: Seen, reference: Seen, groups: Sequence[Mapping[int, int]]) -> dict[str, Any]:
    """Groups with a signal, the spread inside of them, and attempts whose advantage has another sign."""
    looked = with_signal = attempts = flipped = lost = gained = 0
    spreads = []
    for counts in groups:
        size = sum(counts.values())
        if size < 2:
            continue
        looked += 1
        attempts += size
        shares = [seen.shares[cell] for cell in counts]
        with_signal += max(shares) - min(shares) > SAME
        mean = math.fsum(seen.shares[cell] * n for cell, n in counts.items()) / size
        before = math.fsum(reference.shares[cell] * n for cell, n in counts.items()) / size
        spreads.append(math.sqrt(math.fsum((seen.shares[cell] - mean) ** 2 * n for cell, n in counts.items()) / size))
        for cell, n in counts.items():
            now, then = _sign(seen.shares[cell] - mean), _sign(reference.shares[cell] - before)
            flipped += n * (now * then < 0)
            lost += n * (then != 0 and now == 0)
            gained += n * (then == 0 and now != 0)
    return {
        "with_signal": with_signal / looked if looked else None,
        "spread": math.fsum(spreads) / looked if looked else None,
        "advantage_flips": flipped / attempts if attempts else None,
        "advantage_lost": lost / attempts if attempts else None,
        "advantage_gained": gained / attempts if attempts else None,
    }


def _sign(difference: float) -> int:
    return 0 if abs(difference) <= SAME else 1 if difference > 0 else -1


def _pairs(seen: Seen, reference: Seen, pairs: PairCounts) -> dict[str, Any]:
    """Rank agreement with the reference over the pairs of attempts at one task: tau-b, and what became of the pairs."""
    counted, then, now = Pairs(), reference.ranks, seen.ranks
    for (first, second), n in pairs.counts.items():
        before, after = then[first] - then[second], now[first] - now[second]
        counted.untied_x += n * (before != 0)
        counted.untied_y += n * (after != 0)
        if before and after:
            if (before > 0) == (after > 0):
                counted.concordant += n
            else:
                counted.discordant += n
    ranked = counted.untied_x
    kept = counted.concordant + counted.discordant
    return {
        "tau": counted.tau,
        "flipped": counted.discordant / ranked if ranked else None,
        "tied": (ranked - kept) / ranked if ranked else None,
        "newly_ranked": counted.untied_y - kept,
    }


def _kinds(
    seen: Seen, reference: Seen, cells: Mapping[int, int], pairs: PairCounts, recording: Recording
) -> dict[str, Any]:
    """Mean share by kind, kinds whose means change places, and of which kinds the pairs are that flip."""
    counts: Counter[str] = Counter()
    sums: dict[str, list[list[float]]] = {}
    for cell, n in cells.items():
        kind = recording.known[cell].kind
        counts[kind] += n
        before, after = sums.setdefault(kind, [[], []])
        before.append(reference.shares[cell] * n)
        after.append(seen.shares[cell] * n)
    means = {kind: tuple(math.fsum(part) / counts[kind] for part in both) for kind, both in sums.items()}
    changed = [
        {"now_above": upper, "now_below": lower, "before": [then_upper, then_lower], "after": [upper_now, lower_now]}
        for upper, (then_upper, upper_now) in sorted(means.items())
        for lower, (then_lower, lower_now) in sorted(means.items())
        if upper_now > lower_now + SAME and then_upper < then_lower - SAME
    ]
    flips: Counter[tuple[str, str]] = Counter()
    for (first, second), n in pairs.counts.items():
        upper, lower = (first, second) if seen.ranks[first] > seen.ranks[second] else (second, first)
        if seen.ranks[upper] > seen.ranks[lower] and reference.ranks[upper] < reference.ranks[lower]:
            flips[recording.known[upper].kind, recording.known[lower].kind] += n
    return {
        "kinds": {kind: {"n": counts[kind], "mean": means[kind][1]} for kind in sorted(means)},
        "changed_places": changed[:_CHANGES],
        "flips": [
            {"now_above": upper, "now_below": lower, "pairs": n}
            for (upper, lower), n in sorted(flips.items(), key=lambda one: (-one[1], one[0]))[:_CHANGES]
        ],
    }


def _examples(seen: Seen, reference: Seen, pairs: PairCounts, recording: Recording) -> list[dict[str, Any]]:
    """Pairs of attempts at one task whose order flips, the commonest of each pair of kinds."""
    flips: dict[tuple[str, str], tuple[int, Pair]] = {}
    for (first, second), n in pairs.counts.items():
        upper, lower = (first, second) if seen.ranks[first] > seen.ranks[second] else (second, first)
        if seen.ranks[upper] > seen.ranks[lower] and reference.ranks[upper] < reference.ranks[lower]:
            kinds = (recording.known[upper].kind, recording.known[lower].kind)
            if kinds not in flips or n > flips[kinds][0]:
                flips[kinds] = (n, (upper, lower))
    found = []
    for n, (upper, lower) in sorted(flips.values(), key=lambda one: (-one[0], one[1]))[:_EXAMPLES]:
        place = pairs.place[min(upper, lower), max(upper, lower)]
        ends = []
        for cell in (upper, lower):
            said = recording.said[place, cell]
            ends.append(
                {
                    "id": said.row_id,
                    "kind": recording.known[cell].kind,
                    "text": said.text,
                    "before": reference.shares[cell],
                    "after": seen.shares[cell],
                }
            )
        found.append(
            {"task": recording.said[place, upper].task, "pairs": n, "now_above": ends[0], "now_below": ends[1]}
        )
    return found
