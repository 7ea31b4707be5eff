"""The environments that conversations need beside their own: those of several at once, and of foreign tools."""

from __future__ import annotations

from typing import Final
from weakref import WeakKeyDictionary

from callwright.environments.protocol import Environment
from callwright.plugins import Registry
from callwright.training.synthesis.synthesizer import Materials

_KEPT: Final = 64
_made: WeakKeyDictionary[Registry, dict[str, Environment]] = WeakKeyDictionary()


def environment_of(name: str, materials: Materials) -> Environment:
    """The environment of the materials, or another one by its registered name (``"email+calendar"``: both as one).

    Made once for each registry. Raises :class:`callwright.errors.UnknownName`.
    """
    if name == materials.environment.name:
        return materials.environment
    known = _made.setdefault(materials.registry, {})
    if name not in known:
        if len(known) >= _KEPT:
            known.clear()
        known[name] = materials.registry.create("environment", name)
    return known[name]
