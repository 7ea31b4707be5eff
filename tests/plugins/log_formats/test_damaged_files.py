"""Whatever stands in a file, it is read, or refused with an error that names the file."""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.episodes.logs.writing import log_line
from callwright.errors import DataError

FILES = Path(__file__).parent / "files"
JUNK: list[Any] = [None, 7, "x", [], {}, [None], [7], ["x"], {"a": 1}, [[]], True, -1.5, "", ...]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from places(member, (*path, key))


def damaged(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    """The value with junk at a place, or nothing there for ``...``."""
    if not path:
        return [] if junk is ... else junk
    at = value
    for key in path[:-1]:
        at = at[key]
    if junk is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = junk
    return value


@pytest.mark.parametrize("name", sorted(path.name for path in FILES.iterdir() if path.suffix in (".json", ".jsonl")))
def test_a_damaged_file_is_read_or_refused(name: str, tmp_path: Path) -> None:
    text = (FILES / name).read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()] if name.endswith("l") else [json.loads(text)]
    every = [(at, path) for at, row in enumerate(rows) for path in places(row)]
    dice, file, tier = random.Random(0), tmp_path / name, cw.reward("tier")
    refused = []
    for at, path in dice.sample(every, min(60, len(every))):
        new = copy.deepcopy(rows)
        new[at] = damaged(new[at], path, copy.deepcopy(dice.choice(JUNK)))
        file.write_text("".join(json.dumps(row) + "\n" for row in new), encoding="utf-8")
        try:
            for log in cw.read_log(file, name.partition(".")[0]):
                tier.score_attempt(log.episode())
                log.findings()
        except DataError as error:
            refused.append(str(error))
    assert refused
    assert [one for one in refused if name not in one] == []


@pytest.mark.parametrize("name", sorted({path.name for path in FILES.glob("*.json*")} - {"mcp-record.jsonl"}))
def test_numbers_that_no_json_holds_are_left_in_their_texts(name: str, tmp_path: Path) -> None:
    text = (FILES / name).read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()] if name.endswith("l") else [json.loads(text)]
    every = [(at, path) for at, row in enumerate(rows) for path in places(row)]
    file, options = tmp_path / name, {"failed": "zzz"} if name in ("openai.jsonl", "responses.jsonl") else {}
    read = 0
    for junk in ('{"country": NaN}', "[1e999, 1]", {"country": math.inf}):
        for at, path in random.Random(0).sample(every, min(60, len(every))):
            new = copy.deepcopy(rows)
            new[at] = damaged(new[at], path, copy.deepcopy(junk))
            file.write_text("".join(json.dumps(row) + "\n" for row in new), encoding="utf-8")
            try:
                logs = list(cw.read_log(file, name.partition(".")[0], **options))
            except DataError:
                continue
            for log in logs:
                for call in log.calls:
                    assert json.dumps([dict(call.arguments), call.outcome.value], allow_nan=False)
                assert not isinstance(junk, str) or log_line(log)
                read += 1
    assert read
