"""Knowledge: what an environment can do (explored) and what needs what (the graph), found once and kept.

Exploring and proving take seconds to minutes; what they come to hangs on the tools alone. So it is kept in a folder
under a name made of the schema hash and of what was asked for, and used for as many seeds and tasks as are wanted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from attrs import frozen

import callwright
from callwright.digests import digest_of
from callwright.environments.protocol import Environment, OutOfProcess, declares
from callwright.errors import DataError, UsageError
from callwright.plugins import Registry
from callwright.training.ledger.ingredients import plugin_digests
from callwright.training.reporter import SILENT, Reporter
from callwright_plugins.synthesis.exploration.explored import Explored, explore, schema_hash
from callwright_plugins.synthesis.exploration.tape import OtherTape, Tape
from callwright_plugins.synthesis.graph.building import build
from callwright_plugins.synthesis.graph.edges import Graph
from callwright_plugins.synthesis.settings import write_text

FORMAT: Final = "callwright-knowledge-1"
#: Calls of a short exploration.
BRIEFLY: Final = 600
_briefly: dict[tuple[str, str], Knowledge] = {}


@frozen
class Knowledge:
    """What was found out about the tools of one environment: calls that work and fail, and the proven edges.

    ``explored`` is what :meth:`Explored.as_json` tells, without the worlds of the process that found it.
    """

    explored: Explored
    graph: Graph

    @property
    def environment(self) -> str:
        """The name of the environment."""
        return self.explored.environment

    def to_json(self) -> dict[str, Any]:
        """As an object of JSON."""
        return {"format": FORMAT, "explored": self.explored.as_json(), "graph": self.graph.as_json()}

    @classmethod
    def from_json(cls, stated: Any) -> Knowledge:
        """What :meth:`to_json` wrote. Raises :class:`callwright.errors.DataError`."""
        match stated:
            case {"format": str(found), "explored": dict(explored), "graph": dict(graph)} if found == FORMAT:
                return cls(Explored.from_json(explored), Graph.from_json(graph))
        raise DataError(f"this is no knowledge of the format {FORMAT}")


def cache_folder() -> Path:
    """Where knowledge is kept unless somebody says otherwise: a folder of the user's cache (``$XDG_CACHE_HOME``)."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if named else Path.home() / ".cache") / "callwright" / "knowledge"


def known(
    environment: Environment,
    *,
    registry: Registry,
    scenario: str = "",
    seeds: Sequence[int] = (0, 1),
    calls: int | None = None,
    cache: Path | None = None,
    allow_destructive: bool = False,
    reporter: Reporter = SILENT,
) -> Knowledge:
    """The knowledge of an environment: from ``cache`` where it is there, else found out and kept there.

    ``calls`` is the budget of exploring for each seed. What is kept is taken for the same tools (their schema hash) and
    arguments; a file that cannot be read is made anew. What the calls of exploring a server came to is kept there as
    soon as all are made, so that whoever is stopped while it is proven what needs what makes none of them again.
    ``cache`` is a folder, ``None`` keeps nothing. ``registry`` tells which build of the environment this is: what
    another version or source of its plugin came to is not taken.

    Raises :class:`callwright.UsageError` for less than two seeds, since information is proven in two worlds, and what
    exploring raises.
    """
    if len(set(seeds)) < 2:
        raise UsageError("information is proven in two worlds, so name two seeds or more")
    schema = schema_hash(environment.tools)
    asked = _asked(scenario, seeds, calls, allow_destructive)
    path = _path(cache, environment, schema, asked, registry)
    if path is not None:
        kept = _kept(path, environment.name, schema)
        if kept is not None:
            return kept

    def explored(tape: Tape | None) -> Explored:
        return explore(
            environment,
            scenario=scenario,
            seeds=seeds,
            calls=calls,
            allow_destructive=allow_destructive,
            reporter=reporter,
            tape=tape,
        )

    # In this process calls are cheap, and what takes time is what is learnt of them.
    keeps = path is not None and declares(environment, OutOfProcess)
    found = _explored_once(path, explored) if path is not None and keeps else explored(None)
    graph, _ = build(environment, found, settings=asked, reporter=reporter)
    made = _written(path, Knowledge(found, graph))
    if path is not None and keeps:
        _tape_of(path).unlink(missing_ok=True)
    return made


