"""Training data held against what a model is measured on: what they share, each kind counted from both sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Final

from attrs import field, frozen

from callwright.measuring.overlap import KINDS
from callwright.measuring.overlap.entries import Entry, readable_calls
from callwright.measuring.overlap.grams import LENGTH, NearIndex, character_grams, word_grams, words_of

_LONGEST: Final = 120


@frozen
class Finding:
    """What an entry of the training data shares: with which entry (the nearest, else the first), and how many more.

    ``similarity`` is Jaccard's over runs of thirteen characters, 1 for equal prompts and ``None`` of other kinds.
    """

    kind: str
    train: str
    against: str
    what: str
    more: int = 0
    similarity: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The finding as a row."""
        row: dict[str, Any] = {"kind": self.kind, "train": self.train, "against": self.against, "what": self.what}
        if self.similarity is not None:
            row["similarity"] = self.similarity
        return {**row, "more": self.more}


@frozen(eq=False)
class Overlap:
    """What training data shares with one source: findings, and by kind how many entries of each side are concerned."""

    against: str
    entries: int
    findings: Sequence[Finding] = field(repr=False)
    train: dict[str, int]
    hit: dict[str, int]


class Source:
    """Tasks or rows that a model is measured on, indexed. ``least`` is the similarity from which prompts are near."""

    def __init__(self, name: str, entries: Sequence[Entry], least: Fraction) -> None:
        self.name, self.entries = name, entries
        self._prompts = [_normal(entry.prompt) for entry in entries]
        self._near = NearIndex((character_grams(text) for text in self._prompts), least)
        self._shared: dict[tuple[str, str], list[int]] = {}
        for place, entry in enumerate(entries):
            for kind, key in _keys(entry, self._prompts[place]):
                self._shared.setdefault((kind, key), []).append(place)
        self._findings: list[Finding] = []
        self._train: dict[str, int] = dict.fromkeys(KINDS, 0)
        self._hit: dict[str, set[int]] = {kind: set() for kind in KINDS}

    def hold(self, entry: Entry) -> None:
        """Hold an entry of the training data against it."""
        prompt = _normal(entry.prompt)
        found: dict[str, dict[int, tuple[str, Fraction | None]]] = {}
        for kind, key in _keys(entry, prompt):
            for place in self._shared.get((kind, key), ()):
                what = entry.schemas[key] if kind == "schema" else readable_calls(key) if kind == "calls" else key
                found.setdefault(kind, {}).setdefault(place, (what, Fraction(1) if kind == "prompt" else None))
        for place, nearness in self._near.near(character_grams(prompt)):
            if self._prompts[place] != prompt:
                found.setdefault("near", {})[place] = (self._prompts[place], nearness)
        for kind in KINDS:
            if not (places := found.get(kind)):
                continue
            first = next(iter(places)) if kind == "near" else min(places)
            what, similarity = places[first]
            self._findings.append(
                Finding(
                    kind,
                    entry.name,
                    self.entries[first].name,
                    what if len(what) <= _LONGEST else what[: _LONGEST - 1] + "…",
                    len(places) - 1,
                    None if similarity is None else float(similarity),
                )
            )
            self._train[kind] += 1
            self._hit[kind].update(places)

    def overlap(self) -> Overlap:
        """What was found."""
        hit = {kind: len(places) for kind, places in self._hit.items()}
        return Overlap(self.name, len(self.entries), tuple(self._findings), dict(self._train), hit)


def overlaps(train: Iterable[Entry], sources: Sequence[Source]) -> tuple[int, list[Overlap]]:
    """The number of training entries, and what they share with each source. They are read once, one at a time."""
    count = 0
    for entry in train:
        count += 1
        for source in sources:
            source.hold(entry)
    return count, [source.overlap() for source in sources]


def _normal(prompt: str) -> str:
    return " ".join(words_of(prompt))


def _keys(entry: Entry, prompt: str) -> Iterator[tuple[str, str]]:
    """What is shared if it is equal, in an order that does not hang on hashes."""
    for name in sorted(entry.ids):
        yield "id", name
    if prompt:
        yield "prompt", prompt
        for gram in sorted(word_grams(prompt.split(), LENGTH)):
            yield "words", gram
    for schema in entry.schemas:
        yield "schema", schema
    for calls in sorted(entry.gold):
        yield "calls", calls
