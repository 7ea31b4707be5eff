"""Environments as TRL's: a class whose public methods are the tools, with a session for each rollout."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final

from attrs import evolve

from callwright.environments.protocol import Environment
from callwright.episodes.results import describe_step
from callwright.errors import UnknownName, UsageError
from callwright.language.program import Call, Program
from callwright.pipeline import event_caller
from callwright.plugins import Registry, default_registry
from callwright.walk.attempt import Attempt
from callwright.walk.completion import Completion
from callwright.walk.conditions import DEFAULT_CONDITIONS, Conditions
from callwright.walk.execution import Execution
from callwright.walk.openings.opening import need_no_opening
from callwright.walk.reward import RewardRecipe
from callwright.walk.tasks import Answer, Corpus, Task
from callwright.walk.turn import Turn
from callwright.walk.users.said import need_no_user
from callwright_plugins.trl_bridge.signatures import tool_method

#: What no answer can be known for: a session of an environment without a corpus.
_FREE: Final = "free"
#: TRL has parsed the calls already; a form is named for rewards that ask, and reads nothing.
_NATIVE: Final = "hermes"
#: As every trainer has it: foreign tools in processes that can be killed.
_ISOLATION: Final = "auto"


class ToolEnvironment:
    """What every class of :func:`callwright_plugins.trl_bridge.environment_factory` has beside its tools.

    TRL makes instances without arguments, resets each before its rollout and uses it again. Everything but ``reset``,
    the tools and, with a recipe, ``get_reward`` begins with ``_``: TRL offers whatever is public.
    """

    _corpus: ClassVar[Corpus | None]
    _environment: ClassVar[Environment]
    _recipe: ClassVar[RewardRecipe | None]
    _registry: ClassVar[Registry]
    _seed: ClassVar[int]

    def __init__(self) -> None:
        self._task: Task | None = None
        self._conditions = DEFAULT_CONDITIONS
        self._execution: Execution | None = None
        self._turns: list[Turn] = []

    def reset(self, **row: Any) -> None:
        """A fresh session for the row of the data. TRL gives all of its columns."""
        if self._execution is not None:
            self._execution.close()
        task = self._task_of(row)
        need_no_user(task, "TRL", "sample with trl_bridge.rollout_func(…)")
        need_no_opening(task, "TRL", "sample with trl_bridge.rollout_func(…)")
        self._task, self._turns = task, []
        self._conditions = Conditions(caller=event_caller(self._registry), isolation=_ISOLATION)
        self._execution = self._conditions.execution(task)

    def _task_of(self, row: dict[str, Any]) -> Task:
        corpus = self._corpus
        if corpus is None:
            scenario, seed = str(row.get("scenario") or ""), int(row.get("seed") or self._seed)
            tools = self._environment.tools
            return Task(_FREE, "", tools, Answer(), self._environment, scenario=scenario, seed=seed)
        task_id = row.get("task_id")
        if not isinstance(task_id, str):
            raise UsageError("the data has no column 'task_id'; make it with trl_bridge.dataset(…, ir=None)")
        return corpus.task(task_id)

    def _call(self, tool: str, arguments: dict[str, Any]) -> str:
        """What a method does: execute, and tell the result as every rollout of Callwright tells it."""
        if self._execution is None:
            raise UsageError(f"{type(self).__name__} has no session yet: call reset(…) first")
        if self._masked is not None:
            raise UsageError(f"the episode has ended: {self._masked}")
        program = Program((Call(0, tool, arguments),))
        trace = self._execution.run(program)
        self._turns.append(Turn(Completion(""), program, trace))
        return describe_step(evolve(trace.records[0], call=len(self._turns) - 1))

    @property
    def _masked(self) -> str | None:
        """Why the rollout is masked; :class:`.rewards.RewardFunction` asks for it."""
        return next((turn.trace.masked for turn in self._turns if turn.trace is not None and turn.trace.masked), None)


def _score(self: ToolEnvironment) -> float | None:
    """The reward of what was called, each call a turn of its own; ``None`` if the machinery failed."""
    assert self._recipe is not None
    if self._task is None:
        return None
    parser = self._registry.create("parser", _NATIVE)
    return self._recipe.score_attempt(Attempt.of(self._task, parser, self._turns, self._conditions)).total


def make_environment(
    corpus_or_environment: str | Corpus | Environment,
    recipe: str | RewardRecipe | None,
    *,
    tools: Iterable[str] | None,
    seed: int,
    registry: Registry | None,
) -> type[ToolEnvironment]:
    """What :func:`callwright_plugins.trl_bridge.environment_factory` returns."""
    registry = registry or default_registry()
    corpus, environment = _find(corpus_or_environment, registry)
    if recipe is not None and corpus is None:
        raise UsageError("a recipe scores tasks: give environment_factory a corpus, not an environment")
    known = {name: spec for name, spec in environment.tools.items() if not spec.hidden}
    chosen = list(known) if tools is None else list(tools)
    for name in chosen:
        if name not in known:
            raise UnknownName(f"tool of {environment.name}", name, known)
    body: dict[str, Any] = {name: tool_method(known[name], ToolEnvironment._call) for name in chosen}
    if recipe is not None:
        body["get_reward"] = _score
    made = registry.create("reward recipe", recipe) if isinstance(recipe, str) else recipe
    body |= {
        "__doc__": f"The tools of {environment.name} for TRL.",
        "__module__": __name__,
        "_corpus": corpus,
        "_environment": environment,
        "_recipe": made,
        "_registry": registry,
        "_seed": seed,
    }
    title = "".join(part.capitalize() for part in environment.name.replace("-", "_").split("_") if part.isidentifier())
    return type(title or "Tools", (ToolEnvironment,), body)


def _find(given: str | Corpus | Environment, registry: Registry) -> tuple[Corpus | None, Environment]:
    if isinstance(given, str):
        if registry.knows("corpus", given):
            corpus: Corpus = registry.create("corpus", given)
            return corpus, corpus.environment
        if registry.knows("environment", given):
            environment: Environment = registry.create("environment", given)
            return None, environment
        known = [*registry.names("corpus"), *registry.names("environment")]
        raise UnknownName("corpus or environment", given, known)
    if isinstance(given, Corpus):
        return given, given.environment
    return None, given
