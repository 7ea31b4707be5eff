"""What ``callwright run`` prints: the plan of a dry run, and what came of a run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import structlog

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from callwright.pipeline import Pipeline
    from callwright.training.run_folder import Run
    from callwright.training.trainer import Trainer

logger = structlog.get_logger(__name__)


def show_plan(plan: Mapping[str, Any] | None, pipeline: Pipeline, trainer: Trainer, as_json: bool) -> None:
    """Print, without secrets, what the trainer would do; of one that says nothing of it, the recipe as it would be
    followed, and as comments below it the memory that it would take. A plan that does not fit is warned of.
    """
    from callwright.machines.redaction import redacted_value
    from callwright.training.dry_runs.memory_plan import too_much
    from callwright.training.recipe_run import kept_text
    from callwright.training.trainer import PlansMemory

    memory = trainer.memory_plan(pipeline) if isinstance(trainer, PlansMemory) else (plan or {}).get("memory", [])
    text = too_much(memory)
    if text is not None:
        logger.warning("this may not fit", reason=text)
    if as_json:
        shown = redacted_value(_components(pipeline, trainer, memory) if plan is None else plan)
        click.echo(json.dumps(shown, indent=2))
        return
    if plan is None:
        click.echo(kept_text(pipeline.recipe), nl=False)
        for line in ["", "memory:", *(f"  {_row(row)}" for row in memory)] if memory else []:
            click.echo(f"# {line}".rstrip())
        return
    plan = redacted_value(plan)
    for key, value in plan.items():
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            click.echo(f"{key}: {shlex.join(value)}")
        elif isinstance(value, list):
            click.echo(f"{key}:" + ("" if value else " nothing"))
            for row in value:
                click.echo(f"  {_row(row)}")
        elif isinstance(value, Mapping):
            click.echo(f"{key}:")
            for name, inner in value.items():
                click.echo(f"  {name}: {inner}")
        else:
            click.echo(f"{key}: {value}")


def _row(row: Mapping[str, Any]) -> str:
    said = [
        f"{inner}" if name == "why" else f"{name} {inner}" for name, inner in row.items() if name not in ("key", "path")
    ]
    return f"{row.get('key', row.get('path', ''))}: {'; '.join(said)}"


def _components(pipeline: Pipeline, trainer: Trainer, memory: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        **({"memory": list(memory)} if memory else {}),
        "recipe": pipeline.recipe.recipe.model_dump(mode="json"),
        "trainer": trainer.name,
        "splits": dict(pipeline.corpus.splits),
        "reward_terms": list(pipeline.reward.weights),
        "truncated": pipeline.reward.truncation,
    }


def show_result(finished: Run, as_json: bool) -> None:
    """Print the accuracies of a finished run, and where its report is."""
    evaluation = finished.read_json("evaluation.json") or {}
    page = finished.path / "report.html"
    if as_json:
        shown = {"run": str(finished.path), "report": str(page) if page.exists() else None, "evaluation": evaluation}
        click.echo(json.dumps(shown, indent=2))
        return
    from callwright.commands.terminal import screen

    if evaluation.get("before") or evaluation.get("after"):
        screen().print(before_and_after(evaluation))
    click.echo(f"report: {page}" if page.exists() else f"run: {finished.path}")


def before_and_after(evaluation: Mapping[str, Any]) -> Table:
    """Accuracy per depth before and after training, from a run's ``evaluation.json``."""
    from callwright.commands.terminal import interval, percent, table

    before, after = evaluation.get("before") or {}, evaluation.get("after") or {}
    made = table("depth", "tasks", "before", "after", "change", right=(0, 1, 2, 3, 4), title="Accuracy by depth")
    depths = sorted({**(before.get("by_depth") or {}), **(after.get("by_depth") or {})}, key=_depth_key)
    for depth in depths:
        first, last = (side.get("by_depth", {}).get(depth) for side in (before, after))
        count = (last or first or {}).get("n", "")
        made.add_row(depth, str(count), interval(first), interval(last), _change(_accuracy(first), _accuracy(last)))
    first, last = before.get("overall"), after.get("overall")
    made.add_section()
    count = str(after.get("n", before.get("n", "")))
    made.add_row("all", count, percent(first), percent(last), _change(first, last))
    return made


def _accuracy(cell: Mapping[str, Any] | None) -> float | None:
    return cell.get("accuracy") if cell else None


def _change(first: float | None, last: float | None) -> Text:
    from callwright.commands.terminal import text

    if first is None or last is None:
        return text("–")
    points = 100 * (last - first)
    return text(f"{points:+.1f}", "green" if points > 0 else "red" if points < 0 else "")


def _depth_key(depth: str) -> tuple[int, str]:
    return (int(depth), "") if depth.isdecimal() else (1 << 30, depth)
