"""The page of a grid: one HTML file without scripts that loads nothing, for a screen, a phone and paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from callwright.commands.safe_text import visible
from callwright.training.run_folder import write_atomically
from callwright_plugins.grid.drawing import Curve, chart, curve, round_ends
from callwright_plugins.grid.metrics import is_share
from callwright_plugins.grid.output import shown
from callwright_plugins.grid.results import Results


def write_page(results: Results, path: Path, command: str) -> None:
    """Write the page. The same grid and command give the same bytes."""
    write_atomically(path, render(results, command))


def render(results: Results, command: str) -> str:
    """The whole page; ``command`` is the command line that made it."""
    style = resources.files("callwright_plugins.grid").joinpath("style.css").read_text(encoding="utf-8")
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    found = results.found
    parts = (
        _header(found),
        _remarks(found),
        _means(found),
        _depths(found),
        _differences(found),
        *_curves(results),
        _runs(found),
        _section("Again", "The same command goes on, and says the same of what is finished.", _command(command)),
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{_safe(found["recipe"])} – Callwright grid</title>
<style>
{style}</style>
</head>
<body>
<main>
{chr(10).join(part for part in parts if part)}
</main>
<footer>Intervals are those of a mean over seeds by Student’s t: mean ± t · s / √n with n − 1 degrees of freedom. They
say how much another draw of seeds would move it, and are not cut at 0% or 100%.</footer>
</body>
</html>
"""


def _safe(value: object) -> str:
    return escape(visible(str(value)), quote=True)


def _section(title: str, lead: str, body: str) -> str:
    return (
        f'<section class="part"><div class="rail"><h2>{_safe(title)}</h2><p>{lead}</p></div>'
        f'<div class="body">{body}</div></section>'
    )


def _command(command: str) -> str:
    return f'<pre class="command">{_safe(command)}</pre>'


def _header(found: Mapping[str, Any]) -> str:
    runs = [run for setting in found["settings"] for run in setting["runs"]]
    seconds = sum(run.get("cpu_seconds", 0.0) for run in runs)
    facts = {
        "Settings": len(found["settings"]),
        "Seeds": ", ".join(map(str, found["seeds"])),
        "Runs finished": f"{sum(run['finished'] for run in runs)} of {len(runs)}",
        "Processor time": f"{seconds / 3600:.1f} h" if seconds > 5400 else f"{seconds / 60:.1f} min",
        **{key: ", ".join(values) for key, values in found["over"].items()},
    }
    listed = "".join(f"<div><dt>{_safe(key)}</dt><dd>{_safe(value)}</dd></div>" for key, value in facts.items())
    return (
        f'<header><p class="eyebrow">Callwright grid</p><h1>{_safe(Path(found["recipe"]).stem)}</h1>'
        f'<dl class="facts">{listed}</dl></header>'
    )


def _remarks(found: Mapping[str, Any]) -> str:
    lines = "".join(f"<li>{_safe(remark)}</li>" for remark in found["remarks"])
    return f'<div class="notice"><h2>Worth knowing</h2><ul>{lines}</ul></div>' if lines else ""


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> str:
    """Cells are HTML; the first ``words`` columns are names, the others figures."""
    heads = "".join(
        f'<th scope="col"{"" if at < words else " class=n"}>{_safe(heading)}</th>'
        for at, heading in enumerate(headings)
    )
    body = ""
    for row in rows:
        cells = "".join(f"<td{'' if at < words else ' class=n'}>{cell}</td>" for at, cell in enumerate(row) if at)
        body += f'<tr><th scope="row">{row[0]}</th>{cells}</tr>'
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'


def _figure(cell: Mapping[str, Any], name: str, *, signed: bool = False) -> str:
    mean, interval = shown(cell, name, signed=signed)
    return _safe(mean) + (f"<small>{_safe(interval)}</small>" if interval else "")


def _means(found: Mapping[str, Any]) -> str:
    names = found["metrics"]
    rows = [
        [_safe(setting["name"]), *(_figure(setting["metrics"][name], name) for name in names)]
        for setting in found["settings"]
    ]
    lead = (
        "Means over seeds, and the 95% interval of each. Accuracy is over the held-out tasks of all depths; gain is "
        "after minus before, in points; what else is named is the mean of the last ten steps of training."
    )
    return _section("Means", lead, _table(["setting", *names], rows))


