"""The layouts of the papers' tables: which columns stand in which order, and where their values come from.

A column takes the value of a name from one benchmark. Names are those of a benchmark's official aggregate
(``values`` in a result); ``overall`` and ``depth N`` are also read from the accuracies of any evaluation. What was not
measured is a dash. Only the layout is the papers': the rows are the checkpoints that are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import frozen

from callwright.errors import UnknownName


@frozen
class Column:
    """A heading, the benchmark by the beginning of its name, and the name of the value. ``count``: no percentage.

    ``otherwise`` is another place of the same figure: a benchmark of its own may measure what is a part of another.
    """

    heading: str
    benchmark: str
    value: str
    count: bool = False
    otherwise: tuple[str, str] | None = None
    #: Places of figures whose mean it is, where all of them were measured.
    mean_of: tuple[tuple[str, str], ...] = ()


@frozen
class Template:
    """The layout of one printed table."""

    name: str
    title: str
    columns: tuple[Column, ...]
    #: What a reader must know of the printed numbers.
    note: str = ""

    def row(self, results: Mapping[str, Mapping[str, Any]]) -> list[float | None]:
        """The values of one checkpoint, from its result on each benchmark."""
        return [_value(results, column) for column in self.columns]


def _value(results: Mapping[str, Mapping[str, Any]], column: Column) -> float | None:
    if column.mean_of:
        parts = [_value(results, Column("", *place)) for place in column.mean_of]
        known = [part for part in parts if part is not None]
        return sum(known) / len(known) if len(known) == len(parts) else None
    for wanted, name in ((column.benchmark, column.value), column.otherwise or ("", "")):
        for benchmark, result in results.items():
            if wanted and benchmark.startswith(wanted):
                found = _named(result, name)
                if found is not None:
                    return found
    return None


def _named(result: Mapping[str, Any], name: str) -> float | None:
    stated = result.get("values")
    value: Any = stated.get(name) if isinstance(stated, Mapping) else None
    if value is None and name == "overall":
        value = result.get("overall")
    if value is None and name.startswith("depth "):
        cell = result.get("by_depth", {}).get(name.removeprefix("depth "))
        value = cell.get("accuracy") if isinstance(cell, Mapping) else None
    return float(value) if type(value) in (int, float) else None


def _columns(benchmark: str, *named: tuple[str, str]) -> tuple[Column, ...]:
    return tuple(Column(heading, benchmark, value) for heading, value in named)


_DEPTHS = _columns(
    "depthbench", ("Overall Acc", "overall"), *((f"{depth}-Step", f"depth {depth}") for depth in range(7))
)
#: Of both versions, and not of bfcl-multi-turn, whose ``overall`` is another figure.
_WHOLE_BFCL = "bfcl-v"
_BFCL = _columns(
    _WHOLE_BFCL,
    ("Overall", "overall"),
    ("Non-Live AST", "non-live AST"),
    ("Live", "live"),
    ("Multiturn", "multi-turn"),
    ("Relevance", "relevance"),
    ("Irrelevance", "irrelevance"),
)
_BFCL_TOOLRL = _columns(
    _WHOLE_BFCL,
    ("Overall Acc", "overall"),
    ("Non-Live AST Acc", "non-live AST"),
    ("Non-Live Exec Acc", "non-live exec (ToolRL; in no aggregate)"),
    ("Live Acc", "live"),
    ("Multi Turn Acc", "multi-turn"),
    ("Relevance Detection", "relevance"),
    ("Irrelevance Detection", "irrelevance"),
)
_EXEC = "Non-Live Exec is in the aggregate of neither version of BFCL, and is not measured here"
_TURNS = ("bfcl-multi-turn", "overall")
_DOMAINS = tuple((f"tau2-{domain}", "overall") for domain in ("airline", "retail", "telecom"))
_PROVE_THREE = (
    Column("BFCL MT", _WHOLE_BFCL, "multi-turn", otherwise=_TURNS),
    Column("TAU2", "tau2", "overall", mean_of=_DOMAINS),
    Column("T-Eval", "t-eval", "overall"),
)

_TEMPLATES: Final = (
    Template("tier-1", "DepthBench by composition depth (TIER, Table 1)", _DEPTHS),
    Template("tier-2", "Reward granularity on DepthBench (TIER, Table 2)", _DEPTHS),
    Template("tier-3", "Training objectives on BFCL v3 (TIER, Table 3)", _BFCL),
    Template(
        "tier-4",
        "NESTFUL (TIER, Table 4)",
        _columns("nestful", ("EM Acc", "em"), ("Win rate", "win")),
        "the paper's caption says exact match; its baselines look like win rates, so both are given",
    ),
    Template("tier-5", "Textual forms on BFCL v3 (TIER, Table 5)", _BFCL),
    Template("tier-6", "Training corpora on BFCL v3 (TIER, Table 6)", _BFCL),
    Template("tier-7", "Algorithms on DepthBench (TIER, Table 7)", _DEPTHS),
    Template("toolrl-1", "BFCL v3 (ToolRL, Table 1)", _BFCL_TOOLRL, _EXEC),
    Template(
        "toolrl-2",
        "API-Bank (ToolRL, Table 2)",
        _columns(
            "api-bank",
            ("Overall Acc", "overall"),
            ("Level 1", "level 1"),
            ("Level 2", "level 2"),
            ("Level 3", "level 3"),
        ),
    ),
    Template(
        "toolrl-3",
        "Bamboogle (ToolRL, Table 3)",
        (
            Column("Accuracy", "bamboogle", "overall"),
            Column("Avg Num Tool Call", "bamboogle", "calls", count=True),
        ),
    ),
    Template("toolrl-5", "Length rewards on BFCL v3 (ToolRL, Table 5)", _BFCL_TOOLRL, _EXEC),
    Template("toolrl-6", "Reward scales on BFCL v3 (ToolRL, Table 6)", _BFCL_TOOLRL, _EXEC),
    Template("toolrl-7", "Reward granularity on BFCL v3 (ToolRL, Table 7)", _BFCL_TOOLRL, _EXEC),
    Template(
        "prove-3",
        "BFCL multi-turn and tau2-bench (Prove, Table 3)",
        (
            *_columns(
                "bfcl",
                ("MT Base", "multi_turn_base"),
                ("MT Miss Param", "multi_turn_miss_param"),
                ("MT Miss Func", "multi_turn_miss_func"),
                ("MT Long Ctx", "multi_turn_long_context"),
            ),
            Column("MT Overall", _WHOLE_BFCL, "multi-turn", otherwise=_TURNS),
            *(
                Column(heading, *place)
                for heading, place in zip(("Airline", "Retail", "Telecom"), _DOMAINS, strict=True)
            ),
            Column("Avg", "tau2", "overall", mean_of=_DOMAINS),
        ),
        "Avg of tau2-bench is the mean of the three domains, as the printed rows are",
    ),
    Template(
        "prove-4",
        "T-Eval (Prove, Table 4)",
        _columns(
            "t-eval",
            ("Instruct", "instruct"),
            ("Plan", "plan"),
            ("Reason", "reason"),
            ("Retrieve", "retrieve"),
            ("Understand", "understand"),
            ("Review", "review"),
            ("Overall", "overall"),
        ),
    ),
    Template("prove-5", "Reward components (Prove, Table 5)", _PROVE_THREE),
    Template("prove-6", "Against supervised training (Prove, Table 6)", _PROVE_THREE),
    Template("prove-7", "Teachers (Prove, Table 7)", _PROVE_THREE),
)
TEMPLATES: Final[Mapping[str, Template]] = {template.name: template for template in _TEMPLATES}


def template_named(name: str) -> Template:
    """The template of this name. Raises :class:`callwright.errors.UnknownName`."""
    if name not in TEMPLATES:
        raise UnknownName("table template", name, TEMPLATES)
    return TEMPLATES[name]


def shown(column: Column, value: float | None, decimals: int = 2) -> str:
    """A value as the papers print it: a percentage with two decimals, or a mean number."""
    if value is None:
        return "–"
    return f"{value:.2f}" if column.count else f"{100 * value:.{decimals}f}"


def table_of(
    template: Template, rows: Iterable[tuple[str, Mapping[str, Mapping[str, Any]]]]
) -> tuple[list[str], list[list[str]]]:
    """Headings and rows of texts, from checkpoints with their results by benchmark."""
    heads = ["", *(column.heading for column in template.columns)]
    made = [
        [name, *(shown(column, value) for column, value in zip(template.columns, template.row(results), strict=True))]
        for name, results in rows
    ]
    return heads, made
