"""YaRN: more positions for a model that turns queries and keys by position (Peng et al. 2023), for an evaluation.

What a model's configuration has to say is made here, for whoever loads it. No weight
changes; short prompts are read slightly otherwise, too, so a result says that the context was extended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol, runtime_checkable

from attrs import asdict, frozen

from callwright.errors import UsageError

#: A factor beyond which nobody has measured the method: 128 times.
_MOST: Final = 128.0


@runtime_checkable
class ExtendsContext(Protocol):
    """What a sampler adds whose model may get more positions than it was trained with: results say so."""

    @property
    def extended_context(self) -> Mapping[str, Any] | None:
        """:meth:`Extension.to_json`; ``None`` where nothing was extended."""


@frozen
class Extension:
    """``factor`` times the ``original`` positions, in tokens. ``theta``: the base of the rotations."""

    factor: float
    original: int
    theta: float

    @property
    def positions(self) -> int:
        """How many tokens prompt and completion may have together."""
        return round(self.factor * self.original)

    @property
    def parameters(self) -> dict[str, Any]:
        """What transformers 5 and vLLM read as ``rope_parameters``."""
        return {
            "rope_type": "yarn",
            "rope_theta": self.theta,
            "factor": self.factor,
            "original_max_position_embeddings": self.original,
        }

    def to_json(self) -> dict[str, Any]:
        """What a result says of it."""
        return {"method": "yarn", **asdict(self), "positions": self.positions}


def extension_of(stated: object, config: Mapping[str, Any], model: str) -> Extension:
    """What the option ``yarn`` means for a model: a factor, or ``{factor, original}``.

    ``original`` is how many positions the model was trained with; left out, what its configuration says. ``config`` is
    the part of it that describes the text model, as a mapping.

    Raises :class:`callwright.UsageError` for another value, for a model without rotary positions or with ones that are
    scaled already, and for a factor that gives no more positions than there are.
    """
    given: Mapping[str, Any] = stated if isinstance(stated, Mapping) else {"factor": stated}
    if not given.keys() <= {"factor", "original"} or "factor" not in given:
        raise UsageError("'yarn' is a factor, such as 4.0, or a table {factor = 4.0, original = 32768}")
    factor, original = given["factor"], given.get("original")
    if type(factor) not in (int, float) or not 1 < factor <= _MOST:
        raise UsageError(f"the factor of 'yarn' is a number above 1 and up to {_MOST:g}, not {factor!r}")
    if original is not None and (type(original) is not int or original < 1):
        raise UsageError(f"'original' of 'yarn' is how many positions the model was trained with, not {original!r}")
    held = config.get("max_position_embeddings")
    theta = _theta(config, model)
    if type(held) is not int:
        raise UsageError(f"{model} does not say how many positions it has (max_position_embeddings): no yarn")
    original = original or held
    positions = factor * original
    if abs(positions - round(positions)) > 1e-6:
        raise UsageError(f"{factor:g} times {original:,} positions is no whole number: choose another factor")
    if round(positions) <= held:
        raise UsageError(f"{model} has {held:,} positions as it is, so yarn to {round(positions):,} is not needed")
    return Extension(round(positions) / original, original, theta)


def _theta(config: Mapping[str, Any], model: str) -> float:
    """The base of the rotations, where they are the plain ones."""
    stated = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if not isinstance(stated, Mapping):
        stated = {}
    if any(isinstance(value, Mapping) for value in stated.values()):
        raise UsageError(f"{model} turns by position differently in different layers: yarn is not offered for it")
    kind = stated.get("rope_type", stated.get("type", "default"))
    if kind != "default":
        raise UsageError(f"{model} scales its positions already ({kind}): load it without yarn")
    theta = stated.get("rope_theta", config.get("rope_theta"))
    if type(theta) not in (int, float) or not theta:
        raise UsageError(f"{model} has no rotary positions (rope_theta), which yarn extends")
    return float(theta)
