"""The walk: task, messages, completion, program, validation, trace, scores, reward. Read this second.

A :class:`Pipeline` holds one component of each kind and the conditions that they work under. It keeps no state of its
own, so scoring may run anywhere. It needs no file:

    pipeline = cw.Pipeline("toolworld-mini-v1", "tier", "json")
    reward = pipeline.score(pipeline.attempt(task, completion))
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from attrs import evolve, field, frozen

from callwright.environments.hazards.policy import read_hazards
from callwright.environments.living.policy import ClockPolicy
from callwright.environments.protocol import By, Environment, Outcome, Session
from callwright.episodes.conversation import Conversation
from callwright.episodes.token_episode import Codec, TokenEpisode
from callwright.errors import (
    DataError,
    InfrastructureFailure,
    PluginError,
    UsageError,
)
from callwright.language.messages import Message
from callwright.language.parser import Parser
from callwright.language.program import Call
from callwright.plugins import Registry, default_registry
from callwright.recipe_file import Choice, LoadedRecipe, load_recipe
from callwright.recipe_parts import Together, create_part
from callwright.recipe_parts import create_trainer as create_trainer
from callwright.walk.attempt import Attempt
from callwright.walk.completion import Completion
from callwright.walk.conditions import DEFAULT_CONDITIONS, Conditions, Progress
from callwright.walk.limits import SINGLE_TURN, ShapesOverlong, TurnLimits, limits_for, limits_of
from callwright.walk.prompt import build_messages
from callwright.walk.reward import Reward, RewardComponent, RewardRecipe
from callwright.walk.tasks import Corpus, Task, first_tasks, task_of
from callwright.walk.users.kinds import kinds_of, kinds_with
from callwright.walk.users.said import Said

if TYPE_CHECKING:
    from concurrent.futures import Future

    from callwright.episodes.pool import EpisodePool
    from callwright.training.algorithm import Algorithm


@frozen(init=False)
class Pipeline:
    """Corpus, reward, textual form and algorithm, each a component or its registered name, and their conditions.

    ``environment`` executes programs in place of the corpus' own. ``train`` and ``evaluation`` are splits of the
    corpus. ``source`` is the recipe file that this was made of, if it was. Raises :class:`callwright.UsageError` for
    names that are not registered, and for a reward and an algorithm that do not go together (:func:`under_algorithm`).
    """

    corpus: Corpus
    reward: RewardRecipe
    parser: Parser
    algorithm: Algorithm | None
    environment: Environment | None
    conditions: Conditions
    train: str
    evaluation: str
    registry: Registry = field(repr=False)
    source: LoadedRecipe | None = field(repr=False)

    def __init__(
        self,
        corpus: Corpus | str,
        reward: RewardRecipe | str = "tier",
        parser: Parser | str = "json",
        algorithm: Algorithm | str | None = None,
        environment: Environment | str | None = None,
        conditions: Conditions = DEFAULT_CONDITIONS,
        train: str = "train",
        evaluation: str = "evaluation",
        registry: Registry | None = None,
        source: LoadedRecipe | None = None,
    ) -> None:
        known = registry or default_registry()

        def component(kind: str, given: Any) -> Any:
            return known.create(kind, given) if isinstance(given, str) else given

        trained_by = component("algorithm", algorithm)
        self.__attrs_init__(
            component("corpus", corpus),
            under_algorithm(component("reward recipe", reward), trained_by),
            component("parser", parser),
            trained_by,
            component("environment", environment),
            conditions,
            train,
            evaluation,
            known,
            source,
        )

    @property
    def recipe(self) -> LoadedRecipe:
        """The recipe that this was made of. Raises :class:`callwright.UsageError` for a pipeline made without one."""
        if self.source is None:
            raise UsageError("this pipeline was made without a recipe, which training needs: use callwright.train(…)")
        return self.source

    def tasks(self, split: str, limit: int | None = None) -> Sequence[Task]:
        """The tasks of a split, or the first ``limit`` of them.

        Raises :class:`callwright.errors.UnknownName` for a split that the corpus does not have, and
        :class:`callwright.UsageError` for a limit below 1.
        """
        tasks = first_tasks(self.corpus[split], limit)
        if self.environment is None:
            return tasks
        return [self.placed(task) for task in tasks]

    def task(self, task_id: object) -> Task:
        """The task of a row. Raises :class:`callwright.errors.DataError` for an id that the corpus does not know."""
        if not isinstance(task_id, str):
            raise DataError(f"the id of a task is a text, not {task_id!r:.60}")
        return self.placed(task_of(self.corpus, task_id))

    def placed(self, task: Task) -> Task:
        """The task in the environment of this pipeline."""
        environment = self.environment or task.environment
        return task if environment is task.environment else evolve(task, environment=environment)

    def messages(
        self, task: Task, shots: Sequence[Task] = (), *, native: bool = False, limits: TurnLimits | None = None
    ) -> tuple[Message, ...]:
        """Task -> messages, with worked examples between instructions and query.

        ``native``: for a sampler that hands the tools to its model itself
        (:func:`callwright.walk.sampling.offers_tools`). ``limits``: the turns of the attempt, which instructions
        follow; left out, those of the conditions.
        """
        limits = limits_for(task.facts, limits or self.conditions.limits)
        return build_messages(task, self.parser, self.registry, shots, native=native, limits=limits)

    def attempt(
        self,
        task: Task,
        completion: Completion | str | Sequence[Completion | str],
        progress: Progress | None = None,
        *,
        said: Sequence[Said | None] = (),
    ) -> Attempt:
        """Completion -> attempt, which parses, validates and executes when it is asked to; several are its turns.

        ``said`` is what the task's user said and did after each.
        """
        conditions = self._heard(None)
        if progress is not None:
            conditions = evolve(conditions, progress=progress)
        return Attempt(task, completion, self.parser, conditions, said=said)

    def token_episode(
        self,
        task: Task,
        codec: Codec,
        *,
        messages: Sequence[Message] | None = None,
        conditions: Conditions | None = None,
        prompt_ids: tuple[int, ...] | None = None,
    ) -> TokenEpisode:
        """An attempt to be made as token ids, for an engine to drive (:func:`callwright.episodes.drive_batch`).

        ``prompt_ids`` spare tokenising the prompt again: those of another episode of the task with the same messages.
        Raises :class:`callwright.episodes.PromptTooLong`.
        """
        heard = self._heard(conditions)
        said = self.messages(task, limits=heard.limits) if messages is None else messages
        return TokenEpisode(task, self.parser, codec, said, heard, prompt_ids)

    def conversation(
        self,
        task: Task,
        messages: Sequence[Message] | None = None,
        conditions: Conditions | None = None,
        observation_role: Literal["tool", "user"] = "tool",
        native: bool = False,
    ) -> Conversation:
        """An attempt to be made as messages, for a sampler of texts (:func:`callwright.episodes.converse`).

        ``native`` is for samplers that hand the tools to their model by themselves.
        """
        heard = self._heard(conditions)
        return Conversation(
            task,
            self.parser,
            self.messages(task, limits=heard.limits) if messages is None else messages,
            heard,
            observation_role=observation_role,
            native=native,
        )

    def score(self, attempt: Attempt) -> Reward:
        return self.tell(attempt, self.reward.score_attempt(attempt))

    def scoring(self, attempts: Iterable[Attempt]) -> Iterator[tuple[Attempt, Reward]]:
        """Attempts with their rewards, in their order; those that wait for something wait together.

        Attempts are taken as there is room for them, so that there may be any number
        (:meth:`callwright.RewardRecipe.scoring`).
        """
        taken = deque[Attempt]()

        def each() -> Iterator[Attempt]:
            for attempt in attempts:
                taken.append(attempt)
                yield attempt

        for reward in self.reward.scoring(each()):
            attempt = taken.popleft()
            yield attempt, self.tell(attempt, reward)

    def score_many(self, attempts: Iterable[Attempt]) -> list[Reward]:
        """Attempts -> rewards, as one by one; those that wait for something wait together."""
        return [reward for _, reward in self.scoring(attempts)]

    async def ascore(self, attempt: Attempt) -> Reward:
        """Attempt -> reward, in any event loop, which is never blocked."""
        reward = await self.reward.ascore(attempt)
        if self.registry.listens("callwright_attempt_scored"):
            from callwright.machines import event_loop

            await event_loop.in_thread(self.tell, attempt, reward)
        return reward

    def __enter__(self) -> Self:
        """Set up the reward's components that have a ``setup``; they are closed at the end of the block."""
        self.reward.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.reward.__exit__()

    def begin(self, attempt: Attempt) -> Future[Reward]:
        """Begin to score an attempt while the caller does something else. The hook is not told; :meth:`tell` does that.

        Cancelling the future cancels what waits.
        """
        from callwright.machines import event_loop

        return event_loop.submit(self.reward.ascore(attempt))

    def pool(self, executor: str = "serial", workers: int = 1, stuck_after: float | None = None) -> EpisodePool:
        """Workers for the episodes of a run, which execute and score them (:mod:`callwright.episodes.pool`).

        ``stuck_after`` (seconds): a worker without an answer counts as lost; 600 if left out. Raises
        :class:`callwright.UsageError` for an executor that does not exist, and for parts that cannot be sent to it.
        """
        from callwright.episodes.pool import STUCK_AFTER, EpisodePool

        return EpisodePool(
            self.parser,
            self.reward,
            self._heard(None).caller,
            executor=executor,
            workers=workers,
            stuck_after=STUCK_AFTER if stuck_after is None else stuck_after,
        )

    def tell(self, attempt: Attempt, reward: Reward) -> Reward:
        """Tell the hook ``callwright_attempt_scored`` of a reward, which is returned."""
        if self.registry.listens("callwright_attempt_scored"):
            self.registry.hook.callwright_attempt_scored(attempt=attempt, reward=reward)
        return reward

    def _heard(self, conditions: Conditions | None) -> Conditions:
        """These conditions, else the pipeline's own; with the event hook if a plugin listens to calls by now.

        Users of tasks come from the pipeline's registry.
        """
        conditions = self.conditions if conditions is None else conditions
        if conditions.users is None and self.registry is not default_registry():
            conditions = evolve(conditions, users=kinds_of(self.registry))
        if conditions.caller is not None:
            return conditions
        caller = event_caller(self.registry)
        return conditions if caller is None else evolve(conditions, caller=caller)


