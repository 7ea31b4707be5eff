"""An evaluation by multi-turn entries with four samples, killed again and again, ends in the same bytes."""

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
import stand_in_wheel

import callwright as cw

pytest.importorskip("openai", reason="needs the client: pip install 'callwright[openai]'")
pytest.importorskip("aiolimiter", reason="needs the client: pip install 'callwright[openai]'")

TESTS = Path(__file__).parents[3]
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
    """A call, an answer, or what nobody can read: by the seed and by all that was said."""
    draw = random.Random(f"{asked.body['seed']}/{json.dumps(asked.body['messages'])}")
    texts = [
        called("create_ticket", title=draw.choice(["Lamp", "Door", "Printer (hall)"]), priority=draw.choice([1, 2])),
        called("list_tickets"),
        called("close_ticket", ticket_id=0),
        called("send", text="hello"),
        called("divide", a=1, b=0),
        PARSER.render(cw.Program(text="Done.")),
        PARSER.render(cw.Program(text="Is that all?")),
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
    """``start("evaluate", …)`` in a process of its own, with the stand-in as a plugin."""
    stand_in_wheel.write_data(tmp_path / "bfcl" / "data")
    stand_in_wheel.write_wheel(tmp_path / "bfcl" / "wheel")
    forge = Forge({**os.environ, "PYTHONPATH": str(Path(__file__).parent)})
    begun: list[Command] = []

    def begin(*words: str | Path) -> Command:
        given = ["-p", "stand_in_benchmark", *map(str, words)]
        begun.append(Command(forge, given, tmp_path / f"command-{len(begun)}"))
        return begun[-1]

    yield begin
    for command in begun:
        command.kill()
        command.communicate()
    forge.close()


def words(server: StandIn, folder: Path) -> list[str]:
    given = {"model": "m", "base_url": server.url, "concurrency": 4, "retries": 0}
    options = [word for key, value in given.items() for word in ("--sampler-option", f"{key}={value}")]
    plan = f"evaluate --benchmark stand-in-multi-turn --sampler openai --samples {SAMPLES} --temperature 1"
    files = ["--data", str(folder.parent / "bfcl/data"), "--corpus-option", f"package={folder.parent / 'bfcl/wheel'}"]
    return [*plan.split(), "--by", "category", *files, *options, "-o", str(folder)]


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
    assert [(row["id"], row["sample"]) for row in rows] == [
        (task, sample)
        for task in [
            *(f"multi_turn_base_{number}" for number in range(2)),
            *(f"multi_turn_{category}_0" for category in ("miss_func", "miss_param", "long_context")),
        ]
        for sample in range(SAMPLES)
    ]
    # All of it happens, or nothing of it is tested.
    assert max(len(row.get("user_turns", ())) for row in rows) == 4
    assert any("# More tools" in message["content"] for row in rows for message in row["messages"])
    assert {row["judgement"]["error"] for row in rows} >= {
        "multi_turn:empty_turn_model_response",
        "multi_turn:instance_state_mismatch",
    }
    assert any(row["judgement"]["correct"] for row in rows)
    assert not any(row["judgement"].get("masked") for row in rows)
