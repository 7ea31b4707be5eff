"""Running a pipeline recipe from beginning to end: build, train, report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from attrs import evolve

from callwright.capability import has
from callwright.errors import UsageError
from callwright.machines.redaction import REDACTED, holds_marks, redacted_value
from callwright.pipeline import Pipeline, build_pipeline
from callwright.plugins import Registry, default_registry
from callwright.recipe_file import LoadedRecipe, LoadedTable, load_recipe, write_toml
from callwright.recipe_parts import Together, create_trainer
from callwright.training.algorithm import GroupBaseline
from callwright.training.dry_runs.absence import AbsentCorpus, about_more_than_absence, absent_model, corpus_of
from callwright.training.ledger.account import settle
from callwright.training.ledger.ingredients import Ingredients
from callwright.training.ledger.owner import owned
from callwright.training.ledger.weights import weight_digests
from callwright.training.reporter import SILENT, Reporter
from callwright.training.run_folder import Run, describe_process, refuse_other_files
from callwright.training.spending import Meter, in_words
from callwright.training.tracking.following import create_trackers, followed
from callwright.training.trainer import Checking, ChecksModel, SamplesGroups
from callwright.training.truncation import cut_off_terms
from callwright.walk.components.capabilities import ChecksTasks
from callwright.walk.corpora.listed import ListedCorpus
from callwright.walk.tasks import usual_split

if TYPE_CHECKING:
    from callwright.environments.protocol import Environment
    from callwright.training.trainer import Trainer
    from callwright.walk.reward import RewardComponent, RewardRecipe
    from callwright.walk.tasks import Corpus, Task

logger = structlog.get_logger(__name__)


def run_recipe(
    recipe: str | Path | Mapping[str, Any] | LoadedRecipe,
    *,
    output: str | Path | None = None,
    overrides: Sequence[str] = (),
    corpus: Corpus | Sequence[Task] | None = None,
    environment: Environment | None = None,
    reward: RewardRecipe | None = None,
    extra_rewards: Sequence[RewardComponent] = (),
    registry: Registry | None = None,
    command: str = "",
    reporter: Reporter = SILENT,
    accept_changes: bool = False,
) -> Run:
    """Train by a recipe, in a file or in memory; go on where the run folder stops. Returns the finished run.

    ``corpus``, ``environment`` and ``reward`` are objects in place of what the recipe names. A corpus may be a list of
    tasks, and a recipe in memory need not name one beside it. ``output`` defaults to ``runs/<recipe name>-<time>``.
    With ``accept_changes`` a run goes on though corpus, plugins, versions or rows are not those that it was begun with,
    which its ledger then says.

    Raises :class:`callwright.errors.FolderTaken` for an ``output`` that holds something else than a run, and
    :class:`callwright.CallwrightError` in all foreseen cases; whatever was written before stays.
    """
    registry = registry or default_registry()
    if corpus is not None:
        corpus = ListedCorpus("listed", corpus) if isinstance(corpus, Sequence) else corpus
        if isinstance(recipe, Mapping) and "corpus" not in recipe:
            recipe = {**recipe, "corpus": {"name": corpus.name, "evaluation": usual_split(corpus)}}
    # The run folder says what was trained with, also where it was an object.
    loaded = load_recipe(recipe, overrides if reward is None else [*overrides, *_naming(reward, registry)])
    pipeline = build_pipeline(
        loaded, registry, corpus=corpus, environment=environment, reward=reward, extra_rewards=extra_rewards
    )
    return run_pipeline(pipeline, output=output, command=command, reporter=reporter, accept_changes=accept_changes)


def run_pipeline(
    pipeline: Pipeline,
    trainer: Trainer | None = None,
    *,
    output: str | Path | None = None,
    command: str = "",
    reporter: Reporter = SILENT,
    accept_changes: bool = False,
) -> Run:
    """Train a pipeline that was made of a recipe, with the recipe's trainer unless another is given.

    Raises :class:`callwright.errors.FolderTaken` for a folder that holds something else than a run, and
    :class:`callwright.errors.RunError` if another process writes into it, or if it was begun with another corpus, other
    plugins or versions, unless ``accept_changes``.
    """
    loaded, registry = pipeline.recipe, pipeline.registry
    trainer = trainer or create_trainer(loaded, registry)
    trackers = create_trackers(loaded, registry)
    check_group(pipeline, trainer)
    check_tasks(pipeline)
    if holds_marks(loaded.data):
        raise loaded.error(
            f"a secret was left out of this recipe ({REDACTED} stands in its place), so the run cannot go on from "
            "here; give the recipe that the run was begun with, and --output with this folder"
        )
    folder = Path(output) if output else default_folder(loaded.recipe.name)
    refuse_other_files(folder)
    manifest = describe_process(
        registry,
        command=command,
        seed=loaded.recipe.seed,
        started=_now(),
        directory=str(Path.cwd()),
        reward={"name": pipeline.reward.name, **cut_off_terms(pipeline.reward)},
    )
    text = kept_text(loaded)
    with owned(folder, "run folder") as before:
        if before is not None:
            reporter.say(f"taking over from {before}, which is gone")
        begun = (folder / "recipe.toml").exists()
        made_of = ingredients(pipeline, text, weight_digests(folder, [loaded.recipe.model.get("path")]))
        if not begun:
            settle(folder, made_of, begun=False, say=reporter.say)
        run = Run.create(folder, recipe_text=text, manifest=manifest, command=command)
        if begun:
            settle(folder, made_of, begun=True, accept=accept_changes, say=reporter.say)
        run = evolve(run, accept_changes=accept_changes)
        with followed(run, trackers, registry):
            with pipeline:  # its reward may have something to set up and to close
                meter = Meter(pipeline.reward)
                trainer.train(pipeline, run, reporter=reporter)
                if usage := meter.take():
                    reporter.say(f"rewards and evaluations asked: {in_words(usage)}")
            registry.hook.callwright_run_finished(run=run)
    return run


def ingredients(
    pipeline: Pipeline, recipe_text: str, weights: Mapping[str, Mapping[str, str]] | None = None
) -> Ingredients:
    """What the rows of a run are made of: both splits that its recipe names, the model's files, plugins, versions."""
    splits = dict.fromkeys((pipeline.train, pipeline.evaluation))
    # What a corpus reads is compared task by task, and models by their weights.
    source = pipeline.source.data if pipeline.source is not None else {}
    options = {key: value for key, value in source.items() if key not in ("corpus", "model")}
    return Ingredients.of(pipeline, {split: pipeline.corpus[split] for split in splits}, recipe_text, weights, options)


