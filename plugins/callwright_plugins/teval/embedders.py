"""How alike texts are: a component. The official one is a model of sentences; another one makes other numbers.

An embedder has a ``name``, says in ``unofficial`` why its numbers are not the official ones (empty where they are), and
gives the cosines of texts. Nothing is loaded before it is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import sqrt
from typing import Any, Final, Protocol, runtime_checkable

from callwright.errors import DataError, MissingExtra, UnknownName, UsageError

#: The model of the official program, for English.
OFFICIAL_MODEL: Final = "all-mpnet-base-v2"


@runtime_checkable
class Embedder(Protocol):
    """Cosines of texts."""

    @property
    def name(self) -> str:
        """What results call it."""

    @property
    def unofficial(self) -> str:
        """Why results are not official with it, in a sentence; empty where they are."""

    def similarity(self, left: Sequence[str], right: Sequence[str]) -> Sequence[Sequence[float]]:
        """``[len(left)][len(right)]`` cosines in [-1, 1]; both are at least one text."""


class SentenceTransformers:
    """The official embedder: ``model`` is the name or the folder of a model of the package ``sentence-transformers``.

    The texts of each side are encoded in one go, as the official program does it, so that cosines agree to the last
    bit on the same machine.
    """

    name = "sentence-transformers"

    def __init__(self, model: str = OFFICIAL_MODEL) -> None:
        self.model = model

    def __reduce__(self) -> Any:
        return type(self), (self.model,)

    @property
    def unofficial(self) -> str:
        """Empty for the official model."""
        if self.model.rstrip("/").rpartition("/")[2] == OFFICIAL_MODEL:
            return ""
        return f"texts are compared by the model {self.model} in place of {OFFICIAL_MODEL}"

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        try:
            from sentence_transformers import SentenceTransformer, util
        except ImportError as error:
            raise MissingExtra(
                "T-Eval's embedder (embedder=trigrams needs nothing, and is not official)",
                "teval",
                error.name or "sentence-transformers",
            ) from error
        try:
            return SentenceTransformer(self.model), util.cos_sim
        except (OSError, ValueError) as error:
            raise DataError(
                f"the model {self.model!r} of sentences cannot be loaded: {error}. Download it, and name its folder "
                "with embedder_model=DIR"
            ) from error

    def similarity(self, left: Sequence[str], right: Sequence[str]) -> Sequence[Sequence[float]]:
        """``[len(left)][len(right)]`` cosines of the model's embeddings, in its own precision.

        Raises :class:`callwright.errors.MissingExtra` without the package, and :class:`callwright.errors.DataError`
        for a model that cannot be loaded.
        """
        model, cos_sim = self._loaded
        one, other = (model.encode(list(texts), convert_to_tensor=True) for texts in (left, right))
        found: Sequence[Sequence[float]] = cos_sim(one, other).cpu().numpy()
        return found


class Trigrams:
    """A stand-in without weights, for tests and dry runs: the cosine of the counts of three characters in a row.

    Equal texts have exactly 1. It knows nothing of what words mean.
    """

    name = "trigrams"
    unofficial = f"texts are compared by their runs of three characters in place of {OFFICIAL_MODEL}"

    def similarity(self, left: Sequence[str], right: Sequence[str]) -> Sequence[Sequence[float]]:
        """``[len(left)][len(right)]`` cosines; 0 where a text is empty."""
        counted = [(_counts(text), text) for text in right]
        return [[_cosine(_counts(text), text, *other) for other in counted] for text in left]


def _counts(text: str) -> Counter[str]:
    padded = f"  {text} " if text else ""
    return Counter(padded[at : at + 3] for at in range(len(padded) - 2))


def _cosine(one: Counter[str], text: str, other: Counter[str], other_text: str) -> float:
    if not one or not other:
        return 0.0
    if text == other_text:
        return 1.0
    small, large = sorted((one, other), key=len)
    shared = sum(count * large[gram] for gram, count in small.items())
    lengths = sqrt(sum(count * count for count in one.values())) * sqrt(sum(count * count for count in other.values()))
    return min(shared / lengths, 1.0)


_KNOWN: Final[Mapping[str, Callable[..., Embedder]]] = {
    SentenceTransformers.name: SentenceTransformers,
    Trigrams.name: Trigrams,
}


def embedder_of(stated: str | Embedder, model: str | None) -> Embedder:
    """The embedder of a name, with its model; one that is made already is taken as it is.

    Raises :class:`callwright.errors.UnknownName`, and :class:`callwright.UsageError` for a model where none is used.
    """
    if not isinstance(stated, str):
        if not isinstance(stated, Embedder):
            raise UsageError(f"'embedder' is a name or has 'name', 'unofficial' and 'similarity', not {stated!r:.80}")
        return stated
    if stated not in _KNOWN:
        raise UnknownName("embedder", stated, list(_KNOWN))
    if model is None:
        return _KNOWN[stated]()
    if stated != SentenceTransformers.name:
        raise UsageError(f"'embedder_model' goes with embedder={SentenceTransformers.name}, not with {stated}")
    return SentenceTransformers(model)
