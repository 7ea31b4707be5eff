"""Options that several commands share, and names that a shell completes.

@click.option("--corpus", type=ComponentName("corpus"), metavar="NAME")
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import wraps
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from callwright.commands.app import App
from callwright.errors import CallwrightError, UsageError
from callwright.walk.limits import TRUNCATION_POLICIES

Command = TypeVar("Command", bound=Callable[..., Any])


# Names --------------------------------------------------------------------------------------------------------------

if TYPE_CHECKING:
    _TextType = click.ParamType[str]
else:
    _TextType = click.ParamType  # which older versions of click cannot subscript


class Finite(click.FloatRange):
    """A number with a fraction, within a range if one is given. ``nan`` and ``inf`` are none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number."""
        found = float(super().convert(value, param, ctx))
        if not isfinite(found):
            self.fail(f"{value} is no finite number.", param, ctx)
        return found

    def _describe_range(self) -> str:
        # click writes the upper bound where there is no lower one, so that no bounds at all are "x<=None" in a help.
        return super()._describe_range() if (self.min, self.max) != (None, None) else ""


class _Name(_TextType):
    """A text of which some values are known. Whether there is such a thing is said by whoever looks it up."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text."""
        return str(value)

    def known(self, app: App, incomplete: str) -> Iterable[tuple[str, str]]:
        """Values, and a line about each."""
        raise NotImplementedError

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Those that go on as what was typed does. Nothing where plugins cannot be loaded: a shell shows no errors."""
        app = ctx.find_object(App)
        try:
            known = list(self.known(app or App(), incomplete))
        except (CallwrightError, OSError):
            return []
        return [CompletionItem(name, help=about) for name, about in known if name.startswith(incomplete)]


class ComponentName(_Name):
    """The name of a registered component of a kind (``"corpus"``)."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def known(self, app: App, incomplete: str) -> Iterable[tuple[str, str]]:
        """All that is registered, with the summaries."""
        for name in app.registry.names(self.kind):
            yield name, app.registry.spec(self.kind, name).summary


class PluginName(_Name):
    """The name of a plugin; with ``components``, of anything that one registers."""

    def __init__(self, *, components: bool = False) -> None:
        self.components = components

    def known(self, app: App, incomplete: str) -> Iterable[tuple[str, str]]:
        """Plugins, then components."""
        for plugin in app.registry.plugins:
            yield plugin.name, f"of {plugin.distribution or plugin.module}"
        if self.components:
            for kind, lazy in app.registry.components():
                yield lazy.name, f"{kind}: {lazy.summary}"


class RecipeName(_Name):
    """A shipped recipe, a recipe's file or, with ``runs``, the folder of a run; with ``syntheses``, of a synthesis."""

    def __init__(self, *, runs: bool = False, syntheses: bool = False) -> None:
        self.runs, self.syntheses = runs, syntheses

    def known(self, app: App, incomplete: str) -> Iterable[tuple[str, str]]:
        """Shipped names, then what lies where the typed path leads to."""
        from callwright.recipe_file import shipped_recipes, shipped_syntheses

        if "/" not in incomplete:
            for name in sorted(shipped_syntheses() if self.syntheses else shipped_recipes()):
                yield name, "a recipe that comes with Callwright"
        typed = Path(incomplete)
        folder = typed if incomplete.endswith("/") else typed.parent
        before = incomplete[: len(incomplete) - len(incomplete.rpartition("/")[2])]
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if path.suffix == ".toml":
                yield f"{before}{path.name}", "a recipe"
            elif path.is_dir() and not path.name.startswith("."):
                run = self.runs and (path / "recipe.toml").is_file()
                yield f"{before}{path.name}", "a run" if run else "a folder"


class SuiteName(_Name):
    """A suite of the package or of a plugin, or a suite's file."""

    def known(self, app: App, incomplete: str) -> Iterable[tuple[str, str]]:
        """Names, then the files that lie where the typed path leads to."""
        from callwright.measuring.suites.finding import known_suites

        if "/" not in incomplete:
            for name in known_suites(app.registry):
                yield name, "a suite of benchmarks"
        typed = Path(incomplete)
        folder = typed if incomplete.endswith("/") else typed.parent
        before = incomplete[: len(incomplete) - len(incomplete.rpartition("/")[2])]
        for path in sorted(folder.glob("*.toml")) if folder.is_dir() else ():
            yield f"{before}{path.name}", "a file"


