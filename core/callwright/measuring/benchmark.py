"""Benchmarks: tasks with an official metric, judged and added up as the official table does.

A corpus says what the right answer is; a benchmark says what counts, in which classes of errors, and how a table is
made of it. Its versions are pinned and never mixed. What stands in for the official thing (another judge, a replayed
backend) makes its results say that they are not official, and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args, runtime_checkable

from attrs import evolve, field, frozen

from callwright.capability import has
from callwright.episodes.conversation import Conversation
from callwright.errors import Abstention, DataError, InfrastructureFailure, UnknownName, UsageError
from callwright.language.messages import Message
from callwright.language.native import turn_text
from callwright.language.parser import Parser
from callwright.language.program import Program
from callwright.training.verdicts import Verdict, fits, judge
from callwright.walk.attempt import Attempt
from callwright.walk.completion import Completion
from callwright.walk.conditions import DEFAULT_CONDITIONS, Conditions
from callwright.walk.limits import StopReason
from callwright.walk.tasks import Corpus, Task
from callwright.walk.users.said import Said

if TYPE_CHECKING:
    from callwright.plugins import Registry
    from callwright.walk.users.kinds import UserKinds

#: What a benchmark may need that is not part of this package: files or code of others that the user points at, or a
#: component. ``judge``, ``embedder``, ``search`` and ``user`` are components whose choice changes the numbers.
NeedKind = Literal["data", "package", "judge", "embedder", "search", "user"]


@frozen
class Need:
    """Something that a benchmark needs, and what it is in words.

    ``files`` are their names below the folder that is given, those of the usual version, and ``origin`` is where they
    come from: somebody who has none of them is told so. A class that declares its needs says them without being made.
    """

    kind: NeedKind
    what: str
    files: tuple[str, ...] = ()
    origin: str = ""

    def to_json(self) -> dict[str, Any]:
        """The need as an object; what is not known is left out."""
        more = {"files": list(self.files), "from": self.origin}
        return {"kind": self.kind, "what": self.what, **{key: value for key, value in more.items() if value}}


@frozen
class Judgement:
    """What a benchmark says of one attempt or answer.

    ``score`` is in [0, 1]; ``error`` the official class of the error, empty where there is none. ``parts`` are the
    named figures that the official scorer also gives (``partial``, ``full``, ``db``, …). ``masked`` is why nothing is
    known, such as a scorer that died; then neither ``correct`` nor ``score`` means anything. ``evidence`` is for
    people. ``labels`` are what was predicted, by name, where a figure counts it over all tasks (an F1, a confusion
    matrix).
    """

    correct: bool
    score: float
    error: str = ""
    parts: Mapping[str, float] = field(factory=dict)
    evidence: tuple[str, ...] = ()
    masked: str | None = None
    labels: Mapping[str, tuple[str, ...]] = field(factory=dict)

    def to_json(self) -> dict[str, Any]:
        """What is kept of it on a row."""
        known: dict[str, Any] = {"correct": self.correct, "score": self.score, "error": self.error}
        if self.parts:
            known["parts"] = dict(self.parts)
        if self.evidence:
            known["evidence"] = list(self.evidence)
        if self.labels:
            known["labels"] = {name: list(some) for name, some in self.labels.items()}
        return known if self.masked is None else {"masked": self.masked}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Judgement:
        """The judgement of a row. Raises :class:`callwright.errors.DataError` for something else."""
        masked = kept.get("masked")
        if isinstance(masked, str):
            return cls(correct=False, score=0.0, masked=masked)
        correct, score, parts = kept.get("correct"), kept.get("score"), kept.get("parts", {})
        if type(correct) is not bool or type(score) not in (int, float) or not isinstance(parts, Mapping):
            raise DataError(f"no judgement: {dict(kept)!r:.100}")
        evidence = tuple(map(str, kept.get("evidence", ())))
        labels = {name: tuple(map(str, some)) for name, some in kept.get("labels", {}).items()}
        return cls(correct, float(score or 0), str(kept.get("error", "")), dict(parts), evidence, labels=labels)


@frozen
class Judged:
    """A judgement in its place: the task with its category, and the number of the sample."""

    task: str
    category: str
    judgement: Judgement
    sample: int = 0


@runtime_checkable
class Benchmark(Protocol):
    """Tasks with an official metric. It is made with the options ``version`` and, where it has needs, ``data`` …"""

    @property
    def name(self) -> str:
        """The registered name, without the version."""

    @property
    def version(self) -> str:
        """The pinned version of tasks and scorer."""

    @property
    def versions(self) -> Sequence[str]:
        """The versions that can be asked for, the usual one first."""

    @property
    def needs(self) -> Sequence[Need]:
        """What it needs beside this package."""

    @property
    def unofficial(self) -> Sequence[str]:
        """Why results are not official, a sentence each; empty where they are."""

    @property
    def corpus(self) -> Corpus:
        """The corpus that the tasks belong to; it may be the benchmark itself."""

    @property
    def categories(self) -> Mapping[str, int]:
        """The categories with their numbers of tasks. Each task is in one."""

    def tasks(self, category: str | None = None) -> Sequence[Task]:
        """The tasks of a category, else of all, in a fixed order. Raises :class:`callwright.errors.UnknownName`."""

    def category_of(self, task: Task) -> str:
        """The category of a task."""

    def judge(self, task: Task, attempt: Attempt) -> Judgement:
        """What the official scorer says. Total on whatever a model wrote; it never raises for that."""

    def aggregate(self, judged: Sequence[Judged]) -> Mapping[str, float | None]:
        """The figures of the official table by name, ``overall`` among them; ``None`` where nothing was measured.

        Masked judgements count in none of them. Of several samples a task's figure is their mean.
        """


@runtime_checkable
class ReadsAnswers(Protocol):
    """What a benchmark adds that knows rows of its official result files."""

    def answer(self, row: Mapping[str, Any], parser: Parser) -> Attempt | None:
        """The attempt that an official row stands for; ``None`` if it is none. A verdict in the row is not read."""


@runtime_checkable
class JudgesTogether(Protocol):
    """What a benchmark adds whose scorer is quicker with many attempts at once, such as one in another process."""

    def judge_together(self, attempts: Sequence[tuple[Task, Attempt]]) -> Sequence[Judgement]:
        """What :meth:`Benchmark.judge` says of each, in their order."""


@runtime_checkable
class PlaysUsers(Protocol):
    """What a benchmark adds whose users reach for something, such as a model that plays them."""

    @property
    def users(self) -> Mapping[str, Mapping[str, Any]]:
        """Options by the name of a kind of user; they take the place of those that tasks state, as a recipe's do
        (:class:`callwright.walk.users.kinds.UserKinds`). Whoever makes the benchmark stated them.
        """


def users_of(benchmark: Benchmark, registry: Registry) -> UserKinds:
    """The users of a benchmark's tasks, by a registry."""
    from callwright.walk.users.kinds import UserKinds, kinds_of

    given = benchmark.users if has(benchmark, PlaysUsers) else {}
    return UserKinds(registry, given) if given else kinds_of(registry)


