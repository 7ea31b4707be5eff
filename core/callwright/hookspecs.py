"""Every extension point of Callwright. Read this first; it is a table of contents.

A plugin is a module (or object) with functions of these names, marked with ``@callwright.hookimpl`` and named by an
entry point of the group ``callwright``. A hookimpl may leave out arguments that it does not need.

Registration hooks yield :class:`callwright.Lazy` specs: a name, where the factory is (``"module:attribute"``) and one
line about it. Nothing is imported before it is used. Names are unique within a kind; order never matters.

Event hooks let a plugin cut across every pipeline. One that nobody implements costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from pathlib import Path

    from callwright.environments.protocol import By, Outcome, Session
    from callwright.language.program import Call
    from callwright.plugins import Lazy
    from callwright.training.run_folder import Run
    from callwright.walk.attempt import Attempt
    from callwright.walk.reward import Reward
    from callwright.walk.tasks import Task

#: Raised when a hook is added; a removed or renamed argument goes through a deprecation window of one minor version.
HOOKSPEC_VERSION = 3

hookspec = pluggy.HookspecMarker("callwright")
hookimpl = pluggy.HookimplMarker("callwright")

# Registration -------------------------------------------------------------------------------------------------------


@hookspec
def callwright_parsers() -> Iterable[Lazy]:
    """Register intermediate representations. Factories return a :class:`callwright.Parser`."""
    return ()


@hookspec
def callwright_toolsets() -> Iterable[Lazy]:
    """Register tools together. Factories return a sequence of :class:`callwright.tools.FunctionTool`."""
    return ()


@hookspec
def callwright_environments() -> Iterable[Lazy]:
    """Register environments. Factories return a :class:`callwright.Environment`."""
    return ()


@hookspec
def callwright_reward_components() -> Iterable[Lazy]:
    """Register verifiable properties. Factories return a :class:`callwright.RewardComponent`."""
    return ()


@hookspec
def callwright_reward_recipes() -> Iterable[Lazy]:
    """Register weighted, gated combinations of components. Factories return a :class:`callwright.RewardRecipe`."""
    return ()


@hookspec
def callwright_samplers() -> Iterable[Lazy]:
    """Register sources of completions. Factories return a :class:`callwright.Sampler`."""
    return ()


@hookspec
def callwright_algorithms() -> Iterable[Lazy]:
    """Register policy-gradient algorithms. Factories return a :class:`callwright.Algorithm`."""
    return ()


@hookspec
def callwright_trainers() -> Iterable[Lazy]:
    """Register trainers. Factories return a :class:`callwright.Trainer`."""
    return ()


@hookspec
def callwright_corpora() -> Iterable[Lazy]:
    """Register corpora. Factories return a :class:`callwright.Corpus`."""
    return ()


@hookspec
def callwright_benchmarks() -> Iterable[Lazy]:
    """Register tasks with an official metric. Factories return a :class:`callwright.measuring.benchmark.Benchmark`."""
    return ()


@hookspec
def callwright_synthesizers() -> Iterable[Lazy]:
    """Register makers of tasks. Factories return a :class:`callwright.training.Synthesizer`."""
    return ()


@hookspec
def callwright_teachers() -> Iterable[Lazy]:
    """Register what plans, speaks, answers and judges. Factories return a :class:`callwright.training.Teacher`."""
    return ()


@hookspec
def callwright_users() -> Iterable[Lazy]:
    """Register who talks with agents. Factories return a :class:`callwright.walk.users.user.UserKind`."""
    return ()


@hookspec
def callwright_model_checks() -> Iterable[Lazy]:
    """Register what looks over models. Factories return a :class:`callwright.training.ModelCheck`."""
    return ()


@hookspec
def callwright_trackers() -> Iterable[Lazy]:
    """Register what shows runs elsewhere. Factories return a :class:`callwright.training.Tracker`."""
    return ()


@hookspec
def callwright_frameworks() -> Iterable[Lazy]:
    """Register adapters to agent frameworks. Factories return a :class:`callwright.episodes.Framework`."""
    return ()


@hookspec
def callwright_log_formats() -> Iterable[Lazy]:
    """Register readers of recorded conversations. Factories return a :class:`callwright.episodes.LogFormat`."""
    return ()


@hookspec
def callwright_commands() -> Iterable[Lazy]:
    """Register commands of the command line. Factories are :class:`click.Command` objects."""
    return ()


# Events -------------------------------------------------------------------------------------------------------------


@hookspec
def callwright_prompt(task: Task, messages: list[dict[str, Any]]) -> None:
    """A prompt was built; change ``messages``, in the wire format, in place to change what the model sees."""


@hookspec(firstresult=True)
def callwright_tool_call(session: Session, call: Call, arguments: dict[str, object], by: By) -> Outcome | None:
    """A call runs: a wrapper (``hookimpl(wrapper=True)``) may time, audit or delay it; an Outcome replaces it.

    ``by`` is ``"agent"`` for a call of the model, ``"user"`` for one of its user, by tools of the user's own.
    """
    return None


@hookspec
def callwright_attempt_scored(attempt: Attempt, reward: Reward) -> None:
    """An attempt got its reward."""


@hookspec
def callwright_training_step(metrics: Mapping[str, object]) -> None:
    """A training step ended; ``metrics`` is the row of ``metrics.jsonl``."""


@hookspec
def callwright_run_finished(run: Run) -> None:
    """A run ended and its report is written."""


@hookspec
def callwright_synthesis_finished(folder: Path) -> None:
    """A synthesis ended; its folder holds the tasks and the manifest."""
