"""The page of a synthesis: one HTML file without scripts that loads nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, Final

from callwright.commands.safe_text import visible
from callwright.plugins import default_registry
from callwright.training.run_folder import write_atomically
from callwright_plugins.synthesis.report.folders import Rejection, read_manifest, rejections, task_file
from callwright_plugins.synthesis.report.measuring import Asked, Measured, Pair, Shown, measure
from callwright_plugins.synthesis.report.picture import picture
from callwright_plugins.synthesis.report.replaying import call_text
from callwright_plugins.synthesis.report.unused import Unused, unused

REPORT: Final = "report.html"
_MOST: Final = 40


def write_page(folder: Path, output: Path | None = None) -> Path:
    """Write the page of a finished synthesis, and return where it is: ``report.html`` in its folder if left out.

    The same folder gives the same bytes, as long as what was found out about its environments is in the cache. Raises
    :class:`callwright.errors.DataError` for a folder of anything else.
    """
    from callwright.walk.task_rows.reading import read_rows

    manifest = read_manifest(folder)
    head, rows = read_rows(task_file(folder))
    seed = manifest.get("seed")
    found = measure(rows, seed=seed if isinstance(seed, int) else 0)
    offered = {one.name: sorted(was.tools) for one, was in head.environments.items()}
    path = output or folder / REPORT
    left = unused(manifest, found, default_registry())
    write_atomically(path, render(manifest, found, offered, list(rejections(folder)), left))
    return path


def render(
    manifest: Mapping[str, Any],
    found: Measured,
    offered: Mapping[str, Sequence[str]],
    gone: Sequence[Rejection],
    left: Sequence[Unused] = (),
) -> str:
    """The page. ``offered`` are the tools of each environment; what is not among the tasks is told in red. ``left`` is
    what is known of the environments and no task uses.
    """
    style = resources.files("callwright_plugins.synthesis.report").joinpath("style.css").read_text(encoding="utf-8")
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    parts = (
        _header(manifest, found),
        _funnel(manifest, gone),
        _tools(found, offered),
        _pairs(found),
        _failures(found),
        _unused(left),
        _lengths(found),
        _values(found),
        _diversity(found),
        _difficulty(found),
        _near(found.near, gone),
        _examples(found.examples),
    )
    body = "\n".join(part for part in parts if part)
    title = f"{_safe(manifest.get('name') or 'tasks')} – Callwright synthesis"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
{body}
</main>
<footer>Written from the files of the folder. One task at a time: <code>callwright synthesize inspect</code></footer>
</body>
</html>
"""


def _safe(value: object) -> str:
    return escape(visible(str(value)), quote=True)


def _cut(text: str, longest: int = 400) -> str:
    return text if len(text) <= longest else f"{text[:longest]} …"


def _section(title: str, lead: str, body: str) -> str:
    return f'<section class="part"><div class="rail"><h2>{title}</h2><p>{lead}</p></div><div>{body}</div></section>'


def _lines(counts: Iterable[tuple[str, int]], most: int) -> str:
    drawn = "".join(
        f'<div class="line"><span class="name">{_safe(name)}</span><span class="track">'
        f'<i style="width:{100 * count / max(1, most):.1f}%"></i></span><span class="value">{count:,}</span></div>'
        for name, count in counts
    )
    return f'<div class="lines">{drawn}</div>'


def _header(manifest: Mapping[str, Any], found: Measured) -> str:
    facts = {"Tasks": f"{found.tasks:,}", "Environments": _environments(found), "Seed": manifest.get("seed")}
    if manifest.get("teacher"):
        facts["Teacher"] = manifest["teacher"]
    usage = manifest.get("usage")
    if isinstance(usage, Mapping) and usage.get("cost"):
        facts["Cost"] = f"{usage['cost']:g}"
    told = "".join(
        f"<div><dt>{_safe(key)}</dt><dd>{_safe(value)}</dd></div>" for key, value in facts.items() if value is not None
    )
    return f"""<header>
<p class="eyebrow">Callwright synthesis</p>
<h1>{_safe(manifest.get("name") or "tasks")}</h1>
<dl class="facts">{told}</dl>
</header>"""


