"""The bridge to verifiers: a taskset of any corpus, with the reward of any recipe and the tools of its environment.

    from callwright_plugins import verifiers_bridge
    Tasks = verifiers_bridge.taskset("depthbench-v1", "tier")
    __all__ = ["Tasks"]

is a taskset as verifiers looks for it: a module that exports one. Nothing of verifiers is imported before it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from callwright.errors import MissingExtra

if TYPE_CHECKING:
    from callwright.walk.limits import TruncationPolicy


def taskset(
    corpus: str,
    recipe: str = "tier",
    *,
    split: str = "train",
    ir: str | None = "json",
    limit: int | None = None,
    corpus_options: Mapping[str, Any] | None = None,
    name: str = "Tasks",
    truncated: TruncationPolicy | None = None,
    floor: float | None = None,
) -> Any:
    """A subclass of ``verifiers.v1.Taskset`` over a split of a registered corpus; the arguments are its defaults.

    ``ir``: the form in which a completion is written; the prompt explains it and lists the tools, and one completion is
    scored. ``None``: the tools of the task are offered over MCP, in a session a rollout, the prompt says in plain words
    when to call and when not, and the whole conversation is scored. ``truncated`` and ``floor``: what a rollout earns
    that a limit cut off, by default the recipe's own choice.
    Names only: verifiers starts workers and tool servers that make everything again.
    """
    try:
        from callwright_plugins.verifiers_bridge.tasks import make_taskset
    except ModuleNotFoundError as error:
        raise MissingExtra("the taskset for verifiers", "verifiers", error.name or "verifiers") from error
    return make_taskset(
        corpus,
        recipe,
        split=split,
        ir=ir,
        limit=limit,
        corpus_options=corpus_options,
        name=name,
        truncated=truncated,
        floor=floor,
    )
