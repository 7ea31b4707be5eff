"""The corpus ``compact-tasks``: a file of tasks for policies with a tiny vocabulary, made of the file's own words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from callwright.errors import DataError, UnknownName, UsageError
from callwright.language.messages import Message
from callwright.language.native import turn_text
from callwright.language.parser import Parser
from callwright.pickling import made_by
from callwright.plugins import Registry, default_registry
from callwright.training.spoken_references import speaks
from callwright.walk.task_rows.reading import read_tasks
from callwright.walk.tasks import Task
from callwright_plugins.task_files import COMPACT
from callwright_plugins.task_files.corpus import TasksCorpus
from callwright_plugins.task_files.habits import ENOUGH, INSISTS, Habits, lived, withheld_values

#: Words take the space behind them along; numbers and what is quoted stand alone, so that a value is the same piece
#: where it is said and where it is written into a call. Two digits are a piece: of three there are too many to be
#: learnt.
_WORD: Final = re.compile(r"[A-Za-z_]+ ?|[0-9]{1,2}|[^\w\s]\n?")
#: Of calls and results what stands between two values is one piece, keys included.
_JSON: Final = re.compile(r'(?:"\w+": ?|[{}\[\],:"\n]|(?<=,) |</?tool_call>)+|[A-Za-z_]+ ?|[0-9]{1,2}|[^\w\s]')


class CompactTasksCorpus(TasksCorpus):
    """The corpus ``compact-tasks``: the tasks of a file, and what a model that is made from scratch needs beside them.

    A prompt is the names of the offered tools, in order of the alphabet, and the query. ``shown`` is a file of tasks
    whose references, spoken turn by turn, are the demonstrations; without it those of the split ``train`` are.
    The vocabulary is made of them alone: words that only other tasks have are read byte by byte. ``form`` is the
    intermediate representation in which calls are written. The other options are those of the corpus ``tasks``.

    Raises :class:`callwright.errors.DataError` as ``tasks`` does, and where no task has a reference to speak.
    """

    def __init__(
        self,
        file: str | Path,
        shown: str | Path | None = None,
        form: str = "hermes",
        any_version: bool = False,
        trust: bool = False,
        registry: Registry | None = None,
        pass_from: float | None = None,
        pass_to: float | None = None,
        test_file: str | Path | None = None,
    ) -> None:
        super().__init__(file, any_version, trust, registry, pass_from, pass_to, test_file)
        if shown is not None and not isinstance(shown, str | Path):
            raise UsageError(f"option 'shown' of {COMPACT} is a path, not {shown!r:.80}")
        if not isinstance(form, str):
            raise UsageError(f"option 'form' of {COMPACT} is the name of a form, not {form!r:.80}")
        self._compact = (Path(file).absolute(), None if shown is None else Path(shown).absolute(), form)
        self._parser: Parser = (registry or default_registry()).create("parser", form)
        other = None if shown is None else read_tasks(shown, any_version=any_version, trust=trust, registry=registry)
        splits = self._file.splits if other is None else other.splits
        if "train" not in splits:
            raise UnknownName(f"split of {Path(shown or file).name}", "train", splits)
        self._shown: Sequence[Task] = splits["train"]
        self._spoken: dict[str, tuple[Message, ...]] = {}

    def __reduce__(self) -> Any:
        """As the files, which must be where it is unpickled."""
        return made_by(self, CompactTasksCorpus, *self._compact, *self._options[1:], None, *self._band, self._test_file)

    @property
    def name(self) -> str:
        """``compact-tasks``."""
        return COMPACT

    def prompt_text(self, task: Task) -> str:
        """The prompt of a task: the names of the tools that are offered, and what the user says first."""
        return f"{' '.join(sorted(task.offered))}\n{task.query}\n"

    def vocabulary(self) -> list[str]:
        """The pieces of which the demonstrations are made, in order of the alphabet."""
        found = {" ", "\n", ENOUGH, INSISTS}
        speaking = 0
        for task in self._shown:
            if not speaks(task):
                continue
            speaking += 1
            found.update(pieces((Message.user(self.prompt_text(task)), *self.spoken(task)), self._parser))
        if not speaking:
            raise DataError(
                f"{self._compact[1] or self._compact[0]} has no task with a reference turn by turn: a fact 'gold', a "
                'list of {"say": text} and {"calls": [{"tool", "arguments"}]}; a program alone is none'
            )
        return sorted(found)

    def spoken(self, task: Task) -> tuple[Message, ...]:
        """The conversation of a reference, made once."""
        found = self._spoken.get(task.id)
        if found is None:
            found = self._spoken[task.id] = lived(task, self._parser)
        return found

    def demonstrations(
        self, seed: int, count: int, options: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[Task, Sequence[Message]]]:
        """``count`` tasks (all, where there are fewer) with the conversations of their references, drawn by ``seed``.

        ``options`` are bad habits: ``stops`` is how often (from 0 to 1, by default 0) it is said that all is done when
        a call is due that follows upon another one's result, and said again each time that the user insists;
        ``guesses`` how often a value is made up that the user should be asked for. Raises
        :class:`callwright.UsageError` for any other option or value.
        """
        return self._demonstrate(seed, count, Habits.read(options or {}))

    def _demonstrate(self, seed: int, count: int, habits: Habits) -> Iterator[tuple[Task, Sequence[Message]]]:
        speaking = [task for task in self._shown if speaks(task)]
        values = withheld_values(speaking)
        rng = Random(f"{COMPACT}/{seed}")
        for task in rng.sample(speaking, min(count, len(speaking))):
            yield task, habits.spoken(task, self._parser, rng, values)


def pieces(messages: Iterable[Message], parser: Parser) -> Iterator[str]:
    """The pieces of a conversation: words and numbers of what is said, and what stands between values in JSON."""
    for message in messages:
        text = turn_text(message, parser) if message.role == "assistant" else message.text
        yield from (_JSON if "{" in text else _WORD).findall(text)
