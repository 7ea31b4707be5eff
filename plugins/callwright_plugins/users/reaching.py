"""What a user that a model plays would reach for: what its sampler does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from callwright.errors import UnknownName
from callwright.plugins import default_registry
from callwright.registration import Reach


def reaches(options: Mapping[str, Any]) -> Iterable[Reach]:
    """What the sampler that these options name declares; an unknown one is said where it is made."""
    name, own = options.get("sampler"), options.get("options")
    if not isinstance(name, str):
        return ()
    try:
        spec = default_registry().spec("sampler", name)
    except UnknownName:
        return ()
    return [
        Reach(one.kind, one.what, ("sampler", "options"), one.dry_run)
        for one in spec.reach(own if isinstance(own, Mapping) else {})
    ]
