"""The page: one HTML file without scripts that loads nothing, for a screen, a phone and paper."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib import resources
from typing import Any

from callwright.commands.safe_text import visible
from callwright_plugins.lab.figures import TRUTH
from callwright_plugins.lab.ledger import STAGES

_KINDS = {
    "gold": "The reference program",
    "valid": "Just as right: should earn the same",
    "verbose": "Right, with a call too many",
    "shortcut": "Right, with literals in place of calls",
    "wrong": "Wrong: should earn clearly less",
}
_WIDTH, _HEIGHT = 300, 108
_CHANGES = 3


def render(found: Mapping[str, Any]) -> str:
    """The page of what :func:`callwright_plugins.lab.figures.figures` found. The same figures give the same bytes."""
    style = resources.files("callwright_plugins.lab").joinpath("style.css").read_text(encoding="utf-8")
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    parts = [_header(found), _notices(found), _probes(found)]
    if found["attempts"]:
        parts += [_distributions(found), _signal(found), _stages(found), _fewer_calls(found), _agreement(found)]
        parts += [_components(found), _judged(found), _sensitivity(found)]
    body = "\n".join(part for part in (*parts, _left_out(found)) if part)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{_safe(found["source"])} – Callwright reward lab</title>
<style>
{style}</style>
</head>
<body>
<main>
{body}
</main>
<footer>Every attempt was parsed and executed once and scored under each reward. Probes are made from the tasks’
reference programs, executed, and kept only where they are as right or as wrong as they claim.</footer>
</body>
</html>
"""


def _safe(value: object) -> str:
    return escape(visible(str(value)), quote=True)


def _number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f}%"


def _tenths(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}%"


def _section(title: str, lead: str, body: str) -> str:
    return (
        f'<section class="part"><div class="rail"><h2>{_safe(title)}</h2><p>{lead}</p></div>'
        f'<div class="body">{body}</div></section>'
    )


def _header(found: Mapping[str, Any]) -> str:
    groups = found["groups"]
    facts = {
        "Rollouts": f"{found['attempts']:,}",
        "Tasks": f"{found['tasks']:,} of {found['corpus']}",
        "Groups": f"{groups['count']:,}",
        "Right answers": _percent(found["right"]),
        "Right ones that skip calls": _percent(found["skips"]["share_of_right"]),
        "Masked, left out": f"{found['masked']:,}",
    }
    if not found["attempts"]:
        facts = {"Corpus": found["source"], "Tasks probed": f"{found['probes']['tasks']:,}"}
    shown = "".join(f"<div><dt>{_safe(key)}</dt><dd>{_safe(value)}</dd></div>" for key, value in facts.items())
    names = " · ".join(_safe(name) for name in found["recipes"])
    return (
        f'<header><p class="eyebrow">Callwright reward lab: {_safe(found["source"])}</p><h1>{names}</h1>'
        f'<dl class="facts">{shown}</dl></header>'
    )


def _notices(found: Mapping[str, Any]) -> str:
    lines = "".join(f"<li>{_safe(warning['text'])}</li>" for warning in found["warnings"])
    return f'<div class="notice"><h2>What these rewards would teach</h2><ul>{lines}</ul></div>' if lines else ""


def _cell(text: str, share: float | None, tone: str = "") -> str:
    if share is None:
        return '<td class="empty">–</td>'
    share = min(1.0, max(0.0, share))
    strong = ' class="strong"' if share >= 0.55 else ""
    colour = f";--tone:{tone}" if tone else ""
    return f'<td{strong} style="--share:{100 * share:.0f}%{colour}">{text}</td>'


def _heat(names: list[str], rows: str) -> str:
    heads = "".join(f'<th scope="col">{_safe(name)}</th>' for name in names)
    table = f'<table class="heat"><thead><tr><th></th>{heads}</tr></thead><tbody>{rows}</tbody></table>'
    return f'<div class="scroll">{table}</div>'


def _probes(found: Mapping[str, Any]) -> str:
    recipes, rows, kind = found["recipes"], [], ""
    for name, probe in found["probes"]["probes"].items():
        if not probe["recipes"]:
            continue
        if probe["kind"] != kind:
            kind = probe["kind"]
            rows.append(f'<tr class="kind"><th colspan="{len(recipes) + 1}">{_KINDS[kind]}</th></tr>')
        cells = ""
        for recipe, row in recipes.items():
            cell = probe["recipes"].get(recipe)
            share = None
            if cell is not None:
                floor = row["least"]
                share = (cell["mean"] - floor) / (cell["gold"] - floor) if cell["gold"] > floor else 0.0
            cells += _cell(_number(cell and cell["mean"]), share)
        rows.append(f'<tr><th scope="row">{_safe(name)}<small>{_safe(probe["about"])}</small></th>{cells}</tr>')
    if not rows:
        return ""
    lead = (
        f"Mean reward of programs made from the reference programs of {found['probes']['tasks']:,} tasks. The stronger "
        "the colour, the nearer to what the reference program earns on the same tasks. A good reward is strong above "
        "and pale below."
    )
    return _section("Probes", lead, _heat(list(recipes), "".join(rows)))