@runtime_checkable
class ReadsAnswerFiles(ReadsAnswers, Protocol):
    """What a benchmark adds that knows whole files, or folders, in which its official program leaves answers."""

    def answer_rows(self, path: Path) -> Iterable[tuple[str, Mapping[str, Any]]] | None:
        """The rows that :meth:`answer` reads, with their ``id``, and where each stands; ``None`` if the file is not one
        of these, and is read as rows.

        Raises :class:`callwright.errors.DataError` for one that is, and is damaged.
        """


def version_of(name: str, version: str | None, versions: Sequence[str]) -> str:
    """The version that is meant. Raises :class:`callwright.UsageError` for one that a benchmark does not have."""
    if version is None:
        return versions[0]
    if version not in versions:
        raise UsageError(f"{name} has no version {version!r}; there are: {', '.join(versions)}")
    return version


def named_version(text: str) -> tuple[str, str | None]:
    """``NAME:VERSION`` or ``NAME``. Raises :class:`callwright.UsageError` for an empty part."""
    name, sign, version = text.partition(":")
    if not name or (sign and not version):
        raise UsageError(f"{text!r} names no benchmark: give NAME or NAME:VERSION")
    return name, version or None


def attempt_of(
    row: Mapping[str, Any], task: Task, parser: Parser, conditions: Conditions = DEFAULT_CONDITIONS
) -> tuple[str, Attempt] | None:
    """What a row answers, and as which kind: ``completion`` or ``messages``; ``None`` if it holds neither.

    A completion is a text in the form of ``parser``, or a list of texts, one for each turn, or a list of such lists,
    one for each turn of the user; where the last text of one of these calls something, the answer without calls that
    ends the turn is added. Of messages those of the assistant are taken, from the last query on; calls in the wire
    format are written in the form. Everything is executed anew.

    What the task's user says and does between the turns is ``said`` of the row, else the user is asked again.

    Raises :class:`callwright.errors.DataError` for values of other types, for messages none of which is the
    assistant's, and for a task whose user is not there.
    """
    written = row.get("completions") or row.get("completion")
    if written is not None:
        texts = _texts(written, parser)
        stated = row.get("said")
        if stated is None and _has_user(task, conditions):
            return "completion", _led(texts, task, parser, conditions)
        if stated is not None and (not isinstance(stated, list) or len(stated) > len(texts)):
            raise DataError("'said' is no list, or has more entries than there are completions")
        said = [None if one is None else Said.from_json(one) for one in stated or ()]
        made = texts if len(texts) > 1 else texts[0]
        attempt = Attempt(task, made, parser, conditions, said=said if any(said) else ())
        if row.get("stop") in get_args(StopReason):
            attempt.stop = row["stop"]
        return "completion", attempt
    stated = row.get("messages")
    if stated is None:
        return None
    if not isinstance(stated, list):
        raise DataError("'messages' is no list")
    messages = [Message.from_openai(one) for one in stated]
    answers = [
        Completion(turn_text(one, parser, native=True), message=one) for one in messages if one.role == "assistant"
    ]
    if not answers:  # such as a row of the exported tasks: an empty answer would be right where nothing is to be called
        raise DataError("'messages' holds none of the assistant, so the row answers nothing")
    if _has_user(task, conditions):
        return "messages", _led(answers, task, parser, conditions)
    return "messages", Attempt(task, answers if len(answers) > 1 else answers[0], parser, conditions)


