"""Rows about whether to call at all as tasks: each over the tools of its own row, which echo their arguments."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from callwright.errors import CallwrightError
from callwright.language.program import Program, plain
from callwright.plugins import Registry
from callwright.walk.tasks import Answer, Task
from callwright_plugins.data_preparation.conversations import BadRow
from callwright_plugins.data_preparation.decisions import DECISIONS, Decided
from callwright_plugins.data_preparation.reading import read_values
from callwright_plugins.data_preparation.schema_echo.corpus import Row, expected_of, fits, program_of
from callwright_plugins.data_preparation.schema_echo.environment import ARGUMENTS, NAME

#: What a data set is called in the facts of its tasks.
SOURCES: Final[Mapping[str, str]] = {"when2call": "When2Call", "irrelevance": "xLAM-irrelevance"}


@define
class Imported:
    """What became of the rows of some files; :meth:`tasks` fills it while they are read."""

    registry: Registry
    kinds: Counter[str] = field(factory=Counter)
    left_out: Counter[str] = field(factory=Counter)

    def tasks(self, name: str, file: Path, advance: Callable[[int], object] = lambda size: None) -> Iterator[Task]:
        """The tasks of a file of the data set ``name``, in its order; equal requests over equal tools count once.

        Raises :class:`callwright.errors.DataError` for a file that is missing or damaged.
        """
        seen: set[str] = set()
        for number, value in enumerate(read_values(file, advance)):
            try:
                if not isinstance(value, Mapping):
                    raise BadRow("not an object")
                read = DECISIONS[name](value)
                key = f"{read.query}\0{sorted(tool.name for tool in read.tools)}"
                if key in seen:
                    raise BadRow("the same request over the same tools")
                task = self._task(f"{name}-{read.split}-{number}", SOURCES[name], read)
            except BadRow as error:
                self.left_out[str(error)] += 1
                continue
            seen.add(key)
            self.kinds[read.kind] += 1
            yield task

    def _task(self, task_id: str, source: str, read: Decided) -> Task:
        try:
            definitions = json.dumps(read.definitions, ensure_ascii=False, allow_nan=False)
            environment = self.registry.create("environment", NAME, definitions=definitions)
        except (CallwrightError, TypeError, ValueError) as error:
            raise BadRow("tools whose schemas are not valid") from error
        row = Row(task_id, read.split, read.query, environment.tools, read.calls)
        if not fits(row):
            raise BadRow("calls that do not fit their schemas")
        program = program_of(row) if read.calls else Program((), text=read.words or None)
        steps: list[dict[str, Any]] = [
            {"calls": [{"name": call.tool, "arguments": plain(call.arguments)}], "after": [], "turn": 0}
            for call in program.calls
        ]
        return Task(
            id=task_id,
            query=read.query,
            tools=environment.tools,
            answer=Answer(
                tuple(expected_of(called, environment.tools.get(called.tool)) for called in read.calls),
                open=(ARGUMENTS,) if read.calls else (),
            ),
            environment=environment,
            split=read.split,
            depth=len(read.calls),
            chain=min(len(read.calls), 1),
            structure=program.structure,
            returns=program.returns,
            program=program,
            facts={"kind": read.kind, "steps": steps, "source": source, "changes_nothing": True},
        )