def _distributions(found: Mapping[str, Any]) -> str:
    figures = "".join(
        f"<figure><b>{_safe(name)}</b><small>{_percent(row['at_high'])} at the most ({_number(row['high'])}), "
        f"{_percent(row['at_low'])} at the least ({_number(row['low'])})</small>{_histogram(name, row)}</figure>"
        for name, row in found["recipes"].items()
    )
    lead = "How many rollouts earn how much. The line is the mean. Each has its own scale from least to most."
    return _section("Distribution", lead, f'<div class="tiles">{figures}</div>')


def _histogram(name: str, row: Mapping[str, Any]) -> str:
    counts, low, high = (row["histogram"][key] for key in ("counts", "from", "to"))
    whole, top = sum(counts) or 1, max(counts) or 1
    floor, width = _HEIGHT - 18, _WIDTH / len(counts)
    bars = ""
    for index, count in enumerate(counts):
        if count:
            tall = max(1.0, (floor - 16) * count / top)
            at = f'x="{index * width + 1:.1f}" y="{floor - tall:.1f}" width="{width - 2:.1f}" height="{tall:.1f}"'
            ends = (low + (high - low) * edge / len(counts) for edge in (index, index + 1))
            label = " to ".join(_number(end) for end in ends)
            bars += (
                f'<rect class="bar" rx="1.5" {at}><title>{label}: {count:,} ({_percent(count / whole)})</title></rect>'
            )
    mean = _WIDTH * (row["mean"] - low) / (high - low or 1.0)
    anchor = "start" if mean < 60 else "end" if mean > _WIDTH - 60 else "middle"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="Rewards of {_safe(name)}">{bars}'
        f'<line class="base" x1="0" x2="{_WIDTH}" y1="{floor}" y2="{floor}"/>'
        f'<line class="mean" x1="{mean:.1f}" x2="{mean:.1f}" y1="14" y2="{floor}"/>'
        f'<text class="meanlabel" x="{mean:.1f}" y="10" text-anchor="{anchor}">mean {_number(row["mean"])}</text>'
        f'<text x="0" y="{_HEIGHT - 4}">{_number(low)}</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT - 4}" text-anchor="end">{_number(high)}</text></svg>'
    )


def _line(name: str, share: float | None, value: str) -> str:
    filled = f'<i style="width:{100 * (share or 0):.1f}%"></i>'
    return (
        f'<div class="line"><span class="name">{_safe(name)}</span><span class="track">{filled}</span>'
        f'<span class="value">{value}</span></div>'
    )


def _signal(found: Mapping[str, Any]) -> str:
    groups = found["groups"]
    lead = (
        "GRPO compares attempts at the same task. Where all of a group earn the same, it learns nothing. "
        f"{groups['count']:,} groups; {groups['of_one']:,} of a single attempt are left out."
    )
    if not groups["count"]:
        text = "No task was attempted more than once in a step, so there are no groups to look into."
        return _section("Signal", lead, f'<p class="none">{text}</p>')
    lines = ""
    for name, row in found["recipes"].items():
        share = 1 - row["groups"]["without_signal"]
        lines += _line(name, share, f"{_percent(share)}, ±{_number(row['groups']['spread'])}")
    head = '<p class="none">Groups with a signal, and the mean standard deviation inside of groups</p>'
    return _section("Signal", lead, f'{head}<div class="lines">{lines}</div>')


def _stages(found: Mapping[str, Any]) -> str:
    recipes, rows = found["recipes"], ""
    for stage, count in found["stages"].items():
        cells = ""
        for row in recipes.values():
            mean, floor = row["stages"].get(stage), row["least"]
            share = None if mean is None else (mean - floor) / (row["high"] - floor or 1.0)
            cells += _cell(_number(mean), share)
        rows += f'<tr><th scope="row">{_safe(STAGES[stage])}<small>{count:,} rollouts</small></th>{cells}</tr>'
    lead = "Mean reward of the rollouts by what went wrong first. A good reward grows from row to row."
    return _section("Mean reward by failure stage", lead, _heat(list(recipes), rows))