def _has_user(task: Task, conditions: Conditions) -> bool:
    return task.user is not None and conditions.limits.user_turns > 1


def _texts(written: Any, parser: Parser) -> list[str]:
    """The completions of a row, one after the other."""
    listed = [written] if isinstance(written, str) else written
    if isinstance(listed, list) and listed and all(isinstance(one, list) for one in listed):
        grouped = [[*some] for some in listed]
        if all(isinstance(text, str) for some in grouped for text in some):
            for some in grouped:
                last = parser.parse(some[-1]) if some else None
                if last is None or (isinstance(last, Program) and last.calls):
                    some.append(parser.render(Program()))
            return [text for some in grouped for text in some]
    if not isinstance(listed, list) or not listed or not all(isinstance(text, str) for text in listed):
        raise DataError("'completion' is no text, no list of texts and no list of such lists")
    return listed


def _led(answers: Sequence[Completion | str], task: Task, parser: Parser, conditions: Conditions) -> Attempt:
    """These completions in a conversation with the task's user, as far as it goes on."""
    talk = Conversation(task, parser, (Message.user(task.query),), conditions)
    try:
        for one in answers:
            if talk.over:
                break
            talk.accept(Completion(one) if isinstance(one, str) else one)
        return talk.attempt
    finally:
        talk.close()


# Judging while it is measured -----------------------------------------------------------------------------------------


def verdict_by(benchmark: Benchmark, attempt: Attempt, sample: int = 0) -> tuple[Verdict, Judgement]:
    """The verdict on an attempt by the rules of a benchmark; its category is among the groups."""
    verdict = judge(attempt, sample)
    verdict = evolve(verdict, groups={**verdict.groups, "category": benchmark.category_of(attempt.task)})
    if verdict.masked and attempt.masked is not None:
        judgement = Judgement(correct=False, score=0.0, masked=attempt.masked)
    else:
        judgement = benchmark.judge(attempt.task, attempt)
    if judgement.masked is not None:
        lost: dict[str, Any] = {"failure": "masked", "error": "masked", "masked": True, "lost": judgement.masked}
        return evolve(verdict, answer=False, valid=False, **lost), judgement
    error = judgement.error or ("" if judgement.correct else verdict.error or "wrong")
    return (
        evolve(
            verdict,
            answer=judgement.correct,
            valid=judgement.correct and _fits(attempt),
            failure="" if judgement.correct else verdict.failure or error,
            error=error,
            masked=False,
            lost="",
        ),
        judgement,
    )


def _fits(attempt: Attempt) -> bool:
    """Whether every call fits and executed, whose answer is right by the benchmark's rules and maybe not by ours."""
    try:
        return fits(attempt)
    except (Abstention, InfrastructureFailure):
        return False


