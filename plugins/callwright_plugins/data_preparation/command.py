"""``callwright prepare``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from callwright.commands.bars import bars_for_bytes
from callwright.commands.safe_text import say
from callwright.errors import DataError, MissingExtra, RunError, UsageError
from callwright.training.run_folder import write_atomically
from callwright_plugins.data_preparation.mismatches import fit_of
from callwright_plugins.data_preparation.rows import PLACE, SYSTEM, Row
from callwright_plugins.data_preparation.tasks_command import tasks
from callwright_plugins.data_preparation.toolrl import MIX, SFT, Mixture, mix

MANIFEST: Final = "manifest.json"
#: Every fiftieth row is for testing, as in the released data and in the corpus ``toolrl-rows``.
_TEST_EVERY: Final = 50


@click.group("prepare")
def prepare() -> None:
    """Make training rows and tasks of published data sets that you downloaded."""


prepare.add_command(tasks)


@prepare.command("toolrl")
@click.option("--toolace", type=click.Path(), help="A file of ToolACE: JSON, JSON lines or Parquet.")
@click.option("--hammer", type=click.Path(), help="A file of Hammer's masked data.")
@click.option("--xlam", type=click.Path(), help="A file of xLAM's function calls.")
@click.option("-o", "--out", required=True, type=click.Path(), help="The folder that is written.")
@click.option("--seed", default=0, show_default=True, help="What the sample is drawn by.")
@click.option(
    "--sft", default=SFT, show_default=True, type=click.IntRange(0, 100_000), help="Rows for supervised training."
)
@click.option("--system", type=click.Path(), help="A file with a system message of your own; {tools} is the list.")
@click.option("--parquet", is_flag=True, help="Write rl.parquet, too.")
@click.option("--overwrite", is_flag=True, help="Replace an earlier output.")
def toolrl(
    toolace: str | None,
    hammer: str | None,
    xlam: str | None,
    out: str,
    seed: int,
    sft: int,
    system: str | None,
    parquet: bool,
    overwrite: bool,
) -> None:
    """Draw ToolRL's mix: 2,000 steps of ToolACE, 1,000 of Hammer (masked) and 1,000 of xLAM."""
    named = zip(MIX, (toolace, hammer, xlam), strict=True)
    files = {name: Path(value) for name, value in named if value is not None}
    if not files:
        raise UsageError("name at least one data set: --toolace FILE, --hammer FILE or --xlam FILE")
    folder = Path(out)
    outputs = [folder / name for name in ("rl.jsonl", "rl.parquet", "sft.jsonl", MANIFEST)]
    standing = [path for path in outputs if path.exists()]
    if standing and not overwrite:
        raise UsageError(f"{standing[0]} exists: name another -o, or replace it with --overwrite")
    words = SYSTEM if system is None else _system(Path(system))
    if parquet:
        _pyarrow()
    sizes = sum(path.stat().st_size for path in files.values() if path.is_file())
    bars = bars_for_bytes(sizes, busy=False)
    if bars is None:
        mixture = mix(files, seed=seed, sft=sft, system=words)
    else:
        with bars:
            bars.start("reading", sizes)
            mixture = mix(files, seed=seed, sft=sft, system=words, advance=bars.advance)
            bars.finish()
    if not mixture.rl:
        _say(mixture)
        raise DataError("none of the files gave a row; see the reasons above, and whether each is of its data set")
    _write(folder, outputs, mixture, seed, parquet)
    _say(mixture)
    click.echo(f"{len(mixture.rl):,} rows in {outputs[0]}, {len(mixture.sft):,} in {outputs[2]}")
    if any(facts["rl"]["drawn"] < facts["rl"]["wanted"] for facts in mixture.sources.values()) or len(files) < len(MIX):
        say(f"note: fewer than the paper's {sum(MIX.values()):,} rows; {outputs[3]} says of what")


