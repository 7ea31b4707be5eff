"""Rewards over columns: a data frame or a data set of completions gets the columns of a reward in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from callwright.errors import UsageError
from callwright.language.messages import Message
from callwright.plugins import default_registry
from callwright.walk.completion import Completion

if TYPE_CHECKING:
    from callwright.walk.reward import Reward

#: What a reward adds to a row: the total (``None`` where it is masked), where the first point was lost, and why.
COLUMNS = ("reward", "stage", "masked", "why")


class ColumnScorer:
    """Scores batches of columns: ``dataset.map(cw.scorer("tier", corpus="toolworld-mini-v1"), batched=True)``.

    Called with columns by name, it returns the columns :data:`COLUMNS`. What it is made of are names and options alone:
    a data set that is mapped with the same ones again is taken from the cache. ``task`` and ``completion`` name the
    columns to read. A completion is a text, or a list of messages of which the last is the assistant's; a row whose
    completion is ``None`` or NaN is masked.
    """

    def __init__(
        self,
        reward: str = "tier",
        *,
        corpus: str,
        ir: str = "json",
        task: str = "task",
        completion: str = "completion",
        **options: Any,
    ) -> None:
        self.reward, self.corpus, self.ir, self.options = reward, corpus, ir, options
        self.task, self.completion = task, completion
        self._parts: tuple[Any, Any, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_parts": None}  # so that its pickle, and a cache's key, is of names and options alone

    def __call__(self, columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        """The columns of the reward. Raises :class:`callwright.UsageError` for a column or value that is of no use."""
        found: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        tasks, completions = self._of(columns, self.task), self._of(columns, self.completion)
        row: tuple[float | None, str, str | None, str]
        for place, (task_id, value) in enumerate(zip(tasks, completions, strict=True)):
            text = self._text(value, place)
            if text is None:
                row = (None, "", "there is no completion", "masked: there is no completion")
            else:
                row = _row(self._score(task_id, text))
            for name, one in zip(COLUMNS, row, strict=True):
                found[name].append(one)
        return found

    def _of(self, columns: Mapping[str, Sequence[Any]], name: str) -> Sequence[Any]:
        try:
            return columns[name]
        except KeyError:
            known = ", ".join(map(str, columns))
            hint = "name another with task= or completion="
            raise UsageError(f"there is no column {name!r}, but {known}: {hint}") from None

    def _text(self, value: Any, place: int) -> str | None:
        if value is None or value != value:  # NaN, and pandas' NA, are unequal to themselves
            return None
        if isinstance(value, str):
            return value
        if isinstance(value, list | tuple) and value and isinstance(value[-1], dict):
            last = Message.from_openai(value[-1])
            if last.role == "assistant":
                return last.text
            raise UsageError(f"row {place}: the last message of {self.completion!r} is of the role {last.role!r}")
        raise UsageError(
            f"row {place}: {self.completion!r} holds {type(value).__name__}: a completion is a text, or a list of "
            "messages that ends with the assistant's"
        )

    def _score(self, task_id: Any, text: str) -> Reward:
        if self._parts is None:
            registry = default_registry()
            self._parts = (
                registry.create("corpus", self.corpus),
                registry.create("reward recipe", self.reward, **self.options),
                registry.create("parser", self.ir),
            )
        corpus, recipe, parser = self._parts
        scored: Reward = recipe.score(corpus.task(task_id), Completion(text), ir=parser)
        return scored


def _row(reward: Reward) -> tuple[float | None, str, str | None, str]:
    return reward.total, reward.stage, reward.masked, reward.explain()


def scorer(reward: str = "tier", *, corpus: str, ir: str = "json", **options: Any) -> ColumnScorer:
    """A function of columns, for ``datasets.Dataset.map(…, batched=True)``; see :class:`ColumnScorer`."""
    return ColumnScorer(reward, corpus=corpus, ir=ir, **options)


def score_frame(frame: Any, reward: str = "tier", *, corpus: str, ir: str = "json", **options: Any) -> Any:
    """A pandas data frame with the columns of a reward beside its own; the frame itself stays as it is.

    Options are those of :class:`ColumnScorer`: ``task=`` and ``completion=`` name the columns, others are the reward's.
    Raises :class:`callwright.UsageError` for what is no data frame, and as :class:`ColumnScorer` does.
    """
    if not (hasattr(frame, "assign") and hasattr(frame, "columns")):
        raise UsageError(f"score_frame() takes a pandas data frame, not {type(frame).__name__}; scorer() takes columns")
    made = scorer(reward, corpus=corpus, ir=ir, **options)
    columns = {str(name): frame[name].tolist() for name in frame.columns}
    return frame.assign(**made(columns))
