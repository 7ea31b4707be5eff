"""``callwright env serve``: an environment as an MCP server."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import click

from callwright.commands.app import App
from callwright.commands.options import ComponentName, Finite, key_values
from callwright.environments.hazards.policy import read_hazards
from callwright.environments.living.policy import read_policy
from callwright.environments.protocol import Environment
from callwright.errors import UsageError
from callwright.machines.interrupts import Interrupted
from callwright.plugins import Registry

_TOKEN = "CALLWRIGHT_TOKEN"
_SESSION: Final = "default"
_SESSIONS: Final = 4096
_IDLE: Final = 1800.0


@click.command("serve")
@click.argument("name", type=ComponentName("environment"), metavar="ENV")
@click.option("--stdio", is_flag=True, help="Talk over stdin and stdout, as a client starts it.")
@click.option("--http", "port", type=click.IntRange(0, 65535), metavar="PORT", help="Listen for HTTP; 0 picks a port.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Where to listen. Other than this machine: --token."
)
@click.option("--token", envvar=_TOKEN, metavar="TEXT", help=f"Clients must bear it (better: ${_TOKEN}).")
@click.option("--allow-origin", "origins", multiple=True, metavar="URL", help="Answer web pages of this origin too.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="Answer under this name too.")
@click.option("--scenario", default="", metavar="NAME", help="What sessions are opened with unless the client says.")
@click.option("--seed", default=0, show_default=True, help="The seed of sessions unless the client says.")
@click.option(
    "--clock",
    metavar="HOW",
    help="Let time move: on, or call=20,user_turn=180 (seconds).",
)
@click.option("--hazards", metavar="HOW", help="Let calls fail: off, or unavailable=0.1,limit=20/60.")
@click.option(
    "--scale", type=Finite(), metavar="X", help="The environment's option scale: how many entities there are."
)
@click.option(
    "--toolset",
    "toolsets",
    type=ComponentName("toolset"),
    multiple=True,
    metavar="NAME",
    help="Add a registered toolset. May be repeated.",
)
@click.option(
    "--option", "options", multiple=True, metavar="K=V", help="An option of the environment. May be repeated."
)
@click.option("--helpers", is_flag=True, help="Let clients run hidden helper tools (_reset, _dump_state …).")
@click.option(
    "--time-limit", type=click.FloatRange(0, min_open=True), metavar="S", help="Seconds that a call may take."
)
@click.option(
    "--sessions", default=_SESSIONS, show_default=True, type=click.IntRange(1), help="The most sessions at a time."
)
@click.option(
    "--idle",
    default=_IDLE,
    show_default=True,
    type=Finite(0),
    metavar="S",
    help="Close sessions unused for so long; 0: never.",
)
@click.option("--session", metavar="NAME", help="One session for all requests that name none.")
@click.option("--record", metavar="FILE", help="Append every call and its outcome to this file (JSONL).")
@click.option("--print-config", is_flag=True, help="Print what to put into a client's configuration, and leave.")
@click.pass_obj
def serve(obj: object, /, **given: Any) -> None:
    """Serve an environment to MCP clients: Claude Desktop, the MCP Inspector, an agent of your own.

    Each client has a session; one that names sessions (io.callwright/session in a request's _meta) has as many as it
    likes.
    """
    if given["stdio"] == (given["port"] is not None):
        raise UsageError("say how to serve: either --stdio or --http PORT")
    if given["print_config"]:
        plugins = obj.plugin_options() if isinstance(obj, App) else []
        click.echo(json.dumps(client_config(given, plugins), indent=2))
        return
    from callwright_plugins.mcp_servers.serving.record import Record
    from callwright_plugins.mcp_servers.serving.service import Service
    from callwright_plugins.mcp_servers.serving.transports import HttpOptions, say, serve_http, serve_stdio
    from callwright_plugins.mcp_servers.wire import need_mcp

    need_mcp("env serve")
    where = None
    if not given["stdio"]:
        where = HttpOptions(given["host"], given["port"], given["token"], given["origins"], given["hosts"])
    environment = _environment(obj, given)
    service = Service(
        environment,
        scenario=given["scenario"],
        seed=given["seed"],
        helpers=given["helpers"],
        capacity=given["sessions"],
        idle=given["idle"] or None,
        time_limit=given["time_limit"],
        session=given["session"],
        notice=say,
        record=Record.at(given["record"], say) if given["record"] is not None else None,
        clock=read_policy(given["clock"]),
        hazards=None if given["hazards"] is None else read_hazards(given["hazards"]),
    )
    service.open(given["scenario"], given["seed"]).close()  # a wrong scenario is said here, not to the client
    about = f"{environment.name}: {len(service.listing)} tools"
    if where is None:
        say(f"serving {about} on stdin and stdout; for a client's configuration: --print-config")
        ended_by = serve_stdio(service)
        if ended_by is not None:
            stop = Interrupted(ended_by)
            say("stopped")
            os._exit(stop.exit_status)  # the thread that reads stdin cannot be stopped
        return
    ended_by = serve_http(service, where, lambda url: say(f"serving {about} at {url}"))
    if ended_by is not None:
        raise Interrupted(ended_by)


def _environment(obj: object, given: dict[str, Any]) -> Environment:
    from callwright.plugins import default_registry

    registry = getattr(obj, "registry", None)
    if not isinstance(registry, Registry):
        registry = default_registry()
    options = key_values(given["options"], "--option")
    if given["scale"] is not None:
        options["scale"] = given["scale"]
    if given["toolsets"]:
        options["toolsets"] = list(given["toolsets"])
    made: Environment = registry.create("environment", given["name"], **options)
    return made


def client_config(given: dict[str, Any], plugins: Sequence[str] = ()) -> dict[str, Any]:
    """The entry for a client's ``mcpServers`` (Claude Desktop, Inspector and most others read this form)."""
    name = given["name"]
    if not given["stdio"]:
        shown = f"[{given['host']}]" if ":" in given["host"] else given["host"]
        # Requests of the current protocol belong to no connection, so the URL says whose session they are for.
        session = quote(given["session"] or _SESSION, safe="")
        url = f"http://{shown}:{given['port']}/mcp?session={session}"
        entry: dict[str, Any] = {"type": "streamable-http", "url": url}
        if given["token"]:
            entry["headers"] = {"Authorization": f"Bearer {given['token']}"}
        return {"mcpServers": {name: entry}}
    words = _command()
    arguments = [*words[1:], *plugins, "env", "serve", name, "--stdio"]
    for option in ("scenario", "seed", "clock", "hazards", "scale", "time_limit", "session"):
        if given[option]:
            arguments += [f"--{option.replace('_', '-')}", str(given[option])]
    for option, values in (("--toolset", given["toolsets"]), ("--option", given["options"])):
        arguments += [word for value in values for word in (option, value)]
    for option, usual in (("sessions", _SESSIONS), ("idle", _IDLE)):
        if given[option] != usual:
            arguments += [f"--{option}", str(given[option])]
    if given["record"]:
        arguments += ["--record", str(Path(given["record"]).absolute())]
    if given["helpers"]:
        arguments.append("--helpers")
    return {"mcpServers": {name: {"command": words[0], "args": arguments}}}


def _command() -> Sequence[str]:
    """How this program is started from anywhere: clients know neither this folder nor this shell's PATH."""
    beside = Path(sys.executable).parent / "callwright"
    found = str(beside) if beside.is_file() else shutil.which("callwright")
    return [str(Path(found).absolute())] if found else [sys.executable, "-m", "callwright"]
