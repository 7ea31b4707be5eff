"""Multi-turn entries as BFCL's files have them, and as tasks of several turns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from callwright.compression.packing import unpacked_text
from callwright.environments.protocol import Environment
from callwright.errors import DataError
from callwright.tools.spec import ToolSpec
from callwright.walk.limits import TurnLimits
from callwright.walk.tasks import Answer, Task
from callwright.walk.users.said import UserSpec

CATEGORIES: Final = ("multi_turn_base", "multi_turn_miss_func", "multi_turn_miss_param", "multi_turn_long_context")
#: Class -> the file of its functions' documents.
DOCUMENTS: Final[Mapping[str, str]] = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "TwitterAPI": "posting_api",
    "VehicleControlAPI": "vehicle_control",
}
#: BFCL's MAXIMUM_STEP_LIMIT: the 21st completion with calls for one message of the user ends the entry.
STEPS: Final = 20
#: More than any entry has: 8 gold turns of at most 20 steps, one more that ends the entry, and the answers.
LIMITS: Final = TurnLimits(assistant_turns=256, user_turns=16, steps=STEPS, unparsed="turn")


@frozen(eq=False)
class Entry:
    """One entry: the classes with their scenario, the user's messages, and the gold calls of every turn as texts.

    A message is empty where functions appear (``missed``: the number of the turn -> their names) and the user says
    nothing. The gold calls may be of another number of turns than the messages (``multi_turn_base_154`` of v3).
    """

    id: str
    category: str
    classes: tuple[str, ...]
    config: Mapping[str, Any]
    messages: tuple[str, ...]
    missed: Mapping[int, tuple[str, ...]]
    gold: tuple[tuple[str, ...], ...]

    @property
    def long_context(self) -> bool:
        """Whether scenarios are filled up."""
        return "long_context" in self.category


def read_entries(folder: Path, version: str, category: str) -> dict[str, Entry]:
    """The entries of a category by id, of a folder with BFCL's data (files plain or ``.gz``).

    Raises :class:`callwright.errors.DataError` for rows that are none, and for entries without gold calls.
    """
    name = f"BFCL_{version}_{category}.json"
    gold = {row["id"]: row["ground_truth"] for row in _rows(folder / "possible_answer" / name, "id", "ground_truth")}
    entries = {}
    for row in _rows(folder / name, "id", "question", "initial_config", "involved_classes"):
        place, key = f"{folder / name}: {row['id']}", row["id"]
        if key not in gold:
            raise DataError(f"{place} has no gold calls in possible_answer/{name}: fetch both files of one release")
        unknown = [one for one in row["involved_classes"] if one not in DOCUMENTS]
        if unknown:
            raise DataError(f"{place} is of the class {unknown[0]!r}, which no multi-turn category of BFCL has")
        try:
            messages = tuple(turn[0]["content"] if turn else "" for turn in row["question"])
            missed = {int(turn): tuple(names) for turn, names in row.get("missed_function", {}).items()}
            calls = tuple(map(tuple, gold[key]))
        except (TypeError, KeyError, ValueError, AttributeError, IndexError) as error:
            raise DataError(f"{place} is no multi-turn entry: {error!r}") from error
        entries[key] = Entry(
            key, category, tuple(row["involved_classes"]), row["initial_config"], messages, missed, calls
        )
    return entries


def read_tools(folder: Path) -> dict[str, list[ToolSpec]]:
    """The functions of every class, in the order in which prompts list them."""
    return {
        name: [ToolSpec.from_tier(row) for row in _rows(folder / "multi_turn_func_doc" / f"{file}.json", "name")]
        for name, file in DOCUMENTS.items()
    }


def task_of(entry: Entry, tools: Mapping[str, Sequence[ToolSpec]], environment: Environment) -> Task:
    """An entry for models: the later messages are those of a replayed user, held-back functions appear."""
    offered = {spec.name: spec for name in entry.classes for spec in tools[name]}
    later = list(entry.messages[1:])
    return Task(
        id=entry.id,
        query=entry.messages[0],
        tools=offered,
        answer=Answer(),
        environment=environment,
        scenario=entry.id,
        split=entry.category,
        depth=sum(map(len, entry.gold)),
        structure="multi_turn",
        facts={"category": entry.category, "turns": len(entry.messages)},
        user=UserSpec("replayed", {"says": later}) if later else None,
        appear={name: turn for turn, names in entry.missed.items() for name in names if name in offered},
    )


def _rows(file: Path, *keys: str) -> Iterator[dict[str, Any]]:
    packed = file.with_name(file.name + ".gz")
    try:
        text = unpacked_text(packed if packed.exists() and not file.exists() else file)
    except DataError as error:
        raise DataError(f"{error}; it belongs to BFCL's data (--data)") from error
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DataError(f"{file}:{number}: no JSON: {error}") from error
        if not isinstance(row, dict) or any(key not in row for key in keys):
            raise DataError(f"{file}:{number}: an object with {', '.join(keys)} is needed")
        yield row
