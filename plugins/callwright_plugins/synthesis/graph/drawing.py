"""Drawing: a graph in the language of Graphviz."""

from __future__ import annotations

import json

from callwright_plugins.synthesis.graph.edges import Graph


def dot(graph: Graph) -> str:
    """The graph as DOT: dashed arrows are state, solid ones information with the argument that it fills."""
    lines = [f"digraph {json.dumps(graph.environment)} {{", "  rankdir=LR;", "  node [shape=box];"]
    lines += [f"  {json.dumps(tool)};" for tool in graph.tools]
    for (source, target), edges in sorted(graph.pairs().items()):
        state = any(edge.kind == "state" for edge in edges)
        arguments = sorted({edge.argument for edge in edges if edge.kind == "information"})
        style = "style=dashed" if state and not arguments else "style=bold" if state else "style=solid"
        label = f", label={json.dumps(', '.join(arguments))}" if arguments else ""
        lines.append(f"  {json.dumps(source)} -> {json.dumps(target)} [{style}{label}];")
    return "\n".join([*lines, "}", ""])
