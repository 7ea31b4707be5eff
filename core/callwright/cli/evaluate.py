"""``callwright evaluate``: accuracy of a sampler, by depth and structure, with intervals."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from attrs import asdict, define, field, fields

from callwright.cli import options
from callwright.cli.app import App
from callwright.cli.failures import Stopped, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from callwright.attempt import Attempt
    from callwright.corpus import Task
    from callwright.evaluation import Verdict
    from callwright.pipeline import Pipeline
    from callwright.progress import Reporter
    from callwright.sampler import Sampler

SETTINGS: Final = "settings.json"
VERDICTS: Final = "verdicts.jsonl"
RESULT: Final = "evaluation.json"
MANIFEST: Final = "manifest.json"


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
@click.option("--batch", type=click.IntRange(min=1), default=64, show_default=True, help="Tasks sampled at a time.")
@click.option("-o", "--output", metavar="DIR", help="Keep completions and verdicts there, and go on from them.")
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
    batch: int,
    output: str | None,
    as_json: bool,
) -> None:
    """Measure a sampler: one completion per task, judged by whether its answer is right.

    Accuracies come with Wilson's 95% intervals. A task whose machinery failed is counted apart. With -o, an evaluation
    that was stopped goes on where it was when the same command is given again, and callwright report makes a page.
    """
    from callwright.cli.bars import reporter
    from callwright.cli.components import make_pipeline, make_sampler
    from callwright.errors import UsageError
    from callwright.prompt import draw_shots

    chosen, keys = sampler, options.key_values(sampler_options, "--sampler-option")
    if (recipe is None) == (corpus is None):
        raise click.UsageError("name what to evaluate on: either --recipe RECIPE or --corpus NAME")
    if recipe is not None:
        if ir or data or corpus_options:
            raise click.UsageError("--ir, --data and --corpus-option go with --corpus; use --set with a recipe")
        pipeline, split = _from_recipe(app, recipe, overrides, split)
        named = pipeline.loaded.recipe.sampler
        if chosen is None and named is not None:
            chosen, keys = named.name, {**named.options, **keys}
    else:
        assert corpus is not None
        if overrides:
            raise click.UsageError("--set goes with --recipe")
        given = options.corpus_keys(data, corpus_options)
        pipeline, split = make_pipeline(app.registry, corpus, given, ir=ir or "json", seed=seed), split or "validation"
    if chosen is None:
        raise click.UsageError("name what makes the completions: --sampler NAME")
    if split not in pipeline.corpus.splits:
        known = ", ".join(pipeline.corpus.splits)
        raise UsageError(f"corpus {pipeline.corpus.name!r} has no split {split!r}; choose one with --split: {known}")
    tasks = list(pipeline.tasks(split, limit))
    for task in tasks[:1]:
        draw_shots(pipeline.corpus, task, shots)  # a corpus without any is refused before a folder is made
    work = Evaluation(
        pipeline=pipeline,
        tasks=tasks,
        sampler=make_sampler(app.registry, chosen, keys, ir=pipeline.parser.name),
        temperature=temperature,
        seed=seed,
        batch=batch,
        shots=shots,
        folder=Path(output) if output else None,
        command=app.command,
        settings={
            "corpus": pipeline.loaded.recipe.corpus.model_dump(mode="json") | {"split": split},
            "ir": pipeline.parser.name,
            "sampler": {"name": chosen, **keys},
            "limit": limit,
            "temperature": temperature,
            "seed": seed,
            "batch": batch,
            "shots": shots,
        },
    )
    try:
        with reporter() as bars:
            result = work.run(bars)
    except KeyboardInterrupt as stop:
        kept = f"nothing in {output} is lost; the same command goes on" if output else "nothing was kept (no -o)"
        raise Stopped(f"stopped; {kept}") from stop
    if as_json:
        click.echo(json.dumps(result, indent=2))
    else:
        _draw(result, title=f"{chosen} on {pipeline.corpus.name}, {split}")
        if output and "report" in app.registry.names("command"):
            click.echo(f"report: {shlex.join(['callwright', *app.plugin_options(), 'report', output])}")


def _from_recipe(app: App, recipe: str, overrides: Sequence[str], split: str | None) -> tuple[Pipeline, str]:
    from callwright.pipeline import build_pipeline
    from callwright.pipeline_recipe import load_recipe

    loaded = load_recipe(recipe, overrides)
    return build_pipeline(loaded, app.registry, with_algorithm=False), split or loaded.recipe.corpus.evaluation


@define
class Evaluation:
    """One evaluation. With a folder, every batch is on the disk before the next begins; a new start goes on there."""

    pipeline: Pipeline
    tasks: list[Task]
    sampler: Sampler
    temperature: float
    seed: int
    batch: int
    shots: int
    folder: Path | None
    #: The command line, kept for the report.
    command: str
    settings: dict[str, Any]
    _pending: list[dict[str, Any]] = field(factory=list)

    def run(self, reporter: Reporter) -> dict[str, Any]:
        """Evaluate what is left. Batches are those of an uninterrupted run, so the completions are the same, too."""
        from callwright.evaluation import evaluate as judge_all
        from callwright.evaluation import summarise
        from callwright.runs import append_jsonl

        verdicts = self._resume() if self.folder else []
        reporter.start("evaluation", len(self.tasks), len(verdicts))
        heard = 0

        def on_batch(count: int) -> None:
            nonlocal heard
            if self.folder:
                append_jsonl(self.folder / VERDICTS, self._pending)
            self._pending = []
            reporter.advance(count - heard)
            heard = count

        verdicts += judge_all(
            self.pipeline,
            self.tasks[len(verdicts) :],
            self.sampler,
            temperature=self.temperature,
            seed=self.seed + len(verdicts),
            batch=self.batch,
            shots=self.shots,
            on_batch=on_batch,
            keep=self._keep if self.folder else None,
        )
        reporter.finish()
        result = summarise(verdicts)
        if self.folder:
            from callwright.runs import write_atomically

            write_atomically(self.folder / RESULT, json.dumps(result, indent=2) + "\n")
        return result

    def _keep(self, attempt: Attempt, verdict: Verdict) -> None:
        # A row of this file is also a row that ``callwright score`` reads.
        row = {"id": verdict.task, **asdict(verdict), "query": attempt.task.query}
        self._pending.append({**row, "completion": attempt.completion.text})

    def _resume(self) -> list[Verdict]:
        """The verdicts of whole batches of an earlier start. Raises :class:`RunError` if it was another evaluation."""
        from callwright.errors import RunError
        from callwright.runs import Run, describe_process, write_atomically

        assert self.folder is not None
        run = Run(self.folder)
        stated = json.dumps(self.settings, indent=2, sort_keys=True) + "\n"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"{self.folder} cannot be written: {error.strerror or error}") from error
        before = run.read_json(SETTINGS)
        if before is None:
            if any(self.folder.iterdir()):
                raise RunError(f"{self.folder} is not empty and holds no evaluation; choose another folder (-o)")
            write_atomically(self.folder / SETTINGS, stated)
        elif before != json.loads(stated):
            differing = sorted(key for key in {*before, *self.settings} if before.get(key) != self.settings.get(key))
            raise RunError(
                f"{self.folder} holds an evaluation with other settings ({', '.join(differing)}); choose another (-o)"
            )
        if not (self.folder / MANIFEST).exists():  # a start may have been killed before it was written
            about = describe_process(
                self.pipeline.registry, command=self.command, seed=self.seed, tasks=len(self.tasks)
            )
            write_atomically(self.folder / MANIFEST, json.dumps(about, indent=2, sort_keys=True) + "\n")
        rows = run.rows(VERDICTS)
        whole = len(rows) if len(rows) == len(self.tasks) else len(rows) - len(rows) % self.batch
        run.truncate(VERDICTS, whole)
        found = [_verdict(run.path / VERDICTS, row) for row in rows[:whole]]
        if [verdict.task for verdict in found] != [task.id for task in self.tasks[:whole]]:
            raise RunError(f"{self.folder / VERDICTS} holds other tasks than the split; choose another folder (-o)")
        if found:
            say(f"going on after {len(found)} of {len(self.tasks)} tasks in {self.folder}")
        return found


def _verdict(path: Path, row: dict[str, Any]) -> Verdict:
    from callwright.errors import DataError
    from callwright.evaluation import Verdict

    try:
        return Verdict(**{one.name: row[one.name] for one in fields(Verdict)})
    except KeyError as error:
        raise DataError(f"{path}: a row has no {error.args[0]!r}") from error


def _draw(result: dict[str, Any], title: str) -> None:
    from callwright.cli.screen import interval, percent, screen, table, text

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
