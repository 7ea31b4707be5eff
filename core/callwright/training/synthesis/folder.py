"""The folder of a synthesis: a plan, a row for each finished unit, and in the end a file of tasks.

    settings.json       what was asked for
    ledger.json         what takes part: environments, plugins, versions, files
    plan.jsonl          the units, made once; its first line holds a digest of the others
    units.jsonl         what came of each, in the order of the plan, with digests beside it
    replies.sqlite      what a teacher replied, so that nothing is paid twice
    tasks.jsonl         the tasks that are kept (its name is the recipe's)
    rejected.jsonl      every unit that is none: stage, reason, evidence
    manifest.json       seeds, versions, what it took, yields; written last

A synthesis that was killed goes on after its last finished unit, and leaves the same bytes as one that was not.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, overload

from attrs import define, evolve, field

from callwright.capability import has
from callwright.errors import CallwrightError, ComponentError, DataError, FolderTaken, RunError, UsageError
from callwright.language.long_numbers import json_line, json_value
from callwright.training.ledger.account import changes_since, settle
from callwright.training.ledger.ingredients import Ingredients, plugin_digests, versions
from callwright.training.ledger.named_files import file_digests
from callwright.training.ledger.owner import LOCK, owned
from callwright.training.ledger.row_digests import DigestedRows
from callwright.training.run_folder import Run, describe_process, write_atomically
from callwright.training.synthesis.mixture import Mixture, kind_of
from callwright.training.synthesis.synthesizer import LimitsEpisodes, SplitsTasks
from callwright.training.synthesis.units import Accepted, Made, Rejected, Unit
from callwright.training.synthesis.work import (
    Job,
    Opened,
    Row,
    SynthesisRequest,
    plan_units,
    seldom_collected,
)
from callwright.training.synthesis.workers import Workers
from callwright.training.synthesis.yields import Yields
from callwright.training.teaching.cache import CachedTeacher
from callwright.walk.task_rows.stated import fingerprint
from callwright.walk.task_rows.writing import write_rows

if TYPE_CHECKING:
    from callwright.machines.chunk_work import Executor
    from callwright.training.reporter import Reporter

SETTINGS: Final = "settings.json"
PLAN: Final = "plan.jsonl"
UNITS: Final = "units.jsonl"
REPLIES: Final = "replies.sqlite"
REJECTED: Final = "rejected.jsonl"
MANIFEST: Final = "manifest.json"
#: Seconds that a batch may take: a unit may be many requests to a slow server.
STUCK_AFTER: Final = 3600.0


@define
class Synthesis:
    """One synthesis. Whatever its executor is, and however often it was stopped, it leaves the same bytes."""

    here: Opened
    request: SynthesisRequest
    executor: Executor
    folder: Path
    accept_changes: bool = False
    #: Seconds that a worker may take over a batch of units.
    stuck_after: float = STUCK_AFTER
    say: Callable[[str], object] = str
    _digests: DigestedRows = field(init=False)
    _mixture: Mixture | None = field(init=False, default=None)
    #: Of each unit that is done, in their order, whether it was accepted.
    _accepted: list[bool] = field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        self._digests = DigestedRows(self.folder / UNITS)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be the only one that writes into the folder. One that was made for it and holds nothing goes with it."""
        made = not self.folder.exists()
        try:
            with owned(self.folder, "folder of a synthesis") as before:
                if before is not None:
                    self.say(f"taking over from {before}, which is gone")
                yield
        except UsageError:
            if made:
                with suppress(OSError):  # it holds something
                    self.folder.rmdir()
            raise

    def run(self, reporter: Reporter) -> dict[str, Any]:
        """Make what is left, and return the manifest.

        Raises :class:`callwright.errors.FolderTaken` for a folder of something else, and
        :class:`callwright.errors.RunError` for a spent budget.
        """
        done, table = self._finished(), self.here.loaded.table
        if done is None:  # before anything is written: what is wrong with a file can be mended in the recipe
            self._mixture = Mixture.of(table.mixture, table.seed, self.here.registry)
        begun = self._begin()
        if done is not None:
            self.say(f"{self.folder} is finished: {done['yields']['kept']:,} tasks in {self._file}")
            if changes := changes_since(self.folder, self._made_of()):
                named = "; ".join(map(str, changes))
                self.say(f"what tasks are made of has changed since then, and new ones go elsewhere (-o): {named}")
            return done
        with self.executor as executor, ExitStack() as held:
            workers = held.enter_context(Workers(executor, self.here, self.request, self.stuck_after))
            try:
                jobs = self._plan(workers, reporter)
            except UsageError:  # a mistake of the recipe that the synthesizer found: nothing hangs on what was asked
                if not begun:
                    (self.folder / SETTINGS).unlink(missing_ok=True)
                raise
            self._settle(begun)
            kept = self._resume(jobs)
            yields = Yields(planned=len(jobs))
            for row in _read(self.folder / UNITS):
                self._take(row, yields)
            if kept < len(jobs) and self._limit_cost():  # what has its units needs no more money
                workers = held.enter_context(Workers(executor, self.here, self.request, self.stuck_after))
            reporter.start("units", len(jobs), kept)
            for rows in workers.rows(jobs[kept:]):
                self._digests.append(rows)
                for row in rows:
                    self._take(row, yields)
                figures = {"yield": yields.accepted / max(1, yields.accepted + yields.rejected.total())}
                reporter.advance(len(rows), **figures, **({"cost": yields.cost} if yields.usages else {}))
        reporter.finish()
        with seldom_collected():
            return self._compare(jobs, yields)

    def _take(self, row: Row, yields: Yields) -> None:
        yields.add(row)
        self._accepted.append("accepted" in row)

    # Going on ---------------------------------------------------------------------------------------------------------

    def _begin(self) -> bool:
        """Whether the folder was begun before. Raises :class:`FolderTaken` if it is of something else."""
        settings, run = self.here.loaded.settings(), Run(self.folder)
        stated = json.dumps(settings, indent=2, sort_keys=True) + "\n"
        before = run.read_json(SETTINGS)
        if before is None:
            # A cache of replies may be there before: a synthesis that only replays begins with one.
            if any(not path.name.startswith((LOCK, REPLIES, SETTINGS)) for path in self.folder.iterdir()):
                raise FolderTaken(f"{self.folder} is not empty and holds no synthesis; choose another folder (-o)")
            write_atomically(self.folder / SETTINGS, stated)
        elif before != json.loads(stated) and not (self.folder / PLAN).exists():
            write_atomically(self.folder / SETTINGS, stated)  # it failed before anything was planned by the others
        elif before != json.loads(stated):
            differing = sorted(key for key in {*before, *settings} if before.get(key) != settings.get(key))
            raise FolderTaken(
                f"{self.folder} holds a synthesis with other settings ({', '.join(differing)}); choose another (-o)"
            )
        return before is not None and (self.folder / UNITS).exists()

    def _settle(self, begun: bool) -> None:
        settle(self.folder, self._made_of(), begun=begun, accept=self.accept_changes, say=self.say)

    def _made_of(self) -> Ingredients:
        here = self.here
        environments = {}
        for one, environment in zip(here.stated, here.environments, strict=True):
            told = fingerprint(one, environment, here.registry)
            environments[str(one)] = " ".join(part for part in (told.version, told.schema) if part)
        return Ingredients(
            {
                "environments": environments,
                "plugins": plugin_digests(here.registry),
                "versions": versions(),
                "files": file_digests(here.loaded.table.model_dump(mode="json")),
            },
            {},
        )

    def _plan(self, workers: Workers, reporter: Reporter) -> list[Job]:
        """The units: those of the folder, or those that the synthesizer plans now."""
        path = self.folder / PLAN
        if path.exists():
            return _read_plan(path)
        jobs: list[Job] = []
        for number, units in enumerate(self._planned(workers, reporter)):
            jobs += ((number, unit) for unit in units)
        lines = [json_line({"environment": number, **unit.to_json()}) for number, unit in jobs]
        text = b"".join(lines)
        head = {"units": len(lines), "sha256": hashlib.sha256(text).hexdigest()}
        write_atomically(path, json_line(head) + text)
        return jobs

    def _planned(self, workers: Workers, reporter: Reporter) -> Iterator[list[Unit]]:
        """The units of each environment. Workers plan several environments at a time: no plan hangs on another."""
        numbers = range(len(self.here.environments))
        if len(numbers) < 2:  # its own stages are all there is to see
            yield from (plan_units(self.here, number, reporter) for number in numbers)
            return
        reporter.start("planning, environment by environment", len(numbers))
        for units in workers.plans(numbers):
            reporter.advance()
            yield units
        reporter.finish()

    def _resume(self, jobs: Sequence[Job]) -> int:
        """How many units are finished. Raises :class:`RunError` for rows of other units."""
        kept = self._digests.resume(accept=self.accept_changes, say=self.say)
        for line, (row, job) in enumerate(zip(_read(self.folder / UNITS), jobs, strict=False), 1):
            if (row.get("environment"), row.get("unit")) != (job[0], job[1].id):
                raise RunError(f"{self.folder / UNITS}:{line} is of another unit than the plan; choose another (-o)")
        if kept > len(jobs):
            raise RunError(f"{self.folder / UNITS} has more rows than the plan has units; choose another (-o)")
        if kept:
            self.say(f"going on after {kept:,} of {len(jobs):,} units in {self.folder}")
        return kept

    def _limit_cost(self) -> bool:
        """Of the most that the synthesis may cost, leave what earlier starts did not spend; whether they spent any."""
        most, teacher = self.request.most_cost, self.here.teacher
        if most is None or not isinstance(teacher, CachedTeacher):
            return False
        paid = teacher.file.cost()
        if paid >= most:
            raise RunError(
                f"{paid:g} were spent on {self.folder}, and it may cost {most:g}; the same command with a higher "
                "--max-cost goes on"
            )
        if paid:
            self.say(f"{paid:g} of {most:g} were spent before")
            self.request = evolve(self.request, most_cost=most - paid)
            self.here = self.request.open(self.here.registry)
        return bool(paid)

    # Ending -----------------------------------------------------------------------------------------------------------

    @property
    def _file(self) -> Path:
        return self.folder / self.here.loaded.table.file

    def _compare(self, jobs: Sequence[Job], yields: Yields) -> dict[str, Any]:
        """Compare all that was accepted, and write what is left."""
        units = _Units(self.folder / UNITS)
        places = [place for place, accepted in enumerate(self._accepted) if accepted]
        gone = {
            place: said.to_json()
            for place, said in zip(places, self._compared(_Accepted(jobs, units, places)), strict=True)
            if said is not None
        }
        splits = self._splits(units, [place for place in places if place not in gone])
        gone |= {place: said.to_json() for place, said in splits.items() if isinstance(said, Rejected)}
        if self._mixture is not None:
            stay = ((place, units[place]["accepted"]["row"]) for place in places if place not in gone)
            over = self._mixture.verdicts([(place, row["id"], kind_of(row)) for place, row in stay])
            gone |= {place: said.to_json() for place, said in over.items()}
        for said in gone.values():
            yields.reject(said)
        yields.kept = yields.accepted - len(gone)
        limits = self.here.synthesizer.limits if isinstance(self.here.synthesizer, LimitsEpisodes) else None
        about = {"synthesizer": self.here.synthesizer.name, "seed": self.here.loaded.table.seed}
        taken = [place for place in places if place not in gone]
        own = ({**units[place]["accepted"]["row"], **_in(splits.get(place))} for place in taken)
        rows = chain(own, () if self._mixture is None else self._mixture.rows)
        write_rows(
            self._file, self._of_own_ids(rows), limits=limits, about=about, trust=True, registry=self.here.registry
        )
        self._write_rejected(jobs, units, gone)
        return self._write_manifest(yields)

    def _splits(self, units: _Units, places: Sequence[int]) -> dict[int, str | Rejected]:
        """The splits of tasks by their places, where the synthesizer says what they are."""
        synthesizer = self.here.synthesizer
        if not has(synthesizer, SplitsTasks):
            return {}
        rows = (units[place]["accepted"]["row"] for place in places)
        try:
            said = list(synthesizer.splits(rows, self.here.loaded.table.seed))
        except CallwrightError:
            raise
        except Exception as error:
            raise ComponentError(
                f"the synthesizer {synthesizer.name!r}, splitting, raised {type(error).__name__}: {error}"
            ) from error
        if len(said) != len(places) or not all(isinstance(one, Rejected) or (one and type(one) is str) for one in said):
            raise ComponentError(
                f"the synthesizer {synthesizer.name!r} split {len(places)} tasks and gave {said!r:.80}; it must give "
                "the name of a split or a Rejected for each"
            )
        return dict(zip(places, said, strict=True))

    def _compared(self, made: _Accepted) -> Sequence[Rejected | None]:
        name = self.here.synthesizer.name
        try:
            verdicts = list(self.here.synthesizer.compare(made))
        except CallwrightError:
            raise
        except Exception as error:
            raise ComponentError(
                f"the synthesizer {name!r}, comparing, raised {type(error).__name__}: {error}"
            ) from error
        if len(verdicts) != len(made) or not all(one is None or isinstance(one, Rejected) for one in verdicts):
            raise ComponentError(
                f"the synthesizer {name!r} compared {len(made)} tasks and gave {verdicts!r:.80}; it must give None or "
                "a Rejected for each"
            )
        return verdicts

    def _of_own_ids(self, rows: Iterator[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        seen: set[str] = set()
        for row in rows:
            if row["id"] in seen:
                raise ComponentError(
                    f"the synthesizer {self.here.synthesizer.name!r} made two tasks of the id {row['id']!r}"
                )
            seen.add(row["id"])
            yield row

    def _write_rejected(self, jobs: Sequence[Job], units: _Units, gone: Mapping[int, Mapping[str, Any]]) -> None:
        lines = bytearray()
        for place, accepted in enumerate(self._accepted):
            if not accepted or place in gone:
                row = units[place]
                said = row.get("rejected") or gone[place]
                environment = self.here.stated[jobs[place][0]].to_json()
                told = {"environment": environment, "unit": row["unit"], "index": row["index"], **said}
                task = row.get("accepted", {}).get("row", {}).get("id")
                lines += json_line({**told, **({} if task is None else {"task": task})})
        write_atomically(self.folder / REJECTED, bytes(lines))

    def _write_manifest(self, yields: Yields) -> dict[str, Any]:
        here, table = self.here, self.here.loaded.table
        found = describe_process(here.registry, name=here.loaded.recipe.name, settings=here.loaded.settings())
        found |= {
            "seed": table.seed,
            "teacher": None if here.teacher is None else here.teacher.name,
            "environments": {
                one.name: fingerprint(one, environment, here.registry).schema
                for one, environment in zip(here.stated, here.environments, strict=True)
            },
            "usage": yields.usage(),
            "yields": yields.to_json(),
            "files": {name: _digest(self.folder / name) for name in (table.file, REJECTED)},
        }
        if self._mixture is not None:
            found["mixture"] = self._mixture.to_json()
        write_atomically(self.folder / MANIFEST, json.dumps(found, indent=2, sort_keys=True) + "\n")
        return found

    def _finished(self) -> dict[str, Any] | None:
        """The manifest of a synthesis that is done, whose files are as it left them."""
        found = Run(self.folder).read_json(MANIFEST)
        if not isinstance(found, dict) or not isinstance(found.get("files"), dict):
            return None
        whole = all((self.folder / name).is_file() for name in found["files"])
        if whole and all(_digest(self.folder / name) == digest for name, digest in found["files"].items()):
            return found
        return None


def _in(split: str | Rejected | None) -> dict[str, str]:
    return {"split": split} if isinstance(split, str) else {}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _read(path: Path) -> Iterator[Row]:
    """The whole rows of a file, none if there is none."""
    if path.exists():
        yield from _Units(path)


def _read_plan(path: Path) -> list[Job]:
    """Raises :class:`callwright.errors.DataError` for a plan that is not as it was written."""
    try:
        head, _, text = path.read_bytes().partition(b"\n")
        told = json.loads(head)
        if told["sha256"] != hashlib.sha256(text).hexdigest():
            raise ValueError("its digest is another one")
        rows = [json_value(line) for line in text.splitlines()]
        return [(row["environment"], Unit.from_json(row)) for row in rows]
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(
            f"{path} is not as it was written ({error}); remove it to have the same units planned again"
        ) from error


class _Units(Sequence[Row]):
    """The rows of finished units, each read when it is asked for: together they may not fit into memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._starts = array("q", [0])
        with path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    self._starts.append(self._starts[-1] + len(line))

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        with self._path.open("rb") as file:
            file.seek(self._starts[place])
            return self._parsed(file.read(self._starts[place + 1] - self._starts[place]), place)

    def __iter__(self) -> Iterator[Row]:
        with self._path.open("rb") as file:
            for place in range(len(self)):
                yield self._parsed(file.read(self._starts[place + 1] - self._starts[place]), place)

    def _parsed(self, line: bytes, place: int) -> Row:
        try:
            row: Row = json_value(line)
            if isinstance(row, dict) and ("accepted" in row or "rejected" in row):
                return row
        except (ValueError, RecursionError):
            pass
        raise DataError(f"{self._path}:{place + 1} is no finished unit")


class _Accepted(Sequence[Made]):
    """What :meth:`.synthesizer.Synthesizer.compare` is given."""

    def __init__(self, jobs: Sequence[Job], units: _Units, places: Sequence[int]) -> None:
        self._jobs, self._units, self._places = jobs, units, places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Made: ...

    @overload
    def __getitem__(self, index: slice) -> list[Made]: ...

    def __getitem__(self, index: int | slice) -> Made | list[Made]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        return self._made(self._places[index], self._units[self._places[index]])

    def __iter__(self) -> Iterator[Made]:
        wanted = set(self._places)
        for place, row in enumerate(self._units):
            if place in wanted:
                yield self._made(place, row)

    def _made(self, place: int, row: Row) -> Made:
        number, unit = self._jobs[place]
        held = row["accepted"]
        return Made(unit, Accepted(held["row"], held["facts"]), number)
