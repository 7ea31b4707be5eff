"""``callwright evaluate``: accuracy of a sampler, by depth and structure, with intervals."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from attrs import asdict, define, evolve, fields, frozen

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.failures import Stopped
from callwright.commands.safe_text import say

if TYPE_CHECKING:
    from callwright.environments.isolated.environment import Isolation
    from callwright.machines.chunk_work import ChunkWork, Executor
    from callwright.pipeline import Pipeline
    from callwright.plugins import PluginSource, Registry
    from callwright.training.evaluation import Verdict
    from callwright.training.reporter import Reporter
    from callwright.walk.attempt import Attempt
    from callwright.walk.sampling import Sampler
    from callwright.walk.tasks import Task
    from callwright.walk.undeclared import ToolCalls

SETTINGS: Final = "settings.json"
VERDICTS: Final = "verdicts.jsonl"
RESULT: Final = "evaluation.json"
MANIFEST: Final = "manifest.json"
#: Seconds that a batch may take: a model may be slow, and a tool that hangs has limits of its own.
_STUCK_AFTER: Final = 3600.0

#: Tasks from the first position up to the second, which is not among them.
Batch = tuple[int, int]
Judged = tuple[list["Verdict"], list[dict[str, Any]]]


@click.command("evaluate")
@click.option("--recipe", metavar="RECIPE", help="A pipeline recipe: its corpus, form and sampler are used.")
@click.option("--set", "overrides", multiple=True, metavar="A.B=C", help="Override a value of the recipe.")
@click.option("--corpus", metavar="NAME", help="The corpus, instead of a recipe.")
@options.data_option
@options.corpus_settings
@click.option("--ir", metavar="NAME", help="The form of the completions, with --corpus. Default: json.")
@click.option("--split", metavar="NAME", help="Default: the recipe's evaluation split; with --corpus: validation.")
@click.option("--sampler", metavar="NAME", help="What makes the completions. Default: the recipe's sampler.")
@click.option("--sampler-option", "sampler_options", multiple=True, metavar="K=V", help="An option of the sampler.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N tasks of the split.")
@click.option("--temperature", type=click.FloatRange(min=0), default=0.0, show_default=True, help="0: greedy.")
@click.option("--shots", type=click.IntRange(min=0), default=0, show_default=True, help="Examples in every prompt.")
@options.seed_option
@options.executor_options
@options.stuck_after_option(_STUCK_AFTER)
@options.time_limit_option
@options.isolation_option
@click.option("--batch", type=click.IntRange(min=1), default=64, show_default=True, help="Tasks sampled at a time.")
@click.option("-o", "--output", metavar="DIR", help="Keep completions and verdicts there, and go on from them.")
@options.yes_option
@options.accept_changes_option
@options.json_option
@click.pass_obj
def evaluate(
    app: App,
    recipe: str | None,
    overrides: tuple[str, ...],
    corpus: str | None,
    data: str | None,
    corpus_options: tuple[str, ...],
    ir: str | None,
    split: str | None,
    sampler: str | None,
    sampler_options: tuple[str, ...],
    limit: int | None,
    temperature: float,
    shots: int,
    seed: int,
    workers: int,
    executor: str,
    stuck_after: float,
    time_limit: float | None,
    isolation: Isolation | None,
    batch: int,
    output: str | None,
    yes: bool,
    accept_changes: bool,
    as_json: bool,
) -> None:
    """Measure a sampler: one completion per task, judged by whether its answer is right.

    Accuracies come with Wilson's 95% intervals. A task whose machinery failed is counted apart. With -o, an evaluation
    that was stopped goes on where it was when the same command is given again, and callwright report makes a page.
    With --workers, batches are sampled and judged by several processes, threads or Ray actors; the result is the same.
    """
    from callwright.commands.bars import reporter
    from callwright.commands.trust import SAMPLED, SCORED, allow
    from callwright.machines.chunk_work import ChunkWork, Salvage
    from callwright.machines.executors import make_executor
    from callwright.machines.redaction import redacted_value
    from callwright.plugins import PluginSource
    from callwright.recipe_file import load_recipe
    from callwright.walk.prompt import draw_shots

    chosen, keys = sampler, options.key_values(sampler_options, "--sampler-option")
    if (recipe is None) == (corpus is None):
        raise click.UsageError("name what to evaluate on: either --recipe RECIPE or --corpus NAME")
    if recipe is not None and (ir or data or corpus_options):
        raise click.UsageError("--ir, --data and --corpus-option go with --corpus; use --set with a recipe")
    if recipe is None and overrides:
        raise click.UsageError("--set goes with --recipe")
    if recipe is not None:
        loaded = load_recipe(recipe, overrides)
        parts, given = (SAMPLED, [f"sampler.{key}" for key in keys]) if chosen is None else (SCORED, [])
        allow(loaded, app.registry, parts, yes=yes, given=given)
    kind = options.executor_name(executor, workers)
    elsewhere = kind in ("process", "ray")
    asked = EvaluationRequest(
        plugins=app.registry.description() if elsewhere else PluginSource(None),
        recipe=recipe,
        overrides=overrides,
        corpus=corpus,
        options=options.corpus_keys(data, corpus_options),
        ir=ir or "json",
        split=split,
        sampler=chosen,
        sampler_options=keys,
        limit=limit,
        temperature=temperature,
        shots=shots,
        seed=seed,
        batch=batch,
        time_limit=time_limit,
        isolation=isolation,
    )
    here = asked.open(app.registry)  # also where the work is done elsewhere: what is wrong is said at once
    pipeline = here.pipeline
    for task in here.tasks[:1]:
        draw_shots(pipeline.corpus, task, shots)  # a corpus without any is refused before a folder is made
    work = Evaluation(
        pipeline=pipeline,
        tasks=here.tasks,
        work=ChunkWork(
            asked.open if elsewhere else partial(asked.open, app.registry, here),
            evaluate_batch,
            Salvage(halves_of_batch, joined, partial(lost_task, here)),
            time_limit=stuck_after,
        ),
        executor=make_executor(kind, workers),
        seed=seed,
        batch=batch,
        folder=Path(output) if output else None,
        command=app.command,
        accept_changes=accept_changes,
        split=here.split,
        settings=redacted_value(
            {
                "corpus": here.corpus_settings() | {"split": here.split},
                "ir": pipeline.parser.name,
                "sampler": {"name": here.sampler_name, **here.sampler_options},
                "limit": limit,
                "temperature": temperature,
                "seed": seed,
                "batch": batch,
                "shots": shots,
                # Only where there are any, so that evaluations from before there were turns go on.
                **here.turn_settings(),
            }
        ),
    )
    try:
        with reporter() as bars, work.alone():
            result = work.run(bars)
    except KeyboardInterrupt as stop:
        kept = f"nothing in {output} is lost; the same command goes on" if output else "nothing was kept (no -o)"
        raise Stopped(f"stopped; {kept}") from stop
    usage = getattr(here.sampler, "usage", None)
    if usage is not None and usage.requests:  # of a server, asked from this process
        counted = usage.to_json()
        say(", ".join(f"{value:,} {name.replace('_', ' ')}" for name, value in counted.items() if value))
    if as_json:
        click.echo(json.dumps(result, indent=2))
    else:
        _draw(result, title=f"{here.sampler_name} on {pipeline.corpus.name}, {here.split}")
        if output and "report" in app.registry.names("command"):
            click.echo(f"report: {shlex.join(['callwright', *app.plugin_options(), 'report', output])}")


@frozen
class EvaluationRequest:
    """What the command line asks for: all that a worker must know."""

    plugins: PluginSource
    recipe: str | None
    overrides: tuple[str, ...]
    corpus: str | None
    options: Mapping[str, Any]
    ir: str
    split: str | None
    sampler: str | None
    sampler_options: Mapping[str, Any]
    limit: int | None
    temperature: float
    shots: int
    seed: int
    batch: int
    time_limit: float | None = None
    isolation: Isolation | None = None

    def open(self, registry: Registry | None = None, made: Opened | None = None) -> Opened:
        """Corpus, tasks and sampler, unless they were ``made``. Raises :class:`callwright.UsageError`."""
        from callwright.commands.pipelines import make_pipeline, make_sampler
        from callwright.errors import UsageError
        from callwright.pipeline import build_pipeline
        from callwright.recipe_file import load_recipe

        if made is not None:
            return made
        registry = registry or self.plugins.load()
        name, given, split = self.sampler, dict(self.sampler_options), self.split
        if self.recipe is not None:
            loaded = load_recipe(self.recipe, self.overrides)
            pipeline = build_pipeline(loaded, registry, with_algorithm=False)
            split = split or loaded.recipe.corpus.evaluation
            if name is None and loaded.recipe.sampler is not None:
                name, given = loaded.recipe.sampler.name, {**loaded.recipe.sampler.options, **given}
        else:
            assert self.corpus is not None
            pipeline = make_pipeline(registry, self.corpus, self.options, ir=self.ir, seed=self.seed)
            split = split or "validation"
        if self.time_limit is not None:
            pipeline = evolve(pipeline, conditions=evolve(pipeline.conditions, time_limit=self.time_limit))
        if self.isolation is not None:
            pipeline = evolve(pipeline, conditions=evolve(pipeline.conditions, isolation=self.isolation))
        if name is None:
            raise click.UsageError("name what makes the completions: --sampler NAME")
        if split not in pipeline.corpus.splits:
            known = ", ".join(pipeline.corpus.splits)
            raise UsageError(
                f"corpus {pipeline.corpus.name!r} has no split {split!r}; choose one with --split: {known}"
            )
        tasks = list(pipeline.tasks(split, self.limit))
        return Opened(
            self, pipeline, tasks, split, name, given, make_sampler(registry, name, given, ir=pipeline.parser.name)
        )


@frozen(eq=False)
class Opened:
    """What a worker has: the components, and what was asked of them."""

    asked: EvaluationRequest
    pipeline: Pipeline
    tasks: list[Task]
    split: str
    sampler_name: str
    sampler_options: dict[str, Any]
    sampler: Sampler

    def corpus_settings(self) -> dict[str, Any]:
        """The corpus as a recipe would name it, for those who go on."""
        from callwright.recipe_file import CorpusChoice

        made, asked = self.pipeline, self.asked
        if made.source is not None:
            return made.source.recipe.corpus.model_dump(mode="json")
        stated = {"name": asked.corpus, "train": made.train, "evaluation": made.evaluation}
        return CorpusChoice.model_validate({**asked.options, **stated}).model_dump(mode="json")

    def turn_settings(self) -> dict[str, Any]:
        """The recipe's limits of turns, if it has any."""
        turns = self.pipeline.source.recipe.turns if self.pipeline.source is not None else None
        return {} if turns is None else {"turns": turns.model_dump()}


