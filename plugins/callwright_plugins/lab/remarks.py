"""Remarks: what a careful reader would take from the figures, in words and with the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from callwright_plugins.lab.figures import TRUTH
from callwright_plugins.lab.probing import Probing

#: A wrong program that earns this share of what the right one does is worth settling for.
_TEMPTING: Final = 0.3
#: A wrong program that earns this share of what the right one does can hardly be told from it.
_BLIND: Final = 0.95
#: Differences of less than this share of what can be earned are not spoken of.
_SLIGHT: Final = 0.005
#: Wrong attempts above right ones, as a share of the pairs that are told apart.
_MISRANKED: Final = 0.01
_FLAT: Final = 0.5
_DOMINANT: Final = 0.8
#: Right answers that skip calls, as a share of all right ones.
_SKIPPED: Final = 0.05
#: Attempts that would earn more without a broken call, as a share of those that have one.
_DROPPED: Final = 0.25

_HIDING_PLACES: Final = (
    ("no calls", "A program that calls nothing", "with a weak policy expect collapse to short programs"),
    ("one safe call", "One safe call that does not answer", "expect safe tools instead of the right ones"),
)


def remarks(found: dict[str, Any], probing: Probing) -> list[dict[str, Any]]:
    """``{"code", "recipes", "text"}``, what would mislead a training most first."""
    said: list[dict[str, Any]] = []
    for code, recipes, text in (
        *_hiding_places(found, probing),
        *_wrong_above_right(found, probing),
        *_blind_spots(found, probing),
        *_alternatives(found, probing),
        *_flat_groups(found),
        *_dominant(found),
        *_verbosity(found, probing),
        *_shortcut(found, probing),
        *_skipped(found),
        *_dropping(found),
    ):
        said.append({"code": code, "recipes": recipes, "text": text})
    return said


Remark = tuple[str, list[str], str]


def _and(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _kinds(found: dict[str, Any], kind: str) -> list[str]:
    return [probe for probe, row in found["probes"]["probes"].items() if row["kind"] == kind]


def _earned(recipe: dict[str, Any], mean: float, gold: float) -> float:
    """The share of what the reference program earns over the least that was seen under the recipe."""
    floor = recipe["least"]
    return (mean - floor) / (gold - floor) if gold > floor else 0.0


def _hiding_places(found: dict[str, Any], probing: Probing) -> Iterator[Remark]:
    for probe, what, expect in _HIDING_PLACES:
        names, parts, beside = [], [], ""
        for name, recipe in found["recipes"].items():
            pair = probing.paired(name, probe)
            if pair is None or _earned(recipe, pair[0], pair[1]) < _TEMPTING:
                continue
            names.append(name)
            parts.append(f"{pair[0]:.2f} under {name} (the reference program {pair[1]:.2f})")
            if recipe["mean"] is not None and pair[0] > recipe["mean"] and not beside:
                beside = f"; under {name} these rollouts earn {recipe['mean']:.2f} on average"
        if names:
            yield probe.replace(" ", "_"), names, f"{what} earns {_and(parts)}{beside}: {expect}."


def _wrong_above_right(found: dict[str, Any], probing: Probing) -> Iterator[Remark]:
    for name, recipe in found["recipes"].items():
        slight = _SLIGHT * (recipe["high"] - recipe["least"])
        above = []
        for right in _kinds(found, "valid"):
            for wrong in _kinds(found, "wrong"):
                both = probing.paired(name, wrong, right)
                if both is not None and both[0] > both[1] + slight:
                    above.append((both[0] - both[1], wrong, right, both))
        if above:
            _, wrong, right, both = max(above)
            text = (
                f"Under {name} a wrong program ({wrong}, {both[0]:.2f}) earns more than a right one ({right}, "
                f"{both[1]:.2f}) on the same {both[2]} tasks."
            )
            yield "wrong_above_right", [name], text
    for row in found["agreement"]:
        if row["recipes"][1] == TRUTH and (row["opposite_within"] or 0) >= _MISRANKED:
            name = row["recipes"][0]
            text = (
                f"Under {name} a wrong attempt earns more than a right one at the same task in "
                f"{row['opposite_within']:.0%} of the pairs that it tells apart."
            )
            yield "misranked", [name], text


def _blind_spots(found: dict[str, Any], probing: Probing) -> Iterator[Remark]:
    for name, recipe in found["recipes"].items():
        parts = []
        for wrong in _kinds(found, "wrong"):
            pair = probing.paired(name, wrong)
            if pair is not None and _earned(recipe, pair[0], pair[1]) >= _BLIND:
                parts.append(f"{wrong} {pair[0]:.2f} of {pair[1]:.2f}")
        if parts:
            text = f"Under {name} wrong programs earn nearly what the reference program does: {_and(parts)}."
            yield "blind_spot", [name], text


def _alternatives(found: dict[str, Any], probing: Probing) -> Iterator[Remark]:
    for name, recipe in found["recipes"].items():
        pairs = [(probe, probing.paired(name, probe)) for probe in _kinds(found, "valid")]
        gaps = [(pair[1] - pair[0], probe, pair) for probe, pair in pairs if pair is not None]
        if gaps and max(gaps)[0] > _SLIGHT * (recipe["high"] - recipe["least"]):
            _, probe, pair = max(gaps)
            text = (
                f"Under {name} programs that are just as right earn less: {probe}, {pair[0]:.2f} instead of "
                f"{pair[1]:.2f} ({pair[2]} tasks). Right alternatives are pushed away."
            )
            yield "invariance_gap", [name], text


def _flat_groups(found: dict[str, Any]) -> Iterator[Remark]:
    shares = {name: recipe["groups"]["without_signal"] or 0.0 for name, recipe in found["recipes"].items()}
    names = [name for name, share in shares.items() if share >= _FLAT]
    if names:
        parts = _and([f"{shares[name]:.0%} under {name}" for name in names])
        yield "no_signal", names, f"Groups with equal rewards throughout, from which GRPO learns nothing: {parts}."


def _dominant(found: dict[str, Any]) -> Iterator[Remark]:
    for name, recipe in found["recipes"].items():
        parts = {term: part for term, part in recipe["components"].items() if part["high"] > part["low"]}
        if len(parts) < 3:  # of two, one has to be the larger
            continue
        for term, part in parts.items():
            if (part["variance_share"] or 0) >= _DOMINANT:
                text = f"{term} alone makes {part['variance_share']:.0%} of the differences in the total of {name}."
                yield "dominance", [name], text


def _verbosity(found: dict[str, Any], probing: Probing) -> Iterator[Remark]:
    free = []
    for name, recipe in found["recipes"].items():
        pair = probing.paired(name, "extra call") or probing.paired(name, "repeated call")
        if pair is not None and pair[1] - pair[0] <= _SLIGHT * (recipe["high"] - recipe["least"]):
            free.append(name)
    if free:
        yield "verbosity", free, f"Under {_and(free)} a call that nobody needs costs nothing: programs may grow."


def _shortcut(found: dict[str, Any], probing: Probing) -> Iterator[Remark]:
    names, parts = [], []
    for name, recipe in found["recipes"].items():
        pair = probing.paired(name, "literal shortcut")
        if pair is not None and _earned(recipe, pair[0], pair[1]) >= _BLIND:
            names.append(name)
            parts.append(f"{pair[0]:.3f} of {pair[1]:.3f} under {name} ({pair[2]} tasks)")
    if names:
        text = f"The last call alone, with its arguments known by heart, earns {_and(parts)}: answers can be memorised."
        yield "literal_shortcut", names, text


def _skipped(found: dict[str, Any]) -> Iterator[Remark]:
    skips = found["skips"]
    if skips["skipping"] and skips["share_of_right"] >= _SKIPPED:
        text = (
            f"{skips['share_of_right']:.0%} of the right answers ({skips['skipping']} of {skips['right']}) skip calls "
            "that the reference program needs and write out what these would give."
        )
        yield "skipped_calls", list(found["recipes"]), text


def _dropping(found: dict[str, Any]) -> Iterator[Remark]:
    parts, names = [], []
    for name, row in found["dropping"]["recipes"].items():
        if row["dropping_earns_more"] >= _DROPPED:
            names.append(name)
            parts.append(f"{row['dropping_earns_more']:.0%} under {name}")
    if names:
        text = (
            f"Of the attempts with a broken call, these would earn more without it and still be wrong: {_and(parts)}."
        )
        yield "dropping_pays", names, text
