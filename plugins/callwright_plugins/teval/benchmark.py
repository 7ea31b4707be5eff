"""The benchmark ``t-eval``: the official scorer's figures for six abilities, in JSON and in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from callwright.errors import UnknownName
from callwright.language.parser import Parser
from callwright.language.speech import spoken
from callwright.measuring.benchmark import Judged, Judgement, Need, mean, version_of
from callwright.walk.attempt import Attempt
from callwright.walk.tasks import Task
from callwright_plugins.teval import NAME
from callwright_plugins.teval.corpus import TEvalCorpus
from callwright_plugins.teval.embedders import OFFICIAL_MODEL, Embedder, SentenceTransformers, embedder_of
from callwright_plugins.teval.files import FILES, SUFFIXES, WHOLE, Entry, answer_rows, versions_in
from callwright_plugins.teval.instruct import arguments_right, read_json, read_words
from callwright_plugins.teval.literals import equal
from callwright_plugins.teval.planning import read_plan, read_steps, score_plan
from callwright_plugins.teval.review import read_letter, read_review
from callwright_plugins.teval.steps import Step, read_step, score_args, score_name, score_thought
from callwright_plugins.teval.trimming import trimmed

#: What a category's figure is made of, for each ability that it measures.
_RRU: Final = "reason_retrieve_understand_json"
_FIGURES: Final[Mapping[str, Sequence[tuple[str, tuple[str, ...]]]]] = {
    "instruct": (("instruct_json", ("format", "args_em")), ("instruct_str", ("format", "args_em"))),
    "plan": (("plan_str", ("f1",)), ("plan_json", ("f1",))),
    "reason": (("reason_str", ("thought",)), (_RRU, ("thought",))),
    "retrieve": (("retrieve_str", ("name",)), (_RRU, ("name",))),
    "understand": (("understand_str", ("args",)), (_RRU, ("args",))),
    "review": (("review_str", ("review_quality",)),),
}
_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "instruct_json": ("format", "args_em"),
    "instruct_str": ("format", "args_em"),
    "plan_json": ("precision", "recall", "f1", "parse_rate"),
    "plan_str": ("precision", "recall", "f1", "parse_rate"),
    "reason_str": ("thought", "parse_rate"),
    "retrieve_str": ("name", "parse_rate"),
    "understand_str": ("args", "parse_rate"),
    _RRU: ("thought", "name", "args", "parse_rate"),
    "review_str": ("review_quality", "parse_rate"),
}
#: The official program rounds the means of these files to four digits, and goes on with that.
_ROUNDED: Final = ("instruct_json", "instruct_str", "review_str")
#: What counts as full marks: perfect arguments have n / (n + 0.00001), and cosines the precision of their model.
_FULL: Final = 1 - 1e-4
#: What is wrong where a figure is below that.
_ERRORS: Final[Mapping[str, str]] = {
    "format": "unparsed",
    "args_em": "wrong_call",
    "f1": "other_plan",
    "thought": "other_thought",
    "name": "wrong_name",
    "args": "wrong_args",
    "review_quality": "wrong_choice",
    "parse_rate": "unparsed",
}
#: What an answer to a file in words is taken for.
_FIELDS: Final = {"reason_str": "thought", "retrieve_str": "name", "understand_str": "args"}


class TEval:
    """T-Eval, by the layouts of its releases.

    ``data`` is the folder with the files of a release; some of them are enough, and results then say which are missing.
    Without a ``version`` it is the first of which the folder has files. ``embedder`` is ``sentence-transformers``
    (official, with ``embedder_model`` a name or a folder), ``trigrams`` (a stand-in without weights), or an object
    (:class:`callwright_plugins.teval.embedders.Embedder`). Only plans and thoughts need it, and it is loaded for the
    first of them.

    Right is an answer with full marks; the table's figures are means of marks.

    Raises :class:`callwright.errors.DataError` for a folder without files, :class:`callwright.UsageError` for a version
    that there is not, and :class:`callwright.errors.UnknownName` for an embedder that nobody knows.
    """

    name = NAME
    versions: Sequence[str] = tuple(SUFFIXES)
    needs: Sequence[Need] = (
        Need(
            "data",
            "the release's files, or some of them (--data DIR, their folder); v2-subset and v1 have their own endings",
            tuple(f"{stem}{SUFFIXES['v2']}.json" for stem in FILES),
            "the data set lovesnowbest/T-Eval (Apache-2.0)",
        ),
        Need("embedder", f"{OFFICIAL_MODEL}, for plans and thoughts (the extra 'teval'; embedder=NAME)"),
    )

    def __init__(
        self,
        data: str | Path,
        version: str | None = None,
        embedder: str | Embedder = SentenceTransformers.name,
        embedder_model: str | None = None,
    ) -> None:
        folder = Path(data).absolute()
        there = versions_in(folder) if version is None else ()
        self.version = there[0] if there else version_of(NAME, version, self.versions)
        self.embedder = embedder_of(embedder, embedder_model)
        self._made = (str(folder), self.version, embedder, embedder_model)
        self.corpus = TEvalCorpus(folder, self.version)

    def __reduce__(self) -> Any:
        """As its folder, which must be where it is unpickled."""
        return type(self), self._made

    @property
    def unofficial(self) -> Sequence[str]:
        """Why results are not official: another embedder, files that are missing, files that are not whole."""
        held: dict[str, int] = {}
        for entry in self.corpus.entries.values():
            held[entry.file.stem] = held.get(entry.file.stem, 0) + 1
        found = [self.embedder.unofficial] if self.embedder.unofficial and held.keys() != {"review_str"} else []
        missing = [stem for stem in FILES if stem not in held]
        if missing:
            found.append(f"the folder has no {', '.join(missing)}: 'overall' is the mean of what can be measured")
        for stem, whole in WHOLE.get(self.version, {}).items():
            if 0 < held.get(stem, 0) != whole:
                found.append(f"{stem} holds {held[stem]} of the release's {whole} entries")
        return found

    @property
    def categories(self) -> Mapping[str, int]:
        """The files that are there, that of ``instruct`` by its two formats."""
        counts: dict[str, int] = {}
        for entry in self.corpus.entries.values():
            counts[entry.category] = counts.get(entry.category, 0) + 1
        return counts

    def tasks(self, category: str | None = None) -> Sequence[Task]:
        """The tasks of a category, else of all. Raises :class:`callwright.errors.UnknownName`."""
        if category is not None and category not in self.categories:
            raise UnknownName(f"category of {NAME}", category, self.categories)
        entries = self.corpus.entries.values()
        return [self.corpus.task(one.id) for one in entries if category in (None, one.category)]

    def category_of(self, task: Task) -> str:
        """The file, with the format."""
        return self.corpus.entries[task.id].category

    # Answers that were made elsewhere ---------------------------------------------------------------------------------

    def answer_rows(self, path: Path) -> Iterable[tuple[str, Mapping[str, Any]]] | None:
        """What the official program left in a file or a folder. Raises :class:`callwright.errors.DataError`."""
        return answer_rows(path)

    def answer(self, row: Mapping[str, Any], parser: Parser) -> Attempt | None:
        """The attempt of a row with a ``prediction``, which may be data already. It is taken as it stands."""
        if "prediction" not in row:
            return None
        predicted, task = row["prediction"], self.corpus.task(str(row["id"]))
        return Attempt(task, predicted if isinstance(predicted, str) else repr(predicted), parser)

    # Judging ----------------------------------------------------------------------------------------------------------

    def judge(self, task: Task, attempt: Attempt) -> Judgement:
        """What the official scorer says. ``parts`` are its figures; ``score`` is the mean of those that count.

        The error is ``unparsed``, or says which figure is below full marks: ``wrong_call``, ``other_plan``,
        ``other_thought``, ``wrong_name``, ``wrong_args``, ``wrong_choice``. Of an
        attempt that was sampled here the answer is taken as the official program takes a model's output
        (:mod:`callwright_plugins.teval.trimming`), its thought left out; what was made elsewhere is taken as it stands.
        """
        entry = self.corpus.entries[task.id]
        parts, parsed, evidence = self._scorer(entry)(entry, _said(attempt))
        counted = [parts[part] for part in _PARTS[entry.category] if part not in ("parse_rate", "precision", "recall")]
        low = [part for part in _PARTS[entry.category] if parts[part] < _FULL and part not in ("precision", "recall")]
        error = "" if not low else _ERRORS[low[0]] if parsed else "unparsed"
        score = max(0.0, min(1.0, sum(counted) / len(counted)))
        return Judgement(not low, score, error, parts, evidence)

    def _scorer(self, entry: Entry) -> _Scorer:
        dimensions = entry.file.dimensions
        if dimensions == ("instruct",):
            return _instruct
        if dimensions == ("plan",):
            return self._plan
        return _review if dimensions == ("review",) else self._step

    def _plan(self, entry: Entry, text: str) -> _Scored:
        as_json = entry.format == "json"
        made = read_plan(text) if as_json else read_steps(text, entry.meta["API_list"])
        found = score_plan(made, read_plan(entry.gold), self.embedder)
        parts = {"precision": found.precision, "recall": found.recall, "f1": found.f1}
        evidence = (f"the official scorer ends here: {found.stops}",) if found.stops else ()
        return {**parts, "parse_rate": float(found.parsed)}, found.parsed, evidence

    def _step(self, entry: Entry, text: str) -> _Scored:
        of_json = entry.file.format == "json"
        wanted = read_step(entry.gold, as_json=of_json)
        if entry.format == "json":
            made = read_step(text, as_json=of_json) if wanted.parsed else Step()
        else:
            made = Step(**{_FIELDS[entry.category]: text}) if entry.category in _FIELDS else Step()
        scores: dict[str, Callable[[], float]] = {
            "thought": lambda: score_thought(made, wanted, self.embedder),
            "name": lambda: score_name(made, wanted, as_json=of_json),
            "args": lambda: score_args(made, wanted),
        }
        parts = {part: scores[part]() for part in _PARTS[entry.category] if part in scores}
        return {**parts, "parse_rate": float(made.parsed)}, made.parsed, ()

    # The table --------------------------------------------------------------------------------------------------------

    def aggregate(self, judged: Sequence[Judged]) -> Mapping[str, float | None]:
        """``overall``, the six abilities, then every figure of every file, ``plan_json f1`` and so on.

        An ability is the mean of its formats, ``overall`` that of the abilities. Of files that the folder lacks nothing
        counts; without an answer to a file that it has, nothing can be said of its ability, nor of all.
        """
        means = {
            (category, part): _mean_part(judged, category, part)
            for category in self.categories
            for part in _PARTS[category]
        }
        abilities: dict[str, float | None] = {}
        for ability, formats in _FIGURES.items():
            there = [(category, parts) for category, parts in formats if category in self.categories]
            if there:
                abilities[ability] = _whole_mean(
                    [_whole_mean([means[category, part] for part in parts]) for category, parts in there]
                )
        figures = {f"{category} {part}": value for (category, part), value in means.items()}
        return {"overall": _whole_mean(list(abilities.values())), **abilities, **figures}


_Scored = tuple[dict[str, float], bool, tuple[str, ...]]
_Scorer = Callable[[Entry, str], _Scored]


def _said(attempt: Attempt) -> str:
    completion = attempt.completion
    if attempt.stop is not None:
        return trimmed(spoken(None, completion))
    return completion.text if completion.message is None else completion.message.text


def _instruct(entry: Entry, text: str) -> _Scored:
    read = read_json if entry.format == "json" else read_words
    called = read(text, entry.template)
    if called is None:
        return {"format": 0.0, "args_em": 0.0}, False, ()
    right = arguments_right(called, entry.gold["action"], entry.gold["args"])
    return {"format": 1.0, "args_em": right}, True, ()


def _review(entry: Entry, text: str) -> _Scored:
    found: Any = read_review(text) if entry.format == "json" else read_letter(text)
    right = found is not None and equal(found, entry.gold["answer"])
    return {"review_quality": float(right), "parse_rate": float(found is not None)}, found is not None, ()


def _mean_part(judged: Sequence[Judged], category: str, part: str) -> float | None:
    """The mean over tasks of the mean over a task's samples, rounded as the official program does it."""
    tasks: dict[str, list[float]] = {}
    for one in judged:
        if one.category == category and one.judgement.masked is None:
            tasks.setdefault(one.task, []).append(one.judgement.parts.get(part, one.judgement.score))
    found = mean([sum(sorted(values)) / len(values) for _, values in sorted(tasks.items())])
    return found if found is None or category not in _ROUNDED else round(found * 1e4) / 1e4


def _whole_mean(values: Sequence[float | None]) -> float | None:
    """The mean, if there is a value in every place."""
    known = [value for value in values if value is not None]
    return mean(known) if len(known) == len(values) else None
