"""``callwright synthesize compare``: the same plans in the words of several teachers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import click

from callwright.commands import options

_LINES: Final = (
    ("accepted", "units accepted"),
    ("kept", "tasks kept"),
    ("different", "different texts"),
    ("words", "words in a text"),
    ("vocabulary", "different words"),
    ("alike", "alike the first"),
    ("solved", "pass@1"),
)


@click.command("compare")
@click.argument("folders", nargs=-1, required=True, metavar="DIR DIR...", type=click.Path(path_type=Path))
@click.option("--examples", default=3, show_default=True, metavar="N", help="Tasks that are shown in all words.")
@options.json_option
def compare_(folders: tuple[Path, ...], examples: int, as_json: bool) -> None:
    """Compare what the teachers of finished syntheses made of the same plans (Prove, section 4.7).

    Each DIR was made by one recipe, with another --teacher. What is compared is what became of the units, what it
    took, and how the tasks that all of them kept are worded; after callwright synthesize difficulty on the files, also
    how often they are solved, where its figures stand in the tasks.
    """
    from callwright.commands.terminal import screen, table, text
    from callwright_plugins.synthesis.report.teachers import compared_teachers

    found = compared_teachers(folders, examples)
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    teachers: list[dict[str, Any]] = found["teachers"]
    names = _names(teachers)
    numbers = range(1, len(teachers) + 1)
    shown = table(f"{found['shared']:,} tasks of all", *names, right=(*numbers,))
    for key, title in _LINES:
        if any(one[key] is not None for one in teachers):
            shown.add_row(text(title), *(text(_number(one[key])) for one in teachers))
    for key in ("requests", "cost"):
        if any(key in one["usage"] for one in teachers):
            shown.add_row(text(key), *(text(_number(one["usage"].get(key))) for one in teachers))
    reasons = {(stage, reason) for one in teachers for stage, of in one["rejected"].items() for reason in of}
    for stage, reason in sorted(reasons):
        counts = [one["rejected"].get(stage, {}).get(reason, 0) for one in teachers]
        shown.add_row(text(f"{stage}: {reason}", "dim"), *(text(f"{count:,}", "dim") for count in counts))
    console = screen()
    console.print(shown)
    for example in found["examples"]:
        console.print(text(example["task"], "bold"))
        for name, said in zip(names, example["said"], strict=True):
            console.print(text(f"  {name}: {said}"))


def _names(teachers: list[dict[str, Any]]) -> list[str]:
    """What tells the columns apart: the teachers, with the folders of those that share one."""
    said = [one["teacher"] for one in teachers]
    return [
        f"{name} in {one['folder']}" if said.count(name) > 1 else name for name, one in zip(said, teachers, strict=True)
    ]


def _number(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
