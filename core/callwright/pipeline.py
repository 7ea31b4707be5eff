"""The walk: task, messages, completion, program, validation, trace, scores, reward. Read this second.

A :class:`Pipeline` holds one component of each kind. It keeps no state of its own, so scoring may run anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from attrs import evolve, field, frozen

from callwright.environments.protocol import Environment, Outcome, Session
from callwright.episodes.conversation import Conversation
from callwright.episodes.token_episode import Codec, Rollout
from callwright.errors import CallwrightError, InfrastructureFailure, PluginError, RecipeError, UsageError
from callwright.language.parser import Parser
from callwright.language.program import Call
from callwright.plugins import Registry
from callwright.recipe_file import Choice, LoadedRecipe
from callwright.training.algorithm import Algorithm
from callwright.walk.attempt import Attempt, Progress
from callwright.walk.execution import Caller
from callwright.walk.limits import SINGLE_TURN, TurnLimits
from callwright.walk.prompt import build_messages
from callwright.walk.reward import Reward, RewardComponent, RewardRecipe
from callwright.walk.sampling import Completion, Message
from callwright.walk.tasks import Corpus, Task


@frozen
class Pipeline:
    """Corpus, intermediate representation, reward and algorithm of one recipe."""

    loaded: LoadedRecipe = field(repr=False)
    registry: Registry = field(repr=False)
    corpus: Corpus
    parser: Parser
    reward: RewardRecipe
    algorithm: Algorithm | None = None
    environment: Environment | None = None

    def tasks(self, split: str, limit: int | None = None) -> Sequence[Task]:
        """The tasks of a split.

        Raises :class:`callwright.errors.UnknownName` for a split that the corpus does not have.
        """
        tasks = self.corpus[split]
        tasks = tasks if limit is None else tasks[:limit]
        return tasks if self.environment is None else [evolve(task, environment=self.environment) for task in tasks]

    def messages(self, task: Task) -> tuple[Message, ...]:
        """Task -> messages."""
        return build_messages(task, self.parser, self.registry)

    def attempt(self, task: Task, completion: Completion | str, progress: Progress | None = None) -> Attempt:
        """Completion -> attempt, which parses, validates and executes when it is asked to."""
        return Attempt(
            task,
            completion,
            self.parser,
            seed=self.loaded.recipe.seed,
            progress=progress,
            caller=event_caller(self.registry),
            time_limit=self.loaded.recipe.time_limit,
        )

    @property
    def limits(self) -> TurnLimits | None:
        """How long an episode may become: the recipe's ``[turns]``; ``None`` for a single turn."""
        turns = self.loaded.recipe.turns
        return None if turns is None else TurnLimits(**turns.model_dump())

    def rollout(
        self,
        task: Task,
        codec: Codec,
        *,
        messages: Sequence[Message] | None = None,
        limits: TurnLimits | None = None,
        progress: Progress | None = None,
    ) -> Rollout:
        """An episode of a task as token ids, for an engine to drive: of the recipe's turns unless ``limits`` say more.

        Raises :class:`callwright.episodes.token_episode.PromptTooLong`.
        """
        return Rollout(
            task,
            self.parser,
            codec,
            self.messages(task) if messages is None else messages,
            limits=limits or self.limits or SINGLE_TURN,
            seed=self.loaded.recipe.seed,
            progress=progress,
            caller=event_caller(self.registry),
            time_limit=self.loaded.recipe.time_limit,
        )

    def conversation(
        self,
        task: Task,
        messages: Sequence[Message],
        limits: TurnLimits,
        observation_role: Literal["tool", "user"] = "tool",
    ) -> Conversation:
        """An episode of a task as messages, for a sampler of texts (:func:`callwright.episodes.driving.converse`)."""
        return Conversation(
            task,
            self.parser,
            messages,
            limits=limits,
            seed=self.loaded.recipe.seed,
            caller=event_caller(self.registry),
            time_limit=self.loaded.recipe.time_limit,
            observation_role=observation_role,
        )

    def score(self, attempt: Attempt) -> Reward:
        """Attempt -> reward."""
        reward = self.reward.score_attempt(attempt)
        if self.registry.listens("callwright_attempt_scored"):
            self.registry.hook.callwright_attempt_scored(attempt=attempt, reward=reward)
        return reward


def event_caller(registry: Registry) -> Caller | None:
    """How calls reach a session if a plugin listens to ``callwright_tool_call``; ``None`` if nobody does.

    A hook may raise :class:`callwright.InfrastructureFailure`, which masks the sample. Anything else that it raises is
    its bug, not the tool's, and becomes a :class:`callwright.errors.PluginError`.
    """
    if not registry.listens("callwright_tool_call"):
        return None

    def call(session: Session, call: Call, arguments: dict[str, Any]) -> Outcome:
        try:
            outcome = registry.hook.callwright_tool_call(session=session, call=call, arguments=arguments)
        except InfrastructureFailure:
            raise
        except Exception as error:  # not the tool's, whose exceptions are outcomes by now
            raise PluginError(f"a callwright_tool_call hook raised {type(error).__name__}: {error}") from error
        if not isinstance(outcome, Outcome):
            raise PluginError(f"a callwright_tool_call hook gave {outcome!r:.80} for a call; it must give an Outcome")
        return outcome

    return call


def build_pipeline(
    loaded: LoadedRecipe,
    registry: Registry,
    *,
    corpus: Corpus | None = None,
    environment: Environment | None = None,
    extra_rewards: Sequence[RewardComponent] = (),
    with_algorithm: bool = True,
) -> Pipeline:
    """Make the components of a recipe. Errors name the file and line that asked for what does not exist.

    ``corpus`` and ``environment`` take the place of those that the recipe names.
    """
    recipe = loaded.recipe
    if environment is None and recipe.environment is not None:
        environment = _create(loaded, registry, "environment", "environment", recipe.environment)
    reward: RewardRecipe = _create(loaded, registry, "reward recipe", "reward", recipe.reward)
    pipeline = Pipeline(
        loaded=loaded,
        registry=registry,
        corpus=corpus or _create(loaded, registry, "corpus", "corpus", recipe.corpus),
        parser=_create(loaded, registry, "parser", "ir", recipe.ir),
        reward=reward.with_terms(*extra_rewards) if extra_rewards else reward,
        algorithm=_create(loaded, registry, "algorithm", "algorithm", recipe.algorithm) if with_algorithm else None,
        environment=environment,
    )
    for key in ("train", "evaluation"):
        split = getattr(recipe.corpus, key)
        if split not in pipeline.corpus.splits:
            known = ", ".join(pipeline.corpus.splits)
            raise loaded.error(f"corpus {pipeline.corpus.name!r} has no split {split!r}. Known: {known}", "corpus", key)
    return pipeline


def create_trainer(loaded: LoadedRecipe, registry: Registry) -> Any:
    """The trainer of a recipe."""
    return _create(loaded, registry, "trainer", "trainer", loaded.recipe.trainer)


def _create(loaded: LoadedRecipe, registry: Registry, kind: str, key: str, choice: Choice) -> Any:
    try:
        return registry.create(kind, choice.name, **choice.options)
    except RecipeError:
        raise
    except UsageError as error:
        named = getattr(error, "name", None)  # what an UnknownName is about; its message also mentions known names
        mentioned = (name for name in choice.options if f"{name!r}" in str(error))
        option = named if named in choice.options else next(mentioned, "name")
        raise loaded.error(str(error), key, option) from error
    except CallwrightError:
        raise
    except (TypeError, ValueError) as error:
        raise loaded.error(f"{kind} {choice.name!r}: {error}", key) from error
