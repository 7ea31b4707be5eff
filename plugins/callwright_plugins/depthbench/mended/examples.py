"""The worked examples of ``depthbench-v1.1``: one for each structure, each with a thought of its own."""

from __future__ import annotations

from typing import Final

#: As :data:`callwright_plugins.depthbench.examples.EXAMPLES`, of the tasks of v1.1.
EXAMPLES_1_1: Final[tuple[tuple[str, str], ...]] = (
    (  # a chain
        "train-0469",
        "I need the flights of that day first, then the cheapest of them. The second call takes the whole list of the "
        "first, and the user wants only the flight that was picked.",
    ),
    (  # a tree, all of whose results are wanted
        "train-0526",
        "The total with the tip comes first; it is then split twice, so both calls refer to it. The user asks for the "
        "total and for both splits: all three results go back.",
    ),
    (  # an abstention
        "train-0002",
        "The user wants a sentence with the word. The tools here define words, find synonyms, count syllables and "
        "give reviews; a definition is no example. So no call is to be made.",
    ),
    (  # a funnel
        "train-0528",
        "The air quality tool needs a city and a date. The city is the user's home, the date is tomorrow's; a tool "
        "gives each. Then one call takes both, and only its result is the answer.",
    ),
    (  # a conjunction
        "train-0737",
        "First the kitchens of Denver; the first one listed is item 0 of the field kitchens. Its menu has to meet two "
        "conditions: I filter by the diet, and what is left by the calories. The last list is the answer.",
    ),
    (  # parallel requests
        "train-0468",
        "Two spans of days. Neither call needs anything of the other, and the user wants to know both, so both "
        "results go back.",
    ),
    (  # a mixed graph
        "train-0719",
        "A cart takes product codes, which I do not have: I look up one for each item. The cart is made of both codes "
        "with their quantities, and shipping is quoted for that cart. Only the quote is asked for.",
    ),
    (  # a single call
        "train-0054",
        "One tool shifts a date by so many days, and both are given. One call settles it.",
    ),
)
