"""``callwright doctor``: what is installed, what is missing, what is broken; and what a model's template does."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from callwright.commands import options
from callwright.commands.app import App

if TYPE_CHECKING:
    from callwright.plugins import Registry
    from callwright.training.model_check import ModelReport

_OLDEST: Final = (3, 11)
_REQUIREMENT: Final = re.compile(r"\s*([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?\s*([^;]*)(?:;(.*))?")
_EXTRA: Final = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")


@click.command("doctor")
@click.option("--model", metavar="DIR", help="Look over the tokenizer and chat template of a model instead.")
@options.json_option
@click.pass_obj
def doctor(app: App, model: str | None, as_json: bool) -> None:
    """Look over this installation, or with --model over a model directory or run folder.

    The exit status is 1 if something is broken (a missing extra is not), or if training the model would go wrong. The
    weights are not read: conversations are rendered through the chat template turn by turn, on CPU, in seconds.
    """
    if model is not None:
        _doctor_model(app, model, as_json)
        return
    found = examine(app)
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


def examine(app: App) -> dict[str, Any]:
    """Everything that the command shows."""
    base, extras = requirements()
    packages = {name: _version(name) for name, _ in base}
    problems = [f"{name} is not installed: pip install callwright" for name, found in packages.items() if found is None]
    problems += [
        f"{name} {packages[name]} is installed, but callwright needs {wanted}: pip install --upgrade callwright"
        for name, wanted in base
        if packages[name] is not None and not _satisfies(packages[name] or "", wanted)
    ]
    if sys.version_info < _OLDEST:
        problems.append(f"Python {platform.python_version()} is too old; 3.11 or newer is needed")
    broken = [{"name": info.name, "error": info.error} for info in app.registry.plugins if info.error]
    problems += [plugin["error"] for plugin in broken]
    torch = _torch()
    if torch is not None and "error" in torch:
        problems.append(f"torch is installed but cannot be imported: {torch['error']}")
    return {
        "ok": not problems,
        "problems": problems,
        "callwright": _version("callwright"),
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "packages": packages,
        "extras": {extra: _extra(extra, wanted) for extra, wanted in extras.items()},
        "plugins": {
            "working": [info.name for info in app.registry.plugins if not info.error and not info.blocked],
            "left_out": [info.name for info in app.registry.plugins if info.blocked],
            "broken": broken,
        },
        "cores": _cores(),
        "torch": torch,
        "writable": _writable(),
    }


def requirements() -> tuple[list[tuple[str, str]], dict[str, list[tuple[str, str]]]]:
    """What the installed distribution asks for: ``(name, versions)`` of the base, and by extra."""
    try:
        stated = metadata.requires("callwright") or []
    except metadata.PackageNotFoundError:  # run from a checkout that was never installed
        return [], {}
    base: list[tuple[str, str]] = []
    extras: dict[str, list[tuple[str, str]]] = {}
    inner: dict[str, list[str]] = {}
    for line in stated:
        match = _REQUIREMENT.match(line)
        assert match is not None
        name, included, versions, marker = match[1], match[2], match[3].strip(" ()"), match[4] or ""
        extra = _EXTRA.search(marker)
        if extra is None:
            base.append((name, versions))
        elif name == "callwright":
            inner.setdefault(extra[1], []).extend(part.strip() for part in (included or "").split(","))
        else:
            extras.setdefault(extra[1], []).append((name, versions))
    for extra_name, parts in inner.items():
        for part in parts:
            extras[extra_name] = [*extras.get(part, []), *extras.get(extra_name, [])]
    return base, dict(sorted(extras.items()))


def _extra(extra: str, wanted: list[tuple[str, str]]) -> dict[str, Any]:
    versions = {name: _version(name) for name, _ in wanted}
    missing = [f"{name}{needed}" for name, needed in wanted if not _satisfies(versions[name] or "", needed)]
    install = f"pip install 'callwright[{extra}]'"
    return {"installed": not missing, "missing": missing, "versions": versions, "install": install}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _satisfies(found: str, wanted: str) -> bool:
    """Whether a version is within a specifier; where nothing here can compare versions, any version is."""
    if not found:
        return False
    try:
        from packaging.specifiers import SpecifierSet
    except ImportError:
        return True
    return SpecifierSet(wanted).contains(found, prereleases=True)


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def _torch() -> dict[str, Any] | None:
    if _version("torch") is None:
        return None
    try:
        import torch
    except Exception as error:  # a broken installation fails in many ways
        return {"version": _version("torch"), "error": f"{type(error).__name__}: {error}"}
    cuda = torch.cuda.is_available()
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())] if cuda else []
    return {"version": torch.__version__, "threads": torch.get_num_threads(), "cuda": names}


def _writable() -> bool:
    try:
        with tempfile.TemporaryFile(dir="."):
            return True
    except OSError:
        return False


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