# Options ------------------------------------------------------------------------------------------------------------


def key_values(pairs: Sequence[str], option: str) -> dict[str, Any]:
    """``("p=0.9", "ir=json")`` as a table. Values are TOML; what is not TOML is a string.

    Raises :class:`click.UsageError` for a pair without ``=``.
    """
    found = {}
    for pair in pairs:
        key, sign, text = pair.partition("=")
        if not sign or not key.strip():
            raise click.UsageError(f"{option} {pair}: expected KEY=VALUE")
        found[key.strip()] = _value(text)
    return found


def check_words(ctx: click.Context, words: Sequence[str]) -> None:
    """The words of a program that a command starts, whose options are not the command's: none begins with a dash.

    Raises :class:`click.NoSuchOption`, with the nearest option, for one that does: it is an option that is misspelt.
    """
    if words and words[0].startswith("-"):
        name = words[0].partition("=")[0]
        known = [option for param in ctx.command.params for option in param.opts if option.startswith("--")]
        raise click.NoSuchOption(name, possibilities=get_close_matches(name, known), ctx=ctx)


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def stack(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator, in the order in which help lists them."""

    def apply(function: Command) -> Command:
        for option in reversed(options):
            function = option(function)
        return function

    return apply


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
accept_changes_option = click.option(
    "--accept-changes",
    is_flag=True,
    help="Go on though the corpus, plugins, versions or rows are not those of the folder; its ledger says so.",
)
ir_option = click.option(
    "--ir",
    type=ComponentName("parser"),
    default="json",
    show_default=True,
    metavar="NAME",
    help="The form of the completions.",
)


def override_options(command: Command) -> Command:
    """``--set`` and ``--unset``; the command gets both as ``overrides``, as :func:`load_recipe` takes them.

    Keys are left out first, so that they can be set anew whatever the order of the options.
    """

    @wraps(command)
    def with_both(*given: Any, overrides: tuple[str, ...], unset: tuple[str, ...], **others: Any) -> Any:
        from callwright.recipe_file.overriding import LEAVE_OUT

        for key in unset:
            if "=" in key or not all(part.strip() for part in key.split(".")):
                raise click.UsageError(f"--unset {key}: expected a key alone, such as trainer.warm_start")
        return command(*given, overrides=(*(f"{LEAVE_OUT}{key}" for key in unset), *overrides), **others)

    sets = click.option(
        "--set", "overrides", multiple=True, metavar="A.B=C", help="Override a value of the recipe. May be repeated."
    )
    unsets = click.option(
        "--unset", multiple=True, metavar="A.B", help="Leave a key of the recipe out. May be repeated."
    )
    made: Any = sets(unsets(with_both))
    return made  # type: ignore[no-any-return]


reward_option = click.option(
    "--recipe",
    "reward",
    type=ComponentName("reward recipe"),
    default="tier",
    show_default=True,
    metavar="NAME",
    help="The reward recipe.",
)
recipe_settings = click.option(
    "--recipe-option", "recipe_options", multiple=True, metavar="K=V", help="An option of the recipe. May be repeated."
)
truncation_options = stack(
    click.option(
        "--truncated",
        type=click.Choice(TRUNCATION_POLICIES),
        help="What a completion earns whose row says that it was cut off. Default: the reward's own choice.",
    ),
    click.option(
        "--floor",
        type=Finite(),
        metavar="TOTAL",
        help="The most that it earns under 'floor'. Default: the reward's own.",
    ),
)
data_option = click.option("--data", metavar="DIR", help="Where the corpus finds its files: its option 'data'.")
corpus_settings = click.option(
    "--corpus-option", "corpus_options", multiple=True, metavar="K=V", help="An option of the corpus. May be repeated."
)
overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Start OUT anew, whatever it holds. Without it, OUT is gone on with."
)
replace_option = click.option("--overwrite", is_flag=True, help="Replace the file that is there already.")


def refuse_stdout(*files: Path) -> None:
    """Refuse ``-`` where what is written is a file. Raises :class:`callwright.UsageError`."""
    if any(str(file) == "-" for file in files):
        raise UsageError("what is written here is a file, not stdout: name one in place of '-'")


def refuse_existing(*files: Path, overwrite: bool) -> None:
    """Refuse to replace files that nobody asked to be replaced; devices and pipes are written to.

    Raises :class:`callwright.UsageError`, also for ``-``, which would become a file of that name.
    """
    refuse_stdout(*files)
    for file in () if overwrite else files:
        if file.is_file() and not file.is_relative_to("/dev"):
            raise UsageError(f"{file} is there already: name another file, or replace it with --overwrite")


def refuse_inputs(output: str | Path | None, *inputs: str | Path | None) -> None:
    """Refuse to write over a file that the command reads, whatever it was told to overwrite.

    Raises :class:`callwright.UsageError`.
    """
    for one in inputs:
        if output is not None and one is not None and is_same_file(one, output):
            raise UsageError(f"{output} is what this command reads: write to another file")


def is_same_file(source: str | Path, target: str | Path) -> bool:
    """Whether two names are one file, which would be emptied before it is read."""
    try:
        return str(source) != "-" and str(target) != "-" and Path(source).samefile(target)
    except OSError:
        return False


def refuse_what_is_no_page(page: Path | None) -> None:
    """Refuse to replace a file by a page of HTML, unless it is one: pages are written again and again.

    Raises :class:`callwright.UsageError`.
    """
    if page is not None and page.is_file() and not page.is_relative_to("/dev") and page.stat().st_size:
        with page.open("rb") as begun:
            if not begun.read(64).lstrip().lower().startswith((b"<!doctype html", b"<html")):
                raise UsageError(f"{page} is there already, and it is no page of HTML: write to another file")


seed_option = click.option("--seed", default=0, show_default=True, help="Fixes everything that is drawn.")


log_options = stack(
    click.option(
        "--format",
        "log_format",
        metavar="NAME",
        help="IN is a log of this format (openai, otel, atif …; 'auto': recognise it).",
    ),
    click.option("--tools", metavar="FILE.json", help="The tools that the agents of the log were offered."),
    click.option("--truths", metavar="FILE.jsonl", help='What would have been right: rows {"id", "truth"}.'),
    click.option(
        "--format-option", "format_options", metavar="K=V", multiple=True, help="An option of the log's format."
    ),
)
executor_options = stack(
    click.option(
        "--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Work on this many at once."
    ),
    click.option(
        "--executor",
        type=click.Choice(["thread", "process", "ray"]),
        default="process",
        show_default=True,
        help="What more than one worker is.",
    ),
)


time_limit_option = click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="For each thing asked of a session. Default: 30 where code of plugins runs; 'inf' is no limit.",
)


isolation_option = click.option(
    "--isolation",
    type=click.Choice(["auto", "process", "none"]),
    help="Where sessions of tools live: in processes that are killed where they go over their limits, or here (none). "
    "Default: auto, in processes where code of plugins runs that did not come with this package.",
)


def stuck_after_option(seconds: float) -> Callable[[Command], Command]:
    """How long a worker may take over one chunk."""
    return click.option(
        "--stuck-after",
        type=Finite(min=0, min_open=True),
        default=seconds,
        show_default=True,
        metavar="SECONDS",
        help="With several workers: replace one that has no result for its part of the work after this long. The time "
        "begins when the worker is ready.",
    )


def executor_name(executor: str, workers: int) -> str:
    """One worker needs no executor but this thread; Ray is Ray even with one, since its workers are elsewhere."""
    return executor if workers > 1 or executor == "ray" else "serial"


def truncation_keys(truncated: str | None, floor: float | None) -> dict[str, Any]:
    """The options of a reward from ``--truncated`` and ``--floor``."""
    given = {"truncated": truncated, "floor": floor}
    return {key: value for key, value in given.items() if value is not None}


def reward_keys(pairs: Sequence[str], truncated: str | None, floor: float | None) -> dict[str, Any]:
    """The options of a reward from ``--recipe-option``, ``--truncated`` and ``--floor``."""
    return {**key_values(pairs, "--recipe-option"), **truncation_keys(truncated, floor)}


def corpus_keys(data: str | None, pairs: Sequence[str]) -> dict[str, Any]:
    """The options of a corpus from ``--data`` and ``--corpus-option``."""
    return {**({"data": data} if data is not None else {}), **key_values(pairs, "--corpus-option")}


yes_option = click.option(
    "--yes", is_flag=True, help="Allow what the recipe starts, and the variables that it sends, without being asked."
)
