"""Which rows of a batch are computed together: a number of parts, or parts of at most so many tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def by_count(lengths: Sequence[int], count: int) -> list[list[int]]:
    """The rows of these lengths in ``count`` parts, sorted by length, so that little of each part is padding."""
    order = sorted(range(len(lengths)), key=lambda row: (lengths[row], row))
    size = max(1, -(-len(order) // count))
    return [order[start : start + size] for start in range(0, len(order), size)]


def by_tokens(rows: Iterable[tuple[int, int, int]], most: int) -> Iterator[list[int]]:
    """Rows ``(row, length of the prompt, length of the rest)`` in parts, in their order.

    A part has at most ``most`` tokens when its prompts and the rest are padded to the longest of them. A row that is
    longer is a part by itself.
    """
    part: list[int] = []
    prompt = rest = 0
    for row, before, after in rows:
        wider, longer = max(prompt, before), max(rest, after)
        if part and (len(part) + 1) * (wider + longer) > most:
            yield part
            part, wider, longer = [], before, after
        part.append(row)
        prompt, rest = wider, longer
    if part:
        yield part


def blocks_by_tokens(
    prompts: Sequence[int], owners: Sequence[int], lengths: Sequence[int], most: int
) -> Iterator[tuple[tuple[int, ...], list[list[int]]]]:
    """Prompts that are computed together, and the parts of their rows; neither has more than ``most`` tokens.

    ``prompts`` are the lengths of prompts, ``owners`` the index of each row's, ``lengths`` the rows' own.
    """
    rows: dict[int, list[int]] = {}
    for row, owner in enumerate(owners):
        rows.setdefault(owner, []).append(row)
    sizes = [(owner, prompts[owner], 0) for owner in sorted(rows, key=lambda owner: (prompts[owner], owner))]
    for together in by_tokens(sizes, most):
        mine = sorted((row for owner in together for row in rows[owner]), key=lambda row: (lengths[row], row))
        widest = max(prompts[owner] for owner in together)
        yield tuple(together), list(by_tokens([(row, widest, lengths[row]) for row in mine], most))
