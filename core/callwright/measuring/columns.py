"""Rewards over columns: a data frame or a data set of completions gets the columns of a reward in one line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from callwright.errors import UsageError
from callwright.language.messages import Message
from callwright.plugins import default_registry
from callwright.walk.completion import Completion
from callwright.walk.tasks import task_of

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
        for option, name in (("reward", reward), ("corpus", corpus), ("ir", ir)):
            if not isinstance(name, str):
                raise UsageError(
                    f"a scorer of columns takes the name of a registered {option}, not {name!r:.80}: caches of data "
                    "sets know it by names, and other processes make it again. Score with objects by a recipe's "
                    "score(task, completion, ir=…)"
                )
        self.reward, self.corpus, self.ir, self.options = reward, corpus, ir, options
        self.task, self.completion = task, completion
        self._parts: tuple[Any, Any, Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_parts": None}  # so that its pickle, and a cache's key, is of names and options alone

    def __call__(self, columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        """The columns of the reward. Raises :class:`callwright.UsageError` for a column or value that is of no use."""
        found: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        tasks, completions = self._of(columns, self.task), self._of(columns, self.completion)
        if len(tasks) != len(completions):
            raise UsageError(
                f"the column {self.task!r} has {len(tasks)} rows and {self.completion!r} has {len(completions)}"
            )
        row: tuple[float | None, str, str | None, str]
        for place, (task_id, value) in enumerate(zip(tasks, completions, strict=True)):
            text = self._text(value, place)
            if text is None:
                row = (None, "", "there is no completion", "masked: there is no completion")
            else:
                if not isinstance(task_id, str):
                    raise UsageError(
                        f"row {place}: {self.task!r} holds {task_id!r:.60}: the id of a task is a text, as the corpus "
                        "has it; name another column with task="
                    )
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
        value = _filled(value)
        if _is_missing(value):
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
        scored: Reward = recipe.score(task_of(corpus, task_id), Completion(text), ir=parser)
        return scored


class ConversationScorer:
    """Scores batches of conversations that were held elsewhere: ``dataset.map(cw.scorer("tier"), batched=True)``.

    ``messages``, ``tools`` and ``truth`` name the columns to read, of which the last two may be absent; a cell may be
    the text of JSON, as in many Parquet files. ``tools`` may also be a list of definitions, the same for every row.
    Everything else is as in :func:`callwright.score_messages`; a row without messages is masked.
    """

    def __init__(
        self,
        reward: str = "tier",
        *,
        messages: str = "messages",
        tools: str | Sequence[Any] = "tools",
        truth: str = "truth",
        failed: str = "",
        **options: Any,
    ) -> None:
        self.reward, self.options, self.failed = reward, options, failed
        self.messages, self.tools, self.truth = messages, tools, truth
        self._recipe: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_recipe": None}

    def __call__(self, columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        """The columns of the reward. Raises :class:`callwright.UsageError` for a column that is not there, and
        :class:`callwright.errors.DataError` for what is no conversation.
        """
        if self.messages not in columns:
            known = ", ".join(map(str, columns))
            raise UsageError(f"there is no column {self.messages!r}, but {known}: name another with messages=")
        found: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        for place, said in enumerate(columns[self.messages]):
            row = self._scored(columns, place, _cell(said))
            for name, one in zip(COLUMNS, row, strict=True):
                found[name].append(one)
        return found

    def _scored(self, columns: Mapping[str, Sequence[Any]], place: int, said: Any) -> tuple[Any, ...]:
        from callwright.episodes.logs.scoring import score_messages

        if said is None:
            return None, "", "there is no conversation", "masked: there is no conversation"
        if self._recipe is None:
            self._recipe = default_registry().create("reward recipe", self.reward, **self.options)
        tools: Any = self.tools
        if isinstance(tools, str):
            tools = _cell(columns[tools][place]) if tools in columns else None
        truth = _cell(columns[self.truth][place]) if self.truth in columns else None
        return _row(score_messages(said, tools, truth, self._recipe, failed=self.failed))


def _cell(value: Any) -> Any:
    """A cell without the empty members that tables give to objects of different keys; texts of JSON are read."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    found = _filled(value)
    return None if _is_missing(found) else found


def _is_missing(value: Any) -> bool:
    """Whether a cell holds nothing: ``None``, NaN (unequal to itself), or pandas' NA (which is not even that)."""
    try:
        return value is None or bool(value != value)
    except TypeError:
        return True


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _filled(one) for key, one in value.items() if one is not None}
    if hasattr(value, "tolist"):
        value = value.tolist()
    return [_filled(one) for one in value] if isinstance(value, list | tuple) else value


def _row(reward: Reward) -> tuple[float | None, str, str | None, str]:
    return reward.total, reward.stage, reward.masked, reward.explain()


def scorer(
    reward: str = "tier", *, corpus: str | None = None, ir: str = "json", **options: Any
) -> ColumnScorer | ConversationScorer:
    """A function of columns, for ``datasets.Dataset.map(…, batched=True)``.

    With a corpus it scores completions at its tasks (:class:`ColumnScorer`), without one conversations that were held
    elsewhere (:class:`ConversationScorer`).
    """
    if corpus is None:
        return ConversationScorer(reward, **options)
    return ColumnScorer(reward, corpus=corpus, ir=ir, **options)


def score_frame(
    frame: Any, reward: str = "tier", *, corpus: str | None = None, ir: str = "json", **options: Any
) -> Any:
    """A pandas data frame with the columns of a reward beside its own; the frame itself stays as it is.

    Options are those of :func:`scorer`: ``task=`` and ``completion=``, or ``messages=``, ``tools=`` and ``truth=``,
    name the columns, others are the reward's.

    Raises :class:`callwright.UsageError` for what is no data frame, and as :class:`ColumnScorer` does.
    """
    if not (hasattr(frame, "assign") and hasattr(frame, "columns")):
        raise UsageError(f"score_frame() takes a pandas data frame, not {type(frame).__name__}; scorer() takes columns")
    made = scorer(reward, corpus=corpus, ir=ir, **options)
    columns = {str(name): frame[name].tolist() for name in frame.columns}
    return frame.assign(**made(columns))
