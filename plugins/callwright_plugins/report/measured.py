"""The page of an evaluation: what ``callwright evaluate -o`` left in a folder, read and judged once more by people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from callwright.errors import CallwrightError, DataError, near_path
from callwright.measuring.folders import inner_evaluations
from callwright.measuring.rows import verdict_of
from callwright.training.ledger.row_digests import DigestedRows
from callwright.training.run_folder import Run
from callwright.training.summary import summarise
from callwright.training.truncation import cut_off_in_words
from callwright.training.verdicts import Verdict
from callwright_plugins.report.drawing.markup import cut, percent, points, safe, section
from callwright_plugins.report.reading import VERDICTS, RunData, number, read_json, read_text, rows, table
from callwright_plugins.report.sections.accuracy import failures
from callwright_plugins.report.sections.completions import completions
from callwright_plugins.report.sections.fewer_calls import fewer_calls
from callwright_plugins.report.sections.reproduction import reproduction
from callwright_plugins.report.verdict import Change, changes, compared, overall, undeclared

SETTINGS: Final = "settings.json"
_LEAD: Final = (
    "Share of attempts whose answer is right. Depth is the number of calls that a task needs. Lines are 95% intervals, "
    "Wilson’s where every task is by itself. “Valid” is the stricter share whose every call fits its schema and "
    "executed, too."
)


def read_evaluation(run: Run) -> RunData:
    """Read an evaluation folder: ``recipe`` holds its settings, ``evaluation["after"]`` its result.

    An evaluation that was stopped has no result yet; then it is counted from the verdicts that are there. Raises
    :class:`callwright.errors.DataError` if the folder holds neither a run nor an evaluation.
    """
    if not run.path.exists():
        raise DataError(f"there is no folder {run.path}{near_path(run.path)}")
    if not (run.path / SETTINGS).is_file():
        missing = f"it has no recipe.toml; nor an evaluation: it has no {SETTINGS}"
        if inner := inner_evaluations(run.path):
            raise DataError(f"{run.path} is not a run folder: {missing}. It has evaluations in it: {', '.join(inner)}")
        raise DataError(f"{run.path} is not a run folder: {missing}{near_path(run.path)}")
    data = RunData(run.path, "")
    data.recipe_text = read_text(data, SETTINGS)
    data.recipe = read_json(data, SETTINGS)
    data.manifest = read_json(data, "manifest.json")
    stated = data.manifest.get("command")
    data.command = stated if isinstance(stated, str) else ""
    result = read_json(data, "evaluation.json")
    data.evaluation = {"after": result or summarise(_verdicts(data)), "finished": bool(result)}
    _compare(data, finished=bool(result))
    return data


def _compare(data: RunData, *, finished: bool) -> None:
    """Note it where verdicts are not as they were written: a page must not pass an edited row off as measured."""
    try:
        damage = DigestedRows(data.path / VERDICTS).damage(finished=finished)
    except (CallwrightError, OSError):  # what cannot be read has a note of its own where its rows are read
        return
    if damage is not None:
        shown = "Its figures are of before; rows are shown as they are now" if finished else "What follows counts them"
        data.notes.append(f"{VERDICTS}, {damage}. {shown}: callwright doctor {data.path} says more")


def _verdicts(data: RunData) -> Iterator[Verdict]:
    for line, (_, row) in enumerate(rows(data, VERDICTS), 1):
        with suppress(DataError):  # a row that says too little is not counted
            yield verdict_of(row, line, data.path / VERDICTS)


def title(data: RunData) -> str:
    """What was measured on what, such as ``gold on depthbench-v1, validation``."""
    corpus = data.component("corpus")
    names = (data.component("sampler").get("name"), corpus.get("name"), corpus.get("split"))
    sampler, name, split = (one if isinstance(one, str) and one else "?" for one in names)
    marked = ", oracle shots" if _oracle(data) else ""
    return f"{sampler} on {name}, {split}{marked}" if (sampler, name) != ("?", "?") else data.path.resolve().name


def _oracle(data: RunData) -> bool:
    """Whether examples were drawn by what the answers look like; an evaluation that was stopped says so in settings."""
    return data.after.get("shots") == "oracle" or (
        bool(number(data.recipe.get("shots"))) and data.component("corpus").get("shots") == "oracle"
    )


def body(data: RunData) -> str:
    """Everything between the header and the footer of the page."""
    lead = "The same command, versions and seed measure the same again; give it another folder with -o."
    parts = (
        _header(data),
        _notices(data),
        *_accuracy(data),
        *fewer_calls(data, VERDICTS),
        *completions(data),
        *reproduction(data, source="Settings", lead=lead),
    )
    return "\n".join(part for part in parts if part)


def _header(data: RunData) -> str:
    whole = overall(data)
    finished, count = data.evaluation.get("finished") is True, whole.n
    planned = number(data.manifest.get("tasks"))
    state = "finished" if finished else f"stopped after {count:,}{f' of {planned:,.0f}' if planned else ''} tasks"
    masked = table(data.after.get("all"))
    if whole.after is None or not count:
        headline, details = "Nothing has been measured yet.", ""
    elif data.after.get("headline") is False and masked:
        low, high = number(masked.get("lowest")), number(masked.get("highest"))
        headline = f"Between {percent(low)} and {percent(high)} were answered rightly: too many are masked to say more."
        details = ""
    else:
        share, low, high = whole.after
        samples = number(table(data.after.get("samples")).get("n"))
        what = "attempt" if samples else "task"
        answered = f"{what} was" if count == 1 else f"{what}s were"
        headline = f"{percent(share)} of {count:,} {answered} answered rightly."
        valid = number(data.after.get("valid_overall"))
        details = f"<p>The 95% interval is {points(low)} to {percent(high)}.</p>"
        if valid is not None and valid < share:
            details += f"<p>In {percent(valid)} every call also fits its schema and executed.</p>"
        details += _ends(changes(data, "by_depth"))
    facts = "".join(f"<div><dt>{safe(key)}</dt><dd>{safe(value)}</dd></div>" for key, value in _facts(data))
    return f"""<header>
