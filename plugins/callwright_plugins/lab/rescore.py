"""``callwright rescore``."""

from __future__ import annotations

import json
from contextlib import ExitStack

import click

from callwright.cli import options
from callwright.cli.app import App
from callwright.cli.failures import say
from callwright.cli.rows import RowSink, is_same_file
from callwright.cli.score import RewardWriter, Tally
from callwright.reward import RewardRecipe
from callwright_plugins.lab.reading import open_run
from callwright_plugins.lab.replay import Replay

#: Differences that are said one by one; --json has all of them.
_SHOWN = 5


@click.command("rescore")
@click.argument("run", metavar="RUN")
@options.reward_option
@click.option("-o", "--output", metavar="OUT.jsonl", help="Write the rewards here ('-': stdout, '.gz': compressed).")
@options.json_option
@click.pass_obj
def rescore(app: App, run: str, reward: str, output: str | None, as_json: bool) -> None:
    """Execute a run's rollouts again and score them.

    Every rollout of the run folder RUN is parsed and executed again in a fresh session of its scenario and the run's
    seed, stateful environments included. What the calls came to, the state after each of them, and the reward under
    the run's own recipe are compared with what is recorded; the exit status is 1 if anything differs. Then everything
    is scored with --recipe. OUT.jsonl gets rows as `callwright score` writes them; their id is the line of the rollout.
    """
    source = open_run(app.registry, run)
    if output and is_same_file(source.path, output):
        raise click.UsageError(f"{output} is the run's own file of rollouts")
    recipe: RewardRecipe = app.registry.create("reward recipe", reward)
    replay, tally, writer = Replay(), Tally(), RewardWriter()
    with ExitStack() as stack:
        sink = stack.enter_context(RowSink(output)) if output else None
        for sample in source.samples(say):
            scored = recipe.score_attempt(sample.attempt)
            replay.check(
                sample.row_id, sample.row, sample.attempt, source.pipeline.reward.score_attempt(sample.attempt)
            )
            tally.add(scored)
            if sink is not None:
                sink.write(writer.line(sample.row_id, scored))
    tally.bad = source.bad
    if as_json:
        click.echo(json.dumps({"replay": replay.to_json(), "scores": tally.to_json()}, indent=2), err=output == "-")
    else:
        for difference in replay.differences[:_SHOWN]:
            where = f"line {difference['id']}" + ("" if difference["call"] is None else f", call {difference['call']}")
            say(f"{where}: {difference['what']} was {difference['recorded']!r}, is now {difference['now']!r}")
        if len(replay.differences) > _SHOWN:
            say(f"… and {len(replay.differences) - _SHOWN:,} more; --json lists all")
        for sentence in (*replay.sentences(), f"Under {reward}: {tally.sentence()}."):
            click.echo(sentence, err=output == "-")
    if source.bad or not replay.same:
        click.get_current_context().exit(1)
