"""Schemes: the same reward with other weights or another penalty, over grids that the user names."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final

from attrs import evolve, field, frozen

from callwright.errors import UnknownName, UsageError
from callwright.plugins import Registry
from callwright.walk.reward import RewardRecipe

#: The option of a recipe that is lambda_p of TIER, section 2.2: what one mismatch costs.
OPTION: Final = "penalty"
LAMBDA: Final = "lambda"
#: With at most so many combinations of all values, each of them is a scheme.
FEW: Final = 48
#: More schemes than this nobody reads.
_MOST: Final = 400


@frozen
class Scheme:
    """A reward that differs from the reference by ``changes``: terms and their weights, and ``lambda``."""

    changes: Mapping[str, float]
    penalty: float | None
    recipe: RewardRecipe = field(repr=False)

    @property
    def label(self) -> str:
        """``answer=2, lambda=0.1``; ``reference`` for what nothing was changed of."""
        return ", ".join(f"{name}={value:g}" for name, value in self.changes.items()) or "reference"


@frozen
class Schemes:
    """The reference first, then one change at a time, then combinations. ``left_out``: combinations that were too many.

    ``penalised`` holds the reference's terms with each penalty that is asked for, the reference's own first; a recipe
    without a penalty has ``None`` alone.
    """

    name: str
    penalised: Mapping[float | None, RewardRecipe] = field(repr=False)
    all: Sequence[Scheme] = field(repr=False)
    left_out: int = 0

    @property
    def reference(self) -> Scheme:
        """The recipe as it is registered."""
        return self.all[0]


def read_weights(specs: Sequence[str]) -> dict[str, list[float]]:
    """``["answer=1,2,5", …]`` as the weights to try, by term. Raises :class:`callwright.UsageError`."""
    grid: dict[str, list[float]] = {}
    for spec in specs:
        term, equals, values = spec.partition("=")
        term = term.strip()
        if not equals or not term:
            raise UsageError(f"--weights {spec!r}: expected TERM=WEIGHT,WEIGHT,…, such as answer=1,2,5")
        if term in grid:
            raise UsageError(f"--weights names {term!r} twice; write all of its weights in one: {term}=1,2,5")
        grid[term] = _numbers(values, f"--weights {spec!r}")
    return grid


def read_penalties(text: str | None) -> list[float]:
    """``"0.1,0.25"`` as numbers of at least 0. Raises :class:`callwright.UsageError`."""
    if text is None:
        return []
    found = _numbers(text, f"--lambda {text!r}")
    for value in found:
        if value < 0:
            raise UsageError(f"--lambda {text!r}: a mismatch that costs {value:g} would be rewarded; take 0 or more")
    return found


def _numbers(text: str, where: str) -> list[float]:
    found: dict[float, None] = {}
    for part in text.split(","):
        try:
            value = float(part)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise UsageError(f"{where}: {part.strip()!r} is no finite number")
        found[value] = None
    return list(found)


def make_schemes(
    registry: Registry, name: str, weights: Mapping[str, Sequence[float]], penalties: Sequence[float]
) -> Schemes:
    """The schemes of a registered recipe.

    Raises :class:`callwright.errors.UnknownName` for a term that the recipe does not have and
    :class:`callwright.UsageError` for penalties of a recipe without one, or for more schemes than anybody reads.
    """
    reference: RewardRecipe = registry.create("reward recipe", name)
    terms = {term.name: float(term.weight) for term in reference.terms}
    for term in weights:
        if term not in terms:
            raise UnknownName(f"term of the reward {name!r}", term, terms)
    penalised: dict[float | None, RewardRecipe] = {_penalty(registry, name): reference}
    own = next(iter(penalised))
    if penalties:
        if own is None:
            having = [other for other in registry.names("reward recipe") if _penalty(registry, other) is not None]
            raise UsageError(
                f"--lambda: the reward {name!r} has no option {OPTION!r}, which is what a mismatch costs. "
                + (f"These have: {', '.join(having)}." if having else "No registered reward has.")
            )
        for value in penalties:
            if value not in penalised:
                penalised[value] = registry.create("reward recipe", name, **{OPTION: value})
    axes = [[(term, value) for value in values if value != terms[term]] for term, values in weights.items()]
    axes.append([(LAMBDA, value) for value in penalties if value != own])
    axes = [axis for axis in axes if axis]
    changes = list(_changes(axes))
    combinations = math.prod(len(axis) + 1 for axis in axes) - 1 - len(changes)
    few = combinations <= FEW
    if few:
        changes += (each for each in map(_present, product(*([None, *axis] for axis in axes))) if len(each) > 1)
    if len(changes) > _MOST:
        raise UsageError(f"these grids make {len(changes):,} schemes; name at most {_MOST} values")
    made = [Scheme({}, own, reference), *(_scheme(each, own, penalised) for each in changes)]
    return Schemes(name, penalised, made, 0 if few else combinations)


def _changes(axes: Sequence[Sequence[tuple[str, float]]]) -> Iterator[dict[str, float]]:
    for axis in axes:
        for change in axis:
            yield dict((change,))


def _present(picked: Sequence[tuple[str, float] | None]) -> dict[str, float]:
    return dict(change for change in picked if change is not None)


def _scheme(changes: Mapping[str, float], own: float | None, penalised: Mapping[float | None, RewardRecipe]) -> Scheme:
    penalty = changes.get(LAMBDA, own)
    base = penalised[penalty]
    terms = tuple(evolve(term, weight=changes.get(term.name, term.weight)) for term in base.terms)
    try:
        recipe = evolve(base, terms=terms)
        if not recipe.high > recipe.low:
            raise UsageError("every attempt would earn the same")
    except UsageError as error:
        label = ", ".join(f"{name}={value:g}" for name, value in changes.items())
        raise UsageError(f"--weights: with {label} {error}") from error
    return Scheme(changes, penalty, recipe)


def _penalty(registry: Registry, name: str) -> float | None:
    """What a mismatch costs under a registered recipe; ``None`` if it has no such option."""
    spec = registry.spec("reward recipe", name)
    try:
        parameters: Mapping[str, Any] = inspect.signature(spec.load()).parameters
    except (TypeError, ValueError):
        return None
    if OPTION not in parameters:
        return None
    value = spec.options.get(OPTION, parameters[OPTION].default)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
