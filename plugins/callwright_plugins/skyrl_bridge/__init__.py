"""The bridge to SkyRL: any corpus with any reward as an environment of ``skyrl-gym``, over one turn or several.

    from callwright_plugins import skyrl_bridge
    skyrl_bridge.export("tier", "train.parquet", corpus="depthbench-v1")    # the rows that SkyRL trains on
    skyrl_bridge.register("tier", corpus="depthbench-v1")                   # in SkyRL's process

Everything is said by name, so that a process of Ray that has Callwright installed makes it again.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from callwright.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from callwright.plugins import Registry

#: What the rows say in ``env_class``, and SkyRL looks up.
NAME: Final = "callwright"
_ENTRY: Final = "callwright_plugins.skyrl_bridge.environment:CallwrightEnv"


def register(
    recipe: str,
    *,
    corpus: str | None = None,
    ir: str = "json",
    seed: int = 0,
    observation_role: str = "tool",
    retries: int = 1,
    masked_score: float | None = None,
    id: str = NAME,
) -> str:
    """Register an environment with ``skyrl_gym`` in this process, and return its id.

    ``recipe`` is a registered reward recipe with a ``corpus`` and a form (``ir``), or a pipeline recipe (a shipped
    one's name or a file) without one. Results of calls are messages of ``observation_role``, ``tool`` or ``user``.
    SkyRL has no masked samples: an episode whose machinery failed is done again ``retries`` times, then it earns
    ``masked_score`` or, without one, stops the run. Registering the same again changes nothing.

    Raises :class:`callwright.errors.MissingExtra` without skyrl-gym, and :class:`callwright.UsageError` for an id that
    stands for something else, and for what cannot be made by name.
    """
    if importlib.util.find_spec("skyrl_gym") is None:
        raise MissingExtra("the SkyRL bridge", "skyrl", "skyrl-gym")
    from skyrl_gym.envs import registration

    from callwright_plugins.skyrl_bridge.naming import named

    named(recipe, corpus, ir, seed)  # a wrong name is said here, and not in the first rollout
    options: dict[str, Any] = {
        "recipe": recipe,
        "corpus": corpus,
        "ir": ir,
        "seed": seed,
        "observation_role": observation_role,
        "retries": retries,
        "masked_score": masked_score,
    }
    if observation_role not in ("tool", "user"):
        raise UsageError(f"observation_role is 'tool' or 'user', not {observation_role!r}")
    known = registration.registry.get(id)
    if known is None:
        registration.register(id=id, entry_point=_ENTRY, kwargs=options)
    elif (known.entry_point, known.kwargs) != (_ENTRY, options):
        raise UsageError(
            f"skyrl_gym has an environment {id!r} already, of {known.entry_point!r} with {known.kwargs}; give id=…, "
            "and the same to export(…)"
        )
    return id


def export(
    recipe: str,
    path: str | Path,
    *,
    corpus: str | None = None,
    split: str = "train",
    ir: str = "json",
    turns: int = 1,
    limit: int | None = None,
    id: str = NAME,
    registry: Registry | None = None,
) -> int:
    """Write the rows that SkyRL reads (``.parquet``, ``.jsonl`` or ``.json`` by the name), and return how many.

    ``turns`` is SkyRL's ``generator.max_turns``: instructions say whether more than one answer follows. Raises
    :class:`callwright.UsageError` for a ``limit`` below 1,
    :class:`callwright.errors.DataError` for an empty split and a file that cannot be written, and
    :class:`callwright.errors.MissingExtra` without pyarrow for a parquet file.
    """
    from callwright_plugins.skyrl_bridge.data import write

    return write(
        recipe, Path(path), corpus=corpus, split=split, ir=ir, turns=turns, limit=limit, id=id, registry=registry
    )


def rows(
    recipe: str,
    *,
    corpus: str | None = None,
    split: str = "train",
    ir: str = "json",
    turns: int = 1,
    limit: int | None = None,
    id: str = NAME,
    registry: Registry | None = None,
) -> list[dict[str, Any]]:
    """The rows that :func:`export` writes: ``prompt``, ``env_class``, ``reward_spec``, ``task_id``, ``data_source``."""
    from callwright_plugins.skyrl_bridge.data import make_rows

    return make_rows(recipe, corpus=corpus, split=split, ir=ir, turns=turns, limit=limit, id=id, registry=registry)
