"""An evaluation of dialogues with four samples, killed again and again, ends in the same bytes."""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import callwright as cw

pytest.importorskip("openai", reason="needs the client: pip install 'callwright[openai]'")
pytest.importorskip("aiolimiter", reason="needs the client: pip install 'callwright[openai]'")

TESTS = Path(__file__).parents[2]
for support in (TESTS / "core" / "support", TESTS / "cli" / "asked"):
    if str(support) not in sys.path:
        sys.path.append(str(support))

from stand_in_server import Asked, Reply, StandIn, chat, usage  # noqa: E402
from warm_start import Command, Forge  # noqa: E402

SAMPLES = 4
PARSER = cw.parser("json")


def called(name: str, **arguments: Any) -> str:
    return PARSER.render(cw.Program((cw.Call(0, name, arguments),)))


def conversing(asked: Asked) -> dict[str, Any]:
    """A call, a sentence, or what nobody can read: by the seed and by all that was said."""
    draw = random.Random(f"{asked.body['seed']}/{json.dumps(asked.body['messages'])}")
    texts = [
        called("extend_hire", hire=draw.choice(["H1", "H2", "H3"]), hours=draw.choice([1, 2])),
        called("hire_details", hire=draw.choice(["H1", "H9"])),
        called("new_code", hire="H1"),
        called("end_hire", hire="H2"),
        called("send_mechanic", hire="H1", note="it is dark"),
        PARSER.render(cw.Program(text="Please lock it. What is the number of the hire?")),
        PARSER.render(cw.Program(text="The code is 9011. That makes 20 euros.")),
        '<tool_call>\n{"0": ',
    ]
    text = draw.choice(texts)
    return chat(text, counted=usage(draw.randrange(500, 900), len(text)))


@pytest.fixture
def serve() -> Iterator[Callable[..., StandIn]]:
    running: list[StandIn] = []

    def begin(*arguments: Any) -> StandIn:
        running.append(StandIn(*arguments))
        return running[-1]

    yield begin
    for one in running:
        one.close()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Command]]:
    """``start("evaluate", …)`` in a process of its own."""
    forge = Forge({**os.environ})
    begun: list[Command] = []

    def begin(*words: str | Path) -> Command:
        begun.append(Command(forge, [*map(str, words)], tmp_path / f"command-{len(begun)}"))
        return begun[-1]

    yield begin
    for command in begun:
        command.kill()
        command.communicate()
    forge.close()


def words(server: StandIn, folder: Path) -> list[str]:
    given = {"model": "m", "base_url": server.url, "concurrency": 4, "retries": 0}
    options = [word for key, value in given.items() for word in ("--sampler-option", f"{key}={value}")]
    plan = f"evaluate --benchmark tau2-mock --sampler openai --samples {SAMPLES} --temperature 1".split()
    return [*plan, *options, "-o", str(folder)]


def until(condition: Callable[[], bool]) -> None:
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it never came to that")


@pytest.mark.parametrize("kills", [2, pytest.param(5, marks=pytest.mark.slow)])
def test_killed_it_ends_in_the_same_bytes(
    kills: int, start: Any, serve: Callable[..., StandIn], tmp_path: Path
) -> None:
    server = serve(conversing)
    process = start(*words(server, tmp_path / "whole"))
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    asked = Counter(json.dumps(one.body, sort_keys=True) for one in server.asked)
    total = server.answered
    draw = random.Random(17)
    server = serve(lambda asked: Reply(conversing(asked), after=draw.random() * 0.05))
    killed = 0
    for part in range(1, kills + 1):
        process = start(*words(server, tmp_path / "broken"))
        goal = total * part // (kills + 1)
        until(lambda goal=goal: server.answered >= goal)  # type: ignore[misc]
        process.kill()
        process.communicate()
        killed += not (tmp_path / "broken" / "evaluation.json").exists()
    assert killed == kills
    process = start(*words(server, tmp_path / "broken"))
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert {json.dumps(one.body, sort_keys=True) for one in server.asked} == set(asked)
    for name in ("verdicts.jsonl", "evaluation.json"):
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    rows = [json.loads(line) for line in (tmp_path / "whole" / "verdicts.jsonl").read_text().splitlines()]
    tasks = list(dict.fromkeys(row["id"] for row in rows))
    assert len(tasks) == 7
    assert [(row["id"], row["sample"]) for row in rows] == [(one, sample) for one in tasks for sample in range(SAMPLES)]
    values = json.loads((tmp_path / "whole" / "evaluation.json").read_text())["values"]
    assert [*values] == ["overall", "pass^1", "pass^2", "pass^3", "pass^4"]
    # All of it happens, or nothing of it is tested.
    assert any(said and said.get("calls") for row in rows for said in row.get("said", []))
    assert {row["judgement"]["error"] for row in rows} >= {"", "db", "env_assertion"}
    assert not any(row["judgement"].get("masked") for row in rows)
