"""The benchmark ``bamboogle``: the share of right answers, and how often the search was called."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from callwright.compression.packing import unpacked
from callwright.errors import DataError, InfrastructureFailure, UsageError
from callwright.language.parser import Parser
from callwright.language.program import Program
from callwright.language.speech import spoken
from callwright.measuring.benchmark import CorpusBenchmark, Judged, Judgement, Need, mean, shares, version_of
from callwright.measuring.listed import Listed
from callwright.plugins import default_registry
from callwright.walk.attempt import Attempt
from callwright.walk.limits import TurnLimits
from callwright.walk.tasks import Answer, Task
from callwright_plugins.bamboogle import NAME
from callwright_plugins.bamboogle.environment import SEARCH, Web
from callwright_plugins.bamboogle.judging import AnswerJudge, Asked, Contains
from callwright_plugins.bamboogle.search import Search, made_search

#: Completions of an attempt, as in the released script.
ROUNDS: Final = 4
_QUESTIONS: Final = 125
_CATEGORY: Final = "questions"
_PLACES: Final = ("", "Bamboogle", "benchmarks/Bamboogle")
#: What the released script writes where no answer came in time.
_EXCEEDED: Final = "Round Limit Exceeded, no answer is derived."
_ASKED: Final = "Plan your steps. Search where you are not sure, and end with a short answer."


class _ReleasedAnswer(Attempt):
    """An attempt that stands for a record of the released script: what it predicted, and how often it searched."""

    predicted: str = ""
    searched: int = 0


class Bamboogle(CorpusBenchmark):
    """Bamboogle as ToolRL measures it: four rounds with a search, then a judge.

    ``data`` is the file of questions or its folder. ``search`` is ``serper`` (key in ``search_key_env``, address
    ``search_url``), ``recorded`` (from ``search_file``), ``MODULE:NAME``, or in Python a
    :class:`callwright_plugins.bamboogle.search.Search`; without one an attempt that searches is masked. ``judge`` is
    ``contains``, a rule, or a teacher (``openai``, with ``judge_model`` and, for another server, ``judge_url``).

    Raises :class:`callwright.errors.DataError` for a folder without questions.
    """

    name = NAME
    versions = ("1",)
    needs = (
        Need(
            "data",
            "the questions (--data DIR or FILE)",
            ("data.json",),
            "benchmarks/Bamboogle of the repository qiancheng0/ToolRL (Apache-2.0; the questions are Press et al.'s)",
        ),
        Need("search", "a web search: --benchmark-option search=serper, recorded or MODULE:NAME"),
        Need("judge", "--benchmark-option judge=openai judge_model=gpt-4o; without it a rule"),
    )
    #: Figures that are no shares.
    counts = ("calls",)

    def __init__(
        self,
        data: str | Path,
        search: str | Search | None = None,
        judge: str | AnswerJudge = "contains",
        version: str | None = None,
        search_file: str | None = None,
        search_url: str | None = None,
        search_key_env: str | None = None,
        judge_model: str | None = None,
        judge_url: str | None = None,
    ) -> None:
        path, chosen = Path(data).absolute(), version_of(NAME, version, self.versions)
        file = None if search_file is None else str(Path(search_file).absolute())
        self._made = (str(path), search, judge, chosen, file, search_url, search_key_env, judge_model, judge_url)
        self.search = made_search(search, file, search_url, search_key_env)
        self.judge_of_answers = _judge(judge, judge_model, judge_url)
        made = (Bamboogle, self._made)
        environment = Web(self.search, made)
        tasks = [_task(row, number, environment, path) for number, row in enumerate(_rows(path))]
        limits = TurnLimits(assistant_turns=ROUNDS, user_turns=1, unparsed="turn")
        super().__init__(Listed(environment, tasks, made, limits), "test", chosen)
        self.unofficial = tuple(_departures(len(tasks), self.search, self.judge_of_answers))

    def __reduce__(self) -> Any:
        """As what it was made of; files must be where it is unpickled."""
        return type(self), self._made

    def category_of(self, task: Task) -> str:
        """All are of one."""
        return _CATEGORY

    def answer(self, row: Mapping[str, Any], parser: Parser) -> Attempt | None:
        """The attempt of a record of the released script: ``predicted``, with the ``history`` of its searches."""
        predicted, history = row.get("predicted"), row.get("history", [])
        if not isinstance(predicted, str) or not isinstance(history, list):
            return None
        made = _ReleasedAnswer(self.corpus.task(str(row.get("id"))), predicted, parser)
        made.predicted = "" if predicted == _EXCEEDED else predicted
        made.searched = sum(isinstance(one, Mapping) and one.get("role") == "obs" for one in history)
        return made

    def judge(self, task: Task, attempt: Attempt) -> Judgement:
        """The verdict of the judge; the errors are ``no_answer`` and ``wrong_answer``. ``calls`` are rounds of search.

        An attempt that still searches in the last round has no answer, nor has one whose last call cannot be read.
        """
        if isinstance(attempt, _ReleasedAnswer):
            words, calls = attempt.predicted, attempt.searched
        else:
            words, calls = _words(attempt), sum(isinstance(one, Program) and bool(one.calls) for one in attempt.parts)
        parts = {"calls": float(calls)}
        if not words:
            return Judgement(correct=False, score=0.0, error="no_answer", parts=parts)
        gold = str(task.facts["answer"])
        try:
            right = self.judge_of_answers.same(task.query.partition("\n")[0], gold, words)
        except InfrastructureFailure as lost:
            return Judgement(correct=False, score=0.0, parts=parts, masked=str(lost))
        told = () if right else (f"expected {gold!r:.200}, found {words!r:.200}",)
        return Judgement(right, float(right), "" if right else "wrong_answer", parts, told)

    def aggregate(self, judged: Sequence[Judged]) -> Mapping[str, float | None]:
        """``overall``: the share of right answers. ``calls``: the mean number of rounds with a search, no share."""
        known = [one for one in judged if one.judgement.masked is None]
        calls: dict[str, list[float]] = {}
        for one in known:
            if "calls" in one.judgement.parts:
                calls.setdefault(one.task, []).append(one.judgement.parts["calls"])
        right = shares(known).get(_CATEGORY, [])
        return {
            "overall": mean(right),
            "calls": mean([sum(values) / len(values) for _, values in sorted(calls.items())]),
        }


def _words(attempt: Attempt) -> str:
    """What an attempt says in the end; empty where it calls something, or tries to."""
    if not attempt.completions:
        return ""
    last = attempt.parts[-1]
    if isinstance(last, Program):
        return "" if last.calls else spoken(last, attempt.completion)
    words = spoken(None, attempt.completion)
    return "" if "<tool_call" in words else words


def _judge(judge: str | AnswerJudge, model: str | None, url: str | None) -> AnswerJudge:
    if not isinstance(judge, str):
        return judge
    if judge == "contains":
        return Contains()
    if judge == "openai" and model is None:
        raise UsageError("the judge openai needs a model (--benchmark-option judge_model=NAME)")
    stated = {"model": model, "base_url": url}
    given = {name: value for name, value in stated.items() if value is not None}
    return Asked(default_registry().create("teacher", judge, **given))


def _departures(held: int, search: Search, judge: AnswerJudge) -> list[str]:
    found = [] if held == _QUESTIONS else [f"the file holds {held} of {_QUESTIONS} questions"]
    if search.name != "serper":
        found.append(f"searches are answered by {search.name} in place of Serper")
    if isinstance(judge, Asked):
        found.append(f"the judge, {judge.name}, is asked in other words than the release's")
    else:
        found.append(f"answers are judged by {judge.name} in place of the release's judge, GPT-4o")
    return found


def _rows(path: Path) -> list[Any]:
    names = [path] if path.is_file() else [path / place / f"data.json{end}" for place in _PLACES for end in ("", ".gz")]
    file = next((one for one in names if one.is_file()), None)
    if file is None:
        raise DataError(f"{path} holds no data.json: name ToolRL's folder benchmarks/Bamboogle (--data DIR)")
    try:
        with file.open("rb") as raw, unpacked(raw, str(file)) as opened:
            rows = json.loads(opened.read())
    except (OSError, EOFError, ValueError, RecursionError) as error:
        raise DataError(f"{file} cannot be read as JSON: {error}") from error
    if not isinstance(rows, list) or not rows:
        raise DataError(f"{file}: expected a list of questions")
    return rows


def _task(row: Any, number: int, environment: Web, path: Path) -> Task:
    try:
        question, gold = row["Question"], row["Answer"]
        number = row.get("_index", number)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: question {number} has no 'Question' with its 'Answer': {error!r}") from error
    return Task(
        id=f"{NAME}-{number}",
        query=f"{question}\n{_ASKED}",
        tools={SEARCH.name: SEARCH},
        answer=Answer(()),
        environment=environment,
        split="test",
        program=Program((), text=str(gold)),
        facts={"answer": str(gold)},
    )
