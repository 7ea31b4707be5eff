"""``callwright doctor``: what is installed, what is missing, what is broken; and what a model's template does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from callwright.cli.installation import examine
from callwright.commands import options
from callwright.commands.app import App

if TYPE_CHECKING:
    from callwright.plugins import Registry
    from callwright.training.model_check import ModelReport


@click.command("doctor")
@click.argument("run", metavar="[RUN]", required=False)
@click.option("--repair", is_flag=True, help="With RUN: set aside what is damaged, so that it can go on.")
@click.option("--model", metavar="DIR", help="Look over the tokenizer and chat template of a model instead.")
@options.json_option
@click.pass_obj
def doctor(app: App, run: str | None, repair: bool, model: str | None, as_json: bool) -> None:
    """Look over this installation, the folder RUN, or with --model a model directory or run folder.

    RUN is what callwright run or evaluate -o left: each damaged file is named, the last good checkpoint, and the rows
    that are lost. With --repair what is damaged is set aside, and the run goes on from the last good checkpoint.

    The exit status is 1 if something is broken (a missing extra is not), or if training the model would go wrong. The
    weights are not read: conversations are rendered through the chat template turn by turn, on CPU, in seconds.
    """
    if run is not None:
        from callwright.cli.doctor_run import doctor_run

        if model is not None:
            raise click.UsageError("give RUN or --model, not both")
        doctor_run(Path(run), repair, as_json)
        return
    if repair:
        raise click.UsageError("--repair is for a folder: callwright doctor RUN --repair")
    if model is not None:
        _doctor_model(app, model, as_json)
        return
    found = examine(app.registry)
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        _draw(found)
    if not found["ok"]:
        click.get_current_context().exit(1)


# A model --------------------------------------------------------------------------------------------------------------


def _doctor_model(app: App, model: str, as_json: bool) -> None:
    report = examine_model(app.registry, Path(model))
    if as_json:
        click.echo(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
    else:
        _draw_model(model, report)
    if not report.ok:
        click.get_current_context().exit(1)


def examine_model(registry: Registry, folder: Path) -> ModelReport:
    """What every registered model check finds. Raises :class:`callwright.UsageError` if there is no such check."""
    from callwright.errors import UsageError
    from callwright.training.model_check import merged

    names = registry.names("model check")
    if not names:
        raise UsageError(
            "no plugin that is loaded looks over models; Callwright's own is template-drift (callwright plugins list)"
        )
    return merged([registry.create("model check", name).examine(folder) for name in names])


def _draw_model(model: str, report: ModelReport) -> None:
    from callwright.commands.terminal import screen, text

    console = screen()
    for position, line in enumerate(report.headlines):
        console.print(text(line, "dim") if position else text(f"{model}: {line}"))
    styles = {"error": ("✗", "red"), "warning": ("!", "yellow"), "note": ("·", "dim")}
    for finding in report.findings:
        sign, style = styles[finding.severity]
        console.print(text(f"{sign} {finding.code}: {finding.found}", style))
        console.print(text(f"  For training: {finding.meaning}."))
        console.print(text(f"  What to do: {finding.advice}."))
    if report.ok:
        console.print(text("✓ nothing here makes training wrong", "green"))


# The installation -----------------------------------------------------------------------------------------------------


def _draw(found: dict[str, Any]) -> None:
    from callwright.commands.terminal import screen, table, text

    console = screen()
    console.print(
        text(f"callwright {found['callwright'] or 'from a checkout'}, Python {found['python']}, {found['platform']}")
    )
    packages = ", ".join(f"{name} {version or 'missing'}" for name, version in found["packages"].items())
    console.print(text(packages, "dim"))
    torch = found["torch"]
    if torch and "threads" in torch:
        devices = ", ".join(torch["cuda"]) or "no GPU"
        shown_torch = f"torch {torch['version']} with {torch['threads']} threads, {devices}"
        console.print(text(f"{found['cores']} cores, {shown_torch}"))
    else:
        console.print(text(f"{found['cores']} cores"))
    shown = table("extra", "", "install")
    for extra, state in found["extras"].items():
        missing = text(f"missing {', '.join(state['missing'])}", "yellow")
        shown.add_row(extra, text("installed", "green") if state["installed"] else missing, text(state["install"]))
    console.print(shown)
    plugins = found["plugins"]
    console.print(text(f"{len(plugins['working'])} plugins work: {', '.join(plugins['working'])}"))
    if plugins["left_out"]:
        console.print(text(f"left out: {', '.join(plugins['left_out'])}", "dim"))
    if not found["writable"]:
        console.print(text("this folder cannot be written; give runs another one with --output", "yellow"))
    for problem in found["problems"]:
        console.print(text(f"✗ {problem}", "red"))
    if found["ok"]:
        console.print(text("✓ nothing is broken", "green"))
