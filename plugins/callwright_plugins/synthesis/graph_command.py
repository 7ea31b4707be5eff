"""``callwright synthesize graph``: which tools need one another, proven by calls with and without."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from callwright.commands import options
from callwright.commands.app import App
from callwright.commands.options import ComponentName
from callwright.errors import DataError, UnknownName, UsageError
from callwright_plugins.synthesis.settings import environment_options, make_environment, read_seeds, write_text

if TYPE_CHECKING:
    from callwright.environments.protocol import Environment
    from callwright_plugins.synthesis.exploration.witness import Witness
    from callwright_plugins.synthesis.graph.edges import Edge, Graph
    from callwright_plugins.synthesis.graph.proposals import Compared

_INSTEAD: Final = "name another file, or replace it with --overwrite"
#: The options that a graph is of, by the names in its file.
_OPTIONS: Final = {
    "scenario": "--scenario",
    "seeds": "--seeds",
    "asked": "--calls",
    "destructive": "--allow-destructive",
}


@click.command("graph")
@click.argument("name", type=ComponentName("environment"), metavar="ENV")
@environment_options
@click.option(
    "-o",
    "--out",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write the graph: JSON, or DOT if FILE ends in .dot. A JSON graph of the same tools and options is taken from "
    "FILE, not built again.",
)
@click.option("--overwrite", "--rebuild", is_flag=True, help="Build the graph anew and replace what FILE holds.")
@click.option("--edge", nargs=2, metavar="A B", help="Show the proofs of the edges from tool A to tool B.")
@click.option("--chains", "count", type=click.IntRange(min=1), metavar="N", help="Draw N chains of 2 to 5 tools.")
@click.option("--check", metavar="FILE", help="Make the calls of every proof of this graph again; build nothing.")
@click.option(
    "--teacher",
    type=ComponentName("teacher"),
    metavar="NAME",
    help="Have a teacher classify the pairs too, and compare.",
)
@click.option("--teacher-option", "teacher_options", multiple=True, metavar="K=V", help="An option of the teacher.")
@click.option("--replies", metavar="FILE", help="Where replies of the teacher are kept. Default: beside -o.")
@options.json_option
@click.pass_obj
def graph_(app: App, /, name: str, settings: tuple[str, ...], toolsets: tuple[str, ...], **given: Any) -> None:
    """Find out which tools of the environment ENV need one another, and prove it.

    A needed step is proven by calls that succeed with it and fail without; a needed value by a call that succeeds with
    what the other tool told and fails with a foreign one, in two worlds. With --check FILE the exit status is 1 if a
    proof no longer holds.
    """
    from callwright_plugins.synthesis.graph.edges import need_networkx

    need_networkx()
    environment = make_environment(app, name, settings, toolsets)
    if given["check"] is not None:
        check_graph_file(environment, Path(given["check"]), given["as_json"])
        return
    graph = _graph(environment, given)
    if given["edge"] is not None:
        source, target = given["edge"]
        _show_edge(graph, source, target, given["as_json"])
        return
    compared = _compare(app, environment, graph, given)
    drawn = _chains(graph, given["count"])
    if given["as_json"]:
        found = {**graph.as_json(), "compared": [_row(one) for one in compared], "chains": [list(one) for one in drawn]}
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    _draw(graph, compared, drawn)


def read_graph(path: Path) -> Graph:
    """The graph of a file. Raises :class:`callwright.errors.DataError` for a file that holds none."""
    from callwright_plugins.synthesis.graph.edges import Graph

    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    try:
        return Graph.from_json(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is no JSON file") from error
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def _graph(environment: Environment, given: dict[str, Any]) -> Graph:
    """The graph of the file of -o, where it is of these tools and options; else it is built, and written there."""
    from callwright.commands.bars import reporter
    from callwright_plugins.synthesis.exploration.explored import explore
    from callwright_plugins.synthesis.graph.building import build
    from callwright_plugins.synthesis.graph.drawing import dot

    seeds = read_seeds(given["seeds"])
    if len(seeds) < 2:
        raise UsageError("--seeds: information is proven in two worlds, so name two seeds, such as 0,1")
    out = Path(given["out"]) if given["out"] else None
    asked = {
        "scenario": given["scenario"],
        "seeds": list(seeds),
        "asked": given["calls"],
        "destructive": given["allow_destructive"],
    }
    as_dot = out is not None and out.suffix in (".dot", ".gv")
    if out is not None and as_dot:
        options.refuse_existing(out, overwrite=given["overwrite"])
    elif out is not None and not given["overwrite"] and out.exists():
        return _kept(out, environment, asked)
    with reporter() as bars:
        explored = explore(
            environment,
            scenario=given["scenario"],
            seeds=seeds,
            calls=given["calls"],
            allow_destructive=given["allow_destructive"],
            reporter=bars,
        )
        graph, _ = build(environment, explored, settings=asked, reporter=bars)
    if out is not None:
        text = dot(graph) if as_dot else json.dumps(graph.as_json(), ensure_ascii=False) + "\n"
        write_text(out, text)
    return graph


def _kept(out: Path, environment: Environment, asked: dict[str, Any]) -> Graph:
    """The graph of a file. Raises :class:`callwright.UsageError` where it is not of these tools and options."""
    from callwright_plugins.synthesis.exploration.explored import schema_hash

    try:
        known = read_graph(out)
    except DataError as error:
        raise UsageError(f"{error}: {_INSTEAD}") from error
    differing = ", ".join(_OPTIONS[key] for key, value in asked.items() if known.settings.get(key) != value)
    if known.environment != environment.name:
        raise UsageError(f"{out} is the graph of {known.environment!r}: {_INSTEAD}")
    if known.schema != schema_hash(environment.tools):
        raise UsageError(f"{out} is a graph of other tools of {known.environment!r}: {_INSTEAD}")
    if differing:
        raise UsageError(f"{out} is a graph made with other options ({differing}): {_INSTEAD}")
    return known


def check_graph_file(environment: Environment, path: Path, as_json: bool) -> None:
    """Make the calls of every proof of a graph again, and say which no longer hold: the exit status is 1 then."""
    from callwright_plugins.synthesis.graph.checking import check_graph

    checked = check_graph(environment, read_graph(path))
    wrong = [
        {"source": one.edge.source, "target": one.edge.target, "kind": one.edge.kind, "reason": one.reason}
        for one in checked.findings
    ]
    if as_json:
        click.echo(json.dumps({"proofs": checked.proofs, "wrong": wrong}, indent=2, ensure_ascii=False))
    else:
        from callwright.commands.terminal import screen, text

        for one in wrong:
            screen().print(text(f"{one['source']} -> {one['target']} ({one['kind']}): {one['reason']}", "red"))
        screen().print(text(f"{checked.proofs - len(wrong):,} of {checked.proofs:,} proofs hold"))
    if wrong:
        click.get_current_context().exit(1)


def _compare(app: App, environment: Environment, graph: Graph, given: dict[str, Any]) -> list[Compared]:
    from callwright_plugins.synthesis.graph.proposals import classify, compare, matched

    tools = {name: environment.tools[name] for name in graph.tools}
    proposed: dict[str, Any] = {"proven": graph.pairs(), "schemas": matched(tools)}
    if given["teacher"]:
        from callwright.training import cached

        teacher = app.registry.create(
            "teacher", given["teacher"], **options.key_values(given["teacher_options"], "--teacher-option")
        )
        replies = given["replies"] or (f"{given['out']}.replies.sqlite" if given["out"] else None)
        said = classify(teacher if replies is None else cached(teacher, replies), tools)
        proposed[f"teacher {teacher.name}"] = said.pairs
        for pair, reason in list(said.failed.items())[:3]:
            click.echo(f"the teacher said nothing of {pair[0]} and {pair[1]}: {reason}", err=True)
        if len(said.failed) > 3:
            click.echo(f"… and of {len(said.failed) - 3} other pairs", err=True)
    elif given["teacher_options"] or given["replies"]:
        raise UsageError("--teacher-option and --replies are for a --teacher")
    return compare(graph, proposed)


def _chains(graph: Graph, count: int | None) -> list[tuple[str, ...]]:
    from callwright_plugins.synthesis.graph.chains import chains

    return list(chains(graph, count)) if count else []


def _row(one: Compared) -> dict[str, Any]:
    return {"way": one.way, "pairs": one.pairs, "proven": one.proven, "missed": one.missed}


def _draw(graph: Graph, compared: Sequence[Compared], drawn: Sequence[tuple[str, ...]]) -> None:
    from callwright.commands.terminal import screen, table, text

    shown = table("from", "to", "state", "information", codes=(0, 1))
    for (source, target), edges in sorted(graph.pairs().items()):
        state = [edge for edge in edges if edge.kind == "state"]
        told = dict.fromkeys(f"{edge.result} → {edge.argument}" for edge in edges if edge.kind == "information")
        few = [*list(told)[:2], *([f"and {len(told) - 2} more"] if len(told) > 2 else [])]
        shown.add_row(text(source), text(target), text(_failing(state[0]) if state else ""), text(", ".join(few)))
    out = screen()
    out.print(shown)
    steps, told_pairs = len(graph.pairs("state")), len(graph.pairs("information"))
    among = f"of {len(graph.tools) * (len(graph.tools) - 1):,} ordered pairs"
    out.print(text(f"{steps:,} pairs with a needed step, {told_pairs:,} with a needed value, {among}"))
    ways = table("found by", "pairs", "of them proven", "proven ones left out", right=(1, 2, 3))
    for one in compared:
        ways.add_row(text(one.way), f"{one.pairs:,}", f"{one.proven:,}", f"{one.missed:,}")
    out.print(ways)
    for chain in drawn:
        out.print(text(" → ".join(chain)))


def _failing(edge: Edge) -> str:
    """What the target comes to without the source."""
    without = edge.proofs[0].without
    return without.code or without.kind


def _show_edge(graph: Graph, source: str, target: str, as_json: bool) -> None:
    for tool in (source, target):
        if tool not in graph.tools:
            raise UnknownName(f"tool of {graph.environment!r}", tool, graph.tools)
    edges = graph.pairs().get((source, target), [])
    if as_json:
        click.echo(json.dumps([edge.as_json() for edge in edges], indent=2, ensure_ascii=False))
        return
    from callwright.commands.terminal import screen, text

    out = screen()
    if not edges:
        out.print(text(f"nothing proves that {target} needs {source}"))
    for edge in edges:
        about = f": {edge.result} → {edge.argument}" if edge.kind == "information" else ""
        out.print(text(f"{source} → {target}, {edge.kind}{about}", "bold"))
        for proof in edge.proofs:
            out.print(text(f"  scenario {proof.given.scenario or '(first)'}, seed {proof.given.seed}", "dim"))
            for title, witness in (("with it", proof.given), ("without", proof.without)):
                out.print(text(f"  {title}:"))
                for line in _lines(witness):
                    out.print(text(f"    {line}"))


def _lines(witness: Witness) -> list[str]:
    lines = [f"{call.tool} {json.dumps(dict(call.arguments), ensure_ascii=False)}" for call in witness.calls]
    came = witness.kind if not witness.code else f"{witness.kind} {witness.code}"
    return [*lines[:-1], f"{lines[-1]} → {came}"]
