"""Rollouts to look at: the rows of a file, or those of a run folder, as attempts at tasks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import define, evolve, field, frozen

from callwright.commands.jsonl import BadRow, RowFile
from callwright.commands.pipelines import find_task, make_pipeline
from callwright.commands.row_files.episodes import as_masked, episode_of
from callwright.commands.trust import SCORED, allow
from callwright.episodes.logs.log import Log
from callwright.episodes.logs.logged import ORIGIN
from callwright.episodes.logs.reading import read_log
from callwright.errors import DataError, UsageError, near_path
from callwright.language.native import NATIVE_FORM
from callwright.language.strict_json import kind as json_kind
from callwright.pipeline import Pipeline, build_pipeline
from callwright.plugins import Registry
from callwright.recipe_file import load_recipe
from callwright.training.run_folder import ROLLOUTS, Run
from callwright.training.truncation import as_in_run
from callwright.walk.attempt import Attempt
from callwright.walk.completion import Completion
from callwright.walk.conditions import Progress
from callwright.walk.tasks import Task

if TYPE_CHECKING:
    from callwright.environments.isolated.environment import Isolation


@frozen
class Sample:
    """An attempt, the row that it came from, and its group: the attempts at one task in one step."""

    row_id: str | int
    attempt: Attempt
    group: Hashable
    row: Mapping[str, Any] = field(repr=False)


@define
class Source:
    """Where samples come from. ``rows`` and ``bad`` count what was read so far."""

    name: str
    path: str
    pipeline: Pipeline = field(repr=False)
    run: Run | None = None
    steps: int | None = None
    rows: int = 0
    bad: int = 0
    _tasks: dict[str, Task | str] = field(factory=dict, repr=False)

    def samples(self, complain: Callable[[str], object]) -> Iterator[Sample]:
        """Every row that can be used; ``complain`` hears of the others."""
        with RowFile(self.path) as rows:
            for row in rows:
                self.rows += 1
                try:
                    if isinstance(row, BadRow):
                        raise row
                    yield self.sample(row, rows.number)
                except BadRow as bad:
                    self.bad += 1
                    complain(f"{rows.name}:{rows.number}: {bad}")

    def sample(self, row: dict[str, Any], number: int) -> Sample:
        """The attempt of a row. Raises :class:`callwright.commands.jsonl.BadRow`."""
        row_id, name, completion = row.get("id", number), row.get("task"), row.get("completion")
        if type(row_id) is not str and type(row_id) is not int:
            raise BadRow(f"'id' is {json_kind(row_id)}, expected a string or an integer")
        if type(name) is int:
            name = str(name)
        if type(name) is not str or type(completion) is not str:
            raise BadRow("the row needs 'task', the id of a task, and 'completion', a string")
        task = self._task(name)
        progress = _progress(self._step(row.get("step")), row.get("total_steps", self.steps))
        text = Completion(completion, truncated=row.get("truncated") is True)
        group = row.get("group")
        if group is None:
            group = row.get("step")
        key = (name, group) if isinstance(group, str | int | None) else (name, repr(group))
        try:
            episode = episode_of(row)
        except DataError as error:
            raise BadRow(str(error)) from error
        if episode is not None:
            completions = as_masked(row, episode.completions)
            attempt = self.pipeline.attempt(task, completions, progress, said=episode.said)
        else:
            attempt = self.pipeline.attempt(task, as_masked(row, [text])[0], progress)
        return Sample(row_id, attempt, key, row)

    def under(self, time_limit: float | None, isolation: Isolation | None) -> None:
        """Execute under these limits, where they are stated, in place of the recipe's."""
        limits = {"time_limit": time_limit, "isolation": isolation}
        stated: dict[str, Any] = {name: limit for name, limit in limits.items() if limit is not None}
        if stated:
            self.pipeline = evolve(self.pipeline, conditions=evolve(self.pipeline.conditions, **stated))

    def _step(self, step: Any) -> Any:
        """The step as rewards are told it. Trainers count it from 0, and a run's rows from 1, like its metrics."""
        return step - 1 if self.run is not None and type(step) is int and step > 0 else step

    def _task(self, name: str) -> Task:
        task = self._tasks.get(name)
        if task is None:
            try:
                task = find_task(self.pipeline, name)
            except UsageError as error:  # remembered, since looking for similar names takes a while
                task = str(error)
            self._tasks[name] = task
        if isinstance(task, str):
            raise BadRow(task)
        return task