def _environments(found: Measured) -> str:
    """How many, with those beside that are several in one: a recipe of six may ask for many of these."""
    several = sum("+" in name for name in found.environments)
    alone = len(found.environments) - several
    if not several or not alone:
        return f"{alone + several:,}"
    return f"{alone:,}, and {several:,} combination{'s' * (several > 1)} of several"


def _funnel(manifest: Mapping[str, Any], gone: Sequence[Rejection]) -> str:
    yields = manifest["yields"]
    steps = [(name, int(yields.get(name) or 0)) for name in ("planned", "accepted", "kept")]
    first: dict[tuple[str, str], Rejection] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for one in gone:
        first.setdefault((one.stage, one.reason), one)
        counts[one.stage, one.reason] += 1
    rows = "".join(
        f"<tr><th>{_safe(stage)}</th><td>{_safe(_cut(reason))}</td><td class='right'>{count:,}</td>"
        f'<td class="evidence">{_safe(_example(first[stage, reason]))}</td></tr>'
        for (stage, reason), count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:_MOST]
    )
    table = (
        f'<div class="scroll"><table class="bars"><thead><tr><th>Stage</th><th>Reason</th><th>Units</th>'
        f"<th>For example</th></tr></thead><tbody>{rows}</tbody></table></div>"
        if rows
        else '<p class="none">No unit was rejected.</p>'
    )
    return _section(
        "Funnel", "What was planned, and what is left after every gate.", _lines(steps, steps[0][1]) + "<br>" + table
    )


def _example(one: Rejection) -> str:
    told = json.dumps(one.evidence, ensure_ascii=False, default=str) if one.evidence else ""
    return _cut(f"{one.unit} {told}", 240)


def _tools(found: Measured, offered: Mapping[str, Sequence[str]]) -> str:
    parts = []
    tools, several = _by_environment(found, offered)
    for environment, used in sorted(tools.items()):
        names = dict.fromkeys([*offered.get(environment, ()), *sorted(used)])
        met = sum(1 for name in names if used[name])
        listed = "".join(f"<div{_absent(not used[name])}>{_safe(name)} {used[name]:,}</div>" for name in names)
        parts.append(
            f"<p><b>{_safe(environment)}</b>: {met} of {len(names)} tools</p><div class='tools'>{listed}</div>"
        )
    if several:
        told = ", ".join(f"{_safe(name)} ({found.environments[name]:,})" for name in several)
        parts.append(f"<p>Tasks over several environments count for each of these: {told}.</p>")
    total = sum(found.calls.values())
    if total:
        name, count = found.calls.most_common(1)[0]
        parts.append(f"<p>{_safe(name)} makes {100 * count / total:.1f}% of all {total:,} calls, the most.</p>")
    return _section("Tools", "In how many tasks the reference calls each tool. Red: in none.", "".join(parts))


def _by_environment(found: Measured, offered: Mapping[str, Sequence[str]]) -> tuple[dict[str, Counter[str]], list[str]]:
    """In how many tasks each tool is called. Tasks over several environments count for those that have tasks of their
    own, and their names come beside: nobody asked them to cover all tools of both.
    """
    tools = {name: Counter(used) for name, used in found.tools.items()}
    several = [name for name in sorted(tools) if any(part in tools for part in name.split("+")) and "+" in name]
    for name in several:
        used = tools.pop(name)
        for part in name.split("+"):
            known = set(offered.get(part, ()))
            if part in tools:
                tools[part].update({tool: count for tool, count in used.items() if tool in known})
    return tools, several


def _absent(absent: bool) -> str:
    return ' class="none"' if absent else ""


