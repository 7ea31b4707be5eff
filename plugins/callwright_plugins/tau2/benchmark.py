"""tau2-bench as benchmarks: ``tau2-retail``, ``tau2-airline``, ``tau2-telecom``; what ``tau2-mock`` shares."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from callwright.errors import DataError, InfrastructureFailure, UsageError
from callwright.language.parser import Parser
from callwright.measuring.benchmark import CorpusBenchmark, Judged, Judgement, Need, mean, shares, version_of
from callwright.measuring.listed import Listed
from callwright.plugins import default_registry
from callwright.walk.attempt import Attempt
from callwright.walk.tasks import Task
from callwright_plugins.tau2.assertions import AskedJudge, AssertionJudge
from callwright_plugins.tau2.dialogue import LIMITS, Dialogue, RecordedDialogue, dialogue_of, recorded, same_task
from callwright_plugins.tau2.domain import Domain, Made, SourceDomain
from callwright_plugins.tau2.results import simulations
from callwright_plugins.tau2.scoring import Criteria, pass_hat, score
from callwright_plugins.tau2.source import Left, Recorded, Tau2Source
from callwright_plugins.tau2.tasks import Release, read_tasks, task_of

#: The largest k of pass^k.
MOST_K: Final = 8
#: Who plays the user without a model: the reference's part of it, or the script of a task that has one.
REFERENCE: Final = "reference"
SCRIPT: Final = "script"
#: What says that the official program itself lost a dialogue, which it counts nowhere.
_LOST: Final = "infrastructure_error"


class Tau2(CorpusBenchmark):
    """Dialogues of an agent with a user over a domain's databases, rewarded with 0 or 1.

    ``user`` plays the user: a registered sampler (``openai``, with ``user_model``, ``user_url`` and further options of
    the sampler in ``user_options``), ``script`` where tasks have one, or ``reference``, who does the user's part of the
    reference whatever the agent does. ``judge`` is a teacher (``openai``, with ``judge_model`` and ``judge_url``), or
    in Python an :class:`.assertions.AssertionJudge`; without one NL_ASSERTION is left out.
    """

    counts: ClassVar[Sequence[str]] = ()
    _plays: ClassVar[str] = REFERENCE

    def __init__(
        self,
        version: str,
        stated: Sequence[Mapping[str, Any]],
        domain: Domain,
        made: Made,
        *,
        user: str | None = None,
        user_model: str | None = None,
        user_url: str | None = None,
        user_temperature: float = 0.0,
        user_options: Mapping[str, Any] | None = None,
        judge: str | AssertionJudge | None = None,
        judge_model: str | None = None,
        judge_url: str | None = None,
    ) -> None:
        self._made = made
        #: The tasks as their file states them, by id.
        self.stated: Mapping[str, Mapping[str, Any]] = {str(one["id"]): one for one in stated}
        self._criteria = {task_id: Criteria.of(one) for task_id, one in self.stated.items()}
        self.domain = domain
        plays = user or self._plays
        self.users: Mapping[str, Mapping[str, Any]] = {}
        if plays not in (REFERENCE, SCRIPT):
            asked = {"model": user_model, "base_url": user_url, **(user_options or {})}
            options = {name: value for name, value in asked.items() if value is not None}
            default_registry().spec("sampler", plays)  # a name that is none is said before anything is asked
            self.users = {"model": {"sampler": plays, "options": options, "temperature": user_temperature}}
        elif user_model or user_url or user_options:
            raise UsageError(f"user_model, user_url and user_options go with a sampler as the user, not with {plays!r}")
        self.judge_of_sentences = _judge(judge, judge_model, judge_url)
        tasks = [
            task_of(
                one,
                domain.environment,
                category=category_of(self.name, task_id),
                plays="model" if self.users else plays,
                split="test",
            )
            for task_id, one in self.stated.items()
        ]
        super().__init__(Listed(domain.environment, tasks, made, LIMITS), "test", version)
        self.unofficial = tuple(self._departures(plays, user_model))

    def __reduce__(self) -> Any:
        """As what it was made of; files must be where it is unpickled."""
        return self._made

    def _departures(self, plays: str, model: str | None) -> Iterable[str]:
        sentences = sum(
            one is not None and "NL_ASSERTION" in one.basis and bool(one.sentences) for one in self._criteria.values()
        )
        if sentences and self.judge_of_sentences is None:
            yield f"NL_ASSERTION of {sentences} tasks is left out: there is no judge (--benchmark-option judge=openai)"
        elif sentences:
            assert self.judge_of_sentences is not None
            yield f"the judge of NL_ASSERTION, {self.judge_of_sentences.name}, is asked in other words"
        if self.users:
            yield f"in dialogues that are led here the user, {model or plays}, is told of its task in other words"
        elif plays == REFERENCE:
            yield (
                "in dialogues that are led here the user does its part of the reference and says the same whatever the "
                "agent does: a model plays it with --benchmark-option user=openai"
            )

    def category_of(self, task: Task) -> str:
        """The kind of issue in telecom, else the domain."""
        return str(task.facts["category"])

    # Judging ----------------------------------------------------------------------------------------------------------

    def judge(self, task: Task, attempt: Attempt) -> Judgement:
        """The reward of a dialogue; ``parts`` are its factors.

        Errors are how a dialogue ended that neither side ended (``max_steps``, ``too_many_errors`` …), else the first
        factor that is 0, in small letters. Masked where the machinery failed, or the recorded results are not those
        that the calls give.
        """
        return self.judge_together([(task, attempt)])[0]

    def judge_together(self, attempts: Sequence[tuple[Task, Attempt]]) -> Sequence[Judgement]:
        """As :meth:`judge`, of several: their calls go to the process of tau2's code in one message."""
        found: list[Judgement | Dialogue] = []
        for _, attempt in attempts:
            try:
                dialogue = attempt.dialogue if isinstance(attempt, RecordedDialogue) else dialogue_of(attempt)
            except InfrastructureFailure as error:
                found.append(_masked(str(error)))
                continue
            found.append(_masked(dialogue.ended) if dialogue.ended == _LOST else dialogue)
        asked = [
            Recorded(self.stated[task.id], one.calls, one.results)
            for (task, _), one in zip(attempts, found, strict=True)
            if isinstance(one, Dialogue) and self._asks_databases(task.id, one)
        ]
        answers = iter(self.domain.left_together(asked) if asked else ())
        judged = []
        for (task, _), one in zip(attempts, found, strict=True):
            if isinstance(one, Judgement):
                judged.append(one)
                continue
            left = next(answers) if self._asks_databases(task.id, one) else None
            judged.append(
                _masked(str(left)) if isinstance(left, InfrastructureFailure) else self._scored(task, one, left)
            )
        return judged

    def _asks_databases(self, task_id: str, dialogue: Dialogue) -> bool:
        return dialogue.finished and self._criteria[task_id] is not None

    def _scored(self, task: Task, dialogue: Dialogue, left: Left | None) -> Judgement:
        criteria = self._criteria[task.id]
        judged: bool | None = None
        judge = self.judge_of_sentences
        if (
            criteria is not None
            and dialogue.finished
            and criteria.sentences
            and "NL_ASSERTION" in criteria.basis
            and judge
        ):
            try:
                judged = all(judge.holds(dialogue.lines, criteria.sentences))
            except InfrastructureFailure as error:
                return _masked(str(error))
        scored = score(
            criteria,
            dialogue.calls,
            dialogue.said,
            finished=dialogue.finished,
            db=None if left is None else left.db,
            assertions=None if left is None else left.assertions,
            judged=judged,
        )
        wrong = ""
        if not dialogue.finished:
            wrong = dialogue.ended
        elif not scored.reward:
            wrong = next(name for name, value in scored.factors.items() if not value).lower()
        told = tuple(f"{name} is left out" for name in scored.left_out)
        parts = {**scored.factors, **({} if left is None else {"db_match": float(left.db)})}
        return Judgement(scored.reward == 1.0, scored.reward, wrong, parts, told)

    def answer(self, row: Mapping[str, Any], parser: Parser) -> Attempt | None:
        """A simulation of an official result file, as :meth:`answer_rows` hands it on; its reward is not read.

        Raises :class:`callwright.errors.DataError` for one that cannot be read, and for one of another version of its
        task.
        """
        simulation, stated = row.get("simulation"), row.get("task")
        if not isinstance(simulation, Mapping):
            return None
        task = self.corpus.task(str(row.get("id")))
        if isinstance(stated, Mapping) and not same_task(stated, self.stated[task.id]):
            raise DataError(
                f"its task {task.id!r} is held against something else than in {self.name}:{self.version}: it is of "
                "another version of tau2-bench (NAME:VERSION)"
            )
        return RecordedDialogue(task, parser, recorded(simulation))

    def answer_rows(self, path: Path) -> Iterable[tuple[str, Mapping[str, Any]]] | None:
        """The simulations of an official result file, or of a folder of them; ``None`` for any other file."""
        return simulations(path)

    def aggregate(self, judged: Sequence[Judged]) -> Mapping[str, float | None]:
        """``overall``, the mean reward over tasks; pass^k for each k up to 8 of which every task has as many samples;
        and the mean reward of each category, where there are several.
        """
        found = shares(judged)
        rewards: dict[str, list[bool]] = {}
        for one in judged:
            if one.judgement.masked is None:
                rewards.setdefault(one.task, []).append(one.judgement.correct)
        table = {"overall": mean([value for values in found.values() for value in values])}
        fewest = min(map(len, rewards.values()), default=0)
        for k in range(1, min(fewest, MOST_K) + 1):
            table[f"pass^{k}"] = mean([value for one in rewards.values() if (value := pass_hat(one, k)) is not None])
        if len(self.categories) > 1:
            table |= {name: mean(found.get(name, [])) for name in self.categories}
        return table