def _progress(step: Any, total: Any) -> Progress | None:
    if type(step) is int and type(total) is int and step >= 0 and total >= 1:
        return Progress(step, total)
    return None


def allow_run(registry: Registry, path: str, *, yes: bool) -> None:
    """Ask the user about what the recipe of a run folder would start, unless that is allowed.

    Raises :class:`callwright.UsageError` for a refusal.
    """
    if (Path(path) / "recipe.toml").is_file():  # anything else is refused when it is opened
        allow(load_recipe(Path(path) / "recipe.toml"), registry, SCORED, yes=yes, run_folder=Path(path))


def open_run(registry: Registry, path: str) -> Source:
    """The rollouts of a run folder, with the corpus, form and seed of its recipe.

    Raises :class:`callwright.errors.DataError` if the folder is no run or kept no rollouts.
    """
    run = Run.open(Path(path))
    loaded = load_recipe(run.path / "recipe.toml")
    if not (run.path / ROLLOUTS).exists():
        raise DataError(f"{path} holds no {ROLLOUTS}: the run was stopped early, or its trainer kept no rollouts")
    steps = loaded.recipe.trainer.options.get("steps")
    pipeline = build_pipeline(loaded, registry, with_algorithm=False)
    return Source(
        str(run.path.name or run.path),
        str(run.path / ROLLOUTS),
        # Without the algorithm it is not known what cut-off completions earned; the manifest knows.
        evolve(pipeline, reward=as_in_run(pipeline.reward, run.manifest)),
        run=run,
        steps=steps if type(steps) is int else None,
    )


@define
class Recorded(Source):
    """Samples of a log of other agents, whose tasks are of the corpus: what happened is not executed again."""

    form: str = "auto"

    def samples(self, complain: Callable[[str], object]) -> Iterator[Sample]:
        """Every log; ``complain`` hears of those that name no task of the corpus."""
        registry = self.pipeline.registry
        for log in read_log(self.path, None if self.form == "auto" else self.form, registry=registry):
            self.rows += 1
            origin = log.task.facts.get(ORIGIN)
            stated = origin.get("task") if isinstance(origin, Mapping) else None
            name = log.task.id if stated is None else str(stated)
            try:
                told = Log.recorded(
                    self._task(name), log.calls, log.messages, truncated=log.truncated, attempted=log.attempted
                )
            except BadRow as bad:
                self.bad += 1
                complain(f"{self.path}: {bad}")
                continue
            row = {"id": log.task.id, "task": name, "completion": ""}
            yield Sample(log.task.id, told.episode(parser=NATIVE_FORM), (name, None), row)


def open_source(
    registry: Registry,
    path: str | None,
    *,
    corpus: str | None,
    options: Mapping[str, Any],
    ir: str,
    seed: int,
    log_format: str | None = None,
) -> Source:
    """A run folder, or a file of rows ``{"id", "task", "completion"}`` with the corpus that the tasks are of.

    Without a path there is the corpus alone: tasks, and no samples. With ``log_format`` it is a log.
    """
    if log_format is not None:
        if path is None or corpus is None:
            raise click.UsageError("--format is of a log: name it, and with --corpus whose tasks it is of")
        return Recorded(path, path, make_pipeline(registry, corpus, options, ir=ir, seed=seed), form=log_format)
    if path is None:
        if corpus is None:
            raise click.UsageError("give a run folder, a file of rollouts, or --corpus alone to probe its tasks")
        return Source(corpus, "", make_pipeline(registry, corpus, options, ir=ir, seed=seed))
    if path != "-" and Path(path).is_dir():
        if corpus is not None or options:
            raise click.UsageError("a run's recipe says what its corpus is; leave --corpus and its options out")
        return open_run(registry, path)
    if path != "-" and not Path(path).exists():
        raise DataError(f"{path}: there is no such file or run folder{near_path(path)}")
    if corpus is None:
        raise click.UsageError("the rows' tasks are of a corpus: name it with --corpus, or give a run folder")
    return Source(path, path, make_pipeline(registry, corpus, options, ir=ir, seed=seed))
