"""Plan: are the actions of an answer those of the reference, in its order?

Actions that are alike enough are matched one to one with the greatest weight, and of the matched ones the longest run
in the order of the reference counts (T-Eval, section 3.2). The released code differs from the paper where this says so.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

from attrs import frozen

from callwright.errors import MissingExtra
from callwright_plugins.teval.embedders import Embedder
from callwright_plugins.teval.literals import as_text, read_data

#: What name and arguments weigh in the likeness of two actions, and above which likeness they may be matched.
NAME_WEIGHT: Final = 0.75
ARGUMENTS_WEIGHT: Final = 0.25
THRESHOLD: Final = 0.8
#: The action that ends a plan, and is not counted.
FINISH: Final = "FinishAction"


class Action(NamedTuple):
    """A step of a plan. ``arguments`` is a text: of a plan in words, the whole sentence."""

    id: int
    name: str
    arguments: str


@frozen
class PlanScore:
    """Shares in [0, 1] of the actions that are in order: of the answer's, of the reference's, and their F1."""

    precision: float
    recall: float
    f1: float
    parsed: bool
    #: Why the official program would have ended here with an exception; empty where it goes on.
    stops: str = ""


_NOTHING: Final = PlanScore(0.0, 0.0, 0.0, parsed=False)


def read_plan(given: Any) -> list[Action]:
    """The actions of a plan in JSON, in their order; none at all if any is no object with id, name and args."""
    try:
        data = read_data(given, "[", "]")
        if type(data) is not list:
            return []
        return [Action(int(one["id"]), as_text(one["name"]), as_text(one["args"])) for one in data]
    except Exception:  # a text that is no plan, and whatever stands in the place of a number
        return []


def read_steps(answer: str, known: Sequence[str]) -> list[Action]:
    """The actions of a plan in words: of each line or sentence that names a known API, the one that stands first.

    Of several that begin at the same character (``api.get`` and ``api.get_all``) it is the first of the list.
    """
    found: list[Action] = []
    for step in answer.replace(". ", "\n").split("\n"):
        places = [(at, place) for place, name in enumerate(known) if (at := step.find(name)) >= 0]
        name = known[min(places)[1]] if places else ""
        if name:
            found.append(Action(len(found), name, step))
    return found


def score_plan(plan: Sequence[Action], reference: Sequence[Action], embedder: Embedder) -> PlanScore:
    """How much of a plan is that of the reference, by the released code.

    The longest run is 1 even where nothing matches, so that one wrong action is worth something. Matches of the same
    weight are decided by the order in which networkx finds them: a reference that repeats itself may not be worth 1.

    Raises :class:`callwright.errors.MissingExtra` without networkx.
    """
    if not plan or not reference:
        return _NOTHING
    made, wanted = _without_finish(plan), _without_finish(reference)
    if not made or not wanted:
        return PlanScore(0.0, 0.0, 0.0, parsed=True, stops="a plan holds nothing but its end")
    right = max(1, _longest_run(_matched(made, wanted, embedder)))
    precision, recall = right / len(made), right / len(wanted)
    return PlanScore(precision, recall, 2 * recall * precision / (recall + precision), parsed=True)


def _without_finish(plan: Sequence[Action]) -> list[Action]:
    """The actions by their ids, without the one that ends the plan."""
    ordered = sorted(plan, key=attrgetter("id"))
    return ordered[:-1] if ordered[-1].name == FINISH else ordered


def _matched(made: Sequence[Action], wanted: Sequence[Action], embedder: Embedder) -> list[int]:
    """The places of the matched reference actions, in the order of the plan."""
    try:
        import networkx
    except ImportError as error:
        raise MissingExtra("T-Eval's plan", "teval", error.name or "networkx") from error
    names = embedder.similarity([one.name for one in made], [one.name for one in wanted])
    arguments = embedder.similarity([one.arguments for one in made], [one.arguments for one in wanted])
    graph = networkx.Graph()
    # Nodes are added as the released code adds them, a number for an action of the plan and a text for one of the
    # reference: the order decides between matches of the same weight.
    for row in range(len(made)):
        for column in range(len(wanted)):
            alike = max(names[row][column], 0) * NAME_WEIGHT + max(arguments[row][column], 0) * ARGUMENTS_WEIGHT
            if alike > THRESHOLD:
                graph.add_edge(row, str(column), weight=float(alike))
    pairs = {}
    for one, other in networkx.max_weight_matching(graph):
        row, column = (one, other) if isinstance(one, int) else (other, one)
        pairs[row] = int(column)
    return [pairs[row] for row in sorted(pairs)]


def _longest_run(places: Sequence[int]) -> int:
    """The length of the longest strictly increasing subsequence."""
    ends: list[int] = []
    for place in places:
        at = bisect_left(ends, place)
        ends[at : at + 1] = [place]
    return len(ends)
