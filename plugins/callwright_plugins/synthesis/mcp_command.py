"""``callwright synthesize mcp``: from the command of a server to tasks, chats and a recipe to train with."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from attrs import frozen

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.safe_text import say
from callwright.errors import UsageError
from callwright.recipe_file.toml_text import write_toml

_SYNTHESIS: Final = "synthesis.toml"
#: Knobs for one server with a few tools: none of them is everywhere.
_FOR_A_SERVER: Final[Mapping[str, float]] = {"most_of_one": 0.27}
#: What is held out, so that before and after are measured on chains that nobody trains on; fewer tasks are to look at.
_HELD_OUT: Final[Mapping[str, Any]] = {"by": "chain", "share": 0.15, "name": "validation"}
_ENOUGH: Final = 8
_RECIPE: Final = "train.toml"
_CHATS: Final = "chats.jsonl"
_TASKS: Final = "tasks"
_KNOWLEDGE: Final = "knowledge"
#: A placeholder for a directory, as in the recipes that ship.
_YOURS: Final = "models/YOURS"


@click.command("mcp", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("words", nargs=-1, required=True, metavar="-- COMMAND...", type=click.UNPROCESSED)
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, metavar="DIR", help="Where all goes.")
@click.option("--count", type=click.IntRange(min=1), default=200, show_default=True, help="How many tasks are wanted.")
@click.option("--seed", default=0, show_default=True, help="Fixes everything that is drawn.")
@click.option("-e", "--env", "variables", multiple=True, metavar="K=V", help="A variable for the server.")
@click.option("--option", "settings", multiple=True, metavar="K=V", help="An option of the environment mcp.")
@click.option("--synthesizer", default="grounded", show_default=True, metavar="NAME", help="What makes the tasks.")
@click.option("--synthesizer-option", "chosen", multiple=True, metavar="K=V", help="An option of it.")
@click.option(
    "--allow-destructive",
    is_flag=True,
    help="Call tools that may destroy something, though nothing says that it is gone with the session.",
)
@click.option("--teacher", metavar="NAME", help="Who has the words. Default: none is needed.")
@click.option("--teacher-option", "teacher_options", multiple=True, metavar="K=V", help="An option of the teacher.")
@click.option(
    "--max-cost",
    type=options.Finite(min=0, min_open=True),
    metavar="COST",
    help="Stop before the teacher costs more, over all starts, by its own prices.",
)
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
    allow_destructive: bool,
    teacher: str | None,
    teacher_options: tuple[str, ...],
    max_cost: float | None,
    workers: int,
    no_probe: bool,
) -> None:
    """Make tasks for the MCP server that COMMAND starts, and a recipe that trains on them.

    {workspace} in COMMAND stands for a scratch folder; tools that destroy something are called only there:

        callwright synthesize mcp -o notes -- npx -y @modelcontextprotocol/server-filesystem {workspace}

    The server is probed, its tools are explored and their dependencies proven, tasks are made and held against the
    gates; some are held out. DIR then holds synthesis.toml, what was found out about the server, the folder of the
    synthesis with its page, chats.jsonl for supervised training, and train.toml, which callwright run takes. The same
    command goes on where it was stopped.
    """
    options.check_words(ctx, words)
    app = ctx.ensure_object(App)
    server = _server(words, variables, settings)
    usual = _usual(output, count) if synthesizer == "grounded" else {}
    made: dict[str, Any] = {"name": synthesizer, **usual, **options.key_values(chosen, "--synthesizer-option")}
    if allow_destructive:
        made["allow_destructive"] = True
    app.registry.spec("synthesizer", synthesizer)  # a wrong name is said before a server is started
    if teacher is None and (teacher_options or max_cost is not None):
        raise UsageError("--teacher-option and --max-cost are for a --teacher")
    if teacher is not None:
        app.registry.spec("teacher", teacher)
    if not no_probe and not (output / _TASKS).exists():
        if synthesizer == "grounded" and made.get("allow_destructive") is not True:
            _need_tools(app, server)
        say("probing the server")
        # It is shown and changes nothing: tasks are made in a session each, whatever it says of sharing one.
        _run(ctx, "env probe", [*(part for one in variables for part in ("-e", one)), *words])
    output.mkdir(parents=True, exist_ok=True)
    table: dict[str, Any] = {"synthesizer": made, "environments": [server], "count": count, "seed": seed}
    if teacher is not None:
        table["teacher"] = {"name": teacher, **options.key_values(teacher_options, "--teacher-option")}
    _write(output / _SYNTHESIS, write_toml({"name": output.name or "server", "synthesis": table}))
    folder = output / _TASKS
    how = ["--workers", str(workers), *(["--executor", "thread"] if workers > 1 else [])]
    how += [] if max_cost is None else ["--max-cost", str(max_cost)]
    if _starts_anew(server):
        say(
            "sessions start the server anew; if all that it keeps is in {workspace}, --option reset=workspace takes "
            "the processes that are there, and a fraction of the time"
        )
    say("exploring the server and making tasks")
    app.typed.add((output / _SYNTHESIS).absolute())  # nobody has to be asked about it again
    _run(ctx, "synthesize", [str(output / _SYNTHESIS), "-o", str(folder), *how])
    file = folder / "tasks.jsonl"
    left = _Left.of(file)
    if not left.splits:
        raise UsageError(f"no task is left of {server['command']}; {folder / 'report.html'} says why")
    corpus = ["file=" + str(file), "trust=true"]
    exported = [part for one in corpus for part in ("--corpus-option", one)]
    _run(ctx, "tasks export", ["tasks", *exported, "--format", "openai", "-o", str(output / _CHATS), "--overwrite"])
    _write(output / _RECIPE, write_toml(_recipe(output, file, left)))
    held = sum(left.splits.values()) - left.splits[left.learnt]
    click.echo(f"{sum(left.splits.values()):,} tasks, {held:,} of them held out")
    click.echo(f"look at them: {shlex.join(['callwright', 'synthesize', 'inspect', '--trust', str(file)])}")
    train = shlex.join(["callwright", "run", str(output / _RECIPE)])
    if left.spoken:
        click.echo(f"train, with a table of before and after: {train}")
    else:  # demonstrations are conversations
        click.echo("no reference is stated turn by turn, so no model can be made from scratch for them; with yours:")
        click.echo(f"train, with a table of before and after: {train} --set model=DIRECTORY")


@frozen
class _Left:
    """What a file of tasks holds: how many each split has, and whether references are conversations (``gold``)."""

    splits: Mapping[str, int]
    spoken: bool

    @classmethod
    def of(cls, file: Path) -> _Left:
        from callwright.walk.task_rows.reading import read_rows

        _, rows = read_rows(file)
        splits: Counter[str] = Counter()
        spoken = False
        for row in rows:
            splits[str(row["split"])] += 1
            spoken = spoken or bool((row.get("facts") or {}).get("gold"))
        return cls(splits, spoken)

    @property
    def learnt(self) -> str:
        """The split to train on."""
        return "train" if "train" in self.splits else min(self.splits)

    @property
    def held_out(self) -> str:
        """The split to evaluate on; that to train on where there is no other."""
        others = sorted(self.splits.keys() - {self.learnt})
        return next((name for name in ("validation", "test", *others) if name in others), self.learnt)


def _usual(output: Path, count: int) -> dict[str, Any]:
    """Options of ``grounded`` for a server, where none are said."""
    held_out = {"split": dict(_HELD_OUT)} if count >= _ENOUGH else {}
    return {**_FOR_A_SERVER, "cache": str(output / _KNOWLEDGE), **held_out}


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


def _starts_anew(server: Mapping[str, Any]) -> bool:
    """Whether a server with a folder of its own is started for each session, and nothing else was said."""
    has_folder = any("{workspace}" in str(server.get(name)) for name in ("command", "env", "cwd"))
    return has_folder and not {"reset", "isolation"} & server.keys()


def _need_tools(app: App, server: Mapping[str, Any]) -> None:
    """Raise :class:`callwright.UsageError` where no tool of a server may be called, which is known once they are
    listed: probing takes half a minute. Of those that may be, say which change what nobody throws away.
    """
    from callwright_plugins.synthesis.exploration.explored import WAYS_OUT
    from callwright_plugins.synthesis.exploration.states import allowed_tools, may_destroy

    environment = app.registry.create("environment", server["name"], **{k: v for k, v in server.items() if k != "name"})
    allowed, forbidden = allowed_tools(environment, allow_destructive=False)
    if forbidden and not allowed:
        named = ", ".join(forbidden[:8]) + (", …" if len(forbidden) > 8 else "")
        raise UsageError(
            f"none of the {len(forbidden)} tools of the server may be called ({named}): they may destroy something, "
            f"and nothing says that this is gone with the session. {WAYS_OUT[0].upper()}{WAYS_OUT[1:]}"
        )
    writing = [] if may_destroy(environment) else [name for name in allowed if not environment.tools[name].read_only]
    if writing:
        named = ", ".join(writing[:8]) + (", …" if len(writing) > 8 else "")
        say(
            f"{named}: called, since they declare that they destroy nothing; but they change what the server keeps, "
            "and nothing says that this is gone with the session. {workspace} in its command is a scratch folder, "
            "--option 'hide=[…]' leaves tools out"
        )


def _recipe(output: Path, file: Path, left: _Left) -> dict[str, Any]:
    """A recipe of Prove's objective on these tasks. Where references are conversations the policy is made from scratch
    and small enough for a CPU; else it is to be somebody's.
    """
    of_yours = "For a model of yours: --set corpus.name=tasks --set model=DIRECTORY."
    corpus = {"file": str(file.absolute()), "trust": True, "train": left.learnt, "evaluation": left.held_out}
    warm_start = {"steps": 300, "batch": 16, "learning_rate": 3e-3, "warm_up": 50, "count": 2000}
    return {
        "name": f"{output.name or 'server'}-prove",
        "description": "Prove's reward and GRPO on tasks that were made for one server"
        + (f", with a tiny policy. {of_yours}" if left.spoken else "."),
        "seed": 0,
        "ir": "hermes",
        "corpus": {"name": "compact-tasks" if left.spoken else "tasks", **corpus},
        "reward": {"name": "prove", "alpha": 0.5, "beta": 0.5, "floor": 0.0},
        "algorithm": {"name": "grpo", "kl_weight": 0.01, "std_epsilon": 1e-6},
        "model": {"tiny": {"width": 64, "layers": 3, "heads": 4, "ffn": 128}} if left.spoken else {"path": _YOURS},
        "trainer": {
            "name": "local",
            "steps": 60,
            "prompts": 8,
            "group": 8,
            "temperature": 1.0,
            "max_new_tokens": 160,
            "learning_rate": 3e-4 if left.spoken else 1e-6,
            "warm_up": 10,
            "evaluate_every": 20,
            **({"warm_start": warm_start} if left.spoken else {}),
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
