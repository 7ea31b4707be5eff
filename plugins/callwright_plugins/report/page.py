"""The page: one HTML file that loads nothing, works without scripts, in light and dark, on paper and on a phone."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any

from callwright.training.run_folder import Run, write_atomically
from callwright_plugins.report import measured, scored
from callwright_plugins.report.drawing.markup import attribute, cut, safe
from callwright_plugins.report.measured import read_evaluation
from callwright_plugins.report.reading import ROLLOUTS, RunData, number, read_run, table
from callwright_plugins.report.scored import read_scored, texts_of
from callwright_plugins.report.sections.accuracy import accuracy
from callwright_plugins.report.sections.fewer_calls import fewer_calls
from callwright_plugins.report.sections.learning import learning
from callwright_plugins.report.sections.reproduction import reproduction
from callwright_plugins.report.sections.rollouts import examples
from callwright_plugins.report.verdict import LearningVerdict, alarms, notices, verdict


def write_report(run: Run, output: Path | None = None, say: Callable[[str], object] = str) -> Path:
    """Write the report of a run or an evaluation, finished or not, and return where it is.

    Default: ``report.html`` in its folder. The same folder gives the same bytes. ``say`` hears what of the folder could
    not be read, or is not as it was written; the page says it, too. Raises
    :class:`callwright.errors.DataError` for a folder that is neither and :class:`callwright.errors.RunError` if the
    file cannot be written.
    """
    path = output or run.path / "report.html"
    trained = (run.path / "recipe.toml").is_file()
    data = read_run(run) if trained else read_evaluation(run)
    write_atomically(path, render(data) if trained else render_evaluation(data))
    for note in dict.fromkeys(data.notes):
        say(f"{run.path}: {note}")
    return path


def write_scored(
    rewards: Path,
    texts: Path | None = None,
    output: Path | None = None,
    say: Callable[[str], object] = str,
    **source: Any,
) -> Path:
    """Write the report of a file of rewards, ``NAME.report.html`` beside it by default, and return where it is.

    ``texts`` is what was scored: rows with completions, or logs, which ``source`` says how to read (``tools``,
    ``registry``). The same files give the same bytes. ``say`` hears what of the rewards is damaged or was changed.
    Raises :class:`callwright.errors.DataError` for files that are neither and :class:`callwright.errors.RunError` if
    the page cannot be written.
    """
    data = read_scored(rewards)
    ids = {str(row.get("id")) for _, row in data.shown()}
    shown = {} if texts is None else texts_of(texts, ids, source.get("tools"), source.get("registry"))
    made = shlex.join(["callwright", "report", str(rewards), *(["--scored", str(texts)] if texts else [])])
    footer = f"Written from {safe(rewards.name)}; again with <code>{safe(made)}</code>"
    path = output or rewards.with_name(f"{rewards.name.removesuffix('.gz').removesuffix('.zst')}.report.html")
    write_atomically(path, document(f"{rewards.name} – Callwright rewards", scored.body(data, shown), footer))
    for note in data.notes:
        say(f"{rewards}: {note}")
    return path


def render(data: RunData) -> str:
    """The whole page of a run."""
    said = verdict(data)
    body = "\n".join(
        part
        for part in (
            _header(data, said),
            _notices(data),
            *accuracy(data),
            *learning(data),
            *fewer_calls(data, ROLLOUTS),
            *examples(data),
            *reproduction(data),
        )
        if part
    )
    return document(f"{data.name} – Callwright run", body, _footer(data, "run"))


def render_evaluation(data: RunData) -> str:
    """The whole page of an evaluation."""
    return document(f"{measured.title(data)} – Callwright evaluation", measured.body(data), _footer(data, "evaluation"))


def document(title: str, body: str, footer: str) -> str:
    """A whole page around its body; ``body`` and ``footer`` are HTML."""
    script = _asset("script.js")
    # The policy names this script by its hash: should text of a model ever slip through unescaped, it would not run.
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    sources = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'"
    policy = f"{sources}; base-uri 'none'; form-action 'none'"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{attribute(policy)}">
<title>{safe(title)}</title>
<style>
{_asset("style.css")}</style>
</head>
<body>
<main>
{body}
</main>
<footer>{footer}</footer>
<script>{script}</script>
</body>
</html>
"""


def _asset(name: str) -> str:
    return resources.files("callwright_plugins.report").joinpath(name).read_text(encoding="utf-8")


def _header(data: RunData, said: LearningVerdict) -> str:
    facts = "".join(f"<div><dt>{safe(key)}</dt><dd>{safe(value)}</dd></div>" for key, value in _facts(data))
    details = "".join(f"<p>{safe(sentence)}</p>" for sentence in said.details)
    about = data.recipe.get("description")
    tone = {1: "better", -1: "worse"}.get(said.direction, "")
    description = f'<p class="about">{safe(cut(about, 600))}</p>' if isinstance(about, str) and about else ""
    return f"""<header>
<p class="eyebrow">Callwright run <span class="state">{safe(said.state)}</span></p>
<h1>{safe(data.name)}</h1>
{description}
<div class="verdict {tone}"><p class="headline">{safe(said.headline)}</p>{details}</div>
<dl class="facts">{facts}</dl>
</header>"""


def _facts(data: RunData) -> Iterator[tuple[str, object]]:
    for key, shown in (
        ("corpus", "Corpus"),
        ("ir", "Form"),
        ("reward", "Reward"),
        ("algorithm", "Algorithm"),
        ("trainer", "Trainer"),
    ):
        name = data.component(key).get("name")
        if name is not None:
            yield shown, name
    terms = table(data.manifest.get("reward"))
    if terms.get("truncated") is not None:
        floor = number(terms.get("floor"))
        yield "Cut-off completions", terms["truncated"] if floor is None else f"{terms['truncated']} {floor:g}"
    if data.metrics:
        planned = data.planned
        yield "Steps", f"{data.steps:,} of {planned:,}" if planned and planned != data.steps else f"{data.steps:,}"
    seed = data.manifest.get("seed", data.recipe.get("seed"))
    if seed is not None:
        yield "Seed", seed
    started = data.manifest.get("started")
    if isinstance(started, str):
        yield "Started", started.replace("T", " ").replace("+00:00", " UTC")


def _notices(data: RunData) -> str:
    raised = [
        f"<li><strong>{safe(_steps(alarm.first, alarm.last))}</strong> {safe(cut(alarm.text, 1200))}</li>"
        for alarm in alarms(data)
    ]
    remarks = [f"<li>{safe(text)}</li>" for text in (*notices(data), *data.notes)]
    parts = []
    if raised:
        shown, more = raised[:3], len(raised) - 3
        if more > 0:
            shown.append(f"<li>{more} more in metrics.jsonl</li>")
        parts.append(f'<section class="alarm"><h2>Alarm</h2><ul>{"".join(shown)}</ul></section>')
    if remarks:
        parts.append(f'<section class="notice"><h2>Worth knowing</h2><ul>{"".join(remarks)}</ul></section>')
    return "\n".join(parts)


def _steps(first: int, last: int) -> str:
    return f"Step {first:,}:" if first == last else f"Steps {first:,}–{last:,}:"


def _footer(data: RunData, kind: str) -> str:
    version = table(data.manifest.get("versions")).get("callwright")
    made = f"Callwright {safe(version)}" if version else "Callwright"
    command = shlex.join(["callwright", "report", str(data.path)])
    return f"{made}. Written from the files of the {kind} folder; again with <code>{safe(command)}</code>"
