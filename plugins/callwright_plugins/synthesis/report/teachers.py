"""Teachers compared: what became of the same plans in other words (Prove, section 4.7)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from attrs import frozen

from callwright.errors import DataError, UsageError
from callwright.measuring.difficulty import solved_share
from callwright.walk.task_rows.reading import read_rows
from callwright_plugins.synthesis.duplicates.elements import shingles
from callwright_plugins.synthesis.duplicates.jaccard import jaccard
from callwright_plugins.synthesis.gates.comparing import Compared
from callwright_plugins.synthesis.report.folders import read_manifest, task_file

_PLAN: Final = "plan.jsonl"
#: Who has the words where a recipe names no teacher.
_GRAMMAR: Final = "scripted"


@frozen
class Worded:
    """A finished synthesis as it is compared: who had the words, and what all users say, by the ids of the tasks."""

    folder: Path
    teacher: str
    plan: str
    manifest: Mapping[str, Any]
    said: Mapping[str, str]
    #: pass@1 of the tasks that were measured.
    solved: Mapping[str, float]


def read_worded(folder: Path) -> Worded:
    """The folder of a finished synthesis. Raises :class:`callwright.errors.DataError` for anything else."""
    manifest = read_manifest(folder)
    try:
        with (folder / _PLAN).open(encoding="utf-8") as file:
            plan = str(json.loads(file.readline())["sha256"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{folder / _PLAN} holds no plan of a synthesis ({error})") from error
    said, solved = {}, {}
    for row in read_rows(task_file(folder))[1]:
        said[str(row["id"])] = Compared.of_row(row).text
        share = solved_share(row.get("facts"))
        if share is not None:
            solved[str(row["id"])] = share
    return Worded(folder, str(manifest.get("teacher") or _GRAMMAR), plan, manifest, said, solved)


def compared_teachers(folders: Sequence[Path], examples: int = 3) -> dict[str, Any]:
    """What the words of several teachers come to on one plan, as JSON.

    ``teachers`` has an entry for each folder: ``accepted``, ``kept`` and ``rejected`` (by stage and reason) of the
    planned units, ``usage``, and of the tasks that all of them kept (``shared``) how many texts are ``different``, the
    mean of ``words`` in one, how many different words there are in all (``vocabulary``), and ``solved``, the mean
    pass@1 where it was measured. ``alike`` is the mean Jaccard similarity (runs of three words) of the first teacher's
    texts and another one's. ``examples`` of the shared tasks are shown in all words.

    Raises :class:`callwright.UsageError` for fewer than two folders and for plans that are not the same.
    """
    found = [read_worded(one) for one in folders]
    if len(found) < 2:
        raise UsageError("two syntheses or more are compared; make another one with --teacher and another folder")
    for one in found[1:]:
        if one.plan != found[0].plan:
            raise UsageError(
                f"{one.folder} has other plans than {found[0].folder}: swap the words of one recipe with --teacher, "
                "and change nothing else"
            )
    shared = [task for task in found[0].said if all(task in one.said for one in found)]
    first = {task: shingles(found[0].said[task]) for task in shared}
    return {
        "planned": found[0].manifest["yields"].get("planned"),
        "shared": len(shared),
        "teachers": [_figures(one, shared, first) for one in found],
        "examples": [{"task": task, "said": [one.said[task] for one in found]} for task in shared[:examples]],
    }


def _figures(one: Worded, shared: Sequence[str], first: Mapping[str, frozenset[str]]) -> dict[str, Any]:
    texts = [one.said[task] for task in shared]
    yields, usage = one.manifest["yields"], one.manifest.get("usage") or {}
    alike = [float(jaccard(first[task], shingles(one.said[task]))) for task in shared]
    solved = [one.solved[task] for task in shared if task in one.solved]
    return {
        "folder": str(one.folder),
        "teacher": one.teacher,
        **{name: yields.get(name) for name in ("accepted", "kept", "rejected")},
        "usage": dict(usage),
        "different": len({" ".join(text.split()).casefold() for text in texts}),
        "words": _mean(len(text.split()) for text in texts),
        "vocabulary": len({word for text in texts for word in text.casefold().split()}),
        "alike": _mean(alike),
        "solved": _mean(solved),
    }


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return fmean(known) if known else None
