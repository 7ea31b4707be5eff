"""What a log does not state: what would have been right, and which tools were offered. Nobody guesses it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NoReturn

from callwright.episodes.logs.world import UnknownWorld
from callwright.errors import Abstention
from callwright.tools.spec import ToolSpec
from callwright.walk.tasks import Answer, Task


class UnstatedAnswer(Answer):
    """The answer of a task of which only a log is known. A reward that needs it abstains: the sample is masked."""

    __slots__ = ()

    def __init__(self) -> None:
        pass

    @property
    def values(self) -> NoReturn:
        """Always raises :class:`callwright.errors.Abstention`."""
        raise _unstated()

    @property
    def others(self) -> NoReturn:
        """Always raises :class:`callwright.errors.Abstention`."""
        raise _unstated()

    @property
    def open(self) -> NoReturn:
        """Always raises :class:`callwright.errors.Abstention`."""
        raise _unstated()

    def __repr__(self) -> str:
        return "UnstatedAnswer()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnstatedAnswer)

    def __hash__(self) -> int:
        return hash(UnstatedAnswer)

    def __reduce__(self) -> Any:
        return UnstatedAnswer, ()


def _unstated() -> Abstention:
    return Abstention(
        "the log does not say which answer would have been right: give its task, or a truth that has it under 'answer'"
    )


def abstain_without_calls(task: Task) -> None:
    """Raise :class:`callwright.errors.Abstention` for the task of a log that does not state which calls were due.

    For rewards that need them. A task of a corpus that has none is a mistake of whoever chose the reward for it; a log
    is one of many, and what it does not say masks it.
    """
    if isinstance(task.answer, UnstatedAnswer) or (isinstance(task.environment, UnknownWorld) and task.answer.values):
        raise Abstention(
            "the log does not say which calls were due: give its task, or a truth that has them under 'calls'"
        )


class UnstatedTools(Mapping[str, ToolSpec]):
    """The tools of a log that states none. A reward that needs the specification of one abstains."""

    def __getitem__(self, name: str) -> ToolSpec:
        raise Abstention("the log does not say which tools were offered: state them with tools=, or --tools")

    def __contains__(self, name: object) -> bool:
        return False

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


UNSTATED_ANSWER: Final = UnstatedAnswer()
UNSTATED_TOOLS: Final = UnstatedTools()
