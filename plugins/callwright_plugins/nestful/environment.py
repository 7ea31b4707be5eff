"""Where programs are executed while they are walked: the release's functions, or what was recorded of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from callwright.digests import digest_of
from callwright.environments.protocol import Environment, Outcome, Session
from callwright.errors import UnknownName
from callwright.machines.foreign_code.code import ForeignRaised
from callwright.pickling import made_by
from callwright.tools.spec import ToolSpec
from callwright_plugins.nestful.reading import Sample, output_of

#: A function by its name, with arguments by position.
Run = Callable[[str, list[Any]], Any]
_PLAIN: Final = (str, int, float, bool, type(None))


class NestfulSession(Session):
    """The tools of one sample. Nothing is remembered between calls."""

    def __init__(self, sample: Sample, run: Run | None) -> None:
        self._outputs = {tool["name"]: output_of(tool) for tool in sample.tools}
        self._declared = {tool["name"]: tuple(tool.get("output_parameters") or ()) for tool in sample.tools}
        self._run = run

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        """What a function returns, under the name of its output. Raises :class:`callwright.InfrastructureFailure`."""
        output = self._outputs.get(tool)
        if output is None:
            return Outcome("unknown_tool", None, "unknown_tool", f"no tool is called {tool!r}")
        if self._run is None:
            return Outcome("ok", dict.fromkeys(self._declared[tool]))
        if not output:
            return Outcome("execution_error", None, "outputs", f"{tool} has not one output")
        try:
            return Outcome("ok", {output: _json(self._run(tool, list(arguments.values())))})
        except ForeignRaised as error:
            return Outcome("execution_error", None, error.kind, error.said[:500])

    def digest(self) -> str:
        return digest_of(None)

    def close(self) -> None:
        """Nothing."""


class NestfulFunctions(Environment):
    """The functions of a release; a scenario is the id of a sample.

    Without ``run`` there is nothing to be executed, as in the first release: results have their names and no values.
    ``made`` is the call that makes it again elsewhere.
    """

    def __init__(
        self, samples: Mapping[str, Sample], tools: Mapping[str, ToolSpec], run: Run | None, made: tuple[Any, ...]
    ) -> None:
        self._samples, self._tools, self._run, self._made = samples, tools, run, made

    def __reduce__(self) -> Any:
        return made_by(self, *self._made)

    @property
    def name(self) -> str:
        return "nestful"

    @property
    def tools(self) -> Mapping[str, ToolSpec]:
        """Every tool; where samples tell of one in different words, those of the first."""
        return self._tools

    @property
    def pure(self) -> bool:
        """True: arguments are copied into the process of the functions."""
        return True

    @property
    def takes_anything(self) -> Literal[True]:
        """True: functions are Python's, and take what they take."""
        return True

    @property
    def out_of_process(self) -> Literal[True]:
        """True: the functions run in a process of their own."""
        return True

    @property
    def keeps_time(self) -> Literal[True]:
        """True: a function that takes too long is ended."""
        return True

    def open(self, scenario: str = "", seed: int = 0) -> NestfulSession:
        """A session of a sample. Raises :class:`callwright.errors.UnknownName`."""
        if scenario not in self._samples:
            raise UnknownName("sample of nestful", scenario, self._samples)
        return NestfulSession(self._samples[scenario], self._run)


def _json(value: Any) -> Any:
    """A result as JSON: tuples and sets become lists, and what cannot be copied its representation."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Mapping):
        return {str(key): _json(inner) for key, inner in value.items()}
    return [_json(inner) for inner in value] if isinstance(value, list | tuple | set) else repr(value)
