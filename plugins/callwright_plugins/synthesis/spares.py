"""Spares: conversations that are planned beyond what is asked for, and take the place of those that are rejected.

So that as many tasks are made as are asked for, whatever the gates and the comparing of all take out. Those that are
not needed are rejected, too, with that as their reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from math import ceil
from typing import Any, Final

from attrs import define

from callwright.training.synthesis.units import Made, Rejected
from callwright_plugins.synthesis.gates.comparing import Compared, compared

#: Facts of accepted units: whether it is a spare one, how many are asked for of its environment, how many of these are
#: of its kind, and its kind.
SPARE: Final = "spare"
ASKED: Final = "asked"
OF_KIND: Final = "of_kind"
KIND: Final = "kind"


def spares_for(count: int, share: float) -> int:
    """How many spares are planned beside ``count`` conversations."""
    return ceil(count * share)


def spare_places(kinds: Sequence[Any], asked: int) -> frozenset[int]:
    """The places of the spares: what is planned beyond ``asked``, of each kind its part (largest remainders), the last
    ones of each.
    """
    beyond = len(kinds) - asked
    if beyond <= 0:
        return frozenset()
    counts = Counter(kinds)
    exact = {kind: beyond * number / len(kinds) for kind, number in counts.items()}
    parts = {kind: int(number) for kind, number in exact.items()}
    for kind in sorted(exact, key=lambda one: parts[one] - exact[one])[: beyond - sum(parts.values())]:
        parts[kind] += 1
    found: list[int] = []
    for place in reversed(range(len(kinds))):
        if parts[kinds[place]]:
            parts[kinds[place]] -= 1
            found.append(place)
    return frozenset(found)


@define
class _One:
    """A unit that was accepted, as far as spares are concerned."""

    task: Compared
    environment: int
    kind: str
    spare: bool
    #: How many are asked for of its environment, and of its kind there.
    asked: int
    of_kind: int

    @classmethod
    def of(cls, made: Made) -> _One:
        facts = made.accepted.facts
        return cls(
            Compared.of_row(made.accepted.row),
            made.environment,
            str(facts.get(KIND, "")),
            facts.get(SPARE) is True,
            *(facts.get(name, 0) for name in (ASKED, OF_KIND)),
        )


def compare_with_spares(made: Iterable[Made]) -> list[Rejected | None]:
    """Which of the accepted units go: near-duplicates of earlier ones, and spares that nothing is missing for.

    Near-duplicates are told among those that stay: a spare one that is not needed is nobody's. What is missing in an
    environment is made up for by its spares in the order of the plan, by one of the same kind where there is one; and
    what it has no spares for by those of the others, as evenly as they go.
    """
    ones = [_One.of(one) for one in made]
    taken = [not one.spare for one in ones]
    gone: dict[int, Rejected] = {}
    while True:
        places = [place for place, one in enumerate(taken) if one and place not in gone]
        verdicts = compared([ones[place].task for place in places])
        gone |= {place: said for place, said in zip(places, verdicts, strict=True) if said is not None}
        more = _needed(ones, taken, gone)
        if not more:
            break
        for place in more:
            taken[place] = True
    unused = Rejected("quotas", "as many as were asked for are there", {"spare": True})
    return [gone.get(place, None if taken[place] else unused) for place in range(len(ones))]


def _needed(ones: Sequence[_One], taken: Sequence[bool], gone: Mapping[int, Rejected]) -> list[int]:
    """The spares that are to be taken now."""
    environments: dict[int, int] = {}
    kinds: dict[tuple[int, str], int] = {}
    for place, one in enumerate(ones):
        stays = taken[place] and place not in gone
        environments[one.environment] = environments.get(one.environment, one.asked) - stays
        key = one.environment, one.kind
        kinds[key] = kinds.get(key, one.of_kind) - stays
    found: list[int] = []
    for same_kind in (True, False):
        for place, one in enumerate(ones):
            key = one.environment, one.kind
            if taken[place] or place in found or environments[one.environment] <= 0:
                continue
            if same_kind and kinds[key] <= 0:
                continue
            kinds[key] -= 1
            environments[one.environment] -= 1
            found.append(place)
    return found + _of_others(ones, taken, found, sum(environments.values()))


def _of_others(ones: Sequence[_One], taken: Sequence[bool], found: Sequence[int], missing: int) -> list[int]:
    """Spares for what is missing where there are no own ones: the first of each environment, then the second, …"""
    left: dict[int, list[int]] = {}
    for place in sorted({place for place, one in enumerate(taken) if not one} - set(found)):
        left.setdefault(ones[place].environment, []).append(place)
    rounds = [place for places in zip_longest(*left.values()) for place in places if place is not None]
    return rounds[: max(0, missing)]
