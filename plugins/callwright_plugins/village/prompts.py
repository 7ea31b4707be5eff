"""The village for models with a tiny vocabulary: a compact prompt, and the pieces that its conversations are made of.

A tokenizer takes the longest piece that fits, from left to right. Names, words and numbers are pieces by themselves, so
that what is copied is the same piece wherever it stands; what stands between them in calls and results is one piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from callwright.walk.tasks import Task
from callwright_plugins.village import errands
from callwright_plugins.village.bakery import CAKES
from callwright_plugins.village.people import ANIMALS, COLOURS

TOOLS: Final = ("list_cakes", "order_cake", "bring_order", "cancel_order", "get_balance", "pay", "put_by")
_SENTENCES: Final = (
    errands.ASK,
    errands.DONE,
    errands.WAIT,
    errands.INSISTS,
    errands.THANKS,
    errands.BRING,
    errands.CANCEL,
    *errands.TELLS.split("{password}"),
    "Order ",
    " cakes and pay for them.",
    " cakes. I pay later.",
    "Put ",
    " by.",
)
_BETWEEN: Final = (
    # of calls, in the form hermes
    '<tool_call>\n{"name": "',
    '", "arguments": {"cake": "',
    '", "number": ',
    '", "arguments": {"amount": ',
    ', "password": "',
    '", "arguments": {"order": "',
    '", "arguments": {}}\n</tool_call>',
    '"}}\n</tool_call>',
    "}}\n</tool_call>",
    # of results
    '{"id":0,"name":"',
    '","result":{"order":"',
    '","price":',
    ',"minutes":',
    '","result":{"balance":',
    '","state":"brought"}',
    '","state":"cancelled"}',
    '","error":{"code":"NOT_BAKED","message":"it is still in the oven"}',
    '","error":{"code":"OVER","message":"that order is over"}',
    '","error":{"code":"NOT_FOUND","message":"there is no such order"}',
    '","error":{"code":"BAD_PASSWORD","message":"that is not the password"}',
    '","error":{"code":"LOCKED","message":"the purse is locked"}',
    '","error":{"code":"TOO_LITTLE","message":"that is more than there is"}',
    ',"notices":["',
    ' is baked."]}',
    " is baked.",
)


def prompt_text(task: Task) -> str:
    """The compact prompt of a task: the offered tools, and what the user says first."""
    offered = " ".join(name for name, spec in task.tools.items() if not spec.hidden)
    return f"{offered}\n{task.query}\n"


@cache
def vocabulary() -> tuple[str, ...]:
    """Every piece, without repetition, in a fixed order."""
    return tuple(dict.fromkeys(_pieces()))


def _pieces() -> Iterator[str]:
    yield " ".join(TOOLS)
    yield from TOOLS
    yield from _SENTENCES
    yield from _BETWEEN
    yield from CAKES
    yield from COLOURS
    yield from ANIMALS
    yield from (str(number) for number in range(100))
    yield from " \n"


def words(text: str) -> list[str]:
    """A text in pieces, characters where none fits."""
    found: list[str] = _pattern().findall(text)
    return found


@cache
def _pattern() -> re.Pattern[str]:
    longest = sorted(vocabulary(), key=lambda piece: (-len(piece), piece))
    return re.compile("|".join([*map(re.escape, longest), r"[\s\S]"]))
