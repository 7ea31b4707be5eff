"""``callwright judge-probe``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import click

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.options import ComponentName, Finite
from callwright.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from callwright.pipeline import Pipeline
    from callwright.walk.attempt import Attempt
    from callwright_plugins.judge.probes import Findings

_JUDGED: Final = ("rubric", "model", "base_url", "api_key_env", "teacher", "cache")


@click.command("judge-probe")
@click.argument("rollouts", metavar="[ROLLOUTS]", required=False)
@click.option(
    "--corpus", type=ComponentName("corpus"), required=True, metavar="NAME", help="The corpus that the tasks are of."
)
@click.option("--split", metavar="NAME", help="Without rows: the split whose tasks are taken. Default: the first.")
@options.data_option
@options.corpus_settings
@options.ir_option
@options.seed_option
@click.option("--tasks", "count", default=50, show_default=True, type=click.IntRange(min=1), help="So many cases.")
@click.option("--rubric", default="answer", show_default=True, metavar="NAME|FILE", help="What the judge looks at.")
@click.option("--model", metavar="NAME", help="The model that judges.")
@click.option("--base-url", metavar="URL", help="Where it is, if not at OpenAI's.")
@click.option("--api-key-env", metavar="NAME", help="The variable that holds the key.")
@click.option(
    "--teacher",
    type=ComponentName("teacher"),
    default="openai",
    show_default=True,
    metavar="NAME",
    help="Who is asked.",
)
@click.option("--judge-option", "pairs", multiple=True, metavar="K=V", help="A further option of the judge.")
@click.option("--cache", metavar="FILE", help="Keep verdicts here, and ask for none twice.")
@click.option("--probe", "names", multiple=True, metavar="NAME", help="Only this probe. May be repeated.")
@click.option("--threshold", default=0.5, show_default=True, type=Finite(0, 1), help="A score from here is a yes.")
@options.json_option
@click.pass_obj
def judge_probe(
    app: App,
    /,
    rollouts: str | None,
    corpus: str,
    split: str | None,
    data: str | None,
    corpus_options: tuple[str, ...],
    ir: str,
    seed: int,
    count: int,
    pairs: tuple[str, ...],
    names: tuple[str, ...],
    threshold: float,
    as_json: bool,
    **judged: Any,
) -> None:
    """Look at a judge before trusting it.

    ROLLOUTS is a file of rows {"task", "completion"}. Without one, the reference program of each task is taken, and a
    wrong one: the same with its calls spoiled. Each case is executed, so that it is known whether its answer is right,
    and judged: once plainly and once under each probe. Printed are how well the scores tell right from wrong (AUC,
    accuracy, Cohen's kappa), and how far order, length and claims move them beyond the judge's own noise.
    """
    from callwright.commands.pipelines import make_pipeline
    from callwright.machines import event_loop
    from callwright.training.teaching.teacher import connected
    from callwright_plugins.judge.probes import PROBES, probe, shows_words

    for name in names:
        if name not in PROBES:
            raise UnknownName("probe", name, PROBES)
    given = {key: judged[key] for key in _JUDGED if judged[key] is not None}
    judge = app.registry.create("reward component", "judge", **given, **options.key_values(pairs, "--judge-option"))
    pipeline = make_pipeline(app.registry, corpus, options.corpus_keys(data, corpus_options), ir=ir, seed=seed)
    attempts = _read(pipeline, rollouts, count) if rollouts is not None else _made(pipeline, split, count)
    if not attempts:
        raise UsageError("there is no case to judge")
    chosen = [name for name in PROBES if (not names or name in names)]
    unseen = [name for name in chosen if name in ("length", "claim") and not shows_words(judge)]
    chosen = [name for name in chosen if name not in unseen]

    async def work() -> Findings:
        async with connected(judge.teacher) as asker:
            return await probe(judge, asker, attempts, chosen, threshold)

    found = event_loop.run(work())
    if as_json:
        click.echo(json.dumps({"rubric": judge.rubric.name, **found.to_json(), "unseen": unseen}, indent=2))
    else:
        _draw(found, unseen)


def _made(pipeline: Pipeline, split: str | None, count: int) -> list[Attempt]:
    """Right and wrong programs, one after the other."""
    from callwright.commands.pipelines import make_sampler
    from callwright.walk.prompt import build_messages
    from callwright.walk.sampling import SamplingRequest

    corpus, registry = pipeline.corpus, pipeline.registry
    if split is not None and split not in corpus.splits:
        raise UnknownName(f"split of {corpus.name}", split, corpus.splits)
    tasks = [task for task in corpus[split or next(iter(corpus.splits))] if task.program is not None]
    # Drawn, since every tenth task of a corpus may well be of one depth.
    wanted = min(len(tasks), (count + 1) // 2)
    tasks = [tasks[index] for index in sorted(Random(pipeline.conditions.seed).sample(range(len(tasks)), wanted))]
    form = pipeline.parser.name
    gold = make_sampler(registry, "gold", {}, ir=form)
    spoiled = make_sampler(registry, "noisy-gold", {"p": 0.0}, ir=form)
    uncalled = make_sampler(registry, "random-valid", {}, ir=form)
    found = []
    for task in tasks:
        request = SamplingRequest(build_messages(task, pipeline.parser), task)
        for sampler in (gold, spoiled if task.program is not None and task.program.calls else uncalled):
            ((completion,),) = sampler.sample([request], n=1, seed=pipeline.conditions.seed)
            found.append(pipeline.attempt(task, completion))
    return found[:count]


def _read(pipeline: Pipeline, path: str, count: int) -> list[Attempt]:
    from callwright.commands.jsonl import BadRow, RowFile
    from callwright.commands.pipelines import find_task

    if path != "-" and not Path(path).is_file():
        raise UsageError(f"there is no file {path}")
    found: list[Attempt] = []
    with RowFile(path) as rows:
        for row in rows:
            if len(found) == count:
                break
            if isinstance(row, BadRow):
                raise UsageError(f"{rows.name}:{rows.number}: {row}")
            task, completion = row.get("task"), row.get("completion")
            if type(task) is not str or type(completion) is not str:
                raise UsageError(f"{rows.name}:{rows.number}: the row needs 'task' and 'completion', both texts")
            found.append(pipeline.attempt(find_task(pipeline, task), completion))
    return found


def _draw(found: Findings, unseen: Sequence[str]) -> None:
    from callwright.commands.terminal import screen, table, text
    from callwright_plugins.judge.probes import PROBES

    console, truth = screen(), found.by_truth
    console.print(
        f"{found.cases} cases, {found.right} with the right answer; "
        + (f"{found.failed} got no verdict" if found.failed else "each got a verdict")
    )
    rows = table("", "", right=(1,))
    rows.add_row("mean score", _number(found.mean))
    rows.add_row("AUC: a right one above a wrong one", _number(truth.auc))
    rows.add_row(f"accuracy at {truth.threshold:g}", _number(truth.accuracy))
    rows.add_row("Cohen's kappa there", _number(truth.kappa))
    console.print(rows)
    moved = table("probe", "shift", "95% interval", "changed", "n", right=(1, 2, 3, 4))
    for one in found.probes:
        ends = f"{_signed(one.shift.low)} to {_signed(one.shift.high)}" if one.shift.low is not None else "–"
        share = "–" if one.changed is None else f"{one.changed:.0%}"
        moved.add_row(text(f"{one.name}: {PROBES[one.name]}"), _signed(one.shift.mean), ends, share, str(one.shift.n))
    console.print(moved)
    if unseen:
        console.print(f"Not probed: {', '.join(unseen)}; the rubric shows nothing that a model says in its own words.")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.3f}"
