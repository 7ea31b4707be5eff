"""The figures on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from callwright.commands.safe_text import say
from callwright.commands.terminal import percent, screen, table, text
from callwright.language.shortening import shortened
from callwright_plugins.lab.figures import TRUTH
from callwright_plugins.lab.ledger import STAGES

if TYPE_CHECKING:
    from rich.console import Console

#: So many schemes are in the table; the page and --json have all.
_SCHEMES: Final = 24
_EXAMPLES: Final = 2


def draw(found: Mapping[str, Any]) -> None:
    """Everything, in tables. Where there are no rollouts, the probes alone."""
    console = screen()
    for name, reason in found["skipped"].items():
        say(f"{name} is left out: {reason}")
    if found["attempts"]:
        _rollouts(console, found)
    else:
        _probed(console, found)
    if "sensitivity" in found:
        _sensitivity(console, found["sensitivity"])
    if found["masked"]:
        console.print(f"{found['masked']:,} attempts are masked and left out: their tools or servers failed.")
    for warning in found["warnings"]:
        console.print(text(f"! {warning['text']}", "yellow"))


def _rollouts(console: Console, found: Mapping[str, Any]) -> None:
    recipes = found["recipes"]
    title = f"{found['attempts']:,} attempts at {found['tasks']:,} tasks of {found['corpus']}"
    main = table(
        "recipe", "range", "mean", "at max", "at min", "spread", "flat groups", right=(1, 2, 3, 4, 5, 6), title=title
    )
    for name, row in recipes.items():
        main.add_row(
            text(name),
            f"{row['low']:.3g} to {row['high']:.3g}",
            f"{row['mean']:.3f}",
            percent(row["at_high"]),
            percent(row["at_low"]),
            "–" if row["groups"]["spread"] is None else f"{row['groups']['spread']:.3f}",
            percent(row["groups"]["without_signal"]),
        )
    console.print(main)
    columns = range(1, len(recipes) + 1)
    probes = table("probe: mean reward", *recipes, right=columns, title=f"Probes of {found['probes']['tasks']} tasks")
    for name, probe in found["probes"]["probes"].items():
        if probe["recipes"]:
            cells = (probe["recipes"].get(recipe) for recipe in recipes)
            probes.add_row(f"{name} ({probe['kind']})", *("–" if c is None else f"{c['mean']:.3f}" for c in cells))
    console.print(probes)
    stages = table("attempts that …: mean reward", "n", *recipes, right=range(1, len(recipes) + 2))
    for stage, count in found["stages"].items():
        cells = (row["stages"].get(stage) for row in recipes.values())
        stages.add_row(STAGES[stage], f"{count:,}", *("–" if cell is None else f"{cell:.3f}" for cell in cells))
    console.print(stages)
    parts = table("component", "mean", "of at most", "of the variance", "at its most", "shut", right=(1, 2, 3, 4, 5))
    for name, row in recipes.items():
        for part, cell in row["components"].items():
            parts.add_row(
                text(f"{name}: {part}"),
                f"{cell['mean']:.3f}",
                f"{cell['high']:.3g}",
                percent(cell["variance_share"]),
                percent(cell["full"]),
                percent(cell["closed"]),
            )
    console.print(parts)
    _judged(console, recipes)
    agreement = table("rank agreement (tau-b)", "", "in groups", "overall", right=(2, 3))
    for pair in found["agreement"]:
        first, second = pair["recipes"]
        inner, outer = ("–" if tau is None else f"{tau:.2f}" for tau in (pair["tau_within"], pair["tau"]))
        agreement.add_row(text(first), text(second if second != TRUTH else "whether the answer is right"), inner, outer)
    console.print(agreement)
    _fewer_calls(console, found)


def _judged(console: Console, recipes: Mapping[str, Any]) -> None:
    """Beside the components: whether those that give a verdict agree with what execution says."""
    rows = [(name, part, cell) for name, row in recipes.items() for part, cell in row.get("judged", {}).items()]
    if not rows:
        return
    shown = table(
        "verdicts beside execution", "asked about", "right", "AUC", "accuracy", "kappa", right=(1, 2, 3, 4, 5)
    )
    for name, part, cell in rows:
        figures = ("–" if cell[key] is None else f"{cell[key]:.3f}" for key in ("auc", "accuracy", "kappa"))
        shown.add_row(
            text(f"{name}: {part}, a yes from {cell['threshold']:g}"), f"{cell['n']:,}", f"{cell['right']:,}", *figures
        )
    console.print(shown)


def _probed(console: Console, found: Mapping[str, Any]) -> None:
    """Probes of a corpus: on how many tasks each was used, and what it earned there."""
    title = f"Probes of {found['probes']['tasks']:,} tasks of {found['source']}"
    probes = table("probe", "reward", "tasks", "mean", "reference", "totals", right=(2, 3, 4), title=title)
    for name, probe in found["probes"]["probes"].items():
        for recipe, cell in probe["recipes"].items():
            totals = ", ".join(f"{total:.4g} on {count:,}" for total, count in cell["totals"])
            probes.add_row(
                f"{name} ({probe['kind']})",
                text(recipe),
                f"{cell['n']:,}",
                f"{cell['mean']:.3f}",
                f"{cell['gold']:.3f}",
                totals,
            )
    console.print(probes)
    for name, probe in found["probes"]["probes"].items():
        for reason, count in probe["left_out"].items():
            console.print(text(f"{name}: left out on {count:,} tasks, because {reason}"))


def _fewer_calls(console: Console, found: Mapping[str, Any]) -> None:
    """Calls that are skipped, and calls that had better not been made."""
    skips, dropping = found["skips"], found["dropping"]
    if skips["right"]:
        means = ", ".join(f"{mean:.3f} under {name}" for name, mean in skips["mean"].items())
        console.print(
            text(
                f"{skips['skipping']:,} of {skips['right']:,} right answers ({percent(skips['share_of_right'])}) skip "
                "calls that the reference program needs, with literals for their results"
                + (f"; they earn {means} on average." if means else ".")
            )
        )
    if not dropping["recipes"]:
        return
    tried = f"{dropping['tried']:,} of {dropping['attempts']:,}"
    title = f"{tried} attempts with a broken call: what is wrong as well and would earn more"
    rows = table("reward", "leaving a broken call out", "mean gain", "calling nothing", right=(1, 2, 3), title=title)
    for name, row in dropping["recipes"].items():
        gain = "–" if row["mean_gain"] is None else f"{row['mean_gain']:.3f}"
        rows.add_row(text(name), percent(row["dropping_earns_more"]), gain, percent(row["calling_nothing_earns_more"]))
    console.print(rows)


def _sensitivity(console: Console, found: Mapping[str, Any]) -> None:
    """What other weights would teach."""
    schemes = found["schemes"]
    shown = [row for row in schemes if len(row["changes"]) < 2][:_SCHEMES]
    title = f"{found['recipe']} with other weights: {found['pairs']:,} pairs of attempts at the same task"
    rows = table("scheme", "mean", "std", "grouped", "signal", "tau-b", "order", "sign", right=range(1, 8), title=title)
    for row in shown:
        rows.add_row(
            text(row["label"]),
            f"{row['mean']:.3f}",
            f"{row['std']:.3f}",
            "–" if row["spread"] is None else f"{row['spread']:.3f}",
            percent(row["with_signal"]),
            "–" if row["tau"] is None else f"{row['tau']:.3f}",
            percent(row["flipped"]),
            percent(row["advantage_flips"]),
        )
    console.print(rows)
    console.print(
        "mean, std and grouped (mean std in groups) are shares of the most. signal: groups that are not flat. tau-b "
        "and order (pairs that flip) are against the reference, over attempts at the same task; sign: attempts whose "
        "advantage changes between above and below the mean of the group."
    )
    if len(schemes) > len(shown):
        console.print(
            f"{len(schemes) - len(shown):,} more schemes, combinations among them: --json and the page have all."
        )
    if found["combinations_left_out"]:
        console.print(f"{found['combinations_left_out']:,} combinations of these values are too many and left out.")
    if found["thinned"]:
        console.print("Of groups with very many different attempts, some were drawn for the pairs.")
    for row in schemes:
        if not row["changes"] or len(row["changes"]) > 1:
            continue
        for change in row["changed_places"][:_EXAMPLES]:
            console.print(text(f"{row['label']}: {places(change)}"))
        for example in row["examples"][:1]:
            upper, lower = example["now_above"], example["now_below"]
            console.print(text(f"{row['label']}: at task {example['task']}, now above: {_shown(upper)}"))
            console.print(text(f"    now below: {_shown(lower)}", "dim"))


def places(change: Mapping[str, Any]) -> str:
    """Two kinds that change places, in words."""
    (then_upper, then_lower), (upper, lower) = change["before"], change["after"]
    return (
        f"“{change['now_above']}” earns more on average than “{change['now_below']}” "
        f"({upper:.3f} and {lower:.3f}; before {then_upper:.3f} and {then_lower:.3f})"
    )


def _shown(end: Mapping[str, Any]) -> str:
    return f"[{end['kind']}, {end['before']:.3f} → {end['after']:.3f}] {shortened(end['text'], 150)}"