def evaluate_batch(opened: Opened, batch: Batch) -> Judged:
    """The verdicts of a batch, and a row to keep for each."""
    from callwright.training.evaluation import evaluate as judge_all
    from callwright.walk.undeclared import ToolCalls

    asked = opened.asked
    rows: list[dict[str, Any]] = []

    def keep(attempt: Attempt, verdict: Verdict) -> None:
        # A row of this file is also a row that ``callwright score`` reads.
        row = {"id": verdict.task, **asdict(verdict), "query": attempt.task.query}
        completions = [turn.completion.text for turn in getattr(attempt, "turns", ())]
        several = {"completions": completions} if len(completions) > 1 else {}
        calls = ToolCalls()
        calls.add(attempt)
        rows.append({**row, "completion": attempt.completion.text, **several, **calls.to_row()})

    verdicts = judge_all(
        opened.pipeline,
        opened.tasks[slice(*batch)],
        opened.sampler,
        temperature=asked.temperature,
        seed=asked.seed,
        batch=asked.batch,
        shots=asked.shots,
        keep=keep,
    )
    return verdicts, rows


def halves_of_batch(batch: Batch) -> Sequence[Batch]:
    """A batch in two, or as it is if it holds one task. What is sampled hangs on the task, not on its batch."""
    start, end = batch
    middle = (start + end) // 2
    return ((start, middle), (middle, end)) if middle > start else (batch,)