@frozen
class EventCaller:
    """Calls of models and of their users reach a session through the hook ``callwright_tool_call`` of a registry.

    A hook may raise :class:`callwright.InfrastructureFailure`, which masks the sample. Anything else that it raises is
    its bug, not the tool's, and becomes a :class:`callwright.errors.PluginError`.
    """

    registry: Registry = field(repr=False)

    def __call__(self, session: Session, call: Call, arguments: dict[str, Any]) -> Outcome:
        """What came of a call of the model."""
        return self._asked(session, call, arguments, "agent")

    def as_user(self, session: Session, call: Call, arguments: dict[str, Any]) -> Outcome:
        """What came of a call of the user, by a tool of its own."""
        return self._asked(session, call, arguments, "user")

    def _asked(self, session: Session, call: Call, arguments: dict[str, Any], by: By) -> Outcome:
        try:
            outcome = self.registry.hook.callwright_tool_call(session=session, call=call, arguments=arguments, by=by)
        except (InfrastructureFailure, PluginError):
            raise
        except Exception as error:  # not the tool's, whose exceptions are outcomes by now
            raise PluginError(f"a callwright_tool_call hook raised {type(error).__name__}: {error}") from error
        if not isinstance(outcome, Outcome):
            raise PluginError(f"a callwright_tool_call hook gave {outcome!r:.80} for a call; it must give an Outcome")
        return outcome