def prepare(loaded: LoadedRecipe, registry: Registry, *, planning: bool = False) -> tuple[Pipeline, Trainer]:
    """The pipeline and the trainer of a recipe, checked as far as can be without training.

    Where that is only ``planning``, files of the corpus and a model's folder need not be there, which is said; the
    corpus is then an :class:`callwright.training.dry_runs.absence.AbsentCorpus`. Raises
    :class:`callwright.errors.RecipeError` with a line for every mistake.
    """
    together = Together()
    corpus = corpus_of(loaded, registry) if planning else None
    absent = isinstance(corpus, AbsentCorpus)
    pipeline = together.made(lambda: build_pipeline(loaded, registry, corpus=corpus))
    trainer: Trainer | None = together.made(lambda: create_trainer(loaded, registry))
    together.made(lambda: create_trackers(loaded, registry))
    if pipeline is not None:
        made = pipeline
        together.made(lambda: check_tasks(made))
        if trainer is not None:
            chosen = trainer
            together.made(lambda: check_group(made, chosen))
    found: list[UsageError] = []
    if isinstance(trainer, Checking):
        checking = trainer
        found = together.made(lambda: list(checking.check(loaded, None if absent else pipeline))) or []
    elif trainer is None:
        found = together.made(lambda: _mistakes_of_model(loaded, registry, pipeline)) or []
    together.mistakes += about_more_than_absence(found, loaded) if planning else found
    together.check()
    assert pipeline is not None
    assert trainer is not None
    if isinstance(corpus, AbsentCorpus):
        logger.warning("planned without the corpus, which a run needs", reason=corpus.reason)
    if planning and len(about_more_than_absence(found, loaded)) < len(found):
        logger.warning("planned without the model, which a run needs", reason=f"there is no {absent_model(loaded)}")
    return pipeline, trainer


def _mistakes_of_model(loaded: LoadedRecipe, registry: Registry, pipeline: Pipeline | None) -> list[UsageError]:
    """What the class of a trainer has to say of ``[model]`` where there is no trainer."""
    name = loaded.recipe.trainer.name
    kind = registry.spec("trainer", name).load() if name in registry.names("trainer") else None
    return list(kind.model_mistakes(loaded, pipeline)) if isinstance(kind, ChecksModel) else []


def kept_text(loaded: LoadedTable) -> str:
    """The effective recipe as a run folder keeps it: as it was written, or written anew where it holds secrets."""
    kept = redacted_value(loaded.data)
    return loaded.effective_text() if kept == loaded.data else write_toml(kept)


def _naming(reward: RewardRecipe, registry: Registry) -> list[str]:
    """Overrides that name a reward that is an object, and say what it has of cut-off completions that is its own."""
    named = [f"reward={reward.name}"]
    try:
        registered: RewardRecipe = registry.create("reward recipe", reward.name)
    except UsageError:  # nobody else can make it, whatever is written down
        return named
    if reward.truncated not in (None, registered.truncated):
        named.append(f"reward.truncated={reward.truncated}")
    if reward.floor not in (None, registered.floor):
        named.append(f"reward.floor={reward.floor!r}")
    return named


def check_tasks(pipeline: Pipeline) -> None:
    """Let a reward that needs something of each task look at those of training before any time is spent.

    Raises :class:`callwright.errors.DataError` naming the first bad one.
    """
    if has(pipeline.reward, ChecksTasks):
        pipeline.reward.check(pipeline.tasks(pipeline.train))


def check_group(pipeline: Pipeline, trainer: Trainer) -> None:
    """Refuse groups that are too small for an algorithm which compares the completions of a prompt.

    Raises :class:`callwright.errors.RecipeError` naming file and line.
    """
    algorithm = pipeline.algorithm
    if algorithm is None or not isinstance(algorithm, GroupBaseline) or not isinstance(trainer, SamplesGroups):
        return
    if trainer.group < algorithm.smallest_group:
        name = pipeline.recipe.recipe.algorithm.name
        raise pipeline.recipe.error(
            f"group = {trainer.group} teaches nothing: {name!r} compares the completions of a prompt with one another, "
            f"so it needs a group of {algorithm.smallest_group} or more. An algorithm without such a baseline, such as "
            "ppo or reinforce++, does with one",
            "trainer",
            "group",
        )


def default_folder(name: str) -> Path:
    """``runs/<name>-<UTC time>``."""
    return Path("runs") / f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
