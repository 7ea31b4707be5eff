"""``callwright synthesize mcp``: from the command of a server to tasks, chats and a recipe to train with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.safe_text import say
from callwright.errors import UsageError
from callwright.recipe_file.toml_text import write_toml

_SYNTHESIS: Final = "synthesis.toml"
#: Knobs for one server with a few tools: none of them is everywhere.
_FOR_A_SERVER: Final[Mapping[str, float]] = {"most_of_one": 0.27}
_RECIPE: Final = "train.toml"
_CHATS: Final = "chats.jsonl"
_TASKS: Final = "tasks"


@click.command("mcp", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("words", nargs=-1, required=True, metavar="-- COMMAND...", type=click.UNPROCESSED)
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, metavar="DIR", help="Where all goes.")
@click.option("--count", type=click.IntRange(min=1), default=200, show_default=True, help="How many tasks are wanted.")
@click.option("--seed", default=0, show_default=True, help="Fixes everything that is drawn.")
@click.option("-e", "--env", "variables", multiple=True, metavar="K=V", help="A variable for the server.")
@click.option("--option", "settings", multiple=True, metavar="K=V", help="An option of the environment mcp.")
@click.option("--synthesizer", default="grounded", show_default=True, metavar="NAME", help="What makes the tasks.")
@click.option("--synthesizer-option", "chosen", multiple=True, metavar="K=V", help="An option of it.")
@click.option("--teacher", metavar="NAME", help="Who has the words. Default: none is needed.")
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Units at a time.")
@click.option("--no-probe", is_flag=True, help="Do not look first what the server isolates and repeats.")
@click.pass_context
def mcp_(
    ctx: click.Context,
    words: Sequence[str],
    output: Path,
    count: int,
    seed: int,
    variables: tuple[str, ...],
    settings: tuple[str, ...],
    synthesizer: str,
    chosen: tuple[str, ...],
    teacher: str | None,
    workers: int,
    no_probe: bool,
) -> None:
    """Make tasks for the MCP server that COMMAND starts, and a recipe that trains on them.

    {workspace} in COMMAND stands for a scratch folder; tools that destroy something are called only there:

        callwright synthesize mcp -o notes -- npx -y @modelcontextprotocol/server-filesystem {workspace}

    The server is probed, its tools are explored and their dependencies proven, tasks are made and held against the
    gates. DIR then holds synthesis.toml, the folder of the synthesis with its page, chats.jsonl for supervised
    training, and train.toml, which callwright run takes. The same command goes on where it was stopped.
    """
    app = ctx.ensure_object(App)
    server = _server(words, variables, settings)
    usual = _FOR_A_SERVER if synthesizer == "grounded" else {}
    made: dict[str, Any] = {"name": synthesizer, **usual, **options.key_values(chosen, "--synthesizer-option")}
    app.registry.spec("synthesizer", synthesizer)  # a wrong name is said before a server is started
    output.mkdir(parents=True, exist_ok=True)
    if not no_probe and not (output / _TASKS).exists():
        say("probing the server")
        # It is shown and changes nothing: tasks are made in a session each, whatever it says of sharing one.
        _run(ctx, "env probe", [*(part for one in variables for part in ("-e", one)), *words])
    table: dict[str, Any] = {"synthesizer": made, "environments": [server], "count": count, "seed": seed}
    if teacher is not None:
        table["teacher"] = teacher
    _write(output / _SYNTHESIS, write_toml({"name": output.name or "server", "synthesis": table}))
    folder = output / _TASKS
    how = ["--workers", str(workers), *(["--executor", "thread"] if workers > 1 else [])]
    say("exploring the server and making tasks")
    # What the recipe starts is what was typed here, so nobody has to be asked about it again.
    _run(ctx, "synthesize", [str(output / _SYNTHESIS), "-o", str(folder), "--yes", *how])
    file = folder / "tasks.jsonl"
    splits = _splits(file)
    if not splits:
        raise UsageError(f"no task is left of {server['command']}; {folder / 'report.html'} says why")
    corpus = ["file=" + str(file), "trust=true"]
    exported = [part for one in corpus for part in ("--corpus-option", one)]
    _run(ctx, "tasks export", ["tasks", *exported, "--format", "openai", "-o", str(output / _CHATS)])
    _write(output / _RECIPE, write_toml(_recipe(output, file, list(splits))))
    click.echo(f"{sum(splits.values()):,} tasks; look at them: callwright synthesize inspect --trust {file}")
    click.echo(f"before:  callwright evaluate --recipe {output / _RECIPE}")
    click.echo(f"train:   callwright run {output / _RECIPE}")


def _server(words: Sequence[str], variables: Sequence[str], settings: Sequence[str]) -> dict[str, Any]:
    """The environment as a recipe names it. Raises :class:`callwright.UsageError` for what names no variable."""
    env: dict[str, str] = {}
    for pair in variables:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise UsageError(f"-e takes K=V, not {pair!r}")
        env[key] = value
    given = dict(options.key_values(settings, "--option"))
    if len(words) == 1 and words[0].startswith(("http://", "https://")):
        return {"name": "mcp", "url": words[0], **given}
    return {"name": "mcp", "command": list(words), **({"env": env} if env else {}), **given}


def _splits(file: Path) -> dict[str, int]:
    """How many tasks the splits of a file have, the one to train on first."""
    from callwright.walk.task_rows.reading import read_rows

    _, rows = read_rows(file)
    found = Counter(str(row["split"]) for row in rows)
    return dict(sorted(found.items(), key=lambda one: (one[0] != "train", one[0])))


def _recipe(output: Path, file: Path, splits: Sequence[str]) -> dict[str, Any]:
    """A recipe of Prove's objective on these tasks, with a policy that is small enough to try it on a CPU."""
    held_out = next((name for name in ("validation", "test", *splits[1:]) if name in splits), splits[0])
    return {
        "name": f"{output.name or 'server'}-prove",
        "description": "Prove's reward and GRPO on tasks that were made for one server, with a tiny policy. "
        'For a real one have path = "DIRECTORY" under [model] in place of tiny, and name = "tasks" under [corpus].',
        "seed": 0,
        "ir": "hermes",
        "corpus": {
            "name": "compact-tasks",
            "file": str(file.absolute()),
            "trust": True,
            "train": splits[0],
            "evaluation": held_out,
        },
        "reward": {"name": "prove", "alpha": 0.5, "beta": 0.5, "floor": 0.0},
        "algorithm": {"name": "grpo", "kl_weight": 0.01, "std_epsilon": 1e-6},
        "model": {"tiny": {"width": 64, "layers": 3, "heads": 4, "ffn": 128}},
        "trainer": {
            "name": "local",
            "steps": 60,
            "prompts": 8,
            "group": 8,
            "temperature": 1.0,
            "max_new_tokens": 160,
            "learning_rate": 3e-4,
            "warm_up": 10,
            "evaluate_every": 20,
            "warm_start": {"steps": 300, "batch": 16, "learning_rate": 3e-3, "warm_up": 50, "count": 2000},
        },
    }


def _run(ctx: click.Context, name: str, words: Sequence[str]) -> None:
    """Another command, in this process, as if it were typed; its exit status other than 0 ends this one."""
    root = ctx.find_root().command
    with root.make_context("callwright", [*name.split(), *words], obj=ctx.obj) as inner:
        root.invoke(inner)


def _write(path: Path, text: str) -> None:
    from callwright.training.run_folder import write_atomically

    write_atomically(path, text)