def _pairs(found: Measured) -> str:
    drawn = [
        (f"{source} → {target}", count)
        for pairs in found.pairs.values()
        for (source, target), count in sorted(pairs.items())
    ]
    drawn.sort(key=lambda one: (-one[1], one[0]))
    if not drawn:
        return ""
    more = f"<p class='none'>and {len(drawn) - _MOST:,} more</p>" if len(drawn) > _MOST else ""
    lead = f"{len(drawn):,} pairs of tools of which a task uses one for the other. Thicker: in more tasks."
    return _section("Edges", lead, _graphs(found) + _lines(drawn[:_MOST], drawn[0][1]) + more)


def _graphs(found: Measured) -> str:
    """A picture for each environment; the one with the most edges is shown, the others are folded."""
    ranked = sorted(found.pairs.items(), key=lambda one: (-len(one[1]), one[0]))
    drawn = []
    for place, (environment, pairs) in enumerate(ranked):
        names = {tool: _safe(_cut(tool, 30)) for pair in pairs for tool in pair}
        drawing = picture(pairs, names)
        if drawing:
            told = f"<summary><b>{_safe(environment)}</b>: {len(names)} tools, {len(pairs):,} edges</summary>"
            drawn.append(f"<details{' open' if not place else ''}>{told}{drawing}</details>")
    return "".join(drawn) + "<br>" if drawn else ""


def _failures(found: Measured) -> str:
    if not found.codes:
        return ""
    rows = "".join(
        f"<tr><th>{_safe(tool)}</th><td>{_safe(code)}</td><td>{_safe(way)}</td><td class='right'>{count:,}</td></tr>"
        for (tool, code, way), count in sorted(found.codes.items())
    )
    head = "<thead><tr><th>Tool</th><th>Code</th><th>Made up for by</th><th>Tasks</th></tr></thead>"
    return _section(
        "Failures", "What tasks meet on purpose.", f'<table class="bars">{head}<tbody>{rows}</tbody></table>'
    )


def _unused(left: Sequence[Unused]) -> str:
    if not left:
        return ""
    parts = []
    for one in left:
        edges, failures = one.edges - len(one.unused_edges), one.failures - len(one.unused_failures)
        lists = [
            _folded(
                f"{len(pairs):,} {name}{'s' * (len(pairs) > 1)} that no task has",
                [between.join(pair) for pair in pairs],
            )
            for name, between, pairs in (
                ("edge", " → ", one.unused_edges),
                ("failure", ": ", one.unused_failures),
            )
            if pairs
        ]
        parts.append(
            f"<p><b>{_safe(one.environment)}</b>: {edges:,} of {one.edges:,} edges, "
            f"{failures:,} of {one.failures:,} failures</p>{''.join(lists)}"
        )
    lead = "What exploring proved and met, and no task is about: what tools need one another, and what they fail with."
    return _section("Not used", lead, "".join(parts))


def _folded(summary: str, names: Sequence[str]) -> str:
    listed = "".join(f'<div class="none">{_safe(name)}</div>' for name in names)
    return f"<details><summary>{summary}</summary><div class='tools'>{listed}</div></details>"


def _lengths(found: Measured) -> str:
    levels = sorted({level for _, level in found.lengths})
    most = max(found.lengths.values(), default=1)
    rows = []
    for length in sorted({length for length, _ in found.lengths}):
        cells = "".join(_cell(found.lengths[length, level], most) for level in levels)
        rows.append(f"<tr><th>{length} calls</th>{cells}</tr>")
    head = "".join(f"<th>{_safe(level)}</th>" for level in levels)
    table = f'<table class="heat"><thead><tr><th></th>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return _section("Length × information", "Tasks by calls of the reference and by how much the words tell.", table)


def _cell(count: int, most: int) -> str:
    if not count:
        return '<td class="empty">–</td>'
    share = 100 * count / most
    return f'<td{" class=strong" if share > 55 else ""} style="--share:{share:.0f}%">{count:,}</td>'