<p class="eyebrow">Callwright evaluation <span class="state">{safe(state)}</span></p>
<h1>{safe(title(data))}</h1>
<div class="verdict"><p class="headline">{safe(headline)}</p>{details}</div>
<dl class="facts">{facts}</dl>
</header>"""


def _ends(depths: list[Change]) -> str:
    """The best and the worst depth, where they differ."""
    known = [(change.after[0], change.label) for change in depths if change.after is not None]
    if len(known) < 2:
        return ""
    (best, easy), (worst, hard) = max(known, key=lambda one: one[0]), min(known, key=lambda one: one[0])
    if best == worst:
        return f"<p>Every depth stands at {percent(best)}.</p>"
    return f"<p>Best at depth {safe(easy)} ({percent(best)}), worst at depth {safe(hard)} ({percent(worst)}).</p>"


def _facts(data: RunData) -> Iterator[tuple[str, object]]:
    corpus, sampler = data.component("corpus"), data.component("sampler")
    options = ", ".join(f"{key}={value}" for key, value in sampler.items() if key != "name")
    for shown, value in (
        ("Corpus", corpus.get("name")),
        ("Split", corpus.get("split")),
        ("Sampler", sampler.get("name")),
        ("Its options", options or None),
        ("Form", data.recipe.get("ir")),
        ("Examples in a prompt", data.recipe.get("shots")),
        ("Temperature", data.recipe.get("temperature")),
        ("Seed", data.recipe.get("seed")),
        ("Tasks drawn evenly" if data.recipe.get("drawn") else "Only the first", data.recipe.get("limit")),
        ("Samples of a task", data.recipe.get("samples")),
        *_usage(table(data.after.get("usage"))),
    ):
        if value is not None:
            yield shown, str(value)[:120]


def _usage(usage: dict[str, Any]) -> Iterator[tuple[str, str | None]]:
    """What a server was asked and paid for all rows, if one was."""
    counts = {name: number(value) or 0 for name, value in usage.items()}
    if not counts:
        return
    tokens = []
    for kind, part in (("prompt", "cached"), ("completion", "reasoning")):
        among = counts.get(f"{part}_tokens", 0)
        tokens.append(f"{counts.get(f'{kind}_tokens', 0):,.0f} {kind}" + (f" ({among:,.0f} {part})" if among else ""))
    yield "Requests", f"{counts.get('requests', 0):,.0f}"
    yield "Tokens", ", ".join(tokens)
    yield "Cost", f"{cost:,.6g}" if (cost := counts.get("cost", 0)) else None


def _notices(data: RunData) -> str:
    remarks = list(data.notes)
    masked = number(data.after.get("masked"))
    if masked:
        one = masked == 1
        remarks.append(
            f"{masked:,.0f} {'task is' if one else 'tasks are'} masked and not counted: the machinery failed, so "
            f"nothing is known of {'it' if one else 'them'}."
        )
        remarks += [
            f"{count:,.0f} masked: {cut(reason, 400)}"
            for reason, count in table(data.after.get("lost")).items()
            if isinstance(count, int)
        ]
    remarks += [f"{sentence}." for sentence in cut_off_in_words(data.after)]
    if _oracle(data):
        remarks.append(
            "The examples in the prompts are oracle shots: they have the structure and depth of the task itself, which "
            "tells a model whether to call, how often and in what shape. This accuracy is no few-shot accuracy."
        )
    why = table(data.after.get("benchmark")).get("why")
    remarks += [f"Not official: {reason}." for reason in why] if isinstance(why, list) else []
    if raised := undeclared([data.after.get("undeclared")]):
        remarks.append(raised)
    if data.evaluation.get("finished") is not True:
        remarks.append("The evaluation was stopped; the same command goes on. The easiest tasks often come first.")
    if not remarks:
        return ""
    listed = "".join(f"<li>{safe(text)}</li>" for text in remarks)
    return f'<section class="notice"><h2>Worth knowing</h2><ul>{listed}</ul></section>'


def _accuracy(data: RunData) -> Iterator[str]:
    depths, structures = changes(data, "by_depth"), changes(data, "by_structure")
    if not depths:
        return
    whole = overall(data)
    total = (whole, number(data.after.get("valid_overall")))
    content = _table("Depth", [(change, _valid(data, "by_depth", change)) for change in depths], total)
    if structures:
        content += "<h3>By structure of the program</h3>"
        content += _table("Structure", [(change, _valid(data, "by_structure", change)) for change in structures])
    for keys, cells in table(data.after.get("by")).items():
        named = keys.replace(",", ", ")
        valid = {label: number(table(cell).get("valid_accuracy")) for label, cell in table(cells).items()}
        further = [(one, valid[one.label]) for one in compared({}, table(cells))]
        content += f"<h3>By {safe(named)}</h3>{_table(named, further)}"
    content += _masked(data.after)
    content += _samples(table(data.after.get("samples")))
    if (values := table(data.after.get("values"))) and data.after.get("headline", True):
        rows_of = "".join(
            f'<tr><th scope="row">{safe(name)}</th><td class="n">{percent(number(value))}</td></tr>'
            for name, value in values.items()
        )
        content += f'<h3>As the benchmark adds it up</h3><table class="plain"><tbody>{rows_of}</tbody></table>'
    wrong = failures(table(data.after.get("failures")))
    if wrong:
        content += f"<h3>Commonest failures by depth</h3>{wrong}"
    yield section("Accuracy", content, lead=_LEAD, key="accuracy")


def _masked(result: dict[str, Any]) -> str:
    """Every group with masked attempts, and between what its accuracy would lie with them; empty without any."""
    tables = {"": {"all": result.get("all")}, "depth": table(result.get("by_depth"))}
    tables |= {"structure": table(result.get("by_structure")), **table(result.get("by"))}
    body = ""
    for keys, cells in tables.items():
        for label, cell in table(cells).items():
            count, low, high = (number(table(cell).get(key)) for key in ("masked", "lowest", "highest"))
            if count:
                named = f"{keys}: {label}" if keys else label
                bounds = f'<td class="n">{percent(low)}</td><td class="n">{percent(high)}</td>'
                body += f'<tr><th scope="row">{safe(named)}</th><td class="n">{count:,.0f}</td>{bounds}</tr>'
    if not body:
        return ""
    heads = "".join(f'<th scope="col" class="n">{name}</th>' for name in ("Masked", "If all wrong", "If all right"))
    return (
        "<h3>Masked attempts, and the accuracy if they were wrong or right</h3>"
        f'<table class="plain"><thead><tr><th scope="col"></th>{heads}</tr></thead><tbody>{body}</tbody></table>'
    )


def _samples(samples: dict[str, Any]) -> str:
    """pass@k and pass^k, if tasks were attempted several times."""
    every, one = table(samples.get("pass^k")), table(samples.get("pass@k"))
    if not one:
        return ""

    def shown(cell: dict[str, Any]) -> str:
        share, low, high = (number(cell.get(key)) for key in ("value", "low", "high"))
        if share is None or low is None or high is None:
            return '<td class="n">–</td><td class="n tasks">–</td>'
        return f'<td class="n">{percent(share)}</td><td class="n tasks">{points(low)}–{points(high)}</td>'

    heads = "".join(f'<th scope="col" class="n">{name}</th>' for name in ("One of k", "Interval", "All k", "Interval"))
    body = "".join(
        f'<tr><th scope="row">{safe(k)}</th>{shown(table(one[k]))}{shown(table(every.get(k)))}</tr>' for k in one
    )
    return (
        "<h3>By samples of a task: pass@k and pass^k</h3>"
        f'<table class="plain"><thead><tr><th scope="col">k</th>{heads}</tr></thead><tbody>{body}</tbody></table>'
    )


def _valid(data: RunData, by: str, change: Change) -> float | None:
    return number(table(table(data.after.get(by)).get(change.label)).get("valid_accuracy"))


def _table(
    heading: str, cells: list[tuple[Change, float | None]], total: tuple[Change, float | None] | None = None
) -> str:
    foot = f"<tfoot>{_row(*total)}</tfoot>" if total else ""
    heads = "".join(f'<th scope="col" class="n">{name}</th>' for name in ("Right", "Interval", "Valid"))
    scale = '<span class="scale"><span>0</span><span>50</span><span>100%</span></span>'
    return (
        f'<table class="compare once"><thead><tr><th scope="col">{safe(heading)}</th>'
        f'<th scope="col" class="n">Tasks</th><th scope="col" class="plotted">{scale}</th>{heads}</tr></thead>'
        f"<tbody>{''.join(_row(*cell) for cell in cells)}</tbody>{foot}</table>"
    )


def _row(change: Change, valid: float | None) -> str:
    if change.after is None:
        marks, right, interval = "", "–", "–"
    else:
        share, low, high = change.after
        marks = (
            f'<i class="span after" style="left:{100 * low:.2f}%;width:{100 * (high - low):.2f}%"></i>'
            f'<i class="dot after" style="left:{100 * share:.2f}%"></i>'
        )
        right, interval = percent(share), f"{points(low)}–{points(high)}"
    return (
        f'<tr><th scope="row">{safe(change.label)}</th><td class="n tasks">{change.n:,}</td>'
        f'<td class="plotted"><div class="track">{marks}</div></td><td class="n">{right}</td>'
        f'<td class="n tasks">{interval}</td><td class="n tasks">{percent(valid)}</td></tr>'
    )
