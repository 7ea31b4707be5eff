"""The corpus ``depthbench-official``: TIER's released benchmark, read from the user's copy of it.

The folder is either one with ``queries.json``, ``function_definitions.json`` and ``cassette.jsonl`` (plain or ``.gz``),
or a clone of the released repository (or its ``data/depthbench``), which holds no recorded results: its completions can
be parsed and validated, and every call is an infrastructure error.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from callwright.errors import DataError, UnknownName, UsageError
from callwright.language.program import Call, Program, Returns, revive
from callwright.pickling import made_by
from callwright.walk.tasks import Answer, Task
from callwright_plugins.recorded.environment import find_file, read_json
from callwright_plugins.recorded.official_backend import OfficialBackend

#: The released split puts a query with calls into train if all its tools are among these, else into validation.
TRAINING_TOOLS: Final = frozenset(
    {
        "BookFlight",
        "BookSearchAPI",
        "CancelFlight",
        "CancelStoreOrder",
        "CreateCart",
        "CryptoPriceAPI",
        "CurrencyExchangeAPI",
        "EnglishDictionaryAPI",
        "FilterByCarBrand",
        "FilterByCarBuild",
        "FilterByCarMileage",
        "FilterByCarPrice",
        "FilterByCarProductionYear",
        "FilterByCarTitle",
        "FindDealershipsByLocation",
        "FlightStatusAPI",
        "GetCarListingByDealerships",
        "GetLocation",
        "MovieSearchAPI",
        "SearchFlight",
        "SearchSKU",
    }
)
#: The released split puts the first 50 queries without calls, by id, into train.
TRAINING_NO_CALLS: Final = range(660, 710)


#: The released code offers so many tools besides those of the query (``k_extra_functions``).
OTHERS: Final = 3


class DepthBenchOfficial:
    """Tasks of the released benchmark. Prompts list the query's tools and three others; calls are checked against all.

    So it is in the released code, whose checks know all 163 names. There the three are drawn anew in every process;
    here they hang on the id of the query alone. ``data`` is the folder. ``shown="all"`` lists all 163 tools in every
    prompt. Raises :class:`callwright.errors.DataError` if it is not a copy of the benchmark, and
    :class:`callwright.UsageError` for another ``shown``.
    """

    def __init__(self, data: str | Path, shown: Literal["query", "all"] = "query") -> None:
        if shown not in ("query", "all"):
            raise UsageError(f"shown is 'query' or 'all', not {shown!r}")
        self._shown = shown
        root = Path(data)
        if not root.is_dir():
            raise DataError(f"{root} is not a folder; name the one with queries.json (--data DIR)")
        folder, queries = _find_queries(root)
        self._rows = read_json(queries)
        if not isinstance(self._rows, dict) or not all(isinstance(row, dict) for row in self._rows.values()):
            raise DataError(f"{queries}: expected an object id -> query")
        self._path = queries
        self._environment = OfficialBackend(folder, _find_definitions(folder))
        self._made: dict[str, Task] = {}
        self._data = root.absolute()

    def __reduce__(self) -> Any:
        """As the folder, which must be where it is unpickled."""
        return made_by(self, DepthBenchOfficial, self._data, self._shown)

    @property
    def name(self) -> str:
        return "depthbench-official"

    @property
    def environment(self) -> OfficialBackend:
        return self._environment

    @cached_property
    def _ids(self) -> Mapping[str, list[str]]:
        splits: dict[str, list[str]] = {"train": [], "validation": []}
        for task_id in sorted(self._rows, key=lambda text: (len(text), text)):
            splits[self._split(task_id)].append(task_id)
        return splits

    @property
    def splits(self) -> Mapping[str, int]:
        """``train`` and ``validation`` as in the released code."""
        return {split: len(ids) for split, ids in self._ids.items()}

    def __getitem__(self, split: str) -> Sequence[Task]:
        """The tasks of a split, by id."""
        if split not in self._ids:
            raise UnknownName("split of depthbench-official", split, self._ids)
        return [self.task(task_id) for task_id in self._ids[split]]

    def task(self, task_id: str) -> Task:
        """The task of a query id."""
        task = self._made.get(task_id)
        if task is None:
            if task_id not in self._rows:
                raise UnknownName("task of depthbench-official", task_id, self._rows)
            try:
                task = self._made[task_id] = self._read(task_id, self._rows[task_id])
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise DataError(
                    f"{self._path}: query {task_id!r} cannot be read: {type(error).__name__}: {error}"
                ) from error
        return task

    def _split(self, task_id: str) -> str:
        row = self._rows[task_id]
        tools = row.get("apis") or []
        if not row.get("num_calls"):
            return "train" if task_id.isdecimal() and int(task_id) in TRAINING_NO_CALLS else "validation"
        return "train" if TRAINING_TOOLS.issuperset(tools) else "validation"

    def _read(self, task_id: str, row: Mapping[str, Any]) -> Task:
        # n5/n10/n20 variants of the released data hold objects where the full data set holds JSON texts.
        calls = _decoded(row["api_calls"]) or {}
        response = _decoded(row["response"]) or {}
        returns: Returns = "all" if row["return_all"] else "one"
        program = Program(
            tuple(
                Call(int(call_id), tool, revive(arguments))
                for call_id, call in sorted(calls.items(), key=lambda item: int(item[0]))
                for tool, arguments in call.items()
            ),
            returns,
        )
        twin = self._environment.recording.twin
        structure = program.structure
        filters = sum(call.tool.startswith("FilterBy") for call in program.calls)
        if filters > 1 and structure in ("linear", "funnel", "mixed"):
            structure = "conjunctive" if structure == "linear" else "mixed"
        return Task(
            id=task_id,
            query=row["prompt"],
            tools=self._environment.tools,
            answer=Answer(tuple(twin(value) for value in response.values())),
            environment=self._environment,
            scenario=row.get("tag") or "",
            split=self._split(task_id),
            depth=row["num_calls"],
            chain=program.chain,
            structure=structure,
            returns=returns,
            program=program,
            facts={"apis": tuple(row["apis"]), "answer_ids": tuple(response)},
            shown=self._drawn(task_id, {*row["apis"], *(call.tool for call in program.calls)}),
        )

    def _drawn(self, task_id: str, own: set[str]) -> tuple[str, ...] | None:
        """The query's own tools and three others, in an order that tells nothing; ``None`` if all are shown."""
        if self._shown == "all":
            return None

        def drawn(what: str) -> Callable[[str], bytes]:
            return lambda name: hashlib.sha256(f"{what}/{task_id}/{name}".encode()).digest()

        known = self._environment.tools
        others = sorted((name for name in known if name not in own), key=drawn("other"))[:OTHERS]
        return tuple(sorted([*(name for name in own if name in known), *others], key=drawn("place")))


def _decoded(value: Any) -> Any:
    return (json.loads(value) if value else None) if isinstance(value, str) else value


def _find_queries(root: Path) -> tuple[Path, Path]:
    for folder in (root, root / "data" / "depthbench"):
        for name in ("queries.json", "full_dataset.json"):
            found = find_file(folder, name)
            if found is not None:
                return folder, found
    raise DataError(
        f"{root} holds neither queries.json nor full_dataset.json; name a folder with the official files or a clone of "
        "the released TIER repository"
    )


def _find_definitions(folder: Path) -> Path:
    name = "function_definitions.json"
    places = [folder, folder.parent.parent / "src" / "tier" / "prompts", folder.parent.parent / "src" / "prompts"]
    for place in places:
        found = find_file(place, name)
        if found is not None:
            return found
    raise DataError(f"{folder} has no {name} (looked in {', '.join(str(place) for place in places)})")
