"""The section on making the run or the evaluation again: command, recipe or settings, versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from callwright_plugins.report.drawing.markup import cut, safe, section
from callwright_plugins.report.reading import RunData, table

_LEAD: Final = "The same command, versions and seed give the same run, bit for bit on the CPU."


def reproduction(data: RunData, *, source: str = "Recipe", lead: str = _LEAD) -> Iterator[str]:
    """The command, the recipe (of an evaluation: the settings) and the versions that make this run again."""
    parts = []
    if data.command:
        parts.append(f'<h3>Command</h3><pre class="command" tabindex="0">{safe(data.command)}</pre>')
    if data.recipe_text:
        parts.append(f'<h3>{safe(source)}</h3><pre tabindex="0">{safe(cut(data.recipe_text, 20_000))}</pre>')
    versions = table(data.manifest.get("versions"))
    listed = [("python", data.manifest.get("python")), ("platform", data.manifest.get("platform")), *versions.items()]
    cells = "".join(
        f"<div><dt>{safe(name)}</dt><dd>{safe(version)}</dd></div>" for name, version in listed if version is not None
    )
    if cells:
        parts.append(f'<h3>Versions</h3><dl class="facts">{cells}</dl>')
    plugins = data.manifest.get("plugins")
    foreign = [
        f"{safe(one.get('name'))} ({safe(one.get('distribution'))} {safe(one.get('version'))})"
        for one in (plugins if isinstance(plugins, list) else [])
        if isinstance(one, dict) and one.get("distribution") != "callwright"
    ]
    if foreign:
        parts.append(f"<h3>Plugins of others</h3><p>{', '.join(foreign)}</p>")
    if parts:
        yield section("Reproduce", "".join(parts), lead=lead, key="reproduce")
