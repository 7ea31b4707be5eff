"""``callwright openenv serve``: an environment behind OpenEnv's protocol."""

from __future__ import annotations

from typing import Any

import click

from callwright.commands.app import App
from callwright.commands.options import ComponentName, Finite, key_values
from callwright.commands.safe_text import say
from callwright.environments.hazards.policy import read_hazards
from callwright.environments.living.policy import read_policy
from callwright.machines.interrupts import Interrupted

_TOKEN = "CALLWRIGHT_TOKEN"


@click.command("serve")
@click.argument("name", type=ComponentName("environment"), metavar="ENV")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 picks a free one.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Where to listen. Other than this machine: --token."
)
@click.option("--token", envvar=_TOKEN, metavar="TEXT", help=f"Clients must bear it (better: ${_TOKEN}).")
@click.option("--scenario", default="", metavar="NAME", help="That of a reset that names none.")
@click.option("--seed", default=0, show_default=True, help="That of a reset that names none.")
@click.option("--clock", metavar="HOW", help="Let time move: on, or call=20,user_turn=180 (seconds).")
@click.option("--hazards", metavar="HOW", help="Let calls fail: off, or unavailable=0.1,limit=20/60.")
@click.option(
    "--option", "options", multiple=True, metavar="K=V", help="An option of the environment. May be repeated."
)
@click.option(
    "--sessions", default=4096, show_default=True, type=click.IntRange(1), help="The most sessions; more are refused."
)
@click.option(
    "--idle",
    default=1800.0,
    show_default=True,
    type=Finite(0),
    metavar="S",
    help="Give up sessions without a connection that were unused for so long; 0: never.",
)
@click.pass_obj
def serve(app: App, /, **given: Any) -> None:
    """Serve an environment to clients of OpenEnv: GenericEnvClient, MCPToolClient, and trainers that use them.

    Each connection is a session. A reset begins an episode: seed and scenario may be given.
    """
    from callwright_plugins.openenv_bridge.asgi import Where
    from callwright_plugins.openenv_bridge.asgi import serve as run
    from callwright_plugins.openenv_bridge.service import Service, checked

    where = Where(given["host"], given["port"], given["token"])
    environment = app.registry.create("environment", given["name"], **key_values(given["options"], "--option"))
    service = Service(
        environment,
        scenario=given["scenario"],
        seed=given["seed"],
        capacity=given["sessions"],
        idle=given["idle"] or None,
        clock=read_policy(given["clock"]),
        hazards=None if given["hazards"] is None else read_hazards(given["hazards"]),
    )
    checked(service)
    about = f"{environment.name}: {len(service.listing)} tools"
    ended_by = run(service, where, lambda url: say(f"serving {about} for OpenEnv at {url}"))
    if ended_by is not None:
        raise Interrupted(ended_by)