def about(made: Benchmark, judged: Iterable[Judged] | None = None) -> dict[str, Any]:
    """What a result says of its benchmark; ``counts`` are figures that are no shares, of its attribute of that name.

    With ``judged``, the judgements that a table is made of, a part of the tasks is a reason, too.
    """
    counts = list(getattr(made, "counts", ()))
    why = [*made.unofficial, *(() if judged is None else unanswered(made, judged))]
    return {
        "name": made.name,
        "version": made.version,
        "official": not why,
        "why": why,
        **({"counts": counts} if counts else {}),
    }


def unanswered(made: Benchmark, judged: Iterable[Judged]) -> list[str]:
    """Which tasks nothing is known of, in a sentence; none where each has a judgement that counts."""
    known: dict[str, set[str]] = {}
    for one in judged:
        if one.judgement.masked is None:
            known.setdefault(one.category, set()).add(one.task)
    sizes = made.categories
    whole, held = sum(sizes.values()), sum(map(len, known.values()))
    if held >= whole:
        return []
    lacking = [category for category in sizes if category not in known]
    named = ", ".join(lacking[:4]) + (f" and {len(lacking) - 4} more" if len(lacking) > 4 else "")
    without = f"; none of {named}" if lacking and len(lacking) < len(sizes) else ""
    return [f"{held:,} of {whole:,} tasks were answered and judged{without}"]


def judged_of(row: Mapping[str, Any]) -> Judged | None:
    """The judgement that a kept row holds; ``None`` for one that was lost before it was judged."""
    kept = row.get("judgement")
    if not isinstance(kept, Mapping):
        return None
    category = str(row.get("groups", {}).get("category", ""))
    return Judged(row["task"], category, Judgement.from_json(kept), row.get("sample", 0))


def shares(judged: Iterable[Judged]) -> dict[str, list[float]]:
    """The correctness of every task that something is known of, by category: the mean over its samples."""
    samples: dict[tuple[str, str], list[bool]] = {}
    for one in judged:
        if one.judgement.masked is None:
            samples.setdefault((one.category, one.task), []).append(one.judgement.correct)
    found: dict[str, list[float]] = {}
    for (category, _), values in samples.items():
        found.setdefault(category, []).append(sum(values) / len(values))
    return found


def mean(values: Sequence[float]) -> float | None:
    """The mean; ``None`` of nothing."""
    return sum(values) / len(values) if values else None


# A split of a corpus as a benchmark -----------------------------------------------------------------------------------


class CorpusBenchmark:
    """A split of a corpus, judged by the tasks' own answers and added up by depth.

    For others to derive from: ``category_of`` (here ``depth N``), ``judge`` and ``aggregate`` may be replaced.
    """

    name: str = ""
    versions: Sequence[str] = ("1",)
    needs: Sequence[Need] = ()
    unofficial: Sequence[str] = ()

    def __init__(self, corpus: Corpus, split: str, version: str | None = None) -> None:
        self.version = version_of(self.name, version, self.versions)
        self.corpus, self.split = corpus, split

    @property
    def categories(self) -> Mapping[str, int]:
        """The categories with their numbers of tasks."""
        counts: dict[str, int] = {}
        for task in self.corpus[self.split]:
            category = self.category_of(task)
            counts[category] = counts.get(category, 0) + 1
        return dict(sorted(counts.items()))

    def tasks(self, category: str | None = None) -> Sequence[Task]:
        """The tasks of a category, else of all. Raises :class:`callwright.errors.UnknownName`."""
        every = self.corpus[self.split]
        if category is None:
            return list(every)
        found = [task for task in every if self.category_of(task) == category]
        if not found:
            raise UnknownName(f"category of {self.name}", category, self.categories)
        return found

    def category_of(self, task: Task) -> str:
        return f"depth {task.depth}"

    def judge(self, task: Task, attempt: Attempt) -> Judgement:
        """Whether the returned values are the expected ones."""
        verdict = judge(attempt)
        if verdict.masked:
            return Judgement(correct=False, score=0.0, masked=attempt.masked or "the machinery failed")
        return Judgement(verdict.answer, float(verdict.answer), verdict.error, {"valid": float(verdict.valid)})

    def aggregate(self, judged: Sequence[Judged]) -> Mapping[str, float | None]:
        """``overall``, over all tasks, and each category."""
        found = shares(judged)
        every = [value for values in found.values() for value in values]
        return {"overall": mean(every), **{category: mean(found.get(category, [])) for category in self.categories}}
