"""The short functions of the package: what a script or notebook types.

Each takes ``registry=`` for embedders that keep their own plugins; without it the process-wide default is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callwright.errors import UsageError

if TYPE_CHECKING:
    from callwright.environments.composed.environment import ComposedEnvironment
    from callwright.environments.isolated.environment import Isolation
    from callwright.environments.protocol import Environment
    from callwright.language.parser import Parser
    from callwright.plugins import Registry
    from callwright.recipe_file import LoadedRecipe
    from callwright.tools.spec import FunctionTool
    from callwright.training.run_folder import Run
    from callwright.walk.reward import RewardComponent, RewardRecipe
    from callwright.walk.sampling import Sampler
    from callwright.walk.tasks import Corpus, Task
    from callwright.walk.users.user import UserKind


def _create(kind: str, name: str, registry: Registry | None, options: dict[str, Any]) -> Any:
    from callwright.plugins import default_registry

    return (registry or default_registry()).create(kind, name, **options)


def corpus(name: str, *, registry: Registry | None = None, **options: Any) -> Corpus:
    """A registered corpus: ``corpus("toolworld-mini-v1")["evaluation"][0]`` is a task."""
    made: Corpus = _create("corpus", name, registry, options)
    return made


def environment(
    name: str,
    *,
    tools: Sequence[FunctionTool] | None = None,
    isolation: Isolation = "none",
    registry: Registry | None = None,
    **options: Any,
) -> Environment:
    """A registered environment, or a new one made of plain functions: ``environment("mine", tools=[f, g])``.

    With ``isolation="process"`` its sessions live in processes that can be killed (:func:`callwright.isolated`), with
    ``"auto"`` if its tools are foreign and can be made again there.
    """
    made: Environment
    if tools is not None:
        from callwright.environments.functions import FunctionEnvironment

        made = FunctionEnvironment(name, tools, **options)
    else:
        made = _create("environment", name, registry, options)
    if isolation == "none":
        return made
    if isolation == "auto":
        from callwright.environments.isolated.placing import place

        return place(made, isolation, None) or made
    if isolation != "process":
        raise UsageError(f'isolation is "auto", "process" or "none", not {isolation!r:.40}')
    from callwright.environments.isolated.environment import isolated

    return isolated(made)


def compose(
    *parts: str | Environment,
    people: Any = None,
    money: str | None = None,
    registry: Registry | None = None,
    **options: Any,
) -> ComposedEnvironment:
    """Several environments as one: ``compose("email", "calendar")``. One session has the tools, rows and rules of all.

    ``parts`` are registered names or environments. ``people`` are those of all parts, the first of them signed in:
    persons (:class:`callwright.environments.people.person.Person`) or objects such as ``{"name": "Ada Berg"}``; left
    out, they are drawn from the seed, and with ``"own"`` each part has those of its scenario. ``money`` is the name of
    the part that is the bank to which other parts post what they charge: by default the first that is one, ``"own"``
    for none. ``options`` are those of the parts that are named, by part: ``email={"scale": 2}``; ``scale``,
    ``page_bytes`` and ``compact`` are those of all. Names alone give the registered environment ``email+calendar``.

    Raises :class:`callwright.UsageError` for fewer than two parts and :class:`callwright.errors.NameClash` for two of
    one name.
    """
    from callwright.environments.composed.environment import ComposedEnvironment

    if len(parts) > 1 and all(isinstance(part, str) for part in parts):
        whole = {"people": people, "money": money}
        given = {**options, **{name: value for name, value in whole.items() if value is not None}}
        made: ComposedEnvironment = _create("environment", "+".join(map(str, parts)), registry, given)
        return made
    of_all = {option: options.pop(option) for option in ("scale", "page_bytes", "compact") if option in options}
    of_each = {part: {**of_all, **options.pop(part, {})} for part in parts if isinstance(part, str)}
    if options:
        raise UsageError(f"options are those of parts that are given by name; {next(iter(options))!r} is none of them")
    return ComposedEnvironment(
        [_create("environment", part, registry, of_each[part]) if isinstance(part, str) else part for part in parts],
        people=people,
        money=money,
    )


def with_distractors(
    corpus: str | Corpus,
    *environments: str | Environment,
    tools: int = 8,
    seed: int = 0,
    registry: Registry | None = None,
) -> Corpus:
    """A corpus whose tasks are offered ``tools`` tools of other environments, too, which run and have effects.

    A registry knows it by name: ``corpus("toolworld-mini-v1+email")``. Raises :class:`callwright.UsageError` without
    environments.
    """
    from callwright.walk.distractors.corpus import DistractedCorpus

    inner: Corpus = _create("corpus", corpus, registry, {}) if isinstance(corpus, str) else corpus
    others = [_create("environment", one, registry, {}) if isinstance(one, str) else one for one in environments]
    return DistractedCorpus(inner, others, tools=tools, seed=seed)


def parser(name: str, *, registry: Registry | None = None, **options: Any) -> Parser:
    """A registered intermediate representation, such as ``json``."""
    made: Parser = _create("parser", name, registry, options)
    return made


def reward(name: str, *, registry: Registry | None = None, **options: Any) -> RewardRecipe:
    """A registered reward recipe, such as ``tier``.

    Beside its own options each takes ``truncated`` (``as_is``, ``mask``, ``floor`` or ``overlong``): what a completion
    earns that was cut off, and ``floor``, the total that goes with it.
    """
    made: RewardRecipe = _create("reward recipe", name, registry, options)
    return made


def sampler(name: str, *, registry: Registry | None = None, **options: Any) -> Sampler:
    """A registered sampler, such as ``gold``."""
    made: Sampler = _create("sampler", name, registry, options)
    return made


def user(name: str, *, registry: Registry | None = None, **options: Any) -> UserKind:
    """A registered kind of user, such as ``scripted``: ``user("replayed", says=["And now?"]).begin(task, seed)``.

    A task names one by a :class:`callwright.walk.users.said.UserSpec`.
    """
    made: UserKind = _create("user", name, registry, options)
    return made


def train(
    recipe: str | Path | Mapping[str, Any] | LoadedRecipe,
    *,
    output: str | Path | None = None,
    overrides: Sequence[str] = (),
    corpus: Corpus | Sequence[Task] | None = None,
    environment: Environment | None = None,
    reward: RewardRecipe | None = None,
    extra_rewards: Sequence[RewardComponent] = (),
    registry: Registry | None = None,
    accept_changes: bool = False,
) -> Run:
    """Train by a pipeline recipe and return the run folder, which is resumed if it was begun before.

    ``recipe`` is a file, the name of a shipped recipe, or what a file would hold: ``{"corpus": "toolworld-mini-v1",
    "algorithm": {"name": "grpo"}}``. ``corpus``, ``environment`` and ``reward`` are objects in place of names, and a
    corpus may be a list of tasks.
    With ``accept_changes`` a run goes on though its corpus, plugins or versions changed.

    Raises :class:`callwright.errors.FolderTaken` for an ``output`` that holds something else than a run, and
    :class:`callwright.CallwrightError` in all foreseen cases.
    """
    from callwright.training.recipe_run import run_recipe

    return run_recipe(
        recipe,
        output=output,
        overrides=overrides,
        corpus=corpus,
        environment=environment,
        reward=reward,
        extra_rewards=extra_rewards,
        registry=registry,
        accept_changes=accept_changes,
    )
