"""The benchmark ``api-bank``: accuracy on each level, and over all of them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from callwright.compression.packing import unpacked
from callwright.errors import DataError
from callwright.language.parser import Parser
from callwright.language.program import Call, Program, plain
from callwright.measuring.benchmark import CorpusBenchmark, Judgement, Need, version_of
from callwright.measuring.listed import Listed, Unexecuted
from callwright.tools.spec import ToolSpec
from callwright.walk.attempt import Attempt
from callwright.walk.tasks import Answer, Task
from callwright_plugins.api_bank import NAME
from callwright_plugins.api_bank.matching import released_calls, soft_match

_PLACES: Final = ("", "toolrl_processed", "API-Bank", "benchmarks/API-Bank")
#: Questions of each level in the release.
WHOLE: Final[Mapping[int, int]] = {1: 399, 2: 67, 3: 131}
#: A tool of a system message: on levels 1 and 2 with its name on a line of its own.
_TOOL: Final = re.compile(
    r"^\d+\. (?:Name: (?P<named>.+)\nDescription: |(?P<name>[^:\n]+): )(?P<text>.*(?:\n(?!Parameters: ).*)*)\n"
    r"Parameters: (?P<parameters>.+)$",
    re.MULTILINE,
)
_TYPES: Final = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array"}


class _ReleasedAnswer(Attempt):
    """An attempt that stands for a row of the released harness: ``calls`` are what it had read."""

    calls: Sequence[Any] = ()


class ApiBank(CorpusBenchmark):
    """API-Bank as ToolRL prepared it. ``data`` is the folder with ``level-1-api_processed.json`` and the two others.

    The category of a task is its level, its id ``Level1_0`` as in the released harness.

    Raises :class:`callwright.errors.DataError` for a folder without the files.
    """

    name = NAME
    versions = ("toolrl",)
    needs = (
        Need(
            "data",
            "the questions of the three levels as ToolRL prepared them (--data DIR, their folder)",
            tuple(f"level-{level}-api_processed.json" for level in WHOLE),
            "benchmarks/API-Bank of the repository qiancheng0/ToolRL (Apache-2.0)",
        ),
    )

    def __init__(self, data: str | Path, version: str | None = None) -> None:
        root = Path(data).absolute()
        chosen = version_of(NAME, version, self.versions)
        self._made = (str(root), chosen)
        environment = Unexecuted(NAME, (ApiBank, self._made))
        tasks = [task for level in WHOLE for task in _tasks(root, level, environment)]
        super().__init__(Listed(environment, tasks, (ApiBank, self._made)), "test", chosen)
        held = self.categories
        self.unofficial = tuple(
            f"the folder holds {held.get(f'level {level}', 0)} of the {whole} questions of level {level}"
            for level, whole in WHOLE.items()
            if held.get(f"level {level}") != whole
        )

    def __reduce__(self) -> Any:
        """As its folder, which must be where it is unpickled."""
        return type(self), self._made

    def category_of(self, task: Task) -> str:
        """``level 1``, ``level 2`` or ``level 3``."""
        return f"level {task.facts['level']}"

    def answer(self, row: Mapping[str, Any], parser: Parser) -> Attempt | None:
        """The attempt of a record of the released harness: ``tool_calls`` as it read them, else ``raw_output``."""
        text, calls = row.get("raw_output"), row.get("tool_calls")
        if not isinstance(text, str) and not isinstance(calls, list):
            return None
        made = _ReleasedAnswer(self.corpus.task(str(row.get("id"))), text if isinstance(text, str) else "", parser)
        made.calls = calls if isinstance(calls, list) else released_calls(str(text))
        return made

    def judge(self, task: Task, attempt: Attempt) -> Judgement:
        """ToolRL's soft match; the error is ``no_call``, ``wrong_tool``, ``wrong_parameters`` or ``no_object``."""
        error = soft_match(_calls_of(attempt), task.facts["answer"])
        return Judgement(not error, float(not error), error)


def _calls_of(attempt: Attempt) -> Sequence[Any]:
    """Texts of ToolRL's form are read as the released code reads them, any other form as it reads itself."""
    if isinstance(attempt, _ReleasedAnswer):
        return attempt.calls
    message = attempt.completion.message
    if attempt.parser.name == "toolrl" and not (message is not None and message.tool_calls):
        return released_calls(attempt.completion.text)
    program = attempt.program
    calls = program.calls if program is not None else ()
    return [{"name": call.tool, "parameters": plain(call.arguments)} for call in calls]


# The files ------------------------------------------------------------------------------------------------------------


def _tasks(root: Path, level: int, environment: Unexecuted) -> list[Task]:
    name = f"level-{level}-api_processed.json"
    paths = (root / place / one for place in _PLACES for one in (name, f"{name}.gz"))
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        raise DataError(f"{root} holds no {name}: name the folder benchmarks/API-Bank of ToolRL's release (--data DIR)")
    try:
        with path.open("rb") as raw, unpacked(raw, str(path)) as file:
            rows = json.loads(file.read())
    except (OSError, EOFError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(rows, list):
        raise DataError(f"{path}: expected a list of questions")
    made = []
    for number, row in enumerate(rows):
        try:
            made.append(_task(row, level, number, environment))
        except (KeyError, TypeError, ValueError, IndexError, SyntaxError, AttributeError) as error:
            raise DataError(f"{path}: question {number} cannot be read: {type(error).__name__}: {error}") from error
    return made


def _task(row: Mapping[str, Any], level: int, number: int, environment: Unexecuted) -> Task:
    answer = row["answer"][0] if isinstance(row["answer"], list) else row["answer"]
    program = Program((Call(0, answer["name"], dict(answer["parameters"])),))
    specs = tools_of(row["system"])
    environment.add(specs)
    return Task(
        id=f"Level{level}_{row.get('_index', number)}",
        query=row["user"].strip(),
        tools={spec.name: spec for spec in specs},
        answer=Answer(({},)),
        environment=environment,
        split="test",
        depth=1,
        chain=1,
        structure=program.structure,
        program=program,
        facts={"level": level, "answer": {"name": answer["name"], "parameters": answer["parameters"]}},
    )


def tools_of(system: str) -> list[ToolSpec]:
    """The tools that a system message lists. Their parameters are written as Python values, none as optional."""
    made = []
    listed = system.partition("following tools:\n")[2].partition("\n\n**Steps for Each Turn**")[0]
    for match in _TOOL.finditer(listed):
        properties = {
            name: _schema(facts if isinstance(facts, Mapping) else {})
            for name, facts in ast.literal_eval(match["parameters"]).items()
        }
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        made.append(ToolSpec((match["named"] or match["name"]).strip(), match["text"].strip(), schema))
    return made


def _schema(facts: Mapping[str, Any]) -> dict[str, Any]:
    kind = _TYPES.get(re.split(r"[\[(, ]", str(facts.get("type", "")), maxsplit=1)[0].lower())
    told = {"description": str(facts["description"])} if facts.get("description") else {}
    return {**told, "type": kind} if kind else told
