"""Rows of episodes: the completions of all turns, and what the user said and did between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from callwright.errors import DataError
from callwright.walk.completion import Completion
from callwright.walk.users.said import Said


@frozen
class EpisodeRow:
    """The completions of an episode, and what its user said and did after each; empty where there is no user."""

    completions: tuple[Completion, ...]
    said: tuple[Said | None, ...] = ()


def episode_of(row: Mapping[str, Any]) -> EpisodeRow | None:
    """The turns of a row, ``None`` if it has none: one completion is all there is.

    An evaluation writes ``completions`` and, where there is a user, ``said``; a run writes ``turns``, each with its
    ``completion`` and what the ``user`` said after it. Raises :class:`callwright.errors.DataError` for anything
    else under these names.
    """
    if "completions" in row:
        texts, said = row["completions"], row.get("said", [])
    elif "turns" in row:
        turns = row["turns"]
        if not isinstance(turns, list) or not all(isinstance(turn, Mapping) for turn in turns):
            raise DataError("'turns' must be a list of objects")
        texts, said = [turn.get("completion") for turn in turns], [turn.get("user") for turn in turns]
    else:
        return None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise DataError("the completions of an episode must be texts")
    if not isinstance(said, list) or len(said) > len(texts):
        raise DataError("'said' must be a list, with no more entries than there are completions")
    if not texts:
        return None
    heard = tuple(None if one is None else Said.from_json(one) for one in said)
    made = [Completion(text) for text in texts]
    if row.get("truncated") is True:
        made[-1] = evolve(made[-1], truncated=True)
    return EpisodeRow(tuple(made), heard if any(one is not None for one in heard) else ())


def as_masked(row: Mapping[str, Any], completions: Sequence[Completion]) -> tuple[Completion, ...]:
    """The completions of a row; of one that an evaluation has masked the last says so.

    What the model would have written is not known then: to score what is there would make it a number.
    """
    if row.get("masked") is not True:
        return tuple(completions)
    reason = row.get("lost")
    why = reason if isinstance(reason, str) and reason else "the evaluation masked it"
    return (*completions[:-1], evolve(completions[-1], masked=why))
