"""The worked examples of ``--shots``: the same for every task, in one order, each with a thought of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from attrs import evolve

from callwright.walk.tasks import Corpus, Task

#: Training tasks in the order in which they are shown, one for each structure, and the thought of each. The last one
#: stands in for whichever of the others is the task that is asked.
EXAMPLES: Final[tuple[tuple[str, str], ...]] = (
    (  # a chain
        "train-0505",
        "I need the cars of that dealership first, then the newest of them. The second call takes the whole list of "
        "the first, and the user wants only the car that was picked.",
    ),
    (  # a tree, all of whose results are wanted
        "train-0547",
        "The total with the tip comes first; both shares are of that total, so both calls refer to it. The user asks "
        "for the total and for both shares: all three results go back.",
    ),
    (  # an abstention
        "train-0010",
        "The user asks for reviews. The tools here give prices, count syllables and look up cars; none of them knows "
        "reviews, and a price is no answer. So no call is to be made.",
    ),
    (  # a funnel
        "train-0523",
        "The air quality tool needs a city and a date. The city is the user's home, the date is tomorrow's; a tool "
        "gives each. Then one call takes both, and only its result is the answer.",
    ),
    (  # a conjunction
        "train-0760",
        "First the kitchens of Seattle; the first one listed is item 0 of the field kitchens. Its menu has to meet "
        "two conditions: I filter by the diet, and what is left by the price. The last list is the answer.",
    ),
    (  # parallel requests
        "train-0508",
        "Two flights on two dates. Neither call needs anything of the other, and the user wants to know about both, "
        "so both results go back.",
    ),
    (  # a mixed graph
        "train-0725",
        "A cart takes product codes, which I do not have: I look up one for each item. The cart is made of both codes "
        "with their quantities, and shipping is quoted for that cart. Only the quote is asked for.",
    ),
    (  # a single call
        "train-0163",
        "One tool gives synonyms of a word, and the word is given. One call settles it.",
    ),
)
#: How many examples there are at most for any task: one fewer than there are in all.
MOST: Final = len(EXAMPLES) - 1


def fixed_examples(
    corpus: Corpus, task: Task, count: int, examples: Sequence[tuple[str, str]] = EXAMPLES
) -> list[Task]:
    """The first ``count`` examples, at most :data:`MOST`; if the task is among them, those after it move up.

    An example is offered its own tools only: those that its program calls, or where nothing is to be called all that it
    had. Raises :class:`callwright.errors.UnknownName` for a corpus of other rows, which lacks an example.
    """
    others = [(name, thought) for name, thought in examples if name != task.id]
    return [_example(corpus.task(name), thought) for name, thought in others[: min(count, MOST)]]


def _example(task: Task, thought: str) -> Task:
    assert task.program is not None
    called = {call.tool for call in task.program.calls}
    own = {name: spec for name, spec in task.tools.items() if name in called} if called else task.tools
    return evolve(task, tools=own, program=evolve(task.program, thought=thought))


def oracle_examples(train: Sequence[Task], shapes: Sequence[tuple[str, int]], task: Task, count: int) -> list[Task]:
    """Training tasks of the task's own structure, those of its depth first; which ones hangs on its id alone.

    They give away what the answer looks like: whether to call at all, how many calls, and in what shape.
    """
    ranked = sorted(
        (abs(depth - task.depth), _rank(task, index), index)
        for index, (structure, depth) in enumerate(shapes)
        if structure == task.structure
    )
    found: list[Task] = []
    for _, _, index in ranked:
        if len(found) == count:
            break
        if train[index].id != task.id:
            found.append(train[index])
    return found


def _rank(task: Task, index: int) -> bytes:
    return hashlib.sha256(f"{task.id}/{index}".encode()).digest()
