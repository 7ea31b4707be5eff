"""The samples of a release as tasks, its worked examples, and the machine that runs its functions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from callwright.errors import DataError, InfrastructureFailure, UnknownName, UsageError
from callwright.machines.foreign_code.code import ForeignCode, ForeignLimits, ForeignLost, ForeignRaised
from callwright.pickling import made_by
from callwright.tools.spec import ToolSpec
from callwright.walk.tasks import Answer, Task
from callwright_plugins.nestful import NAME
from callwright_plugins.nestful.answers import program_of
from callwright_plugins.nestful.environment import NestfulFunctions
from callwright_plugins.nestful.execution import BASIC, UNKNOWN, Table, followed
from callwright_plugins.nestful.reading import Sample, examples_of, found, output_of, rows_of, samples_of, spec_of

_SPLIT: Final = "test"
#: Seconds of one sequence, as in the release's scorer.
SECONDS: Final = 10.0
#: How long a process that does not look at its clock is waited for, over that.
_PATIENCE: Final = 20.0
_FILE: Final = "execution.py"
#: Whether the answer is gold; why there is none; that in words; the answer as text.
Win = tuple[bool, str, str, str]


class NestfulCorpus:
    """The samples of a release. ``data`` is its folder or file, ``package`` the folder of its functions.

    Raises :class:`callwright.errors.DataError` for a folder without samples, and :class:`callwright.UsageError` for a
    package that is none.
    """

    def __init__(
        self, data: str | Path, version: str, package: str | Path | None = None, interpreter: str | None = None
    ) -> None:
        self._data, self.version = Path(data).absolute(), version
        self.samples = {sample.id: sample for sample in samples_of(self._data, version)}
        self._folder = None if package is None or version != "2" else _functions_in(Path(package).absolute())
        self._interpreter = interpreter
        self._examples = examples_of(self._data)

    def __reduce__(self) -> Any:
        package = None if self._folder is None else str(self._folder)
        return made_by(self, NestfulCorpus, str(self._data), self.version, package, self._interpreter)

    @property
    def name(self) -> str:
        return NAME

    @property
    def executes(self) -> bool:
        """Whether the functions are there."""
        return self._folder is not None

    @property
    def splits(self) -> Mapping[str, int]:
        """``test``: all of them."""
        return {_SPLIT: len(self.samples)}

    def __getitem__(self, split: str) -> Sequence[Task]:
        """All tasks, in the order of the file."""
        if split != _SPLIT:
            raise UnknownName(f"split of {NAME}", split, [_SPLIT])
        return [self.task(one) for one in self.samples]

    def task(self, task_id: str) -> Task:
        """The task of a sample. Raises :class:`callwright.errors.UnknownName`."""
        if task_id not in self.samples:
            raise UnknownName(f"sample of {NAME}", task_id, self.samples)
        if task_id not in self._made:
            self._made[task_id] = self._task(self.samples[task_id])
        return self._made[task_id]

    def shots(self, task: Task, count: int) -> Sequence[Task]:
        """The first ``count`` of the release's worked examples, the same for every task; it has three."""
        return [self._task(sample) for sample in self._examples[:count]]

    @cached_property
    def _made(self) -> dict[str, Task]:
        return {}

    @cached_property
    def environment(self) -> NestfulFunctions:
        """Where programs are executed."""
        tools: dict[str, ToolSpec] = {}
        known = {**self.samples, **{sample.id: sample for sample in self._examples}}
        for sample in known.values():
            for tool in sample.tools:
                tools.setdefault(tool["name"], self._spec(tool))
        run = self._run if self.version == "2" else None
        made = (_environment_of, str(self._data), self.version, self.__reduce__()[1][1][2], self._interpreter)
        return NestfulFunctions(known, tools, run, made)

    @cached_property
    def _specs(self) -> dict[str, ToolSpec]:
        return {}

    def _spec(self, tool: Mapping[str, Any]) -> ToolSpec:
        key = json.dumps(tool)
        if key not in self._specs:
            self._specs[key] = spec_of(tool)
        return self._specs[key]

    def _task(self, sample: Sample) -> Task:
        program = program_of(sample)
        outputs = {tool["name"]: output_of(tool) for tool in sample.tools}
        return Task(
            id=sample.id,
            query=sample.query,
            tools={tool["name"]: self._spec(tool) for tool in sample.tools},
            answer=Answer(({outputs.get(program.calls[-1].tool, ""): sample.gold},)),
            environment=self.environment,
            scenario=sample.id,
            split=_SPLIT,
            depth=program.depth,
            chain=program.chain,
            structure=program.structure,
            program=program,
        )

    # Execution --------------------------------------------------------------------------------------------------------

    def wins(self, asked: Sequence[tuple[Sample, Any]]) -> list[Win | InfrastructureFailure]:
        """For written calls of samples: whether they give the gold answer; why not; that in words; the answer as text.

        In its place stands why nothing is known: a call that is not in the table of recorded results, a module that is
        not installed, a process that was lost. Several are sent to the process at once; if it is lost, one by one.
        """
        if self._folder is None:
            return [self._looked_up(sample, written) for sample, written in asked]
        texts = [f'{{"calls": {json.dumps(written)}, {self._rest(sample)}}}' for sample, written in asked]
        try:
            limit = len(texts) * SECONDS + _PATIENCE
            found = self._code.call(f"{_FILE}:win_each", str(self._folder), texts, SECONDS, time_limit=limit)
        except (ForeignLost, ForeignRaised) as error:  # raised by a file that ends the interpreter as it is loaded
            if len(asked) > 1:
                return [one for pair in asked for one in self.wins([pair])]
            return [InfrastructureFailure(str(error))]
        return [_known(one) for one in found]

    def _looked_up(self, sample: Sample, written: Any) -> Win | InfrastructureFailure:
        right, why, told, shown = followed(written, sample.tools, sample.gold, self._table)
        if why == "unknown":
            return InfrastructureFailure(f"{told}; name the release's functions (--package DIR)")
        return right, why, told, shown

    def _rest(self, sample: Sample) -> str:
        text = self._rests.get(sample.id)
        if text is None:
            tools = [
                {"name": tool["name"], "output_parameters": dict.fromkeys(tool.get("output_parameters") or ())}
                for tool in sample.tools
            ]
            text = self._rests[sample.id] = f'"tools": {json.dumps(tools)}, "gold": {json.dumps(sample.gold)}'
        return text

    @cached_property
    def _rests(self) -> dict[str, str]:
        return {}

    @cached_property
    def _code(self) -> ForeignCode:
        limits = ForeignLimits(time=SECONDS + _PATIENCE)
        return ForeignCode(Path(__file__).parent, interpreter=self._interpreter, limits=limits)

    def _run(self, name: str, given: list[Any]) -> Any:
        if self._folder is not None:
            return self._code.call(f"{_FILE}:run", str(self._folder), name, given, SECONDS)
        value = self._table.value(name, given)
        if value is UNKNOWN:
            raise InfrastructureFailure(
                f"{name} was not recorded with these arguments; name the release's functions (--package DIR)"
            )
        return value

    @cached_property
    def _table(self) -> Table:
        table = Table()
        path = None if self._data.is_file() else found(self._data, "execution_traces.jsonl")
        for where, row in rows_of(path) if path else ():
            sample = self.samples.get(str(row.get("sample_id")))
            try:
                for number, step in enumerate(row["steps"]):
                    values = list(step["args"].values())
                    stated = list(sample.calls[number]["arguments"].values()) if sample else []
                    returned = [_refers(one) for one in stated] if len(stated) == len(values) else [True] * len(values)
                    table.learn(step["name"], values, returned, step["result"], mutates=bool(step.get("mutates_args")))
            except (KeyError, TypeError, AttributeError, IndexError) as error:
                raise DataError(f"{where}: no trace of a sample: {type(error).__name__}: {error}") from error
        return table


def _known(found: Any) -> Win | InfrastructureFailure:
    right, why, told, shown = found
    if why == "missing":
        return InfrastructureFailure(f"{told}; install it, or name an interpreter that has it (interpreter=PATH)")
    return right, why, told, shown


def _refers(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("$")


def _functions_in(package: Path) -> Path:
    for folder in (package, package / "executable_functions", package / "data_v2" / "executable_functions"):
        if (folder / BASIC).is_file() and (folder / "func_file_map.json").is_file():
            return folder
    raise UsageError(
        f"{package} holds no {BASIC} with func_file_map.json: name the release's folder of functions, which is "
        "data_v2/executable_functions (--package DIR)"
    )


def _environment_of(data: str, version: str, package: str | None, interpreter: str | None) -> NestfulFunctions:
    """The environment, made again elsewhere."""
    return NestfulCorpus(data, version, package, interpreter).environment