def already_known(
    environment: Environment,
    *,
    registry: Registry,
    cache: Path | None,
    scenario: str = "",
    seeds: Sequence[int] = (0, 1),
    calls: int | None = None,
    allow_destructive: bool = False,
) -> Knowledge | None:
    """What :func:`known` would take from ``cache``; ``None`` where it would have to find it out."""
    schema = schema_hash(environment.tools)
    path = _path(cache, environment, schema, _asked(scenario, seeds, calls, allow_destructive), registry)
    return None if path is None else _kept(path, environment.name, schema)


def _asked(scenario: str, seeds: Sequence[int], calls: int | None, allow_destructive: bool) -> dict[str, Any]:
    return {"scenario": scenario, "seeds": list(seeds), "asked": calls, "destructive": allow_destructive}


def briefly_known(environment: Environment, *, registry: Registry, cache: Path | None = None) -> Knowledge:
    """What a short exploration of one world finds out, without what needs what: for requests of other environments,
    whose arguments are to mean something there. Found once in a process, and kept in ``cache`` as by :func:`known`.
    """
    schema = schema_hash(environment.tools)
    key = environment.name, schema
    if key not in _briefly:
        path = _path(cache, environment, schema, {"briefly": BRIEFLY}, registry)
        found = _kept(path, environment.name, schema) if path is not None else None
        if found is None:
            explored = explore(environment, seeds=(0,), calls=BRIEFLY)
            found = _written(path, Knowledge(explored, Graph(environment.name, schema, explored.tools, ())))
        _briefly[key] = found
    return _briefly[key]


def _path(
    cache: Path | None, environment: Environment, schema: str, asked: dict[str, Any], registry: Registry
) -> Path | None:
    if cache is None:
        return None
    key = digest_of([FORMAT, environment.name, schema, asked, _build(environment, registry)])[:24]
    return cache / f"{_plain(environment.name)}-{key}.json"


def _explored_once(path: Path, explored: Callable[[Tape | None], Explored]) -> Explored:
    """What exploring comes to, by the tape of an earlier start where there is one of the same calls."""
    kept = _tape_of(path)
    told = Tape.read(kept)
    if told is not None:
        with suppress(OtherTape):
            return explored(told)
    tape = Tape()
    found = explored(tape)
    kept.parent.mkdir(parents=True, exist_ok=True)
    draft = kept.with_name(f"{kept.name}.{os.getpid()}")
    if tape.write(draft):
        draft.replace(kept)
    return found


def _tape_of(path: Path) -> Path:
    """Where exploring is kept until its knowledge is."""
    return path.with_name(f"{path.name}.tape")


def _written(path: Path | None, made: Knowledge) -> Knowledge:
    """Read back from JSON, so that a first run knows exactly what every later one does; and kept, where it is to be."""
    found = Knowledge.from_json(json.loads(json.dumps(made.to_json())))
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Whoever finds out the same at the same time has a draft of its own: the last one stays, and each is whole.
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        write_text(draft, json.dumps(found.to_json(), ensure_ascii=False) + "\n")
        draft.replace(path)
    return found


def _kept(path: Path, name: str, schema: str) -> Knowledge | None:
    try:
        found = Knowledge.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError, DataError):
        return None
    return found if found.environment == name and found.explored.schema == schema else None


def _build(environment: Environment, registry: Registry) -> list[str]:
    """Which build of an environment this is: the versions of the plugins that make it, as far as they are known, and
    the digests of their sources where no version stands for them."""
    found = [callwright.__version__]
    for part in environment.name.split("+"):
        if registry.knows("environment", part):
            plugin = registry.plugin(registry.spec("environment", part).plugin)
            source = plugin_digests(registry, [plugin.name])[plugin.name].get("source")
            found.append(" ".join([part, plugin.name, plugin.version, *([source] if source else [])]))
    return found


def _plain(name: str) -> str:
    return "".join(one if one.isalnum() or one in "_-" else "-" for one in name)[:60]