def category_of(name: str, task_id: str) -> str:
    """``mobile_data_issue`` and the like, where the id begins with it in brackets; else the domain."""
    kind, end, _ = task_id.removeprefix("[").partition("]")
    return kind if task_id.startswith("[") and end else name.removeprefix("tau2-")


def made_of(kind: type[Tau2], **options: Any) -> Made:
    """The call that makes a benchmark of these options; its arguments are hashable."""
    given = {name: _frozen(value) for name, value in options.items() if value is not None}
    return _made_again, (kind, tuple(sorted(given.items())))


def _frozen(value: Any) -> Any:
    return json.dumps(value, sort_keys=True) if isinstance(value, Mapping) else value


def _made_again(kind: Any, given: Sequence[tuple[str, Any]]) -> Any:
    options = dict(given)
    if "user_options" in options:
        options["user_options"] = json.loads(options["user_options"])
    return kind(**options)


def _masked(why: str) -> Judgement:
    return Judgement(correct=False, score=0.0, masked=why)


def _judge(judge: str | AssertionJudge | None, model: str | None, url: str | None) -> AssertionJudge | None:
    if judge is None or not isinstance(judge, str):
        return judge
    if judge == "openai" and model is None:
        raise UsageError("the judge openai needs a model (--benchmark-option judge_model=NAME)")
    stated = {"model": model, "base_url": url}
    given = {name: value for name, value in stated.items() if value is not None}
    return AskedJudge(default_registry().create("teacher", judge, **given))


