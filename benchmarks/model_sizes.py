"""What the twenty environments cost a model: bytes of their listings and of their pages, and what is said of fields.

    python benchmarks/model_sizes.py                # all of them
    python benchmarks/model_sizes.py filesystem     # one, with its largest results

A listing is measured as prompts write it, as OpenAI function definitions, and as clients of MCP hand it on; whole, and
of an environment that is ``compact``. Pages are what tools answer that are given nothing but what they require, in the
scenario ``typical`` with seed 0; bounded ones are those with ``compact`` and ``page_bytes=4000``.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import field, frozen

import callwright as cw
from callwright.environments.rows import table_of
from callwright.environments.telling import as_text
from callwright.walk.prompt import describe_tools
from callwright_plugins.mcp_environments import TOOLS
from callwright_plugins.mcp_servers.wire import listed_tools

#: How a parameter is called where results call what it takes by another name.
CALLED: Final[Mapping[str, tuple[str, ...]]] = {
    "origin": ("code", "location"),
    "path": ("path",),
    "archive": ("path",),
    "user": ("handle", "user_id", "name"),
    "author": ("handle",),
    "issue": ("key", "issue_key"),
    "near_store_id": ("store_id",),
    "object_id": ("payment_id", "invoice_id"),
}
#: What a client of MCP hands a model of a tool.
_HANDED: Final = ("name", "description", "inputSchema")
#: Values of one field that are tried.
_TRIED: Final = 8


def size(value: Any) -> int:
    """Bytes of a value as models read it: compact JSON in UTF-8."""
    return len(as_text(value).encode())


def listings(name: str) -> dict[str, int]:
    """Bytes of an environment's listing by form, whole and compact: ``prompt`` as prompts write it, ``tools`` as
    function definitions, and ``mcp`` as what clients of MCP hand their models of ``tools/list``.
    """
    whole: Any = cw.environment(name)
    small: Any = cw.environment(name, compact=True)
    found = {}
    for form, environment in (("", whole), ("compact ", small)):
        specs = environment.tools.values()
        handed = [{key: tool[key] for key in _HANDED} for tool in listed_tools(specs)]
        found[f"{form}prompt"] = len("\n".join(describe_tools(specs)).encode())
        found[f"{form}tools"] = size(cw.openai_tools(environment, compact=form != ""))
        found[f"{form}mcp"] = size(handed)
    return found


@frozen
class Answer:
    """A call and the bytes of its result."""

    tool: str
    arguments: Mapping[str, Any] = field(repr=False)
    bytes: int
    is_page: bool


def members(schema: Any, name: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every member that a schema lists, at any depth."""
    if isinstance(schema, Mapping):
        for key, inner in (schema.get("properties") or {}).items():
            yield key, inner
        for key, inner in schema.items():
            yield from members(list(inner.values()) if key == "properties" else inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from members(inner)


def is_page(spec: cw.ToolSpec) -> bool:
    """Whether a tool gives pages."""
    return "next_cursor" in ((spec.result or {}).get("properties") or {})


def answers(environment: cw.StatefulEnvironment, scripts: Sequence[tuple[str, dict[str, Any]]]) -> list[Answer]:
    """What every tool that reads answers by default, with the first few values that others told for what it requires.

    ``scripts`` are further calls, of which only those of tools that read are measured, without a ``limit``.
    """
    told: dict[str, list[Any]] = {}
    found: list[Answer] = []
    done: set[str] = set()
    session = environment.open("typical", 0)
    reading = [spec for spec in environment.tools.values() if spec.read_only]

    def ask(session: Any, spec: cw.ToolSpec, arguments: dict[str, Any]) -> None:
        key = json.dumps([spec.name, arguments], sort_keys=True)
        if key in done:
            return
        done.add(key)
        outcome = session.call(spec.name, arguments)
        if outcome.executed:
            found.append(Answer(spec.name, arguments, size(outcome.value), is_page(spec)))
            _hear(outcome.value, told)

    for _ in range(3):
        for spec in reading:
            for arguments in _given(spec, told):
                ask(session, spec, arguments)
    script = environment.open("typical", 0)
    for tool, arguments in scripts:
        spec = environment.tools[tool]
        if spec.read_only:
            ask(script, spec, {key: value for key, value in arguments.items() if key != "limit"})
        else:
            script.call(tool, arguments)
    return found


def _given(spec: cw.ToolSpec, told: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Arguments with nothing that is not required; none where nothing is known for what is."""
    required = spec.parameters.get("required", ())
    for number in range(_TRIED if required else 1):
        given = {}
        for name in required:
            schema = spec.parameters["properties"][name]
            known: Sequence[Any] = schema.get("enum") or [
                value for other in (name, *CALLED.get(name, ())) for value in told.get(other, ())
            ]
            if not known:
                break
            given[name] = known[number % len(known)]
        else:
            yield given


def _hear(value: Any, told: dict[str, list[Any]]) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            kept = told.setdefault(key, [])
            if isinstance(inner, str | int) and inner not in kept and len(kept) < _TRIED:
                kept.append(inner)
            _hear(inner, told)
    elif isinstance(value, list):
        for inner in value:
            _hear(inner, told)


#: The most values of a closed set, and the seeds whose worlds have to agree on it.
_FEW, _SEEDS = 40, 3
_AN_ID: Final = re.compile(r"[A-Z]{1,3}[0-9]{4,}|[0-9]{4}-[0-9]{2}.*")


def closed_sets(name: str) -> dict[str, str]:
    """Parameters of tools that read which take one of a few values, and what tells them: ``enum``, ``description`` or
    the name of a tool that lists them; ``""`` if nothing does.

    A set is closed if a column of that name holds the same few texts in the worlds of several seeds.
    """
    environment: Any = cw.environment(name)
    columns = [_columns(environment, seed) for seed in range(_SEEDS)]
    listed = _listed(environment)
    found = {}
    for spec in environment.tools.values():
        for parameter, schema in spec.parameters["properties"].items() if spec.read_only else ():
            place = f"{spec.name}.{parameter}"
            if "enum" in json.dumps(schema):
                found[place] = "enum"
                continue
            said = str(schema.get("description"))
            if '"string"' not in json.dumps(schema) or said.startswith(("Part of", "Text in", "Words")):
                continue
            for column in {parameter, f"{parameter}s", f"{parameter}es"}:
                for table, values in columns[0].get(column, {}).items():
                    if len(values) <= _FEW and all(one.get(column, {}).get(table) == values for one in columns):
                        named = set(re.split(r"[,;:.]? (?:or )?|[.,;]", said))
                        lists = (tool for tool, told in listed.items() if any(values <= one for one in told.values()))
                        found[place] = "description" if values <= named else next(lists, "")
    return found


def _columns(environment: Any, seed: int) -> dict[str, dict[str, frozenset[str]]]:
    """By column and table the texts that a world has there, but for ids and times."""
    found: dict[str, dict[str, frozenset[str]]] = {}
    world = environment.open("typical", seed).world
    for kind in environment.kinds:
        rows = list(world.rows(kind))
        for column in table_of(kind).fields:
            held = (getattr(row, column) for row in rows)
            texts = {one for value in held for one in (value if isinstance(value, tuple) else (value,))}
            values = frozenset(one for one in texts if isinstance(one, str) and one)
            if len(values) > 1 and not any(map(_AN_ID.fullmatch, values)):
                found.setdefault(column, {})[kind.__name__] = values
    return found


def _listed(environment: Any) -> dict[str, dict[str, set[str]]]:
    """By tool that lists without being given anything, and by field, the texts that it tells: all of its pages."""
    found: dict[str, dict[str, set[str]]] = {}
    session = environment.open("typical", 0)
    for spec in environment.tools.values():
        if not spec.read_only or spec.parameters.get("required"):
            continue
        parameters = spec.parameters["properties"]
        given: dict[str, Any] = {"limit": 100} if "limit" in parameters else {}
        given |= {parameter: True for parameter in parameters if parameter.startswith("include_")}
        told: dict[str, set[str]] = {}
        while given is not None:
            value = session.call(spec.name, given).value
            _texts(value, "", told)
            cursor = value.get("next_cursor") if isinstance(value, dict) else None
            given = {**given, "cursor": cursor} if cursor else None  # type: ignore[assignment]
        found[spec.name] = told
    return found


def _texts(value: Any, field: str, told: dict[str, set[str]]) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            _texts(inner, key, told)
    elif isinstance(value, list):
        for inner in value:
            _texts(inner, field, told)
    elif isinstance(value, str):
        told.setdefault(field, set()).add(value)


def described(name: str) -> tuple[int, int]:
    """How many members of results have a description, and how many there are."""
    fields = [inner for spec in cw.environment(name).tools.values() for _, inner in members(spec.result)]
    return sum("description" in inner for inner in fields), len(fields)


def largest(found: Sequence[Answer], *, pages: bool) -> list[Answer]:
    """The largest answer of each tool that gives pages, or does not; the largest first."""
    by_tool: dict[str, Answer] = {}
    for answer in found:
        if answer.is_page == pages and answer.bytes > by_tool.get(answer.tool, _NONE).bytes:
            by_tool[answer.tool] = answer
    return sorted(by_tool.values(), key=lambda answer: -answer.bytes)


_NONE: Final = Answer("", {}, 0, True)
#: Bytes of a page in the column of bounded ones.
BOUND: Final = 4000


def row(name: str, script: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """What is said of one environment."""
    whole: Any = cw.environment(name)
    small: Any = cw.environment(name, compact=True, page_bytes=BOUND)
    page, bounded = (next(iter(largest(answers(one, script), pages=True)), _NONE) for one in (whole, small))
    sets = closed_sets(name)
    said, fields = described(name)
    return {
        "environment": name,
        **listings(name),
        "page": page.bytes,
        "page_tool": page.tool,
        "bounded_page": bounded.bytes,
        "closed_sets": len(sets),
        "untold": [place for place, told in sets.items() if not told],
        "described": said,
        "fields": fields,
    }


_COLUMNS: Final = ("prompt", "compact prompt", "tools", "compact tools", "mcp", "compact mcp", "page", "bounded_page")


def main() -> None:
    """The table, or one environment in full."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("environments", nargs="*", metavar="ENV", help="Some of them, with what is large.")
    parser.add_argument("--json", action="store_true", help="Print JSON.")
    given = parser.parse_args()
    if unknown := sorted({*given.environments} - {*TOOLS}):
        parser.error(f"there is no environment {unknown[0]!r}; there are {', '.join(TOOLS)}")
    sys.path.insert(0, str(Path(__file__).parent))
    from environment_speed import scripts

    rows = [row(name, scripts()[name][0]) for name in given.environments or TOOLS]
    if given.json:
        print(json.dumps(rows, indent=1))
        return
    heads = [column.replace("_", " ") for column in _COLUMNS]
    print(f"| environment | {' | '.join(heads)} | closed sets | untold | fields described |")
    print(f"|---|{'--:|' * (len(heads) + 3)}")
    for one in rows:
        numbers = " | ".join(f"{one[column]:,}" for column in _COLUMNS)
        told = f"{one['closed_sets']} | {len(one['untold'])} | {one['described']} of {one['fields']}"
        print(f"| `{one['environment']}` | {numbers} | {told} |")
    for name in given.environments:
        found = answers(cw.environment(name), scripts()[name][0])
        for answer in (*largest(found, pages=True), *largest(found, pages=False)):
            print(f"{answer.bytes:7,} {answer.tool} {json.dumps(dict(answer.arguments))}")


if __name__ == "__main__":
    main()
