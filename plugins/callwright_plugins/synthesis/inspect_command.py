"""``callwright synthesize inspect``: look at tasks one by one, and keep or drop them by a key."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import click

from callwright.commands.app import App
from callwright.commands.options import refuse_existing, refuse_inputs, replace_option
from callwright.commands.safe_text import say
from callwright.errors import DataError, UsageError

if TYPE_CHECKING:
    from callwright.walk.task_rows.decisions import Verdict
    from callwright.walk.task_rows.reading import TaskFile
    from callwright_plugins.synthesis.report.gating import Told

_KEYS: Final = "k keep   d drop   u take back   n next   p previous   q end"


@click.command("inspect")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--task", "task_id", metavar="ID", help="Print this one and end; needs no keys.")
@click.option("--decide", type=click.Choice(["keep", "drop", "undecided"]), help="Of the task that --task names.")
@click.option("--note", default="", metavar="TEXT", help="Why; beside --decide.")
@click.option("--random", "some", type=click.IntRange(min=1), metavar="N", help="N tasks drawn at random.")
@click.option("--seed", default=0, show_default=True, help="Of --random.")
@click.option("--undecided", is_flag=True, help="Only those about which nothing is decided yet.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="OUT", help="Write what is not dropped.")
@replace_option
@click.option("--gates/--no-gates", "with_gates", default=True, show_default=True, help="Hold each task against them.")
@click.option("--any-version", is_flag=True, help="Environments of other versions with equal tools do.")
@click.option("--trust", is_flag=True, help="The file's environments may start programs and send secrets.")
@click.pass_context
def inspect_(
    ctx: click.Context,
    file: Path,
    task_id: str | None,
    decide: Verdict | None,
    note: str,
    some: int | None,
    seed: int,
    undecided: bool,
    output: Path | None,
    overwrite: bool,
    with_gates: bool,
    any_version: bool,
    trust: bool,
) -> None:
    """Look at the tasks of FILE, a file of tasks or the folder of a synthesis, one by one.

    A task is shown with its conversation, made again now, its plan, what it changes in its world, and what the gates
    say of it. Decisions are kept in FILE.decisions.jsonl, a line each; the last one about a task counts. Where there
    are no keys to press, as in a pipe, those of --random are printed one after the other.

    Exit status 1 if one of these cannot be read.
    """
    from callwright.walk.task_rows.decisions import Decision, decisions_file, read_decisions
    from callwright.walk.task_rows.decisions import decide as write_down
    from callwright.walk.task_rows.reading import read_tasks
    from callwright_plugins.synthesis.report.folders import task_file

    app = ctx.ensure_object(App)
    if (decide or note) and (task_id is None or decide is None):
        raise UsageError("--decide says what of the task that --task names, and --note why")
    path = task_file(file)
    if output is not None:
        refuse_inputs(output, path)
        refuse_existing(output, overwrite=overwrite)
    tasks = read_tasks(path, any_version=any_version, trust=trust, registry=app.registry)
    kept_in = decisions_file(path)
    known = read_decisions(kept_in)
    if output is not None:
        _write_kept(app, tasks, known, output)
        return
    show = _Shower(app, tasks, with_gates)
    if task_id is not None:
        place = tasks.place(task_id)
        if decide is not None:
            write_down(kept_in, Decision(task_id, decide, note))
            known = read_decisions(kept_in)
        show(place, known.get(task_id))
        return
    places = [at for at in range(len(tasks)) if not undecided or _id_at(tasks, at) not in known]
    if some is not None:
        places = sorted(Random(seed).sample(places, min(some, len(places))))
    if not places:
        click.echo("there is no task to look at")
        return
    if sys.stdin.isatty() and sys.stdout.isatty():
        _by_keys(show, places, tasks, kept_in)
    elif some is None:
        raise UsageError(
            "there are no keys to press here: name one task with --task ID, and decide with --decide, or print some "
            "with --random N"
        )
    elif False in [show.or_say(place, known.get(_id_at(tasks, place))) for place in places]:
        ctx.exit(1)


class _Shower:
    """Shows the task at a place. Raises :class:`callwright.errors.DataError` for a row that is none."""

    def __init__(self, app: App, tasks: TaskFile, with_gates: bool) -> None:
        from callwright.commands.terminal import screen

        self.app, self.tasks, self.with_gates, self.out = app, tasks, with_gates, screen()

    def __call__(self, place: int, decision: Any) -> None:
        from callwright_plugins.synthesis.report.showing import show_task

        task = self.tasks[place]
        gates: Sequence[Told] | None = None
        if self.with_gates:
            from callwright_plugins.synthesis.report.gating import told_by_gates

            gates = told_by_gates(task, self.app.registry)
        show_task(self.out, task, place=f"{place + 1}/{len(self.tasks)}", gates=gates, decision=decision)

    def or_say(self, place: int, decision: Any) -> bool:
        """Show it, or say why it cannot be read, since others can be looked at; whether it was shown."""
        try:
            self(place, decision)
        except DataError as error:
            say(f"error: {error}")
            return False
        return True


def _id_at(tasks: TaskFile, place: int) -> str:
    """The id of the task at a place; empty for a damaged row, about which nothing can be decided."""
    try:
        return str(tasks.row(place)["id"])
    except DataError:
        return ""


def _by_keys(show: _Shower, places: Sequence[int], tasks: TaskFile, kept_in: Path) -> None:
    from callwright.walk.task_rows.decisions import Decision, read_decisions
    from callwright.walk.task_rows.decisions import decide as write_down

    verdicts: dict[str, Verdict] = {"k": "keep", "d": "drop", "u": "undecided"}
    at = 0
    while 0 <= at < len(places):
        name = _id_at(tasks, places[at])
        show.or_say(places[at], read_decisions(kept_in).get(name))
        click.echo(_KEYS)
        try:
            key = click.getchar().lower()
        except (KeyboardInterrupt, EOFError):
            return
        if key in verdicts and name:
            write_down(kept_in, Decision(name, verdicts[key]))
            at += key != "u"
        elif key == "q":
            return
        elif key == "p":
            at = max(0, at - 1)
        elif key in ("n", " ", "\r", "\n"):
            at += 1
    known = read_decisions(kept_in)
    dropped = sum(one.verdict == "drop" for one in known.values())
    click.echo(f"{len(known) - dropped:,} kept, {dropped:,} dropped; {kept_in}")


def _write_kept(app: App, tasks: TaskFile, known: dict[str, Any], output: Path) -> None:
    from callwright.walk.task_rows.writing import write_rows

    rows = [tasks.row(place) for place in range(len(tasks))]
    kept = [row for row in rows if row["id"] not in known or known[row["id"]].verdict != "drop"]
    head = tasks.head
    count = write_rows(output, iter(kept), limits=head.limits, about=head.about, trust=True, registry=app.registry)
    gone = len(rows) - count
    dropped = f"{gone:,} {'was' if gone == 1 else 'were'}" if gone else "none was"
    click.echo(f"{count:,} tasks in {output}; {dropped} dropped")