def event_caller(registry: Registry) -> EventCaller | None:
    """How calls reach a session if a plugin listens to them; ``None`` if nobody does."""
    return EventCaller(registry) if registry.listens("callwright_tool_call") else None


def under_algorithm(reward: RewardRecipe, algorithm: Algorithm | None) -> RewardRecipe:
    """The reward with what it says of cut-off completions under this algorithm.

    An algorithm that shapes overlong completions does so, where the reward leaves it open (its ``floor`` is then of no
    effect). Raises :class:`callwright.UsageError` for a reward that asks for shaping of an algorithm that does none,
    or for a floor under one that shapes: the same completion would be punished twice. Without an algorithm
    the trainer is somebody else's, and whoever asks for ``overlong`` says that it shapes.
    """
    if algorithm is None:
        return reward
    if isinstance(algorithm, ShapesOverlong) and algorithm.shapes_overlong:
        if reward.truncated is None:
            return evolve(reward, truncated="overlong")
        if reward.truncated == "floor":
            raise UsageError(
                f'truncated = "floor" and the overlong shaping of {algorithm.name!r} would punish a cut-off completion '
                'twice: set algorithm.overlong_buffer = 0, or truncated = "overlong" in [reward]'
            )
    elif reward.truncated == "overlong":
        raise UsageError(
            f'truncated = "overlong" leaves cut-off completions to the algorithm, and {algorithm.name!r} does not '
            'shape overlong completions with these options: set truncated = "floor" (or "as_is", "mask") in [reward], '
            "or take an algorithm that does, such as dapo with an overlong_buffer"
        )
    return reward


