"""The benchmark ``when2call``: accuracy by class, macro-F1 and the confusion matrix."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from callwright.commands.jsonl import BadRow, RowFile
from callwright.errors import DataError
from callwright.language.parser import Parser
from callwright.language.program import Call, Program
from callwright.measuring.benchmark import CorpusBenchmark, Judged, Judgement, Need, mean, shares, version_of
from callwright.measuring.listed import Listed, Unexecuted
from callwright.tools.spec import ToolSpec
from callwright.walk.attempt import Attempt
from callwright.walk.tasks import Answer, Task
from callwright_plugins.when2call import NAME
from callwright_plugins.when2call.decisions import DECISIONS, UNREADABLE, decision_of, decision_of_text

_FILES: Final = ("when2call_test_llm_judge.jsonl", "when2call_test_mcq.jsonl")
#: Questions of the first of the files.
_WHOLE: Final = 300


class _ReleasedAnswer(Attempt):
    """An attempt that stands for a row of the release: its text is words, or a call as JSON."""


class When2Call(CorpusBenchmark):
    """When2Call. ``data`` is the file of questions, or the folder that it is in (``data/test`` of the release).

    The category of a task is the right decision; what was called is not looked at, as in the release.

    Raises :class:`callwright.errors.DataError` for a folder without questions.
    """

    name = NAME
    versions = ("1",)
    needs = (
        Need(
            "data",
            f"the questions (--data DIR or FILE); {_FILES[1]} is read where it is there alone",
            _FILES[:1],
            "data/test of the repository NVIDIA/When2Call (Apache-2.0; the data set's card states another licence)",
        ),
    )

    def __init__(self, data: str | Path, version: str | None = None) -> None:
        chosen = version_of(NAME, version, self.versions)
        path = _file_in(Path(data).absolute())
        self._made = (str(Path(data).absolute()), chosen)
        environment = Unexecuted(NAME, (When2Call, self._made))
        tasks = []
        with RowFile(str(path)) as rows:
            for row in rows:
                where = f"{path}:{rows.number}"
                if isinstance(row, BadRow):
                    raise DataError(f"{where}: {row}")
                tasks.append(_task(row, environment, where))
        if not tasks:
            raise DataError(f"{path} holds no questions")
        super().__init__(Listed(environment, tasks, (When2Call, self._made)), "test", chosen)
        partial = path.name.startswith(_FILES[0]) and len(tasks) != _WHOLE
        self.unofficial = (
            "words are told apart by rules in place of the release's judge, a language model",
            *([f"the file holds {len(tasks)} of the release's {_WHOLE} questions"] if partial else []),
        )

    def __reduce__(self) -> Any:
        """As its folder, which must be where it is unpickled."""
        return type(self), self._made

    def category_of(self, task: Task) -> str:
        return str(task.facts["decision"])

    def answer(self, row: Mapping[str, Any], parser: Parser) -> Attempt | None:
        """The attempt of a row of the release (``uuid`` with ``model_response``)."""
        text = row.get("model_response")
        if not isinstance(text, str):
            return None
        return _ReleasedAnswer(self.corpus.task(str(row.get("uuid", row.get("id")))), text, parser)

    def judge(self, task: Task, attempt: Attempt) -> Judgement:
        """Whether the decision is right; if not, the error is ``said_`` and the decision."""
        wanted = self.category_of(task)
        if isinstance(attempt, _ReleasedAnswer):
            made = decision_of_text(attempt.completion.text)
        else:
            made = decision_of(attempt)
        labels = {"decision": (made,)}
        right = made == wanted
        return Judgement(right, float(right), "" if right else f"said_{made}", labels=labels)

    def aggregate(self, judged: Sequence[Judged]) -> Mapping[str, float | None]:
        """``overall`` (accuracy over tasks), ``macro f1``, the accuracy of each class, ``hallucinated calls``.

        ``A as B`` are rows of the confusion matrix: the share of questions of the class A whose answer was B.
        ``hallucinated calls``: of the questions without any tool, the share that was answered by a call.
        """
        found = shares(judged)
        values: dict[str, float | None] = {"overall": mean([value for some in found.values() for value in some])}
        runs: dict[int, list[tuple[str, str]]] = {}
        pairs: dict[tuple[str, str], list[str]] = {}
        for one in judged:
            if one.judgement.masked is None and "decision" in one.judgement.labels:
                made = one.judgement.labels["decision"][0]
                runs.setdefault(one.sample, []).append((one.category, made))
                pairs.setdefault((one.category, one.task), []).append(made)
        values["macro f1"] = mean([macro_f1(pairs) for _, pairs in sorted(runs.items())])
        values |= {name: mean(found.get(name, [])) for name in self.categories}
        bare = {task: some for (wanted, task), some in pairs.items() if wanted == "cannot_answer" and self._bare(task)}
        values["hallucinated calls"] = _share(bare, "tool_call")
        for wanted in self.categories:
            row = {task: some for (category, task), some in pairs.items() if category == wanted}
            for made in (*DECISIONS, UNREADABLE):
                values[f"{wanted} as {made}"] = _share(row, made)
        return values

    def _bare(self, task: str) -> bool:
        return not self.corpus.task(task).tools


def _share(rows: Mapping[str, Sequence[str]], made: str) -> float | None:
    """The mean over tasks of the share of a task's samples that are ``made``."""
    return mean([some.count(made) / len(some) for _, some in sorted(rows.items())])


def macro_f1(pairs: Sequence[tuple[str, str]]) -> float:
    """The mean F1 of the classes that are right or were said anywhere, of ``(right, said)``; in [0, 1].

    So a class that nobody should have said counts, with 0. What could not be read is no class.
    """
    classes = sorted({name for pair in pairs for name in pair} - {UNREADABLE})
    values = []
    for name in classes:
        both = sum(pair == (name, name) for pair in pairs)
        either = sum((right == name) + (said == name) for right, said in pairs)
        values.append(2 * both / either)
    return sum(values) / len(values) if values else 0.0


def _file_in(place: Path) -> Path:
    if place.is_file():
        return place
    for folder in (place, place / "data" / "test", place / "test"):
        for name in _FILES:
            for path in (folder / name, folder / f"{name}.gz"):
                if path.is_file():
                    return path
    raise DataError(f"{place} holds neither {_FILES[0]} nor {_FILES[1]}: name the folder data/test of the release")


def _task(row: Mapping[str, Any], environment: Unexecuted, where: str) -> Task:
    try:
        decision, answers = row["correct_answer"], row["answers"]
        if decision not in DECISIONS:
            raise ValueError(f"'correct_answer' is {decision!r}")
        specs = [ToolSpec.from_tier(json.loads(one) if isinstance(one, str) else one) for one in row["tools"]]
        text = answers[decision]
        program = Program((), text=text)
        if decision == "tool_call":
            call = json.loads(text)
            program = Program((Call(0, call["name"], call["arguments"]),))
        environment.add(specs)
        return Task(
            id=str(row["uuid"]),
            query=row["question"],
            tools={spec.name: spec for spec in specs},
            answer=Answer(({},) * len(program.calls)),
            environment=environment,
            split="test",
            depth=program.depth,
            chain=program.chain,
            structure=program.structure,
            program=program,
            facts={"decision": decision, "tools": len(specs)},
        )
    except (KeyError, TypeError, ValueError, AttributeError, DataError) as error:
        raise DataError(f"{where}: no question of When2Call: {type(error).__name__}: {error}") from error
