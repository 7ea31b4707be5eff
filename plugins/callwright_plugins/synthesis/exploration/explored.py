"""What exploring came to: for each tool calls that execute and how it fails, and the values that were met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import field, frozen

from callwright.digests import digest_of
from callwright.environments.protocol import Environment, OutOfProcess, declares
from callwright.errors import DataError, UsageError
from callwright.tools.spec import ToolSpec
from callwright.training.reporter import SILENT, Reporter
from callwright_plugins.synthesis.exploration.explorer import Explorer, World
from callwright_plugins.synthesis.exploration.states import allowed_tools
from callwright_plugins.synthesis.exploration.tape import Tape
from callwright_plugins.synthesis.exploration.values import value_of
from callwright_plugins.synthesis.exploration.witness import Witness

#: Calls of each seed for each tool: in this process, and of a server, where a state is reached by calls again.
CALLS_A_TOOL: Final = 600
CALLS_ELSEWHERE: Final = 60
_WITNESSES: Final = 5
_EXAMPLES: Final = 5


@frozen
class Values:
    """The values of one place.

    ``origin`` is ``result``, ``argument``, ``knowledge`` or ``failure``; ``owner`` whose they are; ``path`` where.
    """

    origin: str
    owner: str
    path: str
    types: tuple[str, ...]
    count: int
    examples: tuple[Any, ...]

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "origin": self.origin,
            "owner": self.owner,
            "path": self.path,
            "types": list(self.types),
            "count": self.count,
            "examples": list(self.examples),
        }

    @classmethod
    def from_json(cls, row: Any) -> Values:
        """What :meth:`as_json` wrote. Raises :class:`callwright.errors.DataError`."""
        match row:
            case {
                "origin": str(origin),
                "owner": str(owner),
                "path": str(path),
                "types": list(types),
                "count": int(count),
                "examples": list(examples),
            }:
                return cls(origin, owner, path, tuple(types), count, tuple(examples))
        raise DataError(f"no values of a place: {row!r:.80}")


@frozen
class Explored:
    """What was found in the worlds of one environment.

    ``witnesses`` are paths by tool, the shortest first; ``failures`` the shortest path to each failure by tool and
    code; ``missing`` the tools that no call executed, ``forbidden`` those that were not called because they destroy.
    ``repairs`` are, by failure code, the tools after which a call executed that had failed so: how often.
    """

    environment: str
    schema: str
    scenario: str
    seeds: tuple[int, ...]
    calls: int
    states: int
    tools: tuple[str, ...]
    witnesses: Mapping[str, tuple[Witness, ...]]
    failures: Mapping[str, Mapping[str, Witness]]
    repairs: Mapping[str, Mapping[str, int]]
    values: tuple[Values, ...]
    missing: tuple[str, ...]
    forbidden: tuple[str, ...]
    #: What a graph is built from; lives in this process alone.
    worlds: tuple[World, ...] = field(default=(), eq=False, repr=False)
    explorer: Explorer | None = field(default=None, eq=False, repr=False)

    @property
    def untold(self) -> tuple[str, ...]:
        """Tools that were called and never executed or found anything: most often nothing tells what they take."""
        return tuple(
            tool
            for tool in self.tools
            if tool not in self.forbidden and all(one.kind == "empty" for one in self.witnesses.get(tool, ()))
        )

    def as_json(self) -> dict[str, Any]:
        """As JSON, without what lives in this process alone."""
        return {
            "environment": self.environment,
            "schema": self.schema,
            "scenario": self.scenario,
            "seeds": list(self.seeds),
            "calls": self.calls,
            "states": self.states,
            "tools": list(self.tools),
            "missing": list(self.missing),
            "forbidden": list(self.forbidden),
            "witnesses": {tool: [one.as_json() for one in found] for tool, found in self.witnesses.items()},
            "failures": {
                tool: {code: one.as_json() for code, one in found.items()} for tool, found in self.failures.items()
            },
            "repairs": {code: dict(found) for code, found in self.repairs.items()},
            "values": [one.as_json() for one in self.values],
        }

    @classmethod
    def from_json(cls, row: Any) -> Explored:
        """What :meth:`as_json` wrote; no graph can be built from it. Raises :class:`callwright.errors.DataError`."""
        try:
            return cls(
                row["environment"],
                row["schema"],
                row["scenario"],
                tuple(row["seeds"]),
                row["calls"],
                row["states"],
                tuple(row["tools"]),
                {tool: tuple(map(Witness.from_json, found)) for tool, found in row["witnesses"].items()},
                {
                    tool: {code: Witness.from_json(one) for code, one in found.items()}
                    for tool, found in row["failures"].items()
                },
                {code: dict(found) for code, found in row["repairs"].items()},
                tuple(map(Values.from_json, row["values"])),
                tuple(row["missing"]),
                tuple(row["forbidden"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"this is not what exploring an environment came to ({error}): {row!r:.80}") from error


def schema_hash(tools: Mapping[str, ToolSpec]) -> str:
    """A digest of what the tools say of themselves: names, descriptions, schemas, and what they do."""
    return digest_of(
        [
            [
                spec.name,
                spec.description,
                spec.parameters,
                spec.result,
                [spec.read_only, spec.destructive, spec.idempotent, spec.discovery],
            ]
            for _, spec in sorted(tools.items())
        ]
    )


#: What whoever has a server may do about tools that are left out because they may destroy something.
WAYS_OUT: Final = (
    "run the server in a scratch folder, by {workspace} in its command; or have it declare what its tools do "
    "(readOnlyHint, destructiveHint: without them a tool counts as one that destroys); or allow it, by "
    "--allow-destructive or the option allow_destructive of the synthesizer"
)

#: What may be done about tools that nothing tells what they take.
TELLING: Final = (
    "say what users know (knowledge= of an environment, the option 'knowledge' of a server), offer a tool that lists "
    "what there is, or allow more calls (the option 'calls')"
)


def _why_nothing(environment: Environment, forbidden: Sequence[str]) -> str:
    if not forbidden:
        return f"the environment {environment.name!r} offers no tools"
    return (
        f"none of the {len(forbidden)} tools of {environment.name!r} may be called ({', '.join(forbidden[:8])}"
        f"{', …' if len(forbidden) > 8 else ''}): they may destroy something, and nothing says that this is gone with "
        f"the session. {WAYS_OUT[0].upper()}{WAYS_OUT[1:]}"
    )


def explore(
    environment: Environment,
    *,
    scenario: str = "",
    seeds: Sequence[int] = (0, 1),
    calls: int | None = None,
    allow_destructive: bool = False,
    reporter: Reporter = SILENT,
    tape: Tape | None = None,
) -> Explored:
    """Call the tools of an environment with whatever its schemas, results and people suggest.

    ``calls`` is the budget for each seed; the default is so many for each tool. Nothing is counted in seconds, so the
    same arguments give the same calls on every machine. Tools that destroy something are left out where that would
    outlive the session, unless ``allow_destructive``. ``tape`` takes up what the calls come to; one that was read says
    it, and none is made.

    Raises :class:`callwright.UsageError` for no seeds, for a budget below 1, or where no tool may be called, whatever
    opening a session raises, and :class:`~callwright_plugins.synthesis.exploration.tape.OtherTape` for a tape of other
    calls.
    """
    if not seeds:
        raise UsageError("exploring needs a seed")
    if calls is not None and calls < 1:
        raise UsageError(f"the number of calls is 1 or more, not {calls}")
    tools, forbidden = allowed_tools(environment, allow_destructive)
    if not tools:
        raise UsageError(_why_nothing(environment, forbidden))
    elsewhere = declares(environment, OutOfProcess)
    budget = calls if calls is not None else (CALLS_ELSEWHERE if elsewhere else CALLS_A_TOOL) * max(len(tools), 5)
    explorer = Explorer(environment, tools, tape)
    reporter.start(f"exploring {environment.name}, calls", budget * len(seeds))
    worlds = tuple(explorer.explore(scenario, seed, budget, reporter) for seed in seeds)
    reporter.finish()
    witnesses: dict[str, tuple[Witness, ...]] = {}
    failures: dict[str, dict[str, Witness]] = {}
    for tool in sorted(tools):
        found = [
            Witness(world.scenario, world.seed, (*success.path, success.call), success.kind)
            for world in worlds
            for success in world.paths(tool)[:_WITNESSES]
        ]
        if found:
            witnesses[tool] = tuple(sorted(found, key=lambda one: (len(one.calls), one.kind != "ok"))[:_WITNESSES])
    for world in worlds:
        for (tool, code), path in sorted(world.failures.items()):
            known = failures.setdefault(tool, {}).get(code)
            if known is None or len(path) < len(known.calls):
                kind = world.failure_kinds[tool, code]
                failures[tool][code] = Witness(world.scenario, world.seed, path, kind, code)
    return Explored(
        environment.name,
        schema_hash(environment.tools),
        scenario,
        tuple(seeds),
        sum(world.calls for world in worlds),
        sum(world.states for world in worlds),
        tuple(sorted(tools)),
        witnesses,
        failures,
        _repairs(explorer),
        _values(explorer),
        tuple(tool for tool in sorted(tools) if tool not in witnesses),
        tuple(sorted(forbidden)),
        worlds,
        explorer,
    )


def _repairs(explorer: Explorer) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (code, tool), count in sorted(explorer.enabled.items()):
        found.setdefault(code, {})[tool] = count
    return found


def _values(explorer: Explorer) -> tuple[Values, ...]:
    bank = explorer.bank
    found = []
    for place, kept, types in zip(bank.places, bank.values, bank.types, strict=True):
        if kept:
            examples = tuple(value_of(key) for key in list(kept)[:_EXAMPLES])
            found.append(Values(place.origin, place.owner, place.path, tuple(sorted(types)), len(kept), examples))
    return tuple(sorted(found, key=lambda one: (one.origin, one.owner, one.path)))
