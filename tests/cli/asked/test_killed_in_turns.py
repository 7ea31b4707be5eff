"""An evaluation by a benchmark of several turns of its user, killed again and again, ends in the same bytes."""

from __future__ import annotations

import json
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

SUPPORT = Path(__file__).parents[2] / "core" / "support"
if str(SUPPORT) not in sys.path:
    sys.path.insert(0, str(SUPPORT))

from stand_in_server import Asked, Reply, StandIn, chat, usage  # noqa: E402

SAMPLES, TASKS = 4, 5


def call(name: str, **arguments: Any) -> str:
    return cw.parser("json").render(cw.Program((cw.Call(0, name, arguments),)))


def conversing(asked: Asked) -> dict[str, Any]:
    """A call, an answer, or what nobody can read: by the seed and by all that was said."""
    draw = random.Random(f"talk/{asked.body['seed']}/{json.dumps(asked.body['messages'])}")
    texts = [
        call("put", title=f"Book {draw.randrange(9)}"),
        call("titles"),
        call("sort"),
        cw.parser("json").render(cw.Program(text="Done.")),
        cw.parser("json").render(cw.Program(text="Is that all?")),
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


def words(server: StandIn, folder: Path) -> list[str]:
    given = {"model": "m", "base_url": server.url, "concurrency": 4, "retries": 0}
    options = [word for key, value in given.items() for word in ("--sampler-option", f"{key}={value}")]
    plan = f"evaluate --benchmark shelf --sampler openai --samples {SAMPLES} --temperature 1 --by category".split()
    return ["-p", "talking_fakes", *plan, *options, "-o", str(folder)]


def until(condition: Callable[[], bool]) -> None:
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it never came to that")


def test_killed_at_five_points_of_several_turns_of_users_it_ends_in_the_same_bytes(
    start: Any, serve: Callable[..., StandIn], tmp_path: Path
) -> None:
    server = serve(conversing)
    process = start(*words(server, tmp_path / "whole"))
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    asked = Counter(json.dumps(one.body, sort_keys=True) for one in server.asked)
    total = server.answered
    draw = random.Random(15)
    server = serve(lambda asked: Reply(conversing(asked), after=draw.random() * 0.05))
    killed = 0
    for part in range(1, 6):
        process = start(*words(server, tmp_path / "broken"))
        goal = total * part // 6
        until(lambda goal=goal: server.answered >= goal)  # type: ignore[misc]
        process.kill()
        process.communicate()
        killed += not (tmp_path / "broken" / "evaluation.json").exists()
    assert killed == 5
    process = start(*words(server, tmp_path / "broken"))
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert {json.dumps(one.body, sort_keys=True) for one in server.asked} == set(asked)
    for name in ("verdicts.jsonl", "evaluation.json"):
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    rows = [json.loads(line) for line in (tmp_path / "whole" / "verdicts.jsonl").read_text().splitlines()]
    assert [(row["id"], row["sample"]) for row in rows] == [
        (f"shelf-{task}", sample) for task in range(1, TASKS + 1) for sample in range(SAMPLES)
    ]
    # All of it happens, or nothing of it is tested.
    assert {row["stop"] for row in rows} >= {"steps", "answered"}
    assert max(len(row["user_turns"]) for row in rows) == 3
    assert any(said and said.get("sign") == "###STOP###" for row in rows for said in row.get("said", []))
    assert any("# More tools" in message["content"] for row in rows for message in row["messages"])
    assert {row["judgement"]["error"] for row in rows} >= {"force_terminated", "state"}
    assert any(row["answer"] for row in rows)
    unread = [text for row in rows for text in row.get("completions", [])[:-1] if text.startswith("<tool_call>\n{")]
    assert unread