# Over the source ------------------------------------------------------------------------------------------------------


class SourceTau2(Tau2):
    """A domain of tau2-bench. Options: ``data``, tau2's folder ``data``; ``package``, its repository; ``python``, an
    interpreter of 3.12 that has what its code imports; ``split`` of its tasks; and those of :class:`Tau2`.

    Raises :class:`callwright.UsageError` without ``data`` or ``package``, and
    :class:`callwright.errors.DataError` for tasks of another version.
    """

    releases: ClassVar[Sequence[Release]] = ()
    needs = (
        Need(
            "data",
            "the folder data of tau2-bench (--data DIR)",
            ("tau2/domains/",),
            "https://github.com/sierra-research/tau2-bench, at the commit that the version names",
        ),
        Need("package", "the repository of tau2-bench, whose code is executed (--package DIR)"),
        Need("user", "--benchmark-option user=openai user_model=…; without it the reference's part is played"),
        Need("judge", "--benchmark-option judge=openai judge_model=…; without it NL_ASSERTION is left out"),
    )

    def __init__(
        self,
        version: str | None = None,
        data: str | Path | None = None,
        package: str | Path | None = None,
        python: str | Path | None = None,
        split: str = "base",
        user: str | None = None,
        user_model: str | None = None,
        user_url: str | None = None,
        user_temperature: float = 0.0,
        user_options: Mapping[str, Any] | None = None,
        judge: str | AssertionJudge | None = None,
        judge_model: str | None = None,
        judge_url: str | None = None,
    ) -> None:
        chosen = version_of(self.name, version, self.versions)
        if data is None:
            raise UsageError(
                f"{self.name} reads tau2-bench's tasks and databases: name its folder data with --data DIR"
            )
        if package is None:
            raise UsageError(f"{self.name} executes tau2-bench's code: name its repository with --package DIR")
        folder, code = Path(data).absolute(), Path(package).absolute()
        release = next(one for one in self.releases if one.commit == chosen)
        source = Tau2Source(code, folder, python)
        domain = self.name.removeprefix("tau2-")
        stated = read_tasks(folder / "tau2" / "domains" / domain, release, split)
        made = made_of(
            type(self),
            version=chosen,
            data=str(folder),
            package=str(code),
            python=None if python is None else str(python),
            split=split,
            user=user,
            user_model=user_model,
            user_url=user_url,
            user_temperature=user_temperature,
            user_options=user_options,
            judge=judge,
            judge_model=judge_model,
            judge_url=judge_url,
        )
        super().__init__(
            chosen,
            stated,
            SourceDomain(domain, source, {str(one["id"]): one for one in stated}, made),
            made,
            user=user,
            user_model=user_model,
            user_url=user_url,
            user_temperature=user_temperature,
            user_options=user_options,
            judge=judge,
            judge_model=judge_model,
            judge_url=judge_url,
        )
        if len(stated) != release.count:
            held = f"the file holds {len(stated)} tasks of the {release.count} of the split base"
            self.unofficial = (held, *self.unofficial)


