"""``callwright plugins list | show | check``."""

from __future__ import annotations

import inspect
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import asdict

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.options import PluginName
from callwright.commands.safe_text import say, visible

if TYPE_CHECKING:
    from callwright.plugins import Lazy, PluginInfo, Registry


@click.command("list")
@options.json_option
@click.pass_obj
def list_(app: App, as_json: bool) -> None:
    """The installed plugins: where they come from, what they register, whether they work."""
    registry = app.registry
    rows = [_row(registry, info) for info in registry.plugins]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    from callwright.commands.terminal import screen, table, text

    shown = table("plugin", "from", "registers", "listens to", codes=(0,))
    for row in rows:
        origin = f"{row['distribution']} {row['version']}".strip() or row["module"]
        if row["error"] or row["blocked"]:
            state = text("broken", "red") if row["error"] else text("left out", "dim")
            shown.add_row(text(row["name"]), text(origin), state, "")
            continue
        counted = Counter(component["kind"] for component in row["components"])
        registers = ", ".join(f"{count} {_plural(kind, count)}" for kind, count in counted.items())
        events = ", ".join(event.removeprefix("callwright_") for event in row["events"])
        shown.add_row(text(row["name"]), text(origin), text(registers), text(events))
    screen().print(shown)


@click.command("show")
@click.argument("name", type=PluginName(components=True))
@options.json_option
@click.pass_obj
def show(app: App, name: str, as_json: bool) -> None:
    """The plugin NAME, or every component of that name with its options."""
    registry = app.registry
    info = next((info for info in registry.plugins if info.name == name), None)
    components = [(kind, lazy) for kind, lazy in registry.components() if lazy.name == name]
    if info is None and not components:
        from callwright.errors import UnknownName

        known = {lazy.name for _, lazy in registry.components()} | {info.name for info in registry.plugins}
        raise UnknownName("plugin or component", name, known)
    found: dict[str, Any] = {}
    if info is not None:
        found["plugin"] = _row(registry, info)
    if components:
        found["components"] = [_component(registry, kind, lazy) for kind, lazy in components]
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        _draw(found)


@click.command("check")
@click.argument("names", type=PluginName(), metavar="[NAME]...", nargs=-1)
@click.option("--quick", is_flag=True, help="Do not make the components, only find them.")
@click.option("--checks", "each", is_flag=True, help="Show each check by name, with the processor time that it took.")
@click.option("--again", is_flag=True, help="Make each check twice: one that comes to something else is an error.")
@click.option("--expected", metavar="FILE", help="TOML: what components are known to fail, with reasons.")
@options.json_option
@click.pass_obj
def check(
    app: App, names: tuple[str, ...], quick: bool, each: bool, again: bool, expected: str | None, as_json: bool
) -> None:
    """Check the plugins NAME (default: all): what will not work, and what a coming version will break.

    Hook functions are compared with the hook specifications, every component is imported and made, and those that can
    be made without options go through the checks of callwright.testing. Plugins that did not come with this package
    are checked in another process: one that ends it is an error, and so is a call of a tool that takes more than 30 s.
    The exit status is 1 if anything is wrong.
    """
    from callwright.cli.plugin_checks import HowToCheck, check_plugin, read_expected
    from callwright.errors import UnknownName

    registry = app.registry
    known = {info.name: info for info in registry.plugins}
    for name in names:
        if name not in known:
            raise UnknownName("plugin", name, known)
    how = HowToCheck(quick, again, {} if expected is None else read_expected(Path(expected)))
    components = {f"{kind} {lazy.name}" for kind, lazy in registry.components()}
    for component in how.expected:
        if component not in components:
            raise UnknownName("component", component, components, hint=f"It stands in {expected}.")
    findings = [
        finding
        for name, info in known.items()
        if (not names or name in names) and not info.blocked
        for finding in check_plugin(registry, info, how)
    ]
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            if finding.level == "ok":
                continue
            click.echo(visible(f"{finding.level}: {finding.plugin}: {finding.what}: {finding.message}"))
        if each or again:
            _draw_checks(findings)
        counted = Counter(finding.level for finding in findings)
        named = sum(len(finding.checks) for finding in findings)
        kit = f" ({named} of the kit: --checks)" if named and not (each or again) else ""
        click.echo(f"{counted['ok']} checks passed{kit}, {counted['skipped']} skipped, {counted['error']} errors")
    if any(finding.level == "error" for finding in findings):
        click.get_current_context().exit(1)


def _draw_checks(findings: list[Any]) -> None:
    from callwright.commands.terminal import screen, table, text

    shown = table("component", "check", "", "s", right=(3,), codes=(1,))
    for finding in findings:
        for one in finding.checks:
            steady = "" if one.steady is None else " twice" if one.steady else " not twice"
            shown.add_row(text(finding.what), text(one.name), text(f"{one.level}{steady}"), text(f"{one.seconds:.2f}"))
    screen().print(shown)