def _values(found: Measured) -> str:
    ranked = sorted(found.values.items(), key=lambda one: (-one[1].total(), one[0]))[:_MOST]
    rows = "".join(
        f"<tr><th>{_safe(tool)}</th><td>{_safe(key)}</td><td class='right'>{counts.total():,}</td>"
        f"<td class='right'>{len(counts):,}</td><td class='evidence'>{_safe(_cut(_most_common(counts), 80))}</td></tr>"
        for (tool, key), counts in ranked
    )
    if not rows:
        return ""
    head = "<th>Tool</th><th>Parameter</th><th>Given</th><th>Different</th><th>Most often</th>"
    return _section(
        "Values",
        "The parameters that are given most often, and how many values they have.",
        f'<div class="scroll"><table class="bars"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>',
    )


def _most_common(counts: Counter[str]) -> str:
    value, count = min(counts.items(), key=lambda one: (-one[1], one[0]))
    return f"{value} ({count:,})"


def _diversity(found: Measured) -> str:
    words = sorted(found.words.elements())
    told = {
        "different queries": f"{len(found.queries):,} of {found.tasks:,}",
        "different sequences of tools": f"{len(found.sequences):,}",
        "words in a query": f"{words[0]} to {words[-1]}, half of them up to {words[len(words) // 2]}" if words else "–",
    }
    rows = "".join(f"<tr><th>{key}</th><td>{_safe(value)}</td></tr>" for key, value in told.items())
    kinds = _lines(sorted(found.kinds.items(), key=lambda one: (-one[1], one[0])), max(found.kinds.values(), default=1))
    return _section("Diversity", "How tasks differ.", f'<table class="bars"><tbody>{rows}</tbody></table><br>{kinds}')


def _difficulty(found: Measured) -> str:
    if not found.passed:
        body = (
            '<p class="none">Nobody has measured it yet. <code>callwright synthesize difficulty</code> gives each task '
            "the share of attempts that solve it.</p>"
        )
        return _section("Difficulty", "How often a policy solves a task.", body)
    bins: Counter[int] = Counter(min(9, int(10 * rate)) for rate in found.passed.values())
    drawn = [(f"{one / 10:.1f} to {(one + 1) / 10:.1f}", bins[one]) for one in range(10)]
    lead = f"Tasks by the share of attempts that solve them; {len(found.passed):,} of {found.tasks:,} were measured."
    return _section("Difficulty", lead, _lines(drawn, max(bins.values())))


def _near(near: Sequence[Pair], gone: Sequence[Rejection]) -> str:
    pairs = "".join(
        f"<div class='pair'><small>{100 * one.alike:.0f}% of the {one.by} in common: {_safe(one.one.id)}, "
        f"{_safe(one.other.id)}</small><div>{_task(one.one)}</div><div>{_task(one.other)}</div></div>"
        for one in near
    )
    dropped = sum("duplicate" in one.stage for one in gone)
    lead = f"The tasks that are most alike among those that stay. {dropped:,} went as duplicates."
    return _section("Near-duplicates", lead, pairs or '<p class="none">No two tasks share half of what they are.</p>')


def _examples(shown: Sequence[Shown]) -> str:
    body = "".join(
        f'<div class="example"><small>{_safe(one.id)} · {_safe(one.environment)}</small>{_task(one)}'
        f"<p><small>due: {_safe(_cut(json.dumps(one.answer, ensure_ascii=False, default=str)))}</small></p></div>"
        for one in shown
    )
    return _section("Examples", "Drawn at random, by the seed of the synthesis.", body or "<p class='none'>None.</p>")


def _task(one: Shown) -> str:
    return "".join(
        f'<p class="asked">{_safe(_cut(asked.query, 600))}</p>'
        + "".join(f"<p><code>{_safe(text)}</code></p>" for text in _calls(asked))
        for asked in one.turns
    )


def _calls(asked: Asked) -> Iterator[str]:
    if not asked.calls:
        yield "nothing is called"
    for place, (tool, arguments) in enumerate(asked.calls[:12]):
        fails = f"  fails with {asked.codes[place]}" if place in asked.codes else ""
        yield call_text(tool, arguments, 240) + fails
    if len(asked.calls) > 12:
        yield f"and {len(asked.calls) - 12:,} more"
