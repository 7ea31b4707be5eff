"""Searches: what answers a query with a text. Serper (Google), a file of recorded results, or anybody's function."""

from __future__ import annotations

import importlib
import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

from callwright.commands.jsonl import BadRow, RowFile
from callwright.errors import DataError, InfrastructureFailure, UsageError

SERPER: Final = "https://google.serper.dev/search"
#: Results that a model is shown, as in the released script.
SHOWN: Final = 5
#: Results that Serper is asked for, and seconds that it is waited for.
_ASKED, _PATIENCE = 15, 60.0


@runtime_checkable
class Search(Protocol):
    """A component that answers queries."""

    @property
    def name(self) -> str:
        """What results say of it."""

    def find(self, query: str) -> str:
        """What a model reads. Raises :class:`callwright.InfrastructureFailure` where nothing was found out."""


class NoSearch:
    """Nobody was named: an attempt that searches is masked."""

    name = "nobody"

    def find(self, query: str) -> str:
        """Raises :class:`callwright.InfrastructureFailure`."""
        raise InfrastructureFailure(
            "no search is set: give one (--benchmark-option search=serper, search=recorded or search=MODULE:NAME)"
        )


class Serper:
    """Google's results by Serper, the first five with title and snippet, before them its answer box.

    The key is in the environment variable ``key_env``. Raises :class:`callwright.UsageError` where it is not set.
    """

    name = "serper"

    def __init__(self, key_env: str = "SERPER_API_KEY", url: str = SERPER) -> None:
        self._key_env, self._url = key_env, url
        if not os.environ.get(key_env):
            raise UsageError(f"the search serper needs a key: set the environment variable {key_env}")

    def find(self, query: str) -> str:
        """Ask once. Raises :class:`callwright.InfrastructureFailure` where there is no answer."""
        body = json.dumps({"q": query, "num": _ASKED}).encode()
        headers = {"X-API-KEY": os.environ.get(self._key_env, ""), "Content-Type": "application/json"}
        request = urllib.request.Request(self._url, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=_PATIENCE) as reply:
                found = json.loads(reply.read())
        except (OSError, ValueError, urllib.error.URLError) as error:
            raise InfrastructureFailure(f"serper gave no answer: {error}") from error
        if not isinstance(found, Mapping):
            raise InfrastructureFailure("serper gave what is no object")
        return shown(found)


def shown(found: Mapping[str, Any]) -> str:
    """The text of an answer of Serper: numbered titles, each with an answer or a snippet."""
    entries: list[str] = []
    box = found.get("answerBox")
    if isinstance(box, Mapping) and "title" in box:
        for member in ("answer", "snippet"):
            if member in box:
                entries.append(f"{box['title']}\n- {member.title()}: {box[member]}")
                break
    organic = found.get("organic")
    for one in organic if isinstance(organic, list) else ():
        if isinstance(one, Mapping) and "title" in one and "snippet" in one:
            entries.append(f"{one['title']}\n- Snippet: {one['snippet']}")
    return "\n".join(f"{number}. {entry}" for number, entry in enumerate(entries[:SHOWN], 1))


class Recorded:
    """Results from a file of rows ``{"query", "result"}``, plain or compressed; case and spaces do not count.

    Raises :class:`callwright.errors.DataError` for a file that holds anything else.
    """

    name = "recorded"

    def __init__(self, file: str | Path) -> None:
        self._results: dict[str, str] = {}
        with RowFile(str(file)) as rows:
            for row in rows:
                where = f"{rows.name}:{rows.number}"
                if isinstance(row, BadRow):
                    raise DataError(f"{where}: {row}")
                query, result = row.get("query"), row.get("result")
                if not isinstance(query, str) or not isinstance(result, str):
                    raise DataError(f"{where}: a recorded search is {{'query': text, 'result': text}}")
                self._results[_key(query)] = result

    def find(self, query: str) -> str:
        """What was recorded. Raises :class:`callwright.InfrastructureFailure` for another query."""
        found = self._results.get(_key(query))
        if found is None:
            raise InfrastructureFailure(f"nobody recorded a search for {query!r:.100}")
        return found


def _key(query: str) -> str:
    return " ".join(query.casefold().split())


def made_search(
    search: str | Search | None, file: str | Path | None = None, url: str | None = None, key_env: str | None = None
) -> Search:
    """The search that options name: ``serper``, ``recorded`` (with ``file``) or ``MODULE:NAME``, which is called.

    Raises :class:`callwright.UsageError` for anything else.
    """
    if search is None:
        return NoSearch()
    if not isinstance(search, str):
        return search
    if search == "serper":
        return Serper(key_env or "SERPER_API_KEY", url or SERPER)
    if search == "recorded":
        if file is None:
            raise UsageError("recorded searches need their file (--benchmark-option search_file=FILE)")
        return Recorded(file)
    module, sign, name = search.partition(":")
    if not sign:
        raise UsageError(f"a search is 'serper', 'recorded' or 'MODULE:NAME', not {search!r}")
    try:
        made = getattr(importlib.import_module(module), name)()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise UsageError(f"the search {search!r} cannot be made: {error}") from error
    if not isinstance(made, Search):
        raise UsageError(f"the search {search!r} is none: it needs a name and a method find(query)")
    return made
