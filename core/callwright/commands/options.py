"""Options that several commands share."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from callwright.walk.limits import TRUNCATION_POLICIES

Command = TypeVar("Command", bound=Callable[..., Any])


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
ir_option = click.option("--ir", default="json", show_default=True, metavar="NAME", help="The form of the completions.")
reward_option = click.option(
    "--recipe", "reward", default="tier", show_default=True, metavar="NAME", help="The reward recipe."
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
        "--floor", type=float, metavar="TOTAL", help="The most that it earns under 'floor'. Default: the reward's own."
    ),
)
data_option = click.option("--data", metavar="DIR", help="Where the corpus finds its files: its option 'data'.")
corpus_settings = click.option(
    "--corpus-option", "corpus_options", multiple=True, metavar="K=V", help="An option of the corpus. May be repeated."
)
overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Start OUT anew, whatever it holds. Without it, OUT is gone on with."
)
seed_option = click.option("--seed", default=0, show_default=True, help="Fixes everything that is drawn.")


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
        type=click.FloatRange(min=0, min_open=True),
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