@prepare.command("report")
@click.option("--toolace", type=click.Path(), help="A file of ToolACE: JSON, JSON lines or Parquet.")
@click.option("--hammer", type=click.Path(), help="A file of Hammer's masked data.")
@click.option("--xlam", type=click.Path(), help="A file of xLAM's function calls.")
@click.option("--when2call", type=click.Path(), help="A file of When2Call: sft, pref or test.")
@click.option("--irrelevance", type=click.Path(), help="A file of xLAM-irrelevance.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def report(as_json: bool, **files: str | None) -> None:
    """How far the trajectories of data sets fit their own schemas, and how many queries use a tool."""
    found = {name: fit_of(name, Path(value)) for name, value in files.items() if value is not None}
    if not found:
        *most, last = (f"--{name}" for name in files)
        raise UsageError(f"name at least one data set: {', '.join(most)} or {last}, each with its FILE")
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    for name, facts in found.items():
        click.echo(f"{name}: {facts['conversations']:,} conversations, {facts['calls']:,} calls")
        for kind, share in {"any mismatch": facts["calls that mismatch"], **facts["kinds"]}.items():
            rate = "no calls" if share["rate"] is None else f"{share['rate']:.2%}"
            click.echo(f"  {kind}: {share['count']:,} ({rate})")
        uses = facts["tools by queries that call them"]
        click.echo(f"  {facts['tools']:,} tools, by queries that call them:")
        click.echo("    " + ", ".join(f"{bucket}: {count:,}" for bucket, count in uses.items()))
        for reason, count in facts["rejected"].items():
            click.echo(f"  left out: {count:,} ({reason})")


def _system(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if PLACE not in text:
        raise DataError(f"{path} does not say where the list of tools goes: write {PLACE} there")
    return text


def _say(mixture: Mixture) -> None:
    for name, facts in mixture.sources.items():
        rl = facts["rl"]
        click.echo(f"{name}: {facts['rows']:,} rows, {facts['steps']:,} steps, {rl['drawn']:,} of {rl['wanted']:,}")
        for reason, count in facts["rejected"].items():
            click.echo(f"  left out: {count:,} ({reason})")


def _write(folder: Path, outputs: Sequence[Path], mixture: Mixture, seed: int, parquet: bool) -> None:
    rl, columns, sft, manifest = outputs
    try:
        folder.mkdir(parents=True, exist_ok=True)
        manifest.unlink(missing_ok=True)  # it stands for whole outputs, and is written last
        columns.unlink(missing_ok=True)
    except OSError as error:
        raise RunError(f"{folder} cannot be written: {error.strerror or error}") from error
    write_atomically(rl, _lines(mixture.rl))
    write_atomically(sft, _lines(mixture.sft))
    if parquet:
        write_atomically(columns, _columns(mixture.rl))
    facts = {
        "format": "toolrl-rows",
        "paper": "ToolRL, section 4.1 and appendix B",
        "seed": seed,
        "rl": {"file": rl.name, "rows": len(mixture.rl), "ceiling": sum(MIX.values())},
        "sft": {"file": sft.name, "rows": len(mixture.sft)},
        "sources": mixture.sources,
        "missing": [name for name in MIX if name not in mixture.sources],
        "remarks": [
            "thoughts are placeholders: the data has none, and the paper's for supervised training are a model's",
            "SFT4k of the paper trains on the same rows as reinforcement learning: the file of 'rl'",
        ],
    }
    write_atomically(manifest, json.dumps(facts, indent=2, ensure_ascii=False) + "\n")


def _lines(rows: Sequence[Row]) -> bytes:
    text = "".join(json.dumps(row.to_json(), ensure_ascii=False) + "\n" for row in rows)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:  # half of a surrogate pair: only its escape can be written
        return "".join(json.dumps(row.to_json()) + "\n" for row in rows).encode("ascii")


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra("writing Parquet", "data", "pyarrow") from error
    return pyarrow


def _columns(rows: Sequence[Row]) -> bytes:
    """The columns of the released Parquet files."""
    pyarrow = _pyarrow()
    made = [
        {
            "data_source": "rlla",
            "prompt": [{"role": "system", "content": row.instruction}, {"role": "user", "content": row.input}],
            "ability": "tools",
            "reward_model": {"style": "rule", "ground_truth": row.output},
            "extra_info": {"split": "test" if number % _TEST_EVERY == _TEST_EVERY - 1 else "train", "index": number},
        }
        for number, row in enumerate(rows)
    ]
    sink = pyarrow.BufferOutputStream()
    try:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(made), sink)
    except (pyarrow.ArrowException, UnicodeError) as error:
        raise DataError(f"the rows cannot be written as Parquet, leave out --parquet: {error}") from error
    return bytes(sink.getvalue().to_pybytes())