def _plural(kind: str, count: int) -> str:
    if count == 1:
        return kind
    return {"corpus": "corpora"}.get(kind, f"{kind}s")


def _row(registry: Registry, info: PluginInfo) -> dict[str, Any]:
    from callwright.plugins import EVENTS

    components = [
        {"kind": kind, "name": lazy.name, "summary": lazy.summary, "extra": lazy.extra}
        for kind, lazy in registry.components()
        if lazy.plugin == info.name
    ]
    events = [hook for hook in info.hooks if hook in EVENTS]
    return {**asdict(info), "hooks": list(info.hooks), "components": components, "events": events}


def _place_of(target: Callable[..., Any]) -> str:
    """Where what makes a component was defined, as a dotted target says it; a repr has an address."""
    if inspect.isroutine(target) or inspect.isclass(target):
        return f"{target.__module__}:{target.__qualname__}"
    return f"an object of {type(target).__module__}:{type(target).__qualname__}"


def _component(registry: Registry, kind: str, lazy: Lazy) -> dict[str, Any]:
    row: dict[str, Any] = {
        "kind": kind,
        "name": lazy.name,
        "plugin": lazy.plugin,
        "summary": lazy.summary,
        "extra": lazy.extra,
        "target": lazy.target if isinstance(lazy.target, str) else _place_of(lazy.target),
        "options": None,
        "option_details": [],
        "capabilities": {},
        "description": "",
    }
    from callwright.errors import CallwrightError
    from callwright.options import options_of

    try:  # a table is listed even where the component cannot be loaded, because an extra is missing
        listed = () if kind == "command" else options_of(lazy)
        row["options"] = {option.name: option.default for option in listed}
        row["option_details"] = [asdict(option) for option in listed]
        factory = lazy.load()
    except CallwrightError as error:
        say(f"warning: {error}")
        return row
    row["description"] = inspect.getdoc(factory) or ""
    row["capabilities"] = _capabilities(registry, kind, lazy)
    return row


def _capabilities(registry: Registry, kind: str, lazy: Lazy) -> dict[str, str]:
    """What a component offers beyond its kind, and what that is for. Made without a network or options."""
    from callwright.capability.listed import CAPABILITIES, capabilities, declared, enables
    from callwright.testing.services.network import no_connections

    if kind not in CAPABILITIES:
        return {}
    try:
        with no_connections():
            made = lazy.make_stand_in()
            made = registry.create(kind, lazy.name) if made is None else made
    except Exception:  # it needs options, an extra or a server: what it would offer then is not known here
        return {}
    names = declared(kind, made)
    return {one.__name__: enables(one) for one in capabilities(kind) if one.__name__ in names}


def _prose(docstring: str) -> str:
    """A docstring as a person reads it: paragraphs in one line, without the marks of reStructuredText."""
    unmarked = re.sub(r":[a-z]+:`~?([^`]*)`", r"\1", docstring).replace("``", "")
    return re.sub(r"(?<=\S)\n(?=\S)", " ", unmarked)


def _option_lines(details: list[dict[str, Any]], indent: str = "  ") -> Iterator[str]:
    """An option a line, with its type and default; what its plugin says of it in the next, then what it holds."""
    for option in details:
        given = option["default"] is None
        about = "; ".join(filter(None, ("must be given" if given else "", option["type"])))
        yield f"{indent}{option['name']}" + ("" if given else f" = {option['default']}") + (about and f" ({about})")
        if option["description"]:
            yield f"{indent}    {option['description']}"
        yield from _option_lines(option["inner"], f"{indent}    ")


def _draw(found: dict[str, Any]) -> None:
    from callwright.commands.terminal import screen, table, text

    console = screen()
    if "plugin" in found:
        row = found["plugin"]
        console.print(text(f"plugin {row['name']}", "bold"))
        origin = f"{row['distribution']} {row['version']}".strip()
        console.print(text(f"{row['module']}{f', {origin}' if origin else ''}", "dim"))
        if row["error"]:
            console.print(text(row["error"], "red"))
        if row["events"]:
            console.print(text(f"listens to {', '.join(row['events'])}"))
        if row["components"]:
            shown = table("kind", "name", "", "needs", codes=(1,))
            for part in row["components"]:
                extra = f"callwright[{part['extra']}]" if part["extra"] else ""
                shown.add_row(part["kind"], text(part["name"], "bold"), text(part["summary"]), text(extra))
            console.print(shown)
    for part in found.get("components", ()):
        console.print(text(f"{part['kind']} {part['name']}", "bold"))
        console.print(text(f"of the plugin {part['plugin']}, {part['target']}", "dim"))
        console.print(text(_prose(part["description"]) or part["summary"]))
        for line in _option_lines(part["option_details"]):
            console.print(text(line))
        for name, meaning in part["capabilities"].items():
            console.print(text(f"  has {name}: {_prose(meaning)}", "dim"))
        console.print()
