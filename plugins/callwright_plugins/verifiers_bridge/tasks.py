"""The taskset and its tasks, as verifiers 0.4 (``verifiers.v1``) wants them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import verifiers.v1 as vf
from pydantic import Field

from callwright.errors import InfrastructureFailure, UsageError
from callwright.language.native import NATIVE_FORM
from callwright.plugins import default_registry
from callwright.training.evaluation import judge
from callwright.walk.attempt import Attempt
from callwright.walk.limits import TruncationPolicy
from callwright.walk.openings.opening import need_no_opening
from callwright.walk.prompt import build_messages
from callwright.walk.reward import Reward, RewardRecipe
from callwright.walk.tasks import Task, first_tasks
from callwright.walk.users.said import need_no_user
from callwright_plugins.verifiers_bridge.scoring import attempt_of, make_corpus, make_reward
from callwright_plugins.verifiers_bridge.tool_server import CallwrightState, EnvironmentToolset


class CallwrightData(vf.TaskData):  # type: ignore[misc]
    """A task by its id, and how it is scored: enough to make everything again in another process."""

    corpus: str
    corpus_options: dict[str, Any] = Field(default_factory=dict)
    task_id: str
    recipe: str = "tier"
    truncated: TruncationPolicy | None = None
    floor: float | None = None
    ir: str | None = "json"

    @property
    def task(self) -> Task:
        return make_corpus(self.corpus, self.corpus_options).task(self.task_id)


class CallwrightTaskConfig(vf.TaskConfig):  # type: ignore[misc]
    """Where the tool server of a rollout runs."""

    toolset: vf.ToolsetConfig = vf.ToolsetConfig()


class CallwrightTask(vf.Task[CallwrightData, CallwrightState, CallwrightTaskConfig]):  # type: ignore[misc]
    """A task whose completion is text in a form of Callwright."""

    @property
    def key(self) -> str:
        """The id of the task in its corpus."""
        return f"{self.data.corpus}/{self.data.task_id}"

    @vf.reward  # type: ignore[untyped-decorator]
    async def callwright(self, trace: Any) -> float:
        """The total of the recipe; the values of its components become metrics.

        Raises :class:`callwright.InfrastructureFailure` for a masked sample, so that verifiers records an error in
        place of a number and tries the rollout again as its configuration says; a cut-off one too, where that masks it.
        """
        reward = await self._recipe.ascore(self._attempt(trace))
        if reward.total is None:
            raise InfrastructureFailure(f"task {self.data.task_id!r} cannot be scored: {reward.masked}")
        name = self.data.recipe
        trace.record_metrics({f"{name}/{term}": float(one.score.value) for term, one in reward.scores.items()})
        trace.info["callwright"] = reward.explain()
        return float(reward.total)

    def score_trace(self, trace: Any) -> Reward:
        """The reward of what the model wrote, with everything that made it."""
        return self._recipe.score_attempt(self._attempt(trace))

    @property
    def _recipe(self) -> RewardRecipe:
        """The recipe, with what it says of cut-off completions unless the data says it."""
        return make_reward(self.data.recipe, self.data.truncated, self.data.floor)

    def _attempt(self, trace: Any) -> Attempt:
        data = self.data
        return attempt_of(
            data.task,
            trace.assistant_messages,
            ir=data.ir,
            truncated=trace.is_truncated,
            masked=getattr(trace.state, "masked", None),
        )

    async def validate(self, runtime: Any) -> bool | None:
        """Whether the reference program gives the expected answer; ``None`` without one."""
        task = self.data.task
        if task.program is None:
            return None
        parser = default_registry().create("parser", "json")
        return judge(Attempt(task, parser.render(task.program), parser)).answer


class CallwrightToolTask(CallwrightTask):
    """A task whose tools are offered over MCP, by a server a rollout."""

    @classmethod
    def toolsets(cls, config: CallwrightTaskConfig) -> list[Any]:
        """The one server."""
        return [EnvironmentToolset(config.toolset)]


class CallwrightTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]
    """Which tasks, in which form, scored by what; under ``--env.taskset.*``."""

    corpus: str = ""
    corpus_options: dict[str, Any] = Field(default_factory=dict)
    split: str = "train"
    recipe: str = "tier"
    truncated: TruncationPolicy | None = None
    floor: float | None = None
    ir: str | None = "json"
    limit: int | None = None
    task: CallwrightTaskConfig = CallwrightTaskConfig()


class Loading:
    """What every taskset of the bridge does: a split of a registered corpus, by the names in its ``config``."""

    TASK: ClassVar[type[CallwrightTask]] = CallwrightTask
    config: Any

    def load(self) -> Iterator[CallwrightTask]:
        """The tasks in their order. Raises :class:`callwright.errors.UnknownName` for names that nobody registered."""
        config = self.config
        if not config.corpus:
            raise UsageError("the taskset has no corpus; set --env.taskset.corpus, or make it with taskset('…')")
        registry = default_registry()
        make_reward(config.recipe, config.truncated, config.floor)  # what is wrong with it is said at once
        native = config.ir is None
        parser = registry.create("parser", NATIVE_FORM if native else config.ir)
        tasks = make_corpus(config.corpus, config.corpus_options)[config.split]
        for task in first_tasks(tasks, config.limit):
            instead = "train on it by another bridge, or evaluate with callwright evaluate"
            need_no_user(task, "verifiers", instead)
            need_no_opening(task, "verifiers", instead)
            system = build_messages(task, parser, registry, native=native)[0].text
            data = CallwrightData(
                id=task.id,
                name=f"{config.corpus}/{task.id}",
                prompt=task.query,
                system_prompt=system,
                corpus=config.corpus,
                corpus_options=config.corpus_options,
                task_id=task.id,
                recipe=config.recipe,
                truncated=config.truncated,
                floor=config.floor,
                ir=config.ir,
            )
            yield self.TASK(data, config.task)


def make_taskset(
    corpus: str,
    recipe: str,
    *,
    split: str,
    ir: str | None,
    limit: int | None,
    corpus_options: Mapping[str, Any] | None,
    name: str,
    truncated: TruncationPolicy | None = None,
    floor: float | None = None,
) -> Any:
    """What :func:`callwright_plugins.verifiers_bridge.taskset` returns.

    Raises :class:`callwright.errors.UnknownName`.
    """
    registry = default_registry()
    registry.spec("corpus", corpus)
    registry.spec("reward recipe", recipe)
    make_reward(recipe, truncated, floor)
    if ir is not None:
        registry.spec("parser", ir)
    options = dict(corpus_options or {})
    chosen = (corpus, options, split, recipe, ir, limit, truncated, floor)

    class Config(CallwrightTasksetConfig):
        corpus: str = chosen[0]
        corpus_options: dict[str, Any] = Field(default_factory=lambda: dict(chosen[1]))
        split: str = chosen[2]
        recipe: str = chosen[3]
        ir: str | None = chosen[4]
        limit: int | None = chosen[5]
        truncated: TruncationPolicy | None = chosen[6]
        floor: float | None = chosen[7]

    kind: Any = CallwrightToolTask if ir is None else CallwrightTask

    class Made(Loading, vf.Taskset[kind, Config]):  # type: ignore[misc]
        TASK: ClassVar[type[CallwrightTask]] = kind

        def __init__(self, config: Any = None) -> None:
            super().__init__(Config() if config is None else config)

    Config.__name__ = Config.__qualname__ = f"{name}Config"
    Made.__name__ = Made.__qualname__ = name
    Made.__doc__ = f"The split {split!r} of {corpus}, scored by {recipe}."
    return Made
