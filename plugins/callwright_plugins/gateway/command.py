"""``callwright gateway``: serve a model to agents, a session for each task, and write down what came of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import click

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.options import ComponentName, Finite
from callwright.commands.safe_text import say
from callwright.episodes.gateway.gateway import Gateway
from callwright.episodes.gateway.session import GatewayTrajectory
from callwright.errors import UsageError
from callwright.machines.interrupts import Interrupted, heard_by_loop
from callwright.walk.conditions import Conditions
from callwright.walk.limits import TurnLimits
from callwright.walk.tasks import Task


@click.command("gateway")
@click.option("--sampler", type=ComponentName("sampler"), default="openai", show_default=True, help="What answers.")
@click.option("--sampler-option", "sampler_options", multiple=True, metavar="K=V", help="An option of the sampler.")
@click.option("--corpus", type=ComponentName("corpus"), required=True, metavar="NAME", help="Whose tasks.")
@click.option("--task", "tasks", multiple=True, required=True, metavar="ID", help="A task to open a session for.")
@click.option("--ir", type=ComponentName("parser"), default="hermes", show_default=True, help="The form of its calls.")
@click.option("--reward", type=ComponentName("reward recipe"), metavar="NAME", help="Score each session in the end.")
@click.option("--temperature", type=Finite(min=0), default=1.0, show_default=True, help="Of sampling.")
@click.option("--turns", type=click.IntRange(min=1), default=64, show_default=True, help="Answers of a session.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="0: a free one.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Append sessions (JSONL).")
@options.seed_option
@click.pass_obj
def gateway(app: App, /, **given: Any) -> None:
    """Serve a model to agents that nobody changed.

    For each --task a session is opened, and the URLs of its model and its tools are printed. Ctrl-C ends the sessions:
    what was said, called and found, and with --reward what it earned, is printed and written to --output.
    """
    asyncio.run(_serve(app, given))


async def _serve(app: App, given: dict[str, Any]) -> None:
    registry = app.registry
    corpus = registry.create("corpus", given["corpus"])
    tasks: list[Task] = [corpus.task(name) for name in given["tasks"]]
    reward = None if given["reward"] is None else registry.create("reward recipe", given["reward"])
    engine = registry.create(
        "sampler", given["sampler"], **options.key_values(given["sampler_options"], "--sampler-option")
    )
    conditions = Conditions(seed=given["seed"], limits=TurnLimits(assistant_turns=given["turns"]))
    serving = Gateway(engine, given["ir"], temperature=given["temperature"], conditions=conditions, registry=registry)
    if given["output"] is not None:  # now, and not when the first session has ended
        try:
            given["output"].open("a", encoding="utf-8").close()
        except OSError as error:
            raise UsageError(f"{given['output']} cannot be written: {error.strerror or error}") from error
    async with serving.serve(host=given["host"], port=given["port"]) as server:
        sessions = [server.open(task, seed=given["seed"] + number) for number, task in enumerate(tasks)]
        for session in sessions:
            click.echo(
                json.dumps(
                    {
                        "task": session.task.id,
                        "OPENAI_BASE_URL": session.url,
                        "ANTHROPIC_BASE_URL": session.anthropic_url,
                        "CALLWRIGHT_TOOLS_URL": session.tools_url,
                    }
                )
            )
        say("serving; Ctrl-C ends the sessions")
        with heard_by_loop() as ended:
            try:
                await ended
            except asyncio.CancelledError:
                pass
            finally:
                for session in sessions:
                    row = _row(await session.finish(), reward)
                    click.echo(json.dumps(row))
                    if given["output"] is not None:
                        with given["output"].open("a", encoding="utf-8") as file:
                            file.write(json.dumps(row) + "\n")
    if ended.done() and not ended.cancelled():
        raise Interrupted(ended.result())


def _row(made: GatewayTrajectory, reward: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "task": made.task.id,
        "turns": len(made.attempt.turns),
        "branches": len(made.branches),
        "sampled": made.sampled,
        "without_loss": made.without_loss,
        "findings": list(made.findings),
    }
    if reward is not None:
        found = reward.score_attempt(made.attempt)
        row |= {"reward": found.total, "masked": found.masked, "explanation": found.explain()}
    return row
