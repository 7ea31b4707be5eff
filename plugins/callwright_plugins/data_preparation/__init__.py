"""Data preparation: published tool-use data of the user's own as ToolRL's rows, and as tasks that execute."""

from __future__ import annotations

from collections.abc import Iterable

from callwright.hookspecs import hookimpl
from callwright.plugins import Lazy


@hookimpl
def callwright_commands() -> Iterable[Lazy]:
    """``callwright prepare``."""
    yield Lazy(
        "prepare",
        "callwright_plugins.data_preparation.command:prepare",
        "make training rows and tasks of published data sets, and count what does not fit",
    )


@hookimpl
def callwright_environments() -> Iterable[Lazy]:
    """Tools that are known by their schemas only."""
    yield Lazy(
        "schema-echo",
        "callwright_plugins.data_preparation.schema_echo.environment:SchemaEcho",
        "tools known by their schemas, which return their resolved arguments (schemas=FILE)",
        takes="callwright_plugins.data_preparation.schema_echo.options:SchemaEchoOptions",
    )


@hookimpl
def callwright_corpora() -> Iterable[Lazy]:
    """ToolACE and xLAM as TIER trains on them."""
    yield Lazy(
        "schema-echo",
        "callwright_plugins.data_preparation.schema_echo.corpus:SchemaEchoCorpus",
        "queries of ToolACE and xLAM over tools that echo their arguments (toolace=FILE, xlam=FILE)",
        takes="callwright_plugins.data_preparation.schema_echo.options:SchemaEchoCorpusOptions",
    )
