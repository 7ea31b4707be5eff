"""``callwright env list | tools | call``: what environments there are, what they offer, and one call."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from attrs import frozen

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.options import ComponentName, Finite
from callwright.environments.capabilities import scenarios_of

if TYPE_CHECKING:
    from callwright.environments.protocol import Environment, Outcome
    from callwright.plugins import Registry
    from callwright.tools.spec import ToolSpec

Command = TypeVar("Command", bound=Callable[..., Any])
#: Brackets around a value of an argument, at most.
_DEEPEST: Final = 64

#: How an environment is made and opened.
environment_options = options.stack(
    click.option(
        "--option", "settings", multiple=True, metavar="K=V", help="An option of the environment. Repeatable."
    ),
    click.option(
        "--toolset",
        "toolsets",
        type=ComponentName("toolset"),
        multiple=True,
        metavar="NAME",
        help="Add a registered toolset. Repeatable.",
    ),
    click.option("--scale", type=Finite(), metavar="NUMBER", help="Multiply the number of entities in the scenarios."),
)
session_options = options.stack(
    click.option("--scenario", default="", metavar="NAME", help="The scenario; the first one if left out."),
    options.seed_option,
)
clock_option = click.option(
    "--clock",
    metavar="HOW",
    help="Let time move: on, or call=20,user_turn=180 (seconds). As the scenario says if left out.",
)

hazards_option = click.option(
    "--hazards",
    metavar="HOW",
    help="Let calls fail: off, or unavailable=0.1,limit=20/60. As the scenario says if left out.",
)


def open_in_time(environment: Environment, scenario: str, seed: int, clock: str | None, hazards: str | None) -> Any:
    """A session whose time moves, and whose calls meet hazards, as the options say."""
    from callwright.environments.hazards.policy import read_hazards
    from callwright.environments.living.opening import prepare
    from callwright.environments.living.policy import read_policy

    policy, met = read_policy(clock), None if hazards is None else read_hazards(hazards)
    session = environment.open(scenario, seed)
    prepare(session, policy, met, environment.name)
    return session


def make_environment(
    registry: Registry,
    name: str,
    settings: Sequence[str] = (),
    toolsets: Sequence[str] = (),
    scale: float | None = None,
) -> Environment:
    """The environment that the options describe."""
    given = options.key_values(settings, "--option")
    if toolsets:
        given["toolsets"] = list(toolsets)
    if scale is not None:
        given["scale"] = scale
    made: Environment = registry.create("environment", name, **given)
    return made


@click.command("list")
@options.json_option
@click.pass_obj
def list_(app: App, as_json: bool) -> None:
    """The registered environments, with their numbers of tools and their scenarios.

    Those that need an option before they can be made (a command, a recording) are in the table only.
    """
    from callwright.errors import CallwrightError

    made: list[tuple[str, Environment, str]] = []
    others: list[tuple[str, str]] = []
    for name in app.registry.names("environment"):
        lazy = app.registry.spec("environment", name)
        try:
            made.append((name, app.registry.create("environment", name), lazy.summary))
        except CallwrightError:
            others.append((name, lazy.summary))
    if as_json:
        rows = [
            {"name": name, "tools": _count(environment), "scenarios": scenarios_of(environment)}
            for name, environment, _ in made
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    from callwright.commands.terminal import screen, table, text

    shown = table("environment", "tools", "scenarios", "what it is", right=(1,), codes=(0,))
    for name, environment, summary in made:
        shown.add_row(text(name), str(_count(environment)), text(", ".join(scenarios_of(environment))), text(summary))
    for name, summary in others:
        shown.add_row(text(name), "–", text("needs options", "dim"), text(summary))
    screen().print(shown)


def _count(environment: Environment) -> int:
    return sum(not spec.hidden for spec in environment.tools.values())


@click.command("tools")
@click.argument("name", type=ComponentName("environment"), metavar="ENV")
@click.argument("tool", required=False)
@environment_options
@click.option("--openai", is_flag=True, help="Print OpenAI function definitions.")
@options.json_option
@click.pass_obj
def tools(
    app: App,
    name: str,
    tool: str | None,
    settings: tuple[str, ...],
    toolsets: tuple[str, ...],
    scale: float | None,
    openai: bool,
    as_json: bool,
) -> None:
    """The tools of the environment ENV, or one of them with its parameters."""
    from callwright.errors import UnknownName

    environment = make_environment(app.registry, name, settings, toolsets, scale)
    specs = {key: spec for key, spec in environment.tools.items() if not spec.hidden}
    if tool is not None:
        if tool not in specs:
            raise UnknownName(f"tool of {name!r}", tool, specs)
        specs = {tool: specs[tool]}
    if openai:
        click.echo(json.dumps([spec.to_openai() for spec in specs.values()], indent=2))
    elif as_json:
        click.echo(json.dumps([describe(spec) for spec in specs.values()], indent=2))
    elif tool is not None:
        draw_tool(specs[tool])
    else:
        draw_tools(specs)


def describe(spec: ToolSpec) -> dict[str, Any]:
    """A tool as JSON: name, description, annotations, and both schemas."""
    return {
        "name": spec.name,
        "description": spec.description,
        "annotations": {
            key: getattr(spec, key) for key in ("read_only", "destructive", "idempotent", "discovery", "sensitive")
        },
        "parameters": spec.parameters,
        "result": spec.result,
    }


def _marks(spec: ToolSpec) -> str:
    marks = [
        "reads" if spec.read_only else "destructive" if spec.destructive else "writes",
        *(["discovery"] if spec.discovery else []),
        *(["takes a secret"] if spec.sensitive else []),
    ]
    return ", ".join(marks)


def draw_tools(specs: Mapping[str, ToolSpec]) -> None:
    """A table of tools."""
    from callwright.commands.terminal import screen, table, text

    shown = table("tool", "kind", "parameters", "what it does", codes=(0,))
    for spec in specs.values():
        required = spec.parameters.get("required", ())
        names = [key if key in required else f"[{key}]" for key in spec.parameters.get("properties", {})]
        first = spec.description.partition("\n")[0]
        colour = "red" if spec.destructive else "" if spec.read_only else "yellow"
        shown.add_row(text(spec.name), text(_marks(spec), colour), text(" ".join(names)), text(first))
    screen().print(shown)


def draw_tool(spec: ToolSpec) -> None:
    """One tool with its parameters."""
    from callwright.commands.terminal import screen, table, text
    from callwright.tools.validation import describe_schema

    out = screen()
    out.print(text(spec.name, "bold"), text(f"({_marks(spec)})", "dim"))
    out.print(text(spec.description))
    shown = table("parameter", "type", "needed", "meaning", codes=(0,))
    for name, schema in spec.parameters.get("properties", {}).items():
        needed = "yes" if name in spec.parameters.get("required", ()) else f"no: {json.dumps(schema.get('default'))}"
        shown.add_row(text(name), text(describe_schema(schema)), text(needed), text(schema.get("description", "")))
    out.print(shown)


@click.command("call")
@click.argument("name", type=ComponentName("environment"), metavar="ENV")
@click.argument("tool")
@click.option("--arg", "pairs", multiple=True, metavar="K=V", help="An argument: JSON, or else text. Repeatable.")
@click.option("--arguments", "document", metavar="JSON", help="All arguments as one JSON object.")
@session_options
@clock_option
@hazards_option
@environment_options
@click.option(
    "--state", metavar="FILE", help="Begin in the state of this file, if it exists, and write the new state into it."
)
@options.json_option
@click.pass_obj
def call(
    app: App,
    name: str,
    tool: str,
    pairs: tuple[str, ...],
    document: str | None,
    scenario: str,
    seed: int,
    clock: str | None,
    hazards: str | None,
    settings: tuple[str, ...],
    toolsets: tuple[str, ...],
    scale: float | None,
    state: str | None,
    as_json: bool,
) -> None:
    """Call TOOL of the environment ENV once, in a fresh session. The exit status is 1 if the call did not execute.

    With --state one call follows another.
    """
    from callwright.cli.environment_call import OneCall, call_once
    from callwright.cli.state_files import write_dump
    from callwright.environments.hazards.policy import read_hazards
    from callwright.environments.living.policy import read_policy
    from callwright.language.long_numbers import json_text

    environment = make_environment(app.registry, name, settings, toolsets, scale)
    arguments = read_arguments(environment.tools.get(tool), pairs, document)
    policy, met = read_policy(clock), None if hazards is None else read_hazards(hazards)
    path = None if state is None else Path(state)
    called = call_once(environment, scenario, seed, OneCall(tool, arguments, policy, met, path))
    if path is not None and called.state is not None:
        write_dump(called.state, path)
    if as_json:
        found = {**outcome_json(called.outcome), "digest": called.digest, "diff": called.diff}
        click.echo(json_text(found, indent=2, ensure_ascii=False))
    else:
        draw_outcome(called.outcome, called.diff)
    if not called.outcome.executed:
        click.get_current_context().exit(1)


def read_arguments(spec: ToolSpec | None, pairs: Sequence[str], document: str | None = None) -> dict[str, Any]:
    """Arguments from ``K=V`` pairs and a JSON object. A parameter that takes text only is not read as JSON.

    Raises :class:`click.UsageError` for what is neither.
    """
    arguments: dict[str, Any] = {}
    if document is not None:
        arguments = _strict(document)
        if isinstance(arguments, _NotJson):
            raise click.UsageError(f"--arguments is not JSON: {arguments.message}")
        if not isinstance(arguments, dict):
            raise click.UsageError("--arguments must be a JSON object")
    for pair in pairs:
        key, sign, text = pair.partition("=")
        if not sign or not key:
            raise click.UsageError(f"--arg {pair}: expected KEY=VALUE")
        types = spec.compiled.types_at((key,)) if spec is not None else None
        arguments[key] = text if types == frozenset({"string"}) else _json_or_text(text)
    return arguments


@frozen
class _NotJson:
    message: str


def _strict(text: str) -> Any:
    """The value of a text that is JSON as models must write it: no NaN, no key twice, no half of a surrogate pair."""
    from callwright.language import strict_json
    from callwright.language.parser import ParseFailure

    value = strict_json.decode(text, 0, _DEEPEST)
    if isinstance(value, ParseFailure):
        return _NotJson(f"{value.message} (character {value.span[0] + 1})" if value.span else value.message)
    if isinstance(value, strict_json.Duplicated):
        return _NotJson(f"the key {value.key!r} is there twice (character {value.span[0] + 1})")
    return value


def _json_or_text(text: str) -> Any:
    value = _strict(text)
    return text if isinstance(value, _NotJson) else value


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """An outcome as JSON."""
    found = {"kind": outcome.kind, "value": outcome.value, "code": outcome.code, "message": outcome.message}
    return {**found, "notices": list(outcome.notices)} if outcome.notices else found


def draw_outcome(outcome: Outcome, diff: Mapping[str, Any]) -> None:
    """An outcome and what it changed, for people."""
    from callwright.commands.terminal import screen, text
    from callwright.language.long_numbers import json_text

    out = screen()
    colour = {"ok": "green", "empty": "cyan", "partial": "yellow"}.get(outcome.kind, "red")
    said = f" {outcome.code}: {outcome.message}" if outcome.code else ""
    out.print(text(outcome.kind, f"bold {colour}") + text(said))
    if outcome.executed:
        out.print(text(json_text(outcome.value, indent=2, ensure_ascii=False)))
    draw_notices(outcome.notices)
    draw_diff(diff)


def draw_notices(notices: Sequence[str]) -> None:
    """What happened meanwhile, a line each."""
    from callwright.commands.terminal import screen, text

    for notice in notices:
        screen().print(text(f"! {notice}", "magenta"))


def draw_diff(diff: Mapping[str, Any]) -> None:
    """What changed: a line for each row that is new, gone or different."""
    from callwright.commands.terminal import screen, text
    from callwright.language.long_numbers import json_text

    out = screen()
    for name, parts in diff.items():
        if name == "clock":
            out.print(text(f"~ clock {parts[0]} -> {parts[1]}", "yellow"))
            continue
        for key, row in parts.get("added", {}).items():
            out.print(text(f"+ {name} {key} {json_text(row, ensure_ascii=False)}", "green"))
        for key, row in parts.get("removed", {}).items():
            out.print(text(f"- {name} {key} {json_text(row, ensure_ascii=False)}", "red"))
        for key, fields in parts.get("changed", {}).items():
            listed = ", ".join(f"{field}: {json_text(old)} -> {json_text(new)}" for field, (old, new) in fields.items())
            out.print(text(f"~ {name} {key} {listed}", "yellow"))