def _depths(found: Mapping[str, Any]) -> str:
    depths = found["depths"]
    if not depths:
        return ""
    body = ""
    for when, title in (("before", "Before training"), ("after", "After training"), ("gain", "Gain, in points")):
        rows = [
            [_safe(setting["name"]), *(_figure(setting["metrics"][f"{when}@{depth}"], when) for depth in depths)]
            for setting in found["settings"]
        ]
        body += f"<h3>{title}</h3>" + _table(["setting", *(f"depth {depth}" for depth in depths)], rows)
    return _section("By depth", "Depth is the number of calls that a task needs.", body)


def _differences(found: Mapping[str, Any]) -> str:
    pairs = found["differences"]
    if not pairs:
        return ""
    names = [name for name in found["metrics"] if name in pairs[0]["metrics"] and name != "before"]
    rows = []
    for pair in pairs:
        cells = []
        for name in names:
            cell = pair["metrics"][name]
            beside = cell["low"] is not None and (cell["low"] > 0 or cell["high"] < 0)
            tone = ("up" if cell["mean"] > 0 else "down") if beside else "same"
            cells.append(f'<span class="{tone}">{_figure(cell, name, signed=True)}</span>')
        rows.append([_safe(pair["second"]), _safe(pair["first"]), *cells])
    lead = (
        "One setting minus another over the seeds that both have: what a seed does to both cancels. Coloured where the "
        "interval lies beside 0. Accuracies in points."
    )
    return _section("Differences", lead, _table(["setting", "minus", *names], rows, words=2))


def _curves(results: Results) -> Iterator[str]:
    figures = results.figures
    for title, lead, percent in (
        ("Accuracy", "Greedy accuracy over all held-out tasks, before, during and after training.", True),
        ("Reward", "Mean reward of the rollouts of each step, smoothed over a twelfth of them.", False),
    ):
        drawn: list[tuple[str, int, Curve]] = []
        for setting in results.plan.settings:
            runs = [figures[run.key] for run in results.plan.runs if run.setting == setting and run.key in figures]
            seeds = [one.accuracy if percent else one.series("reward") for one in runs]
            made = curve([one for one in seeds if one], smooth=not percent)
            if len(made.points) > 1:
                drawn.append((setting.name, len(seeds), made))
        if not drawn:
            continue
        reached = [value for _, _, one in drawn for value in one.reach]
        low, high = (0.0, 1.0) if percent else round_ends(min(0.0, *reached), max(reached))
        tiles = ""
        for name, count, one in drawn:
            ends = [f"{100 * cell.mean:.0f}%" if percent else f"{cell.mean:.2f}" for _, cell in _ends(one)]
            said = f"{title} of {name}: {ends[0]} to {ends[1]}"
            svg = chart(one, low, high, percent=percent, description=visible(said))
            tiles += f"<figure><b>{_safe(name)}</b><small>{' to '.join(ends)}, {count} runs</small>{svg}</figure>"
        shade = " The line is the mean over seeds, the band its 95% interval; all charts have one scale."
        yield _section(title, lead + shade, f'<div class="tiles">{tiles}</div>')


def _ends(one: Curve) -> tuple[Any, Any]:
    return one.points[0], one.points[-1]


def _runs(found: Mapping[str, Any]) -> str:
    names = found["metrics"]
    rows = []
    for setting in found["settings"]:
        for run in setting["runs"]:
            values = run.get("values", {})
            state = (
                "" if run["finished"] else " <small>failed</small>" if "failure" in run else " <small>not yet</small>"
            )
            cells = [_value(values.get(name), name) for name in names]
            costs = [f"{run[key]:,.0f}" if key in run else "–" for key in ("cpu_seconds", "peak_memory_mb")]
            page = f'<a href="{_safe(run["folder"])}/report.html">{_safe(setting["name"])}</a>' if values else ""
            rows.append([(page or _safe(setting["name"])) + state, str(run["seed"]), *cells, *costs])
    lead = "Every run; its name leads to its own report."
    return _section("Runs", lead, _table(["setting", "seed", *names, "CPU s", "MB"], rows))


def _value(value: float | None, name: str) -> str:
    if value is None:
        return "–"
    if name.startswith("gain"):
        return f"{100 * value:+.1f}"
    return f"{100 * value:.1f}%" if is_share(name) else f"{value:.3g}"