def _agreement(found: Mapping[str, Any]) -> str:
    names = [*found["recipes"], TRUTH]
    inside = found["groups"]["count"] > 0
    key = "tau_within" if inside else "tau"
    taus = {frozenset(row["recipes"]): row[key] for row in found["agreement"]}
    rows = ""
    for name in names:
        cells = ""
        for other in found["recipes"]:
            tau = taus.get(frozenset((name, other)))
            if name == other:
                cells += '<td class="empty"></td>'
            else:
                cells += _cell(_number(tau), None if tau is None else abs(tau), "var(--none)" if (tau or 0) < 0 else "")
        rows += f'<tr><th scope="row">{_safe(name)}</th>{cells}</tr>'
    where = "inside of groups, which is what training feels" if inside else "over all rollouts"
    lead = (
        f"Whether two rewards rank rollouts alike: Kendall’s tau-b {where}. 1 is the same order, 0 no relation, "
        "−1 the reverse. The last row: how well a reward tells right from wrong."
    )
    return _section("Agreement", lead, _heat(list(found["recipes"]), rows))


def _components(found: Mapping[str, Any]) -> str:
    body = ""
    for name, row in found["recipes"].items():
        bars = legend = ""
        for index, (term, part) in enumerate(row["components"].items()):
            share = part["variance_share"]
            if part["high"] <= part["low"]:
                continue
            colour = f"c{index % 8}"
            if share is not None and share > 0.002:
                bars += f'<i class="{colour}" style="flex:{share:.4f}" title="{_safe(term)} {_percent(share)}"></i>'
            earned = f"earns {_number(part['mean'])} of {_number(part['high'])}"
            legend += f'<span class="{colour}">{_safe(term)} {_percent(share)}, {earned}</span>'
        body += (
            f'<figure class="recipe"><b>{_safe(name)}</b><div class="stack">{bars}</div>'
            f'<div class="legend">{legend}</div></figure>'
        )
    lead = "Which terms make the differences between rollouts: each term’s share of the variance of the total."
    return _section("Components", lead, body)


def _judged(found: Mapping[str, Any]) -> str:
    rows = ""
    for name, row in found["recipes"].items():
        for term, cell in row.get("judged", {}).items():
            cells = "".join(_cell(_number(cell[key], 3), cell[key]) for key in ("auc", "accuracy", "kappa"))
            about = f"{cell['n']:,} verdicts, {cell['right']:,} on right answers; a yes from {cell['threshold']:g}"
            rows += f'<tr><th scope="row">{_safe(name)}: {_safe(term)}<small>{_safe(about)}</small></th>{cells}</tr>'
    if not rows:
        return ""
    lead = (
        "Whether verdicts agree with what execution says of the same rollouts. AUC: the chance that a right answer has "
        "the higher verdict of a right and a wrong one. Kappa: the agreement beyond chance. A verdict on what "
        "execution cannot see may rightly differ."
    )
    return _section("Verdicts beside execution", lead, _heat(["AUC", "accuracy", "kappa"], rows))


def _fewer_calls(found: Mapping[str, Any]) -> str:
    skips, dropping = found["skips"], found["dropping"]
    body = ""
    if skips["right"]:
        lines = _line("skip calls", skips["share_of_right"], f"{skips['skipping']:,} of {skips['right']:,} right")
        means = ", ".join(f"{_number(mean, 3)} under {_safe(name)}" for name, mean in skips["mean"].items())
        text = f"They earn {means} on average." if means else ""
        if skips["example"]:
            example = skips["example"]
            text += (
                f" At task {_safe(example['task'])}, for instance, <code>{_safe(example['program'])}</code> without "
                f"{_safe(', '.join(example['skipped']))}."
            )
        body += f'<div class="lines">{lines}</div>' + (f'<p class="none said">{text}</p>' if text else "")
    for key, head in (
        ("dropping_earns_more", "Leaving one broken call out would earn more, and the answer stays wrong"),
        ("calling_nothing_earns_more", "Calling nothing at all would earn more, and is wrong"),
    ):
        lines = "".join(
            _line(name, row[key], f"{_percent(row[key])} of {row['n']:,}") for name, row in dropping["recipes"].items()
        )
        if lines:
            body += f'<p class="none said">{head}</p><div class="lines">{lines}</div>'
    for name, row in dropping["recipes"].items():
        example = row["example"]
        if example:
            body += (
                f'<p class="none said">{_safe(name)}, task {_safe(example["task"])}: '
                f"<code>{_safe(example['program'])}</code> earns {_number(example['before'], 3)}, and without call "
                f"{_safe(example['dropped'])} it earns {_number(example['after'], 3)}.</p>"
            )
    if not body:
        return ""
    lead = (
        "Right answers that skip calls of the reference program, with literals where it uses their results; and "
        f"attempts with a broken call, {dropping['tried']:,} of {dropping['attempts']:,}, that would earn more without "
        "it and be no less wrong. TIER judges the answer and counts mismatches of the calls that are made, so both can "
        f"pay. {dropping['put_right']:,} of these attempts are right without the call; they are not counted here."
    )
    return _section("Fewer calls", lead, body)


