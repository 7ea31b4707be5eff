"""Phrases that an environment ships: ``phrases.toml`` beside the module that makes it.

    transfer_funds = [
        "transfer {amount_cents} from account {from_account_id} to account {to_account_id}",
        "move money",
    ]

A key is a tool, a value the phrases that take the place of those made of its name and description. A phrase is an
order; one that begins with ``the``, ``a``, ``an`` or ``everything`` is a thing. ``{…}`` is a place for an argument.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final

from callwright.errors import DataError
from callwright.plugins import Registry
from callwright.tools.spec import ToolSpec
from callwright_plugins.synthesis.language.phrases import phrases_of

FILE: Final = "phrases.toml"


def shipped_phrases(registry: Registry, environment: str) -> dict[str, tuple[str, ...]]:
    """The phrases that a registered environment ships; empty where it ships none.

    Raises :class:`callwright.errors.UnknownName` for an environment that is not registered, and
    :class:`callwright.errors.DataError` for a file that cannot be read.
    """
    target = registry.spec("environment", environment).target
    module = target.partition(":")[0] if isinstance(target, str) else str(getattr(target, "__module__", ""))
    for package in (module, module.rpartition(".")[0]):
        try:
            file = resources.files(package).joinpath(FILE)
        except (ImportError, TypeError, ValueError, AttributeError):  # no package, or none with files
            continue
        if file.is_file():
            return read_phrases(file.read_text("utf-8"), f"{FILE} of {environment}")
    return {}


def phrases_in(file: Path) -> dict[str, tuple[str, ...]]:
    """The phrases of a file. Raises :class:`callwright.errors.DataError` for one that cannot be read."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file} cannot be read: {error}") from error
    return read_phrases(text, str(file))


def read_phrases(text: str, where: str) -> dict[str, tuple[str, ...]]:
    """Phrases by tool from TOML. Raises :class:`callwright.errors.DataError` for anything else."""
    try:
        stated: Mapping[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{where} is no TOML: {error}") from error
    for tool, given in stated.items():
        if not isinstance(given, list) or not given or not all(isinstance(one, str) and one.strip() for one in given):
            raise DataError(f"{where}: {tool} has a list of phrases, not {given!r:.80}")
    return {tool: tuple(given) for tool, given in stated.items()}


def check_phrases(phrases: Mapping[str, tuple[str, ...]], tools: Mapping[str, ToolSpec], where: str) -> None:
    """Raise :class:`callwright.errors.DataError` for phrases of no tool, or with a place for no parameter."""
    for tool, given in phrases.items():
        if tool not in tools:
            raise DataError(f"{where} has phrases of {tool}, which is none of the tools")
        phrases_of(tools[tool], given)