# From a recipe --------------------------------------------------------------------------------------------------------


def build_pipeline(
    loaded: LoadedRecipe,
    registry: Registry | None = None,
    *,
    corpus: Corpus | None = None,
    environment: Environment | None = None,
    reward: RewardRecipe | None = None,
    extra_rewards: Sequence[RewardComponent] = (),
    with_algorithm: bool = True,
) -> Pipeline:
    """Make the components of a recipe. Errors name the file and line that asked for what does not exist.

    ``corpus``, ``environment`` and ``reward`` take the place of those that the recipe names.
    """
    recipe, registry = loaded.recipe, registry or default_registry()
    together = Together()

    def part(kind: str, key: str, choice: Choice) -> Any:
        return together.made(lambda: create_part(loaded, registry, kind, key, choice))

    if environment is None and recipe.environment is not None:
        environment = part("environment", "environment", recipe.environment)
    scored: RewardRecipe | None = reward or part("reward recipe", "reward", recipe.reward)
    algorithm = part("algorithm", "algorithm", recipe.algorithm) if with_algorithm else None
    chosen: Corpus | None = corpus or part("corpus", "corpus", recipe.corpus)
    parser: Parser | None = part("parser", "ir", recipe.ir)
    if chosen is not None:
        for key in ("train", "evaluation"):
            split = getattr(recipe.corpus, key)
            if split not in chosen.splits:
                known = ", ".join(chosen.splits)
                message = f"corpus {chosen.name!r} has no split {split!r}. Known: {known}"
                together.mistakes.append(loaded.error(message, "corpus", key))
    if scored is not None and (algorithm is not None or not with_algorithm):
        try:
            scored = under_algorithm(scored, algorithm)
        except UsageError as error:
            together.mistakes.append(loaded.error(str(error), "reward", "truncated"))
    users = together.made(lambda: kinds_with(registry, loaded)) if recipe.user is not None else None
    together.check()
    assert scored is not None
    assert chosen is not None
    assert parser is not None
    return Pipeline(
        corpus=chosen,
        reward=scored.with_terms(*extra_rewards) if extra_rewards else scored,
        parser=parser,
        algorithm=algorithm,
        environment=environment,
        conditions=evolve(conditions_of(loaded, limits_of(chosen)), users=users),
        train=recipe.corpus.train,
        evaluation=recipe.corpus.evaluation,
        registry=registry,
        source=loaded,
    )


def conditions_of(loaded: LoadedRecipe, usual: TurnLimits = SINGLE_TURN) -> Conditions:
    """The conditions that a recipe states; ``usual`` are the limits of one that states none."""
    recipe = loaded.recipe
    limits = usual if recipe.turns is None else TurnLimits(**recipe.turns.model_dump())
    return Conditions(
        seed=recipe.seed,
        time_limit=recipe.time_limit,
        limits=limits,
        isolation=recipe.isolation,
        clock=None if recipe.clock is None else ClockPolicy(**recipe.clock.model_dump()),
        hazards=None if recipe.hazards is None else read_hazards(recipe.hazards.model_dump()),
    )


def open_pipeline(
    recipe: str | Path | RewardRecipe | Pipeline,
    corpus: str | Corpus | None = None,
    ir: str | Parser = "json",
    *,
    seed: int = 0,
    registry: Registry | None = None,
) -> Pipeline:
    """A pipeline for scoring: of a reward (or its name) with a corpus, or of a pipeline recipe without one.

    Raises :class:`callwright.UsageError` for names that do not exist, and for a reward without a corpus.
    """
    if isinstance(recipe, Pipeline):
        return recipe
    registry = registry or default_registry()
    if corpus is not None:
        reward = str(recipe) if isinstance(recipe, Path) else recipe
        conditions = Conditions(seed=seed, isolation="auto", limits=limits_of(corpus))
        return Pipeline(corpus, reward, ir, conditions=conditions, registry=registry)
    if isinstance(recipe, RewardRecipe):
        raise UsageError(f"the reward recipe {recipe.name!r} needs a corpus: pass corpus='…' with it")
    if str(recipe) in registry.names("reward recipe"):
        raise UsageError(f"{recipe!r} is a reward recipe; pass corpus='…' with it, or name a pipeline recipe")
    return build_pipeline(load_recipe(recipe), registry, with_algorithm=False)
