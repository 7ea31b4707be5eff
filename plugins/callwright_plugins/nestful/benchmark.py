"""The benchmark ``nestful``: F1 of functions and parameters, partial and full match, win rate, and TIER's EM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import evolve

from callwright.errors import InfrastructureFailure, UnknownName
from callwright.language.parser import Parser
from callwright.measuring.benchmark import Judged, Judgement, Need, mean, shares, version_of
from callwright.walk.attempt import Attempt
from callwright.walk.tasks import Task
from callwright_plugins.nestful import NAME
from callwright_plugins.nestful.answers import OfficialAnswer, official, written_of
from callwright_plugins.nestful.corpus import NestfulCorpus, Win
from callwright_plugins.nestful.matching import compare, f1, gold_labels
from callwright_plugins.nestful.reading import Sample

#: Samples of the whole release, by version.
WHOLE: Final[Mapping[str, int]] = {"2": 1861, "1": 300}
#: The error of a judgement that waits for the execution.
_OPEN: Final = "to be executed"
_PARTS: Final = ("win", "em", "partial", "full", "partial grounded", "full grounded")


class Nestful:
    """NESTFUL, by its two releases.

    ``data`` is the folder with the samples. ``package`` is the folder of the functions that version 2 executes, in a
    process of its own (``interpreter``: another Python than this one); without it answers are looked up in what was
    recorded of the gold calls (``execution_traces.jsonl`` in ``data``), and an answer that needs another call is
    masked.

    Right is what wins: the executed sequence gives the gold answer. Of version 1, whose functions were not released,
    it is what matches fully, grounded. Raises :class:`callwright.errors.DataError` for a folder without samples and
    :class:`callwright.UsageError` for a package that is none.
    """

    name = NAME
    versions: Sequence[str] = ("2", "1")
    needs: Sequence[Need] = (
        Need(
            "data",
            "the samples, and icl_examples.json for examples in prompts (--data DIR, their folder)",
            ("nestful_data.jsonl", "icl_examples.json"),
            "data_v2 and src of IBM's release of NESTFUL, or the data set ibm-research/nestful (Apache-2.0)",
        ),
        Need("package", "data_v2/executable_functions of the release, to execute what is not recorded (--package DIR)"),
    )

    def __init__(
        self,
        data: str | Path,
        package: str | Path | None = None,
        version: str | None = None,
        interpreter: str | None = None,
    ) -> None:
        self.version = version_of(NAME, version, self.versions)
        self._made = (str(Path(data).absolute()), package and str(Path(package).absolute()), self.version, interpreter)
        self.corpus = NestfulCorpus(data, self.version, package, interpreter)

    def __reduce__(self) -> Any:
        """As its folders, which must be where it is unpickled."""
        return type(self), self._made

    @property
    def unofficial(self) -> Sequence[str]:
        """Why results are not those of the whole release."""
        held, whole = len(self.corpus.samples), WHOLE[self.version]
        found = [] if held == whole else [f"the folder holds {held:,} of the release's {whole:,} samples"]
        if self.version == "1":
            found.append("the release does not say which tools were offered: all of a part's specs are")
        elif not self.corpus.executes:
            found.append("nothing is executed: results of recorded calls are looked up, and answers beyond are masked")
        return found

    @property
    def categories(self) -> Mapping[str, int]:
        """``mathematical`` and ``coding``; of version 1 its parts."""
        counts: dict[str, int] = {}
        for sample in self.corpus.samples.values():
            counts[sample.category] = counts.get(sample.category, 0) + 1
        return dict(sorted(counts.items()))

    def tasks(self, category: str | None = None) -> Sequence[Task]:
        """The tasks of a category, else of all. Raises :class:`callwright.errors.UnknownName`."""
        if category is not None and category not in self.categories:
            raise UnknownName(f"category of {NAME}", category, self.categories)
        samples = self.corpus.samples
        return [self.corpus.task(one) for one in samples if category in (None, samples[one].category)]

    def category_of(self, task: Task) -> str:
        """Where the sample comes from."""
        return self.corpus.samples[task.id].category

    def answer(self, row: Mapping[str, Any], parser: Parser) -> Attempt | None:
        """The attempt of a result row (``sample_id`` with ``generated_text``) or of bare ``calls``."""
        return official(row, self.corpus.task(str(row.get("sample_id", row.get("id")))), parser)

    def judge(self, task: Task, attempt: Attempt) -> Judgement:
        """What the release's scorer says: ``win``, ``partial``, ``full``, as written and grounded; and TIER's ``em``.

        The error is ``no_call``, ``unparsed``, ``other_answer`` or why there is no answer: ``unknown_function``,
        ``unresolved``, ``outputs``, ``raised``, ``timeout``; of version 1 ``other_calls``.
        """
        return self.judge_together([(task, attempt)])[0]

    def judge_together(self, attempts: Sequence[tuple[Task, Attempt]]) -> list[Judgement]:
        """The same of several, which are executed in one go."""
        begun = [(self.corpus.samples[task.id], *self._compared(task, attempt)) for task, attempt in attempts]
        asked = [place for place, (_, _, judgement) in enumerate(begun) if judgement.error == _OPEN]
        wins = self.corpus.wins([begun[place][:2] for place in asked]) if asked else []
        judged = [judgement for _, _, judgement in begun]
        for place, won in zip(asked, wins, strict=True):
            judged[place] = _executed(begun[place][0], judged[place], won)
        return judged

    def _compared(self, task: Task, attempt: Attempt) -> tuple[Any, Judgement]:
        """The written calls and what comparing them says; the error is :data:`_OPEN` where they are to be executed."""
        sample = self.corpus.samples[task.id]
        if isinstance(attempt, OfficialAnswer):
            written, labelled = attempt.written, attempt.labelled
        else:
            written, labelled = written_of(attempt.program, sample) if attempt.program else [], True
        compared = compare(written, sample.calls, labelled=labelled)
        parts = {
            "partial": compared.partial,
            "full": float(compared.partial == 1),
            "partial grounded": compared.partial_grounded,
            "full grounded": float(compared.partial_grounded == 1),
        }
        labels = compared.labels()
        if not written:
            unread = attempt.program is None and not isinstance(attempt, OfficialAnswer)
            known = {**parts, "win": 0.0, "em": 0.0} if self.version == "2" else parts
            return written, Judgement(
                correct=False, score=0.0, error="unparsed" if unread else "no_call", parts=known, labels=labels
            )
        if self.version == "1":
            right = compared.partial_grounded == 1
            return written, Judgement(right, float(right), "" if right else "other_calls", parts, labels=labels)
        return written, Judgement(correct=False, score=0.0, error=_OPEN, parts=parts, labels=labels)

    def aggregate(self, judged: Sequence[Judged]) -> Mapping[str, float | None]:
        """``overall`` (which is ``win``; of version 1 ``full grounded``), the shares, and the two F1.

        Then the share of right answers in each category.
        """
        counted = [one for one in judged if one.judgement.masked is None]
        found = shares(counted)
        values: dict[str, float | None] = {"overall": mean([value for some in found.values() for value in some])}
        for part in _PARTS if self.version == "2" else _PARTS[2:]:
            values[part] = _mean_part(counted, part)
        values["f1 function"], values["f1 parameter"] = self._f1(counted)
        return {**values, **{category: mean(found.get(category, [])) for category in self.categories}}

    def _f1(self, judged: Sequence[Judged]) -> tuple[float | None, float | None]:
        """The means over runs: the first sample of every task is a run of its own, and so on."""
        runs: dict[int, list[Any]] = {}
        for one in judged:
            if "functions" in one.judgement.labels:
                gold = gold_labels(self.corpus.samples[one.task].calls)
                runs.setdefault(one.sample, []).append((gold, one.judgement.labels))
        found = [f1(pairs) for _, pairs in sorted(runs.items())]
        return mean([one for one, _ in found]), mean([one for _, one in found])


def _mean_part(judged: Sequence[Judged], part: str) -> float | None:
    """The mean over tasks of the mean over a task's samples."""
    tasks: dict[str, list[float]] = {}
    for one in judged:
        if part in one.judgement.parts:
            tasks.setdefault(one.task, []).append(one.judgement.parts[part])
    return mean([sum(values) / len(values) for _, values in sorted(tasks.items())])


def _executed(sample: Sample, begun: Judgement, won: Win | InfrastructureFailure) -> Judgement:
    """The judgement on calls that were executed, or could not be."""
    if isinstance(won, InfrastructureFailure):
        return evolve(begun, error="", masked=str(won))
    right, why, told, shown = won
    parts = {**begun.parts, "win": float(right), "em": float(begun.parts["full"] == 1 and not why)}
    error = "" if right else why or "other_answer"
    evidence = (told,) if told else () if right else (_differs(sample, shown),)
    return evolve(begun, correct=right, score=float(right), error=error, parts=parts, evidence=evidence)


def _differs(sample: Sample, shown: str) -> str:
    return f"expected {sample.gold!r:.200}, found {shown}"