_HEAD: Final = "a2c0247"
_BEFORE: Final = "12dddd3"


class Tau2Retail(SourceTau2):
    """The domain ``retail``."""

    name = "tau2-retail"
    versions = (_HEAD, _BEFORE)
    releases = (
        Release(_HEAD, (f"tasks.{_HEAD}.json", "tasks.json"), 114),
        Release(_BEFORE, (f"tasks.{_BEFORE}.json", "tasks.tau2_2025-11.json", "tasks.json"), 114, states_basis=False),
    )


class Tau2Airline(SourceTau2):
    """The domain ``airline``."""

    name = "tau2-airline"
    versions = (_HEAD, _BEFORE)
    releases = (
        Release(_HEAD, (f"tasks.{_HEAD}.json", "tasks.json"), 50),
        Release(_BEFORE, (f"tasks.{_BEFORE}.json", "tasks.tau2_2025-11.json", "tasks.json"), 50, states_basis=False),
    )


class Tau2Telecom(SourceTau2):
    """The domain ``telecom``, whose user has a phone of its own."""

    name = "tau2-telecom"
    versions = ("37199f3", _HEAD)
    releases = (
        Release("37199f3", ("tasks.37199f3.json", "tasks.release_2025-06.json", "tasks.json"), 114),
        Release(_HEAD, (f"tasks.{_HEAD}.json", "tasks.json"), 114),
    )