def joined(parts: Sequence[Judged]) -> Judged:
    """What came of the parts of a batch, as what came of the batch."""
    return [verdict for verdicts, _ in parts for verdict in verdicts], [row for _, rows in parts for row in rows]


def lost_task(opened: Opened, batch: Batch, reason: str) -> Judged:
    """A task that cost several workers: nothing is known of it, so it is masked, and its row says why."""
    from callwright.training.evaluation import Verdict

    task = opened.tasks[batch[0]]
    say(f"task {task.id!r}: several workers were lost to it ({reason}); it is masked")
    verdict = Verdict(task.id, task.depth, task.structure, answer=False, valid=False, failure="masked", masked=True)
    return [verdict], [{"id": task.id, **asdict(verdict), "query": task.query, "completion": "", "lost": reason}]


@define
class Evaluation:
    """One evaluation. With a folder, every batch is on the disk before the next begins; a new start goes on there."""

    pipeline: Pipeline
    tasks: list[Task]
    work: ChunkWork[Opened, Batch, Judged]
    executor: Executor
    seed: int
    batch: int
    folder: Path | None
    #: The command line, kept for the report.
    command: str
    settings: dict[str, Any]
    accept_changes: bool
    split: str

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be the only one that writes into the folder, if there is one."""
        if self.folder is None:
            yield
            return
        from callwright.training.ledger.owner import owned

        with owned(self.folder, "evaluation folder") as before:
            if before is not None:
                say(f"taking over from {before}, which is gone")
            yield

    def run(self, reporter: Reporter) -> dict[str, Any]:
        """Evaluate what is left. Batches are those of an uninterrupted run, so the completions are the same, too."""
        from callwright.training.evaluation import summarise
        from callwright.training.run_folder import append_jsonl, write_atomically
        from callwright.walk.undeclared import ToolCalls

        calls = ToolCalls()
        verdicts = self._resume(calls) if self.folder else []
        reporter.start("evaluation", len(self.tasks), len(verdicts))
        with self.executor as executor:
            batches = [
                (start, min(start + self.batch, len(self.tasks)))
                for start in range(len(verdicts), len(self.tasks), self.batch)
            ]
            for batch, rows in executor.map(self.work, batches):
                if self.folder:
                    append_jsonl(self.folder / VERDICTS, rows)
                verdicts += batch
                for row in rows:
                    calls.add_row(row)
                reporter.advance(len(batch))
        reporter.finish()
        result = summarise(verdicts)
        if calls.undeclared:
            result["undeclared"] = calls.to_json()
        if self.folder:
            write_atomically(self.folder / RESULT, json.dumps(result, indent=2) + "\n")
        return result

    def _resume(self, calls: ToolCalls) -> list[Verdict]:
        """The verdicts of whole batches of an earlier start. Raises :class:`RunError` if it was another evaluation."""
        from callwright.errors import RunError
        from callwright.training.ledger.account import settle
        from callwright.training.ledger.ingredients import Ingredients
        from callwright.training.ledger.owner import LOCK
        from callwright.training.run_folder import Run, describe_process, write_atomically

        assert self.folder is not None
        run = Run(self.folder)
        stated = json.dumps(self.settings, indent=2, sort_keys=True) + "\n"
        before = run.read_json(SETTINGS)
        if before is None:
            if any(not path.name.startswith(LOCK) for path in self.folder.iterdir()):
                raise RunError(f"{self.folder} is not empty and holds no evaluation; choose another folder (-o)")
            write_atomically(self.folder / SETTINGS, stated)
        elif before != json.loads(stated):
            differing = sorted(key for key in {*before, *self.settings} if before.get(key) != self.settings.get(key))
            raise RunError(
                f"{self.folder} holds an evaluation with other settings ({', '.join(differing)}); choose another (-o)"
            )
        begun = before is not None and (self.folder / VERDICTS).exists()
        made_of = Ingredients.of(self.pipeline, {self.split: self.tasks})
        settle(self.folder, made_of, begun=begun, accept=self.accept_changes, say=say)
        if not (self.folder / MANIFEST).exists():  # a start may have been killed before it was written
            about = describe_process(
                self.pipeline.registry, command=self.command, seed=self.seed, tasks=len(self.tasks)
            )
            write_atomically(self.folder / MANIFEST, json.dumps(about, indent=2, sort_keys=True) + "\n")
        rows = run.rows(VERDICTS)
        whole = len(rows) if len(rows) == len(self.tasks) else len(rows) - len(rows) % self.batch
        run.truncate(VERDICTS, whole)
        found = [_verdict(f"{run.path / VERDICTS}:{line}", row) for line, row in enumerate(rows[:whole], 1)]
        for row in rows[:whole]:
            calls.add_row(row)
        if [verdict.task for verdict in found] != [task.id for task in self.tasks[:whole]]:
            raise RunError(f"{self.folder / VERDICTS} holds other tasks than the split; choose another folder (-o)")
        if found:
            say(f"going on after {len(found)} of {len(self.tasks)} tasks in {self.folder}")
        return found


#: The types of a row's values, as they are checked before anything is counted.
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "task": (str,),
    "depth": (int,),
    "structure": (str,),
    "answer": (bool,),
    "valid": (bool,),
    "failure": (str,),
    "masked": (bool,),
    "thought_words": (int, type(None)),
}


def _verdict(where: str, row: dict[str, Any]) -> Verdict:
    """The verdict of a row. Raises :class:`callwright.errors.DataError` for one that this command did not write."""
    from callwright.errors import DataError
    from callwright.training.evaluation import Verdict

    row = {"thought_words": None, **row}  # rows of earlier versions go on
    for name, types in _TYPES.items():
        if name not in row:
            raise DataError(f"{where}: the row has no {name!r}")
        if type(row[name]) not in types:
            expected = " or ".join("null" if one is type(None) else one.__name__ for one in types)
            raise DataError(f"{where}: {name!r} is {type(row[name]).__name__}, expected {expected}")
    return Verdict(**{one.name: row[one.name] for one in fields(Verdict)})


def _draw(result: dict[str, Any], title: str) -> None:
    from callwright.commands.terminal import interval, percent, screen, table, text

    console = screen()
    shown = table("", "tasks", "accuracy", "also valid", "commonest failures", right=(1, 2, 3), title=title)
    for depth, cell in result["by_depth"].items():
        failures = list(result["failures"].get(depth, {}).items())[:2]
        words = "\n".join(f"{count} {name}" for name, count in failures)
        shown.add_row(f"depth {depth}", str(cell["n"]), interval(cell), percent(cell["valid_accuracy"]), text(words))
    shown.add_section()
    for name, cell in result["by_structure"].items():
        shown.add_row(text(name), str(cell["n"]), interval(cell), percent(cell["valid_accuracy"]), "")
    shown.add_section()
    shown.add_row("all", str(result["n"]), percent(result["overall"]), percent(result["valid_overall"]), "")
    console.print(shown)
    if result["masked"]:
        console.print(f"{result['masked']} tasks masked: their machinery failed, so nothing is known of them")
    undeclared = result.get("undeclared")
    if undeclared:
        from callwright.walk.undeclared import alarm_of, sentence_of

        loud = {tool: counts for tool, counts in undeclared.items() if counts["alarming"]}
        console.print(text(f"alarm: {alarm_of(loud)}" if loud else sentence_of(undeclared)))
