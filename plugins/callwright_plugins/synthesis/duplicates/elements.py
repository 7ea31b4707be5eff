"""What sets are compared by: the elements of a sequence of calls, and the shingles of a text."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from callwright.language.program import Call, plain

_WORD: Final = re.compile(r"\w+")


def elements(calls: Iterable[Call]) -> frozenset[str]:
    """The elements of a sequence of calls: each tool, each key of its arguments, and each value under its key.

    Names of tools alone would make nearly everything a duplicate: a server of ten tools has 627 sets of two to five
    names. Values are JSON with sorted keys, references their text. What occurs again is another element, numbered, so
    that three transfers are not one; the order of calls is none.
    """
    counts: Counter[str] = Counter()
    found = []
    for element in _elements(calls):
        counts[element] += 1
        again = counts[element]
        found.append(element if again == 1 else f"{element}\n{again}")
    return frozenset(found)


def _elements(calls: Iterable[Call]) -> Iterator[str]:
    for call in calls:
        yield call.tool
        for key, value in call.arguments.items():
            yield f"{call.tool}\t{key}"
            yield f"{call.tool}\t{key}\t{json.dumps(plain(value), sort_keys=True, ensure_ascii=False)}"


def shingles(text: str, width: int = 3) -> frozenset[str]:
    """The runs of ``width`` words of a text, whatever their case and what stands between them.

    A text of fewer words is one shingle; one without words has none.
    """
    words = _WORD.findall(text.casefold())
    if len(words) <= width:
        return frozenset({" ".join(words)}) if words else frozenset()
    return frozenset(" ".join(words[at : at + width]) for at in range(len(words) - width + 1))