def _sensitivity(found: Mapping[str, Any]) -> str:
    if "sensitivity" not in found:
        return ""
    tried = found["sensitivity"]
    heads = ["mean", "std", "in groups", "signal", "tau-b", "order flips", "sign flips"]
    rows = ""
    for row in tried["schemes"]:
        tau = row["tau"]
        cells = "".join(
            (
                _cell(_number(row["mean"], 3), row["mean"]),
                _cell(_number(row["std"], 3), row["std"]),
                _cell(_number(row["spread"], 3), row["spread"]),
                _cell(_percent(row["with_signal"]), row["with_signal"]),
                _cell(_number(tau, 3), None if tau is None else abs(tau), "var(--none)" if (tau or 0) < 0 else ""),
                _cell(_tenths(row["flipped"]), row["flipped"], "var(--second)"),
                _cell(_tenths(row["advantage_flips"]), row["advantage_flips"], "var(--second)"),
            )
        )
        rows += f'<tr><th scope="row">{_safe(row["label"])}</th>{cells}</tr>'
    body = _heat(heads, rows) + "".join(_scheme(row) for row in tried["schemes"] if len(row["changes"]) == 1)
    weights = ", ".join(f"{name} {weight:g}" for name, weight in tried["schemes"][0]["weights"].items())
    penalty = tried["schemes"][0]["penalty"]
    cost = "" if penalty is None else f", lambda {penalty:g}"
    lead = (
        f"{_safe(tried['recipe'])} with other weights, on the same scores. The reference has {_safe(weights)}{cost}. "
        "Mean and spread are shares of the most that each scheme gives. The rest compares attempts at the same task, "
        f"{tried['pairs']:,} pairs of them, with the reference: order flips are of the pairs that it tells apart, sign "
        "flips are attempts whose advantage changes between above and below the mean of their group."
    )
    if tried["thinned"]:
        lead += " Of groups with very many different attempts, some were drawn for the pairs."
    if tried["combinations_left_out"]:
        lead += f" {tried['combinations_left_out']:,} combinations were too many and are left out."
    return _section("Other weights", lead, body)


def _scheme(row: Mapping[str, Any]) -> str:
    """Kinds of errors that change places under a scheme, and pairs of attempts whose order flips."""
    lines = ""
    for change in row["changed_places"][:_CHANGES]:
        (then_upper, then_lower), (upper, lower) = change["before"], change["after"]
        lines += (
            f"<li>“{_safe(change['now_above'])}” now earns more on average than “{_safe(change['now_below'])}”: "
            f"{_number(upper, 3)} and {_number(lower, 3)}, before {_number(then_upper, 3)} and "
            f"{_number(then_lower, 3)}</li>"
        )
    for example in row["examples"]:
        ends = "".join(
            f'<span class="end"><b>{_number(end["before"], 3)} → {_number(end["after"], 3)}</b> '
            f"{_safe(end['kind'])} <code>{_safe(end['text'])}</code></span>"
            for end in (example["now_above"], example["now_below"])
        )
        lines += f"<li>task {_safe(example['task'])}, one of {example['pairs']:,} such pairs: {ends}</li>"
    if not lines:
        return ""
    return f'<figure class="recipe scheme"><b>{_safe(row["label"])}</b><ul class="plain">{lines}</ul></figure>'


def _left_out(found: Mapping[str, Any]) -> str:
    lines = [f"{name}: {reason}" for name, reason in found["skipped"].items()]
    for probe, row in found["probes"]["probes"].items():
        reasons = ", ".join(f"{count} because {reason}" for reason, count in row["left_out"].items())
        if reasons:
            lines.append(f"probe “{probe}”: {reasons}")
    if found["bad"]:
        lines.append(f"{found['bad']:,} rows could not be read")
    if not lines:
        return ""
    shown = "".join(f"<li>{_safe(line)}</li>" for line in lines)
    return _section("Left out", "What is not in these figures, and why.", f'<ul class="plain">{shown}</ul>')
